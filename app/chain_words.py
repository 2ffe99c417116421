"""The arithmetic of the chain page's view, and the library call that makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fusesim import units

from . import readout
from .view import Pricing

if TYPE_CHECKING:
    from fusesim.records import Price

    from .catalogue import Catalogue
    from .settings import Settings
    from .view import View

USUAL: Final = {
    **dict.fromkeys(("row", "launch_overhead", "dram_bandwidth", "host_interval", "effects")),
    "graph_repeats": 1,
    "inputs": "cold",
}
"""What a call need not say."""

LEFT: Final = "calibration"
"""What a call finds by itself: the calibration of the device."""


def call(settings: Settings, catalogue: Catalogue) -> str:
    """Return the library call that makes the view.

    Examples
    --------
    >>> from .catalogue import shipped
    >>> from .settings import Settings
    >>> print(call(Settings(), shipped()).splitlines()[2])
    found = fusesim.price_chain(5, 33554432, dtype="bf16", device="h100-sxm", launch="stream")
    """
    terms = Pricing(settings, catalogue).terms(settings.elements, settings.step) | {"device": settings.device}
    given = {
        name: value for name, value in terms.items() if name != LEFT and (name not in USUAL or value != USUAL[name])
    }
    chain = settings.ops if settings.named is None else list(settings.named)
    written = ", ".join(f"{name}={_literal(value)}" for name, value in given.items())
    lines = (
        "import fusesim",
        "",
        f"found = fusesim.price_chain({_literal(chain)}, {settings.elements}, {written})",
        "print(found)",
        'print("\\n".join(found.explain()))',
    )
    return "\n".join(lines)


def _literal(value: Any) -> str:
    """Write a value as source; a number of numpy's as the one that it is."""
    if isinstance(value, list | tuple):
        inside = ", ".join(map(_literal, value))
        return f"[{inside}]" if isinstance(value, list) or len(value) != 1 else f"({inside},)"
    if isinstance(value, str):
        return f'"{value}"'
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def sums(view: View) -> list[str]:
    """Write out how the figures came about."""
    unfused, fused = view.point.unfused, view.point.fused
    saved = (
        f"Saved: {readout.time(unfused.time)} - {readout.time(fused.time)} = {readout.time(view.point.saving)}; "
        f"{readout.time(unfused.time)} / {readout.time(fused.time)} = {units.format_ratio(float(view.point.speedup))}."
    )
    return [
        _bytes(view, unfused, "Unfused"),
        _time(view, unfused),
        _bytes(view, fused, "Fused"),
        _time(view, fused),
        saved,
    ]


def _bytes(view: View, price: Price, name: str) -> str:
    """Write out the bytes of one way."""
    read, written = readout.size(price.bytes_read), readout.size(price.bytes_written)
    moved = f"{name}: {readout.kernels(price)}, {read} read + {written} written = {readout.size(price.bytes_moved)}"
    return f"{moved}, on {readout.count(float(view.point.elements))} {view.point.dtype} values."


def _time(view: View, price: Price) -> str:
    """Write out the time of one way: a sum in the textbook, else parts that overlap."""
    launches, memory = readout.time(price.launch_time), readout.time(price.memory_time)
    if not view.calibrated:
        rate = units.format_quantity(view.bandwidth, units.BANDWIDTH)
        return (
            f"Launches {launches} + {readout.size(price.bytes_moved)} / {rate} = {memory}; "
            f"together {readout.time(price.time)}."
        )
    work = readout.time(price.compute_time)
    return (
        f"Launches and first bytes alone {launches}, bytes alone {memory}, instructions alone {work}; they overlap, "
        f"and together take {readout.time(price.time)}."
    )
