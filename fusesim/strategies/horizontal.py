"""Vertical fusion, then siblings: groups of which neither needs the other and that one kernel can compute.

Siblings save launches, and what both read is read once where they go over one space.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.strategies.base import as_plan
from fusesim.strategies.quotient import LEAST, Quotient, greedy
from fusesim.strategies.vertical import forms, merged
from fusesim.templates import shape_of
from fusesim.topology import bits, topology

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.strategies.base import Context

NEAR: Final = 8
"""Groups of one class next in the order that are tried as siblings, those that read the same tensor aside."""


def decide(graph: Graph, context: Context) -> FusionPlan:
    """Return the cheaper of the plans of the graph and of its decomposed form."""
    best = None
    least = 0.0
    for form in forms(graph):
        topo = topology(form)
        prices = context.prices(form, topo)
        quotient = merged(topo, prices)
        greedy(quotient, prices, siblings)
        masks = quotient.groups()
        total = prices.total(masks)
        if best is None or total < least - LEAST:
            best, least = as_plan(form, topo, masks, "horizontal", source=graph), total
    return best if best is not None else as_plan(graph, topology(graph), (), "horizontal", source=graph)


def siblings(quotient: Quotient, group: int) -> Iterable[int]:
    """Return the groups beside a group: those that read what it reads, and the next ones of its class."""
    topo = quotient.topo
    mask = quotient.masks[group]
    template = shape_of(topo, mask).template
    found: dict[int, None] = {}
    for place in bits(mask):
        for read in topo.items[place].reads:
            for other in bits(topo.readers[read.base] & ~mask):
                found[quotient.owner[other]] = None
    masks = quotient.masks
    alike = (other for other in masks if other != group and shape_of(topo, masks[other]).template == template)
    near = sorted(alike, key=lambda other: abs(masks[other].bit_length() - mask.bit_length()))
    found.update(dict.fromkeys(near[:NEAR]))
    reach = quotient.reach
    return [other for other in found if not (reach[group] & quotient.masks[other] or reach[other] & mask)]
