"""Ops of a caller's own that cannot be, and other arguments of the wrong kind, are refused in a sentence."""

import numpy as np
import pytest

from fusesim import InputError, Op, price_chain


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"slow": "zzz"}, 'slow is zzz; give "division", "sine" or ""'),
        ({"name": 5}, "name is 5; give text"),
        ({"tensors": 0.5}, "tensors is 0.5; give a whole number"),
        ({"alone": -1}, "alone is -1; give a number from 0"),
    ],
)
def test_an_op_that_cannot_be_is_refused(wrong, sentence):
    with pytest.raises(InputError, match=sentence):
        Op(**{"name": "own", "flops": 1, "definition": "x"} | wrong)


def test_effects_that_are_no_list_are_refused():
    with pytest.raises(InputError, match="effects is 5; give a list of names"):
        price_chain(5, 4096, model="calibrated", device="h200-sxm", effects=5)


def test_narrow_numbers_are_numbers():
    assert price_chain(5, np.float16(4096)).unfused.time == price_chain(5, 4096).unfused.time
