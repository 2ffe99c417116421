"""The cheapest partition into kernels: set partitioning over candidate groups, solved by scipy's HiGHS.

Variables say which candidates are taken, each op is covered once, the sum of prices is least. Two groups that wait for
each other are legal by themselves, so that no circle arises is enforced lazily: solve, find a circle, forbid its
groups together, solve again. The objective is additive, kernel after kernel; what kernels do to each other (caches) is
not in it. Other strategies' plans are then priced with the same cost and the cheapest of all is returned, so that this
one never costs more. In the end the greedy plans are priced against it kernel after kernel, caches included.

A note says what the result is: exact over all groups (up to ten ops), exact over groups that hang together (growth
of candidates ended by itself), or the best found, with `bound` where the solver's own bound is one.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from fusesim.legality import cycle
from fusesim.strategies import find_strategy, horizontal
from fusesim.strategies.base import as_plan, masks_of
from fusesim.strategies.candidates import WHOLE, candidates
from fusesim.strategies.quotient import LEAST, Quotient, greedy
from fusesim.strategies.vertical import forms, merged
from fusesim.topology import bits, topology

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.strategies.base import Context, Prices
    from fusesim.topology import Topology

OTHERS: Final = ("eager", "xla", "tvm", "mlir", "inductor")
"""Strategies whose plans are priced against the solver's."""

GREEDY: Final = ("vertical", "horizontal")
"""Strategies whose plans are priced against the cheapest once more, kernel after kernel."""

SECONDS: Final = 3.0
"""Time for the solver, all rounds together; wall-clock, so a slower machine may return a bound instead. [s]."""

MOST_ROUNDS: Final = 40
"""Rounds of forbidding circles."""

UNIT: Final = 1e-6
"""The solver's unit: microseconds, so that its tolerances are small against a kernel. [s]."""


class Solved(NamedTuple):
    """Groups, their price [s], a lower bound where there is one [s], and what can be said of them."""

    masks: list[int]
    price: float
    bound: float | None
    note: str


def decide(graph: Graph, context: Context) -> FusionPlan:
    """Return the cheapest plan found, and a note on what it is."""
    best: FusionPlan | None = None
    least = math.inf
    for form in forms(graph):
        topo = topology(form)
        found = solve(topo, context.prices(form, topo))
        if found.price < least - LEAST:
            least = found.price
            best = as_plan(form, topo, found.masks, "optimal", source=graph, notes=(found.note,), bound=found.bound)
    for name in OTHERS:
        other = find_strategy(name)(graph, context)
        topo = topology(other.graph)
        price = context.prices(other.graph, topo).total(masks_of(topo, other))
        if best is None or price < least - LEAST:
            notes = (f"the plan of {name}, cheaper than the best partition without computing anything twice",)
            best, least = replace(other, strategy="optimal", source=graph, notes=notes), price
    if best is None:
        return as_plan(graph, topology(graph), (), "optimal", source=graph)
    return _in_sequence(graph, context, best)


def _in_sequence(graph: Graph, context: Context, best: FusionPlan) -> FusionPlan:
    """Return a greedy plan instead, where it is cheaper kernel after kernel: the objective has no cache in it.

    Only a cost that can price a whole plan can tell.
    """
    whole: Callable[[FusionPlan], float] | None = getattr(context.cost, "whole", None)
    if whole is None:
        return best
    least = whole(best)
    for name in GREEDY:
        other = find_strategy(name)(graph, context)
        price = whole(other)
        if price < least - LEAST:
            notes = (f"the plan of {name}, cheaper for what the cache keeps between kernels",)
            best, least = replace(other, strategy="optimal", source=graph, notes=notes), price
    return best


