"""Kernels over operands that lie in memory in unlike ways: what each element's place costs, and what unused bytes do.

PyTorch's strided kernel works out every operand's place per element: integer divisions for each dimension left after
merging. Threads that lie next to each other take neighbours of the output. Where an operand's neighbours are far
apart, a warp's load touches a line per thread, and the cache hands out whole sectors of which one value is used.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from fusesim.launches import Access, Launch
from fusesim.lowering.access import WIDE, aligned_strides, ceil, coalesced, width
from fusesim.lowering.rows import WARP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.tensor import Shape, Tensor

LINE, SECTOR = 128, 32
"""Bytes of a line of the first-level cache, which looks up one line a clock, and of a sector, what it fetches. [B]"""

LINE_SLOTS: Final = 128.0
"""Instructions that an SM issues in a clock, thread by thread: what a value costs that needs a line of its own."""

NARROW_BLOCK, WIDE_BLOCK = 512, 256
"""Elements of a block of the strided kernel: 128 threads of four, or of two where an operand has four bytes or more."""

MOST_DIMS: Final = 4
"""Dimensions from which on a strided kernel's index arithmetic is not told apart."""

LEAST_FAR: Final = 8
"""Elements between neighbours from which on an operand counts as transposed, and neighbours an output must have."""


class Reach(NamedTuple):
    """What reading operands across their fastest dimension costs.

    Instructions per element, and bytes through the cache beyond those that are distinct. [1, B]
    """

    slots: float
    crossing: float


def reach(shape: Shape, output: Sequence[int], operands: Sequence[tuple[Sequence[int], int]]) -> Reach:
    """Return what strides cost a kernel that goes along its output.

    Parameters
    ----------
    shape : tuple of int
        The output's.
    output : sequence of int
        Its strides. [elements]
    operands : sequence of (strides, itemsize)
        Of each operand in the output's shape, 0 where it is broadcast. [elements, B]

    Notes
    -----
    A warp's 32 threads go along the output's fastest dimension, and on along the next where that is shorter: each
    dimension adds a line wherever the operand moves on by one, and the warp's load takes a clock per line. A sector is
    fetched for each value that has one of its own; its other values serve the same block where the block's elements
    reach on along the operand's own fastest dimension, which they do every `apart` elements: ``block / apart`` times.
    """
    order = sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: output[d])
    elements, slots, crossing = float(math.prod(shape)), 0.0, 0.0
    for strides, itemsize in operands if order else ():
        step = abs(strides[order[0]]) * itemsize
        if step <= itemsize:
            continue
        along = [output[dim] for dim in order if strides[dim] == 1]
        apart = min(along, default=math.inf)
        block = NARROW_BLOCK if itemsize < WIDE else WIDE_BLOCK
        again = min(max(block / apart, 1.0), SECTOR / itemsize)
        slots += LINE_SLOTS * _lines(shape, order, strides, itemsize) / WARP
        crossing += elements * max(min(step, SECTOR) / again - itemsize, 0.0)
    return Reach(slots, crossing)


def _lines(shape: Shape, order: Sequence[int], strides: Sequence[int], itemsize: int) -> float:
    """Return how many lines a warp's load touches, its threads along the dimensions in that order."""
    left, lines = float(WARP), 1.0
    for dim in order:
        count = min(shape[dim], left)
        lines *= min(1.0 + (count - 1.0) * abs(strides[dim]) * itemsize / LINE, count)
        left = left / count
        if left <= 1.0:
            break
    return lines


def _fastest(shape: Shape, output: Sequence[int]) -> int | None:
    """Return the dimension in which the output's elements are neighbours."""
    return min((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: output[d], default=None)


def operands_of(shape: Shape, tensors: Sequence[Tensor]) -> list[tuple[Shape, int]]:
    """Return tensors' strides in the shape that they broadcast to, and their sizes per element. [elements, B]."""
    return [(aligned_strides(t, shape), t.itemsize) for t in tensors]


def transposed(shape: Shape, output: Sequence[int], operands: Sequence[tuple[Sequence[int], int]]) -> bool:
    """Return whether an operand's neighbours are far apart where the output's are not."""
    fast = _fastest(shape, output)
    if fast is None or shape[fast] < LEAST_FAR or not math.prod(shape):
        return False
    return any(abs(strides[fast]) >= LEAST_FAR for strides, _ in operands)


def strided_row(shape: Shape, output: Sequence[int], operands: Sequence[tuple[Sequence[int], int]], suffix: str) -> str:
    """Return the class of a strided kernel: transposed, or by the dimensions that it works out."""
    if transposed(shape, output, operands):
        return f"transposed_{suffix}"
    dims = coalesced(shape, [output, *(strides for strides, _ in operands)])
    return f"strided{min(max(dims, 2), MOST_DIMS)}_{suffix}"


def strided_blocks(tensor: Tensor) -> float:
    """Return how many blocks a strided kernel has that makes such a tensor."""
    return max(ceil(tensor.elements, NARROW_BLOCK if tensor.itemsize < WIDE else WIDE_BLOCK), 1.0)


def copied(x: Tensor, strides: Sequence[int], storage: str, *, name: str, nodes: tuple[str, ...]) -> Launch:
    """Return the kernel that copies a tensor into memory with other strides. [elements]."""
    operands = operands_of(x.shape, [x])
    cost = reach(x.shape, strides, operands)
    return Launch(
        name=name,
        row=strided_row(x.shape, strides, operands, width(x)),
        nodes=nodes,
        reads=(Access(x.storage, float(x.bytes)),),
        writes=(Access(storage, float(x.bytes)),),
        crossing=cost.crossing,
        elements=float(x.elements),
        blocks=strided_blocks(x),
        threads=128,
        resident=16,
        slots=cost.slots,
    )
