"""Which bytes the cache serves, on a machine whose cache holds 50 MB, of which reused data reach 25 MB."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusesim.kernel import reused_share
from fusesim.launches import Access, Launch
from fusesim.machine import Machine
from fusesim.reuse import served, touches

MB = 1e6
MACHINE = Machine(
    sms=100.0,
    clock=1e9,
    cache=50e6,
    peak_bandwidth=5e12,
    floor=1e-6,
    stream_gap=1e-6,
    idle=5e-6,
    replay=3e-6,
    dram_latency=8e-7,
    cache_latency=3e-7,
    cache_spread=2e-7,
    spread_bytes=1e5,
    evicted_latency=1e-7,
    operand_latency=5e-8,
    row_latency=2e-8,
    bandwidth=4e12,
    cache_bandwidth=8e12,
    wave_bandwidth=10e12,
    cache_reach=0.5,
    cache_sharpness=6.0,
    issue_share=0.5,
    special_share=0.5,
    dispatch=1e9,
)


def kernel(reads, writes, size, **fields):
    """A kernel that reads and writes memories of one size."""
    return Launch(
        name="k",
        row="k",
        reads=tuple(Access(name, size) for name in reads),
        writes=tuple(Access(name, size) for name in writes),
        **fields,
    )


def chain(size):
    """Three kernels: x -> a -> b -> y."""
    return [kernel("x", "a", size), kernel("a", "b", size), kernel("b", "y", size)]


def share(distance):
    return float(reused_share(distance, MACHINE))


def test_cold_inputs_come_from_memory_and_kept_outputs_go_there():
    first, *_, last = served(chain(1 * MB), "xy", MACHINE, math.inf)
    assert first.read == 1 * MB
    assert first.cold == 1.0
    assert last.written == 1 * MB


def test_cold_is_cold_where_nothing_rotates():
    (only,) = served([kernel("", "y", 1 * MB)], "", MACHINE, math.inf)  # a fill: zero bytes of inputs, endless sets
    assert (only.read, only.written, only.evicted) == (0.0, 1 * MB, 1.0)


def test_a_small_intermediate_never_leaves_the_cache():
    _, second, third = served(chain(1 * MB), "xy", MACHINE, math.inf)
    # half of the 2 MB that the producer touches and half of the consumer's lie between: 2 MB of 25
    assert share(2 * MB) > 0.999
    assert second.read == pytest.approx((1 - share(2 * MB)) * MB)
    assert third.read == pytest.approx((1 - share(2 * MB)) * MB)
    assert second.cold < 1e-3


def test_an_intermediate_beyond_the_caches_reach_comes_from_memory():
    first, second, _ = served(chain(100 * MB), "xy", MACHINE, math.inf)
    assert share(200 * MB) < 1e-5
    assert second.read == pytest.approx(100 * MB, rel=1e-4)
    assert first.written == pytest.approx(100 * MB, rel=1e-4)


def test_half_of_it_is_lost_where_the_distance_is_the_reach():
    _, second, _ = served(chain(12.5 * MB), "xy", MACHINE, math.inf)
    assert second.read == pytest.approx(0.5 * 12.5 * MB)  # 25 MB lie in between
    assert second.cold == pytest.approx(0.5)


def test_memory_between_counts_once_however_often_it_is_touched():
    other = kernel("b", "b", 4 * MB)
    near = [kernel("x", "a", 1 * MB), *[other] * 5, kernel("a", "y", 1 * MB)]
    last = served(near, "xyb", MACHINE, math.inf)[-1]
    # half of 2 MB twice, and 4 MB of b: not five times
    assert last.read == pytest.approx((1 - share(6 * MB)) * MB)


def test_freed_memory_is_handed_out_again():
    places, sizes = touches(chain(1 * MB), "xy")
    found = [[touch.place for touch in mine] for mine in places]
    assert found[0][1] == found[1][0]  # a
    assert found[1][1] == found[2][0]  # b
    assert found[2][1] == found[0][1]  # y lies where a was: a is freed only when b has its place
    assert len(sizes) == 3  # x, a, b
    longer = [kernel("x", "a", MB), kernel("a", "b", MB), kernel("b", "c", MB), kernel("c", "y", MB)]
    places, sizes = touches(longer, "xy")
    assert len(sizes) == 3
    assert places[2][1].place == places[0][1].place  # c lies where a was, y where b was


def test_a_much_larger_place_is_not_handed_out():
    large = [kernel("x", "a", 10 * MB), kernel("a", "", 10 * MB), kernel("x", "b", 1 * MB), kernel("b", "y", 1 * MB)]
    places, sizes = touches(large, "xy")
    assert places[2][1].place != places[0][1].place
    assert sorted(sizes) == [1 * MB, 1 * MB, 10 * MB, 10 * MB]


def test_what_lives_to_the_end_of_a_pass_is_not_handed_out_within_it():
    longer = [kernel("x", "a", MB), kernel("a", "b", MB), kernel("b", "c", MB), kernel("c", "y", MB)]
    places, sizes = touches(longer, "xy", held="a")
    assert places[2][1].place != places[0][1].place
    assert len(sizes) == 4  # x, a, b, c


def test_one_set_finds_last_passes_data_and_many_do_not():
    one = [kernel("x", "y", 1 * MB)]
    (warm,) = served(one, "xy", MACHINE, 1.0)
    assert warm.read == pytest.approx((1 - share(2 * MB)) * MB)  # half of 2 MB twice
    assert warm.written == pytest.approx((1 - share(2 * MB)) * MB)
    (rotated,) = served(one, "xy", MACHINE, 64.0)
    assert rotated.read == pytest.approx((1 - share(2 * MB + 63 * 2 * MB)) * MB)
    assert rotated.read > 0.99 * MB


def test_outputs_that_are_dropped_are_written_where_the_last_pass_wrote():
    one = [kernel("x", "y", 1 * MB)]
    (kept,) = served(one, "xy", MACHINE, 64.0)
    (dropped,) = served(one, "x", MACHINE, 64.0, "y")
    assert dropped.written < 0.01 * MB < 0.99 * MB < kept.written
    assert dropped.read == pytest.approx(MB, rel=1e-2)


def test_a_second_pass_over_rows_finds_what_its_window_leaves():
    (near,) = served([kernel("x", "y", 40 * MB, again=40 * MB, window=1 * MB)], "xy", MACHINE, math.inf)
    (far,) = served([kernel("x", "y", 40 * MB, again=40 * MB, window=500 * MB)], "xy", MACHINE, math.inf)
    assert near.read == pytest.approx(40 * MB, rel=1e-6)
    assert far.read == pytest.approx(80 * MB, rel=1e-6)


def test_a_small_operand_does_not_make_a_kernel_cold():
    large_first = Launch(name="k", row="k", reads=(Access("a", 10 * MB), Access("w", 1e3)), writes=(Access("y", MB),))
    chained = [kernel("x", "a", 10 * MB), large_first]
    second = served(chained, ["x", "w", "y"], MACHINE, math.inf)[1]
    assert second.read == pytest.approx((1 - share(0.5 * 20 * MB + 0.5 * (11 * MB + 1e3))) * 10 * MB + 1e3)
    assert second.cold < 0.2  # the 10 MB decide


def test_code_leaves_the_cache_with_what_a_rotation_touches():
    one = [kernel("x", "y", 1 * MB)]
    assert served(one, "xy", MACHINE, math.inf)[0].evicted == 1.0
    assert served(one, "xy", MACHINE, 1.0)[0].evicted < 0.01
    assert served(one, "xy", MACHINE, 64.0)[0].evicted > 0.99


@given(size=st.floats(1e3, 1e9), sets=st.sampled_from([1.0, 4.0, 64.0, math.inf]), length=st.integers(1, 6))
def test_no_more_comes_from_memory_than_is_touched(size, sets, length):
    names = ["x", *(f"t{place}" for place in range(length - 1)), "y"]
    launches = [kernel([a], [b], size) for a, b in itertools.pairwise(names)]
    for launch, at in zip(launches, served(launches, "xy", MACHINE, sets), strict=True):
        assert 0 <= at.read <= launch.bytes_read * (1 + 1e-12)
        assert 0 <= at.written <= launch.bytes_written * (1 + 1e-12)
        assert 0 <= at.cold <= 1


@given(size=st.floats(1e3, 1e9), factor=st.floats(1, 100))
def test_the_share_that_memory_serves_never_falls_with_size(size, factor):
    small, large = (served(chain(value), "xy", MACHINE, 4.0) for value in (size, size * factor))
    for one, other in zip(small, large, strict=True):
        assert other.read / (size * factor) >= one.read / size - 1e-9


def test_a_kernel_follows_the_one_that_has_just_written_what_it_reads():
    launches = [kernel("x", "a", MB), kernel("x", "b", MB), kernel("b", "c", MB), kernel("a", "d", MB)]
    assert [one.follows for one in served(launches, {"x"}, MACHINE, 1)] == [False, False, True, False]
