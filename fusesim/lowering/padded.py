"""Products whose results a compiled graph pads: Inductor lets each row of a large buffer begin at a whole line.

Into such rows cuBLAS's kernel cannot add a bias: it is copied over the result first. The rule, its numbers included, is
that of PyTorch 2.11; results of 1000 to 32001 columns on an H200 show it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim.lowering.vectors import spread_bias

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node
    from fusesim.launches import Launch

LINE, NARROW = 128, 1024
"""Bytes that a padded row is a multiple of, and values up to which rows are left as they are."""


def padded_bias(graph: Graph, node: Node) -> list[Launch]:
    """Return the copy of a product's bias over its result, where that is padded; what leaves the graph never is."""
    if node.kind != "matmul" or len(node.inputs) < 3:  # noqa: PLR2004
        return []
    out = graph.tensors[node.outputs[0]]
    loose = out.shape[-1] > NARROW and out.shape[-1] * out.itemsize % LINE != 0
    leaves = out.storage in {graph.tensors[name].storage for name in graph.outputs}
    return [spread_bias(graph, node, out)] if loose and not leaves else []
