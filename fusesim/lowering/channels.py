"""What a convolution's kernels want of channels: that they lie next to each other, and fill 16 bytes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access, Launch
from fusesim.lowering.access import WIDE, accesses, ceil
from fusesim.lowering.rows import memset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.graph import Graph, Node
    from fusesim.tensor import Tensor

LOADED: Final = 16
"""Bytes that the matrix units' kernels load at once: channels are widened to a multiple of them. [B]"""

SQUARE: Final = 32
"""Side of the tiles that a transposing kernel turns: channels by places."""


def around(graph: Graph, node: Node, out: Tensor, launches: Sequence[Launch]) -> list[Launch]:
    """Return a convolution between the kernels that put channels last and back; few channels fill cleared memory."""
    operands = [graph.tensors[name] for name in node.inputs[:2]]
    if node.kind == "conv" and operands[0].itemsize < WIDE and math.prod(operands[1].shape[2:]) == 1:
        operands = operands[:1]  # a window of one place lies in memory in either order
    turned = list[Launch]()
    for tensor in operands:
        storage = f"{node.name}.{tensor.name}"
        if narrow(tensor) or (tensor is operands[-1] and narrow(out)):
            turned.append(memset(storage, _bytes_widened(tensor)))
        turned.append(_turned(node, tensor, storage))
    back = _turned(node, out, f"{node.name}.out")
    return [*turned, *launches, replace(back, reads=back.writes, writes=accesses(graph, node.outputs))]


def widened(node: Node, x: Tensor, w: Tensor) -> list[Launch]:
    """Return the kernels that widen few channels to a multiple of 16 bytes: memory cleared, then filled."""
    launches = []
    for tensor in (x, w):
        wide = narrow(tensor) or (tensor is w and w.shape[0] * w.itemsize % LOADED != 0 and w.itemsize < WIDE)
        if wide:
            storage, size = f"{node.name}.{tensor.name}", _bytes_widened(tensor)
            launches += [
                memset(storage, size),
                _filled(node, Access(tensor.storage, float(tensor.bytes)), storage, size),
            ]
    return launches


def narrowed(node: Node, out: Tensor) -> list[Launch]:
    """Return the kernel that copies few channels out of what was computed for more."""
    if not narrow(out):
        return []
    made = Access(f"{node.name}.out", _bytes_widened(out))
    return [_filled(node, made, out.storage, float(out.bytes))]


def narrow(tensor: Tensor) -> bool:
    """Return whether a tensor's channels fill no whole 16 bytes."""
    return tensor.itemsize < WIDE and tensor.shape[1] * tensor.itemsize % LOADED != 0


def _bytes_widened(tensor: Tensor) -> float:
    """Return the bytes of a tensor whose channels are widened to a multiple of `LOADED` bytes."""
    channels = max(tensor.shape[1], 1)
    return float(tensor.elements // channels * ceil(channels * tensor.itemsize, LOADED) * LOADED)


def _filled(node: Node, read: Access, storage: str, size: float) -> Launch:
    """Return the kernel that copies values into memory of wider or narrower channels."""
    return Launch(
        name=f"{node.kind} padding",
        row="transposed_16",
        nodes=(node.name,),
        reads=(read,),
        writes=(Access(storage, size),),
        elements=max(read.bytes, size) / 2.0,
        blocks=264.0,
        threads=1024,
        resident=2,
    )


def _turned(node: Node, tensor: Tensor, storage: str) -> Launch:
    """Return the kernel that puts a tensor's channels last, or back.

    Notes
    -----
    A block turns a tile of 32 channels by 32 places of one image: three channels, or the nine places of a window,
    leave most of it idle, and cost as much.
    """
    size = float(tensor.bytes)
    images, channels, *space = tensor.shape
    return Launch(
        name=f"{node.kind} layout",
        row="layout",
        nodes=(node.name,),
        reads=(Access(tensor.storage, size),),
        writes=(Access(storage, size),),
        elements=float(tensor.elements),
        blocks=max(images * ceil(channels, SQUARE) * ceil(math.prod(space), SQUARE), 1.0),
        threads=256,
        resident=8,
    )
