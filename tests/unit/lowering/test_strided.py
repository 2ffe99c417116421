"""What operands cost that lie otherwise than what is made of them: lines and sectors, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusesim.lowering.strided import LINE_SLOTS, SECTOR, reach, transposed
from fusesim.tensor import row_major

N, C, H, W = 4, 128, 64, 64
LAST = (C * H * W, 1, W * C, C)
FIRST = (C * H * W, H * W, W, 1)
SHAPE = (N, C, H, W)
VALUES = N * C * H * W


def test_what_lies_alike_costs_nothing():
    assert reach(SHAPE, FIRST, [(FIRST, 2), ((0, 1, 0, 0), 2)]) == (0.0, 0.0)


def test_a_value_with_a_line_of_its_own_takes_a_clock():
    # neighbours along w are 128 channels of 2 B apart: 32 lines for 32 threads, a sector of 32 B for each value
    slots, crossing = reach(SHAPE, FIRST, [(LAST, 2)])
    assert slots == LINE_SLOTS
    assert crossing == VALUES * (SECTOR - 2)


def test_a_block_uses_a_sector_as_often_as_it_comes_back():
    # along channels; a block of 512 values holds 4 places of 128 channels, which share their sectors
    slots, crossing = reach(SHAPE, LAST, [(FIRST, 2)])
    assert slots == LINE_SLOTS
    assert crossing == VALUES * (SECTOR / 4 - 2)


def test_three_channels_are_three_lines():
    shape = (16, 3, 224, 224)
    last, first = (3 * 224 * 224, 1, 3 * 224, 3), row_major(shape)
    assert not transposed(shape, last, [(first, 2)])
    slots, crossing = reach(shape, last, [(first, 2)])
    # 32 threads are three channels, each in lines of its own, of 32 / 3 places next to each other
    assert slots == pytest.approx(LINE_SLOTS * 3 * (1 + (32 / 3 - 1) * 2 / 128) / 32)
    assert crossing == 0.0


def test_a_matrix_is_transposed_where_it_is_turned():
    assert transposed((1000, 512), (512, 1), [((1, 1000), 2)])
    assert not transposed((1000, 512), (512, 1), [((512, 1), 2), ((1, 0), 2)])
    assert not transposed((0, 512), (512, 1), [((1, 1000), 2)])


@given(
    rows=st.integers(1, 4096), columns=st.integers(1, 4096), size=st.sampled_from([1, 2, 4, 8]), gap=st.integers(0, 64)
)
def test_no_value_takes_more_than_a_line_and_a_sector(rows, columns, size, gap):
    slots, crossing = reach((rows, columns), (columns, 1), [((1, rows + gap), size)])
    assert 0 <= slots <= LINE_SLOTS
    assert 0 <= crossing <= rows * columns * SECTOR
