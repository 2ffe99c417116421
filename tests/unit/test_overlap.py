"""Soft maxima, and the powers that they are made of."""

import numpy as np
import pytest

from fusesim.overlap import eighth, eighth_root, fourth, fourth_root, near_maximum, soft_maximum


@pytest.mark.parametrize("combine", [soft_maximum, near_maximum])
def test_a_soft_maximum_lies_between_the_maximum_and_the_sum(combine):
    for first, second in [(1e-6, 1e-6), (1e-6, 3e-6), (0.0, 2e-6), (5e-3, 1e-9)]:
        assert max(first, second) <= combine(first, second) * (1 + 1e-12)
        assert combine(first, second) <= first + second + 1e-18
        assert combine(first, second) == pytest.approx(combine(second, first))


def test_soft_maxima_leave_their_arguments_alone():
    first, second = np.array([1e-6, 2e-6]), np.array([3e-6, 1e-6])
    soft_maximum(first, second)
    near_maximum(first, second)
    assert first.tolist() == [1e-6, 2e-6]
    assert second.tolist() == [3e-6, 1e-6]


def test_roots_undo_powers():
    times = np.array([1e-9, 3e-6, 2.0])
    assert fourth_root(fourth(times)) == pytest.approx(times)
    assert eighth_root(eighth(times)) == pytest.approx(times)
    assert [eighth_root(eighth(time)) for time in times.tolist()] == eighth_root(eighth(times)).tolist()
