"""Matrix products: which tile is chosen, how many rounds that makes, how long they take."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusesim.launches import Rates
from fusesim.products import CHOICE, SPLITS, TILES, Product, Tiling, choose_tiling, product_time, step_time

SMS = 132
RATE = 989e12 / SMS  # one SM of an H100 or H200, bf16 [FLOP/s]
SIZES = {(wide, high) for wide, high in TILES.tolist()}

sides = st.integers(1, 20_000)


def time_of(product, tiling=None, rates=None):
    """The matrix units' time of a product."""
    rates = rates or Rates(peak=0.8, fill=1.4e11, sustained=0.7, block=1e-6)
    tiling = tiling or choose_tiling(product, SMS, RATE)
    return product_time(product, tiling, rates, sms=SMS, rate=RATE)


def test_an_fma_is_two_operations():
    assert Product(3, 10, 20, 30, 2).flops == 2 * 3 * 10 * 20 * 30


def test_no_tile_is_larger_than_a_block_can_hold():
    assert all(wide * high <= 256 * 160 for wide, high in SIZES)
    assert (128.0, 256.0) in SIZES
    assert (256.0, 128.0) in SIZES


def test_a_step_takes_its_arithmetic_or_its_operands():
    # 128 x 256 tile, 64 values of 2 B deep: 2 x 128 x 256 x 64 FLOP at 1e13 are 0.419 us; (128 + 256) x 128 B are 49 kB
    assert step_time(128, 256, 2, rate=1e13, fill=1e18) == pytest.approx(2 * 128 * 256 * 64 / 1e13)
    assert step_time(128, 256, 2, rate=1e30, fill=1e11) == pytest.approx((128 + 256) * 128 / 1e11)
    # values of 4 B: half as many in 128 B
    assert step_time(128, 256, 4, rate=1e13, fill=1e18) == pytest.approx(2 * 128 * 256 * 32 / 1e13)


def test_rounds_by_hand():
    # 4096 x 4096 x 4096 in tiles of 256 x 128: 16 x 32 = 512 tiles on 132 SMs are 4 rounds of 64 steps
    product, tiling = Product(1, 4096, 4096, 4096, 2), Tiling(256, 128, 1, 512)
    rates = Rates(peak=1.0, fill=1e18, sustained=1e6, block=2e-6)
    one = 2 * 256 * 128 * 64 / RATE
    assert time_of(product, tiling, rates) == pytest.approx(4 * (64 * one + 2e-6))


def test_power_limits_long_products():
    product, tiling = Product(1, 4096, 4096, 4096, 2), Tiling(256, 128, 1, 512)
    rates = Rates(peak=1e6, fill=1e18, sustained=0.5, block=0.0)
    assert time_of(product, tiling, rates) == pytest.approx(2 * 4096**3 / (989e12 * 0.5), rel=1e-3)


@given(batch=st.integers(1, 64), m=sides, n=sides, k=st.integers(1, 4095))
def test_a_choice_covers_odd_sizes_without_splitting_short_ones(batch, m, n, k):
    product = Product(batch, m, k, n, 2)
    found = choose_tiling(product, SMS, RATE)
    assert (found.wide, found.high) in SIZES
    assert found.split == 1  # the inner dimension is shorter than 4096
    assert found.tiles == batch * math.ceil(n / found.wide) * math.ceil(m / found.high)


@pytest.mark.parametrize(
    ("m", "k", "n", "split"),
    [
        (64, 8192, 1024, True),  # 16 tiles of 64 x 128 leave most of 132 SMs without one
        (64, 4096, 4224, True),  # 66 are half of them
        (64, 4096, 4288, False),  # 67 are more
        (64, 4095, 1024, False),  # too short
        (8192, 8192, 8192, False),
    ],
)
def test_the_inner_dimension_is_split_where_tiles_are_few(m, k, n, split):
    found = choose_tiling(Product(1, m, k, n, 2), SMS, RATE)
    assert (found.split > 1) == split
    assert found.split in SPLITS
    assert found.tiles == found.split * math.ceil(n / found.wide) * math.ceil(m / found.high)


def test_a_choice_is_the_fastest_of_all_tiles():
    product = Product(1, 3000, 1000, 5000, 2)
    found = choose_tiling(product, SMS, RATE)

    def guessed(wide, high):
        steps, tiles = math.ceil(1000 / 64), math.ceil(5000 / wide) * math.ceil(3000 / high)
        one = step_time(wide, high, 2, rate=RATE * CHOICE["peak"], fill=CHOICE["fill"])
        return math.ceil(tiles / SMS) * (steps * one + CHOICE["once"])

    assert guessed(found.wide, found.high) == pytest.approx(min(guessed(*size) for size in SIZES))


@given(m=sides, n=sides, k=st.integers(1, 30_000), more=st.integers(0, 30_000))
def test_time_grows_with_the_inner_dimension_of_one_tiling(m, n, k, more):
    product, longer = Product(1, m, k, n, 2), Product(1, m, k + more, n, 2)
    tiling = choose_tiling(product, SMS, RATE)
    assert time_of(longer, tiling) >= time_of(product, tiling) * (1 - 1e-12)


@given(m=sides, n=sides, k=st.integers(64, 20_000))
def test_no_product_is_faster_than_its_arithmetic(m, n, k):
    product = Product(1, m, k, n, 2)
    assert time_of(product) >= product.flops / (989e12 * 0.7) * (1 - 1e-12)


def test_the_last_tile_leaves_alone():
    # 4 rounds of tiles of 256 x 128 values of 2 B, of which the last takes 65 536 B / 1e11 B/s
    product, tiling = Product(1, 4096, 4096, 4096, 2), Tiling(256, 128, 1, 512)
    rates = Rates(peak=1.0, fill=1e18, sustained=1e6, block=0.0)
    leaving = time_of(product, tiling, replace(rates, drain=1e11)) - time_of(product, tiling, rates)
    assert leaving == pytest.approx(256 * 128 * 2 / 1e11)
