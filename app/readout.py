"""The words and numbers around the charts: prices as text, for people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from fusesim import explain, units
from fusesim.ops import OPS

from . import effects, ids
from .chain_text import MAX_OPS
from .measured import GPU
from .settings import ROTATING
from .typeset import begun

if TYPE_CHECKING:
    from fusesim.records import Price

    from .settings import Settings
    from .view import View

BINDS: Final = {
    "launch": "launches",
    "host": "the host",
    "dram": "memory",
    "l2": "the cache's path",
    "issue": "instructions",
    "sfu": "special functions",
    "tensor": "tensor cores",
    "fma": "plain arithmetic",
}
"""What decides a time, in a word or two."""

_LONG: Final = ((1e15, "Ps"), (1e12, "Ts"), (1e9, "Gs"), (1e6, "Ms"), (1e3, "ks"))
"""Units of times that nobody waits for, the longest first. [s]"""

KILO: Final = 3
"""Power of ten from which seconds are written with a prefix."""

ALIKE: Final = 0.005
"""Speedups that differ by less read the same."""

ON_THE_ROOF: Final = 1.001
"""Up to where a chain counts as standing on the roof, as a multiple of the rate there."""


def figures(view: View) -> dict[str, str]:
    """Return the figures that a learner should read off, by the id of their place."""
    price = view.point
    unfused, fused = price.unfused, price.fused
    known = view.has_interval
    unknown = "no interval"
    return {
        ids.UNFUSED_TIME: time(unfused.time),
        ids.UNFUSED_RANGE: between(unfused.interval) if known else unknown,
        ids.UNFUSED_KERNELS: kernels(unfused),
        ids.UNFUSED_SHARE: units.format_share(float(unfused.launch_share)),
        ids.UNFUSED_BYTES: size(unfused.bytes_moved),
        ids.FUSED_TIME: time(fused.time),
        ids.FUSED_RANGE: between(fused.interval) if known else unknown,
        ids.FUSED_KERNELS: kernels(fused),
        ids.FUSED_SHARE: units.format_share(float(fused.launch_share)),
        ids.FUSED_BYTES: size(fused.bytes_moved),
        ids.SPEEDUP: units.format_ratio(float(price.speedup)),
        ids.SAVING: time(price.saving),
        ids.SAVING_RANGE: between(price.saving_interval) if known and unfused.kernels > 1 else "",
        ids.SENTENCE: sentence(view),
    }


def sentence(view: View) -> str:
    """Say the whole view in one sentence, as a screen reader would read it."""
    price = view.point
    return (
        f"{count(float(price.elements))} {price.dtype} values on {price.device.name}: "
        f"{time(price.unfused.time)} as {kernels(price.unfused)}, {time(price.fused.time)} fused, "
        f"{units.format_ratio(float(price.speedup))}; launches are "
        f"{units.format_share(float(price.unfused.launch_share))} of the unfused time."
    )


def reasons(view: View) -> list[str]:
    """Return the library's explanation, and where fusing stops paying, as sentences.

    Between textbook and calibrated no interval is known and the host may not count yet, so nothing is said of them.
    """
    price = view.point
    if view.calibrated and not view.complete:
        told = [explain.verdict(price), *explain.binds(price), *explain.served(price), *explain.capacity(price)]
    else:
        told = price.explain()
    told = [*told, *_gained(view), *_costly(view), *_stops(view)]
    return [f"{begun(reason)}." for reason in told]


def _gained(view: View) -> list[str]:
    """Say between which speedups the saving's interval lies."""
    if not view.has_interval or float(view.point.unfused.kernels) == 1:
        return []
    unfused = float(view.point.unfused.time)
    low, high = (units.format_ratio(unfused / (unfused - float(end))) for end in view.point.saving_interval)
    return [f"that is a speedup of {low} to {high}"]


def _costly(view: View) -> list[str]:
    """Say what the op that takes most instructions asks of the device, where instructions bind the fused kernel."""
    if str(view.point.fused.bound) not in {"issue", "sfu"} or not view.named:
        return []
    name = max(dict.fromkeys(view.named), key=lambda each: OPS[each].slots)
    slots = f"{OPS[name].slots:g}"
    return [f"a {name} is {slots} instructions for each value, a multiplication is one; fusing leaves out none of them"]


def _stops(view: View) -> list[str]:
    """Say at which lengths and sizes fusing gains least, so that it is seen where it stops paying."""
    ratios = np.broadcast_to(view.curve.speedup, view.sizes.shape)
    least, most = int(np.argmin(ratios)), int(np.argmax(ratios))
    told = []
    if view.lengths is not None:
        _, two, many = (units.format_ratio(float(ratio)) for ratio in np.atleast_1d(view.lengths.speedup))
        told.append(
            f"where fusing stops paying: at one op, which has nothing to be fused with; at this size 2 ops gain {two}, "
            f"{MAX_OPS} ops {many}"
        )
    if float(ratios[most]) - float(ratios[least]) > ALIKE:
        low, high = (units.format_ratio(float(ratios[place])) for place in (least, most))
        told.append(
            f"over the sizes of the chart fusing gains least at {count(view.sizes[least])} values, {low}, and most at "
            f"{count(view.sizes[most])}, {high}"
        )
    return told


