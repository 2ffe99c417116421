"""The time of one kernel, effect by effect, on a machine with round numbers."""

import numpy as np
import pytest

from fusesim.kernel import (
    ROW_BESIDE,
    KernelShape,
    busiest_sm_elements,
    cache_time,
    cached_latency,
    dispatch_time,
    kernel_time,
    layout_times,
    reused_share,
    shape_times,
)
from fusesim.machine import EFFECTS, Machine

ALL = frozenset(EFFECTS)
MACHINE = Machine(
    sms=100.0,
    clock=1e9,
    cache=50e6,
    peak_bandwidth=5e12,
    issue_per_clock=128.0,
    special_per_clock=16.0,
    resident_threads=2048.0,
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


def shape(elements=1 << 25, **fields):
    """A bf16 kernel: 8 elements a thread, 256 threads a block, so 2048 elements a block."""
    default = {
        "bytes_moved": elements * 4.0,  # 2 B read, 2 B written
        "operands": 0,
        "rows": 0,
        "blocks": np.ceil(elements / 2048),
        "threads": 256,
        "vector": 8,
        "slots": 10.0,
        "overhead": 5.0,
        "special": 0.0,
        "serial": 0.0,
    }
    return KernelShape(**default | fields)


def timed(kernel, *, dram_bytes, cold=1.0, evicted=0.0, effects=ALL):
    times = shape_times(kernel, layout_times(kernel, MACHINE, effects), MACHINE, effects)
    return kernel_time(times, MACHINE, dram_load=dram_bytes, cold=cold, evicted=evicted, floor=1e-6, effects=effects)


def test_half_of_the_data_stays_where_the_distance_is_the_reach():
    assert reused_share(25e6, MACHINE) == pytest.approx(0.5)  # reach 0.5 x 50 MB
    assert reused_share(5e6, MACHINE) > 0.9999  # a fifth of it: (1/5)^6
    assert reused_share(125e6, MACHINE) < 0.0001
    assert reused_share(np.inf, MACHINE) == 0.0  # never met again


def test_the_cache_is_slower_to_reach_the_more_of_it_a_kernel_touches():
    one = cached_latency(shape(elements=2048), MACHINE)
    assert one == pytest.approx(3e-7 + 2e-7 * (1 - np.exp(-8192 / 1e5)))
    assert cached_latency(shape(), MACHINE) == pytest.approx(5e-7)  # 134 MB: all slices
    assert cached_latency(shape(elements=2048, bytes_moved=12288.0, operands=1), MACHINE) == pytest.approx(one)


def test_beyond_one_wave_of_blocks_fewer_bytes_are_in_flight():
    wave = 100 * 2048 // 256  # 800 blocks are resident at once
    one = shape(blocks=np.float64(wave), bytes_moved=8e6)
    two = shape(blocks=np.float64(wave + 1), bytes_moved=8e6)
    assert cache_time(one, MACHINE) == pytest.approx(0.8e-6)  # 8 MB / 10 TB/s
    assert cache_time(two, MACHINE) == pytest.approx(1e-6)  # 8 MB / 8 TB/s


@pytest.mark.parametrize(("cold", "waits"), [(0.0, 1.0), (0.25, 0.75), (1.0, 0.0)])
def test_a_kernel_that_left_the_cache_starts_later_unless_it_waits_for_memory_anyway(cold, waits):
    kept, gone = (timed(shape(), dram_bytes=1e6, cold=cold, evicted=share).latency for share in (0.0, 1.0))
    assert gone - kept == pytest.approx(waits * 1e-7)


def test_the_busiest_sm_has_whole_blocks():
    kernel = shape(blocks=np.float64(101))
    assert busiest_sm_elements(kernel, MACHINE, whole_blocks=True) == 2 * 2048
    assert busiest_sm_elements(kernel, MACHINE, whole_blocks=False) == pytest.approx(1.01 * 2048)


def test_blocks_start_at_a_finite_rate_after_the_first():
    few, many = shape(blocks=np.float64(200)), shape(blocks=np.float64(1e6))
    assert dispatch_time(few, MACHINE) == 0.0  # a third of 800 start at once
    assert dispatch_time(many, MACHINE) == pytest.approx((1e6 - 0.33 * 800) / 1e9)


def test_a_cold_copy_is_floor_latency_and_bytes_over_bandwidth():
    kernel = timed(shape(), dram_bytes=134.2e6, effects=frozenset({"bandwidth", "floor", "latency"}))
    assert kernel.time == pytest.approx(1e-6 + 8e-7 + 134.2e6 / 4e12)


def test_without_any_effect_only_bytes_over_the_peak_remain():
    kernel = timed(shape(), dram_bytes=134.2e6, effects=frozenset())
    assert kernel.body == pytest.approx(134.2e6 / 5e12)
    assert kernel.latency == 0.0


def test_instructions_bind_when_there_are_many():
    kernel = timed(shape(slots=1000.0), dram_bytes=134.2e6)
    # 2^25 elements / 2048 = 16384 blocks, 164 on the busiest SM: 164 x 2048 x 1000 / (128 x 1 GHz x 0.5)
    assert kernel.shape.issue == pytest.approx(164 * 2048 * 1000 / 64e9)
    assert kernel.body == pytest.approx(kernel.shape.issue, rel=0.01)


def test_special_functions_have_a_unit_of_their_own():
    kernel = timed(shape(special=100.0), dram_bytes=134.2e6)
    assert kernel.shape.special == pytest.approx(164 * 2048 * 100 / 8e9)  # 16 x 1 GHz x 0.5


def test_no_thread_ends_before_its_own_chain():
    kernel = timed(shape(elements=2048, serial=1000.0), dram_bytes=0.0, cold=0.0)
    assert kernel.shape.thread == pytest.approx(8e-6)  # 8 elements x 1000 cycles / 1 GHz
    assert kernel.body == pytest.approx(8e-6, rel=0.01)


@pytest.mark.parametrize(("cold", "left"), [(0.0, 1.0), (1.0, ROW_BESIDE)])  # finding a row runs beside a cold load
def test_every_extra_operand_adds_latency(cold, left):
    plain, more = (timed(kernel, dram_bytes=1e6, cold=cold) for kernel in (shape(), shape(operands=2, rows=1)))
    smaller_share = cached_latency(shape(), MACHINE) - cached_latency(shape(operands=2, rows=1), MACHINE)
    assert more.latency - plain.latency == pytest.approx(2 * 5e-8 + left * 2e-8 - (1.0 - cold) * smaller_share)


def test_instructions_near_the_memory_s_time_add_to_it():
    idle, busy = (timed(shape(slots=slots), dram_bytes=134.2e6) for slots in (0.0, 50.0))
    assert max(busy.shape.issue, idle.body) < busy.body < busy.shape.issue + idle.body


@pytest.mark.parametrize("effect", ["latency", "cache", "arithmetic", "blocks"])
def test_an_effect_can_only_add_time(effect):
    kernel = shape(slots=40.0, special=4.0, serial=300.0)
    on, off = (timed(kernel, dram_bytes=134.2e6, effects=chosen) for chosen in (ALL, ALL - {effect}))
    assert on.time > off.time


def test_arrays_and_scalars_agree_to_the_last_bit():
    sizes = np.array([1e3, 1e5, 1e7, 1e9])
    together = timed(shape(elements=sizes, special=2.0, serial=50.0), dram_bytes=sizes * 3.0).time
    alone = [float(timed(shape(elements=n, special=2.0, serial=50.0), dram_bytes=n * 3.0).time) for n in sizes]
    assert together.tolist() == alone
