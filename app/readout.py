"""The words and numbers around the charts: prices as text, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim import units
from fusesim.schedule import TEXTBOOK_REPLAY

from . import ids

if TYPE_CHECKING:
    from fusesim.records import Price

    from .controls import Settings
    from .view import View


def figures(view: View) -> dict[str, str]:
    """Return the figures that a learner should read off, by the id of their place."""
    price = view.point
    unfused, fused = price.unfused, price.fused
    return {
        ids.UNFUSED_TIME: time(unfused.time),
        ids.UNFUSED_KERNELS: kernels(unfused),
        ids.UNFUSED_SHARE: units.format_share(float(unfused.launch_share)),
        ids.UNFUSED_BYTES: size(unfused.bytes_moved),
        ids.FUSED_TIME: time(fused.time),
        ids.FUSED_KERNELS: kernels(fused),
        ids.FUSED_SHARE: units.format_share(float(fused.launch_share)),
        ids.FUSED_BYTES: size(fused.bytes_moved),
        ids.SPEEDUP: units.format_ratio(float(price.speedup)),
        ids.SAVING: time(price.saving),
        ids.SENTENCE: sentence(view),
    }


def sentence(view: View) -> str:
    """Say the whole view in one sentence, as a screen reader would read it."""
    price = view.point
    return (
        f"{units.format_count(float(price.elements))} {price.dtype} values on {price.device.name}: "
        f"{time(price.unfused.time)} as {kernels(price.unfused)}, {time(price.fused.time)} fused, "
        f"{units.format_ratio(float(price.speedup))}; launches are "
        f"{units.format_share(float(price.unfused.launch_share))} of the unfused time."
    )


def reasons(view: View) -> list[str]:
    """Return the library's explanation as sentences that begin and end like sentences."""
    return [f"{reason[0].upper()}{reason[1:]}." for reason in view.point.explain()]


def readings(settings: Settings, view: View) -> dict[str, str]:
    """Return what each slider stands at, by the id of the place beside its label."""
    overhead = time(settings.overhead) if settings.overhead else "0 us"
    rate = units.format_quantity(view.bandwidth, units.BANDWIDTH)
    datasheet = units.format_quantity(view.point.device.dram_bandwidth, units.BANDWIDTH)
    return {
        ids.reading(ids.OPS): f"{settings.ops}",
        ids.reading(ids.SIZE): f"{units.format_count(settings.elements)} values, {size(view.point.fused.bytes_read)}",
        ids.reading(ids.OVERHEAD): f"{overhead} per kernel"
        if settings.launch == "stream"
        else f"{overhead} per node + {time(TEXTBOOK_REPLAY)} per replay",
        ids.reading(ids.RATE): f"{rate}, device has {datasheet}" if view.overridden else f"{rate}, as the device",
    }


def time(value: object) -> str:
    """Write a time. [s]."""
    return units.format_quantity(float(value), units.TIME)  # type: ignore[arg-type]


def size(value: object) -> str:
    """Write a number of bytes."""
    return units.format_quantity(float(value), units.SIZE)  # type: ignore[arg-type]


def kernels(price: Price) -> str:
    """Write how many kernels."""
    count = int(price.kernels)
    return "1 kernel" if count == 1 else f"{count} kernels"
