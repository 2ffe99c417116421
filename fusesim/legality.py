"""Which groups and plans are legal, and in words why not.

A plan is legal when every op that costs something stands in exactly one group, every group is one of the kernels of
`fusesim.templates`, and no two groups wait for each other. Convex groups are not enough for the last: with a1 -> a2
and b1 -> b2, the groups {a1, b2} and {b1, a2} are each convex and deadlock.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from fusesim.errors import InputError, PlanError
from fusesim.resources import resources_of
from fusesim.templates import shape_of
from fusesim.topology import bits, topology

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.limits import Limits
    from fusesim.topology import Topology


def why_not(graph: Graph, group_nodes: Iterable[str], resources: Limits | None = None) -> str | None:
    """Return why ops cannot share a kernel, None where they can.

    Parameters
    ----------
    graph : Graph
        The graph.
    group_nodes : iterable of str
        The ops, in any order.
    resources : Limits, optional
        A device's limits; without them no kernel is too large.

    Returns
    -------
    str or None
        One sentence that names a pair of ops, such as "sum and matmul: ...".

    Raises
    ------
    InputError
        If an op is unknown or a view.
    """
    topo = topology(graph)
    mask = topo.mask(group_nodes)
    if not mask:
        return "a kernel of no ops"
    return reason_against(topo, mask, resources) or None


def reason_against(topo: Topology, mask: int, limits: Limits | None = None) -> str:
    """Return why a set of ops cannot be one kernel, empty where it can."""
    between = topo.between(mask)
    if between:
        return _not_convex(topo, mask, between)
    reason = shape_of(topo, mask).reason
    return reason or (_too_large(topo, mask, limits) if limits is not None else "")


def _not_convex(topo: Topology, mask: int, between: int) -> str:
    """Say which op outside waits for a group and is waited for by it."""
    middle = next(bits(between))
    before = topo.names[next(bits(topo.ancestors[middle] & mask))]
    after = topo.names[next(bits(topo.descendants[middle] & mask))]
    return f"{before} and {after}: {topo.names[middle]} between them needs the one and is needed by the other"


def _too_large(topo: Topology, mask: int, limits: Limits) -> str:
    """Say where a kernel's tiles need more shared memory than a block may have."""
    room = limits.shared_memory_per_block
    found = resources_of(topo, mask, limits)
    if room is None or found.shared_memory <= room or not mask & (mask - 1):
        return ""
    first, *_, last = topo.named(mask)
    return f"{first} and {last}: tiles of {found.shared_memory / 1024:.0f} KiB, and a block has {room / 1024:.0f} KiB"


def check_plan(plan: FusionPlan, limits: Limits | None = None) -> None:
    """Refuse a plan that is not legal.

    Parameters
    ----------
    plan : FusionPlan
        The plan.
    limits : Limits, optional
        A device's limits; without them no kernel is too large.

    Raises
    ------
    PlanError
        If an op stands in no group or in two, a group is no kernel, or groups wait for each other or stand in an order
        in which they cannot run; the sentence names the pair of ops and the reason.
    """
    topo = topology(plan.graph)
    masks = _masks(plan, topo)
    for mask in masks:
        reason = reason_against(topo, mask, limits)
        if reason:
            raise PlanError(f"{plan.strategy} plan of {plan.graph.name}: no kernel of {_listed(topo, mask)}: {reason}")
    _check_order(plan, topo, masks)


def _masks(plan: FusionPlan, topo: Topology) -> list[int]:
    """Return the groups as sets, each op in exactly one."""
    where = f"{plan.strategy} plan of {plan.graph.name}"
    seen = 0
    masks = []
    for group in plan.groups:
        try:
            mask = topo.mask(group.nodes)
        except InputError as error:
            raise PlanError(f"{where}: {error}") from error
        twice = seen & mask
        if twice or mask.bit_count() != len(group.nodes):
            name = topo.named(twice)[0] if twice else group.nodes[0]
            raise PlanError(f"{where}: op {name} stands in two groups, or twice in one; each op runs once")
        if not mask:
            raise PlanError(f"{where}: a group holds no op")
        seen |= mask
        masks.append(mask)
    missing = topo.everything & ~seen
    if missing:
        raise PlanError(f"{where}: op {topo.named(missing)[0]} stands in no group; put it into one of its own")
    return masks


def _check_order(plan: FusionPlan, topo: Topology, masks: Sequence[int]) -> None:
    """Refuse groups that wait for each other, or that stand before what they need."""
    where = f"{plan.strategy} plan of {plan.graph.name}"
    circle = cycle(topo, masks)
    if circle:
        needs = []
        for waiting, awaited in zip(circle, [*circle[1:], circle[0]], strict=True):
            before, after = crossing(topo, awaited, waiting)
            needs.append(f"{_listed(topo, waiting)} needs {before} for {after}")
        raise PlanError(f"{where}: groups wait for each other: {'; '.join(needs)}; split one of them")
    seen = 0
    for mask in masks:
        early = topo.reach(mask, topo.preds) & ~mask & ~seen
        if early:
            needed = next(bits(early))
            waiting = next(bits(topo.succs[needed] & mask))
            raise PlanError(f"{where}: {topo.names[waiting]} runs before {topo.names[needed]}, which it needs")
        seen |= mask


def crossing(topo: Topology, before: int, after: int) -> tuple[str, str]:
    """Return an op of one set and an op of another that waits for it."""
    place = next(place for place in bits(before) if topo.succs[place] & after)
    return topo.names[place], topo.names[next(bits(topo.succs[place] & after))]


def _listed(topo: Topology, mask: int) -> str:
    """Return the names of a group, of a large one the first few."""
    names = topo.named(mask)
    return f"[{', '.join(names[:6])}{', ...' if len(names) > 6 else ''}]"  # noqa: PLR2004 - a line's worth


def ordered(topo: Topology, masks: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return sets of ops in an order in which they can run, earliest first op first, and those that cannot.

    The second list is empty unless sets wait for each other. Ops in none of the sets are taken to have run.
    """
    sets = sorted(masks, key=lambda mask: mask & -mask)
    owner = {place: key for key, mask in enumerate(sets) for place in bits(mask)}
    needs = [{owner[place] for place in bits(topo.reach(mask, topo.preds) & ~mask) if place in owner} for mask in sets]
    users: list[list[int]] = [[] for _ in sets]
    for key, waited in enumerate(needs):
        for other in waited:
            users[other].append(key)
    left = [len(waited) for waited in needs]
    ready = [key for key, count in enumerate(left) if not count]
    found = []
    while ready:
        key = heapq.heappop(ready)
        found.append(key)
        for user in users[key]:
            left[user] -= 1
            if not left[user]:
                heapq.heappush(ready, user)
    done = set(found)
    return [sets[key] for key in found], [mask for key, mask in enumerate(sets) if key not in done]


def cycle(topo: Topology, masks: Sequence[int]) -> list[int]:
    """Return sets of ops of which each waits for the next and the last for the first; none where all can run."""
    _, stuck = ordered(topo, masks)
    if not stuck:
        return []
    owner = {place: mask for mask in stuck for place in bits(mask)}
    path: list[int] = []
    mask = stuck[0]
    while mask not in path:
        path.append(mask)
        needed = topo.reach(mask, topo.preds) & ~mask
        mask = next(owner[place] for place in bits(needed) if place in owner)
    return path[path.index(mask) :]
