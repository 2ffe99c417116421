"""Groups that the exact planner chooses from: kernels that cost less than their ops one by one.

Small graphs are searched through whole: every set of ops. Larger ones grow sets along edges, to siblings that read the
same tensor, and over what lies between; growth stops at a number of candidates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusesim.strategies.quotient import LEAST, attention_groups
from fusesim.topology import bits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.strategies.base import Prices
    from fusesim.topology import Topology

WHOLE: Final = 10
"""Ops up to which every set is tried: a thousand."""

MOST: Final = 6000
"""Candidates of a larger graph."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Sets of ops with the price of each [s]; `complete` says that growth ended by itself."""

    prices: dict[int, float]
    complete: bool


def candidates(topo: Topology, price: Prices, extra: Iterable[int] = (), most: int = MOST) -> Candidates:
    """Return the groups worth choosing from: single ops, and sets that save against their ops one by one.

    Parameters
    ----------
    topo : Topology
        The graph.
    price : Prices
        What a group costs, infinite where it is no kernel. [s]
    extra : iterable of int
        Groups to include whatever they save, such as those of other plans.
    most : int
        Where growth stops.
    """
    count = len(topo.names)
    found = {1 << place: price(1 << place) for place in range(count)}
    for mask in (*extra, *attention_groups(topo)):
        if price(mask) < math.inf and not topo.between(mask):
            found[mask] = price(mask)
    if count <= WHOLE:
        _consider(topo, price, found, range(1, 1 << count))
        return Candidates(found, complete=True)
    complete = _grow(topo, price, found, most)
    return Candidates(found, complete=complete)


def _consider(topo: Topology, price: Prices, found: dict[int, float], masks: Iterable[int]) -> None:
    """Keep those of some sets that are kernels and save."""
    for mask in masks:
        if mask not in found and not topo.between(mask):
            _keep(price, found, mask)


def _keep(price: Prices, found: dict[int, float], mask: int) -> bool:
    """Keep a convex set if it saves; return whether it is a kernel at all."""
    cost = price(mask)
    if cost == math.inf:
        return False
    if cost < sum(price(1 << place) for place in bits(mask)) - LEAST:
        found[mask] = cost
    return True


def _grow(topo: Topology, price: Prices, found: dict[int, float], most: int) -> bool:
    """Grow sets breadth first, op by op, with what then lies between; return whether nothing was left to grow."""
    near = [_near(topo, place) for place in range(len(topo.names))]
    layer = [1 << place for place in range(len(topo.names))]
    seen = set(layer)
    budget = most
    while layer:
        grown: list[int] = []
        for mask in layer:
            for place in bits(topo.reach(mask, near) & ~mask):
                wider = mask | 1 << place
                wider |= topo.between(wider)
                if wider in seen:
                    continue
                seen.add(wider)
                if _keep(price, found, wider):
                    grown.append(wider)
                    budget -= 1
                    if budget <= 0:
                        return False
        layer = grown
    return True


def _near(topo: Topology, place: int) -> int:
    """Return the ops next to one: what it waits for, what waits for it, and what reads the same tensors."""
    mask = topo.preds[place] | topo.succs[place]
    for read in topo.items[place].reads:
        mask |= topo.readers[read.base]
    return mask & ~(1 << place)
