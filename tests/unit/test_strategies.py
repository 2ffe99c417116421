"""What each strategy fuses and what it must not, on graphs small enough to check by eye."""

from __future__ import annotations

import pytest

from fusesim import patterns
from fusesim.api import find_device
from fusesim.builder import Builder
from fusesim.errors import InputError
from fusesim.legality import check_plan
from fusesim.planning import context_of, plan
from fusesim.strategies import STRATEGIES, find_strategy
from fusesim.strategies.optimal import solve
from fusesim.textbook_cost import TextbookCost
from fusesim.topology import topology

RULES = ("xla", "tvm", "mlir")
BUILT = tuple(name for name in STRATEGIES if name != "inductor")
COST = TextbookCost.of(find_device("h200-sxm"))


def groups(graph, strategy, **kwargs):
    """The groups as a set of frozensets of names."""
    return {frozenset(group.nodes) for group in plan(graph, strategy, **kwargs).groups}


def price(made):
    return sum(COST(made.graph, group.nodes) for group in made.groups)


def together(graph, strategy, *ops):
    """Whether ops end in one group."""
    return any(set(ops) <= group for group in groups(graph, strategy))


def pair(first="relu", second="exp", size=1024):
    b = Builder("pair")
    b.output(b.op(second, b.op(first, b.input(size, size))))
    return b.graph()


def softmax_by_hand(rows=1024, length=1024):
    b = Builder("softmax")
    x = b.input(rows, length)
    powers = b.op("exp", b.op("sub", x, b.reduce("amax", x)))
    b.output(b.op("div", powers, b.reduce("sum", powers)))
    return b.graph()


def product_with(*kinds, bias=True):
    b = Builder("product")
    y = b.matmul(b.input(512, 512), b.input(512, 512))
    if bias:
        y = b.op("add", y, b.input(512))
    for kind in kinds:
        y = b.op(kind, y)
    b.output(y)
    return b.graph()


def fork(*, random=False):
    """One value, read before and behind a product: its readers cannot share a kernel."""
    b = Builder("fork")
    x, w = b.input(1024, 1024), b.input(1024, 1024)
    shared = b.dropout(x, 0.5) if random else b.op("exp", x)
    made = b.matmul(b.op("relu", shared), w)
    b.output(b.reduce("amax", b.op("sin", b.op("maximum", b.op("neg", shared), made))))
    return b.graph()


# All of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", BUILT)
@pytest.mark.parametrize("pattern", [name for name in patterns.PATTERNS if name not in {"dlrm", "transformer_block"}])
def test_every_pattern_has_a_legal_plan(strategy, pattern):
    graph = patterns.find(pattern)()
    made = plan(graph, strategy)  # checked by plan itself
    check_plan(made)
    assert made.strategy == strategy
    assert made.source is graph


@pytest.mark.parametrize("strategy", ["vertical", "horizontal", "xla", "tvm", "mlir"])
def test_a_transformer_block_has_a_legal_plan(strategy):
    check_plan(plan(patterns.find("transformer_block")(), strategy))


def test_an_unknown_strategy_is_named_with_the_nearest():
    with pytest.raises(InputError, match='unknown strategy "vertikal"; did you mean "vertical"'):
        plan(pair(), "vertikal")


def test_an_empty_graph_has_an_empty_plan():
    b = Builder()
    b.output(b.input(4))
    assert [plan(b.graph(), strategy).groups for strategy in BUILT] == [()] * len(BUILT)


def test_the_slot_of_a_strategy_is_its_module():
    assert find_strategy("cuda-graph").__module__ == "fusesim.strategies.cuda_graph"


# Eager, CUDA graph ------------------------------------------------------------------------------------------------


def test_eager_launches_a_kernel_per_op():
    assert groups(softmax_by_hand(), "eager") == {frozenset({op}) for op in ("amax", "sub", "exp", "sum", "div")}


def test_a_cuda_graph_keeps_the_kernels_and_says_so():
    made = plan(softmax_by_hand(), "cuda-graph")
    assert len(made.groups) == 5
    assert "merges launches, not kernels" in made.notes[0]


# Vertical ---------------------------------------------------------------------------------------------------------


def test_vertical_fuses_a_softmax_and_not_two_independent_chains():
    assert len(plan(softmax_by_hand(), "vertical").groups) == 1
    assert len(plan(patterns.independent4(), "vertical").groups) == 4


def test_vertical_leaves_a_row_that_is_read_again_where_that_loses():
    # 256 rows of 512 KiB: fused, x comes three times and the powers never touch memory; 132 rows at a time fit anyway.
    # With rows too few to fill the device, one block per row draws 8 / 132 of the bandwidth: fusing loses.
    fits, loses = softmax_by_hand(1024, 1024), softmax_by_hand(8, 1 << 20)
    assert len(plan(fits, "vertical").groups) == 1
    assert len(plan(loses, "vertical").groups) > 1
    everything = topology(loses).names
    assert COST(loses, everything) > price(plan(loses, "vertical"))


