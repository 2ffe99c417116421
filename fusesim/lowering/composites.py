"""PyTorch's kernels for composites that it runs as one op: norms, softmax, pooling, losses, running sums.

Those over rows stand in `fusesim.lowering.rows`; a kind without a rule of its own is one pass over what it touches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access, Launch
from fusesim.lowering.access import accesses, ceil, width
from fusesim.lowering.rows import group_norm, layer_norm, softmax

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target

    Rule = Callable[[Graph, Node, Target], list[Launch]]


def normalise(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of composites that have no rows of their own: one pass over what they touch."""
    rule = ROWS.get(node.kind)
    if rule is not None:
        return rule(graph, node, target)
    row = _pass(graph, node)
    if node.kind == "pool":
        x = graph.tensors[node.inputs[0]]
        return [replace(row, row=f"pool{'_last' if len(x.strides) > 1 and x.strides[1] == 1 else ''}{width(x)}")]
    return [row]


def _pass(graph: Graph, node: Node) -> Launch:
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


def batch_norm(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of an inference batch norm.

    Notes
    -----
    fp32 through cuDNN: one. 16 bits: the means are copied, the deviations inverted, then the transform.
    """
    del target
    x, mean = graph.tensors[node.inputs[0]], graph.tensors[node.inputs[1]]
    if x.dtype == "fp32":
        return [_transform(graph, node, "batch_norm32")]
    small = float(mean.elements * 4)
    first = "memcpy" if mean.dtype == "fp32" else "converted"
    copied = Launch(
        name="batch_norm mean",
        row=first,
        nodes=(node.name,),
        reads=(Access(mean.storage, float(mean.bytes)),),
        writes=(Access(f"{node.name}.mean", small),),
        elements=float(mean.elements),
    )
    inverted = Launch(
        name="batch_norm deviation",
        row="vectorised32",
        nodes=(node.name,),
        reads=(Access(graph.tensors[node.inputs[2]].storage, small),),
        writes=(Access(f"{node.name}.scale", small),),
        elements=float(mean.elements),
    )
    return [copied, inverted, _transform(graph, node, "batch_norm16")]


def _transform(graph: Graph, node: Node, row: str) -> Launch:
    """Return the kernel that scales and shifts each channel."""
    x = graph.tensors[node.inputs[0]]
    return Launch(
        name="batch_norm",
        row=row,
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        writes=accesses(graph, node.outputs),
        elements=float(x.elements),
        blocks=max(ceil(x.elements, 8192.0), 1.0),
        threads=512,
        resident=4,
        slots=4,
        arithmetic=4.0 * x.elements,
    )


def nll_loss(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the one block that gathers the targets' values and adds them up."""
    del target
    x, wanted = graph.tensors[node.inputs[0]], graph.tensors[node.inputs[1]]
    rows = float(max(wanted.elements, 1))
    return [
        Launch(
            name="nll_loss",
            row="nll_loss",
            nodes=(node.name,),
            reads=(Access(x.storage, rows * 32.0), Access(wanted.storage, float(wanted.bytes))),
            writes=accesses(graph, node.outputs),
            elements=rows,
            blocks=1,
            threads=32,
            resident=1,
            steps=ceil(rows, 32.0),
            arithmetic=rows,
        )
    ]


def scan(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernel of a running sum along rows."""
    del target
    x = graph.tensors[node.inputs[0]]
    rows = max(x.elements // max(x.shape[-1], 1), 1)
    return [
        Launch(
            name=node.kind,
            row=f"scan{width(x)}",
            nodes=(node.name,),
            reads=accesses(graph, node.inputs),
            writes=accesses(graph, node.outputs),
            elements=float(x.elements),
            blocks=float(rows),
            threads=128,
            resident=8,
            steps=ceil(x.shape[-1], 1024.0),
            arithmetic=float(x.elements),
        )
    ]


ROWS: Final[dict[str, Rule]] = {
    "softmax": softmax,
    "log_softmax": softmax,
    "layer_norm": layer_norm,
    "rms_norm": layer_norm,
    "group_norm": group_norm,
    "batch_norm": batch_norm,
    "nll_loss": nll_loss,
    "cumsum": scan,
}
"""Rules of composites."""
