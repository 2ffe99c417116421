"""The time of one kernel of a plan, part by part, on a machine with round numbers."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusesim.attention_tiles import TiledAttention
from fusesim.launches import (
    Access,
    Launch,
    Rates,
    Served,
    fetch_factor,
    launch_time,
    matrix_time,
)
from fusesim.machine import Machine
from fusesim.products import Product, Tiling
from fusesim.waves import in_waves, rounds

MACHINE = Machine(
    sms=100.0,
    clock=1e9,
    cache=50e6,
    peak_bandwidth=5e12,
    issue_per_clock=128.0,  # half of which is reached: 6.4e10 instructions per second and SM
    special_per_clock=16.0,  # half of which is reached: 8e9 per second and SM
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
PLAIN = Rates(slots=0.0)
FLOOR = 1e-6


def launch(read=0.0, written=0.0, **fields):
    """A kernel of a class that takes nothing beyond the device's ceilings."""
    reads = (Access("x", read),) if read else ()
    writes = (Access("y", written),) if written else ()
    return Launch(name="k", row="k", **({"reads": reads, "writes": writes} | fields))


def timed(one, rates=PLAIN, served=None, machine=MACHINE):
    """Its time where memory serves all bytes."""
    cold = Served(read=one.bytes_read, written=one.bytes_written)
    return launch_time(one, rates, machine, served or cold, floor=FLOOR)


def test_a_kernel_that_touches_nothing_takes_its_floor():
    assert timed(launch()).time == FLOOR


def test_one_block_takes_its_floor_the_gap_and_the_block():
    # 1 us floor, 1 us gap, 2 us of one block
    assert timed(launch(), Rates(slots=0.0, gap=1e-6, block=2e-6)).time == pytest.approx(4e-6)


def test_memory_decides_for_a_large_copy():
    found = timed(launch(4e9, 4e9, blocks=1e6))
    assert found.dram == pytest.approx(2e-3)  # (0.9 x 4 GB + 1.1 x 4 GB) / 4 TB/s: written bytes count for more
    assert found.cache == pytest.approx(1e-3)  # 8 GB / 8 TB/s
    assert found.body == pytest.approx(17**0.25 * 1e-3)  # (2^4 + 1^4)^(1/4) ms
    assert found.latency == pytest.approx(8e-7)  # cold inputs wait for memory once
    assert found.time == pytest.approx(FLOOR + 8e-7 + 17**0.25 * 1e-3)


def test_a_class_reaches_its_share_of_the_bandwidth():
    assert timed(launch(4e9, 4e9, blocks=1e6), Rates(slots=0.0, share=0.5)).dram == pytest.approx(4e-3)


def test_bytes_that_the_cache_serves_cost_memory_nothing():
    one = launch(4e6, 4e6)
    found = timed(one, served=Served(read=0.0, written=0.0, cold=0.0))
    assert found.dram == 0.0
    assert found.cache == pytest.approx(8e-7)  # 8 MB / 10 TB/s: all blocks run at once
    assert found.latency == pytest.approx(5e-7)  # 0.3 us, and 0.2 us as 8 MB lie on all slices of the cache


def test_half_cold_inputs_wait_for_both():
    found = timed(launch(4e6, 4e6), served=Served(read=2e6, written=0.0, cold=0.5))
    assert found.latency == pytest.approx(0.5 * 8e-7 + 0.5 * 5e-7)


def test_a_launch_whose_code_left_the_cache_starts_later():
    found = timed(launch(4e6, 4e6), served=Served(cold=0.0, evicted=1.0))
    assert found.latency == pytest.approx(5e-7 + 1e-7)


def test_every_operand_beyond_the_first_adds_its_latency():
    three = launch(reads=tuple(Access(name, 1e6) for name in "xyz"))
    assert timed(three).latency == pytest.approx(8e-7 + 2 * 5e-8)


def test_more_blocks_than_fit_go_through_the_narrower_path():
    fits, more = launch(4e6, 4e6, blocks=1600.0), launch(4e6, 4e6, blocks=1601.0)  # 100 SMs x 16
    assert timed(fits).cache == pytest.approx(8e-7)  # 10 TB/s
    assert timed(more).cache == pytest.approx(1e-6)  # 8 TB/s


def test_a_second_pass_costs_the_path_a_quarter_of_its_bytes():
    assert timed(launch(8e6, again=8e6)).cache == pytest.approx((8e6 + 0.25 * 8e6) / 10e12)
    assert launch(8e6, again=8e6).bytes_read == 16e6


@pytest.mark.parametrize(
    ("blocks", "times"),
    [
        (1, 1),  # one block takes as long as a full round
        (1600, 1),
        (1800, 2),  # so does a round of an eighth
        (3200, 2),
        (16_000, 10),
    ],
)
def test_blocks_run_in_rounds(blocks, times):
    assert in_waves(0.0, 1e-6, blocks / 1600) == pytest.approx(times * 1e-6)
    assert timed(launch(blocks=float(blocks)), Rates(slots=0.0, block=1e-6)).waves == pytest.approx(times * 1e-6)


