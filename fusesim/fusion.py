"""Which ops share a kernel: groups, and plans that are partitions of a graph into groups.

What may share a kernel is decided in `fusesim.legality`; who decides what does is a strategy, in
`fusesim.strategies`. This file knows no device and no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Ops of a graph that one kernel computes, by name, in the graph's order; views belong to no group."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class FusionPlan:
    """A partition of a graph's ops into groups, in an order in which the kernels can run.

    `graph` is the graph that the groups speak of: a strategy that decomposes composite ops has its own. `source` is
    the graph that was planned. `bound` is a lower bound on the objective where a solver stopped early.
    """

    graph: Graph
    groups: tuple[Group, ...]
    strategy: str
    source: Graph | None = None
    notes: tuple[str, ...] = ()
    bound: float | None = None

    @cached_property
    def group_of(self) -> dict[str, int]:
        """The group of each op."""
        return {name: place for place, group in enumerate(self.groups) for name in group.nodes}

    def nodes(self, group: Group) -> tuple[Node, ...]:
        """Return the ops of a group."""
        return tuple(self.graph.by_name[name] for name in group.nodes)

    def external_inputs(self, group: Group) -> tuple[str, ...]:
        """Return the tensors that a group reads and did not make itself, in the order of first use."""
        own = set(group.nodes)
        found: dict[str, None] = {}
        for node in self.nodes(group):
            for name in node.inputs:
                producer = self.graph.producers.get(self.graph.base(name))
                if producer is None or producer.name not in own:
                    found[name] = None
        return tuple(found)

    def external_outputs(self, group: Group) -> tuple[str, ...]:
        """Return the tensors of a group that others read or that the graph returns."""
        own, kept, readers = set(group.nodes), self.graph.kept, self.readers
        return tuple(
            name
            for node in self.nodes(group)
            for name in node.outputs
            if name in kept or not own.issuperset(readers.get(name, ()))
        )

    def idle(self, group: Group) -> bool:
        """Return whether a group makes no value: its tensors have no elements, and nothing is launched for it."""
        tensors = self.graph.tensors
        return not any(tensors[name].elements for node in self.nodes(group) for name in node.outputs)

    @cached_property
    def readers(self) -> dict[str, tuple[str, ...]]:
        """The paid ops that read each tensor, through views too, by name."""
        found: dict[str, list[str]] = {}
        for node in self.graph.paid_nodes:
            for name in node.inputs:
                found.setdefault(self.graph.base(name), []).append(node.name)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def __repr__(self) -> str:
        """Return one line."""
        return f"<FusionPlan {self.strategy} of {self.graph.name}: {len(self.groups)} groups>"
