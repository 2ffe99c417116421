"""PyTorch's kernels of batch norms: by given statistics, by those of the batch itself, and their gradients.

Tensors of 16 bits, and rows of features, run in PyTorch's own kernels, one set for channels last and one for channels
first; fp32 in cuDNN's.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from fusesim.launches import Access, Launch
from fusesim.lowering.access import WIDE, accesses, ceil, channels_last, width
from fusesim.lowering.rows import MEETING_TRIPS, THREADS, WARP, above, below

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target
    from fusesim.tensor import Tensor

MOST_HIGH: Final = 128
"""Blocks that share the places of the same 32 channels at most, where channels are last: few channels, few blocks."""

LEAST_HIGH: Final = 8
"""Blocks from which on sums over the same channels are shared between blocks, which then meet through memory."""

PER_THREAD, AT_ONCE = 16, 4
"""Places that a thread takes at least before there are more blocks, and those that it loads at once."""

SUMMING: Final = 3
"""Blocks of 512 threads that fit on an SM where channels last are added up: 40 registers each."""

ONCE: Final = 114688.0
"""Bytes of a channel's operands up to which cuDNN keeps them in shared memory and reads them once: of two blocks on an
SM. Seen for up to 102,400 and not from 200,704 on (H200). [B]"""


class Cut(NamedTuple):
    """How a kernel's work is cut: threads of a block, rows of them, blocks on the same channels, all, and steps."""

    threads: int
    high: int
    tall: int
    blocks: int
    steps: int