def test_a_round_is_as_long_as_its_blocks_and_what_they_share():
    # 3 us shared and 4 us alone: 5 us, in each of two rounds that share 6 us
    assert in_waves(3e-6, 4e-6, 1.0) == pytest.approx(5e-6)
    assert in_waves(6e-6, 4e-6, 2.0) == pytest.approx(10e-6)
    # a sixteenth of a round takes half of a block's time
    assert in_waves(0.0, 4e-6, 1.0625) == pytest.approx(6e-6)
    # a round and a half: of 4.5 us shared, 3 in the full round and 1.5 in the other
    assert in_waves(4.5e-6, 4e-6, 1.5) == pytest.approx(5e-6 + math.hypot(1.5e-6, 4e-6))
    assert in_waves(4.5e-6, 0.0, 1.5) == pytest.approx(4.5e-6)  # blocks that wait for nothing of their own


@given(throughput=st.floats(0, 1e-3), alone=st.floats(0, 1e-3), waves=st.floats(0.01, 1e4))
def test_rounds_take_no_less_than_either_part_and_no_more_than_both(throughput, alone, waves):
    found, own = in_waves(throughput, alone, waves), rounds(waves) * alone
    assert max(throughput, own) * (1 - 1e-9) <= found <= (throughput + own) * (1 + 1e-9)


def test_a_last_block_that_is_not_full_ends_later_where_memory_does_not_hide_it():
    quick, slow = launch(8e3, serial=100.0), launch(8e3, serial=100.0, partial=2100.0)
    assert timed(slow).time - timed(quick).time == pytest.approx(2000 / MACHINE.clock, rel=0.01)
    assert timed(launch(8e8, partial=2100.0)).time == pytest.approx(timed(launch(8e8)).time)


def test_a_block_takes_its_joins_and_its_steps():
    rates = Rates(slots=0.0, block=1e-6, step=1e-7)
    assert timed(launch(joins=2.0, steps=5.0), rates).waves == pytest.approx(2e-6 + 5e-7)


def test_a_step_may_wait_for_memory():
    # 4 steps, half a wait each, of 0.8 us
    assert timed(launch(1e6, steps=4.0), Rates(slots=0.0, rounds=0.5)).waves == pytest.approx(4 * 0.5 * 8e-7)


def test_what_one_thread_works_through_nobody_takes_from_it():
    # 100 values x (10 instructions + 8 cycles of one special function) x 2 clocks at 1 GHz
    found = timed(launch(chain=100.0, slots=10.0, special=1.0), Rates(slots=0.0, cycles=2.0))
    assert found.waves == pytest.approx(100 * (10 + 8) * 2e-9)


def test_instructions_issue_on_the_busiest_sm():
    one = launch(elements=6.4e9, blocks=1600.0, slots=7.0)
    # 6.4e7 values on each SM x 10 instructions / 6.4e10
    assert timed(one, Rates(slots=3.0)).issue == pytest.approx(1e-2)
    # 17 blocks on one SM: 17 / 1601 of all values
    more = replace(one, blocks=1601.0)
    assert timed(more, Rates(slots=3.0)).issue == pytest.approx(6.4e9 * 17 / 1601 * 10 / 6.4e10)


def test_special_functions_have_units_of_their_own():
    assert timed(launch(elements=8e9, blocks=1600.0, special=2.0)).special == pytest.approx(8e7 * 2 / 8e9)


def test_code_beyond_the_instruction_cache_issues_more_slowly():
    assert fetch_factor(32768.0) == 1.0
    assert fetch_factor(131072.0) == pytest.approx(1.75)  # three quarters of it are fetched anew
    one = launch(elements=6.4e9, blocks=1600.0, slots=10.0)
    # 8192 instructions of 16 B are 131072 B
    assert timed(replace(one, code=8192.0)).issue == pytest.approx(1.75 * timed(one).issue)


def test_dependent_instructions_of_one_value_come_on_top():
    assert timed(launch(1e6, serial=500.0)).latency == pytest.approx(8e-7 + 5e-7)


def test_a_block_pays_for_joining_its_threads_whatever_the_length():
    one = launch(blocks=1600.0, threads=128, joined=500.0)
    # 16 blocks on each SM x 128 threads x 500 / 6.4e10
    assert timed(one, Rates(slots=0.0)).issue == pytest.approx(16 * 128 * 500 / 6.4e10)
    assert timed(one, Rates(slots=0.0)).waves == pytest.approx(500 / 1e9)  # once, as all blocks run at once


