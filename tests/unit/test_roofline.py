import numpy as np
import pytest

from fusesim.roofline import arithmetic_intensity, attainable, compute_time, memory_time, ridge_point


def test_memory_time():
    assert memory_time(bytes_moved=6.0, bandwidth=2.0) == 3  # 6 B at 2 B/s
    assert memory_time(bytes_moved=0.0, bandwidth=2.0) == 0  # nothing to move


def test_compute_time():
    assert compute_time(flops=10.0, flop_rate=4.0) == 2.5  # 10 FLOP at 4 FLOP/s
    assert np.isnan(compute_time(flops=10.0, flop_rate=np.nan))  # unknown stays unknown


def test_arithmetic_intensity():
    assert arithmetic_intensity(flops=1.0, bytes_moved=4.0) == 0.25  # one bf16 op: 2 B read, 2 B written


def test_both_times_meet_at_the_ridge_point():
    ridge = ridge_point(flop_rate=100.0, bandwidth=20.0)
    assert ridge == 5
    bytes_moved = 7.0
    assert compute_time(flops=ridge * bytes_moved, flop_rate=100.0) == memory_time(bytes_moved=7.0, bandwidth=20.0)


@pytest.mark.parametrize(
    ("intensity", "rate"),
    [
        (0.5, 10),  # under the slope: 0.5 FLOP/B x 20 B/s
        (5.0, 100),  # at the ridge point
        (50.0, 100),  # under the flat roof
    ],
)
def test_attainable(intensity, rate):
    assert attainable(intensity=intensity, bandwidth=20.0, flop_rate=100.0) == rate


def test_arrays_go_through():
    roof = attainable(intensity=np.array([0.5, 50.0]), bandwidth=20.0, flop_rate=100.0)
    assert roof.tolist() == [10, 100]