def test_vertical_stops_before_values_spill():
    b = Builder("sums")
    values = [b.op("exp", b.input(4096, 4096)) for _ in range(60)]
    total = values[-1]
    for value in reversed(values[:-1]):
        total = b.op("add", total, value)
    b.output(total)
    graph = b.graph()
    made = plan(graph, "vertical")
    assert COST(graph, topology(graph).names) > price(made)
    assert len(made.groups) > 1


def test_vertical_keeps_the_library_product_where_an_epilogue_would_displace_it():
    # A product of 8192 x 8192 x 8192 at 85 % of the library's rate loses 0.2 ms; sin alone moves 0.27 GB: 0.06 ms.
    b = Builder()
    b.output(b.op("sin", b.matmul(b.input(8192, 8192), b.input(8192, 8192))))
    assert not together(b.graph(), "vertical", "matmul", "sin")
    assert together(product_with("relu"), "vertical", "matmul", "add", "relu")


def test_vertical_folds_a_batch_norm_into_its_convolution():
    assert len(plan(patterns.conv_bn_relu(), "vertical").groups) == 1


def test_vertical_tiles_attention():
    made = plan(patterns.attention(composite=False), "vertical")
    assert len(made.groups) == 1


# Horizontal -------------------------------------------------------------------------------------------------------


def test_horizontal_puts_siblings_into_one_launch_and_not_dependent_ops():
    assert len(plan(patterns.independent4(), "horizontal").groups) == 1
    b = Builder()
    x = b.input(64, 64)
    b.output(b.op("relu", b.matmul(b.op("exp", x), x)))
    assert not together(b.graph(), "horizontal", "exp", "relu")


# Optimal ----------------------------------------------------------------------------------------------------------


def test_optimal_says_over_what_it_is_exact():
    assert "exact over all groups" in plan(softmax_by_hand(), "optimal").notes[0]
    b = Builder()
    x = b.input(64, 64)
    for _ in range(12):
        x = b.op("relu", x)
    b.output(x)
    assert "exact over groups that hang together" in plan(b.graph(), "optimal").notes[0]


def test_optimal_forbids_groups_that_wait_for_each_other():
    # Sharing the big input pays crosswise: {a1, b2} read p, {b1, a2} read q. Each is convex; together they deadlock.
    b = Builder("crossed")
    p, q = b.input(2048, 2048), b.input(2048, 2048)
    a1, b1 = b.op("add", p, b.input(2048)), b.op("add", q, b.input(2048))
    w = b.input(2048, 16)
    a, c = b.matmul(a1, w), b.matmul(b1, w)  # products keep a1 from a2
    a2 = b.op("mul", q, b.reduce("sum", a))
    b2 = b.op("mul", p, b.reduce("sum", c))
    b.output(a2, b2)
    check_plan(plan(b.graph(), "optimal"))


def crossing_pays(_, nodes):
    """A price that makes the crossed pairs of two chains the cheapest partition, were it not for the deadlock."""
    return {("relu", "tanh"): 1.0, ("exp", "neg"): 1.0}.get(tuple(nodes), 10.0 * len(nodes))


def test_the_solver_looks_again_when_its_groups_wait_for_each_other():
    b = Builder("two chains")
    x, y = b.input(64, 64), b.input(64, 64)
    a1, b1 = b.op("relu", x), b.op("neg", y)
    b.output(b.op("exp", a1), b.op("tanh", b1))
    graph = b.graph()
    assert not {frozenset({"relu", "tanh"}), frozenset({"exp", "neg"})} <= groups(graph, "optimal", cost=crossing_pays)
    topo = topology(graph)
    found = solve(topo, context_of("h200-sxm", crossing_pays).prices(graph, topo))
    assert found.price == 21.0  # one crossed pair at 1, two ops at 10; both pairs would be 2
    assert found.note.startswith("exact")


def test_optimal_hands_back_a_bound_when_the_solver_stops(monkeypatch):
    monkeypatch.setattr("fusesim.strategies.optimal.MOST_ROUNDS", 0)
    graph = softmax_by_hand()
    topo = topology(graph)
    found = solve(topo, context_of("h200-sxm").prices(graph, topo))
    assert found.note.startswith("bound:")
    assert len(found.masks) == 1  # the greedy plan stands in


def test_optimal_says_when_candidates_were_cut_off(monkeypatch):
    monkeypatch.setattr("fusesim.strategies.candidates.MOST", 5)
    monkeypatch.setattr("fusesim.strategies.optimal.candidates.__defaults__", ((), 5))
    b = Builder()
    x = b.input(64, 64)
    for _ in range(12):
        x = b.op("relu", x)
    b.output(x)
    made = plan(b.graph(), "optimal")
    assert made.notes[0].startswith("heuristic:")
    assert len(made.groups) == 1