def test_values_of_a_thread_wait_for_one_that_branches():
    one = launch(blocks=100.0, chain=32.0, branched=90.0)
    assert timed(one, Rates(slots=0.0)).waves == pytest.approx(32 * 90 / 1e9)


def test_matrix_units_and_memory_meet_as_memory_and_instructions_do():
    work = TiledAttention(heads=100, queries=128, keys=12800, padded=64, high=128, wide=128)
    one = launch(4e9, rate=1e13, attention=work, resident=1)
    found = timed(one, Rates(slots=0.0, peak=1.0, sustained=1.0))
    # one tile on each of 100 SMs, 100 steps of 4 x 128 x 128 x 64 FLOP; both limits are the same
    assert found.tensor == pytest.approx(2**0.125 * 100 * 4 * 128 * 128 * 64 / 1e13)
    assert found.body == pytest.approx((found.tensor**4 + found.dram**4 + found.cache**4) ** 0.25)
    assert found.waves == 0.0


def test_a_kernel_without_a_product_leaves_the_matrix_units_alone():
    assert matrix_time(launch(), PLAIN, MACHINE) == 0.0


def test_a_product_is_timed_by_its_tiling():
    product, tiling = Product(1, 4096, 4096, 4096, 2), Tiling(128, 256, 1, 512)
    one = launch(rate=1e13, flops=product.flops, product=product, tiling=tiling)
    less = replace(one, tiling=Tiling(128, 256, 1, 500))
    assert matrix_time(one, PLAIN, MACHINE) > matrix_time(less, PLAIN, MACHINE)  # six rounds on 100 SMs, then five


def test_a_kernel_without_matrix_units_has_none_of_their_time():
    assert matrix_time(launch(4e9), PLAIN, MACHINE) == 0.0


sizes = st.floats(min_value=0, max_value=1e11)
counts = st.floats(min_value=1, max_value=1e7)
rows = st.builds(
    Rates,
    gap=st.floats(0, 1e-5),
    block=st.floats(0, 1e-5),
    step=st.floats(0, 1e-6),
    rounds=st.floats(0, 3),
    slots=st.floats(0, 100),
    cycles=st.floats(0, 15),
    share=st.floats(0.1, 1),
)
shares = st.floats(min_value=0, max_value=1)
factors = st.floats(min_value=1, max_value=1e3)


@given(read=sizes, written=sizes, blocks=counts, rates=rows, missed=shares, factor=factors)
def test_time_never_falls_when_bytes_grow(read, written, blocks, rates, missed, factor):
    small, large = (launch(read * f, written * f, blocks=blocks, elements=1e6) for f in (1.0, factor))
    times = [
        timed(one, rates, Served(read=missed * one.bytes_read, written=missed * one.bytes_written, cold=missed)).time
        for one in (small, large)
    ]
    assert times[1] >= times[0] * (1 - 1e-12)


@given(read=sizes, blocks=counts, rates=rows, slots=st.floats(0, 1e3), special=st.floats(0, 10), factor=factors)
def test_time_never_falls_when_arithmetic_grows(read, blocks, rates, slots, special, factor):
    one = launch(read, blocks=blocks, elements=1e7, slots=slots, special=special, chain=64.0, code=slots)
    more = replace(one, slots=slots * factor, special=special * factor, code=slots * factor)
    assert timed(more, rates).time >= timed(one, rates).time * (1 - 1e-12)


@given(flops=st.floats(1e3, 1e15), read=sizes, blocks=counts, rates=rows, factor=factors)
def test_time_never_falls_when_flops_grow(flops, read, blocks, rates, factor):
    one = launch(read, rate=1e13, flops=flops, blocks=blocks)
    assert timed(replace(one, flops=flops * factor), rates).time >= timed(one, rates).time * (1 - 1e-12)


@given(read=sizes, written=sizes, blocks=counts, rates=rows, factor=factors)
def test_time_never_rises_with_bandwidth(read, written, blocks, rates, factor):
    one = launch(read, written, blocks=blocks)
    wider = replace(
        MACHINE,
        bandwidth=MACHINE.bandwidth * factor,
        cache_bandwidth=MACHINE.cache_bandwidth * factor,
        wave_bandwidth=MACHINE.wave_bandwidth * factor,
    )
    assert timed(one, rates, machine=wider).time <= timed(one, rates).time * (1 + 1e-12)


@given(read=sizes, written=sizes, blocks=counts, rates=rows)
def test_a_time_lies_between_its_longest_part_and_their_sum(read, written, blocks, rates):
    found = timed(launch(read, written, blocks=blocks, elements=1e6, special=1.0), rates)
    parts = (found.dram, found.cache, found.issue, found.special, found.waves)
    assert max(parts) <= found.body * (1 + 1e-12)
    assert found.body <= sum(parts) * (1 + 1e-12)
