"""The kernels that PyTorch launches for one op, run eagerly: which class, how many blocks, what each thread does.

The rules are PyTorch 2.11's (aten/src/ATen/native/cuda), as its kernels' names, grids and blocks show them on an H200;
each is decided from element types, strides and shapes alone. A kind without a rule of its own is priced like a
pointwise op over what it touches.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access, Launch
from fusesim.lowering.access import WIDE, accesses, aligned_strides, ceil, coalesced, regular, width
from fusesim.lowering.composites import normalise
from fusesim.lowering.library import LIBRARY
from fusesim.lowering.rows import column_reduction, row_reduction
from fusesim.tensor import permuted_dense

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target
    from fusesim.tensor import Tensor

    Rule = Callable[[Graph, Node, Target], list[Launch]]

BLOCK: Final = 1024
"""Elements of a block of the vectorised kernel: 128 threads of 8."""

MOST_DIMS: Final = 4
"""Dimensions from which on a strided kernel's index arithmetic is not told apart."""


def pointwise(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernel of a pointwise op, or two where PyTorch divides a number by a tensor.

    Notes
    -----
    All operands regular and of one type: the vectorised kernel. Regular but of several types: one that converts as it
    loads. Anything broadcast or strided: one that works out every operand's place per element, which costs per
    dimension left after merging.
    """
    del target
    inputs, output = [graph.tensors[n] for n in node.inputs], graph.tensors[node.outputs[0]]
    launch = _pointwise(graph, node, inputs, output)
    if node.kind == "div" and node.attr("reverse") and node.attr("scalar") is not None:
        return [launch, launch]
    return [launch]


def _pointwise(graph: Graph, node: Node, inputs: list[Tensor], output: Tensor) -> Launch:
    """Return the kernel of a pointwise op."""
    row = node.row
    floats = {t.dtype for t in inputs if t.shape} | ({output.dtype} if row.returns != "bool" else set())
    floats.discard("bool")
    suffix, mixed = width(*inputs, output), len(floats) > 1
    elements = float(output.elements)
    if regular(output, inputs):
        if not mixed:
            name, per_block, vector = f"vectorised{suffix}", BLOCK, 8
        elif node.kind == "cast" and output.dtype in {"bf16", "fp16"}:
            name, per_block, vector = "narrowed", BLOCK, 8
        else:
            name, per_block, vector = "converted", 512, 4
    else:
        dims = _dims(output, inputs)
        if mixed:
            name, per_block, vector = "strided_converted", 512, 4
        else:
            wide = suffix == "32"
            name, per_block, vector = f"strided{dims}_{suffix}", 256 if wide else 512, 2 if wide else 4
        if transposed(output, inputs):
            name = f"transposed_{suffix}"
    return Launch(
        name=node.kind,
        row=name,
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        writes=accesses(graph, node.outputs),
        elements=elements,
        blocks=max(ceil(elements, per_block), 1.0),
        threads=128,
        resident=16,
        slots=row.slots,
        special=row.special,
        serial=row.serial * vector,
        arithmetic=row.flops * elements,
    )


def _dims(output: Tensor, inputs: list[Tensor]) -> int:
    """Return how many dimensions a strided kernel works out, 2 to `MOST_DIMS`."""
    strides = [aligned_strides(t, output.shape) for t in (output, *inputs)]
    return min(max(coalesced(output.shape, strides), 2), MOST_DIMS)


def transposed(output: Tensor, inputs: list[Tensor]) -> bool:
    """Return whether a large operand's fastest dimension is not the output's: every access is a line of its own."""
    if not output.elements:
        return False
    own = aligned_strides(output, output.shape)
    fast = min((d for d in range(len(own)) if output.shape[d] != 1), key=lambda d: own[d], default=None)
    if fast is None or output.shape[fast] < 8:  # noqa: PLR2004 - a sector of 32 B is used whole
        return False
    return any(aligned_strides(t, output.shape)[fast] > 1 and t.distinct * 2 > output.elements for t in inputs)


def copy(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernel of a copy: the driver's for regular ones of one type, else a strided pointwise one."""
    inputs, output = [graph.tensors[n] for n in node.inputs[-1:]], graph.tensors[node.outputs[0]]
    if not inputs or not regular(output, inputs) or inputs[0].dtype != output.dtype:
        return pointwise(graph, node, target) if inputs else []
    return [_moved(graph, node, "memcpy", float(output.bytes), 16384.0)]


def _moved(graph: Graph, node: Node, row: str, elements: float, per_block: float) -> Launch:
    """Return a kernel that moves what a node reads to where it writes."""
    return Launch(
        name=node.kind,
        row=row,
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        writes=accesses(graph, node.outputs),
        elements=elements,
        blocks=max(ceil(elements, per_block), 1.0),
        threads=256,
        resident=8,
    )


def concat(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernel of a concatenation; several inputs go in one, 128 of them at most."""
    del target
    output = graph.tensors[node.outputs[0]]
    if node.kind == "pad":
        filled = _moved(graph, node, "memcpy", float(output.bytes), 16384.0)
        return [filled, _moved(graph, node, "strided2_16", float(output.elements), 512.0)]
    inputs = [graph.tensors[name] for name in node.inputs]
    contiguous = all(t.contiguous for t in inputs)
    row = "concat_rows" if contiguous and node.attr("dim", 0) else "concat"
    launch = _moved(graph, node, row if contiguous else "concat_strided", float(output.bytes) / 16.0, 512.0)
    return [launch] * max(math.ceil(len(inputs) / 128), 1)


def dropout(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernel of a dropout, which writes x and its mask, or of random numbers, which reads nothing."""
    del target
    x = graph.tensors[node.outputs[0]]
    launch = _moved(graph, node, f"dropout{width(x)}", float(x.elements), 2048.0)
    return [launch]


def gather(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernel that reads rows or elements at places that an index names: only those are read."""
    del target
    output, table = graph.tensors[node.outputs[0]], graph.tensors[node.inputs[0]]
    row_bytes = output.shape[-1] * output.itemsize if output.shape else 0
    whole = node.kind in {"embedding", "index"} and row_bytes % 16 == 0 and len(node.inputs) == 2  # noqa: PLR2004
    indices = accesses(graph, node.inputs[1:])
    reads = (Access(table.storage, float(min(output.bytes, table.bytes))), *indices)
    base = Launch(
        name=node.kind,
        row="bag" if node.kind == "embedding_bag" else ("gather_rows" if whole else "gather_elements"),
        nodes=(node.name,),
        reads=reads,
        writes=accesses(graph, node.outputs),
        elements=float(output.bytes) / 16.0 if whole else float(output.elements),
        blocks=max(ceil(float(output.bytes) / 16.0, 256.0) if whole else ceil(output.elements, 1024.0), 1.0),
        threads=128,
        resident=16,
    )
    if node.kind == "embedding_bag" and len(node.inputs) == 2:  # noqa: PLR2004 - no offsets: they are made here
        offsets = (Access(f"{node.name}.offsets", 8.0 * output.shape[0]),)
        return [Launch(name="arange", row="vectorised32", writes=offsets), base]
    return [base]


def reduction(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of a reduction: over rows where the last dimension goes, else over columns."""
    x = graph.tensors[node.inputs[0]]
    dims = [dim for dim in node.attr("dims", ()) if x.shape[dim] != 1]
    fast = min(range(len(x.shape)), key=lambda dim: x.strides[dim] if x.shape[dim] != 1 else 1 << 60, default=0)
    if fast in dims or not dims:
        return row_reduction(graph, node, target)
    return column_reduction(graph, node, target)


FAMILIES: Final[dict[str, Rule]] = {
    "pointwise": pointwise,
    "copy": copy,
    "concat": concat,
    "random": dropout,
    "gather": gather,
    "normalise": normalise,
    "reduction": reduction,
}


ROW_MAJOR: Final = frozenset({"layer_norm", "rms_norm", "group_norm", "softmax", "log_softmax", "nll_loss"})
"""Kinds whose kernels read row-major tensors only: others are copied first."""


def eager_launches(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels that PyTorch launches for one op; none for a view, or where there is nothing to do."""
    if node.family == "view" or not any(graph.tensors[name].elements for name in node.outputs):
        return []
    rule = LIBRARY.get(node.family) or FAMILIES[node.family]
    launches = rule(graph, node, target)
    if node.kind in ROW_MAJOR and not graph.tensors[node.inputs[0]].contiguous:
        return [_made_row_major(graph, node), *launches]
    return launches


def _made_row_major(graph: Graph, node: Node) -> Launch:
    """Return the kernel that copies an op's first operand into row-major order."""
    x = graph.tensors[node.inputs[0]]
    turned = permuted_dense(x) and len(x.shape) > 1 and x.strides[-1] != 1
    row = f"transposed_{width(x)}" if turned else f"strided3_{width(x)}"
    launch = _moved(graph, node, row, float(x.elements), 512.0 if x.itemsize < WIDE else 256.0)
    return replace(
        launch,
        name=f"{node.kind} copy",
        reads=accesses(graph, node.inputs[:1]),
        writes=(Access(f"{node.name}.row_major", float(x.bytes)),),
        threads=128,
        resident=16,
    )
