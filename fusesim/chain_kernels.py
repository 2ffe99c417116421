"""Which kernels a chain is made of, and what each does: bytes from memory and cache, instructions, blocks.

Pure counting; this file knows no time. Unfused, op i writes a tensor that op i + 1 reads at once. Between writing a
byte and reading it, the two kernels touch twice the tensor (and the extra operands of the second), so that is its
reuse distance; the share that is still in the cache costs cache time only, the rest goes to memory and back. The
first input and the last output are cold unless the chain is repeated on the same buffers: then the distance is the
footprint of all buffer sets that passes rotate over, with the intermediates that they share.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from fusesim import work
from fusesim.arrays import ONE, ZERO, ceiling, flag, larger, smaller
from fusesim.kernel import TURNAROUND, KernelShape, reused_share
from fusesim.ops import ERF_STALL, ROW_SETUP, DType, Op
from fusesim.values import SLOW, slow_shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.arrays import Numbers
    from fusesim.machine import Machine
    from fusesim.paths import Style
    from fusesim.work import Chain


FLOAT_MAX: Final = 3.4e38
"""A fused kernel keeps single precision between its ops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """How a chain is run: everything but the chain and the machine. Times in seconds; numbers broadcast.

    `buffer_sets` is over how many sets of buffers repeated passes rotate: 1 finds its inputs where the last pass
    left them, infinitely many never meet a buffer again. `host_factors` are the ends of the host interval's own range
    over it: hosts drift, GPUs do not.
    """

    dtype: DType
    style: Style
    launch: str
    buffer_sets: Numbers
    effects: frozenset[str]
    floor: Numbers
    stream_gap: Numbers
    replay: Numbers
    graph_repeats: Numbers
    host_interval: Numbers
    host_factors: tuple[float, float] = (1.0, 1.0)


class Instructions(NamedTuple):
    """What a kernel issues per element, and the operands it reads."""

    slots: Numbers
    overhead: Numbers
    special: Numbers
    serial: Numbers
    tensors: int
    rows: int


class Piece(NamedTuple):
    """Kernels that are alike: how many, their shape, what memory serves of it, and how many of them end the chain.

    `cold` and `evicted` are shares, see `fusesim.kernel.kernel_time`.
    `dram_load` is what `dram_bytes` cost, in bytes of a copy, see `fusesim.kernel.TURNAROUND`.
    """

    kernels: Numbers
    shape: KernelShape
    dram_bytes: Numbers
    dram_load: Numbers
    cold: Numbers
    evicted: Numbers
    last: Numbers


class Kind(NamedTuple):
    """Kernels of an unfused chain that are alike: how many, what each issues, and how they stand in the chain.

    `tensors` are the extra operands of such a kernel, `following` those of the kernel behind it.
    """

    kernels: Numbers
    issued: Instructions
    tensors: int
    following: int
    first: bool
    last: bool


@lru_cache(maxsize=1024)
def instructions(ops: tuple[Op, ...], dtype: DType, style: Style, *, slow: tuple[float, ...] = ()) -> Instructions:
    """Count what one kernel that does these ops issues per element.

    `slow` is the share of warps that takes the slow path of each op; that of a fused chain on normal values unless
    given.
    """
    overhead = dtype.overhead if style.overhead is None else style.overhead
    slots = special = serial = 0.0
    calls = any(op.slow for op in ops)
    for op, share in zip(ops, slow or slow_shares(ops, FLOAT_MAX), strict=True):
        more_slots, more_cycles = SLOW[op.slow] if op.slow else (0.0, 0.0)
        slots += op.slots * (ERF_STALL if op.stalls else 1.0) + more_slots * share
        serial += (op.serial if op.alone is None or not calls else op.alone) + more_cycles * share
        special += op.special
    tensors, rows = sum(op.tensors for op in ops), sum(op.rows for op in ops)
    overhead += (tensors + rows) * (dtype.operand - 1.0) + ROW_SETUP / style.vector(dtype.itemsize) * (rows > 0)
    return Instructions(
        slots=overhead + slots,
        overhead=overhead,
        special=special,
        serial=serial,
        tensors=tensors,
        rows=rows,
    )


def kernel_shape(issued: Instructions, chain: Chain, style: Style) -> KernelShape:
    """Return what one kernel of the chain does, wherever its bytes come from."""
    tensor = work.tensor_bytes(chain)
    vector = style.vector(chain.itemsize)
    moved = tensor * (2.0 + issued.tensors)
    return KernelShape(
        bytes_moved=moved + issued.rows * chain.itemsize * chain.row if issued.rows else moved,
        operands=issued.tensors,
        rows=issued.rows,
        blocks=ceiling(chain.elements / (style.threads * vector)),
        threads=style.threads,
        vector=vector,
        slots=issued.slots,
        overhead=issued.overhead,
        special=issued.special,
        serial=issued.serial,
    )


