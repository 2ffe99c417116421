"""What holds for the plans of every graph: random programs, every strategy."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusesim.api import find_device
from fusesim.builder import Builder
from fusesim.group_cost import group_cost
from fusesim.group_work import external_bytes
from fusesim.legality import check_plan, cycle, reason_against
from fusesim.planning import context_of, plan
from fusesim.strategies import STRATEGIES
from fusesim.strategies.optimal import solve
from fusesim.textbook_cost import TextbookCost
from fusesim.topology import bits, topology

BUILT = tuple(name for name in STRATEGIES if name != "inductor")
COST = TextbookCost.of(find_device("h200-sxm"))
GENERATED = group_cost("h200-sxm")
ROUNDING = 1e-12

SHAPES = st.sampled_from([(64, 256), (2048, 4096), (16, 1 << 18), (4096, 4096)])
UNARY = ("relu", "exp", "neg", "rsqrt", "gelu")
BINARY = ("add", "mul", "sub", "maximum")


def unary(b, draw, values, rows):
    """Add an op of one operand, on the whole or on a value per row."""
    pool = rows if rows and draw(st.booleans()) and draw(st.booleans()) else values
    pool.append(b.op(draw(st.sampled_from(UNARY)), draw(st.sampled_from(pool))))


def binary(b, draw, values, rows):
    """Add an op of two operands; the second may be a value per row."""
    second = draw(st.sampled_from(values + rows))
    values.append(b.op(draw(st.sampled_from(BINARY)), draw(st.sampled_from(values)), second))


def reduction(b, draw, values, rows):
    """Add a reduction over rows."""
    rows.append(b.reduce(draw(st.sampled_from(["sum", "amax", "mean"])), draw(st.sampled_from(values))))


def product(b, draw, values, rows):
    """Add a product with a square matrix."""
    del rows
    x = draw(st.sampled_from(values))
    values.append(b.matmul(x, b.parameter(x.shape[-1], x.shape[-1])) if x.shape[-1] <= 4096 else b.op("sign", x))


def composite(b, draw, values, rows):
    """Add a softmax that frameworks have a kernel for."""
    del rows
    values.append(b.softmax(draw(st.sampled_from(values))))


@st.composite
def programs(draw, most=14, kinds=(unary, unary, binary, binary, reduction, product, composite)):
    """Draw a graph of up to so many ops."""
    b = Builder("program")
    shape = draw(SHAPES)
    values = [b.input(*shape) for _ in range(draw(st.integers(1, 2)))]
    rows = []
    for _ in range(draw(st.integers(1, most))):
        draw(st.sampled_from(kinds))(b, draw, values, rows)
    unread = {name for node in b.nodes for name in node.outputs} - {name for node in b.nodes for name in node.inputs}
    b.output(*(tensor for tensor in values + rows if tensor.name in unread))
    return b.graph()


def total(made, cost=COST):
    return sum(cost(made.graph, group.nodes) for group in made.groups)


def moved(made):
    return sum(sum(external_bytes(made.graph, group.nodes)) for group in made.groups)


def renamed(graph, prefix):
    """The same graph with every op and tensor under another name."""
    new = {name: f"{prefix}{place}" for place, name in enumerate(sorted(graph.tensors, reverse=True))}
    tensors = {
        new[name]: replace(tensor, name=new[name], storage=new[tensor.storage])
        for name, tensor in graph.tensors.items()
    }
    nodes = tuple(
        replace(
            node,
            name=f"op{prefix}{len(graph.nodes) - place}",
            inputs=tuple(new[name] for name in node.inputs),
            outputs=tuple(new[name] for name in node.outputs),
        )
        for place, node in enumerate(graph.nodes)
    )
    return replace(
        graph,
        tensors=tensors,
        nodes=nodes,
        inputs=tuple(new[name] for name in graph.inputs),
        outputs=tuple(new[name] for name in graph.outputs),
        parameters=frozenset(new[name] for name in graph.parameters),
    )


@settings(max_examples=30)
@given(programs(most=10))
def test_every_plan_covers_each_op_once_and_can_run(graph):
    for strategy in BUILT:
        made = plan(graph, strategy)
        check_plan(made)
        placed = [name for group in made.groups for name in group.nodes]
        assert sorted(placed) == sorted(node.name for node in made.graph.paid_nodes)
        topo = topology(made.graph)
        assert not cycle(topo, [topo.mask(group.nodes) for group in made.groups])


@pytest.mark.parametrize("cost", [COST, GENERATED], ids=["textbook", "calibrated"])
@settings(max_examples=20)
@given(graph=programs(most=10))
def test_more_search_never_costs_more(cost, graph):
    eager, vertical, horizontal, optimal = (
        total(plan(graph, name, cost=cost), cost) for name in ("eager", "vertical", "horizontal", "optimal")
    )
    assert vertical <= eager + ROUNDING
    assert horizontal <= vertical + ROUNDING
    assert optimal <= horizontal + ROUNDING
    others = ("xla", "tvm", "mlir", "inductor")
    assert optimal <= min(total(plan(graph, name, cost=cost), cost) for name in others) + ROUNDING


@settings(max_examples=40)
@given(programs(most=10, kinds=(unary, unary, binary, binary, reduction, product)))
def test_bytes_never_rise_by_fusing_without_recomputing(graph):
    apart = moved(plan(graph, "eager"))
    for strategy in BUILT:
        made = plan(graph, strategy)
        if made.graph is graph:  # otherwise ops are computed again, which may read more
            assert moved(made) <= apart


@settings(max_examples=60)
@given(programs(), st.data())
def test_the_bytes_of_a_union_are_at_most_the_sum(graph, data):
    topo = topology(graph)
    names = st.sets(st.sampled_from(topo.names), min_size=1)
    one, other = data.draw(names), data.draw(names)
    both = sum(external_bytes(graph, one | other))
    assert both <= sum(external_bytes(graph, one)) + sum(external_bytes(graph, other - one))


@settings(max_examples=20)
@given(programs(most=8))
def test_names_change_nothing(graph):
    other = renamed(graph, "zz")
    to_new = dict(zip((n.name for n in graph.nodes), (n.name for n in other.nodes), strict=True))
    for strategy in ("eager", "vertical", "horizontal", "optimal", "tvm", "mlir"):
        one, two = plan(graph, strategy), plan(other, strategy)
        assert total(one) == pytest.approx(total(two), rel=1e-9)
        if one.graph is graph:
            groups = [tuple(to_new[name] for name in group.nodes) for group in one.groups]
            assert groups == [group.nodes for group in two.groups]


def partitions(items):
    """Every way to put items into groups, as sets of bits."""
    if not items:
        yield []
        return
    first, *rest = items
    for smaller in partitions(rest):
        yield [1 << first, *smaller]
        for place, group in enumerate(smaller):
            yield [*smaller[:place], group | 1 << first, *smaller[place + 1 :]]


def cheapest(graph):
    """The least price over all legal partitions, by trying every one."""
    topo = topology(graph)
    prices = context_of("h200-sxm").prices(graph, topo)
    legal = {mask: not reason_against(topo, mask) for mask in range(1, topo.everything + 1)}
    best = prices.total(1 << place for place in range(len(topo.names)))
    for groups in partitions(list(bits(topo.everything))):
        if all(legal[mask] for mask in groups):
            price = prices.total(groups)
            if price < best - ROUNDING and not cycle(topo, groups):
                best = price
    return best


@settings(max_examples=25)
@given(programs(most=7, kinds=(unary, binary, binary, reduction, product)))
def test_the_solver_equals_trying_every_partition(graph):
    topo = topology(graph)
    found = solve(topo, context_of("h200-sxm").prices(graph, topo))
    assert found.note.startswith("exact over all groups")
    assert found.price == pytest.approx(cheapest(graph), rel=1e-9)


def test_the_solver_equals_trying_every_partition_of_eight_crossed_ops():
    # Four values that each read both inputs, and four that read two of them: many crossed groups are convex.
    b = Builder("crossed")
    x, y = b.input(2048, 2048), b.input(2048, 2048)
    first = [b.op("add", x, y), b.op("mul", x, y), b.reduce("sum", x), b.reduce("amax", y)]
    second = [
        b.op("sub", first[0], first[3]),
        b.op("sub", first[1], first[2]),
        b.reduce("sum", first[0]),
        b.reduce("sum", first[1]),
    ]
    b.output(*second)
    graph = b.graph()
    topo = topology(graph)
    found = solve(topo, context_of("h200-sxm").prices(graph, topo))
    assert len(topo.names) == 8
    assert found.price == pytest.approx(cheapest(graph), rel=1e-9)
