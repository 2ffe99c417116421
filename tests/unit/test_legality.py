"""What may share a kernel: each rule with a group that it allows and one that it refuses."""

from __future__ import annotations

import pytest

from fusesim.api import find_device
from fusesim.builder import Builder
from fusesim.errors import InputError, PlanError
from fusesim.fusion import FusionPlan, Group
from fusesim.group_work import external_bytes, work_of
from fusesim.legality import check_plan, why_not
from fusesim.limits import Limits
from fusesim.planning import plan
from fusesim.resources import resources
from fusesim.strategies import STRATEGIES
from fusesim.templates import shape_of
from fusesim.topology import topology

H200 = Limits.of(find_device("h200-sxm"))


def two_chains():
    """a1 -> a2 and b1 -> b2, of one space."""
    b = Builder("two")
    x, y = b.input(64, 128), b.input(64, 128)
    a2 = b.op("exp", b.op("relu", x))
    b2 = b.op("tanh", b.op("neg", y))
    b.output(a2, b2)
    return b.graph()


def softmax_rows(rows, length, dtype="bf16"):
    b = Builder("softmax")
    x = b.input(rows, length, dtype=dtype)
    powers = b.op("exp", b.op("sub", x, b.reduce("amax", x)))
    b.output(b.op("div", powers, b.reduce("sum", powers)))
    return b.graph()


def attention(batch=2, heads=4, seq=512, dim=64, *, keep=False):
    b = Builder("attention")
    q, k, v = (b.input(batch, heads, seq, dim) for _ in range(3))
    scores = b.op("mul", b.matmul(q, b.transpose(k)), scalar=0.125)
    powers = b.op("exp", b.op("sub", scores, b.reduce("amax", scores)))
    shares = b.op("div", powers, b.reduce("sum", powers))
    b.output(b.matmul(shares, v))
    if keep:
        b.output(shares)
    return b.graph()


def plan_of(graph, *groups):
    return FusionPlan(graph=graph, groups=tuple(Group(nodes=tuple(g)) for g in groups), strategy="test")


def names(graph):
    return topology(graph).names


def template(graph, nodes=None):
    topo = topology(graph)
    return shape_of(topo, topo.mask(nodes if nodes is not None else topo.names)).template


def work(graph, nodes=None, limits=H200):
    topo = topology(graph)
    return work_of(topo, topo.mask(nodes if nodes is not None else topo.names), limits)


# Plans ------------------------------------------------------------------------------------------------------------


def test_crossed_chains_wait_for_each_other_though_each_group_is_convex():
    graph = two_chains()
    assert why_not(graph, ["relu", "tanh"]) is None
    assert why_not(graph, ["neg", "exp"]) is None
    with pytest.raises(PlanError, match=r"wait for each other: \[relu, tanh\] needs neg for tanh; \[exp, neg\]"):
        check_plan(plan_of(graph, ["relu", "tanh"], ["exp", "neg"]))


def test_straight_chains_are_legal():
    check_plan(plan_of(two_chains(), ["relu", "exp"], ["neg", "tanh"]))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([["relu", "exp"], ["neg"]], "op tanh stands in no group"),
        ([["relu", "exp"], ["exp", "neg", "tanh"]], "op exp stands in two groups"),
        ([["relu", "relu"], ["exp"], ["neg", "tanh"]], "op relu stands in two groups, or twice in one"),
        ([["exp"], ["relu"], ["neg", "tanh"]], "exp runs before relu, which it needs"),
        ([["relu", "exp", "gone"], ["neg", "tanh"]], "gone is no op"),
        ([[], ["relu", "exp"], ["neg", "tanh"]], "a group holds no op"),
    ],
)
def test_plans_that_do_not_run_each_op_once_in_order_are_refused(groups, message):
    with pytest.raises(PlanError, match=message):
        check_plan(plan_of(two_chains(), *groups))


def test_a_group_with_a_hole_names_the_op_between():
    b = Builder()
    x = b.input(8, 8)
    y = b.op("relu", x)
    b.output(b.op("add", y, b.reduce("sum", b.op("exp", y))))
    reason = why_not(b.graph(), ["relu", "add"])
    assert reason == "relu and add: exp between them needs the one and is needed by the other"


