"""Random programs that write over what they read, whole or parts: every strategy has a legal plan, and a price."""

from __future__ import annotations

import random

import pytest

import fusesim
from fusesim.builder import Builder
from fusesim.errors import GraphError
from fusesim.strategies import STRATEGIES


def over_a_part(b, x, y):
    """Copy y over x, which may be a view."""
    if x.shape != y.shape:
        raise GraphError("another shape")
    made = b.tensor(x.shape, x.dtype, stem="into", strides=x.strides, of=x, offset=x.offset)
    b.node("copy_into", [x, y], [made], over=x.name)
    return made


def step(b, draw, x, y):
    """Add one op of a random kind; most of them may write over x."""
    over = {"over": True} if draw.random() < 0.4 else {}
    half = max(x.shape[-1], 2) // 2 if x.shape else 1
    makes = (
        lambda: b.op(draw.choice(["relu", "exp", "neg"]), x, **over),
        lambda: b.op(draw.choice(["add", "mul", "maximum"]), x, y, **over),
        lambda: b.slice(x, -1, *draw.choice([(0, half), (half, 2 * half), (1, half + 1)])),
        lambda: b.slice(x, 0, 0, x.shape[0], 2),
        lambda: b.transpose(x),
        lambda: b.view(x, (x.elements,)),
        lambda: b.reduce(draw.choice(["sum", "amax", "argmax"]), x, (draw.choice([0, -1]),)),
        lambda: b.softmax(x),
        lambda: b.layer_norm(x),
        lambda: b.matmul(x, b.transpose(y)),
        lambda: b.concat([x, y], 0),
        lambda: b.copy(x),
        lambda: over_a_part(b, x, y),
    )
    return draw.choices(makes, weights=[5, 6, 3, 1, 1, 1, 2, 1, 1, 1, 1, 1, 2])[0]()


def program(seed):
    """Return a program of up to 20 ops, none of which reads a name that another has written over."""
    draw = random.Random(seed)
    b = Builder(f"program {seed}")
    shape = draw.choice([(8, 16), (4, 4), (1, 16), (16, 1), (0, 4)])
    live = [b.input(*shape, dtype="fp32") for _ in range(3)]
    for _ in range(40):
        try:
            live.append(step(b, draw, draw.choice(live[-6:]), draw.choice(live[-6:])))
        except (GraphError, IndexError):
            continue  # shapes that do not fit
        gone = b.nodes[-1].attr("over")
        live = [tensor for tensor in live if tensor.name != gone]
        if len(b.nodes) > 20:
            break
    b.output(*draw.sample(live, 2))
    return b.graph()


GRAPHS = [program(seed) for seed in range(60)]


def test_most_programs_write_over_something():
    assert sum(any(node.attr("over") for node in graph.paid_nodes) for graph in GRAPHS) > len(GRAPHS) / 2


@pytest.mark.parametrize("strategy", sorted(STRATEGIES.keys() - {"optimal"}))
def test_every_program_has_a_legal_plan_and_a_price(strategy):
    for graph in GRAPHS:
        plan = fusesim.plan(graph, strategy)  # refuses what is not legal
        assert fusesim.price(plan, path="torch").time >= 0
        if strategy == "eager":
            assert len(plan.groups) == len(graph.paid_nodes)


def test_small_programs_have_an_exact_plan():
    for graph in GRAPHS:
        if len(graph.paid_nodes) <= 7:
            fusesim.plan(graph, "optimal")
