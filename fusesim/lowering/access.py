"""What a kernel touches: distinct bytes by the memory that they lie in, and how regularly its operands lie."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fusesim.launches import Access
from fusesim.tensor import permuted_dense

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fusesim.graph import Graph
    from fusesim.tensor import Shape, Tensor

WIDE = 4
"""Bytes from which an element counts as wide: 16-bit types have rows of their own in the table of kernel classes."""


def accesses(graph: Graph, names: Iterable[str]) -> tuple[Access, ...]:
    """Return the bytes of tensors, those in the same memory once. [B]."""
    found: dict[str, float] = {}
    for name in dict.fromkeys(names):
        tensor = graph.tensors[name]
        owner = graph.tensors.get(tensor.storage, tensor)
        whole = float(owner.elements * owner.itemsize) or float(tensor.bytes)
        found[tensor.storage] = min(found.get(tensor.storage, 0.0) + tensor.bytes, max(whole, float(tensor.bytes)))
    return tuple(Access(storage, size) for storage, size in found.items())


def width(*tensors: Tensor) -> str:
    """Return the suffix of a class: ``"16"`` where every operand has at most two bytes, else ``"32"``."""
    return "16" if max((t.itemsize for t in tensors), default=WIDE) < WIDE else "32"


def channels_last(tensor: Tensor) -> bool:
    """Return whether the channels of a picture, its second dimension, lie next to each other."""
    return len(tensor.strides) > 1 and tensor.strides[1] == 1 and tensor.shape[1] > 1


def aligned_strides(tensor: Tensor, shape: Shape) -> Shape:
    """Return an operand's strides in the shape that it broadcasts to, 0 where it does; of more dimensions, the last."""
    lead = len(shape) - len(tensor.shape)
    if lead < 0:
        return tensor.strides[-lead:]
    strides = (0,) * lead + tuple(
        0 if size == 1 else stride for size, stride in zip(tensor.shape, tensor.strides, strict=True)
    )
    return tuple(0 if size == 1 else stride for size, stride in zip(shape, strides, strict=True))


def coalesced(shape: Sequence[int], operands: Sequence[Sequence[int]]) -> int:
    """Return how many dimensions are left when those that follow on from each other in every operand are merged.

    Notes
    -----
    An iterator over tensors of any strides pays an integer division per dimension and element, so it first merges
    what it can. Dimensions are taken from the fastest of the first operand on.
    """
    dims = [dim for dim in range(len(shape)) if shape[dim] != 1]
    if not dims:
        return 0
    dims.sort(key=lambda dim: (tuple(strides[dim] for strides in operands[:1]), -dim))
    count, size = 1, shape[dims[0]]
    last = dims[0]
    for dim in dims[1:]:
        follows = all(strides[dim] == strides[last] * size for strides in operands)
        count, size = (count, size * shape[dim]) if follows else (count + 1, shape[dim])
        last = last if follows else dim
    return count


def regular(output: Tensor, inputs: Sequence[Tensor]) -> bool:
    """Return whether every operand has the output's shape and lies in memory as it does, without gaps."""
    strides = aligned_strides(output, output.shape)
    same = (aligned_strides(t, output.shape) == strides and t.elements == output.elements for t in inputs)
    return permuted_dense(output) and all(same)


def ceil(value: float, step: float) -> float:
    """Return how many steps cover a value."""
    return float(math.ceil(value / step))