def batch_norm(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of an inference batch norm.

    Notes
    -----
    Through cuDNN one. Else the means are copied, the deviations inverted, then the transform.
    """
    del target
    x, mean = graph.tensors[node.inputs[0]], graph.tensors[node.inputs[1]]
    if _in_library(x):
        return [_transform(graph, node)]
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
    return [copied, inverted, _transform(graph, node)]


def batch_norm_train(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of a batch norm that takes its statistics from the batch.

    Notes
    -----
    Outside cuDNN a kernel adds up each channel's mean and squared deviations, a small one brings the running statistics
    up to date and inverts the deviations, then the transform that inference has too. Not measured, and taken for the
    same: weights in fp32 beside 16 bits, and fp32 with channels last, both of which cuDNN has kernels of its own for.
    """
    x = graph.tensors[node.inputs[0]]
    if _in_library(x):
        return [_library(graph, node, target, accesses(graph, node.inputs[:1]))]
    channels, _ = _extents(x)
    weights, running = accesses(graph, node.inputs[1:3]), accesses(graph, node.inputs[3:])
    statistics = accesses(graph, node.outputs[1:]) or _per_channel(node, channels, "mean", "deviation")
    reads, writes = accesses(graph, node.inputs[:1]), accesses(graph, node.outputs[:1])
    kept = Launch(
        name="batch_norm statistics",
        row="converted",
        nodes=(node.name,),
        reads=(*statistics, *running),
        writes=(*running, *statistics[1:]),
        elements=float(channels),
        blocks=ceil(channels, 512.0),
    )
    sums = _summed(graph, node, target, "batch_norm_sums", reads=reads, writes=statistics)
    return [*sums, kept, replace(_transform(graph, node), reads=(*reads, *weights, *statistics), writes=writes)]


def batch_norm_backward(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of the gradients of a training batch norm.

    Notes
    -----
    Channels last: one kernel adds up what the weights' gradients are, another turns the gradient into the input's.
    Channels first: a block takes a channel, adds up, and goes over it again.
    """
    x = graph.tensors[node.inputs[1]]
    inputs = [name for name in node.outputs if graph.tensors[name].elements == x.elements]
    weights = accesses(graph, [name for name in node.outputs if name not in inputs])
    reads, made = accesses(graph, node.inputs), accesses(graph, inputs)
    if _in_library(x):
        return [_library(graph, node, target, accesses(graph, node.inputs[:2]))]
    if not _last(x):
        whole = _summed(graph, node, target, "batch_norm_back", reads=reads, writes=(*made, *weights))
        return [_gone_over(one, reads[:2], target) for one in whole] if inputs else whole
    sums = _per_channel(node, x.shape[1], "sums", "products")
    reduced = _summed(graph, node, target, "batch_norm_back_sums", reads=reads, writes=(*sums, *weights))
    if not inputs:
        return reduced
    turned = replace(_transform(graph, node), name=node.kind, row=f"batch_norm_back_last{width(x)}", slots=6)
    return [*reduced, replace(turned, reads=(*reads, *sums), writes=made)]


def _per_channel(node: Node, channels: int, *parts: str) -> tuple[Access, ...]:
    """Return what a node keeps of each channel in fp32. [B]."""
    return tuple(Access(f"{node.name}.{part}", 4.0 * channels) for part in parts)


def _extents(x: Tensor) -> tuple[int, int]:
    """Return the channels, and the places of a channel in all images."""
    channels = x.shape[1] if len(x.shape) > 1 else 1
    return channels, max(x.elements // max(channels, 1), 1)


def _in_library(x: Tensor) -> bool:
    """Return whether cuDNN has the kernels: of fp32, but for rows of features."""
    return x.itemsize >= WIDE and len(x.shape) > 2  # noqa: PLR2004


def _last(x: Tensor) -> bool:
    """Return whether channels lie next to each other, and the kernel goes by that."""
    return not _in_library(x) and channels_last(x)


def _summed(
    graph: Graph, node: Node, target: Target, row: str, *, reads: tuple[Access, ...], writes: tuple[Access, ...]
) -> list[Launch]:
    """Return the kernel that adds up each channel; where blocks share channels, behind one that clears their counters.

    Notes
    -----
    Blocks that share channels meet as those of `column_reduction` do: the last one reads the parts of the others.
    """
    x = graph.tensors[node.inputs[0]]
    last = _last(x)
    cut = _side_by_side(x, meeting=True) if last else _one_by_one(x)
    machine = target.machine
    trips = math.ceil(cut.tall / cut.high) + MEETING_TRIPS if cut.tall > 1 else 0
    summed = Launch(
        name=f"{node.kind} sums",
        row=f"{row}_{'last' if last else 'first'}{width(x)}",
        nodes=(node.name,),
        reads=reads,
        writes=writes,
        elements=float(x.elements),
        blocks=float(cut.blocks),
        threads=cut.threads,
        resident=SUMMING * max(THREADS // cut.threads, 1) if last else 4,
        steps=float(cut.steps),
        serial=trips * machine.cache_latency * machine.clock,
        slots=10,
        arithmetic=node.row.flops * x.elements / 2.0,
    )
    if cut.tall == 1:
        return [summed]
    size = float(cut.blocks // cut.tall)
    counters = (Access(f"{node.name}.counters", 4.0 * size),)
    return [Launch(name="fill", row="vectorised32", nodes=(node.name,), writes=counters, elements=size), summed]


def _library(graph: Graph, node: Node, target: Target, large: tuple[Access, ...]) -> Launch:
    """Return cuDNN's kernel, a block for each channel, which reads the `large` operands once if it can keep them."""
    x = graph.tensors[node.inputs[0]]
    cut = _one_by_one(x)
    launch = Launch(
        name=node.kind,
        row="batch_norm_once32",
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        writes=accesses(graph, node.outputs),
        elements=float(x.elements * len(large)),
        blocks=float(cut.blocks),
        threads=cut.threads,
        resident=2,
        steps=float(cut.steps * len(large)),
        slots=4,
        arithmetic=node.row.flops * x.elements,
    )
    if sum(each.bytes for each in large) <= ONCE * cut.blocks:
        return launch
    return replace(_gone_over(launch, large, target), row="batch_norm_twice32")


def _gone_over(launch: Launch, large: tuple[Access, ...], target: Target) -> Launch:
    """Return a kernel whose blocks read their channels' part of the `large` operands once more."""
    again = sum(each.bytes for each in large)
    window = again / launch.blocks * min(launch.blocks, target.machine.sms * launch.resident)
    return replace(launch, again=again, window=window, steps=2.0 * launch.steps)


def _side_by_side(x: Tensor, *, meeting: bool = False) -> Cut:
    """Return how channels that lie next to each other are cut, also where blocks that share channels have to meet.

    Notes
    -----
    A block of 512 threads takes 32 channels side by side and 16 places, each thread 16 of them, until there are
    `MOST_HIGH` such blocks. Fewer than `LEAST_HIGH` are not worth meeting.
    """
    channels, places = _extents(x)
    wide = min(below(channels), WARP)
    high = min(below(math.ceil(places / PER_THREAD)), THREADS // wide)
    wide = min(below(channels), max(THREADS // high, 1))
    tall = min(math.ceil(places / (high * PER_THREAD)), MOST_HIGH)
    tall = 1 if meeting and tall < LEAST_HIGH else tall
    return Cut(wide * high, high, tall, math.ceil(channels / wide) * tall, math.ceil(places / (high * tall * AT_ONCE)))


def _one_by_one(x: Tensor) -> Cut:
    """Return how a kernel is cut that gives each block a channel of all images: several at a time if they are small."""
    channels, places = _extents(x)
    space = max(places // x.shape[0], 1)
    wide = min(max(above(space), WARP), THREADS)
    high = THREADS // wide
    return Cut(THREADS, high, 1, channels, math.ceil(space / wide) * math.ceil(x.shape[0] / high))


def _transform(graph: Graph, node: Node) -> Launch:
    """Return the kernel that scales and shifts each channel.

    Notes
    -----
    Channels first: a block takes one channel of one image (several where they are small), a thread for every four
    values from 64 to 512 of them.
    """
    x = graph.tensors[node.inputs[0]]
    channels, places = _extents(x)
    space = max(places // max(x.shape[0], 1), 1)
    if _last(x):
        cut = _side_by_side(x)
    else:
        threads = min(max(above(math.ceil(space / 4)), 64), THREADS)
        cut = Cut(threads, 1, 1, channels * x.shape[0], math.ceil(space / threads))
    return Launch(
        name="batch_norm",
        row=f"batch_norm_{'last' if _last(x) else 'first'}{width(x)}",
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        writes=accesses(graph, node.outputs),
        elements=float(x.elements),
        blocks=float(max(cut.blocks, 1)),
        threads=cut.threads,
        resident=max(min(2048 // cut.threads, 32), 1),
        steps=float(cut.steps),
        slots=4,
        arithmetic=4.0 * x.elements,
    )
