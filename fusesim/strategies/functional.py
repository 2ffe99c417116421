"""Programs without writes over intermediates, as compilers that work on values see them.

An op that writes over a tensor makes a new one instead, unless somebody later reads its memory other than through the
result: the whole of which it changed a part, say. What the program was handed stays written over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fusesim.tensor import disjoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusesim.graph import Graph, Node
    from fusesim.tensor import Tensor


def functional(graph: Graph) -> Graph:
    """Return a graph in which ops make tensors of their own where nobody can tell.

    Parameters
    ----------
    graph : Graph
        Any graph.

    Returns
    -------
    Graph
        The same ops; the very same graph where nothing changes.
    """
    unclear = _unclear(graph)
    writers = [node for node in graph.paid_nodes if _writes_over(graph, node, unclear)]
    freed = {node.name for node in writers} - _seen_elsewhere(graph, writers)
    if not freed:
        return graph
    tensors = dict(graph.tensors)
    nodes = []
    for node in graph.nodes:
        if node.name in freed:
            nodes.append(replace(node, attrs=tuple(pair for pair in node.attrs if pair[0] != "over")))
            tensors.update({name: _own(graph.tensors[name]) for name in node.outputs})
            continue
        nodes.append(node)
        source = node.inputs[0] if node.family == "view" else node.attr("over")
        for name in node.outputs:
            if source in tensors and tensors[name].is_view:
                tensors[name] = _following(graph.tensors, tensors, name, source)
    return replace(graph, nodes=tuple(nodes), tensors=tensors)


def _unclear(graph: Graph) -> set[str]:
    """Return memory that is an input's, or that some op writes over at a place that no tensor names."""
    found = set(graph.inputs)
    for node in graph.paid_nodes:
        if node.attr("over") not in graph.tensors:
            found.update(graph.tensors[name].storage for name in node.outputs if graph.tensors[name].is_view)
    return found


def _writes_over(graph: Graph, node: Node, unclear: set[str]) -> bool:
    """Return whether an op writes over an intermediate, value by value."""
    if node.family != "pointwise" or len(node.outputs) != 1:
        return False
    tensor = graph.tensors[node.outputs[0]]
    return tensor.is_view and tensor.storage not in unclear


def _seen_elsewhere(graph: Graph, writers: list[Node]) -> set[str]:
    """Return the ops whose writing is seen by who reads their memory other than through their results."""
    storages = {graph.tensors[node.outputs[0]].storage for node in writers}
    reads: dict[str, list[tuple[int, str]]] = {storage: [] for storage in storages}
    for place, node in enumerate(graph.nodes):
        for name in node.inputs if node.family != "view" else ():
            reads.get(graph.tensors[name].storage, []).append((place, name))
    for name in graph.outputs:
        reads.get(graph.tensors[name].storage, []).append((len(graph.nodes), name))
    through = _lineages(graph)
    found = set()
    for node in writers:
        (made,) = node.outputs
        written = graph.tensors[made]
        for place, name in reads[written.storage]:
            apart = made in through[name] or disjoint(graph.tensors[name], written)
            if place > graph.index[node.name] and not apart:
                found.add(node.name)
    return found


def _lineages(graph: Graph) -> dict[str, frozenset[str]]:
    """Return for each view, or result written over something, what it was seen or written through, itself included."""
    found = {name: frozenset([name]) for name in graph.tensors}
    for node in graph.nodes:
        source = node.inputs[0] if node.family == "view" else node.attr("over")
        for name in node.outputs:
            if source in found and graph.tensors[name].is_view:
                found[name] |= found[source]
    return found


def _own(tensor: Tensor) -> Tensor:
    """Return a tensor in memory of its own."""
    return replace(tensor, storage=tensor.name, offset=0)


def _following(before: Mapping[str, Tensor], tensors: Mapping[str, Tensor], name: str, source: str) -> Tensor:
    """Return a tensor in the memory that its source has now."""
    moved = before[source].offset - tensors[source].offset
    return replace(before[name], storage=tensors[source].storage, offset=before[name].offset - moved)
