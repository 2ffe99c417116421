"""Products of a matrix and a vector: which kernels run, and that neither side of it is dearer."""

import pytest


def product(m, k, n, dtype="bf16", *, bias=False):
    def build(b):
        x, w = b.input(m, k, dtype=dtype), b.input(n, k, dtype=dtype)
        return b.linear(x, w, b.input(n, dtype=dtype) if bias else None)

    return build


@pytest.mark.parametrize(
    ("shape", "dtype", "rows"),
    [
        ((2048, 1024, 1), "bf16", ["matmul16"]),  # the vector needs no alignment: on the matrix units, turned
        ((1, 1024, 2048), "bf16", ["matmul16"]),
        ((8192, 13, 1), "bf16", ["gemv"]),  # rows of 26 bytes
        ((1, 3000, 1001), "bf16", ["gemv"]),
        ((1, 1024, 1), "bf16", ["gemv", "parts"]),
        ((2048, 1024, 1), "fp32", ["gemv"]),
        ((1, 4096, 4096), "fp32", ["gemv"]),
        ((64, 16384, 1), "fp32", ["gemv", "parts"]),  # rows too few for the device, and long
        ((2, 1024, 4096), "fp32", ["matmul32"]),
    ],
)
def test_kernels_are_those_that_an_h200_ran(launched, shape, dtype, rows):
    assert [one.row for one in launched(product(*shape, dtype))] == rows


@pytest.mark.parametrize(("m", "k"), [(2048, 1024), (100000, 256), (512, 4096)])
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_either_side_costs_the_same(launched, m, k, dtype):
    column, row = (launched(product(*shape, dtype))[-1] for shape in ((m, k, 1), (1, k, m)))
    assert (column.blocks, column.steps, column.flops) == (row.blocks, row.steps, row.flops)
    assert sorted(access.bytes for access in column.reads) == sorted(access.bytes for access in row.reads)


def test_a_bias_is_spread_over_a_column_first_but_not_over_a_row(launched):
    first, main = launched(product(2048, 1024, 1, bias=True))
    assert first.name == "bias spread"
    assert first.bytes_read == 2  # one value of 2 bytes
    assert first.bytes_written == 2 * 2048
    assert main.row == "matmul16"
    (alone,) = launched(product(1, 1024, 2048, bias=True))
    assert alone.row == "matmul16"


@pytest.mark.parametrize(
    ("n", "row"), [(8, "matmul16"), (4, "matmul_odd16"), (2, "matmul_odd16"), (3, "matmul_single16")]
)
def test_narrow_results_go_to_kernels_by_what_they_fill(launched, n, row):
    assert launched(product(2048, 1024, n))[-1].row == row
