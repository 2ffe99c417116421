"""A calibration for a device that nobody measured: its nearest relative's, scaled by the datasheets.

What scales: bandwidth with the memory's peak; the cache path and the rate at which blocks start with SMs x clock
and clock; the bytes over which a kernel spreads with the cache. What does not: launch floors, latencies and replay
costs, which belong to the launch path and not to the size of the chip (published floors of five NVIDIA parts lie
within 1.6 times of each other with no order in their SM counts); shares of peak issue rates and the exponent of the
overlap, which belong to the architecture. Where a launch floor of the device itself is published, it is used.

Intervals widen by how far public measurements on other GPUs lie from transferred predictions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.calibration import Calibration, Fitted, Residuals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.hardware import HardwareProfile

WIDENING: Final = {"launch": 1.28, "dram": 1.12, "l2": 1.25, "arithmetic": 1.25}
"""Factor on both ends of an interval, by regime."""

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
        Named after both devices, `transferred_from` set, parameters scaled, their sigma and the residuals widened.
    """
    scale = _scales(source, target)
    parameters = {}
    for name, fitted in calibration.parameters.items():
        value = fitted.value * scale.get(name, 1.0)
        sigma = (fitted.sigma**2 * scale.get(name, 1.0) ** 2 + (EXTRA_SIGMA * value) ** 2) ** 0.5
        parameters[name] = Fitted(value=value, sigma=sigma, unit=fitted.unit)
    if target.launch.graph_node and source.launch.graph_node:
        # both figures include the body of a small kernel, so their difference belongs to the floor alone
        shift = target.launch.graph_node.si - source.launch.graph_node.si
        value = max(parameters["floor"].value + shift, 2e-7)
        parameters["floor"] = parameters["floor"].model_copy(update={"value": value})
    residuals = {
        regime: Residuals(
            cases=found.cases,
            median_error=found.median_error,
            low=found.low / WIDENING[regime],
            high=found.high * WIDENING[regime],
        )
        for regime, found in calibration.residuals.items()
    }
    return calibration.model_copy(
        update={
            "name": f"{target.id} (transferred from {calibration.name})",
            "device": target.id,
            "parameters": parameters,
            "residuals": residuals,
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
        "bandwidth": target.dram_bandwidth / source.dram_bandwidth,
        "cache_bandwidth": sms * clock,
        "dispatch": clock,
    }
