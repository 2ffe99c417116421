"""Branches of a concatenation that are alike: priced once, planned as if each were priced."""

import random

import pytest

from fusesim.builder import Builder
from fusesim.group_cost import group_cost
from fusesim.strategies import horizontal, optimal, vertical
from fusesim.strategies.base import Context
from fusesim.strategies.twins import Alike
from fusesim.topology import topology


def joined(*branches):
    """A concatenation of what functions add to a builder."""
    b = Builder("joined")
    shared = b.input(8, 256, dtype="bf16", name="shared")
    b.output(b.op("relu", b.concat([branch(b, shared) for branch in branches], 0)))
    return b.graph()


def given(b):
    return b.input(8, 256, dtype="bf16")


def one(b, _):
    return b.op("neg", given(b))


def dear(b, _):
    return b.op("exp", given(b))


def two(b, _):
    return b.op("tanh", b.op("mul", given(b), given(b)))


def square(b, _):
    x = given(b)
    return b.op("tanh", b.op("mul", x, x))


def sharing(b, shared):
    return b.op("add", given(b), shared)


def wide(b, _):
    return b.op("neg", b.input(16, 256, dtype="bf16"))


def turned(b, _):
    return b.op("neg", b.transpose(b.input(256, 8, dtype="bf16")))


def kept(b, _):
    x = b.op("neg", given(b))
    b.output(x)
    return x


def first(graph, *names):
    topo = topology(graph)
    return topo.named(Alike(graph, topo).first(topo.mask(names)))


def test_the_first_branches_stand_for_all_like_them():
    graph = joined(one, one, dear, one)
    assert first(graph, "neg_1") == ("neg",)
    assert first(graph, "neg_1", "neg_2", "concat") == ("neg", "neg_1", "concat")
    assert first(graph, "exp", "neg_2") == ("neg", "exp")


def test_a_branch_moves_with_all_its_ops():
    graph = joined(two, two, two)
    assert first(graph, "mul_2", "tanh_2", "tanh_1") == ("mul", "tanh", "tanh_1")
    assert first(graph, "mul_1", "tanh_2") == ("tanh", "mul_1")  # of two branches, not of one


def test_what_all_read_does_not_tell_them_apart():
    assert first(joined(sharing, sharing), "add_1") == ("add",)


@pytest.mark.parametrize(
    "branches",
    [(one, wide), (wide, one), (one, turned), (one, kept), (kept, one), (one, dear), (kept, kept), (turned, turned)],
)
def test_branches_that_differ_stand_for_themselves(branches):
    graph = joined(*branches)
    last = graph.paid_nodes[1].name
    assert first(graph, last) == (last,)


def test_a_value_read_twice_is_not_two_values():
    assert first(joined(square, two), "tanh_1") == ("tanh_1",)
    assert first(joined(square, square), "mul_1", "tanh_1") == ("mul", "tanh")


def test_the_same_tensor_named_twice_is_no_branch():
    b = Builder("twice")
    x, y = (b.op("neg", given(b)) for _ in range(2))
    b.output(b.concat([x, y, y], 0))
    assert first(b.graph(), "neg_1") == ("neg_1",)


MIXED = (one, dear, two, sharing, one, wide, two, square, sharing, one, turned, two)


def test_a_set_costs_what_the_one_that_stands_for_it_costs():
    graph = joined(*MIXED)
    topo, cost = topology(graph), group_cost("h200-sxm")
    alike, draw = Alike(graph, topo), random.Random(3)
    moved = 0
    for _ in range(200):
        mask = draw.getrandbits(len(topo.names)) | topo.mask(["concat"])
        other = alike.first(mask)
        moved += other != mask
        assert cost(graph, topo.named(other)) == pytest.approx(cost(graph, topo.named(mask)), rel=1e-12)
    assert moved > 100


@pytest.mark.parametrize("branches", [(one,) * 12, (two,) * 5, MIXED, (one, sharing) * 6], ids=len)
@pytest.mark.parametrize("strategy", [vertical, horizontal])
def test_plans_are_those_of_pricing_each(monkeypatch, strategy, branches):
    graph = joined(*branches)
    quick = strategy.decide(graph, Context(group_cost("h200-sxm"))).groups
    monkeypatch.setattr(Alike, "first", lambda _, mask: mask)
    assert strategy.decide(graph, Context(group_cost("h200-sxm"))).groups == quick


def test_an_optimal_plan_costs_the_same(monkeypatch):
    graph, cost = joined(one, one, two, two), group_cost("h200-sxm")

    def total():
        plan = optimal.decide(graph, Context(cost))
        return sum(cost(plan.graph, group.nodes) for group in plan.groups)

    quick = total()
    monkeypatch.setattr(Alike, "first", lambda _, mask: mask)
    assert total() == pytest.approx(quick, rel=1e-9)


def test_a_wide_concatenation_is_planned_with_few_prices():
    asked = []
    cost = group_cost("h200-sxm")

    def counting(graph, ops):
        asked.append(ops)
        return cost(graph, ops)

    (group,) = vertical.decide(joined(*[one] * 60), Context(counting)).groups
    assert len(group.nodes) == 62
    assert len(asked) < 4 * 60  # 1890 if each is priced
