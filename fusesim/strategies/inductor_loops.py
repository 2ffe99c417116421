"""Inductor's scheduler: one loop for each stored value, then loops that share memory become one kernel."""

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
    loop.cone.add(node.name)
    for name in node.inputs:
        base = form.base(name)
        producer = form.producers.get(base)
        if producer is not None and producer.name not in stored:
            if producer.name not in loop.cone:
                _collect(form, producer, stored, loop)
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


def fuse(loops: list[Loop]) -> list[Loop]:
    """Fuse loops that share memory, the pair that shares most first."""
    alive = dict(enumerate(loops))
    tried = True
    while tried:
        tried = False
        pairs = []
        keys = list(alive)
        for place, i in enumerate(keys):
            for j in keys[place + 1 :]:
                shared = _shared(alive[i], alive[j])
                if shared and compatible(alive[i], alive[j]):
                    pairs.append((-shared, i, j))
        for _, i, j in sorted(pairs):
            if i in alive and j in alive and _allowed(alive, i, j):
                alive[i] = _merged(alive[i], alive.pop(j))
                tried = True
    return list(alive.values())


def _shared(one: Loop, other: Loop) -> int:
    """Return the bytes of memory that two loops both touch."""
    mine = one.reads | one.writes
    yours = other.reads | other.writes
    return sum(max(size, yours[name]) for name, size in mine.items() if name in yours)


def _allowed(alive: dict[int, Loop], i: int, j: int) -> bool:
    """Return whether fusing two loops closes no circle, and no split reduction is needed within."""
    one, other = alive[i], alive[j]
    if not compatible(one, other):
        return False
    for first, second in ((one, other), (other, one)):
        if first.split and any(name in second.reads for name in first.writes):
            return False
    if one.split != other.split and (one.rows and other.rows):
        return False
    if (one.split or other.split) and not (one.rows and other.rows):
        return False
    writers = _writers(alive)
    return not _between(alive, writers, i, j) and not _between(alive, writers, j, i)


def _writers(alive: dict[int, Loop]) -> dict[str, set[int]]:
    """Return which loops write each memory."""
    writers: dict[str, set[int]] = {}
    for key, loop in alive.items():
        for name in loop.writes:
            writers.setdefault(name, set()).add(key)
    return writers


def _between(alive: dict[int, Loop], writers: dict[str, set[int]], start: int, end: int) -> bool:
    """Return whether a way leads from one loop to another through a third.

    Of memory that several loops write, each in its part, all count as read by whoever reads any: a way too many costs
    a fusion, one too few closes a circle.
    """

    def before(key: int) -> set[int]:
        return set().union(*(writers.get(name, ()) for name in alive[key].reads)) - {start, end, key}

    goal = alive[start].writes
    seen: set[int] = set()
    stack = list(before(end))
    while stack:
        key = stack.pop()
        if key in seen:
            continue
        seen.add(key)
        if any(name in goal for name in alive[key].reads):
            return True
        stack.extend(before(key))
    return False


def _merged(one: Loop, other: Loop) -> Loop:
    """Return two loops as one kernel."""
    reduction = one if one.rows else other
    return Loop(
        [*one.roots, *other.roots],
        max(one.size, other.size),
        rows=reduction.rows,
        columns=reduction.columns,
        outer=reduction.outer,
        split=one.split or other.split,
        reads=_joined(one.reads, other.reads),
        writes=one.writes | other.writes,
        cone=one.cone | other.cone,
    )


def _joined(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """Return what either reads, the larger part of each."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in (*one, *other)}
