"""Generated kernels over rows so short that the compiler writes them out: a loop in which a thread has a whole row.

Each thread makes one value of the largest result. It loads the rows that this needs and computes what it reads of
them, a value that several of them need once, whatever the threads beside it compute; their loads meet in the cache, so
bytes are those of the tensors (PyTorch 2.11, torch/_inductor: ir.py, Reduction.create; config.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.lowering.counting import Arithmetic, arithmetic
from fusesim.lowering.loops import loop_over
from fusesim.lowering.row_parts import row_shape

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node
    from fusesim.launches import Launch
    from fusesim.lowering.counting import Part

WRITTEN_OUT: Final = 8
"""Inductor's unroll_reductions_threshold: reductions of fewer values are no loops."""


def written_out(part: Part) -> bool:
    """Return whether all reductions of a group are of rows so short that none is left."""
    made = [row_shape(part.graph, node) for node in part.reductions]
    return bool(made) and all(shape.columns < WRITTEN_OUT for shape in made)


def unrolled_loop(part: Part) -> list[Launch]:
    """Return the kernel of a group whose rows are all written out: one loop over its largest result."""
    graph = part.graph
    elements = float(max((graph.tensors[name].elements for name in part.outputs), default=1))
    asked = values_asked(part)
    work = Arithmetic(0.0, 0.0, 0.0, 0.0, 0.0)
    for node in part.nodes:
        work = _added(work, _of_thread(part, node, asked))
    loads = sum(asked.get(graph.base(name), 0.0) for name in dict.fromkeys(part.inputs))
    return [loop_over(part, elements, work, loads)]


def values_asked(part: Part) -> dict[str, float]:
    """Return how many values of each tensor one thread needs, by the tensor's name, views seen through.

    Notes
    -----
    One of what is stored. A reduction needs its row, an op as many values as are asked of it, but of a smaller operand
    only what is not the same for them: the maximum of a row is found once for all powers of that row. Limits: of values
    that are needed both alone and in a row, the one is taken to be of the row; rows of several reductions are not
    joined.
    """
    graph = part.graph
    asked = {graph.base(name): 1.0 for name in part.outputs}
    for node in reversed(part.nodes):
        wanted = max((asked.get(graph.base(name), 0.0) for name in node.outputs), default=1.0)
        for name in node.inputs:
            base = graph.base(name)
            asked[base] = max(asked.get(base, 0.0), _asked_of(graph, node, name, wanted))
    return asked


def _asked_of(graph: Graph, node: Node, name: str, wanted: float) -> float:
    """Return how many values of an operand so many results of an op need."""
    if node.family == "reduction":
        return wanted * row_shape(graph, node).columns
    size = max(graph.tensors[made].elements for made in node.outputs)
    return max(wanted * min(graph.tensors[name].elements / max(size, 1), 1.0), 1.0)


def _of_thread(part: Part, node: Node, asked: dict[str, float]) -> Arithmetic:
    """Return what a thread issues for one op: for each value asked, or, of a reduction, for each of its row."""
    graph = part.graph
    size = max(graph.tensors[name].elements for name in (*node.inputs, *node.outputs))
    times = max(asked.get(graph.base(name), 0.0) for name in node.outputs)
    if node.family == "reduction":
        times *= row_shape(graph, node).columns
    known = arithmetic(graph, [node], float(size), part.shares)
    return Arithmetic(
        known.slots * times, known.special * times, known.serial * times, known.branched * times, known.flops
    )


def _added(one: Arithmetic, other: Arithmetic) -> Arithmetic:
    """Return what two ops issue."""
    return Arithmetic(
        one.slots + other.slots,
        one.special + other.special,
        one.serial + other.serial,
        one.branched + other.branched,
        one.flops + other.flops,
    )
