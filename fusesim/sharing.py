"""Common subexpressions: ops that compute again what another did, named or shared. Knows no device."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node


def repeated(graph: Graph) -> tuple[tuple[str, str], ...]:
    """Return pairs of ops of which the second computes again what the first did.

    Parameters
    ----------
    graph : Graph
        Any graph.

    Returns
    -------
    tuple of (str, str)
        Names, in the graph's order.

    Notes
    -----
    Two ops are the same if kind, settings, inputs and the form of their results are. Random ops, those that write over
    an input and those that read what is written over never are. Views, which cost nothing, are not named, and ops that
    read nothing (constants, counted places) are made wherever they are used.
    """
    return tuple((first, name) for name, first in _twins(graph).items() if graph.by_name[name].family != "view")


def share_common(graph: Graph) -> Graph:
    """Return the graph with every op computed once that computes the same from the same.

    Parameters
    ----------
    graph : Graph
        Any graph.

    Returns
    -------
    Graph
        Fewer ops. Inputs and outputs keep their names: what is shared takes the output's, and of two outputs that are
        equal both are still computed. The very same graph where nothing repeats.
    """
    gone, alias = _aliases(graph)
    if not gone:
        return graph
    nodes = tuple(
        replace(
            node,
            inputs=tuple(_resolved(alias, name) for name in node.inputs),
            outputs=tuple(_resolved(alias, name) for name in node.outputs),
        )
        for node in graph.nodes
        if node.name not in gone
    )
    tensors = {
        name: replace(tensor, storage=_resolved(alias, tensor.storage))
        for name, tensor in graph.tensors.items()
        if name not in alias
    }
    held = {_resolved(alias, name): gone.get(until, until) for name, until in graph.held.items()}
    return replace(graph, tensors=tensors, nodes=nodes, held=held)


def _aliases(graph: Graph) -> tuple[dict[str, str], dict[str, str]]:
    """Return which ops go, for which that stay, and which names of tensors give way to which."""
    gone: dict[str, str] = {}
    alias: dict[str, str] = {}
    kept = set(graph.outputs)
    for name, first in _twins(graph).items():
        mine, others = graph.by_name[name].outputs, graph.by_name[first].outputs
        others = tuple(_resolved(alias, other) for other in others)
        if not kept & set(mine):
            alias.update(zip(mine, others, strict=True))
        elif not kept & set(others):
            alias.update(zip(others, mine, strict=True))
        else:
            continue
        gone[name] = first
    return gone, alias


def _twins(graph: Graph) -> dict[str, str]:
    """Return for each op that repeats another the first that does the same, views included."""
    written = _written(graph)
    same: dict[str, str] = {}
    first: dict[object, Node] = {}
    found: dict[str, str] = {}
    for node in graph.nodes:
        touched = {graph.tensors[name].storage for name in (*node.inputs, *node.outputs)}
        if node.family == "random" or node.kind == "opaque" or not node.inputs or touched & written:
            continue
        key = (node.kind, tuple(same.get(name, name) for name in node.inputs), node.attrs, _forms(graph, node))
        original = first.setdefault(key, node)
        if original is not node:
            found[node.name] = original.name
            same.update(zip(node.outputs, original.outputs, strict=True))
    return found


def _written(graph: Graph) -> set[str]:
    """Return the memory that some op writes over."""
    made = (name for node in graph.nodes if node.family != "view" for name in node.outputs)
    return {graph.tensors[name].storage for name in made if graph.tensors[name].is_view}


def _forms(graph: Graph, node: Node) -> tuple[object, ...]:
    """Return what the results of an op look like."""
    made = (graph.tensors[name] for name in node.outputs)
    return tuple((tensor.shape, tensor.dtype, tensor.strides, tensor.offset) for tensor in made)


def _resolved(alias: dict[str, str], name: str) -> str:
    """Return the name that stands for a name in the end."""
    while name in alias:
        name = alias[name]
    return name
