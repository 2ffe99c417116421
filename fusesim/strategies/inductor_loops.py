"""Inductor's loops: one for each stored value, with all that is computed on the way to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node

LIBRARY: Final = frozenset({"matmul", "conv", "attention", "normalise"})
LIBRARY_KINDS: Final = frozenset(
    {
        "sort",
        "topk",
        "cumsum",
        "embedding_bag",
        "scatter",
        "opaque",
        "copy_into",
        "batch_norm_train",
        "embedding_backward",
    }
)
"""Families and kinds that run in kernels of their own."""

MOST_CONCATENATED: Final = 8
"""Inductor's max_pointwise_cat_inputs: more tensors are put next to each other by a kernel each."""

LONG_ROW: Final = 8192
"""A reduction is split where rows are longer than this and fewer than twice the SMs."""


@dataclass(slots=True)
class Loop:
    """What will be one kernel: its roots (stored values), how many values it loops over, and what it reduces."""

    roots: list[str]
    size: int
    rows: int = 0
    columns: int = 0
    outer: bool = False
    library: bool = False
    split: bool = False
    reads: dict[str, int] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)
    cone: set[str] = field(default_factory=set)


def is_library(node: Node) -> bool:
    """Return whether an op runs in kernels of its own."""
    if node.kind == "concat" and len(node.inputs) > MOST_CONCATENATED:
        return True
    return node.family in LIBRARY or node.kind in LIBRARY_KINDS


def first_loops(form: Graph, stored: set[str], sms: int) -> list[Loop]:
    """Return one loop per stored value, with the cone of ops that are computed on the way to it."""
    loops = []
    for node in form.paid_nodes:
        if node.name not in stored:
            continue
        loop = _loop(form, node, sms)
        _collect(form, node, stored, loop)
        for name in node.outputs:
            loop.writes[form.tensors[name].storage] = form.tensors[name].bytes
        loops.append(loop)
    return loops


def _loop(form: Graph, node: Node, sms: int) -> Loop:
    """Return the loop of one stored value."""
    output = form.tensors[node.outputs[0]]
    if is_library(node):
        return Loop([node.name], output.elements, library=True)
    if node.family != "reduction":
        return Loop([node.name], output.elements)
    x = form.tensors[node.inputs[0]]
    dims = [dim for dim in node.attr("dims", ()) if x.shape[dim] != 1]
    columns = math.prod(x.shape[dim] for dim in dims)
    rows = max(x.elements // max(columns, 1), 1)
    last = max((dim for dim in range(len(x.shape)) if x.shape[dim] != 1), default=0)
    outer = bool(dims) and last not in dims
    return Loop(
        [node.name], x.elements, rows=rows, columns=columns, outer=outer, split=splits(rows, columns, sms, outer=outer)
    )


def splits(rows: int, columns: int, sms: int, *, outer: bool) -> bool:
    """Return whether a reduction runs in two stages: too few rows to fill the device.

    Notes
    -----
    Rows in one piece: fewer than twice the SMs, longer than 8192 values. Over first dimensions: fewer results than a
    device's worth of threads, and many values for each.
    """
    if outer:
        return columns > 256 and rows * columns < 2**27 and rows < 8192  # noqa: PLR2004 - see ir.py's num_splits
    return rows < 2 * sms and columns > LONG_ROW


def _collect(form: Graph, node: Node, stored: set[str], loop: Loop) -> None:
    """Add an op and what is computed on the way to it; note what is read."""
    stack = [node]
    while stack:
        node = stack.pop()
        if node.name in loop.cone:
            continue
        loop.cone.add(node.name)
        for name in node.inputs:
            producer = form.producers.get(form.base(name))
            if producer is not None and producer.name not in stored:
                stack.append(producer)
            else:
                tensor = form.tensors[name]
                loop.reads[tensor.storage] = max(loop.reads.get(tensor.storage, 0), tensor.bytes)


def compatible(one: Loop, other: Loop) -> bool:
    """Return whether two loops can be one kernel."""
    if one.library or other.library:
        return False
    if one.rows and other.rows:
        return (one.rows, one.columns, one.outer) == (other.rows, other.columns, other.outer)
    if one.rows or other.rows:
        reduction, loop = (one, other) if one.rows else (other, one)
        if reduction.outer:
            return loop.size == reduction.rows and not reduction.split
        return loop.size in {reduction.size, reduction.rows}
    return one.size == other.size
