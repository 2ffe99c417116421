"""Results that a compiled graph pads: where a bias is copied over them first, and where it stays in the product."""

import pytest

from fusesim.builder import Builder
from fusesim.lowering import lower
from fusesim.plans import plan_graph


def kernels(target, n, op, dtype="bf16", *, returned=False):
    b = Builder("head")
    made = b.linear(b.input(512, 256, dtype=dtype), b.input(n, 256, dtype=dtype), b.input(n, dtype=dtype))
    b.output(made if returned else b.op(op, made))
    return [launch for _, launch in lower(plan_graph(b.graph(), strategy="inductor"), "inductor", target)]


@pytest.mark.parametrize(("n", "copied"), [(1000, False), (1024, False), (2048, False), (1104, True), (3000, True)])
def test_rows_that_end_within_a_line_are_padded_and_their_bias_is_copied(target, n, copied):
    made = kernels(target, n, "gelu")
    assert [one.name for one in made][:1] == (["bias spread"] if copied else ["matmul"])
    if copied:
        assert made[0].bytes_written == 512 * n * 2
        assert made[0].bytes_read == n * 2


def test_what_leaves_the_graph_is_not_padded(target):
    assert [one.row for one in kernels(target, 3000, "gelu", returned=True)] == ["matmul16"]


def test_a_bias_is_a_loop_s_where_the_next_op_needs_no_cast(target):
    product, loop = kernels(target, 3000, "relu")
    assert product.bytes_read == (512 + 3000) * 256 * 2  # without the bias
    assert loop.bytes_read == (512 * 3000 + 3000) * 2
    assert len(kernels(target, 3000, "gelu", "fp32")) == 2  # fp32 needs none either
