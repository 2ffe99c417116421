"""PyTorch's kernels of norms: of rows, and of groups of channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim.launches import Access, Launch
from fusesim.lowering.access import WIDE, accesses, ceil, width
from fusesim.lowering.rows import extents

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
