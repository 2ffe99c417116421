"""Generated kernels with reductions: rows held on chip, and rows looped over; see `row_parts` for those that are cut.

Which of these it is, and in what blocks, is decided from how many rows there are and how long they are (PyTorch 2.11,
Triton 3.6, as launches on an H200 show it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusesim.launches import Launch
from fusesim.lowering.access import ceil
from fusesim.lowering.counting import arithmetic, odd_rows
from fusesim.lowering.passes import JOINED, SHUFFLED, VARIANCES, joining_slots, pass_levels, passes, running_slots
from fusesim.lowering.row_parts import LOOP_THREADS, TILE, RowShape, over_columns, row_shape, two_stages
from fusesim.lowering.rows import WARP
from fusesim.strategies.inductor_loops import splits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.graph import Node
    from fusesim.lowering.counting import Part

HELD: Final = 1024
"""Longest row that a generated kernel keeps on chip."""

HELD_INDIRECT: Final = 64
"""The same where an index says what each value of a row is, so that rows are not read in order (PyTorch 2.11:
torch/_inductor, choices.py, should_use_persistent_reduction; t5 among the measured models)."""

LOADED_BYTES: Final = 16
"""Bytes that a thread loads at once; pieces of a padded row that lie beyond its end are not computed. [B]"""

MANY_ROWS: Final = 512
"""Rows from which on a warp takes one that is held; fewer go to a block each."""

PER_THREAD: Final = 4.0
"""Values to a thread of a block that takes one of few rows."""

FEWEST, WARPS = 8, 32
"""Fewest rows of several that a warp takes, and blocks of a warp or two that an SM runs at a time."""

MANY_OPERANDS: Final = 10
"""Loads and reductions from which on a loop over many rows gets half of the threads, to leave each more registers."""


def row_kernels(part: Part, sms: int) -> list[Launch]:
    """Return the kernels of a group with reductions, on a device of that many SMs."""
    shape = row_shape(part.graph, part.reductions[0])
    levels = pass_levels(part.graph, part.nodes)
    if shape.outer:
        return over_columns(part, shape)
    if splits(shape.rows, shape.columns, sms, outer=False) and not any(levels.values()):
        return two_stages(part, shape, sms)
    if shape.columns <= (HELD_INDIRECT if _indirect(part, shape) else HELD):
        return [_held(part, shape, sms)]
    return [_looped(part, shape, levels, sms)]


def _indirect(part: Part, shape: RowShape) -> bool:
    """Return whether a row is made of what an index names, value by value: not where an index names a whole row."""
    gathers = [node for node in part.nodes if node.family == "gather"]
    return any(part.graph.tensors[node.outputs[0]].shape[-1:] != (shape.columns,) for node in gathers)


def _held(part: Part, shape: RowShape, sms: int) -> Launch:
    """Return the kernel that keeps a row on chip and reads it once."""
    known = arithmetic(part.graph, part.nodes, shape.elements, part.shares, shape.rows)
    many = shape.rows > MANY_ROWS
    whole = float(1 << (shape.columns - 1).bit_length()) if shape.columns > 1 else 1.0
    threads = int(32 if many else min(max(whole / PER_THREAD, 32.0), 256.0))
    per_block = _rows_held(shape.rows, whole, sms) if many else 1.0
    piece = threads * LOADED_BYTES / (2 if part.wide == "16" else 4)
    padded = min(ceil(shape.columns, piece) * piece, whole)
    return Launch(
        name=part.title,
        row=f"gen_held{odd_rows(part.graph, part.inputs, shape.columns)}{part.wide}",
        nodes=part.names,
        reads=part.reads,
        writes=part.writes,
        elements=shape.rows * padded,
        blocks=max(ceil(shape.rows, per_block), 1.0),
        threads=threads,
        resident=min(2048.0 / threads, 32.0),
        joins=float(len(part.reductions)),
        steps=ceil(padded * per_block, threads),
        slots=known.slots + len(part.reads) + len(part.writes),
        special=known.special,
        joined=len(part.reductions) * (_shuffled(whole) * per_block if many else JOINED),
        branched=known.branched,
        chain=padded * per_block / threads,
        code=known.slots * padded * per_block / threads,
        arithmetic=known.flops,
    )


def _rows_held(rows: float, whole: float, sms: int) -> float:
    """Return how many rows a warp takes: fewer where all blocks run at once, since the compiler tries several numbers.

    Of Inductor's 1, 8, 32 and 128, rows of 8 to 32 values took 8 where there were 4096, 32 or 128 where 300 000 (H200).
    """
    most = max(HELD / whole, 1.0)
    return min(most, FEWEST) if rows <= FEWEST * WARPS * sms else most


def _shuffled(whole: float) -> float:
    """Return what a thread issues to join one row of so many values that a warp holds.

    Rows shorter than a warp lie in it side by side: one shuffle joins all of them, and fewer than five are needed.
    """
    lanes = min(whole, WARP)
    return SHUFFLED * lanes / WARP * math.log2(lanes) / math.log2(WARP)


@dataclass(frozen=True, slots=True)
class _Block:
    """How a loop over rows is cut: threads of a block, values of a row in one step, rows that a block takes."""

    threads: int
    tile: int
    rows: float


def _block(part: Part, shape: RowShape, every: Sequence[Sequence[Node]]) -> _Block:
    """Return how a loop over rows is cut: a kernel of many loads and reductions gets half of the threads.

    Notes
    -----
    Inductor's heuristic counts what a kernel loads in all passes and what it reduces, a variance twice (PyTorch 2.11;
    it holds for 285 of 293 kernels measured on an H200; the others were autotuned).
    """
    inputs = set(part.inputs)
    loads = sum(len({name for node in ops for name in node.inputs if name in inputs}) for ops in every)
    reductions = len(part.reductions) + sum(node.kind in VARIANCES for node in part.reductions)
    heavy = shape.rows > MANY_ROWS and loads + reductions >= MANY_OPERANDS
    share = 2 if heavy else 1
    whole = 1 << (shape.columns - 1).bit_length()  # a shorter row is one tile, and takes fewer threads
    tile = min(TILE // share, whole)
    threads = max(LOOP_THREADS * tile // TILE, WARP)
    return _Block(threads, tile, 2.0 if shape.columns <= TILE else 1.0)


def _looped(part: Part, shape: RowShape, levels: dict[str, int], sms: int) -> Launch:
    """Return the kernel that loops over long rows, once per pass, and reads what each pass needs."""
    graph = part.graph
    every = passes(graph, part.nodes, levels, set(part.outputs), int(shape.elements))
    block, count = _block(part, shape, every), len(every)
    steps = ceil(shape.columns, block.tile)
    padded = steps * block.tile / shape.columns
    work = _passed(part, shape, every, shape.columns / block.tile, padded)
    blocks = max(ceil(shape.rows, block.rows), 1.0)
    return Launch(
        name=part.title,
        row=f"gen_rows{_kind_of_loop(part, shape)}_{part.wide}",
        nodes=part.names,
        reads=part.reads,
        writes=part.writes,
        again=work.again,
        window=min(blocks, sms * 4.0) * block.rows * shape.columns * work.item,
        elements=shape.elements * padded * count,
        blocks=blocks,
        threads=block.threads,
        resident=2048 / block.threads,
        joins=float(count),
        steps=count * ceil(shape.columns * block.rows, block.tile),
        chain=shape.columns * padded * block.rows / block.threads * count,
        slots=(work.slots + 2.0 * work.loads + 2.0 * len(part.writes)) / count,
        special=work.special / count,
        joined=work.joined,
        branched=work.branched / count,
        arithmetic=sum(graph.flops(node) for node in part.nodes),
    )


def _kind_of_loop(part: Part, shape: RowShape) -> str:
    """Return what tells loops over rows apart: rows not on 16 bytes, two rows in a block."""
    return odd_rows(part.graph, part.inputs, shape.columns) or ("_short" if shape.columns <= TILE else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passed:
    """What all passes over rows do: bytes read again, instructions, special functions and loads of a value.

    `joined` are the instructions of a thread that join a block's results, `item` the widest element of a row.
    """

    again: float
    slots: float
    special: float
    branched: float
    loads: float
    joined: float
    item: int


def _passed(part: Part, shape: RowShape, every: Sequence[Sequence[Node]], steps: float, padded: float) -> _Passed:
    """Add up what the passes do, each of so many steps over `padded` times as many values."""
    graph, whole = part.graph, int(shape.elements)
    again, slots, special, branched, loads, joined = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    full = {name for name in part.inputs if graph.tensors[name].elements >= whole}
    lines = {name for name in part.inputs if graph.tensors[name].elements >= shape.columns} - full
    seen: set[str] = set()
    for ops in every:
        known = arithmetic(graph, ops, shape.elements, part.shares, shape.rows)
        slots += known.on(padded) + running_slots(graph, ops, steps)
        joined += joining_slots(graph, ops, steps)
        special += known.special
        branched += known.branched
        read = {name for node in ops for name in node.inputs if name in full}
        again += sum(graph.tensors[name].bytes for name in read & seen)
        loads += len(read) + len({name for node in ops for name in node.inputs if name in lines})
        seen |= read
    item = max((graph.tensors[name].itemsize for name in full), default=2)
    return _Passed(again=again, slots=slots, special=special, branched=branched, loads=loads, joined=joined, item=item)