def test_a_plan_is_refused_with_the_pair_and_the_reason():
    b = Builder()
    x = b.input(64, 64)
    b.output(b.reduce("sum", b.matmul(x, x)))
    with pytest.raises(PlanError, match=r"no kernel of \[matmul, sum\]: matmul and sum: a row of the matmul's output"):
        check_plan(plan_of(b.graph(), ["matmul", "sum"]))


def test_unknown_ops_and_views_are_the_callers_mistake():
    with pytest.raises(InputError, match="nothing is no op"):
        why_not(two_chains(), ["nothing"])
    assert why_not(two_chains(), []) == "a kernel of no ops"


# Pointwise --------------------------------------------------------------------------------------------------------


def test_broadcast_operands_share_the_loop():
    b = Builder()
    x, row = b.input(128, 512), b.input(512)
    b.output(b.op("relu", b.op("add", x, row)))
    assert template(b.graph()) == "pointwise"
    assert external_bytes(b.graph(), ["add", "relu"]) == (131072 + 1024, 131072)  # x and the row in, x out, 2 B each


def test_a_reshape_between_pointwise_ops_is_free():
    b = Builder()
    y = b.view(b.op("relu", b.input(8, 4, 16)), (32, 16))
    b.output(b.op("neg", y))
    assert why_not(b.graph(), ["relu", "neg"]) is None


def test_a_small_producer_is_computed_again_in_place():
    b = Builder()
    x, row = b.input(128, 512), b.input(512)
    b.output(b.op("mul", x, b.op("exp", row)))
    assert why_not(b.graph(), ["exp", "mul"]) is None
    assert work(b.graph()).repeated == 127 * 512  # 128 rows each compute the 512 exponentials, once is needed


def test_two_spaces_without_a_common_loop_are_refused():
    b = Builder()
    x = b.input(128, 512)
    small = b.op("relu", b.input(100))
    b.output(b.op("relu", x), b.reduce("sum", small), small)
    graph = b.graph()
    assert why_not(graph, ["relu", "relu_1"]) is None  # independent loops of one class stand side by side
    assert "neither one space nor one class" in why_not(graph, ["relu_1", "sum"])


def test_rotary_halves_are_cut_and_joined_in_one_loop():
    b = Builder()
    x = b.input(16, 64)
    halves = b.concat([b.op("neg", b.slice(x, -1, 32, 64)), b.slice(x, -1, 0, 32)])
    b.output(b.op("add", x, halves))
    assert why_not(b.graph(), ["neg", "concat", "add"]) is None


def test_a_neighbours_value_is_computed_again():
    b = Builder()
    y = b.op("exp", b.input(64, 65))
    b.output(b.op("sub", b.slice(y, -1, 1, 65), b.slice(y, -1, 0, 64)))
    graph = b.graph()
    assert why_not(graph, ["exp", "sub"]) is None
    # two views of 64 columns each: 2 x 64 x 64 exponentials, where 64 x 65 are needed once
    assert work(graph).repeated == pytest.approx(2 * 64 * 64 - 64 * 65)


def test_halves_that_do_not_overlap_are_computed_once():
    b = Builder()
    y = b.op("exp", b.input(64, 64))
    b.output(b.op("mul", b.slice(y, -1, 0, 32), b.slice(y, -1, 32, 64)))
    assert work(b.graph()).repeated == 0


def test_a_table_must_be_complete_before_rows_are_chosen():
    b = Builder()
    table, index = b.input(1000, 64), b.input(32, dtype="int64")
    turned = b.op("neg", table)
    b.output(b.op("relu", b.embedding(turned, index)), turned)
    graph = b.graph()
    assert why_not(graph, ["embedding", "relu"]) is None  # a gather is a prologue
    assert "must be complete before parts of it are chosen" in why_not(graph, ["neg", "embedding"])


