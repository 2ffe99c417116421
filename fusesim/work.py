"""The work of a chain of element-wise operations: bytes, FLOP and kernels, as separate kernels and as one.

Theory: every kernel reads its inputs from memory once and writes its output once. An unfused chain of k ops is
k kernels, so the tensor is read k times and written k times. A fused chain is one kernel: values stay in
registers between the ops, so the tensor is read once and written once. An extra operand (a second tensor, a
row) is read once either way, by the one op that needs it. The arithmetic is the same.

This file counts; it must not know a device, a time or a dtype's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusesim.arrays import Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A chain in the numbers that its work depends on; all of them broadcast.

    `ops` is how many operations; `tensors` and `rows` how many extra operands of full size and of one row they
    read in all; `flops` the FLOP per element of all of them; `row` the elements of a row.
    """

    ops: Numbers
    flops: Numbers
    tensors: int
    rows: int
    elements: Numbers
    row: Numbers
    itemsize: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a number of kernels do together: bytes at the edge of the chip, and FLOP."""

    kernels: Numbers
    bytes_read: Numbers
    bytes_written: Numbers
    flops: Numbers


def chain_work(chain: Chain) -> tuple[Work, Work]:
    """Return the work of the chain as one kernel per op, and as one kernel.

    Examples
    --------
    >>> unfused, fused = chain_work(
    ...     Chain(ops=5, flops=5, tensors=1, rows=0, elements=10, row=1, itemsize=2)
    ... )
    >>> unfused.bytes_read, unfused.bytes_written  # (5 + 1 extra) x 20 B, 5 x 20 B
    (120, 100)
    >>> fused.bytes_read, fused.bytes_written  # (1 + 1 extra) x 20 B, 1 x 20 B
    (40, 20)
    """
    flops = chain.elements * chain.flops
    unfused, fused = (
        Work(
            kernels=kernels,
            bytes_read=_bytes_read(chain, kernels),
            bytes_written=chain.elements * (kernels * chain.itemsize),
            flops=flops,
        )
        for kernels in (chain.ops, 1)
    )
    return unfused, fused


def _bytes_read(chain: Chain, kernels: Numbers) -> Numbers:
    """Bytes that the kernels read; a row is read once, by its op, and stays in cache while it is broadcast."""
    tensors = chain.elements * ((kernels + chain.tensors) * chain.itemsize)
    return tensors + chain.row * (chain.rows * chain.itemsize) if chain.rows else tensors
