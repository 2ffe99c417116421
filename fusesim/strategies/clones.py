"""Recomputing: an op whose value several kernels need becomes one op per kernel, so that none writes it to memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fusesim.graph import Graph, Node
    from fusesim.tensor import Tensor


def cloned(graph: Graph, ops: Collection[str], users: Sequence[Collection[str]]) -> tuple[Graph, list[tuple[str, ...]]]:
    """Return a graph in which each set of users has its own copy of some ops, and the names of each copy.

    Parameters
    ----------
    graph : Graph
        The graph.
    ops : collection of str
        Ops to copy.
    users : sequence of collections of str
        Ops that read what `ops` make; the first set keeps the originals.

    Returns
    -------
    Graph
        The graph with copies beside the originals, views between copied too.
    list of tuple of str
        The ops of each copy, the originals first.
    """
    tensors = dict(graph.tensors)
    taken = {node.name for node in graph.nodes}
    copies: list[tuple[str, ...]] = [tuple(node.name for node in graph.nodes if node.name in ops)]
    renamed: list[dict[str, str]] = [{} for _ in users[1:]]
    nodes: list[Node] = []
    made: list[list[str]] = [[] for _ in users[1:]]
    for node in graph.nodes:
        node = _rewired(node, users, renamed)  # noqa: PLW2901 - the op as its copy's user
        nodes.append(node)
        for place, names in enumerate(renamed):
            if node.name in ops or (node.family == "view" and node.inputs[0] in names):
                copy = _copy(node, names, tensors, taken)
                nodes.append(copy)
                if node.name in ops:
                    made[place].append(copy.name)
    form = replace(graph, tensors=tensors, nodes=tuple(nodes))
    return form, [*copies, *(tuple(names) for names in made)]


def _rewired(node: Node, users: Sequence[Collection[str]], renamed: Sequence[dict[str, str]]) -> Node:
    """Let a user read its own copy."""
    for names, group in zip(renamed, users[1:], strict=True):
        if node.name in group:
            return replace(node, inputs=tuple(names.get(name, name) for name in node.inputs))
    return node


def _copy(node: Node, names: dict[str, str], tensors: dict[str, Tensor], taken: set[str]) -> Node:
    """Add the copy of one op and its tensors."""
    stem, count = node.name, 2
    while f"{stem}.{count}" in taken:
        count += 1
    taken.add(f"{stem}.{count}")
    for name in node.outputs:
        tensor = tensors[name]
        wanted = f"{name}.{count}"
        names[name] = wanted
        storage = names.get(tensor.storage, tensor.storage)
        tensors[wanted] = replace(tensor, name=wanted, storage=storage)
    return replace(
        node,
        name=f"{stem}.{count}",
        inputs=tuple(names.get(name, name) for name in node.inputs),
        outputs=tuple(names[name] for name in node.outputs),
    )
