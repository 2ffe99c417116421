"""Generated kernels over rows so short that the compiler writes them out: a loop in which a thread has a whole row.

Each thread makes one value of the largest result. It loads the rows that this needs and computes what it reads of
them, a value that several of them need once, whatever the threads beside it compute; their loads meet in the cache, so
bytes are those of the tensors (PyTorch 2.11, torch/_inductor: ir.py, Reduction.create; config.py). Where that would be
too many loads, a kernel before it makes what is the same for a row, and keeps it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access
from fusesim.lowering.counting import Arithmetic, arithmetic
from fusesim.lowering.loops import loop_over
from fusesim.lowering.row_parts import row_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.graph import Graph, Node
    from fusesim.launches import Launch
    from fusesim.lowering.counting import Part

WRITTEN_OUT: Final = 8
"""Inductor's unroll_reductions_threshold: reductions of fewer values are no loops."""


def written_out(part: Part) -> bool:
    """Return whether all reductions of a group are of rows so short that none is left."""
    made = [row_shape(part.graph, node) for node in part.reductions]
    return bool(made) and all(shape.columns < WRITTEN_OUT for shape in made)


MOST_LOADED: Final = 4
"""Inductor's realize_reads_threshold: a value that takes more loads is kept, not computed by each of its readers."""

KEPT: Final = "var_mean"
"""A kind whose mean is kept in any case (PyTorch 2.11: lowering.py, var_mean_sum_)."""


def unrolled_loops(part: Part) -> list[Launch]:
    """Return the kernels of a group whose rows are all written out: a loop over its largest result, or two.

    Notes
    -----
    Rows of five values or more, and of two or more where a variance is taken, have a loop over the rows before it (as
    an H200 ran 54 programs of rows of 1 to 7 values).
    """
    shapes = [row_shape(part.graph, node) for node in part.reductions]
    longest, rows = max(shape.columns for shape in shapes), max(shape.rows for shape in shapes)
    wide = any(part.graph.tensors[name].elements > rows for name in part.outputs)
    moments = longest > 1 and any(node.kind == KEPT for node in part.reductions)
    if wide and (longest > MOST_LOADED or moments):
        return _in_two(part, rows, longest)
    return [_in_one(part)]


def _in_two(part: Part, rows: float, columns: float) -> list[Launch]:
    """Return a loop over rows that keeps what is the same for all of a row, and one over the results that reads it."""
    graph = part.graph
    before = _leading_to(part, [name for node in part.reductions for name in node.outputs])
    after = _leading_to(part, part.outputs, past_reductions=False)
    kept = (Access(f"{part.names[0]}.kept", 4.0 * rows * sum(len(node.outputs) for node in part.reductions)),)
    found = _work(part, before, lambda node: columns if _in_rows(graph, node, rows) else 1.0)
    reads = _read(part, before)
    first = replace(loop_over(part, rows, found, columns * len(reads)), reads=reads, writes=kept, nodes=_names(before))
    elements = float(max(graph.tensors[name].elements for name in part.outputs))
    loop = loop_over(part, elements, _work(part, after, lambda _: 1.0), len(part.inputs) + len(part.reductions))
    return [first, replace(loop, reads=(*_read(part, after), *kept), nodes=_names(after))]


def _names(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the names of ops."""
    return tuple(node.name for node in nodes)


def _in_rows(graph: Graph, node: Node, rows: float) -> bool:
    """Return whether an op works on each value of a row."""
    return node.family == "reduction" or max(graph.tensors[name].elements for name in node.outputs) > rows


def _leading_to(part: Part, ends: Sequence[str], *, past_reductions: bool = True) -> tuple[Node, ...]:
    """Return the ops of a group that lead to some of its tensors, reductions and what is behind them only if wanted."""
    wanted = set(ends)
    found = []
    for node in reversed(part.nodes):
        if wanted.intersection(node.outputs) and (past_reductions or node.family != "reduction"):
            found.append(node)
            wanted.update(part.graph.base(name) for name in node.inputs)
    return tuple(reversed(found))


def _read(part: Part, nodes: Sequence[Node]) -> tuple[Access, ...]:
    """Return what of a group's reads some of its ops make."""
    named = {part.graph.tensors[name].storage for node in nodes for name in node.inputs}
    return tuple(access for access in part.reads if access.storage in named)


def _work(part: Part, nodes: Sequence[Node], times: Callable[[Node], float]) -> Arithmetic:
    """Return what a thread issues for ops, each so many times."""
    total = Arithmetic(0.0, 0.0, 0.0, 0.0, 0.0)
    for node in nodes:
        size = max(part.graph.tensors[name].elements for name in (*node.inputs, *node.outputs))
        total = _added(total, _scaled(arithmetic(part.graph, [node], float(size), part.shares), times(node)))
    return total


def _in_one(part: Part) -> Launch:
    """Return the one loop over a group's largest result."""
    graph = part.graph
    elements = float(max((graph.tensors[name].elements for name in part.outputs), default=1))
    asked = values_asked(part)
    work = _work(part, part.nodes, lambda node: _times(graph, node, asked))
    loads = sum(asked.get(graph.base(name), 0.0) for name in dict.fromkeys(part.inputs))
    return loop_over(part, elements, work, loads)


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


def _times(graph: Graph, node: Node, asked: dict[str, float]) -> float:
    """Return how often a thread does one op: for each value asked, or, of a reduction, for each of its row."""
    wanted = max(asked.get(graph.base(name), 0.0) for name in node.outputs)
    return wanted * (row_shape(graph, node).columns if node.family == "reduction" else 1.0)


def _scaled(known: Arithmetic, times: float) -> Arithmetic:
    """Return what is issued so many times; FLOP are those of the graph all the same."""
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
