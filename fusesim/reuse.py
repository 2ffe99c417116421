"""Which bytes the cache serves: reuse distances through a whole schedule of kernels, replayed.

Between two touches of the same memory a kernel chain touches other memory; the share that is still in the cache falls
with how much of it was distinct (`fusesim.kernel.reused_share`). Freed memory is handed out again, so a later tensor
may lie where an earlier one was: what counts is memory, not names. Plain counting; no time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fusesim.kernel import reused_share
from fusesim.launches import Served

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fusesim.graph import Graph
    from fusesim.launches import Access, Launch
    from fusesim.machine import Machine


@dataclass(slots=True)
class _Places:
    """Whose memory is where: places are handed out and taken back as an allocator does, the best fit first."""

    sizes: list[float] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    of: dict[str, int] = field(default_factory=dict)

    def place(self, storage: str, size: float) -> int:
        """Return where a tensor lies; find a place for a new one."""
        if storage not in self.of:
            fits = [place for place in self.free if size <= self.sizes[place] <= 2.0 * size]
            if fits:
                best = min(fits, key=lambda place: (self.sizes[place], -place))
                self.free.remove(best)
            else:
                best = len(self.sizes)
                self.sizes.append(size)
            self.of[storage] = best
        return self.of[storage]

    def give_back(self, storage: str) -> None:
        """Take back a tensor's place."""
        place = self.of.pop(storage, None)
        if place is not None:
            self.free.append(place)


@dataclass(frozen=True, slots=True)
class _Touch:
    """One kernel's access to one place."""

    kernel: int
    place: int
    size: float


def touches(
    launches: Sequence[Launch], kept: Collection[str], held: Collection[str] = ()
) -> tuple[list[list[_Touch]], list[float]]:
    """Return what each kernel touches, and the sizes of the places.

    `kept` and `held` memories are not handed out again within a pass; all others are after their last use.
    """
    last = {access.storage: index for index, launch in enumerate(launches) for access in _accesses(launch)}
    places, found = _Places(), []
    stays = {*kept, *held}
    for index, launch in enumerate(launches):
        every = _accesses(launch)
        found.append([_Touch(index, places.place(access.storage, access.bytes), access.bytes) for access in every])
        for storage in dict.fromkeys(access.storage for access in every):
            if storage not in stays and last[storage] == index:
                places.give_back(storage)
    return found, places.sizes


def _accesses(launch: Launch) -> tuple[Access, ...]:
    """Return what a kernel reads and writes, in that order."""
    return (*launch.reads, *launch.writes)


def memories(graph: Graph, outputs: str = "dropped") -> tuple[set[str], set[str]]:
    """Return the memories of which each set of buffers has its own, and those that live to the end of a pass.

    `outputs` are ``"kept"`` for each set, or ``"dropped"``: their memory is handed out again in the next pass.
    """
    given, made = ({graph.tensors[name].storage for name in names} for names in (graph.inputs, graph.outputs))
    return (given | made if outputs == "kept" else given), made


