"""Kernels of the vendor's libraries: matrix products (cuBLAS), convolutions (cuDNN), attention (cuDNN, CUTLASS).

Which of them PyTorch calls, and with what besides, is decided from shapes, strides and types, as launches on an H200
show it (PyTorch 2.11, cuBLAS 13, cuDNN 9.19).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.attention_tiles import TiledAttention
from fusesim.launches import Access, Launch
from fusesim.lowering.access import WIDE, accesses, ceil, width
from fusesim.lowering.rows import memset
from fusesim.products import Product, choose_tiling

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target
    from fusesim.tensor import Tensor

MANY_ROUNDS: Final = 2
"""Rounds of tiles beyond which a kernel hands its tiles out through a counter that a memset clears."""

TILE: Final = 128
WIDE_TILE: Final = 64
"""Queries, and keys, of one tile of attention: cuDNN's for Hopper in 16 bits, PyTorch's memory-efficient in 32."""

LEAST_TILE: Final = 16
"""Queries of the smallest tile, which cuDNN's kernel for few queries works on."""


def matmul(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of a matrix product: a memset where tiles are handed out, the product, its parts' sum."""
    a, b = (graph.tensors[name] for name in node.inputs[:2])
    out = graph.tensors[node.outputs[0]]
    batch, (m, k), n = math.prod(out.shape[:-2]), a.shape[-2:], b.shape[-1]
    if math.prod(b.shape[:-2]) == 1 and _flat(a):  # one matrix for the whole batch
        batch, m = 1, m * batch
    product = Product(max(batch, 1), m, k, n, a.itemsize)
    return products(graph, node, target, product, a.dtype)


def _flat(tensor: Tensor) -> bool:
    """Return whether a batch of matrices is one tall matrix."""
    return tensor.contiguous


def products(
    graph: Graph,
    node: Node,
    target: Target,
    product: Product,
    dtype: str,
    *,
    row: str = "matmul",
    handed: bool = True,
) -> list[Launch]:
    """Return the kernels of a product of that type; `handed` where tiles may be handed out through a counter."""
    kind = dtype if dtype in target.matrix and dtype != "fp32" else "fp32"
    rate = target.peak(kind) / target.machine.sms
    tiling = choose_tiling(product, int(target.machine.sms), rate, coarse=row.startswith("conv"))
    aligned = kind == "fp32" or (product.n * product.itemsize % 16 == 0 and product.k * product.itemsize % 16 == 0)
    suffix = "32" if product.itemsize >= WIDE else "16"
    name = f"{row}{suffix}" if aligned else f"{row}_odd{suffix}"
    out = sum(graph.tensors[n].bytes for n in node.outputs[:1])
    main = Launch(
        name=node.kind,
        row=name,
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        writes=accesses(graph, node.outputs),
        blocks=min(tiling.tiles, target.machine.sms),
        threads=384,
        resident=1,
        flops=product.flops,
        product=product,
        tiling=tiling,
        rate=rate,
        arithmetic=product.flops,
    )
    launches = [main]
    if tiling.tiles > MANY_ROUNDS * target.machine.sms and kind != "fp32" and aligned and handed:
        launches.insert(0, memset(f"{node.name}.tiles", 4.0))
    if tiling.split > 1 and aligned:
        parts = Access(f"{node.name}.parts", 2.0 * out * tiling.split)
        launches[-1] = replace(main, writes=(parts,))
        launches.append(_sum_of_parts(graph, node, parts, out / product.itemsize, tiling.split))
    return launches


def _sum_of_parts(graph: Graph, node: Node, parts: Access, elements: float, split: int) -> Launch:
    """Return the kernel that adds up the parts of a product whose inner dimension was split."""
    return Launch(
        name=f"{node.kind} sum of parts",
        row="parts",
        nodes=(node.name,),
        reads=(parts,),
        writes=accesses(graph, node.outputs),
        elements=elements,
        blocks=max(ceil(elements, 512.0), 1.0),
        threads=512,
        resident=4,
        slots=2.0 * split,
    )


def conv(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of a convolution: a product over windows, in cuDNN's order of channels last.

    Notes
    -----
    Tensors in another order are turned before and after. One channel per group goes to a kernel of its own. fp32 runs
    as tf32, PyTorch's default for convolutions.
    """
    x, w, out = _operands(graph, node)
    groups = int(node.attr("groups", 1))
    last = len(x.shape) < 4 or x.strides[1] == 1  # noqa: PLR2004 - channels last
    window = math.prod(w.shape[2:])
    before: list[Launch] = []
    if not last and window > 1 and w.strides[1] == 1 and w.shape[1] > 1:
        before, last = [replace(_turned(node, x, f"{node.name}.x"), row=_strided(x))], True
    after = [_bias(graph, node, out)] if node.kind == "conv" and len(node.inputs) > 2 else []  # noqa: PLR2004
    if groups > 1 and groups == x.shape[1]:
        return [*before, _depthwise(graph, node, out, window, last=last), *after]
    product = Product(
        groups, out.shape[0] * math.prod(out.shape[2:]), w.shape[1] * window, w.shape[0] // groups, x.itemsize
    )
    dtype = "tf32" if x.dtype == "fp32" and "tf32" in target.matrix else x.dtype
    pointwise = window == 1 and max(node.attr("stride", (1,))) == 1
    row = ("matmul" if last and x.itemsize < WIDE else "pointwise") if pointwise else _windowed(x, window)
    launches = products(graph, node, target, product, dtype, row=row, handed=not pointwise)
    few = x.shape[1] * x.itemsize % 16 != 0 and x.itemsize < WIDE
    if few:
        launches = [replace(launches[-1], row="conv_odd16")]
    if last or pointwise:
        return [*before, *(_padding(node, x, w) if few and last else ()), *launches, *after]
    return [*_around(graph, node, out, launches, few=few), *after]


def _operands(graph: Graph, node: Node) -> tuple[Tensor, Tensor, Tensor]:
    """Return what stands for input, weight and output of a convolution or of one of its gradients."""
    first, second, out = (graph.tensors[name] for name in (*node.inputs[:2], node.outputs[0]))
    if node.kind == "conv":
        return first, second, out
    if node.kind == "conv_input_grad":
        return out, second, first
    return second, out if node.kind == "conv_weight_grad" else second, first


def _around(graph: Graph, node: Node, out: Tensor, launches: list[Launch], *, few: bool) -> list[Launch]:
    """Return a convolution between the kernels that put channels last and back; few channels fill cleared memory."""
    turned = [_turned(node, graph.tensors[name], f"{node.name}.{name}") for name in node.inputs[:2]]
    if few:
        turned = [launch for one in turned for launch in (memset(one.writes[0].storage, one.writes[0].bytes), one)]
    back = _turned(node, out, f"{node.name}.out")
    return [*turned, *launches, replace(back, reads=back.writes, writes=accesses(graph, node.outputs))]


USUAL_WINDOW, EVEN_CHANNELS = 9, 32
"""Windows and multiples of channels for which cuDNN has its fast kernels; others take slower ones (H200)."""


def _windowed(x: Tensor, window: int) -> str:
    """Return the class of a convolution with a window."""
    return "conv" if window <= USUAL_WINDOW and x.shape[1] % EVEN_CHANNELS == 0 else "conv_rare"


def _strided(tensor: Tensor) -> str:
    """Return the class of a copy into another order."""
    return f"strided3_{width(tensor)}"


def _bias(graph: Graph, node: Node, out: Tensor) -> Launch:
    """Return the kernel that adds a convolution's bias: cuDNN's own does not."""
    wide = out.itemsize >= WIDE
    own = accesses(graph, node.outputs)
    return Launch(
        name="conv bias",
        row=_strided(out),
        nodes=(node.name,),
        reads=(*own, *accesses(graph, node.inputs[2:3])),
        writes=own,
        elements=float(out.elements),
        blocks=max(ceil(out.elements, 256.0 if wide else 512.0), 1.0),
        slots=1,
        arithmetic=float(out.elements),
    )


def _padding(node: Node, x: Tensor, w: Tensor) -> list[Launch]:
    """Return the kernels that widen few channels to a multiple of 16 bytes: memory cleared, then filled."""
    launches = []
    for tensor in (x, w):
        wider = float(tensor.elements // max(tensor.shape[1], 1) * 16)
        copied = replace(_turned(node, tensor, f"{node.name}.{tensor.name}"), name=f"{node.kind} padding")
        launches += [memset(copied.writes[0].storage, wider), copied]
    return launches


def _turned(node: Node, tensor: Tensor, storage: str) -> Launch:
    """Return the kernel that puts a tensor's channels last, or back."""
    size = float(tensor.bytes)
    return Launch(
        name=f"{node.kind} layout",
        row="transposed_32" if tensor.itemsize >= WIDE else "layout16",
        nodes=(node.name,),
        reads=(Access(tensor.storage, size),),
        writes=(Access(storage, size),),
        elements=float(tensor.elements),
        blocks=max(ceil(tensor.elements, 1024.0), 1.0),
        threads=256,
        resident=8,
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


def attention(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of tiled attention: a memset of its counter, then one kernel over tiles of queries.

    Notes
    -----
    Values are padded to whole units of the matrix units. A single query is bound by reading the keys and values.
    """
    q, k, v = (graph.tensors[name] for name in node.inputs[:3])
    *batch, queries, dim = q.shape
    wide, causal = q.itemsize >= WIDE, bool(node.attr("causal")) and queries > 1
    few = queries <= LEAST_TILE
    tile, unit = (WIDE_TILE, 32) if wide else (TILE, 64)
    work = TiledAttention(
        heads=math.prod(batch),
        queries=queries,
        keys=k.shape[-2],
        padded=math.ceil((dim + v.shape[-1]) / 2 / unit) * unit,
        high=LEAST_TILE if few else tile,
        wide=tile,
        causal=causal,
        passes=2.5 if node.kind == "attention_backward" else 1.0,
    )
    half = 0.5 if causal else 1.0
    flops = 2.0 * work.heads * queries * work.keys * (dim + v.shape[-1]) * half * work.passes
    kind = q.dtype if q.dtype in target.matrix else ("tf32" if wide and "tf32" in target.matrix else "fp32")
    main = Launch(
        name=node.kind,
        row="attention_few" if few else f"attention{'32' if wide else '16'}",
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        writes=accesses(graph, node.outputs),
        elements=0.0,
        blocks=float(work.tiles),
        threads=384,
        resident=2 if few else 1,
        flops=flops,
        rate=target.peak(kind) / target.machine.sms,
        attention=work,
        arithmetic=flops,
    )
    return [main] if wide or few else [memset(f"{node.name}.counter", 4.0), main]


LIBRARY: Final[dict[str, Callable[[Graph, Node, Target], list[Launch]]]] = {
    "matmul": matmul,
    "conv": conv,
    "attention": attention,
}
"""Rules of families that run in a vendor's library."""
