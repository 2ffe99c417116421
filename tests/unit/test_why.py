"""What fusing two ops buys, what stops it, and which edges of a plan are paid."""

from __future__ import annotations

import pytest

from fusesim import patterns
from fusesim.api import find_device
from fusesim.builder import Builder
from fusesim.errors import InputError
from fusesim.group_work import external_bytes
from fusesim.planning import plan
from fusesim.textbook_cost import TextbookCost
from fusesim.why import edges, why

COST = TextbookCost.of(find_device("h200-sxm"))


def bias_relu(rows=128, cols=512):
    b = Builder("bias_relu")
    b.output(b.op("relu", b.op("add", b.input(rows, cols, dtype="fp32"), b.input(cols, dtype="fp32", name="bias"))))
    return b.graph()


def softmax_by_hand(rows, length):
    b = Builder("softmax")
    x = b.input(rows, length)
    powers = b.op("exp", b.op("sub", x, b.reduce("amax", x)))
    b.output(b.op("div", powers, b.reduce("sum", powers)))
    return b.graph()


def test_an_edge_between_two_ops_is_written_and_read_no_more():
    found = why(bias_relu(), "add", "relu", COST)
    assert found.edge_bytes == 262144  # 128 x 512 x 4 B
    assert found.saved_bytes == 2 * 262144  # not written, not read back
    assert found.reason is None
    assert found.saving == pytest.approx(COST.launch + 2 * 262144 / COST.bandwidth)
    assert not found.loses
    assert found.losses == ()


def test_the_order_of_the_question_does_not_matter():
    assert why(bias_relu(), "relu", "add").saving == why(bias_relu(), "add", "relu").saving


def test_a_cost_of_ones_own_decides():
    found = why(bias_relu(), "add", "relu", lambda _, nodes: float(len(nodes) ** 2))
    assert (found.apart, found.together, found.saving, found.loses) == (2.0, 4.0, -2.0, True)


def test_what_lies_between_must_come_along():
    found = why(softmax_by_hand(1024, 1024), "amax", "div")
    assert found.along == ("sub", "exp", "sum")
    assert found.reason is None


def test_a_composite_is_asked_about_as_what_it_is_made_of():
    b = Builder()
    b.output(b.softmax(b.op("relu", b.input(1024, 1024))))
    found = why(b.graph(), "relu", "softmax")
    assert found.reason is None
    assert found.edge_bytes == 2 * 1024 * 1024
    assert found.saving > 0


def test_an_illegal_pair_has_a_reason_and_no_time():
    b = Builder()
    y = b.matmul(b.input(64, 64), b.input(64, 64))
    b.output(b.reduce("amax", y))
    found = why(b.graph(), "matmul", "amax")
    assert found.reason.startswith("matmul and amax: a row of the matmul's output lies in several tiles")
    assert (found.together, found.saving, found.loses) == (None, None, False)


def test_a_row_that_does_not_fit_loses_and_says_why():
    found = why(softmax_by_hand(8, 1 << 20), "amax", "div")
    assert found.loses
    # x is 8 x 2^20 x 2 B = 16.8 MB and comes twice more; each row of 2 MiB has a block of its own
    assert found.losses == (
        "re-reads: a row of 2097152 bytes does not stay on chip and is gone through 3 times, 33554432 bytes more",
        "parallelism: 8 rows for 132 multiprocessors",
    )


def test_spilling_loses_and_says_why():
    b = Builder()
    x = b.op("exp", b.input(4096, 4096))
    values = [b.op("mul", x, scalar=float(factor)) for factor in range(60)]
    total = values[-1]
    for value in reversed(values[:-1]):
        total = b.op("add", total, value)
    b.output(total)
    found = why(b.graph(), "exp", "add_58")
    # sixty products and x, in vectors of eight; two addresses; sixteen for the rest
    assert found.losses[0].startswith("spills: 61 values live at once need 508 registers per thread, 253 too many")


def test_a_displaced_library_product_loses_and_says_why():
    b = Builder()
    b.output(b.op("sin", b.matmul(b.input(8192, 8192), b.input(8192, 8192))))
    found = why(b.graph(), "matmul", "sin")
    assert found.loses
    assert any(line.startswith("library: a generated product replaces the library's") for line in found.losses)


def test_recomputing_is_named():
    b = Builder()
    b.output(b.op("mul", b.input(128, 512), b.op("exp", b.input(512))))
    assert why(b.graph(), "exp", "mul").losses == ("recompute: 6.5e+04 FLOP are computed more than once",)


def test_unknown_ops_are_named():
    with pytest.raises(InputError, match="has no op gone"):
        why(bias_relu(), "add", "gone")


# Edges ------------------------------------------------------------------------------------------------------------


def states(made):
    return {(edge.tensor, edge.producer, edge.consumer): edge.state for edge in edges(made)}


def test_an_eager_plan_pays_for_every_edge():
    assert states(plan(bias_relu(), "eager")) == {
        ("x", None, "add"): "paid",
        ("bias", None, "add"): "paid",
        ("add", "add", "relu"): "paid",
        ("relu", "relu", None): "paid",
    }


def test_a_fused_plan_saves_the_edge_inside():
    found = states(plan(bias_relu(), "vertical"))
    assert found["add", "add", "relu"] == "saved"
    assert found["x", None, "add"] == "paid"


def test_a_tensor_that_two_kernels_read_is_read_again():
    graph = softmax_by_hand(64, 64)
    found = states(plan(graph, "eager"))
    assert found["x", None, "amax"] == "paid"
    assert found["x", None, "sub"] == "re-read"
    fused = states(plan(graph, "vertical"))
    assert fused["x", None, "amax"] == "paid"
    assert fused["x", None, "sub"] == "saved"  # one read for both


@pytest.mark.parametrize("strategy", ["eager", "vertical", "tvm", "mlir"])
def test_paid_edges_add_up_to_the_bytes_of_the_kernels(strategy):
    made = plan(softmax_by_hand(64, 256), strategy)
    paid = sum(edge.bytes for edge in edges(made) if edge.consumer is not None and edge.state != "saved")
    assert paid == sum(external_bytes(made.graph, group.nodes)[0] for group in made.groups)


def test_edges_count_the_groups_that_read():
    graph = softmax_by_hand(64, 64)
    counts = {edge.tensor: edge.readers for edge in edges(plan(graph, "eager"))}
    assert counts == {"x": 2, "amax": 1, "sub": 1, "exp": 2, "sum": 1, "div": 0}


def test_an_op_and_itself_are_no_pair():
    with pytest.raises(InputError, match="add is one op; name another to fuse it with"):
        why(patterns.bias_relu(), "add", "add")
