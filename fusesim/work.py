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

from fusesim.arrays import bare

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


def bare_chain(chain: Chain) -> Chain:
    """Return the chain with its scalars as plain floats."""
    return Chain(
        ops=bare(chain.ops),
        flops=bare(chain.flops),
        tensors=chain.tensors,
        rows=chain.rows,
        elements=bare(chain.elements),
        row=bare(chain.row),
        itemsize=chain.itemsize,
    )


def bytes_read(chain: Chain, kernels: Numbers) -> Numbers:
    """Bytes that `kernels` kernels read to do the chain: the tensor each, and every extra operand once. [B].

    Examples
    --------
    >>> chain = Chain(ops=5, flops=5, tensors=1, rows=0, elements=10, row=1, itemsize=2)
    >>> bytes_read(chain, 5), bytes_read(chain, 1)  # (5 + 1 extra) x 20 B, (1 + 1 extra) x 20 B
    (120, 40)
    """
    tensors = chain.elements * ((kernels + chain.tensors) * chain.itemsize)
    return tensors + _row_bytes(chain) if chain.rows else tensors


def bytes_written(chain: Chain, kernels: Numbers) -> Numbers:
    """Bytes that `kernels` kernels write to do the chain: the tensor each. [B].

    Examples
    --------
    >>> chain = Chain(ops=5, flops=5, tensors=1, rows=0, elements=10, row=1, itemsize=2)
    >>> bytes_written(chain, 5), bytes_written(chain, 1)  # 5 x 20 B, 1 x 20 B
    (100, 20)
    """
    return chain.elements * (kernels * chain.itemsize)


def bytes_moved(chain: Chain, kernels: Numbers) -> Numbers:
    """Bytes read and written, in one pass over the elements. [B]."""
    tensors = chain.elements * ((2 * kernels + chain.tensors) * chain.itemsize)
    return tensors + _row_bytes(chain) if chain.rows else tensors


def tensor_bytes(chain: Chain) -> Numbers:
    """Size of the tensor that flows through the chain. [B]."""
    return chain.elements * chain.itemsize


def _row_bytes(chain: Chain) -> Numbers:
    """Bytes of the row operands: each is read once, by its op, and stays in cache while it is broadcast."""
    return chain.row * (chain.rows * chain.itemsize)
