"""What the kernel of a group moves and computes: bytes from memory once, bytes again, and arithmetic.

Bytes that a group makes and nobody outside wants never reach memory; an operand that several of its ops read is read
once. What does not come for free is counted too: rows read again, keys and values read per tile, values computed
several times, registers spilled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusesim.resources import REGISTER_BYTES, TILE, resources_of
from fusesim.templates import shape_of
from fusesim.topology import bits, topology

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.graph import Graph
    from fusesim.limits import Limits
    from fusesim.resources import Resources
    from fusesim.spaces import Part
    from fusesim.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a kernel moves and computes.

    `read` and `written` are bytes that must pass, `again` bytes read once more, `spilled` bytes of registers that do
    not fit, written and read back [B]. `flops` of plain and `tensor_flops` of matrix arithmetic [FLOP], of which
    `repeated` is what a value computed several times adds. `template` is the kind of kernel.
    """

    template: str
    read: int
    written: int
    again: int
    spilled: int
    flops: float
    tensor_flops: float
    repeated: float
    resources: Resources

    @property
    def bytes(self) -> int:
        """Everything that it moves. [B]."""
        return self.read + self.written + self.again + self.spilled


def external_bytes(graph: Graph, nodes: Iterable[str]) -> tuple[int, int]:
    """Return the bytes that a kernel of some ops must read and write, each tensor once. [B].

    Raises
    ------
    InputError
        If an op is unknown.
    """
    topo = topology(graph)
    return moved(topo, topo.mask(nodes))


def moved(topo: Topology, mask: int) -> tuple[int, int]:
    """Return the bytes that a set of ops must read and write. [B].

    Notes
    -----
    Views of one tensor that a kernel reads count once each, together at most as much as the tensor. A result counts
    when the graph returns it or an op outside reads it. Of what only feeds a gather in the same kernel, only the chosen
    places are read.
    """
    views: dict[tuple[int, str], int] = {}
    written = 0
    picked = topo.picked(mask)
    for place in bits(mask):
        item = topo.items[place]
        for read in item.reads:
            if read.producer < 0 or not mask >> read.producer & 1:
                key = (read.base, read.name)
                size = math.ceil(read.bytes * picked[place]) if place in picked else read.bytes
                views[key] = max(views.get(key, 0), size)
        for write in item.writes:
            if write.kept or write.readers & ~mask:
                written += write.bytes
    return _capped(topo, views), written


def _capped(topo: Topology, views: dict[tuple[int, str], int]) -> int:
    """Add the bytes of views, those of one tensor at most its own."""
    totals: dict[int, int] = {}
    for (base, _), size in views.items():
        totals[base] = totals.get(base, 0) + size
    return sum(min(size, topo.sizes[base]) for base, size in totals.items())


def work_of(topo: Topology, mask: int, limits: Limits) -> Work:
    """Return what the kernel of a legal set of ops moves and computes."""
    shape = shape_of(topo, mask)
    occupied = resources_of(topo, mask, limits)
    nests = [moved(topo, part.mask) for part in shape.parts]
    again = 0
    flops = tensor = repeated = 0.0
    for part in shape.parts:
        plain, matrix, extra = _arithmetic(topo, part)
        flops, tensor, repeated = flops + plain, tensor + matrix, repeated + extra
        if shape.template == "attention":
            again += _tiles_again(topo, part)
        elif occupied.passes > 1:
            again += _rows_again(topo, part)
    elements = sum(part.elements for part in shape.parts)
    # Each spilled register of each thread goes out once and comes back once; a vector's values spill together.
    spilled = 2 * REGISTER_BYTES * occupied.spilled * min(elements, occupied.blocks * occupied.threads)
    return Work(
        template=shape.template,
        read=sum(read for read, _ in nests),
        written=sum(written for _, written in nests),
        again=again,
        spilled=spilled,
        flops=flops,
        tensor_flops=tensor,
        repeated=repeated,
        resources=occupied,
    )


def _arithmetic(topo: Topology, part: Part) -> tuple[float, float, float]:
    """Return plain and matrix arithmetic of a nest, and what of the plain is repeated. [FLOP]."""
    plain = matrix = repeated = 0.0
    folds = part.template == "conv" and part.mask & (part.mask - 1) != 0
    for place in bits(part.mask):
        item = topo.items[place]
        if item.role in {"matmul", "conv", "attention"}:
            matrix += item.flops
        elif not (folds and item.kind == "batch_norm"):
            factor = part.factors.get(place, 1.0)
            plain += factor * item.flops
            repeated += (factor - 1.0) * item.flops
    return plain, matrix, repeated


def _tiles_again(topo: Topology, part: Part) -> int:
    """Return the bytes of keys and values that attention reads once more: all of them per tile of queries. [B]."""
    whole = [topo.items[place] for place in bits(part.mask) if topo.items[place].role in {"matmul", "attention"}]
    held = whole[0].reads[1:3] if len(whole) == 1 else [item.reads[1] for item in whole]
    return (-(-whole[0].shape[-2] // TILE) - 1) * sum(read.bytes for read in held)


def _rows_again(topo: Topology, part: Part) -> int:
    """Return the bytes that a row kernel reads once more where its row does not stay on chip. [B].

    Notes
    -----
    Each level needs again what its values are computed from, up to the reductions behind it.
    """
    needs: dict[int, int] = {}
    sizes: dict[int, int] = {}
    by_level: dict[int, int] = {}
    for place, level in part.levels.items():
        need = 0
        for read in topo.items[place].reads:
            if read.producer >= 0 and part.mask >> read.producer & 1:
                need |= 0 if topo.items[read.producer].role == "reduce" else needs.get(read.producer, 0)
            else:
                need |= 1 << read.base
                sizes[read.base] = read.bytes
        needs[place] = need
        by_level[level] = by_level.get(level, 0) | need
    once = total = 0
    for need in by_level.values():
        once |= need
        total += sum(sizes[base] for base in bits(need))
    return total - sum(sizes[base] for base in bits(once))
