"""The order of work inside one kernel: passes over a row, what is computed in each, and what is kept between them.

A pointwise kernel is one pass. A row kernel goes through its row once per reduction that waits for another, and once
more for what comes behind the last. What an earlier pass made is held in registers where the row fits; where it does
not, every pass reads and computes again what it needs. Values per row are computed between the passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from fusesim.emit.axes import Axis, Loops, loops_of
from fusesim.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.graph import Graph, Node

MOST_THREADS: Final = 1024
"""Threads that a block may have, on every CUDA device since 2010."""

HELD_VALUES: Final = 32
"""Values of a row that a thread holds at most: half of the 64 registers that 1024 threads leave it."""

LONG: Final = 2**31
"""From so many elements on an index needs 64 bits."""


class Pass(NamedTuple):
    """One way through the row: values loaded or computed at each place in order, then reductions, then stores."""

    values: tuple[str, ...]
    reductions: tuple[Node, ...]
    stores: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """The work of one kernel.

    `between[p]` are values per row that are ready before pass p, the last entry those behind all passes. `held` are
    the values that stay in registers from one pass to a later one.
    """

    part: Graph
    axes: tuple[Axis, ...]
    loops: Loops
    passes: tuple[Pass, ...]
    between: tuple[tuple[str, ...], ...]
    row_stores: tuple[str, ...]
    held: tuple[str, ...]
    fits: bool

    @property
    def is_row(self) -> bool:
        """Whether a reduction runs over rows."""
        return any(axis.reduced for axis in self.axes)

    @property
    def rows(self) -> int:
        """How many rows there are; of a pointwise kernel, how many values."""
        return math.prod(axis.size for axis in self.axes if not axis.reduced)

    @property
    def columns(self) -> int:
        """How many values a row has."""
        return math.prod(axis.size for axis in self.axes if axis.reduced)

    @property
    def long(self) -> bool:
        """Whether an index needs 64 bits."""
        extents = [
            sum((axis.size - 1) * abs(step) for axis, step in zip(self.axes, steps, strict=True))
            for steps in self.loops.strides.values()
        ]
        return max([self.rows * self.columns, *extents]) + 16384 >= LONG

    def source(self, name: str) -> str:
        """Return the tensor whose value a name stands for, views seen through."""
        return self.part.base(name)

    def in_row(self, name: str) -> bool:
        """Return whether a tensor has a value per place of a row, or of the whole space of a pointwise kernel."""
        flags = self.loops.spans[self.source(name)]
        return not self.is_row or any(own for own, axis in zip(flags, self.axes, strict=True) if axis.reduced)


def nest_of(part: Graph) -> Nest:
    """Return the work of the kernel that computes a graph of pointwise ops and reductions.

    Raises
    ------
    PlanError
        If its ops do not go over one space, there is nothing to compute, or a row is read after it was written over.
    """
    empty = next((tensor for tensor in part.tensors.values() if not tensor.elements), None)
    if empty is not None:
        raise PlanError(f"{part.name}: {empty.name} {empty.shape} has no values, so there is no kernel to write")
    loops = _completed(loops_of(part), part)
    shape = _Shape(part, loops)
    held = _passes(shape, again=False)[1]
    columns = math.prod(axis.size for axis in loops.axes if axis.reduced)
    fits = columns * max(len(held), 1) <= MOST_THREADS * HELD_VALUES
    passes, kept = _passes(shape, again=not fits)
    if not fits and len(passes) > 1:
        _check_overwrites(part)
    levels = range(len(passes) + 1)
    between = tuple(tuple(name for name in shape.row_values if shape.row_level(name) == level) for level in levels)
    stores = tuple(name for name in part.outputs if not shape.in_row(name))
    return Nest(
        part=part,
        axes=loops.axes,
        loops=loops,
        passes=passes,
        between=between,
        row_stores=stores,
        held=kept if fits else (),
        fits=fits,
    )


def _completed(loops: Loops, part: Graph) -> Loops:
    """Add loops of one step where all of a kernel's are of one value: a row needs rows and columns."""
    reduces = any(node.family == "reduction" for node in part.nodes)
    missing = []
    if not any(not axis.reduced for axis in loops.axes):
        missing.append((0, Axis("row" if reduces else "i", 1)))
    if reduces and not any(axis.reduced for axis in loops.axes):
        missing.append((len(loops.axes) + len(missing), Axis("column", 1, reduced=True)))
    axes, strides, spans = list(loops.axes), dict(loops.strides), dict(loops.spans)
    for place, axis in missing:
        axes.insert(place, axis)
        strides = {name: (*own[:place], 0, *own[place:]) for name, own in strides.items()}
        spans = {name: (*own[:place], False, *own[place:]) for name, own in spans.items()}
    if len(axes) == 1 and not reduces:
        axes = [Axis("i", axes[0].size)]
    return Loops(tuple(axes), strides, spans)


