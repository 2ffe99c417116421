"""The measured timeline of a trace: time in kernels, gaps between them, and where the device waited for the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.frontends.trace_records import Launch

SMALLEST_GAP: Final = 1e-6
"""Gap that is no more than what a device leaves between two kernels that wait in its queue. [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of the timeline in which the device waited for the host before each launch. [s]."""

    start: float
    end: float
    launches: int
    idle: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """All launches of one name: how many, and their time. [s]."""

    name: str
    kind: str
    launches: int
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What a device did, from its first launch to the end of its last. [s].

    `busy` is the time in which anything ran, streams that overlap counted once; `kernel_time` adds all durations up.
    `idle` is the rest of `span`; `host_bound` the part of it in which the next launch had not been issued yet.
    """

    span: float
    busy: float
    kernel_time: float
    idle: float
    host_bound: float
    launches: int
    streams: int
    stretches: tuple[Stretch, ...]
    totals: tuple[Total, ...]


def timeline_of(launches: Sequence[Launch]) -> Timeline | None:
    """Return the timeline of launches, None where they have no times.

    Parameters
    ----------
    launches : sequence of Launch
        As recorded, in any order.

    Notes
    -----
    A gap is host-bound where the call that launched the kernel after it ended after the kernel before it; a device
    with a full queue never waits for a call. Only the device with the most launches is looked at.
    """
    timed = [launch for launch in launches if launch.start is not None and launch.duration is not None]
    if not timed:
        return None
    devices = [launch.device for launch in timed]
    device = (
        max(set(devices), key=lambda number: (devices.count(number), -number)) if len(set(devices)) > 1 else devices[0]
    )
    timed = sorted((launch for launch in timed if launch.device == device), key=lambda launch: launch.start or 0.0)
    end = first = timed[0].start or 0.0
    busy = idle = waited = 0.0
    stretches: list[Stretch] = []
    for place, launch in enumerate(timed):
        start, duration = launch.start or 0.0, launch.duration or 0.0
        gap = start - end
        if gap > 0 and place:
            idle += gap
            late = launch.called is not None and launch.called > end and gap > SMALLEST_GAP
            waited += gap if late else 0.0
            _stretch(stretches, end, start, gap, late=late)
        busy += max(0.0, start + duration - max(start, end))
        end = max(end, start + duration)
    return Timeline(
        span=end - first,
        busy=busy,
        kernel_time=sum(launch.duration or 0.0 for launch in timed),
        idle=idle,
        host_bound=waited,
        launches=len(timed),
        streams=len({launch.stream for launch in timed}),
        stretches=tuple(stretch for stretch in stretches if stretch.launches),
        totals=_totals(timed),
    )


def _stretch(stretches: list[Stretch], begin: float, end: float, gap: float, *, late: bool) -> None:
    """Go on with a stretch, begin one, or end it."""
    if not late:
        if stretches and stretches[-1].launches:
            stretches.append(Stretch(start=end, end=end, launches=0, idle=0.0))
        return
    last = stretches[-1] if stretches and stretches[-1].launches else None
    if last is None:
        stretches.append(Stretch(start=begin, end=end, launches=1, idle=gap))
    else:
        stretches[-1] = Stretch(start=last.start, end=end, launches=last.launches + 1, idle=last.idle + gap)


def _totals(timed: Sequence[Launch]) -> tuple[Total, ...]:
    """Return launches by name, the longest in all first."""
    sums: dict[tuple[str, str], tuple[int, float]] = {}
    for launch in timed:
        count, time = sums.get((launch.name, launch.kind), (0, 0.0))
        sums[launch.name, launch.kind] = (count + 1, time + (launch.duration or 0.0))
    found = [Total(name=name, kind=kind, launches=n, time=time) for (name, kind), (n, time) in sums.items()]
    return tuple(sorted(found, key=lambda total: (-total.time, total.name)))
