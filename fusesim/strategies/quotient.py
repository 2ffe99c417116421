"""Groups of a graph's ops while they are being merged, by what merging saves."""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Final

from fusesim.strategies.partition import Partition
from fusesim.templates import shape_of
from fusesim.topology import bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fusesim.strategies.base import Prices
    from fusesim.topology import Topology

LEAST: Final = 1e-13
"""A saving below which two prices are the same but for rounding. [s]."""


class Quotient(Partition):
    """A partition of a graph's ops."""

    def __init__(self, topo: Topology, groups: Iterable[int] = ()) -> None:
        self.topo = topo
        self._start(topo.preds, topo.succs, topo.ancestors, topo.descendants)
        for mask in groups:
            self.unite(mask)


def greedy(quotient: Quotient, price: Prices, partners: Callable[[Quotient, int], Iterable[int]]) -> None:
    """Merge the pair that saves most, until none saves; `partners` says with whom a group may be merged.

    Notes
    -----
    A merged group's savings with its partners are first guessed as the sum of its halves'; a guess is worked out only
    when it leads the queue, and goes back where another leads then. So almost only pairs that merge are priced.
    """
    savings: dict[tuple[int, int], float] = {}
    queue: list[tuple[float, int, int, int, bool]] = []

    def push(one: int, other: int, guess: float | None) -> None:
        """Queue a pair, larger savings first, smaller groups before larger ones."""
        saving = _saving(quotient, price, one, other) if guess is None else guess
        savings[min(one, other), max(one, other)] = saving
        if saving > LEAST:
            size = (quotient.masks[one] | quotient.masks[other]).bit_count()
            heapq.heappush(queue, (-saving, size, one, other, guess is None))

    for one, other in _pairs(quotient, partners):
        push(one, other, None)
    while queue:
        value, _, one, other, exact = heapq.heappop(queue)
        if one not in quotient.masks or other not in quotient.masks:
            continue
        saving = -value if exact else _saving(quotient, price, one, other)
        if not exact and queue and LEAST < saving < -queue[0][0]:
            size = (quotient.masks[one] | quotient.masks[other]).bit_count()
            heapq.heappush(queue, (-saving, size, one, other, True))
            continue
        if saving <= LEAST or quotient.blocked(one, other):
            continue
        made = quotient.merge(one, other)
        for partner in partners(quotient, made):
            halves = [savings.get((min(half, partner), max(half, partner)), 0.0) for half in (one, other)]
            push(made, partner, max(sum(halves), LEAST * 2) if max(halves) > 0 else None)


def _saving(quotient: Quotient, price: Prices, one: int, other: int) -> float:
    """Return what merging two groups saves, minus infinity where it cannot be. [s]."""
    first, second = quotient.masks[one], quotient.masks[other]
    if quotient.blocked(one, other):
        return -math.inf
    together = price(first | second)
    return price(first) + price(second) - together if together < math.inf else -math.inf


def _pairs(quotient: Quotient, partners: Callable[[Quotient, int], Iterable[int]]) -> Iterator[tuple[int, int]]:
    """Yield each pair of partners once."""
    seen = set()
    for group in list(quotient.masks):
        for partner in partners(quotient, group):
            pair = (min(group, partner), max(group, partner))
            if pair not in seen:
                seen.add(pair)
                yield pair


def neighbours(quotient: Quotient, group: int) -> Iterable[int]:
    """Return the groups that a group waits for or that wait for it."""
    return {**quotient.predecessors(group), **quotient.successors(group)}


def attention_groups(topo: Topology) -> list[int]:
    """Return the sets of ops that tiled attention covers: two products and all between, where that is a kernel."""
    found = []
    taken = 0
    products = list(bits(topo.roles.get("matmul", 0)))
    others = sum(mask for role, mask in topo.roles.items() if role not in {"point", "reduce"})
    reductions = topo.roles.get("reduce", 0)
    for last in products:
        source = topo.items[last].reads[0].producer
        for first in reversed([place for place in products if topo.ancestors[last] >> place & 1]):
            between = topo.descendants[first] & topo.ancestors[last]
            mask = between | 1 << first | 1 << last
            if source < 0 or mask & taken or between & others or not between & reductions:
                continue
            if shape_of(topo, mask).template == "attention":
                found.append(mask)
                taken |= mask
                break
    return found