def _check_overwrites(part: Graph) -> None:
    """Refuse passes that read again what an earlier one wrote over."""
    for node in part.nodes:
        over = node.attr("over")
        if over is not None and node.family != "view":
            raise PlanError(f"op {node.name} writes over {over}, which a later pass reads again; write to a new tensor")


class _Shape:
    """What depends on what in a kernel: levels (after how many reductions) and what varies along a row."""

    def __init__(self, part: Graph, loops: Loops) -> None:
        self.part = part
        self.reduces = any(node.family == "reduction" for node in part.nodes)
        self.spans = {
            name: not self.reduces or any(own for own, axis in zip(flags, loops.axes, strict=True) if axis.reduced)
            for name, flags in loops.spans.items()
        }
        if self.reduces and all(axis.size == 1 for axis in loops.axes if axis.reduced):
            self.spans.update(_before_reductions(part))
        self.levels = dict.fromkeys(part.inputs, 0)
        for node in part.nodes:
            level = max((self.levels[name] for name in node.inputs), default=0)
            self.levels.update(dict.fromkeys(node.outputs, level + (node.family == "reduction")))
        made = [name for node in part.paid_nodes for name in node.outputs]
        self.row_values = [name for name in (*part.inputs, *made) if not self.in_row(name)]

    def in_row(self, name: str) -> bool:
        """Return whether a tensor varies along a row."""
        return self.spans[self.part.base(name)]

    def row_level(self, name: str) -> int:
        """Return before which pass a value per row is ready."""
        return self.levels[name]

    def needs(self, name: str) -> list[str]:
        """Return the values in the row that one is computed from."""
        node = self.part.producers.get(name)
        found = [self.part.base(own) for own in node.inputs] if node else []
        return [own for own in dict.fromkeys(found) if self.spans[own]]


def _before_reductions(part: Graph) -> dict[str, bool]:
    """Return for rows of one value what stands before a reduction: it is in the row."""
    found: dict[str, bool] = {}
    for node in reversed(part.nodes):
        if node.family == "reduction" or any(found.get(name) for name in node.outputs):
            found.update(dict.fromkeys((part.base(name) for name in node.inputs), True))
    return found


def _passes(shape: _Shape, *, again: bool) -> tuple[tuple[Pass, ...], tuple[str, ...]]:
    """Return the passes, and what is held between them; with `again` nothing is, and passes compute anew."""
    part = shape.part
    roots: dict[int, list[str]] = {}
    reductions: dict[int, list[Node]] = {}
    stores: dict[int, list[str]] = {}
    for node in part.nodes:
        if node.family == "reduction":
            level = shape.levels[node.inputs[0]]
            reductions.setdefault(level, []).append(node)
            roots.setdefault(level, []).append(part.base(node.inputs[0]))
    for name in part.outputs:
        if shape.in_row(name):
            stores.setdefault(shape.levels[name], []).append(name)
            roots.setdefault(shape.levels[name], []).append(part.base(name))
    done: set[str] = set()
    held: dict[str, None] = {}
    found = []
    for level in range(max(roots, default=0) + 1):
        values: dict[str, None] = {}
        for name in roots.get(level, []):
            _collect(shape, name, values, set() if again else done, held)
        done.update(values)
        found.append(Pass(tuple(values), tuple(reductions.get(level, ())), tuple(stores.get(level, ()))))
    return tuple(found), tuple(held)


def _collect(shape: _Shape, name: str, values: dict[str, None], done: Iterable[str], held: dict[str, None]) -> None:
    """Put a value, and first what it needs, into a pass; what an earlier pass made is held."""
    stack = [(name, False)]
    while stack:
        own, ready = stack.pop()
        if own in values or not shape.spans[own]:
            continue
        if own in done:
            held[own] = None
        elif ready:
            values[own] = None
        else:
            stack.append((own, True))
            stack.extend((before, False) for before in reversed(shape.needs(own)))