def solve(topo: Topology, prices: Prices) -> Solved:
    """Return the best groups of one form of a graph."""
    if not topo.names:
        return Solved([], 0.0, None, "exact: there are no ops")
    quotient = merged(topo, prices)
    others = [quotient.groups()]
    greedy(quotient, prices, horizontal.siblings)
    others.append(quotient.groups())
    found = candidates(topo, prices, [mask for masks in others for mask in masks])
    masks, bound, proven = _partition(topo, found.prices)
    scope = "all groups" if len(topo.names) <= WHOLE else "groups that hang together"
    if masks is not None:
        others.append(_improved(topo, prices, masks))
    best = min(reversed(others), key=prices.total)
    price = prices.total(best)
    if proven and found.complete:
        note = f"exact over {scope}: {len(found.prices)} candidates"
        return Solved(best, price, None, note)
    if proven:
        note = f"heuristic: exact over {len(found.prices)} candidates, but there are more"
        return Solved(best, price, None, note)
    limit = min(bound, price) if bound is not None and found.complete else None
    note = f"bound: the solver stopped early over {len(found.prices)} candidates, the plan is the best one found"
    return Solved(best, price, limit, note)


def _improved(topo: Topology, prices: Prices, masks: Sequence[int]) -> list[int]:
    """Merge siblings of a solution: candidates hold only some of them."""
    quotient = Quotient(topo, masks)
    greedy(quotient, prices, horizontal.siblings)
    return quotient.groups()


def _partition(topo: Topology, prices: dict[int, float]) -> tuple[list[int] | None, float | None, bool]:
    """Solve the set partitioning; return groups (or None), a lower bound, and whether they are proven the best.

    Notes
    -----
    Each round is a relaxation of the next, so the last round's bound holds even when circles remain.
    """
    from scipy.optimize import milp  # noqa: PLC0415 - scipy loads slowly and only this planner needs it

    masks = list(prices)
    costs = [prices[mask] / UNIT for mask in masks]
    cuts: list[list[int]] = []
    place = {mask: column for column, mask in enumerate(masks)}
    bound = None
    end = time.monotonic() + SECONDS
    for _ in range(MOST_ROUNDS):
        result = milp(
            costs,
            integrality=[1] * len(masks),
            bounds=(0, 1),
            constraints=_constraints(topo, masks, cuts),
            options={"time_limit": max(end - time.monotonic(), 0.1), "mip_rel_gap": 0.0},
        )
        if result.mip_dual_bound is not None:
            bound = float(result.mip_dual_bound) * UNIT
        if result.x is None:
            return None, bound, False
        taken = [mask for mask, share in zip(masks, result.x, strict=True) if share > 0.5]  # noqa: PLR2004 - a 0 or a 1
        circles = _circles(topo, taken)
        if not circles:
            return taken, bound, bool(result.status == 0)
        if result.status != 0:
            return None, bound, False
        cuts += [[place[mask] for mask in circle] for circle in circles]
    return None, bound, False


def _constraints(topo: Topology, masks: Sequence[int], cuts: Sequence[Sequence[int]]) -> list[object]:
    """Return that each op is covered once, and that no circle is taken whole."""
    from scipy.optimize import LinearConstraint  # noqa: PLC0415 - as above
    from scipy.sparse import csr_array  # noqa: PLC0415

    count = len(topo.names)
    rows = [place for mask in masks for place in bits(mask)]
    columns = [column for column, mask in enumerate(masks) for _ in range(mask.bit_count())]
    cover = csr_array(([1.0] * len(rows), (rows, columns)), shape=(count, len(masks)))
    found: list[object] = [LinearConstraint(cover, 1, 1)]
    if cuts:
        rows = [row for row, cut in enumerate(cuts) for _ in cut]
        columns = [column for cut in cuts for column in cut]
        circles = csr_array(([1.0] * len(rows), (rows, columns)), shape=(len(cuts), len(masks)))
        found.append(LinearConstraint(circles, -1, [len(cut) - 1 for cut in cuts]))
    return found


def _circles(topo: Topology, taken: Sequence[int]) -> list[list[int]]:
    """Return circles among groups that share none: find one, set its first group aside, look again."""
    left = list(taken)
    found = []
    while circle := cycle(topo, left):
        found.append(circle)
        left = [mask for mask in left if mask not in circle]
    return found