def test_a_table_that_only_feeds_its_gather_is_made_at_the_chosen_places():
    b = Builder()
    table, index = b.input(1000, 64), b.input(32, dtype="int64")
    b.output(b.embedding(b.op("neg", table), index))
    assert why_not(b.graph(), ["neg", "embedding"]) is None
    assert external_bytes(b.graph(), ["neg", "embedding"]) == (32 * 64 * 2 + 32 * 8, 32 * 64 * 2)
    assert work(b.graph()).flops == pytest.approx(32 * 64)


def test_an_index_is_computed_in_place_whatever_its_size():
    b = Builder()
    places = b.op("iota", shape=(2, 3), dtype="int64")
    chosen = b.gather("index", b.input(8, 4, 4), [b.select(places, 0, 0), b.select(places, 0, 1)], (8, 3))
    b.output(b.concat([chosen, b.input(8, 5)]))
    assert why_not(b.graph(), ["iota", "index", "concat"]) is None


def test_a_gather_reads_the_rows_it_chooses_not_the_table():
    b = Builder()
    table, index = b.input(1000, 64), b.input(32, dtype="int64")
    b.output(b.embedding(table, index))
    assert external_bytes(b.graph(), ["embedding"]) == (32 * 64 * 2 + 32 * 8, 32 * 64 * 2)


@pytest.mark.parametrize("kind", ["sort", "cumsum", "topk"])
def test_sorts_and_scans_stay_alone(kind):
    b = Builder()
    x = b.op("relu", b.input(8, 64))
    made = [b.tensor(x.shape, x.dtype, stem="made") for _ in range(1 if kind == "cumsum" else 2)]
    b.node(kind, [x], made)
    b.output(made[0])
    assert why_not(b.graph(), ["relu", kind]) == f"relu and {kind}: {kind} is a kernel of its own"


def test_random_numbers_are_pointwise():
    b = Builder()
    b.output(b.op("add", b.dropout(b.input(8, 64), 0.1), b.input(8, 64)))
    assert why_not(b.graph(), ["dropout", "add"]) is None


def test_nothing_is_overwritten_while_its_transpose_is_read():
    b = Builder()
    x = b.input(64, 64)
    turned = b.op("neg", b.transpose(x))
    b.output(b.op("relu", x, over=True), turned)
    assert "writes over" in why_not(b.graph(), ["neg", "relu"])


def parts_written_over(*spans):
    """Sigmoid over parts of rows of eight values, each in place."""
    b = Builder()
    x = b.input(4, 8, dtype="fp32")
    b.output(*(b.op("sigmoid", b.slice(x, 1, *span), over=True) for span in spans))
    return b.graph()


def test_an_op_may_write_over_the_part_that_it_reads():
    graph = parts_written_over((0, 4), (4, 8))  # the gates of an LSTM: x.chunk(2, 1)
    assert why_not(graph, ["sigmoid"]) is None
    assert why_not(graph, ["sigmoid", "sigmoid_1"]) is None  # the parts share no value
    assert len(plan(graph, strategy="eager").groups) == 2


def test_an_op_may_not_write_over_what_another_op_of_its_kernel_reads_elsewhere():
    graph = parts_written_over((0, 5), (3, 8))  # values 3 and 4 are in both
    assert (
        why_not(graph, ["sigmoid", "sigmoid_1"])
        == "sigmoid_1 and sigmoid: sigmoid writes over slice_1 while it is still read"
    )
    assert len(plan(graph, strategy="vertical").groups) == 2


def test_one_op_is_a_kernel_whatever_it_writes_over():
    b = Builder()
    x = b.input(8, 8, dtype="fp32")
    b.output(b.op("add", x, b.transpose(x), over=True))  # the program's own race, and nothing that a plan could cure
    for strategy in STRATEGIES:
        assert len(plan(b.graph(), strategy=strategy).groups) == 1


# Rows -------------------------------------------------------------------------------------------------------------


