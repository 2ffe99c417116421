"""Inductor's rules, one at a time: what is stored, what is computed again, what shares a kernel."""

import time

import pytest

from fusesim.attention_pattern import with_attention
from fusesim.builder import Builder
from fusesim.legality import check_plan
from fusesim.strategies.inductor import MOST_READS, REALIZE_OPS, REALIZE_READS, decide, stored_values
from fusesim.strategies.inductor_bias import unfused_bias
from fusesim.strategies.inductor_loops import MOST_CONCATENATED, splits

SMS = 132


def graph_of(build):
    b = Builder("rules")
    made = build(b)
    b.output(*(made if isinstance(made, tuple) else (made,)))
    return b.graph()


def kinds(build):
    """The ops of each kernel, by kind."""
    plan = decide(graph_of(build))
    return [sorted(node.kind for node in plan.nodes(group)) for group in plan.groups]


def chain(b, x, *names):
    for name in names:
        x = b.op(name, x)
    return x


def full(b, rows=1000, columns=4096, dtype="bf16"):
    return b.input(rows, columns, dtype=dtype)


def test_a_chain_is_one_kernel():
    assert kinds(lambda b: chain(b, full(b), "neg", "exp", "relu")) == [["exp", "neg", "relu"]]


def test_a_cheap_value_of_two_readers_is_computed_in_each_and_stored_in_none():
    def build(b):
        shared = b.op("exp", full(b))
        return b.op("add", shared, b.input(1000, 4096, dtype="bf16")), b.reduce("sum", b.op("neg", shared), [0])

    graph = graph_of(build)
    stored = stored_values(graph)
    assert not any(node.name in stored for node in graph.paid_nodes if node.kind in {"exp", "neg"})


def recomputed(shape):
    def build(b):
        x = b.input(*shape, dtype="bf16")
        shared = b.op("exp", b.op("neg", x))
        flat = b.view(shared, (shape[0] * shape[1],))
        return b.op("add", shared, scalar=1.0), b.concat([flat, flat], 0)

    return build


def test_an_op_of_two_kernels_is_copied_and_every_op_is_covered_once():
    plan = decide(graph_of(recomputed((1000, 4096))))
    names = [name for group in plan.groups for name in group.nodes]
    assert sorted(names) == sorted({node.name for node in plan.graph.paid_nodes})
    assert len(plan.groups) == 2  # other numbers of values: two loops
    assert [sum(node.kind == "exp" for node in plan.nodes(group)) for group in plan.groups] == [1, 1]
    first, second = plan.groups
    assert not set(plan.external_inputs(second)) & set(plan.external_outputs(first))  # nothing stored in between


def dear(reads, ops):
    """A value of so many inputs and operations, which two others read."""

    def build(b):
        total = b.input(1000, 64, dtype="fp32", name="i0")
        for place in range(1, reads):
            total = b.op("add", total, b.input(1000, 64, dtype="fp32", name=f"i{place}"))
        for _ in range(ops):
            total = b.op("neg", total)
        total = b.op("abs", total)
        return b.op("exp", total), b.op("tanh", total)

    return build


@pytest.mark.parametrize(
    ("reads", "ops", "stored"),
    [
        (REALIZE_READS, 0, False),
        (REALIZE_READS + 1, 0, True),  # five tensors
        (1, 12, False),  # 2 for the load, and 2 for each of 13: its own and its arithmetic
        (1, 14, True),  # 2 + 15 x 2 operations exceed 30
    ],
)
def test_a_dear_value_of_two_readers_is_stored(reads, ops, stored):
    assert REALIZE_OPS == 30
    graph = graph_of(dear(reads, ops))
    (shared,) = (node for node in graph.paid_nodes if node.kind == "abs")
    assert (shared.name in stored_values(graph)) == stored


def test_a_value_of_very_many_tensors_is_stored_for_one_reader_too():
    def build(b, count):
        total = b.input(1000, 64)
        for _ in range(count - 1):
            total = b.op("add", total, b.input(1000, 64))
        return b.op("exp", b.op("abs", total))

    for count, stored in ((MOST_READS, False), (MOST_READS + 1, True)):
        graph = graph_of(lambda b, count=count: build(b, count))
        last = [node.name for node in graph.paid_nodes if node.kind == "add"][-1]
        assert (last in stored_values(graph)) == stored