# XLA --------------------------------------------------------------------------------------------------------------


def test_xla_computes_a_cheap_producer_in_every_consumer():
    made = plan(fork(), "xla")
    assert {frozenset(g.nodes) for g in made.groups} == {
        frozenset({"exp", "relu"}),
        frozenset({"matmul"}),
        frozenset({"exp.2", "neg", "maximum", "sin", "amax"}),
    }
    assert made.notes == ("1 ops are computed again in a second consumer",)
    assert price(made) < price(plan(fork(), "eager"))


def test_xla_does_not_repeat_random_numbers():
    assert plan(fork(random=True), "xla").notes == ()


def test_xla_fuses_a_softmax_whose_row_fits_and_cuts_one_that_does_not():
    assert len(plan(softmax_by_hand(), "xla").groups) == 1
    assert len(plan(softmax_by_hand(256, 1 << 19), "xla").groups) > 1


def test_xla_takes_library_epilogues_and_leaves_others():
    assert together(product_with("relu"), "xla", "matmul", "add", "relu")
    assert not together(product_with("sin", bias=False), "xla", "matmul", "sin")


def test_xla_gives_an_addition_of_two_products_to_one_of_them():
    b = Builder()  # an LSTM's gates: the input's product plus the state's
    b.output(b.op("add", *(b.matmul(b.input(64, 64), b.parameter(64, 64)) for _ in range(2))))
    assert groups(b.graph(), "xla") == {frozenset({"matmul", "add"}), frozenset({"matmul_1"})}


def test_xla_shares_a_launch_between_independent_loops():
    assert len(plan(patterns.independent4(), "xla").groups) == 1


# TVM --------------------------------------------------------------------------------------------------------------


def test_tvm_ends_a_kernel_with_its_reduction():
    b = Builder()
    x = b.input(1024, 1024)
    b.output(b.op("rsqrt", b.reduce("mean", b.op("square", x))))
    assert groups(b.graph(), "tvm") == {frozenset({"square", "mean"}), frozenset({"rsqrt"})}


def test_tvm_puts_elementwise_ops_behind_a_product_and_not_in_front():
    assert together(product_with("relu"), "tvm", "matmul", "add", "relu")
    b = Builder()
    b.output(b.matmul(b.op("relu", b.input(64, 64)), b.input(64, 64)))
    assert not together(b.graph(), "tvm", "matmul", "relu")


def test_tvm_joins_a_diamond_at_its_post_dominator():
    b = Builder()
    x = b.op("exp", b.input(1024, 1024))
    b.output(b.op("add", b.op("relu", x), b.op("neg", x)))
    assert len(plan(b.graph(), "tvm").groups) == 1


def test_tvm_gives_a_kernel_one_output():
    b = Builder()
    x = b.op("exp", b.input(1024, 1024))
    b.output(b.op("relu", x), b.op("neg", x))
    assert len(plan(b.graph(), "tvm").groups) == 3  # vertical makes one kernel of it
    assert len(plan(b.graph(), "vertical").groups) == 1


def test_tvm_treats_softmax_as_opaque():
    b = Builder()
    b.output(b.op("relu", b.softmax(b.op("neg", b.input(64, 64)))))
    assert len(plan(b.graph(), "tvm").groups) == 3


# MLIR -------------------------------------------------------------------------------------------------------------


def test_mlir_fuses_a_producer_with_one_use():
    assert len(plan(pair(), "mlir").groups) == 1
    b = Builder()
    x = b.op("exp", b.input(64, 64))
    b.output(b.op("add", b.op("relu", x), x))
    assert groups(b.graph(), "mlir") == {frozenset({"exp"}), frozenset({"relu", "add"})}


def test_mlir_fuses_into_a_reduction_and_not_out_of_it():
    b = Builder()
    x = b.input(64, 64)
    b.output(b.op("rsqrt", b.reduce("mean", b.op("square", x))))
    assert groups(b.graph(), "mlir") == {frozenset({"square", "mean"}), frozenset({"rsqrt"})}


def test_mlir_does_not_fuse_a_table_into_its_gather():
    b = Builder()
    table, index = b.input(1000, 64), b.input(32, dtype="int64")
    b.output(b.op("relu", b.embedding(b.op("neg", table), index)))
    assert groups(b.graph(), "mlir") == {frozenset({"neg"}), frozenset({"embedding", "relu"})}


def test_mlir_leaves_named_products_alone():
    assert groups(product_with("relu"), "mlir") == {frozenset({"matmul"}), frozenset({"add", "relu"})}
