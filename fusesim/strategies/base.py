"""What every strategy is given, and the plan that it makes of sets of ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from fusesim.fusion import FusionPlan, Group
from fusesim.legality import ordered
from fusesim.limits import Limits
from fusesim.resources import resources_of
from fusesim.strategies.twins import Alike
from fusesim.templates import shape_of
from fusesim.textbook_cost import TextbookCost

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fusesim.graph import Graph
    from fusesim.topology import Topology

Cost = Callable[["Graph", tuple[str, ...]], float]
"""The time of one kernel of some ops, by name. [s]."""


class Context:
    """What a strategy may ask: the price of a kernel, and a device's limits.

    Prices are remembered per graph and set of ops: planners ask for the same group many times.
    """

    def __init__(self, cost: Cost, limits: Limits | None = None) -> None:
        self.cost = cost
        self.limits = limits if limits is not None else Limits()
        self._prices: dict[int, dict[int, float]] = {}
        self._alike: dict[int, Alike] = {}
        self._graphs: list[Graph] = []

    def prices(self, graph: Graph, topo: Topology) -> Prices:
        """Return the prices of groups of one graph."""
        if id(graph) not in self._prices:
            self._graphs.append(graph)  # so that its id stays its own
            self._prices[id(graph)] = {}
            self._alike[id(graph)] = Alike(graph, topo)
        return Prices(graph, topo, self, (self._prices[id(graph)], self._alike[id(graph)]))


class Prices:
    """Prices of groups of one graph, by set of ops; infinite where a set is no kernel."""

    def __init__(self, graph: Graph, topo: Topology, context: Context, known: tuple[dict[int, float], Alike]) -> None:
        self.graph = graph
        self.topo = topo
        self.context = context
        self.known, self.alike = known

    def __call__(self, mask: int) -> float:
        """Return the time of a set of ops as one kernel, convex or not. [s]."""
        price = self.known.get(mask)
        if price is None:
            first = self.alike.first(mask)
            price = self.known[mask] = self._price(mask) if first == mask else self(first)
        return price

    def _price(self, mask: int) -> float:
        """Work out a price."""
        shape = shape_of(self.topo, mask)
        if shape.reason or (shape.template == "attention" and self._too_large(mask)):
            return math.inf
        cost = self.context.cost
        if isinstance(cost, TextbookCost):
            return cost.of_mask(self.topo, mask)
        return cost(self.graph, self.topo.named(mask))

    def _too_large(self, mask: int) -> bool:
        """Return whether the tiles of several ops need more shared memory than a block has."""
        room = self.context.limits.shared_memory_per_block
        if room is None or not mask & (mask - 1):
            return False
        return resources_of(self.topo, mask, self.context.limits).shared_memory > room

    def total(self, masks: Iterable[int]) -> float:
        """Return the time of groups one after the other. [s]."""
        return sum(self(mask) for mask in masks)


class Decide(Protocol):
    """A strategy."""

    def __call__(self, graph: Graph, context: Context) -> FusionPlan:
        """Return the plan of a graph."""


def as_plan(
    graph: Graph,
    topo: Topology,
    masks: Sequence[int],
    strategy: str,
    *,
    source: Graph | None = None,
    notes: tuple[str, ...] = (),
    bound: float | None = None,
) -> FusionPlan:
    """Return the plan of sets of ops, in an order in which they can run."""
    sets, stuck = ordered(topo, masks)
    groups = tuple(Group(nodes=topo.named(mask)) for mask in (*sets, *stuck))
    return FusionPlan(graph=graph, groups=groups, strategy=strategy, source=source, notes=notes, bound=bound)


def masks_of(topo: Topology, plan: FusionPlan) -> list[int]:
    """Return a plan's groups as sets of ops."""
    return [topo.mask(group.nodes) for group in plan.groups]
