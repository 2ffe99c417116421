"""Shapes of reductions, and generated kernels that cut them: few long rows into parts, columns into pieces.

Into how many is decided from shapes alone, as Inductor does it (PyTorch 2.11, Triton 3.6, launches on an H200).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access, Launch
from fusesim.lowering.access import accesses, ceil
from fusesim.lowering.counting import arithmetic, odd_rows
from fusesim.lowering.passes import joining_slots, running_slots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.graph import Graph, Node
    from fusesim.lowering.counting import Part

TILE: Final = 2048
"""Values of a row that a block takes in one step of a loop; a last step that is partly empty takes as long."""

LOOP_THREADS: Final = 512
"""Threads of a block that loops over a row."""

ODD_LOAD: Final = 12.0
"""Instructions of a value that is loaded by itself, in rows that do not begin on whole loads (Triton 3.6: 10 more)."""

PART_THREADS: Final = 256
THREADS_PER_SM: Final = 2048
LEAST_VALUES: Final = 32
MOST_VALUES: Final = 512
NEAR: Final = 30
NEAR_MOST: Final = 50
"""How few long rows are cut: threads that a part is cut for, threads of an SM, values of a thread at least and at most,
and how far a divisor of the row may lie from what fills the device, and from the most (Inductor's heuristic, PyTorch
2.11)."""

FEW_COLUMNS: Final = 256
MANY_RESULTS: Final = 8192
"""A reduction over first dimensions is cut where more values than that meet in fewer results than that: see
`fusesim.strategies.inductor`."""

COLUMN_PART: Final = 128
MOST_COLUMN_PARTS: Final = 64
"""Values of one part of a column, and the most parts."""


@dataclass(frozen=True, slots=True)
class RowShape:
    """How many results a reduction has, of how many values each, and whether those lie across the fastest dimension."""

    rows: int
    columns: int
    outer: bool

    @property
    def elements(self) -> float:
        """All values."""
        return float(self.rows) * self.columns


def row_shape(graph: Graph, node: Node) -> RowShape:
    """Return the shape of a reduction."""
    x = graph.tensors[node.inputs[0]]
    dims = [dim for dim in node.attr("dims", ()) if x.shape[dim] != 1]
    columns = max(math.prod(x.shape[dim] for dim in dims), 1)
    last = max((dim for dim in range(len(x.shape)) if x.shape[dim] != 1), default=0)
    return RowShape(max(x.elements // columns, 1), columns, bool(dims) and last not in dims)


def two_stages(part: Part, shape: RowShape, sms: int) -> list[Launch]:
    """Return the kernels of a reduction of few long rows: parts of rows, then each reduction's parts."""
    count = part_count(shape.rows, shape.columns, sms)
    length = math.ceil(shape.columns / count)
    steps = ceil(length, TILE)
    known = arithmetic(part.graph, part.nodes, shape.elements, part.shares, shape.rows)
    stored = _stored(part, shape, count)
    loads = ODD_LOAD if shape.columns % count or odd_rows(part.graph, part.inputs, length) else 2.0
    first = Launch(
        name=part.title,
        row=f"gen_parts{part.wide}",
        nodes=part.names,
        reads=part.reads,
        writes=stored,
        elements=shape.rows * count * steps * TILE,
        blocks=float(shape.rows * count),
        threads=LOOP_THREADS,
        resident=2048 / LOOP_THREADS,
        steps=steps,
        chain=steps * TILE / LOOP_THREADS,
        slots=known.slots + running_slots(part.graph, part.nodes, length / TILE) + loads * len(part.reads),
        special=known.special,
        joined=joining_slots(part.graph, part.nodes, length / TILE),
        branched=known.branched,
        arithmetic=known.flops,
    )
    return [first, *_joins(part, shape, stored)]


def part_count(rows: int, columns: int, sms: int) -> int:
    """Return into how many parts Inductor cuts each of few long rows.

    Parameters
    ----------
    rows, columns : int
        How many rows, and how long they are.
    sms : int
        SMs of the device.

    Notes
    -----
    Blocks of 256 threads: 32 values to a thread while that fills the device no more than once, then as many as make
    four blocks to an SM, half of its threads, rounded to a divisor of the row if one is near, at most some 512
    (PyTorch 2.11; the first kernels' grids on an H200 agree for all 60 shapes measured).

    Examples
    --------
    >>> part_count(1, 14336, 132), part_count(64, 50304, 132), part_count(1, 16384 * 4096, 132)
    (2, 7, 512)
    """
    threads = sms * THREADS_PER_SM
    total = rows * columns
    if total <= LEAST_VALUES * threads:
        each = LEAST_VALUES
    elif total < MOST_VALUES * threads:
        blocks = math.ceil(threads / (2 * PART_THREADS) / rows)
        each = _near_divisor(columns, math.ceil(columns / (PART_THREADS * blocks)), NEAR)
    else:
        each = _near_divisor(columns, MOST_VALUES, NEAR_MOST)
    return math.ceil(columns / (each * PART_THREADS))


def _near_divisor(columns: int, wanted: int, near_by: int) -> int:
    """Return the divisor of a row's length that is nearest to a number of values, or that number if none is near."""
    near = [at for at in range(max(wanted - near_by + 1, LEAST_VALUES), wanted + near_by) if columns % at == 0]
    return min(near, key=lambda at: abs(at - wanted), default=wanted)


def over_columns(part: Part, shape: RowShape) -> list[Launch]:
    """Return the kernels of a reduction over first dimensions, in two stages where results are few."""
    split = shape.columns > FEW_COLUMNS and shape.rows < MANY_RESULTS
    count = min(max(shape.columns // COLUMN_PART, 1), MOST_COLUMN_PARTS) if split else 1
    known = arithmetic(part.graph, part.nodes, shape.elements, part.shares, shape.rows)
    stored = _stored(part, shape, count)
    first = Launch(
        name=part.title,
        row=f"gen_columns{part.wide}",
        nodes=part.names,
        reads=part.reads,
        writes=part.writes if count == 1 else stored,
        elements=shape.elements,
        blocks=max(float(math.ceil(shape.rows / 8) * count / 4), 1.0),
        threads=128,
        resident=16,
        steps=ceil(shape.columns / count, 32.0),
        slots=known.slots + 2.0 * len(part.reads),
        special=known.special,
        arithmetic=known.flops,
    )
    return [first] if count == 1 else [first, *_joins(part, shape, stored)]


def _stored(part: Part, shape: RowShape, count: int) -> tuple[Access, ...]:
    """Return where the results of so many parts of each row lie. [B]."""
    return tuple(Access(f"{node.name}.parts", 4.0 * shape.rows * count) for node in part.reductions)


def _joins(part: Part, shape: RowShape, stored: Sequence[Access]) -> list[Launch]:
    """Return the kernels that join the parts of each reduction."""
    return [_joining(part, node, at, shape.rows) for node, at in zip(part.reductions, stored, strict=True)]


def _joining(part: Part, node: Node, stored: Access, rows: int) -> Launch:
    """Return the kernel that joins the parts of one reduction."""
    count = stored.bytes / 4.0 / rows
    return Launch(
        name=f"{node.kind} of parts",
        row="gen_last",
        nodes=(node.name,),
        reads=(stored,),
        writes=accesses(part.graph, [name for name in node.outputs if name in part.outputs]),
        elements=float(rows * count),
        blocks=max(float(math.ceil(rows / 64)), 1.0),
        threads=64,
        resident=32,
        steps=ceil(count, 8.0),
    )
