"""A graph's ops and edges as integers, so that planners can try many groups of ops quickly.

A set of ops is an int with a bit per paid op, in the graph's order; a tensor is the index of the tensor that owns
what a read touches, views seen through. Nothing here decides anything: what may share a kernel is `fusesim.spaces`,
what a group moves is `fusesim.group_work`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from fusesim.bitsets import bits, closure, successors_of
from fusesim.errors import InputError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fusesim.graph import Graph, Node
    from fusesim.tensor import Shape, Tensor

__all__ = [
    "Item",
    "Read",
    "Signature",
    "Topology",
    "Write",
    "bits",
    "broadcast_runs",
    "chosen_bytes",
    "rows_of",
    "runs",
    "topology",
]

Signature = tuple[tuple[int, bool], ...]
"""Runs of dimensions in order: how many values, and whether they are reduced (or broadcast over)."""

ROLES: Final = {
    "pointwise": "point",
    "random": "point",
    "copy": "point",
    "concat": "point",
    "gather": "point",
    "reduction": "reduce",
    "matmul": "matmul",
    "conv": "conv",
    "attention": "attention",
    "normalise": "library",
}
"""What an op is in a kernel, by family."""

ALONE: Final = frozenset({"opaque", "scatter", "embedding_bag", "copy_into"})
"""Kinds that no generated kernel takes in, whatever their family."""

GATHERS: Final = frozenset({"embedding", "index", "gather"})
"""Kinds whose first operand is read at places that the other operands choose."""

MOVING: Final = frozenset({"permute", "slice", "select", "as_strided"})
"""Views through which a thread reads another thread's value."""


class Read(NamedTuple):
    """One operand: the tensor that owns it, who makes that (-1: nobody), and what the read touches.

    `shape` is the operand's as read; `moved` says that a view between reorders or cuts; `chosen` that an index picks
    what is read.
    """

    base: int
    producer: int
    name: str
    bytes: int
    shape: Shape
    elements: int
    moved: bool
    chosen: bool


class Write(NamedTuple):
    """One result: its tensor, bytes, readers as a set of ops, and whether the graph returns it."""

    base: int
    bytes: int
    readers: int
    kept: bool


class Item(NamedTuple):
    """What a planner asks of an op.

    `elements` is the iteration space: values out, for a reduction values in. `signature` says for a reduction which
    runs of dimensions are reduced. `width` is the bytes of its widest value. `sources` are those of its reads that an
    op makes; `loads` and `makes` say of each tensor in and out how many values a loop over it holds.
    """

    name: str
    kind: str
    role: str
    elements: int
    shape: Shape
    flops: float
    width: int
    reads: tuple[Read, ...]
    writes: tuple[Write, ...]
    signature: Signature
    over: bool
    sources: tuple[Read, ...]
    loads: tuple[tuple[int, int], ...]
    makes: tuple[tuple[int, int], ...]


class Topology:
    """A graph as integers; made once per graph by `topology`."""

    def __init__(self, graph: Graph) -> None:
        nodes = graph.paid_nodes
        self.names = tuple(node.name for node in nodes)
        self.index = {name: place for place, name in enumerate(self.names)}
        self.everything = (1 << len(nodes)) - 1
        self.preds = [self._set(graph.predecessors[name]) for name in self.names]
        self.succs = successors_of(self.preds)
        self.ancestors = closure(self.preds, range(len(nodes)))
        self.descendants = closure(self.succs, reversed(range(len(nodes))))
        self.looks = graph.tensors
        self.tensors: list[str] = []
        self.sizes: list[int] = []
        self._bases: dict[str, int] = {}
        readers: dict[int, int] = {}
        reads = []
        for place, node in enumerate(nodes):
            reads.append(tuple(self._read(graph, node, name) for name in node.inputs))
            for read in reads[-1]:
                readers[read.base] = readers.get(read.base, 0) | 1 << place
        self.readers = readers
        self.items = [
            _item(graph, node, found, tuple(self._write(graph, name) for name in node.outputs))
            for node, found in zip(nodes, reads, strict=True)
        ]
        self.roles: dict[str, int] = {}
        for place, item in enumerate(self.items):
            self.roles[item.role] = self.roles.get(item.role, 0) | 1 << place
        self.moving = sum(1 << at for at, item in enumerate(self.items) if any(read.moved for read in item.sources))
        self.choosing = sum(1 << at for at, item in enumerate(self.items) if any(read.chosen for read in item.sources))
        self.memo: dict[int, object] = {}

    def _set(self, names: Iterable[str]) -> int:
        """Return ops as a set."""
        return sum(1 << self.index[name] for name in set(names))

    def _base(self, graph: Graph, name: str) -> int:
        """Return the index of the tensor behind a name."""
        base = graph.base(name)
        if base not in self._bases:
            self._bases[base] = len(self.tensors)
            self.tensors.append(base)
            self.sizes.append(graph.tensors[base].bytes)
        return self._bases[base]

    def _read(self, graph: Graph, node: Node, name: str) -> Read:
        """Describe one operand."""
        tensor = graph.tensors[name]
        producer = graph.producers.get(graph.base(name))
        chosen = node.kind in GATHERS | {"embedding_bag"} and name == node.inputs[0]
        return Read(
            base=self._base(graph, name),
            producer=self.index[producer.name] if producer else -1,
            name=name,
            bytes=chosen_bytes(graph, node) if chosen else tensor.bytes,
            shape=tensor.shape,
            elements=tensor.elements,
            moved=_moved(graph, name),
            chosen=chosen,
        )

    def _write(self, graph: Graph, name: str) -> Write:
        """Describe one result."""
        base = self._base(graph, name)
        return Write(base, graph.tensors[name].bytes, self.readers.get(base, 0), name in graph.kept)

    def mask(self, names: Iterable[str]) -> int:
        """Return ops as a set.

        Raises
        ------
        InputError
            If the graph has no such op, or it is a view and costs nothing.
        """
        mask = 0
        for name in names:
            place = self.index.get(name)
            if place is None:
                raise InputError(f"{excerpt(name)} is no op that costs something; known: {', '.join(self.names[:12])}")
            mask |= 1 << place
        return mask

    def named(self, mask: int) -> tuple[str, ...]:
        """Return the names of a set of ops, in the graph's order."""
        return tuple(self.names[place] for place in bits(mask))

    def reach(self, mask: int, near: Sequence[int]) -> int:
        """Return the union of what `near` holds for the ops of a set."""
        found = 0
        for place in bits(mask):
            found |= near[place]
        return found

    def picked(self, mask: int) -> dict[int, float]:
        """Return the ops of a set of which only chosen values are needed, and how often each value is computed.

        A gather of what pointwise ops of its own kernel make asks for the chosen values only: an op of which every
        reader is such a gather, or is picked itself, runs at the chosen places.
        """
        found: dict[int, float] = {}
        if not mask & self.choosing:
            return found
        for place in reversed(list(bits(mask))):
            item = self.items[place]
            readers = 0
            for write in item.writes:
                readers |= write.readers | (self.everything + 1 if write.kept else 0)
            if item.role != "point" or not readers or readers & ~mask:
                continue
            values = [self._asked(place, reader, found) for reader in bits(readers)]
            if None not in values:
                found[place] = min(1.0, sum(value or 0.0 for value in values) / max(item.elements, 1))
        return found

    def _asked(self, place: int, reader: int, found: dict[int, float]) -> float | None:
        """Return how many values of an op a reader asks for where it picks, else None."""
        item = self.items[reader]
        if any(read.chosen for read in item.sources if read.producer == place):
            return float(item.elements)
        return found[reader] * item.elements if reader in found else None

    def between(self, mask: int) -> int:
        """Return the ops outside a set that lie on a way from one of its ops to another."""
        return self.reach(mask, self.descendants) & self.reach(mask, self.ancestors) & ~mask


