"""How tiles of attention fall on SMs, with counts by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusesim.attention_tiles import TiledAttention, attention_time, busiest
from fusesim.launches import Rates

NUMBERS = st.integers(1, 3000)


def work(heads=16, queries=2048, keys=2048, *, causal=False):
    return TiledAttention(heads, queries, keys, padded=128, high=128, wide=128, causal=causal)


def test_every_tile_of_queries_meets_all_keys():
    assert (work().tiles, work().longest, work().steps) == (256, 16, 4096)
    assert work().flops == 4 * 128 * 128 * 128  # scores and values, an FMA counted as two
    assert work(1, 129, 129).steps == 4  # padded to whole tiles


def test_causal_attention_computes_its_diagonal():
    assert work(1, causal=True).steps == 16 * 17 / 2
    assert work(1, 256, 1024, causal=True).steps == 7 + 8  # the last queries see all keys
    assert work(1, 1024, 256, causal=True).steps == 8 * 2 - 1


def test_equal_tiles_run_in_whole_rounds():
    assert busiest(work(), 132) == (2, 32)  # 256 tiles on 132 SMs, 16 steps each
    assert busiest(work(), 256) == (1, 16)


def test_causal_attention_of_few_tiles_gains_nothing():
    # 2176 of 4096 steps, but whoever takes the last long tile late works nearly as long: 54 us against 58 on an H200
    assert busiest(work(causal=True), 132)[1] == 32
    assert busiest(work(64, 4096, 4096, causal=True), 132)[1] == pytest.approx(33792 / 132 + 32 * 131 / 132)


@given(NUMBERS, NUMBERS, NUMBERS, st.integers(1, 200), st.booleans())
def test_the_last_place_is_between_the_even_share_and_twice_it_or_a_tile(heads, queries, keys, places, causal):
    one = TiledAttention(heads, queries, keys, 64, 128, 128, causal)
    tiles, steps = busiest(one, places)
    assert one.steps / places <= steps * (1 + 1e-12)
    assert steps <= tiles * one.longest
    assert one.steps <= one.tiles * one.longest


def test_time_is_tiles_steps_and_power():
    rates = Rates(block=1e-6, step=5e-7, peak=0.5, sustained=0.25)
    tiled = 2 * 1e-6 + 32 * (4 * 128**3 / (1e12 * 0.5) + 5e-7)
    powered = 4096 * 4 * 128**3 / (1e12 * 132 * 0.25)
    found = attention_time(work(), rates, places=132, rate=1e12)
    assert found == pytest.approx((tiled**8 + powered**8) ** 0.125)
