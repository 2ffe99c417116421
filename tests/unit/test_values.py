"""Which values reach an op, where that decides its time."""

import numpy as np
import pytest

from fusesim.ops import OPS
from fusesim.values import FUNCTIONS, normal_sample, slow_shares


def shares(*names, largest=3.4e38):
    return slow_shares(tuple(OPS[name] for name in names), largest)


def test_the_sample_is_normal_and_has_no_zero():
    sample = normal_sample()
    assert np.mean(sample) == pytest.approx(0, abs=1e-12)
    assert np.std(sample) == pytest.approx(1, rel=0.02)
    assert np.all(sample != 0)


def test_normal_values_stay_on_the_fast_path():
    assert shares("silu", "sigmoid", "sin") == (0.0, 0.0, 0.0)


def test_half_of_the_values_after_relu_are_zero_so_every_warp_divides_slowly():
    assert shares("relu", "silu") == (0.0, pytest.approx(1.0))


def test_values_that_are_not_zero_divide_fast():
    assert shares("exp", "relu", "silu")[-1] == 0.0  # exp is positive
    assert shares("relu", "add", "silu")[-1] == 0.0  # a constant ends the zeros
    assert shares("relu", "mul", "silu")[-1] == pytest.approx(1.0)  # a factor keeps them


def test_two_exponentials_leave_the_range_of_a_quick_sine():
    one, two = shares("exp", "sin")[-1], shares("exp", "exp", "sin")[-1]
    assert one == 0.0  # exp(3) = 20
    assert 0.1 < two < 1.0  # exp(exp(2.5)) = 195 000, and 2.5 deviations are rare


def test_half_precision_overflows_where_single_does_not():
    chain = ("exp", "square", "square", "square", "silu")
    assert shares(*chain)[-1] == 0.0
    assert shares(*chain, largest=65504.0)[-1] > 0.5  # e^(8 x 1.4) > 65504, and one value in twelve is that large


def test_every_op_without_operands_says_what_it_does_to_values():
    assert set(FUNCTIONS) == {name for name, op in OPS.items() if not (op.tensors or op.rows)}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_no_function_fails_on_any_value(name):
    with np.errstate(all="ignore"):
        out = FUNCTIONS[name](np.array([0.0, -0.0, 1.0, -1.0, 1e38, -1e38, np.inf, -np.inf, np.nan]))
    assert out.shape == (9,)
