"""Where zeros and NaNs reach a division, a root or a variance, and what PyTorch's kernels take longer for it.

Measured: h200_special.json, 20 480 values: a quotient takes 1.1 us longer where zeros reach it, silu 1.2 to 1.4 after a
relu, sigmoid nothing; after the root of what may be negative 0.7 to 1.1 us.
"""

import pytest

from fusesim.builder import Builder
from fusesim.lowering.functors import FUNCTORS, dependent
from fusesim.lowering.slow_paths import NAN, ZERO, Slow, slow_path, slow_row, values_of


def chain(*kinds):
    """Return a graph of ops one after the other."""
    b = Builder("chain")
    x = b.input(40, 512, dtype="bf16")
    for kind in kinds:
        x = b.softmax(x, -1) if kind == "softmax" else b.op(kind, x)
    b.output(x)
    return b.graph()


@pytest.mark.parametrize(
    ("kinds", "cost"),
    [
        (("silu",), Slow()),  # normal values take the quick way
        (("relu", "silu"), ZERO["silu"]),  # half of them are zero
        (("relu", "exp", "silu"), Slow()),  # exp(0) is 1
        (("sqrt", "silu"), NAN["silu"]),  # half of them are roots of negative ones
        (("abs", "sqrt", "silu"), Slow()),
        (("sigmoid", "sqrt"), Slow()),  # all positive
        (("sqrt",), NAN["sqrt"]),
        (("relu", "sqrt"), ZERO["sqrt"]),
        (("relu", "sigmoid"), Slow()),  # 1 over 1 + exp(0)
        (("relu", "rsqrt", "sigmoid"), NAN["sigmoid"]),  # 1 over 0 is infinite
        (("relu", "neg", "silu"), ZERO["silu"]),
        (("relu", "tanh", "silu"), ZERO["silu"]),
        (("relu", "gelu"), Slow()),  # no division in it
    ],
)
def test_values_tell_which_way_an_op_takes(kinds, cost):
    graph = chain(*kinds)
    assert slow_path(graph, graph.nodes[-1]) == cost


@pytest.mark.parametrize(
    ("kinds", "slow"), [(("softmax",), False), (("relu", "softmax"), False), (("sqrt", "softmax"), True)]
)
def test_a_softmax_waits_for_nans_alone(kinds, slow):
    graph = chain(*kinds)
    node = next(node for node in graph.nodes if node.kind == "softmax")
    assert bool(slow_row(graph, node).slots) is slow


def test_a_quotient_by_a_number_is_a_product():
    b = Builder("quotients")
    x = b.op("relu", b.input(40, 512, dtype="bf16"))
    by_number, of_number = b.op("div", x, scalar=1.25), b.op("div", x, scalar=1.25, reverse=True)
    b.output(by_number, of_number)
    graph = b.graph()
    one, other = (node for node in graph.nodes if node.kind == "div")
    assert slow_path(graph, one) == Slow()
    assert slow_path(graph, other) == ZERO["div"]
    assert values_of(graph)[other.outputs[0]].nan  # infinite
    assert not values_of(graph)[one.outputs[0]].nan


def test_what_is_subtracted_from_itself_is_zero():
    b = Builder("nothing")
    x = b.input(40, 512, dtype="bf16")
    zero = b.op("sub", x, x)
    b.output(b.op("div", x, zero), b.op("sub", x, b.input(40, 512, dtype="bf16")))
    graph = b.graph()
    assert [values_of(graph)[name].zero for name in (graph.nodes[0].outputs[0], graph.nodes[2].outputs[0])] == [
        True,
        False,
    ]


def test_an_op_that_was_not_measured_takes_its_cycles_and_more_in_a_partial_block():
    assert dependent("erfc", 40.0) == (40.0, 85.0, 0.0)
    assert all(one.partial >= one.full for one in FUNCTORS.values())


def built(make):
    """Return the graph of what a function makes of two inputs."""
    b = Builder("made")
    b.output(make(b, b.input(40, 512, dtype="bf16"), b.input(40, 512, dtype="bf16")))
    return b.graph()


@pytest.mark.parametrize(
    ("make", "cost"),
    [
        (lambda b, x, _: b.op("sqrt", b.op("mul", x, x)), Slow()),  # a square, however it is written
        (lambda b, x, y: b.op("sqrt", b.op("mul", x, y)), NAN["sqrt"]),
        (lambda b, x, _: b.op("sqrt", b.op("mul", b.op("exp", x), scalar=-1.0)), NAN["sqrt"]),
        (lambda b, x, _: b.op("sqrt", b.op("add", b.reduce("var", x, [-1]), scalar=1e-5)), Slow()),
        (lambda b, x, y: b.op("div", b.op("maximum", x, scalar=0.0), y), ZERO["div"]),  # a relu, however it is written
        (lambda b, x, y: b.op("div", b.op("relu", x), y), ZERO["div"]),
        (lambda b, x, y: b.op("div", b.op("maximum", x, scalar=1.0), y), Slow()),
        (lambda b, x, y: b.op("silu", b.op("where", b.op("gt", b.op("log", x), y), x, y)), Slow()),  # 0 or 1
        (lambda b, x, y: b.op("div", x, b.op("relu", y)), ZERO["div"]),
    ],
)
def test_a_rule_follows_values_and_not_how_they_are_written(make, cost):
    graph = built(make)
    assert slow_path(graph, graph.nodes[-1]) == cost
