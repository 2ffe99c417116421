"""Kernels of the vendor's libraries: matrix products (cuBLAS) and attention (cuDNN, CUTLASS).

Which of them PyTorch calls, and with what besides, is decided from shapes, strides and types, as launches on an H200
show it (PyTorch 2.11, cuBLAS 13, cuDNN 9.19).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.attention_tiles import TiledAttention
from fusesim.launches import Access, Launch
from fusesim.lowering.access import WIDE, accesses, ceil
from fusesim.lowering.rows import memset
from fusesim.lowering.vectors import column_bias, gemv, is_gemv, turned_vector
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
    first = column_bias(graph, node, out)
    if is_gemv(product, _unit(a.dtype, target)):
        return [*first, *gemv(graph, node, product, target.machine.sms)]
    row = turned_vector(product)
    return [*first, *products(graph, node, target, row or product, a.dtype, aligned=True if row else None)]


def _unit(dtype: str, target: Target) -> str:
    """Return the type whose arithmetic a product runs in."""
    return dtype if dtype in target.matrix and dtype != "fp32" else "fp32"


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
    aligned: bool | None = None,
) -> list[Launch]:
    """Return the kernels of a product of that type; `handed` where tiles may be handed out through a counter.

    Rows are `aligned` where they fill 16 bytes; it is told for operands that are not as the product says.
    """
    kind = _unit(dtype, target)
    rate = target.peak(kind) / target.machine.sms
    tiling = choose_tiling(product, int(target.machine.sms), rate)
    if aligned is None:
        aligned = kind == "fp32" or (product.n * product.itemsize % 16 == 0 and product.k * product.itemsize % 16 == 0)
    suffix = "32" if product.itemsize >= WIDE else "16"
    loose = "" if aligned else "_single" if (product.n | product.k) % 2 else "_odd"
    out = sum(graph.tensors[n].bytes for n in node.outputs[:1])
    main = Launch(
        name=node.kind,
        row=f"{row}{loose}{suffix}",  # of operands that fill four bytes, and of those that fill but two
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
    "attention": attention,
}
"""Rules of families that run in a vendor's library."""
