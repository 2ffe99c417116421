"""Branches of a concatenation that differ in nothing but their place, so that planners price one for all of them.

Where forty tensors of one shape go through the same ops into one concatenation, a kernel of any three of them takes as
long as that of any other three. Greedy merging asks for all, each again after every merge: priced by what they are, a
few dozen answers stand for thousands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from fusesim.graph import Graph
    from fusesim.topology import Topology

Branch = tuple[int, ...]
"""The ops of a branch, in an order that is the same in all that are alike."""

Twins = list[Branch]
"""Branches that are alike, in the graph's order."""


class Alike:
    """The branches of a graph that are alike.

    Parameters
    ----------
    graph : Graph
        The graph.
    topo : Topology
        The same as integers.
    """

    def __init__(self, graph: Graph, topo: Topology) -> None:
        self._families = [
            (sum(1 << place for branch in twins for place in branch), twins) for twins in _twins(graph, topo)
        ]

    def first(self, mask: int) -> int:
        """Return the set that stands for all that are like a set: of its branches, the first of their kind.

        Swapping two branches that are alike, with all their ops, leaves the graph as it is.
        """
        for whole, twins in self._families:
            if mask & whole:
                mask = mask & ~whole | _moved_up(mask & whole, twins)
        return mask


def _moved_up(mask: int, twins: Twins) -> int:
    """Return the ops of a set in the first branches, those with most of them before others."""
    if len(twins[0]) == 1:
        return sum(1 << branch[0] for branch in twins[: mask.bit_count()])
    held = [tuple(mask >> place & 1 for place in branch) for branch in twins]
    held.sort(reverse=True)
    return sum(
        1 << place
        for branch, bits in zip(twins, held, strict=True)
        for place, bit in zip(branch, bits, strict=True)
        if bit
    )


def _twins(graph: Graph, topo: Topology) -> list[Twins]:
    """Return the branches that are alike, of each concatenation."""
    found = []
    for node in graph.paid_nodes:
        if node.kind != "concat":
            continue
        known: dict[Hashable, Twins] = {}
        for name in node.inputs:
            branch: list[int] = []
            what = _described(graph, topo, name, branch, {})
            if branch and node.inputs.count(name) == 1:
                known.setdefault(what, []).append(tuple(branch))
        found += [sorted(twins) for twins in known.values() if len(twins) > 1]
    return found


def _described(graph: Graph, topo: Topology, name: str, branch: list[int], seen: dict[str, int]) -> Hashable:
    """Return all that is to be said of a tensor and how it is made, and add the ops to its branch.

    A tensor that others see too, or look at through a view, is itself and like no other; one that the branch has
    `seen` is known by its number there.
    """
    if name in seen:
        return seen[name]
    seen[name] = len(seen)
    tensor = graph.tensors[name]
    if len(graph.consumers[name]) != 1 or tensor.is_view or name in graph.kept:
        return name
    looks = (tensor.shape, tensor.dtype, tensor.strides)
    node = graph.producers.get(name)
    if node is None:
        return looks
    if node.family != "pointwise" or len(node.outputs) > 1:
        return name
    branch.append(topo.index[node.name])
    made = tuple(_described(graph, topo, given, branch, seen) for given in node.inputs)
    return (node.kind, repr(node.attrs), looks, made)