def stepper(settings: Settings, view: View) -> dict[str, str]:
    """Return the words beside the model's stepper, by the id of their place."""
    return {
        ids.reading(ids.STEP): effects.title(settings.step),
        ids.MEANING: effects.meaning(settings.step),
        ids.FINDING: effects.finding(view, settings.step),
        ids.SOURCE: effects.source(view),
        ids.ROOF_GAP: "what launches cost"
        if not view.calibrated
        else "what launches, latency and instructions beyond the FLOP cost",
        ids.ABOVE_ROOF: above_roof(view),
    }


def above_roof(view: View) -> str:
    """Say why a chain stands above the roof, in a sentence for each reason; nothing where none does."""
    sides: dict[str, list[str]] = {}
    for name, price in (("unfused", view.point.unfused), ("fused", view.point.fused)):
        if view.excess(price) > ON_THE_ROOF:
            sides.setdefault(_lift(view, price), []).append(name)
    return " ".join(f"{' and '.join(names).capitalize()}: above the roof, {why}." for why, names in sides.items())


def _lift(view: View, price: Price) -> str:
    """Say what lifts a chain above the roof."""
    if not view.counts_arithmetic and float(price.flops / price.time) > view.peak:
        return "since arithmetic costs no time in this model"
    if float(price.l2_bytes) > 0:
        return "since values come from the cache, which is faster than the memory that the roof stands for"
    return "which no device can be; do not trust this figure"


def readings(settings: Settings, view: View) -> dict[str, str]:
    """Return what each slider stands at, by the id of the place beside its label."""
    overhead = time(view.overhead) if view.overhead else "0 us"
    node = f"{overhead} per node + {time(view.replay)} per replay"
    return {
        ids.reading(ids.OPS): f"{settings.length}",
        ids.reading(ids.NAMES): f"{settings.length} of 32",
        ids.reading(ids.SIZE): f"{count(settings.elements)} values, {size(view.point.fused.bytes_written)}",
        ids.reading(ids.REPEATS): "1 pass" if view.repeats == 1 else f"{units.format_count(view.repeats)} passes",
        ids.reading(ids.HOST): _host(view),
        ids.reading(ids.OVERHEAD): node if settings.launch == "graph" else f"{overhead} per kernel",
        ids.reading(ids.RATE): _rate(view),
    }


def measured_note(settings: Settings, view: View) -> str:
    """Say what the measured points are, and what to set for the same conditions where they differ."""
    if not view.measured:
        return ""
    sets = [row.sets for row in view.measured]
    note = f"Hollow marks: measured on {GPU}, launched from C++. "
    if settings.launch != "graph":
        return note
    rotated = f"A graph held {max(sets)} passes, {min(sets)} of the largest, each on buffers of its own"
    alike = settings.inputs == ROTATING and settings.repeats is None
    return f"{note}{rotated}{'.' if alike else ': for the same here, choose the inputs to be rotating.'}"


def time(value: object) -> str:
    """Write a time. [s].

    Examples
    --------
    >>> time(220.3e-6), time(4776119.4)
    ('220.3 us', '4.78 Ms')
    """
    seconds = float(value)  # type: ignore[arg-type]
    prefix, unit = next(((unit, name) for unit, name in _LONG if seconds >= unit), (1.0, "s"))
    return units.format_quantity(seconds / prefix, units.TIME).replace(" s", f" {unit}")


def count(value: float) -> str:
    """Write a number of values.

    Examples
    --------
    >>> count(33554432), count(1.235e17)
    ('33 554 432', '1.235 x 10^17')
    """
    return re.sub(r"e\+(\d+)$", r" x 10^\1", units.format_count(value))


def decade(power: int) -> str:
    """Write a power of ten of seconds.

    Examples
    --------
    >>> decade(-5), decade(0), decade(7)
    ('10 us', '1 s', '10 Ms')
    """
    if power < KILO:
        return units.format_exact(float(f"1e{power}"), units.TIME)
    prefix, unit = next((unit, name) for unit, name in _LONG if 10**power >= unit)
    return f"{10**power / prefix:.0f} {unit}"


def between(interval: tuple[object, object]) -> str:
    """Write an interval of times, the unit once where it is the same.

    Examples
    --------
    >>> between((82e-6, 87.3e-6)), between((999e-9, 1.1e-6))
    ('82.0 to 87.3 us', '999.0 ns to 1.1 us')
    """
    low, high = (time(end) for end in interval)
    number, unit = low.split(" ")
    return f"{number} to {high}" if high.endswith(f" {unit}") else f"{low} to {high}"


def size(value: object) -> str:
    """Write a number of bytes."""
    return units.format_quantity(float(value), units.SIZE)  # type: ignore[arg-type]


def kernels(price: Price) -> str:
    """Write how many kernels."""
    count = int(price.kernels)
    return "1 kernel" if count == 1 else f"{count} kernels"


def _host(view: View) -> str:
    """Say how often the host launches; a path's own interval moves with the host's load."""
    interval = time(view.host_interval) if view.host_interval else "0 us"
    return f"{interval} a launch" + (f", {between((view.host.low, view.host.high))}" if view.host else "")


def _rate(view: View) -> str:
    """Say which bandwidth counts, and whose it is."""
    peak, reached = (units.format_quantity(rate, units.BANDWIDTH) for rate in (view.peak_bandwidth, view.bandwidth))
    if peak != reached:
        return f"{peak}, {reached} reached"
    datasheet = units.format_quantity(view.point.device.dram_bandwidth, units.BANDWIDTH)
    return f"{peak}, device has {datasheet}" if view.overridden else f"{peak}, as the device"
