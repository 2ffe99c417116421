"""The kernels that PyTorch launches for one op, run eagerly: which class, how many blocks, what each thread does.

The rules are PyTorch 2.11's (aten/src/ATen/native/cuda), as its kernels' names, grids and blocks show them on an H200;
each is decided from element types, strides and shapes alone. A kind without a rule of its own is priced like a
pointwise op over what it touches.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.launches import Launch
from fusesim.lowering.access import accesses, aligned_strides, ceil, regular, width
from fusesim.lowering.composites import normalise
from fusesim.lowering.convolutions import conv
from fusesim.lowering.functors import Dependent, dependent
from fusesim.lowering.gathers import gather
from fusesim.lowering.gradients import attention_backward, norm_backward
from fusesim.lowering.library import LIBRARY
from fusesim.lowering.rows import column_reduction, row_reduction
from fusesim.lowering.slow_paths import by_number, slow_path
from fusesim.lowering.strided import (
    NARROW_BLOCK,
    WIDE_BLOCK,
    Reach,
    copied,
    operands_of,
    reach,
    strided_row,
    transposed,
)
from fusesim.tensor import permuted_dense, row_major

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target
    from fusesim.tensor import Tensor

    Rule = Callable[[Graph, Node, Target], list[Launch]]

PICTURE: Final = 4
"""Dimensions of a batch of pictures."""

BLOCK: Final = 1024
"""Elements of a block of the vectorised kernel: 128 threads of 8."""

NARROW: Final = frozenset({"bf16", "fp16", "fp8"})
"""Types that PyTorch's copy has a vectorised kernel to convert to."""


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
    elements, cost = float(output.elements), Reach(0.0, 0.0)
    if regular(output, inputs):
        if not mixed:
            name, per_block, vector = f"vectorised{suffix}", BLOCK, 8
        elif node.kind == "cast" and output.dtype in NARROW:
            name, per_block, vector = "narrowed", BLOCK, 8
        else:
            name, per_block, vector = "converted", 512, 4
    else:
        shape, own = output.shape, aligned_strides(output, output.shape)
        operands = operands_of(shape, inputs)
        name, cost = strided_row(shape, own, operands, suffix), reach(shape, own, operands)
        wide = suffix == "32" and not mixed
        per_block, vector = (WIDE_BLOCK, 2) if wide else (NARROW_BLOCK, 4)
        if mixed and not transposed(shape, own, operands):
            name = "strided_converted"
    kind = "mul" if node.kind == "div" and by_number(node) else node.kind
    slow = slow_path(graph, node)
    alone = dependent(kind, row.serial) if name.startswith("vectorised") else Dependent(row.serial, 0.0)
    each = 1.0 if name.startswith("vectorised") else float(vector)  # stored before the next is loaded
    return Launch(
        name=node.kind,
        row=name,
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        writes=accesses(graph, node.outputs),
        crossing=cost.crossing,
        elements=elements,
        blocks=max(ceil(elements, per_block), 1.0),
        threads=128,
        resident=16,
        steps=min(each, max(ceil(elements, 128.0), 1.0)),
        slots=row.slots + alone.slots + cost.slots + slow.slots,
        special=row.special,
        serial=(alone.full + slow.cycles) * vector,
        partial=(alone.partial + slow.cycles) * vector * (elements % per_block > 0.0),
        arithmetic=row.flops * elements,
    )


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
    """Return the kernel of a concatenation; several inputs go in one, 128 of them at most.

    Notes
    -----
    Row-major inputs are copied 16 bytes at a time. Others value by value, each place worked out anew: by a kernel of
    its own where channels of pictures are last.
    """
    output = graph.tensors[node.outputs[0]]
    if node.kind == "pad":
        filled = _moved(graph, node, "memcpy", float(output.bytes), 16384.0)
        return [filled, _moved(graph, node, "strided2_16", float(output.elements), 512.0)]
    inputs = [graph.tensors[name] for name in node.inputs]
    if all(t.contiguous for t in inputs):
        row = "concat_rows" if node.attr("dim", 0) else "concat"
        launch = _moved(graph, node, row, float(output.bytes) / 16.0, 512.0)
    else:
        last = all(len(t.shape) == PICTURE and permuted_dense(t) and t.strides[1] == 1 for t in inputs)
        launch = _moved(graph, node, "concat_last" if last else "concat_strided", float(output.elements), 1024.0)
        if not last:  # two blocks of 512 threads on each SM for each tensor, whatever its size
            blocks = 2.0 * target.machine.sms * len(inputs)
            launch = replace(launch, blocks=blocks, threads=512, resident=4)
    return [launch] * max(math.ceil(len(inputs) / 128), 1)


def dropout(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernel of a dropout, which writes x and its mask, or of random numbers, which reads nothing."""
    del target
    x = graph.tensors[node.outputs[0]]
    launch = _moved(graph, node, f"dropout{width(x)}", float(x.elements), 2048.0)
    return [launch]


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
    "conv": conv,
    "random": dropout,
    "gather": gather,
    "normalise": normalise,
    "reduction": reduction,
}


KINDS: Final[dict[str, Rule]] = {"attention_backward": attention_backward, "layer_norm_backward": norm_backward}
"""Rules of kinds that launch other kernels than their family."""

ROW_MAJOR: Final = frozenset({"layer_norm", "rms_norm", "group_norm", "softmax", "log_softmax", "nll_loss"})
"""Kinds whose kernels read row-major tensors only: others are copied first."""


def eager_launches(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels that PyTorch launches for one op; none for a view, or where there is nothing to do."""
    if node.family == "view" or not any(graph.tensors[name].elements for name in node.outputs):
        return []
    rule = KINDS.get(node.kind) or LIBRARY.get(node.family) or FAMILIES[node.family]
    launches = rule(graph, node, target)
    if node.kind in ROW_MAJOR and not graph.tensors[node.inputs[0]].contiguous:
        return [_made_row_major(graph, node), *launches]
    return launches


def _made_row_major(graph: Graph, node: Node) -> Launch:
    """Return the kernel that copies an op's first operand into row-major order."""
    x = graph.tensors[node.inputs[0]]
    return copied(x, row_major(x.shape), f"{node.name}.row_major", name=f"{node.kind} copy", nodes=(node.name,))
