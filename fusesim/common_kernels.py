"""What two plans of one graph have in common, and how far their difference may lie from its prediction.

Where both sides run the same kernel its deviation is in both times and cancels in the saving: it takes on one side what
it takes on the other, however far that is from its prediction. The interval of a saving therefore rests on what
differs.

    deviation^2 = a^2 + b^2 - 2 r a b + (RESIDUAL x common)^2,  a, b: deviations of what is not common on either side

Limits: kernels are the same by what they do, not by where they stand; what one has from the cache on one side alone
counts as a difference, with the time that it makes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import fields
from typing import TYPE_CHECKING, Final, NamedTuple

from fusesim.launches import Launch

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from fusesim.plan_run import PlanRun

RESIDUAL: Final = 0.065
"""How far the time of the same kernels lies apart in two programs on one machine, 90 % of them. 21 programs of
which eager and compiled run the same library kernels, in five runs on H200s: 19 within 6.5 %, the median 0.5 %."""

NAMES: Final = ("name", "nodes", "reads", "writes", "arithmetic")
"""What a launch is called and computes, which does not make it another kernel."""

WORK: Final = tuple(entry.name for entry in fields(Launch) if entry.name not in NAMES)


class Side(NamedTuple):
    """What one side takes beyond what is common, and the ends of its 90 % interval over that. [s, 1]."""

    time: float
    low: float
    high: float


def form(launch: Launch) -> Hashable:
    """Return what makes a launch the same kernel as another: all but names, tensors by their bytes."""
    moved = (tuple(access.bytes for access in accesses) for accesses in (launch.reads, launch.writes))
    return (*moved, *(getattr(launch, name) for name in WORK))


def common_time(first: Iterable[tuple[Hashable, float]], second: Iterable[tuple[Hashable, float]]) -> float:
    """Return the time that two sides have in common, each given as forms of kernels and their times. [s].

    Notes
    -----
    Each kernel pairs with one of the same form, longest with longest; the shorter time of the two is common.

    Examples
    --------
    >>> common_time([("product", 90.0), ("add", 10.0), ("add", 12.0)], [("product", 88.0), ("add", 11.0)])
    99.0
    """
    one, other = _times(first), _times(second)
    return sum(min(pair) for name in one for pair in zip(one[name], other.get(name, ()), strict=False))


def _times(kernels: Iterable[tuple[Hashable, float]]) -> dict[Hashable, list[float]]:
    """Return times by form, the longest first. [s]."""
    found: dict[Hashable, list[float]] = defaultdict(list)
    for name, time in kernels:
        found[name].append(time)
    return {name: sorted(times, reverse=True) for name, times in found.items()}


def common_of(unfused: PlanRun, fused: PlanRun) -> float:
    """Return the time that two plans have in common. [s].

    Notes
    -----
    What is paid once, such as a graph's replay, is common too. Where one side waits for the host its kernels do not
    decide its time, and nothing is common.
    """
    sides = (unfused, fused)
    if any(side.host_time > side.device_time for side in sides):
        return 0.0
    kernels = [[(form(one.launch), one.total(side.settings)) for one in side.kernels_run] for side in sides]
    once = min(max(side.time - side.device_time, 0.0) for side in sides)
    return once + common_time(*kernels)


def identical(unfused: PlanRun, fused: PlanRun) -> bool:
    """Return whether two plans are one program: the same kernels in the same order, run in the same way.

    Notes
    -----
    Then there is nothing to lie apart: `RESIDUAL` is of the same kernels in two programs.
    """
    if unfused.settings != fused.settings:
        return False
    one, other = ([(form(each.launch), each.time, each.served) for each in run.kernels_run] for run in (unfused, fused))
    return one == other


def saving_deviation(unfused: Side, fused: Side, common: float, shared: float) -> tuple[float, float]:
    """Return how far a saving may lie below and above its prediction, 90 %. [s].

    Parameters
    ----------
    unfused, fused : Side
        What differs on each side.
    common : float
        The time of kernels that both sides run. [s]
    shared : float
        Correlation of the two sides' deviations.

    Notes
    -----
    A saving is less where the unfused side is faster than predicted and the fused one slower.

    Examples
    --------
    >>> round(saving_deviation(Side(30.0, 0.9, 1.2), Side(20.0, 0.8, 1.2), common=0.0, shared=0.0)[0], 9)
    5.0
    """
    rest = RESIDUAL * common
    below = joined(unfused.time * (1.0 - unfused.low), fused.time * (fused.high - 1.0), shared)
    above = joined(unfused.time * (unfused.high - 1.0), fused.time * (1.0 - fused.low), shared)
    return math.hypot(below, rest), math.hypot(above, rest)


def joined(first: float, second: float, shared: float) -> float:
    """Return the deviation of a difference of two times that share a part of theirs."""
    return math.sqrt(max(first * first + second * second - 2.0 * shared * first * second, 0.0))