def test_a_softmax_is_one_pass_where_its_row_fits():
    graph = softmax_rows(4096, 4096)
    found = work(graph)
    assert found.template == "row"
    assert (found.read, found.written, found.again) == (33554432, 33554432, 0)  # 4096 x 4096 x 2 B in, and out
    assert (found.resources.passes, found.resources.row_bytes) == (1, 8192)  # one row of bf16 stays


def test_a_row_that_does_not_fit_is_gone_through_three_times():
    found = work(softmax_rows(64, 262144))
    assert found.resources.row_bytes == 524288  # 512 KiB, a block has 227 KiB
    assert found.resources.passes == 3  # largest value; sum; division
    assert found.again == 2 * 33554432  # x comes in twice more


def test_without_known_limits_it_stays_unknown_whether_a_row_fits():
    found = resources(softmax_rows(64, 262144), ["amax", "sub", "exp", "sum", "div"], Limits())
    assert (found.on_chip, found.occupancy, found.limit) == (None, None, None)


def test_reductions_of_different_rows_are_refused():
    b = Builder()
    x = b.input(8, 16, 32)
    b.output(b.op("add", b.reduce("sum", x), b.reduce("sum", x, (1,))))
    graph = b.graph()
    assert why_not(graph, ["sum", "sum_1", "add"]).startswith("sum and sum_1: one reduces rows of 32, the other of 16")
    assert why_not(graph, ["sum", "sum_1"]) is None  # apart, they stand side by side, each reading x for itself
    assert work(graph, ["sum", "sum_1"]).read == 2 * 8 * 16 * 32 * 2


def test_a_mean_that_repeats_along_the_wrong_dimension_is_refused():
    b = Builder()
    x = b.input(64, 64)
    b.output(b.op("sub", x, b.reduce("mean", x, keepdim=False)))
    assert "repeats along other dimensions" in why_not(b.graph(), ["mean", "sub"])


def test_reductions_and_pointwise_ops_before_and_after_share_rows_through_reshapes():
    b = Builder()
    x = b.input(4, 8, 32)
    flat = b.view(b.op("square", x), (32, 32))
    scale = b.op("rsqrt", b.reduce("mean", flat))
    b.output(b.op("mul", flat, scale))
    assert why_not(b.graph(), ["square", "mean", "rsqrt", "mul"]) is None


def test_rows_turned_behind_a_reduction_are_refused():
    b = Builder()
    x = b.input(64, 64)
    scaled = b.op("div", x, b.reduce("sum", x))
    b.output(b.op("relu", b.transpose(scaled)))
    assert "reorders or cuts the rows" in why_not(b.graph(), ["sum", "div", "relu"])


def test_a_composite_is_a_library_kernel_until_it_is_written_out():
    b = Builder()
    b.output(b.softmax(b.op("relu", b.input(64, 64))))
    assert why_not(b.graph(), ["relu", "softmax"]) == "relu and softmax: softmax is a kernel of its own"


def test_independent_loops_do_not_hold_each_others_values():
    b = Builder()
    made = [b.op("exp", b.input(64, 64)) for _ in range(50)]
    b.output(*(b.op("relu", value) for value in made))
    found = resources(b.graph(), names(b.graph()), H200)
    assert (found.live, found.spilled) == (2, 0)
    assert found.blocks == 50 * 2  # 4096 values, 8 to a thread, 256 threads to a block


def test_two_outputs_of_one_space_read_their_input_once():
    b = Builder()
    x = b.input(64, 64, dtype="fp32")
    b.output(b.op("relu", x), b.reduce("sum", x))
    assert why_not(b.graph(), ["relu", "sum"]) is None
    assert external_bytes(b.graph(), ["relu", "sum"]) == (16384, 16384 + 256)


# Products ---------------------------------------------------------------------------------------------------------


def test_an_epilogue_has_the_outputs_shape():
    b = Builder()
    x, w, row, other = b.input(64, 32), b.input(32, 128), b.input(128), b.input(64, 128)
    y = b.op("add", b.op("relu", b.op("add", b.matmul(x, w), row)), other)
    b.output(y, b.reduce("amax", y))
    graph = b.graph()
    assert template(graph, ["matmul", "add", "relu", "add_1"]) == "matmul"
    assert "needs it whole" in why_not(graph, ["matmul", "add", "relu", "add_1", "amax"])


