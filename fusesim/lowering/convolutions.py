"""Kernels of convolutions (cuDNN): the product over windows, and what stands before and after it.

Which of them run is decided from shapes, strides and types, as launches on an H200 show it (PyTorch 2.11, cuDNN 9.19).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from fusesim.launches import Launch
from fusesim.lowering.access import WIDE, accesses, ceil, channels_last, width
from fusesim.lowering.channels import LOADED, around, narrow, narrowed, widened
from fusesim.lowering.library import MANY_ROUNDS, products
from fusesim.lowering.rows import memset
from fusesim.lowering.strided import copied, strided_blocks, strided_row
from fusesim.products import Product, Tiling, step_time
from fusesim.strided import common_strides_like

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target
    from fusesim.tensor import Tensor

INPUT_LAYOUT: Final = "conv input layout"
"""Name of the copy that puts the channels of an input last, where the weight has them so."""

STEP: Final = 64
"""Bytes of channels that one step of a product over windows takes: fewer leave the rest of it idle, place by place."""

TILES: Final = ((64, 64), (64, 128), (128, 64), (128, 128), (256, 64))
"""Sizes of tiles that cuDNN's convolutions for Hopper have (their kernels' names on an H200): odd channels pad."""

NARROW_TILES: Final = ((128, 128), (256, 64))
"""Sizes of tiles of its kernels for few channels, which are those for Ampere."""

CLUSTERED, WHOLE_RESULTS, WHOLE_CHANNELS = 10 / 11, 256, 64
"""Share of the SMs that a convolution over windows runs on, where channels out and in are no multiples of these: its
blocks then come in clusters that must lie in one part of the device (120 of an H200's 132)."""

FIRST_GUESS: Final = {"peak": 0.9, "fill": 1.5e11, "once": 4e-6}
"""What the choice of a tile goes by, as if it ran on all SMs: the share of its peak that one reaches, bytes per second
into it, and what a tile costs once. It stands for the library's own heuristics: of a grid of values, what names 23 of
32 tiles right that its kernels' names say. [1, B/s, s]"""

LEAST_SHARED: Final = 3072
"""Inner dimension from which on tiles of a last round are shared out in parts, behind a kernel that clears counters."""

USUAL_WINDOW, EVEN_CHANNELS = 9, 32
"""Windows and multiples of channels for which cuDNN has its fast kernels; others take slower ones (H200)."""

SMALL: Final = 7.2e8
"""FLOP up to which a convolution of few channels runs without matrix units, its operands as they are: turning or
widening them would take longer (cuDNN's choice, seen on an H200)."""

HALF_TILE, IDLE = 64, 2048
"""Places that fill no more than half of a tile's rows, and how many channels of all pictures together then make turning
them pay: an H200 turns 32 pictures of 7 x 7 places and 256 channels and 8 of 2048, not 8 of 64, and none of 13 x 13.
Of 17 measured ones it names all but one (64 pictures of 384 channels with 64 results)."""

FEW: Final = {"channels": 3, "results": 64, "wide channels": 8, "wide results": 96, "least results": 32, "inner": 512}
"""What few channels in and out are, those of fp32, and how long a product may be that has hardly any out."""


def conv(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of a convolution: a product over windows, in cuDNN's order of channels last.

    Notes
    -----
    Tensors in another order are turned before and after, channels that fill no 16 bytes widened. One channel per group
    goes to a kernel of its own. fp32 runs as tf32, PyTorch's default for convolutions.
    """
    x, w, _ = _operands(graph, node)
    last = channels_last(x)
    window, before = math.prod(w.shape[2:]), list[Launch]()
    if not last and window > 1 and channels_last(w):
        order = common_strides_like(x.shape, w)
        before, last = [copied(x, order, f"{node.name}.x", name=INPUT_LAYOUT, nodes=(node.name,))], True
    return [*before, *_core(graph, node, target, last=last), *bias_kernels(graph, node)]


def bias_kernels(graph: Graph, node: Node) -> list[Launch]:
    """Return the kernel that adds a convolution's bias, where it has one."""
    if node.kind != "conv" or len(node.inputs) < 3:  # noqa: PLR2004
        return []
    return [_bias(graph, node, graph.tensors[node.outputs[0]])]


def kernels_in_order(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of a convolution whose operands have been put with channels last before."""
    return _core(graph, node, target, last=True)


def _core(graph: Graph, node: Node, target: Target, *, last: bool) -> list[Launch]:
    """Return the kernels of a convolution without its bias."""
    x, w, out = _operands(graph, node)
    groups, window = int(node.attr("groups", 1)), math.prod(w.shape[2:])
    if groups > 1 and groups == x.shape[1]:
        return [_depthwise(graph, node, out, window, last=last)]
    if window == 1 and max(node.attr("stride", (1,))) == 1 and (last or not _turns_places(x)):
        return _pointwise(graph, node, target, last=last)
    if _plain(x, w, out, last=last):
        return [_direct(graph, node, out, w)]
    launches = _over_windows(graph, node, target)
    if not last:
        return around(graph, node, out, launches)
    return [*widened(node, x, w), *launches, *narrowed(node, out)]


def _operands(graph: Graph, node: Node) -> tuple[Tensor, Tensor, Tensor]:
    """Return what stands for input, weight and output of a convolution or of one of its gradients."""
    first, second, out = (graph.tensors[name] for name in (*node.inputs[:2], node.outputs[0]))
    if node.kind == "conv":
        return first, second, out
    if node.kind == "conv_input_grad":
        return out, second, first
    return second, out if node.kind == "conv_weight_grad" else second, first


def _type(x: Tensor, target: Target) -> str:
    """Return the type that products run in."""
    return "tf32" if x.dtype == "fp32" and "tf32" in target.matrix else x.dtype


def _places(x: Tensor) -> int:
    """Return how many places an image has."""
    return math.prod(x.shape[2:])


def _turns_places(x: Tensor) -> bool:
    """Return whether a window of one place is worth putting channels last, so that pictures are one long product.

    So it is where places do not lie as a kernel loads them, and, in 16 bits, where many pictures fill few rows of a
    tile each; else each picture is a product of its own.
    """
    if x.itemsize >= WIDE:
        return _places(x) * x.itemsize % LOADED != 0
    return _places(x) % 2 == 1 and _places(x) <= HALF_TILE and x.shape[0] * x.shape[1] >= IDLE


def _pointwise(graph: Graph, node: Node, target: Target, *, last: bool) -> list[Launch]:
    """Return the kernels of a window of one place: a plain product, of each image where channels are not last.

    Images whose rows of places fill no 16 bytes go to slower kernels, those that fill no four to still slower ones.
    """
    x, w, out = _operands(graph, node)
    groups, places = int(node.attr("groups", 1)), _places(out)
    batch = 1 if last else out.shape[0]
    product = Product(groups * batch, out.shape[0] * places // batch, w.shape[1], w.shape[0] // groups, x.itemsize)
    if last and x.itemsize < WIDE:
        return products(graph, node, target, product, _type(x, target), row="matmul", handed=False)
    row = "pointwise"
    if not last and places * x.itemsize % LOADED != 0:
        row = "pointwise_odd" if places % 2 == 0 else "pointwise_single"
    launches = products(graph, node, target, product, _type(x, target), row=row, handed=False)
    return [replace(one, row=f"{row}{width(x)}") if one.product is not None else one for one in launches]


def _over_windows(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of a product over windows: what clears counters of tiles or of their parts, the product."""
    x, w, out = _operands(graph, node)
    groups, window = int(node.attr("groups", 1)), math.prod(w.shape[2:])
    few = x.shape[1] * x.itemsize % LOADED != 0
    channels = ceil(w.shape[1] * x.itemsize, STEP) * STEP / x.itemsize
    product = Product(groups, out.elements // out.shape[1], int(channels * window), w.shape[0] // groups, x.itemsize)
    rate = target.peak(_type(x, target)) / target.machine.sms
    even = few or window == 1 or (product.n % WHOLE_RESULTS == 0 and x.shape[1] % WHOLE_CHANNELS == 0)
    at_once = math.floor(target.machine.sms * (1.0 if even else CLUSTERED))
    high, wide = tile = _tile(product, rate, int(target.machine.sms), NARROW_TILES if few else TILES)
    tiling = Tiling(wide, high, 1, _count(product, tile), at_once)
    main = Launch(
        name=node.kind,
        row=("conv_odd" if few else _windowed(x, window)) + width(x),
        nodes=(node.name,),
        reads=accesses(graph, node.inputs[:2]),
        writes=accesses(graph, node.outputs),
        blocks=min(tiling.tiles, at_once),
        threads=384,
        resident=1,
        flops=product.flops,
        product=product,
        tiling=tiling,
        rate=rate,
        arithmetic=2.0 * out.elements * w.shape[1] * window,  # what is asked for, not what idle channels add
    )
    many = tiling.tiles > MANY_ROUNDS * at_once
    shared = at_once < tiling.tiles and product.k >= LEAST_SHARED and x.itemsize < WIDE
    if (many or shared) and not (few or narrow(out)):
        return [memset(f"{node.name}.tiles", 4.0), main]
    return [main]


def _windowed(x: Tensor, window: int) -> str:
    """Return the class of a convolution with a window."""
    usual = window <= USUAL_WINDOW and x.shape[1] % EVEN_CHANNELS == 0
    return "conv" if usual or x.itemsize >= WIDE else "conv_rare"


def _tile(product: Product, rate: float, sms: int, tiles: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    """Return the tile, high and wide, that takes least time on SMs of that `rate`. [FLOP/s]."""

    def guessed(tile: tuple[int, int]) -> float:
        steps = math.ceil(product.k * product.itemsize / 128)
        one = np.asarray(
            step_time(*tile, product.itemsize, rate=rate * FIRST_GUESS["peak"], fill=FIRST_GUESS["fill"])
        ).item()
        return float(math.ceil(_count(product, tile) / sms) * (steps * one + FIRST_GUESS["once"]))

    return min(tiles, key=guessed)


def _count(product: Product, tile: tuple[int, int]) -> int:
    """Return how many tiles cover a product."""
    return math.ceil(product.m / tile[0]) * math.ceil(product.n / tile[1]) * product.batch


def _plain(x: Tensor, w: Tensor, out: Tensor, *, last: bool) -> bool:
    """Return whether a convolution is so small that plain arithmetic does it."""
    results, channels, *_ = w.shape
    if x.shape[1] != channels or 2.0 * out.elements * math.prod(w.shape[1:]) > SMALL:
        return False
    if x.itemsize >= WIDE:
        few = channels <= FEW["wide channels"] and results <= FEW["wide results"]
        return few or (results <= FEW["least results"] and math.prod(w.shape[1:]) <= FEW["inner"])
    uneven = channels * x.itemsize % LOADED != 0
    return uneven and (not last or channels <= FEW["channels"] or results <= FEW["results"])


def _direct(graph: Graph, node: Node, out: Tensor, w: Tensor) -> Launch:
    """Return the kernel of a small convolution: a multiplication and an addition after the other."""
    each = float(math.prod(w.shape[1:]))
    return Launch(
        name=node.kind,
        row=f"direct{width(out)}",
        nodes=(node.name,),
        reads=accesses(graph, node.inputs[:2]),
        writes=accesses(graph, node.outputs),
        elements=out.elements * each,
        blocks=max(ceil(out.elements, 1024.0), 1.0),
        threads=64,
        resident=16,
        arithmetic=2.0 * out.elements * each,
    )


def _bias(graph: Graph, node: Node, out: Tensor) -> Launch:
    """Return the kernel that adds a convolution's bias: cuDNN's own does not."""
    own = accesses(graph, node.outputs)
    bias = tuple(int(dim == 1) for dim in range(len(out.shape)))
    return Launch(
        name="conv bias",
        row=strided_row(out.shape, out.strides, [(out.strides, out.itemsize), (bias, out.itemsize)], width(out)),
        nodes=(node.name,),
        reads=(*own, *accesses(graph, node.inputs[2:3])),
        writes=own,
        elements=float(out.elements),
        blocks=strided_blocks(out),
        slots=1,
        arithmetic=float(out.elements),
    )


def _depthwise(graph: Graph, node: Node, out: Tensor, window: int, *, last: bool) -> Launch:
    """Return the kernel of a convolution of one channel per group: plain arithmetic."""
    return Launch(
        name="depthwise",
        row="depthwise_last" if last else "depthwise_first",
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        writes=accesses(graph, node.outputs),
        elements=float(out.elements),
        blocks=max(ceil(out.elements, 1024.0), 1.0),
        threads=256,
        resident=8,
        slots=4.0 * window,
        flops=0.0,
        arithmetic=2.0 * window * out.elements,
    )
