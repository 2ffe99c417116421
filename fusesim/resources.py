"""What the kernel of a group occupies: registers, shared memory, and how many of its threads a multiprocessor holds.

An estimate from shapes and liveness, not from a compiler; it says which groups are in danger of spilling, which rows
do not stay on chip, and what limits a kernel. Assumptions stand as named numbers beside their reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from fusesim.templates import shape_of
from fusesim.topology import bits, topology

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.graph import Graph
    from fusesim.limits import Limits
    from fusesim.spaces import Part
    from fusesim.topology import Topology

BASE_REGISTERS: Final = 16
"""Indices, bounds and loop counters of a generated kernel."""

POINTER_REGISTERS: Final = 2
"""A 64-bit address per tensor in memory."""

VECTOR_BYTES: Final = 16
"""The widest load of a thread."""

ATTENTION_REGISTERS: Final = 168
"""Registers per thread of published tiled attention kernels: 65536 / 168 leaves room for 384 threads."""

REGISTER_BYTES: Final = 4
WARP: Final = 32
LOOP_THREADS: Final = 256
MOST_THREADS: Final = 1024

TILE: Final = 128
"""Rows and columns of a matrix tile per block, and queries per attention tile."""

TILE_DEPTH: Final = 64
"""Inner values of a tile that are on chip at once, and keys per attention step."""

STAGES: Final = 3
"""Tiles on their way at once."""

ROW_REGISTERS: Final = 64
"""Values of a row per thread up to which compilers keep it in registers rather than in shared memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a kernel occupies.

    `registers` per thread as it would need them, `spilled` of them beyond what a thread may have, `live` values at
    once, `shared_memory` per block [B], `threads` per block, `blocks` in all. `passes` over a row, `row_bytes` that
    must stay on chip for one [B]; `on_chip` is None where the device's limits are unknown. `occupancy` is the share of
    a multiprocessor's threads that fit, None where a limit is unknown, and `limit` what it is bound by.
    """

    registers: int
    spilled: int
    live: int
    shared_memory: int
    threads: int
    blocks: int
    passes: int
    row_bytes: int
    on_chip: bool | None
    occupancy: float | None
    limit: str | None


def resources(graph: Graph, nodes: Iterable[str], limits: Limits) -> Resources:
    """Return what the kernel of some ops occupies; of loop nests side by side the largest counts, and all blocks.

    Parameters
    ----------
    graph : Graph
        The graph.
    nodes : iterable of str
        Ops that may share a kernel (`fusesim.legality.why_not`).
    limits : Limits
        The device's limits.
    """
    topo = topology(graph)
    return resources_of(topo, topo.mask(nodes), limits)


def resources_of(topo: Topology, mask: int, limits: Limits) -> Resources:
    """Return what the kernel of a set of ops occupies."""
    shape = shape_of(topo, mask)
    found = [_of_part(topo, part.template, part, limits) for part in shape.parts]
    if len(found) == 1:
        return found[0]
    largest = max(found, key=lambda one: (one.spilled, one.registers, one.shared_memory))
    return replace(largest, blocks=sum(one.blocks for one in found))


class Live(NamedTuple):
    """Values of a straight run through a loop nest.

    `values` live at once, `registers` that they need per thread, `pointers` to tensors in memory, `vector` values of
    the widest type that a thread works on at once.
    """

    values: int
    registers: int
    pointers: int
    vector: int


def liveness(topo: Topology, part: Part) -> Live:
    """Return how many values are live at once in a loop nest, and what they need.

    Notes
    -----
    Ops run in the graph's order; an operand from memory is loaded where it is first used and held to its last use, a
    value from where it is made. A compiler may load again or reorder, so this is an upper bound for straight code.
    A value of the whole space takes a register per value of a thread's vector, one per row or less takes one.
    """
    items, readers, mask = topo.items, topo.readers, part.mask
    places = list(bits(mask))
    vector = max(1, VECTOR_BYTES // max([items[place].width for place in places]))
    whole = part.elements
    ends: dict[int, list[int]] = {}
    seen: set[int] = set()
    values = peak = registers = most = pointers = 0
    for place in places:
        item = items[place]
        fresh = [pair for pair in item.loads if pair[0] not in seen]
        for base, elements in (*fresh, *item.makes):
            seen.add(base)
            size = vector if elements >= whole else 1
            end = (readers.get(base, 0) & mask).bit_length() - 1
            ends.setdefault(max(end, place), []).append(size)
            values += 1
            registers += size
        pointers += len(fresh) + sum([write.kept or write.readers & ~mask != 0 for write in item.writes])
        peak, most = max(peak, values), max(most, registers)
        gone = ends.pop(place, ())
        values -= len(gone)
        registers -= sum(gone)
    return Live(peak, most, pointers, vector)


def _of_part(topo: Topology, template: str, part: Part, limits: Limits) -> Resources:
    """Return what one loop nest occupies."""
    live = liveness(topo, part)
    if template == "row":
        return _row(topo, part, live, limits)
    if template in {"matmul", "conv", "attention"}:
        return _tiled(topo, template, part, live, limits)
    registers = BASE_REGISTERS + POINTER_REGISTERS * live.pointers + live.registers
    blocks = -(-part.elements // (LOOP_THREADS * live.vector))
    return _made(limits, Use(registers, live.values, 0, LOOP_THREADS, blocks))


def row_footprint(topo: Topology, part: Part) -> int:
    """Return the bytes of a row that must stay on chip between its reductions. [B].

    Notes
    -----
    A value of the whole space that is needed at a higher level than the one at which it is made or first read must be
    kept; the largest sum over the levels counts.
    """
    spans: dict[int, tuple[int, int, int]] = {}
    for place, level in part.levels.items():
        item = topo.items[place]
        for read in item.reads:
            made = read.producer in part.levels and topo.items[read.producer].role != "reduce"
            whole = read.elements == part.elements
            if not whole or (read.producer >= 0 and part.mask >> read.producer & 1 and not made):
                continue
            low = part.levels[read.producer] if made else level
            size = read.bytes // max(read.elements, 1) or 1
            first, final, _ = spans.get(read.base, (low, level, size))
            spans[read.base] = (min(first, low), max(final, level), size)
    edges = range(part.passes - 1)
    kept = [sum(size for low, high, size in spans.values() if low <= edge < high) for edge in edges]
    return max(kept, default=0) * part.length


class Use(NamedTuple):
    """What a kernel takes: registers per thread, live values, shared memory and threads per block, blocks. [B]."""

    registers: int
    live: int
    shared_memory: int
    threads: int
    blocks: int


def _row(topo: Topology, part: Part, live: Live, limits: Limits) -> Resources:
    """Return what a row kernel occupies: a block per row, the row in registers, shared memory, or read again."""
    row_bytes = row_footprint(topo, part)
    threads = min(MOST_THREADS, max(WARP, 1 << (max(1, part.length // live.vector) - 1).bit_length()))
    on_chip: bool | None = True
    shared = WARP * REGISTER_BYTES
    held = -(-row_bytes // (REGISTER_BYTES * threads))
    if held > ROW_REGISTERS:
        room = limits.shared_memory_per_block
        on_chip = None if room is None else row_bytes <= room
        shared = row_bytes if on_chip else shared
        held = 0
    passes = part.passes if on_chip is False else 1
    registers = BASE_REGISTERS + POINTER_REGISTERS * live.pointers + max(live.registers, held)
    use = Use(registers, live.values, shared, threads, part.rows)
    return replace(_made(limits, use), passes=passes, row_bytes=row_bytes, on_chip=on_chip)


def _tiled(topo: Topology, template: str, part: Part, live: Live, limits: Limits) -> Resources:
    """Return what a tiled kernel occupies: a tile of the output in registers, tiles of the operands on chip."""
    items = [topo.items[place] for place in bits(part.mask)]
    shape = items[-1].shape
    columns = max(shape[-1] if shape else 1, 1)
    tiles = -(-(part.elements // columns) // TILE)
    width = VECTOR_BYTES // live.vector
    if template == "attention":
        head = max(items[0].reads[0].shape[-1], columns)
        shared = _fitting((TILE + 2 * TILE_DEPTH) * head * width, limits)
        return _made(limits, Use(ATTENTION_REGISTERS, live.values, shared, LOOP_THREADS, tiles))
    held = TILE * TILE // LOOP_THREADS
    epilogue = max(live.registers - live.vector, 0) if len(items) > 1 else 0
    registers = BASE_REGISTERS + POINTER_REGISTERS * live.pointers + held + epilogue
    shared = _fitting(STAGES * 2 * TILE * TILE_DEPTH * width, limits)
    return _made(limits, Use(registers, live.values, shared, LOOP_THREADS, tiles * -(-columns // TILE)))


def _fitting(size: int, limits: Limits) -> int:
    """Return the shared memory of a tiled kernel, its tiles halved at most twice to fit a block. [B]."""
    room = limits.shared_memory_per_block
    for _ in range(2):
        if room is not None and size > room:
            size //= 2
    return size


def _made(limits: Limits, use: Use) -> Resources:
    """Put a kernel's resources together with what they leave of a multiprocessor."""
    most = limits.registers_per_thread
    spilled = max(0, use.registers - int(most)) if most is not None else 0
    occupancy, limit = occupied(limits, use.registers - spilled, use.shared_memory, use.threads)
    return Resources(
        registers=use.registers,
        spilled=spilled,
        live=use.live,
        shared_memory=use.shared_memory,
        threads=use.threads,
        blocks=use.blocks,
        passes=1,
        row_bytes=0,
        on_chip=True,
        occupancy=occupancy,
        limit=limit,
    )


def occupied(limits: Limits, registers: int, shared: int, threads: int) -> tuple[float | None, str | None]:
    """Return which share of a multiprocessor's threads is resident, and what limits it; None where unknown.

    Examples
    --------
    >>> from fusesim.limits import Limits
    >>> most = Limits(threads=2048, blocks=32, registers=65536, shared_memory=233472)
    >>> occupied(most, 64, 0, 256)
    (0.5, 'registers')
    """
    known = (limits.threads, limits.blocks, limits.registers, limits.shared_memory)
    if any(figure is None for figure in known):
        return None, None
    most_threads, most_blocks, file, memory = (float(figure) for figure in known if figure is not None)
    fits = {
        "threads": most_threads // threads,
        "blocks": most_blocks,
        "registers": file // (max(registers, 1) * threads),
        "shared memory": memory // shared if shared else math.inf,
    }
    limit = min(fits, key=lambda name: fits[name])
    return min(1.0, fits[limit] * threads / most_threads), limit