def test_a_prologue_would_run_once_per_tile():
    b = Builder()
    b.output(b.matmul(b.op("relu", b.input(64, 32)), b.input(32, 128)))
    assert why_not(b.graph(), ["relu", "matmul"]).startswith("matmul and relu: operands of a matmul are read once")


def test_a_gate_over_halves_of_the_output_is_no_epilogue():
    b = Builder()
    y = b.matmul(b.input(64, 32), b.input(32, 256))
    b.output(b.op("mul", b.slice(y, -1, 0, 128), b.slice(y, -1, 128, 256)))
    assert "is not the shape of the matmul's output" in why_not(b.graph(), ["matmul", "mul"])


def test_independent_products_of_one_size_stand_side_by_side_and_dependent_ones_do_not():
    b = Builder()
    x, w1, w2 = b.input(64, 64), b.input(64, 64), b.input(64, 64)
    y = b.matmul(x, w1)
    b.output(b.matmul(x, w2), b.matmul(y, w2))
    graph = b.graph()
    assert why_not(graph, ["matmul", "matmul_1"]) is None
    assert "depend on each other" in why_not(graph, ["matmul", "matmul_2"])


def test_a_convolution_takes_in_its_batch_norm_and_no_other_product_does():
    b = Builder()
    x, w = b.input(2, 8, 16, 16), b.input(8, 8, 3, 3)
    mean, var = b.parameter(8), b.parameter(8)
    b.output(b.op("relu", b.batch_norm(b.conv(x, w, padding=(1, 1)), mean, var)))
    graph = b.graph()
    assert why_not(graph, ["conv", "batch_norm", "relu"]) is None
    assert "is a kernel of its own" in why_not(graph, ["batch_norm", "relu"])
    # the folded norm costs nothing: only relu's 2 x 8 x 16 x 16 values remain
    assert work(graph).flops == 4096


def test_attention_is_recognised_and_counts_its_rereads():
    graph = attention()
    found = work(graph)
    assert found.template == "attention"
    one = 2 * 4 * 512 * 64 * 2  # bytes of q, k, v or the result
    assert (found.read, found.written) == (3 * one, one)
    assert found.again == 3 * 2 * one  # four tiles of 128 queries: k and v come three times more


def test_attention_whose_scores_are_wanted_is_refused():
    reason = why_not(attention(keep=True), names(attention()))
    assert reason == "div and matmul_1: div is wanted elsewhere, so the scores would be in memory"


def test_half_of_an_attention_is_no_kernel():
    graph = attention()
    assert "needs it whole" in why_not(graph, ["matmul", "mul", "amax"])
    assert "operands of a matmul" in why_not(graph, ["div", "matmul_1"])


def test_heads_beyond_a_tile_are_refused():
    graph = attention(seq=128, dim=512)
    assert why_not(graph, names(graph)).endswith("512 values per head do not fit a tile; the largest is 256")


# Resources --------------------------------------------------------------------------------------------------------


def sums(count):
    """Inputs that are all live until they are added up in reverse, twice."""
    b = Builder()
    values = [b.op("exp", b.input(1024, 1024)) for _ in range(count)]
    total = values[-1]
    for value in reversed(values[:-1]):
        total = b.op("add", total, value)
    b.output(total)
    return b.graph()


def test_too_many_live_values_spill():
    few, many = (resources(graph, names(graph), H200) for graph in (sums(4), sums(40)))
    assert few.spilled == 0
    assert many.live == 41  # all forty, and the operand of the last
    assert many.registers == 16 + 2 * 41 + 41 * 8  # base, addresses of 40 inputs and the result, vectors of 8
    assert many.spilled == many.registers - 255
    assert work(sums(40)).spilled > 0


def test_the_limiting_resource_is_named():
    graph = sums(12)
    found = resources(graph, names(graph), H200)
    assert found.limit == "registers"
    assert found.occupancy == 65536 // (found.registers * 256) * 256 / 2048
