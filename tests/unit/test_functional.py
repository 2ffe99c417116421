"""Which writes over intermediates a compiler may turn into new tensors, and which somebody would notice."""

from __future__ import annotations

from fusesim.builder import Builder
from fusesim.strategies.functional import functional


def over(graph):
    """Return the ops that write over something."""
    return [node.name for node in graph.paid_nodes if node.attr("over")]


def intermediate(b):
    return b.op("exp", b.input(4, 8, dtype="fp32"))


def test_an_op_over_an_intermediate_makes_a_tensor():
    b = Builder()
    b.output(b.op("neg", b.view(b.op("relu", intermediate(b), over=True), (32,)), over=True))
    made = functional(b.graph())
    assert over(made) == []
    assert {name: tensor.storage for name, tensor in made.tensors.items()} == {
        "x": "x",
        "exp": "exp",
        "relu": "relu",
        "view": "relu",  # a view goes where its source went
        "neg": "neg",
    }


def test_what_the_program_was_handed_stays_written_over():
    b = Builder()
    b.output(b.op("relu", b.input(4, 8), over=True))
    graph = b.graph()
    assert functional(graph) is graph


def test_a_part_that_is_read_with_the_whole_stays_written_over():
    def halves(read_whole):
        b = Builder()
        x = intermediate(b)
        changed = [b.op("neg", b.slice(x, 1, start, start + 4), over=True) for start in (0, 4)]
        b.output(b.op("abs", x) if read_whole else b.op("add", *changed))
        return functional(b.graph())

    assert over(halves(read_whole=True)) == ["neg", "neg_1"]
    assert over(halves(read_whole=False)) == []  # the halves share no value, so each may move


def test_a_write_at_a_place_without_a_name_keeps_its_memory_as_it_is():
    b = Builder()
    x = intermediate(b)
    changed = b.op("neg", x, over=True)
    part = b.tensor((8,), "fp32", stem="fill", of=changed)  # the view that it wrote over is not in the graph
    b.node("fill", [], [part], scalar=0.0, over="gone")
    b.output(b.op("abs", changed))
    assert over(functional(b.graph())) == ["neg", "fill"]
