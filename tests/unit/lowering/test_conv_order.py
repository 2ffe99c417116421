"""Convolutions in a compiled graph: which are turned to channels last, and with what kernels, by hand."""

import pytest

from fusesim.builder import Builder
from fusesim.lowering.conv_order import turned


def network(x, weights, *, groups=1, last=False):
    b = Builder("network")
    strides = (x[1] * x[2] * x[3], 1, x[3] * x[1], x[1]) if last else None
    value = b.input(*x, dtype="bf16", strides=strides)
    for shape in weights:
        value = b.op("relu", b.conv(value, b.parameter(*shape, dtype="bf16"), padding=(1, 1), groups=groups))
    b.output(value)
    return b.graph()


def convs(graph):
    return [node for node in graph.nodes if node.kind == "conv"]


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (network((8, 64, 28, 28), [(128, 64, 3, 3)]), True),
        (network((8, 64, 28, 28), [(128, 64, 3, 3)], last=True), False),  # as they are already
        (network((8, 64, 28, 28), [(64, 16, 3, 3)], groups=4), False),  # groups take 1.36 times as long
        (network((8, 64, 28, 28), [(64, 1, 3, 3)], groups=64), True),  # one channel each
    ],
)
def test_pictures_are_turned_where_it_pays(graph, expected):
    assert turned(graph, convs(graph)[0]) is expected


def test_one_dimension_is_left_as_it_is():
    b = Builder("sound")
    x, w = b.input(4, 80, 3000, dtype="bf16"), b.parameter(768, 80, 3, dtype="bf16")
    b.output(b.conv(x, w, stride=(1,), padding=(1,), dilation=(1,)))
    graph = b.graph()
    assert not turned(graph, convs(graph)[0])


def test_what_comes_from_outside_is_turned_and_what_is_generated_is_not(generated):
    def build(b):
        x = b.input(8, 64, 28, 28, dtype="bf16")
        first = b.conv(x, b.parameter(64, 64, 3, 3, dtype="bf16"), padding=(1, 1))
        return b.conv(b.op("relu", first), b.parameter(128, 64, 1, 1, dtype="bf16"))

    names = [one.name for one in generated(build)]
    assert names.count("conv operand turned") == 2  # the picture, and the window of nine; a window of one is none
    assert "conv layout" not in names
    turning = next(one for one in generated(build) if one.name == "conv operand turned")
    assert turning.bytes_read == turning.bytes_written == 8 * 64 * 28 * 28 * 2
