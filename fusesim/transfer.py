"""A calibration for a device that nobody measured: its nearest relative's, scaled by the datasheets.

What scales: the rate of a copy with what one benchmark reaches on both devices, where that is published of both, and
otherwise with the memory's peak; the cache path and the rate at which blocks start with SMs x clock and clock. What
does not: launch floors, latencies and replay costs, which belong to the launch path and not to the size of the chip
(published floors of five NVIDIA parts lie within 1.6 times of each other with no order in their SM counts); shares
of peak issue rates, which belong to the architecture. Where launch floors of both devices are published, their
difference is added.

A published copy includes the path through the cache, so it is the copy that scales, and the memory's own rate
follows from it and the cache's, see `_memory_rate`.

Intervals widen by how far public measurements on other GPUs lie from transferred predictions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.calibration import Calibration, Fitted, Spread
from fusesim.kernel import SMALLEST_GAP
from fusesim.overlap import soft_maximum

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.calibration import Source
    from fusesim.hardware import HardwareProfile

WIDENING: Final[dict[Source, tuple[float, float]]] = {
    "launch": (1.28, 1.25),
    "dram": (1.12, 1.28),
    "l2": (1.25, 1.25),
    "arithmetic": (1.25, 1.25),
    "thread": (1.25, 1.25),
    "start": (1.25, 1.25),
    "all": (1.0, 1.0),
}
"""Factors by which the lower end of an interval falls and the upper one rises, by what it comes from.

dram: two ops on an H100, fused and not, by a public benchmark (tests/reference) whose harness alone costs about 7 us.
Where that is less than half of the time, they take 1.04 to 1.4 times as long as predicted, the longer the nearer:
the harness is in the measurement and not in the prediction. Published copies reach 0.75 to 0.94 of the peak on a
dozen parts, where ours reach 0.90 on the H200: times up to 1.2 times as long, hardly any shorter.
launch: published periods of small kernels of five NVIDIA parts lie between 0.85 and 1.22 times the H200's in a graph
and between 0.86 and 1.37 times on a stream.
l2, arithmetic, thread, start: no public measurement isolates them. Two reports of the GH200's cache differ by 1.12;
this is twice that.
"""

EXTRA_SIGMA: Final = 0.15
"""Relative standard deviation added to every transferred parameter."""


def nearest(profile: HardwareProfile, candidates: Iterable[tuple[Calibration, HardwareProfile]]) -> Calibration | None:
    """Return the calibration of the device most like this one: same architecture, then vendor, then bandwidth."""

    def distance(other: HardwareProfile) -> tuple[bool, bool, float]:
        ratio = other.dram_bandwidth / profile.dram_bandwidth
        return other.architecture != profile.architecture, other.vendor != profile.vendor, max(ratio, 1 / ratio)

    ranked = sorted(candidates, key=lambda pair: distance(pair[1]))
    return ranked[0][0] if ranked else None


def transfer(calibration: Calibration, source: HardwareProfile, target: HardwareProfile) -> Calibration:
    """Return `calibration`, measured on `source`, for `target`.

    Returns
    -------
    Calibration
        Named after both devices, `transferred_from` set, parameters scaled, their sigma and the spreads widened.
    """
    scale = _scales(source, target)
    parameters = {}
    for name, fitted in calibration.parameters.items():
        value = fitted.value * scale.get(name, 1.0)
        sigma = (fitted.sigma**2 * scale.get(name, 1.0) ** 2 + (EXTRA_SIGMA * value) ** 2) ** 0.5
        parameters[name] = Fitted(value=value, sigma=sigma, unit=fitted.unit)
    _move(parameters, "floor", _difference(source, target, "graph_node"), least=2e-7)
    gap = _difference(source, target, "stream") - _difference(source, target, "graph_node")
    _move(parameters, "stream_gap", gap / SMALLEST_GAP, least=0.0)  # published gaps are those of the smallest kernels
    bandwidth = _memory_rate(calibration, parameters["cache_bandwidth"].value, source, target)
    parameters["bandwidth"] = parameters["bandwidth"].model_copy(update={"value": bandwidth})
    spreads = {
        source: Spread(low=spread.low / WIDENING[source][0], high=spread.high * WIDENING[source][1])
        for source, spread in calibration.spreads.items()
    }
    return calibration.model_copy(
        update={
            "name": f"{target.id} (transferred from {calibration.name})",
            "device": target.id,
            "parameters": parameters,
            "spreads": spreads,
            "transferred_from": calibration.name,
        }
    )


def _scales(source: HardwareProfile, target: HardwareProfile) -> dict[str, float]:
    """Return the datasheet ratios by which parameters scale; 1 where either sheet has no figure."""

    def ratio(first: float | None, second: float | None) -> float:
        return second / first if first and second else 1.0

    clock = ratio(*(p.chip.boost_clock.si if p.chip.boost_clock else None for p in (source, target)))
    sms = ratio(*(p.chip.sms.si if p.chip.sms else None for p in (source, target)))
    return {
        "cache_bandwidth": sms * clock,
        "wave_bandwidth": sms * clock,
        "dispatch": clock,
    }


def _difference(source: HardwareProfile, target: HardwareProfile, floor: str) -> float:
    """Return by how much the target's published period of small kernels is longer, 0 where one is unknown. [s].

    Both figures include the body of a small kernel, so their difference belongs to the launch alone.
    """
    first, second = getattr(source.launch, floor), getattr(target.launch, floor)
    return float(second.si - first.si) if first and second else 0.0


def _move(parameters: dict[str, Fitted], name: str, by: float, *, least: float) -> None:
    """Add a difference to a parameter."""
    value = max(parameters[name].value + by, least) if by else parameters[name].value
    parameters[name] = parameters[name].model_copy(update={"value": value})


def _memory_rate(calibration: Calibration, cache: float, source: HardwareProfile, target: HardwareProfile) -> float:
    """Return the rate of the target's memory, at most its peak. [B/s].

    A copy takes the soft maximum of its time in memory and on the cache path, t^4 = m^4 + c^4. The source's copy
    scales to the target's; taking the target's `cache` rate out of it leaves the memory's.
    """
    first, second = source.memory.achieved_copy, target.memory.achieved_copy
    ratio = second.si / first.si if first and second else target.dram_bandwidth / source.dram_bandwidth
    own = (calibration.parameters[name].value for name in ("bandwidth", "cache_bandwidth"))
    copy = ratio / float(soft_maximum(*(1.0 / rate for rate in own)))
    alone = copy**-4 - cache**-4
    return min(alone**-0.25, target.dram_bandwidth) if alone > 0 else target.dram_bandwidth
