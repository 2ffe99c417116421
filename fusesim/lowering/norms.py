"""PyTorch's kernels of norms: of rows, of groups of channels, and by statistics of a whole batch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access, Launch
from fusesim.lowering.access import WIDE, accesses, ceil, width
from fusesim.lowering.rows import THREADS, WARP, above, below, extents

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target


def layer_norm(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of a layer norm or root-mean-square norm.

    Notes
    -----
    Rows of a multiple of four values: 128 threads take a row and read it twice. Others: a block of 512 threads for the
    moments, then one of 256 that normalises.
    """
    x = graph.tensors[node.inputs[0]]
    rows, columns = extents(graph, node)
    if columns % 4:
        return _norm_of_two(graph, node, rows, columns)
    return [
        Launch(
            name=node.kind,
            row=f"{node.kind}{width(x)}",
            nodes=(node.name,),
            reads=accesses(graph, node.inputs),
            writes=accesses(graph, node.outputs),
            again=float(x.bytes),
            window=min(rows, target.machine.sms * 16) * columns * x.itemsize,
            elements=float(x.elements),
            blocks=float(rows),
            threads=128,
            resident=16,
            steps=ceil(columns, 512.0),
            slots=10,
            arithmetic=node.row.flops * x.elements,
        )
    ]


def _moments(graph: Graph, node: Node, statistics: tuple[Access, ...], rows: int, columns: float) -> Launch:
    """Return the kernel that reduces rows, or groups of channels, to their moments."""
    x = graph.tensors[node.inputs[0]]
    return Launch(
        name=f"{node.kind} moments",
        row=f"moments{width(x)}",
        nodes=(node.name,),
        reads=accesses(graph, node.inputs)[:1],
        writes=statistics,
        elements=float(x.elements),
        blocks=float(rows),
        threads=512,
        resident=4,
        steps=ceil(columns, 512.0),
        slots=10,
    )


def _norm_of_two(graph: Graph, node: Node, rows: int, columns: int) -> list[Launch]:
    """Return the kernels of a norm whose rows cannot be loaded four values at a time: moments, then the rest."""
    x = graph.tensors[node.inputs[0]]
    reads = accesses(graph, node.inputs)
    statistics = tuple(Access(f"{node.name}.{part}", 4.0 * rows) for part in ("mean", "deviation"))
    moments = _moments(graph, node, statistics, rows, columns)
    applied = Launch(
        name=node.kind,
        row=f"normalised{width(x)}",
        nodes=(node.name,),
        reads=(*reads, *statistics),
        writes=accesses(graph, node.outputs),
        elements=float(x.elements),
        blocks=float(rows),
        threads=256,
        resident=8,
        steps=ceil(columns, 256.0),
        slots=5,
        arithmetic=node.row.flops * x.elements,
    )
    return [moments, applied]


def group_norm(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of a group norm: moments of each group, a scale per channel, then the transform."""
    del target
    x = graph.tensors[node.inputs[0]]
    groups = max(int(node.attr("groups", 1)) * x.shape[0], 1)
    reads, writes = accesses(graph, node.inputs), accesses(graph, node.outputs)
    statistics = tuple(Access(f"{node.name}.{part}", 4.0 * groups) for part in ("mean", "deviation"))
    moments = _moments(graph, node, statistics, groups, x.elements / groups)
    scale = Launch(
        name="group_norm scale",
        row="vectorised32",
        nodes=(node.name,),
        reads=statistics,
        elements=float(x.shape[0] * x.shape[1]),
        blocks=ceil(x.shape[0] * x.shape[1], 256.0),
        threads=256,
    )
    applied = Launch(
        name="group_norm",
        row=f"strided2_{width(x)}",
        nodes=(node.name,),
        reads=reads,
        writes=writes,
        elements=float(x.elements),
        blocks=ceil(x.elements, 512.0 if x.itemsize < WIDE else 256.0),
        slots=3,
        arithmetic=node.row.flops * x.elements,
    )
    return [moments, scale, applied]


def batch_norm(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of an inference batch norm.

    Notes
    -----
    fp32 through cuDNN: one. 16 bits, and rows of features, which cuDNN does not take: the means are copied, the
    deviations inverted, then the transform.
    """
    del target
    x, mean = graph.tensors[node.inputs[0]], graph.tensors[node.inputs[1]]
    rows = len(x.shape) == 2  # noqa: PLR2004
    if x.dtype == "fp32" and not rows:
        return [_transform(graph, node, "batch_norm_first32")]
    small = float(mean.elements * 4)
    first = "memcpy" if mean.dtype == "fp32" else "converted"
    copied = Launch(
        name="batch_norm mean",
        row=first,
        nodes=(node.name,),
        reads=(Access(mean.storage, float(mean.bytes)),),
        writes=(Access(f"{node.name}.mean", small),),
        elements=float(mean.elements),
        steps=min(max(ceil(mean.elements, 128.0), 1.0), 4.0),
    )
    inverted = Launch(
        name="batch_norm deviation",
        row="vectorised32",
        nodes=(node.name,),
        reads=(Access(graph.tensors[node.inputs[2]].storage, small),),
        writes=(Access(f"{node.name}.scale", small),),
        elements=float(mean.elements),
    )
    last = len(x.strides) > 1 and x.strides[1] == 1 and x.shape[1] > 1
    return [copied, inverted, _transform(graph, node, f"batch_norm_{'last' if last else 'first'}{width(x)}")]


MOST_HIGH: Final = 128
"""Blocks that share the places of the same 32 channels at most, where channels are last: few channels, few blocks."""


def _transform(graph: Graph, node: Node, row: str) -> Launch:
    """Return the kernel that scales and shifts each channel.

    Notes
    -----
    Channels last: a block of 512 threads takes 32 channels side by side and 16 places, each thread 16 of them, until
    there are `MOST_HIGH` such blocks. Else a block takes one channel of one image (several where they are small), a
    thread for every four values from 64 to 512 of them.
    """
    x = graph.tensors[node.inputs[0]]
    images, channels = x.shape[0], x.shape[1] if len(x.shape) > 1 else 1
    space = max(x.elements // max(images * channels, 1), 1)
    if row.startswith("batch_norm_last"):
        wide = min(below(channels), WARP)
        high = min(below(math.ceil(images * space / 16)), THREADS // wide)
        threads, tall = wide * high, min(math.ceil(images * space / (high * 16)), MOST_HIGH)
        blocks, steps = math.ceil(channels / wide) * tall, math.ceil(images * space / (high * tall * 4))
    else:
        threads = min(max(above(math.ceil(space / 4)), 64), THREADS)
        blocks, steps = channels * images, math.ceil(space / threads)
    return Launch(
        name="batch_norm",
        row=row,
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        writes=accesses(graph, node.outputs),
        elements=float(x.elements),
        blocks=float(max(blocks, 1)),
        threads=threads,
        resident=max(min(2048 // threads, 32), 1),
        steps=float(steps),
        slots=4,
        arithmetic=4.0 * x.elements,
    )
