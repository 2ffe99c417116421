"""Inductor's scheduler: loops that share memory become one kernel, the pair that shares most first.

A round lists all pairs that share memory, merges those that may be, most bytes first, and the next round looks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.strategies.inductor_loops import Loop, compatible
from fusesim.strategies.partition import Partition
from fusesim.templates import shape_of
from fusesim.topology import topology

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fusesim.graph import Graph
    from fusesim.topology import Topology

NEAREST: Final = 64
"""Inductor's max_fusion_buffer_group_pairwise_attempts: a loop is tried with the next so many that touch a tensor."""


def fuse(form: Graph, loops: Sequence[Loop]) -> list[Loop]:
    """Fuse loops that share memory.

    Parameters
    ----------
    form : Graph
        What the loops speak of.
    loops : sequence of Loop
        One per stored value, in the graph's order.

    Returns
    -------
    list of Loop
        The kernels.
    """
    topo = topology(form)
    alive = dict(enumerate(loops))
    number = dict(enumerate(alive))
    partition = Partition(waits(form, loops))
    tried = True
    while tried:
        tried = False
        for _, i, j in sorted((-shared, i, j) for i, j, shared in _pairs(alive)):
            if i not in alive or j not in alive or not _allowed(alive[i], alive[j]):
                continue
            if partition.blocked(number[i], number[j]) or not _one_kernel(topo, alive[i], alive[j]):
                continue
            number[i] = partition.merge(number[i], number[j])
            alive[i] = _merged(alive[i], alive.pop(j))
            tried = True
    return list(alive.values())


def waits(form: Graph, loops: Sequence[Loop]) -> list[int]:
    """Return for each loop, as a set of bits, those that must run before it.

    A loop waits for those that store what it reads, and, where it writes over memory, for all that compute with what
    was there.
    """
    owner = {root: place for place, loop in enumerate(loops) for root in loop.roots}
    holders: dict[str, int] = {}
    for place, loop in enumerate(loops):
        for name in loop.cone:
            holders[name] = holders.get(name, 0) | 1 << place
    found = []
    for place, loop in enumerate(loops):
        before = 0
        for name in loop.cone:
            makers, readers = form.waits[name]
            for maker in makers:
                before |= 0 if maker in loop.cone else 1 << owner[maker]
            for reader in readers:
                before |= holders[reader]
        found.append(before & ~(1 << place))
    return found


def _pairs(alive: dict[int, Loop]) -> Iterator[tuple[int, int, int]]:
    """Yield each pair of loops that can be one kernel and share memory, and how many bytes they share."""
    touching: dict[str, list[int]] = {}
    for key, loop in alive.items():
        for name in () if loop.library else loop.reads | loop.writes:
            touching.setdefault(name, []).append(key)
    seen: set[tuple[int, int]] = set()
    for keys in touching.values():
        for place, i in enumerate(keys):
            for j in keys[place + 1 : place + 1 + NEAREST]:
                if (i, j) in seen:
                    continue
                seen.add((i, j))
                shared = _shared(alive[i], alive[j]) if compatible(alive[i], alive[j]) else 0
                if shared:
                    yield i, j, shared


def _shared(one: Loop, other: Loop) -> int:
    """Return the bytes of memory that two loops both touch."""
    mine = one.reads | one.writes
    yours = other.reads | other.writes
    return sum(max(size, yours[name]) for name, size in mine.items() if name in yours)


def _allowed(one: Loop, other: Loop) -> bool:
    """Return whether two loops can be one kernel, and no reduction in two stages is needed within."""
    if not compatible(one, other):
        return False
    for first, second in ((one, other), (other, one)):
        if first.split and any(name in second.reads for name in first.writes):
            return False
    if one.split or other.split:
        return one.split == other.split and bool(one.rows and other.rows)
    return True


def _one_kernel(topo: Topology, one: Loop, other: Loop) -> bool:
    """Return whether what two loops compute fits into one, by all that is known of loops."""
    mask = 0
    for name in one.cone | other.cone:
        mask |= 1 << topo.index[name]
    return not shape_of(topo, mask).reason


def _merged(one: Loop, other: Loop) -> Loop:
    """Return two loops as one kernel."""
    reduction = one if one.rows else other
    return Loop(
        [*one.roots, *other.roots],
        max(one.size, other.size),
        rows=reduction.rows,
        columns=reduction.columns,
        outer=reduction.outer,
        split=one.split or other.split,
        reads=_joined(one.reads, other.reads),
        writes=one.writes | other.writes,
        cone=one.cone | other.cone,
    )


def _joined(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """Return what either reads, the larger part of each."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in (*one, *other)}