_KEY: Final = "_topology"


def topology(graph: Graph) -> Topology:
    """Return a graph's topology, made on the first call and kept beside the graph's own derived tables."""
    kept = vars(graph)
    found = kept.get(_KEY)
    if not isinstance(found, Topology):
        found = kept[_KEY] = Topology(graph)
    return found


def runs(shape: Shape, flags: Sequence[bool]) -> Signature:
    """Return dimensions as runs of the same flag; dimensions of one value vanish.

    Examples
    --------
    >>> runs((4, 1, 8, 16), (False, False, False, True))
    ((32, False), (16, True))
    """
    found: list[tuple[int, bool]] = []
    for size, flag in zip(shape, flags, strict=True):
        if size == 1:
            continue
        if found and found[-1][1] == flag:
            found[-1] = (found[-1][0] * size, flag)
        else:
            found.append((size, flag))
    return tuple(found)


def broadcast_runs(operand: Shape, result: Shape) -> Signature:
    """Return over which runs of a result's dimensions an operand repeats.

    Examples
    --------
    >>> broadcast_runs((8, 1), (8, 4)), broadcast_runs((4,), (8, 4))
    (((8, False), (4, True)), ((8, True), (4, False)))
    """
    padded = (1,) * (len(result) - len(operand)) + tuple(operand)
    return runs(result, [size == 1 for size in padded])


def chosen_bytes(graph: Graph, node: Node) -> int:
    """Return the bytes that a gather reads of its table: as many as it returns, at most the table. [B]."""
    table, index = graph.tensors[node.inputs[0]], graph.tensors[node.inputs[1]]
    values = graph.tensors[node.outputs[0]].elements
    if node.kind == "embedding_bag":
        values = index.elements * table.shape[-1]
    return min(table.bytes, values * table.itemsize)


def _item(graph: Graph, node: Node, reads: tuple[Read, ...], writes: tuple[Write, ...]) -> Item:
    """Describe one op."""
    tensors = [graph.tensors[name] for name in (*node.inputs, *node.outputs)]
    role = "library" if node.kind in ALONE else ROLES[node.family]
    space = tensors[0] if role == "reduce" else graph.tensors[node.outputs[0]]
    return Item(
        name=node.name,
        kind=node.kind,
        role=role,
        elements=space.elements,
        shape=space.shape,
        flops=graph.flops(node),
        width=max((tensor.itemsize for tensor in tensors), default=1),
        reads=reads,
        writes=writes,
        signature=_reduced(node, space) if role == "reduce" else (),
        over=any(graph.tensors[name].is_view for name in node.outputs),
        sources=tuple(read for read in reads if read.producer >= 0),
        loads=tuple({read.base: (read.base, read.elements) for read in reads}.values()),
        makes=tuple((write.base, 0 if role == "reduce" else space.elements) for write in writes),
    )


def _reduced(node: Node, space: Tensor) -> Signature:
    """Return which runs of its operand's dimensions a reduction reduces."""
    dims = node.attr("dims", tuple(range(len(space.shape))))
    return runs(space.shape, [place in dims for place in range(len(space.shape))])


def rows_of(signature: Signature) -> tuple[int, int]:
    """Return how many rows a reduction has, and how many values each."""
    return (
        math.prod(size for size, reduced in signature if not reduced),
        math.prod(size for size, reduced in signature if reduced),
    )


def _moved(graph: Graph, name: str) -> bool:
    """Return whether a tensor is seen through a view that reorders or cuts."""
    node = graph.producers.get(name)
    while node is not None and node.family == "view":
        if node.kind in MOVING:
            return True
        node = graph.producers.get(node.inputs[0])
    return False