def served(
    launches: Sequence[Launch],
    kept: Collection[str],
    machine: Machine,
    sets: float,
    held: Collection[str] = (),
) -> list[Served]:
    """Return where each kernel's bytes come from.

    Parameters
    ----------
    launches : sequence of Launch
        The kernels in the order in which they run.
    kept : collection of str
        Memories of which each of the `sets` has its own: inputs, and outputs that are kept; all else is shared.
    machine : Machine
        Its cache.
    sets : float
        Over how many sets of inputs repeated passes rotate; infinite where they are cold.
    held : collection of str
        Memories that live to the end of a pass, and are written again in the next: outputs that are dropped.

    Returns
    -------
    list of Served
        Bytes that memory serves, for each kernel. [B]

    Notes
    -----
    A byte is touched somewhere within the earlier kernel and again somewhere within the later one, so their distance is
    half of what each touches and all distinct memory in between. Written bytes go to memory as far as they have left
    the cache when their place is touched next; a second pass over the same rows finds what `window` leaves. What a
    launch itself needs (code, arguments) has left the cache as far as all memory of a whole rotation exceeds it.
    """
    every, sizes = touches(launches, kept, held)
    bytes_of = [sum(touch.size for touch in mine) for mine in every]
    own = {
        access.storage: access.bytes for launch in launches for access in _accesses(launch) if access.storage in kept
    }
    footprint = sum(own.values())
    cold = math.isinf(sets)  # also where nothing rotates: then zero bytes times infinitely many sets say nothing
    between = math.inf if cold else max(sets - 1.0, 0.0) * footprint
    rotating = {
        touch.place
        for launch, mine in zip(launches, every, strict=True)
        for access, touch in zip(_accesses(launch), mine, strict=True)
        if access.storage in kept
    }
    history = _History(bytes_of, sizes, between, machine, rotating)
    for mine in every:
        history.see(mine, 0)
    history.turn()
    read = [dict[int, float]() for _ in every]
    for mine in every:
        history.see(mine, len(every), read)
    evicted = 1.0 if cold else 1.0 - float(reused_share(sets * footprint + sum(sizes), machine))
    written: list[set[str]] = [set(), *({access.storage for access in launch.writes} for launch in launches)]
    return [
        replace(
            _served(launch, mine, read[index], history, machine),
            evicted=evicted,
            follows=any(access.storage in written[index] for access in launch.reads),
        )
        for index, (launch, mine) in enumerate(zip(launches, every, strict=True))
    ]


class _History:
    """When each place was last touched, and what the next touch finds."""

    def __init__(
        self, bytes_of: list[float], sizes: list[float], between: float, machine: Machine, rotating: set[int]
    ) -> None:
        self.bytes_of, self.sizes, self.between, self.machine = bytes_of, sizes, between, machine
        self.last: dict[int, int] = {}
        self.order: dict[int, None] = {}
        self.rotating = rotating
        self.turned = 0
        self.kept_after: dict[tuple[int, int], float] = {}

    def turn(self) -> None:
        """Begin the next pass: other sets of buffers lie in between."""
        self.turned = len(self.bytes_of)

    def see(self, mine: list[_Touch], offset: int, read: list[dict[int, float]] | None = None) -> None:
        """Note a kernel's touches; what they find goes into `read`, and to whoever wrote there last."""
        count = len(self.bytes_of)
        for touch in mine:
            now = touch.kernel + offset
            share = self._share(touch.place, now)
            before = self.last.get(touch.place)
            if before is not None:
                self.kept_after[before % count, touch.place] = share
            if read is not None:
                read[touch.kernel][touch.place] = share
        for touch in mine:
            self.order.pop(touch.place, None)
            self.order[touch.place] = None
            self.last[touch.place] = touch.kernel + offset

    def _share(self, place: int, now: int) -> float:
        """Return the share of a place that is still in the cache."""
        before = self.last.get(place)
        turned = before is not None and before < self.turned <= now
        if before is None or (turned and math.isinf(self.between)):
            return 0.0
        count = len(self.bytes_of)
        distance = 0.5 * (self.bytes_of[before % count] + self.bytes_of[now % count])
        reach = 4.0 * self.machine.cache
        for other in reversed(self.order):
            if self.last[other] <= before or distance > reach:
                break
            if self.last[other] < now:
                distance += self.sizes[other]
        if turned:
            distance += self.between if place in self.rotating else 0.0
        return float(reused_share(distance, self.machine))


def _served(launch: Launch, mine: list[_Touch], found: dict[int, float], history: _History, machine: Machine) -> Served:
    """Add up what memory serves of one kernel."""
    read = written = cold = 0.0
    reads = len(launch.reads)
    for place, touch in enumerate(mine):
        if place < reads:
            miss = 1.0 - found.get(touch.place, 0.0)
            read += miss * touch.size
            if touch.size * reads >= launch.bytes_read - launch.again:
                cold = max(cold, miss)
        else:
            written += (1.0 - history.kept_after.get((touch.kernel, touch.place), 0.0)) * touch.size
    if launch.again:
        read += launch.again * (1.0 - float(reused_share(launch.window, machine)))
    return Served(read=read, written=written, cold=cold)
