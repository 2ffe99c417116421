"""PyTorch's kernels over pictures: windows pooled, pictures of another size; and what is one pass over its operands."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access, Launch
from fusesim.lowering.access import accesses, ceil, channels_last, width
from fusesim.lowering.counting import window_size
from fusesim.lowering.rows import WARP, below
from fusesim.lowering.strided import copied
from fusesim.strided import common_strides_like

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target
    from fusesim.tensor import Tensor


def touched_once(graph: Graph, node: Node) -> Launch:
    """Return a kernel that touches each operand once."""
    output, x = graph.tensors[node.outputs[0]], graph.tensors[node.inputs[0]]
    elements = float(max(output.elements, x.elements))
    return Launch(
        name=node.kind,
        row=f"strided2_{width(output)}",
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        writes=accesses(graph, node.outputs),
        elements=elements,
        blocks=max(ceil(elements, 512.0), 1.0),
        slots=node.row.flops,
        arithmetic=node.row.flops * elements,
    )


FEW_NEAREST, FEW_LINEAR = 4, 16
"""Channels from which on pictures with channels last have kernels of their own (PyTorch's own limits)."""


def upsample(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernel that makes a picture of another size, from its nearest values or from four of them.

    Notes
    -----
    Channels last: a thread per value, which works out its place by four divisions. Else nearest values are a thread's,
    while of four values each thread takes one place of the picture and goes through all channels of all images, so
    that small pictures leave most of the device idle.
    """
    del target
    x, out = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    launch = replace(touched_once(graph, node), elements=float(out.elements), threads=1024, resident=2, slots=0.0)
    near = node.attr("mode", "nearest") == "nearest"
    if channels_last(x) and x.shape[1] >= (FEW_NEAREST if near else FEW_LINEAR):
        row = f"upsample_last{width(out)}" if near else f"bilinear_last{width(out)}"
        return [replace(launch, row=row, blocks=max(ceil(out.elements, 1024.0), 1.0))]
    if near:
        blocks = max(ceil(out.elements, 2048.0), 1.0)
        return [replace(launch, row=f"upsample{width(out)}", blocks=blocks, threads=512, resident=4)]
    channels = math.prod(out.shape[:2])
    blocks = max(ceil(out.elements / max(channels, 1), 1024.0), 1.0)
    return [replace(launch, row=f"bilinear{width(out)}", blocks=blocks, steps=float(channels))]


POOLED: Final = 1024
"""Threads of a block that pools pictures with channels last."""

MOST_CHANNELS: Final = 4
"""Channels of a thread of such a block at most: each keeps a value and its place in shared memory."""


def pool(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernel that pools windows: a thread per result, which reads its window value by value.

    Notes
    -----
    Channels last: a block takes one picture's 32 channels, or several times as many, and as many places as give 1024
    threads; a thread two of them each way. Small pictures make few blocks.
    """
    del target
    x, out = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    window = window_size(graph, node)
    launch = replace(touched_once(graph, node), elements=out.elements * window, slots=1.0)
    if node.attr("mode") == "max" and len(node.outputs) == 1:  # their places are written whether read or not
        launch = replace(launch, writes=(*launch.writes, Access(f"{node.name}.places", 8.0 * out.elements)))
    if not channels_last(x) or len(out.shape) < 4:  # noqa: PLR2004 - one thread for each result
        blocks = max(ceil(out.elements, 256.0), 1.0)
        return [replace(launch, row=f"pool{width(x)}", blocks=blocks, threads=256, resident=8)]
    blocks, threads, steps = _tiled(out)
    return [
        replace(
            launch,
            row=f"pool_last{width(x)}",
            blocks=blocks,
            threads=threads,
            resident=2,
            steps=steps * window,
        )
    ]


def _tiled(picture: Tensor) -> tuple[float, int, float]:
    """Return blocks over pictures with channels last, their threads, and how many values a thread makes."""
    channels, high, wide = picture.shape[1:4]
    side = min(below(channels), WARP)
    across = min(below(wide), POOLED // side)
    down = min(below(high), POOLED // side // across)
    side = min(below(channels), POOLED // across // down)
    parts = math.ceil(channels / (side * MOST_CHANNELS))
    columns = math.ceil(wide / (2 * across))
    blocks = picture.shape[0] * parts * columns * math.ceil(high / (2 * down))
    steps = math.ceil(channels / (side * parts)) * math.ceil(wide / across / columns) * 2.0
    return float(blocks), side * across * down, steps


def pool_backward(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of the gradient of pooled windows: of the largest, memory is cleared and then filled.

    Notes
    -----
    A thread has a place of the picture, or several as in `pool`, and asks all windows over it whether it was their
    largest: each gradient and place is read as often as its window is large. Channels first: blocks of 256 places. A
    gradient that lies in another order than the picture is copied before.
    """
    del target
    if len(node.inputs) < 2:  # noqa: PLR2004 - means have no places
        return [touched_once(graph, node)]
    gradient, out = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    order, storage = common_strides_like(gradient.shape, out), f"{node.name}.gradient"
    ordered = gradient.strides == order
    before = [] if ordered else [copied(gradient, order, storage, name="pool_backward copy", nodes=(node.name,))]
    reads = (*(accesses(graph, node.inputs[:1]) if ordered else before[0].writes), *accesses(graph, node.inputs[1:]))
    cleared = Launch(
        name="fill",
        row=f"vectorised{width(out)}",
        nodes=(node.name,),
        writes=accesses(graph, node.outputs),
        elements=float(out.elements),
        blocks=max(ceil(out.elements, 1024.0), 1.0),
        slots=0.5,
    )
    return [*before, cleared, _asked(graph, node, gradient, reads)]


def _asked(graph: Graph, node: Node, gradient: Tensor, reads: tuple[Access, ...]) -> Launch:
    """Return the kernel that finds for each place of a picture which windows it was the largest of."""
    out = graph.tensors[node.outputs[0]]
    window = float(math.prod(node.attr("kernel_size", ())) or max(out.elements // max(gradient.elements, 1), 1))
    elements = gradient.elements * window
    launch = replace(
        touched_once(graph, node),
        reads=reads,
        again=(window - 1.0) * sum(each.bytes for each in reads),
        elements=elements,
        slots=1.0,
    )
    if channels_last(out) and len(out.shape) == 4:  # noqa: PLR2004 - pictures
        blocks, threads, steps = _tiled(out)
        steps *= elements / max(out.elements, 1)
        row = f"pool_back_last{width(out)}"
        return replace(launch, row=row, blocks=blocks, threads=threads, resident=2, steps=steps)
    blocks = math.prod(out.shape[:2]) * ceil(math.prod(out.shape[2:]), 256.0)
    return replace(launch, row=f"pool_back{width(out)}", blocks=blocks, threads=256, resident=8)
