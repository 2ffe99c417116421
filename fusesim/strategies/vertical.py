"""Greedy fusion along edges: of all producer and consumer pairs, merge the one that saves most, until none saves.

Composite ops are written out first; where the plan of the graph as it stands is cheaper, that one is returned, so the
result never costs more than a kernel per op. Tiled attention is tried as a whole before: its halves are no kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim.decompose import RULES, decompose
from fusesim.strategies.base import as_plan
from fusesim.strategies.quotient import LEAST, Quotient, attention_groups, greedy, neighbours
from fusesim.topology import bits, topology

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.strategies.base import Context, Prices
    from fusesim.topology import Topology


def decide(graph: Graph, context: Context) -> FusionPlan:
    """Return the cheaper of the greedy plans of the graph and of its decomposed form."""
    best = None
    least = 0.0
    for form in forms(graph):
        topo = topology(form)
        prices = context.prices(form, topo)
        masks = merged(topo, prices).groups()
        total = prices.total(masks)
        if best is None or total < least - LEAST:
            best, least = as_plan(form, topo, masks, "vertical", source=graph), total
    return best if best is not None else as_plan(graph, topology(graph), (), "vertical", source=graph)


def forms(graph: Graph) -> tuple[Graph, ...]:
    """Return the forms of a graph that are planned: with composite ops written out, and as it stands."""
    written_out = decomposed(graph)
    return (graph,) if written_out is graph else (written_out, graph)


def decomposed(graph: Graph) -> Graph:
    """Return a graph with composite ops written out; a batch norm behind a convolution stays, since it folds."""
    folds = any(
        node.kind == "batch_norm"
        and (maker := graph.producers.get(graph.base(node.inputs[0])))
        and maker.kind == "conv"
        for node in graph.nodes
    )
    return decompose(graph, [kind for kind in RULES if kind != "batch_norm" or not folds])


def merged(topo: Topology, prices: Prices) -> Quotient:
    """Return the groups that greedy merging ends with."""
    quotient = Quotient(topo)
    for mask in attention_groups(topo):
        alone = sum(prices(1 << place) for place in bits(mask))
        if prices(mask) < alone:
            quotient.unite(mask)
    greedy(quotient, prices, neighbours)
    return quotient