def piece(
    count: Numbers,
    shape: KernelShape,
    chain: Chain,
    situation: Situation,
    *,
    reads: Numbers,
    writes: Numbers,
    operands: Numbers,
    edge: Numbers,
    last: Numbers,
) -> Piece:
    """Return kernels of that shape; `reads`, `writes` and `operands` are the shares of each that memory serves.

    `edge` is that of the chain's inputs. A kernel that comes again when they are gone is gone from the cache too.
    """
    tensor = work.tensor_bytes(chain)
    read = reads + shape.operands * operands if shape.operands else reads
    served = tensor * (read + writes)
    load = served
    if read is not writes and "bandwidth" in situation.effects:
        load = served + tensor * ((writes - read) * TURNAROUND)
    cold = larger(reads, operands) if shape.operands else reads
    return Piece(count, shape, served, load, cold, edge, last)


def fused_pieces(chain: Chain, ops: Sequence[Op] | None, situation: Situation, machine: Machine) -> list[Piece]:
    """Return the one kernel of the fused chain."""
    edge = _edge_share(chain, situation, machine, intermediates=0.0)
    issued = instructions(tuple(ops or ()), situation.dtype, situation.style)
    if ops is None:
        issued = _repeated(issued, chain.ops)
    shape = kernel_shape(issued, chain, situation.style)
    return [piece(ONE, shape, chain, situation, reads=edge, writes=edge, operands=edge, edge=edge, last=ONE)]


def unfused_pieces(chain: Chain, ops: Sequence[Op] | None, situation: Situation, machine: Machine) -> list[Piece]:
    """Return the kernels of the unfused chain, those that are alike together."""
    if ops is None:
        return _identical_pieces(chain, situation, machine)
    edge = _edge_share(chain, situation, machine, intermediates=float(min(len(ops) - 1, 2)))
    kinds = _kinds(tuple(ops), situation.dtype, situation.style)
    counts = {kind.tensors for kind in kinds} | {kind.following for kind in kinds}
    misses = {operands: _miss_share(chain, situation, machine, operands) for operands in counts}
    shapes: dict[Instructions, KernelShape] = {}
    pieces = []
    for kind in kinds:
        if kind.issued not in shapes:
            shapes[kind.issued] = kernel_shape(kind.issued, chain, situation.style)
        reads = edge if kind.first else misses[kind.tensors]
        writes = edge if kind.last else misses[kind.following]
        shape = shapes[kind.issued]
        shares = {"reads": reads, "writes": writes, "operands": edge, "edge": edge}
        pieces.append(piece(kind.kernels, shape, chain, situation, **shares, last=flag(kind.last)))
    return pieces


@lru_cache(maxsize=1024)
def _kinds(ops: tuple[Op, ...], dtype: DType, style: Style) -> tuple[Kind, ...]:
    """Sort the kernels of an unfused chain by what tells them apart."""
    counts: Counter[Kind] = Counter()
    for index, (op, share) in enumerate(zip(ops, slow_shares(ops, dtype.largest), strict=True)):
        first, last = index == 0, index == len(ops) - 1
        following = 0 if last else ops[index + 1].tensors
        issued = instructions((op,), dtype, style, slow=(share,))
        counts[Kind(ZERO, issued, op.tensors, following, first, last)] += 1
    return tuple(kind._replace(kernels=float(count)) for kind, count in counts.items())


def _identical_pieces(chain: Chain, situation: Situation, machine: Machine) -> list[Piece]:
    """Return the pieces of k multiplications for an array of k: first, middle ones and last; one is first and last."""
    issued = _repeated(instructions((), situation.dtype, situation.style), ONE)
    edge = _edge_share(chain, situation, machine, intermediates=smaller(chain.ops - 1.0, 2.0))
    inner = _miss_share(chain, situation, machine, 0)
    single = flag(chain.ops == 1.0)
    counts = (
        (ONE, edge, inner + single * (edge - inner), single),
        (larger(chain.ops - 2.0, ZERO), inner, inner, ZERO),
        (1.0 - single, inner, edge, 1.0 - single),
    )
    shape = kernel_shape(issued, chain, situation.style)
    return [
        piece(count, shape, chain, situation, reads=reads, writes=writes, operands=ZERO, edge=edge, last=last)
        for count, reads, writes, last in counts
        if isinstance(count, np.ndarray) or count
    ]


def _repeated(issued: Instructions, count: Numbers) -> Instructions:
    """Add `count` multiplications, the op of a chain that is given by its length."""
    return Instructions(
        slots=issued.slots + count,
        overhead=issued.overhead,
        special=issued.special,
        serial=issued.serial + 2.0 * count,
        tensors=issued.tensors,
        rows=issued.rows,
    )


def _miss_share(chain: Chain, situation: Situation, machine: Machine, operands: int) -> Numbers:
    """Share of an intermediate that does not stay in the cache until the next kernel, which reads `operands` too."""
    if "cache" not in situation.effects:
        return ONE
    return 1.0 - reused_share(work.tensor_bytes(chain) * (2.0 + operands), machine)


def _edge_share(chain: Chain, situation: Situation, machine: Machine, *, intermediates: Numbers) -> Numbers:
    """Share of the chain's inputs and output that memory serves."""
    sets = situation.buffer_sets
    if "cache" not in situation.effects or (isinstance(sets, float) and sets == np.inf):
        return ONE
    tensors = (2.0 + chain.tensors) * sets + intermediates
    return 1.0 - reused_share(work.tensor_bytes(chain) * tensors, machine)