def test_what_is_returned_is_stored():
    def build(b):
        middle = b.op("exp", full(b))
        return middle, b.op("neg", middle)

    assert kinds(build) == [["exp", "neg"]]  # one loop that writes both
    plan = decide(graph_of(build))
    assert len(plan.external_outputs(plan.groups[0])) == 2


def test_a_reduction_joins_the_loops_before_and_after_it():
    def build(b):
        x = b.op("exp", full(b))
        return b.op("sub", x, b.reduce("mean", x, [-1], keepdim=True))

    assert kinds(build) == [["exp", "mean", "sub"]]


def test_reductions_of_the_same_rows_share_a_kernel():
    def build(b):
        x, y = full(b), full(b)
        return b.reduce("sum", b.op("mul", x, y), [-1]), b.reduce("amax", x, [-1])

    assert kinds(build) == [["amax", "mul", "sum"]]


def test_reductions_of_other_rows_do_not():
    def build(b):
        x = full(b)
        return b.reduce("sum", x, [-1]), b.reduce("sum", x, [0])

    assert kinds(build) == [["sum"], ["sum"]]


def test_a_composite_is_written_out():
    ((*ops,),) = kinds(lambda b: b.softmax(full(b), -1))
    assert {"amax", "exp", "sum"} <= set(ops)


@pytest.mark.parametrize(
    ("rows", "columns", "outer", "found"),
    [
        (2 * SMS - 1, 8193, False, True),
        (2 * SMS, 8193, False, False),
        (1, 8192, False, False),
        (8191, 257, True, True),
        (8192, 257, True, False),
        (100, 256, True, False),
    ],
)
def test_reductions_of_few_long_rows_run_in_two_stages(rows, columns, outer, found):
    assert splits(rows, columns, SMS, outer=outer) is found


def test_nothing_that_needs_a_split_reduction_joins_it():
    def build(rows):
        def made(b):
            x = b.input(rows, 16_384, dtype="bf16")
            return b.op("div", x, b.reduce("sum", x, [-1], keepdim=True))

        return made

    assert kinds(build(8)) == [["sum"], ["div"]]
    assert kinds(build(4000)) == [["div", "sum"]]


def written_out(b, *, scaled=True, queries=1024, causal=False):
    q, k, v = (b.input(8, 16, queries, 64, dtype="bf16") for _ in range(3))
    scores = b.matmul(q, b.transpose(k))
    if scaled:
        scores = b.op("mul", scores, scalar=0.125)
    if causal:
        scores = b.op("add", scores, b.input(queries, queries, dtype="bf16"))
    return b.matmul(b.softmax(scores, -1), v)


@pytest.mark.parametrize("scaled", [True, False])
def test_attention_that_is_written_out_becomes_one_kernel(scaled):
    assert kinds(lambda b: written_out(b, scaled=scaled)) == [["attention"]]


def test_masked_scores_and_scores_that_others_read_stay():
    assert ["attention"] not in kinds(lambda b: written_out(b, causal=True))

    def kept(b):
        q, k, v = (b.input(8, 16, 128, 64, dtype="bf16") for _ in range(3))
        weights = b.softmax(b.matmul(q, b.transpose(k)), -1)
        return weights, b.matmul(weights, v)

    assert ["attention"] not in kinds(kept)


def test_a_graph_without_attention_is_the_very_same():
    graph = graph_of(lambda b: chain(b, full(b), "neg"))
    assert with_attention(graph) is graph


def linear(b, then):
    x, w, bias = b.input(512, 256, dtype="bf16"), b.input(1024, 256, dtype="bf16"), b.input(1024, dtype="bf16")
    return then(b, b.linear(x, w, bias))


def test_a_bias_leaves_the_library_where_a_pointwise_op_reads_it():
    assert kinds(lambda b: linear(b, lambda b, y: b.op("relu", y))) == [["matmul"], ["add", "relu"]]


@pytest.mark.parametrize(
    "then",
    [
        lambda _, y: y,  # returned
        lambda b, y: b.matmul(y, b.input(1024, 64, dtype="bf16")),  # read by another call
        lambda b, y: b.reduce("sum", y, [-1]),  # read by a reduction
        lambda b, y: (y, b.op("relu", y)),  # returned too
    ],
)
def test_and_stays_where_none_does(then):
    graph = graph_of(lambda b: linear(b, then))
    assert unfused_bias(graph) is graph


