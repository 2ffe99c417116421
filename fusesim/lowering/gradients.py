"""Kernels of backward passes that are more than one: attention (cuDNN), norms over rows (PyTorch)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access, Launch
from fusesim.lowering.access import WIDE, accesses, ceil, width
from fusesim.lowering.library import attention

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target


ROW_VALUES: Final = 512.0
"""Values of a row that a block of 128 threads loads at once."""

SIDE: Final = 32
"""Columns of a block that adds up weights' gradients, and its rows at a time: 32 by 32 threads."""


def attention_backward(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of attention's gradients.

    Notes
    -----
    First what each row of the gradient makes with the output, while the sums of the queries' gradients are cleared;
    then the scores again, tile by tile, those sums added up in fp32 by all tiles of keys; then they are rounded.
    """
    *before, main = attention(graph, node, target)
    q = graph.tensors[node.inputs[0]]
    if q.itemsize >= WIDE:
        return [*before, main]
    rows = Access(f"{node.name}.rows", 4.0 * math.prod(q.shape[:-1]))
    sums = Access(f"{node.name}.sums", 4.0 * q.elements)
    queries, *others = main.writes
    stream = Launch(name=node.kind, row="narrowed", nodes=(node.name,), elements=float(q.elements))
    given = accesses(graph, node.inputs[3:5])
    first = replace(stream, reads=given, writes=(rows, sums), blocks=max(ceil(q.elements, 1024.0), 1.0))
    last = replace(stream, reads=(sums,), writes=(queries,), blocks=max(ceil(q.elements, 2048.0), 1.0))
    reads = (*accesses(graph, node.inputs[:4]), rows)
    return [*before, first, replace(main, row="attention_back16", reads=reads, writes=(sums, *others)), last]


def norm_backward(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of the gradients of a layer norm: the input's, row by row, and the weights', by columns."""
    x = graph.tensors[node.inputs[1]]
    inputs = [name for name in node.outputs if graph.tensors[name].elements == x.elements]
    weights = [name for name in node.outputs if name not in inputs]
    columns = graph.tensors[weights[0]].elements if weights else x.shape[-1]
    rows = max(x.elements // max(columns, 1), 1)
    base = Launch(
        name=node.kind,
        row=f"layer_norm{width(x)}",
        nodes=(node.name,),
        reads=accesses(graph, node.inputs),
        elements=float(x.elements),
        slots=10,
        arithmetic=node.row.flops * x.elements / max(len(node.outputs), 1),
    )
    launches = []
    if inputs:
        again, at_once = 2.0 * x.bytes, min(rows, target.machine.sms * base.resident)
        writes, window = accesses(graph, inputs), at_once * 2.0 * columns * x.itemsize
        steps = ceil(columns, ROW_VALUES)
        launches.append(replace(base, writes=writes, again=again, window=window, blocks=float(rows), steps=steps))
    if weights:
        row, writes = f"columns{width(x)}", accesses(graph, weights)
        blocks, steps = ceil(columns, SIDE), ceil(rows, SIDE)
        launches.append(replace(base, row=row, writes=writes, blocks=blocks, threads=SIDE**2, resident=1, steps=steps))
    return launches
