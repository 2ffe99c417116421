"""Products of a matrix and a vector (cuBLAS): a row of the matrix for each result, whichever side the vector stands on.

Which kernels run is decided from shapes and types, as launches on an H200 show it (PyTorch 2.11, cuBLAS 13).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access, Launch
from fusesim.lowering.access import WIDE, accesses, ceil, width
from fusesim.lowering.rows import WARP
from fusesim.lowering.strided import strided_blocks, strided_row
from fusesim.products import Product

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node
    from fusesim.tensor import Tensor

ALIGNED: Final = 16
"""Bytes that rows must fill for a kernel on the matrix units."""

ROWS: Final = 8
"""Rows of the matrix that a block works on."""

VECTOR: Final = 4
"""Values that a thread loads at a time."""

SPLIT, PARTS = 16, 512
"""How many times as long as there are rows a row must be to be shared out, and among how many blocks (H200: 1024 by 32
and 16384 by 256 are, 4096 by 512 not)."""


def turned_vector(product: Product) -> Product | None:
    """Return a product with a vector as one of one row, where matrix units take it; None for all others.

    A vector needs no alignment across its length, so that only the inner dimension counts.
    """
    small = product.batch == 1 and product.itemsize < WIDE and product.k * product.itemsize % ALIGNED == 0
    if not small or product.n > 1 or product.m == 1:
        return None
    return Product(1, 1, product.k, product.m, product.itemsize)


def is_gemv(product: Product, kind: str) -> bool:
    """Return whether plain arithmetic multiplies a matrix and a vector: fp32, or rows that fill no 16 bytes."""
    if product.batch > 1 or min(product.m, product.n) > 1:
        return False
    across = (product.k, product.n) if product.n > 1 else (product.k,)
    loose = any(length * product.itemsize % ALIGNED for length in across)
    return kind == "fp32" or product.m == product.n or loose


def gemv(graph: Graph, node: Node, product: Product, sms: float) -> list[Launch]:
    """Return the kernels of a matrix and a vector: one, or of few long rows parts and their sum.

    Blocks take fewer rows where SMs would be idle otherwise.
    """
    rows, inner = float(max(product.m, product.n)), ceil(product.k, WARP * VECTOR) * WARP * VECTOR
    split = product.k >= SPLIT * rows
    blocks = float(PARTS) if split else max(ceil(rows, ROWS), min(rows, sms))
    main = Launch(
        name=node.kind,
        row="gemv",
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        writes=accesses(graph, node.outputs),
        elements=rows * inner / VECTOR,
        blocks=blocks,
        threads=128,
        resident=16,
        steps=max(ceil(rows * inner, blocks * 128 * VECTOR), 1.0),
        arithmetic=product.flops,
    )
    if not split:
        return [main]
    parts = Access(f"{node.name}.parts", 4.0 * PARTS)
    return [
        replace(main, writes=(parts,)),
        Launch(
            name=f"{node.kind} sum of parts",
            row="parts",
            nodes=(node.name,),
            reads=(parts,),
            writes=accesses(graph, node.outputs),
            elements=rows,
            blocks=rows,
            threads=128,
            resident=16,
            slots=2.0 * PARTS / rows,
        ),
    ]


def column_bias(graph: Graph, node: Node, out: Tensor) -> list[Launch]:
    """Return the kernel that a bias of a result of one column needs: only rows have one within their kernel."""
    if len(node.inputs) < 3 or out.shape[-1] > 1:  # noqa: PLR2004
        return []
    return [spread_bias(graph, node, out)]


def spread_bias(graph: Graph, node: Node, out: Tensor) -> Launch:
    """Return the kernel that writes a bias over a whole result, to which the product is then added."""
    bias = graph.tensors[node.inputs[2]]
    along = tuple(int(dim == len(out.shape) - 1 and out.shape[-1] > 1) for dim in range(len(out.shape)))
    return Launch(
        name="bias spread",
        row="memcpy" if out.elements == 1 else strided_row(out.shape, out.strides, [(along, out.itemsize)], width(out)),
        nodes=(node.name,),
        reads=(Access(bias.storage, float(bias.bytes)),),
        writes=accesses(graph, node.outputs),
        elements=float(out.elements),
        blocks=strided_blocks(out),
    )