def test_a_convolutions_bias_always_leaves():
    def build(b):
        x, w = b.input(8, 64, 56, 56, dtype="bf16"), b.input(64, 64, 3, 3, dtype="bf16")
        return b.conv(x, w, b.input(64, dtype="bf16"), padding=(1, 1))

    assert kinds(build) == [["conv"], ["add"]]
    plan = decide(graph_of(build))
    bias = next(node for node in plan.graph.paid_nodes if node.kind == "add").inputs[1]
    assert plan.graph.tensors[bias].shape == (64, 1, 1)  # broadcast over places


def test_library_ops_stay_alone():
    def build(b):
        x = b.op("relu", b.matmul(b.op("exp", b.input(512, 256, dtype="bf16")), b.input(256, 256, dtype="bf16")))
        return b.op("neg", x)

    assert kinds(build) == [["exp"], ["matmul"], ["neg", "relu"]]


@pytest.mark.parametrize(("count", "kernels"), [(MOST_CONCATENATED, 1), (MOST_CONCATENATED + 1, 2)])
def test_a_concatenation_of_many_is_no_loop(count, kernels):
    def build(b):
        parts = [b.input(64, 128, dtype="bf16") for _ in range(count)]
        return b.op("neg", b.concat(parts, -1))

    assert len(kinds(build)) == kernels


def test_fusing_closes_no_circle():
    """x -> reduction over columns -> y, with x and y of one size: they could be one loop but for what lies between."""

    def build(b):
        x = b.op("exp", full(b))
        total = b.reduce("sum", x, [0], keepdim=True)
        return x, b.op("div", x, total)

    plan = decide(graph_of(build))
    made: set[str] = set()
    for group in plan.groups:
        for name in plan.external_inputs(group):
            assert name in made or name in plan.graph.inputs
        made.update(plan.external_outputs(group))
    assert len(plan.groups) >= 2


def test_the_same_value_computed_twice_is_computed_once():
    def build(b):
        x = full(b)
        return b.op("add", b.op("exp", x), b.op("exp", x))

    assert kinds(build) == [["add", "exp"]]


def test_gates_changed_in_place_are_one_kernel():
    def build(b):  # a GRU's step: parts of a product, each written over, and read by the next
        gates = b.matmul(b.input(8, 16), b.parameter(16, 24))
        reset, update, new = (b.op("sigmoid", b.slice(gates, 1, at, at + 8), over=True) for at in (0, 8, 16))
        return b.op("add", b.op("mul", new, reset, over=True), update, over=True)

    assert kinds(build) == [["matmul"], ["add", "mul", "sigmoid", "sigmoid", "sigmoid"]]


def test_who_reads_what_is_written_over_later_is_stored():
    def build(b):
        x = full(b)
        old = b.op("abs", x)  # cheap, and computed again it would read what relu wrote
        return b.op("relu", x, over=True), b.reduce("sum", b.op("neg", old), [0]), b.op("exp", b.transpose(old))

    graph = graph_of(build)
    assert "abs" in stored_values(graph)
    assert len(decide(graph).groups) > 1


def test_loops_that_no_kernel_holds_stay_apart():
    def build(b):  # sums of rows and what transposes them share memory, and rows cannot change places in a kernel
        x = b.layer_norm(full(b, 64, 64))
        return b.reduce("sum", x), b.copy(b.transpose(x))

    check_plan(decide(graph_of(build)))


def test_thousands_of_ops_are_planned_in_a_second_or_two():
    b = Builder("blocks")
    x = b.input(128, 256)
    for place in range(250):  # 8 ops each, none like another
        scaled = b.op("mul", x, scalar=1.0 + place)
        scale = b.op("rsqrt", b.op("add", b.reduce("mean", b.op("square", scaled)), scalar=1e-6))
        gate = b.matmul(b.op("mul", scaled, scale), b.parameter(256, 256))
        x = b.op("add", x, b.op("silu", gate))
    b.output(x)
    graph = b.graph()
    start = time.process_time()
    plan = decide(graph)
    assert time.process_time() - start < 4  # 0.3 s on two quiet cores; it took 20 s when every pair was tried
    assert len(plan.groups) == 1 + 2 * 250
