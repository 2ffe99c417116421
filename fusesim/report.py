"""Results as text for a terminal: tables and sentences. No arithmetic, no reading of arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table

from fusesim import units

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fusesim.api import Ceiling
    from fusesim.hardware import Alternative, Figure, HardwareProfile
    from fusesim.records import ChainPrice, Price

FAR_APART: Final = 0.01
"""A figure below this share of the one beside it gets a unit of its own."""


def chain_table(price: ChainPrice) -> Table:
    """Return the two prices of a chain side by side."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for heading in ("unfused", "fused"):
        table.add_column(heading, justify="right")
    for label, unfused, fused in _chain_rows(price.unfused, price.fused):
        table.add_row(label, unfused, fused)
    return table


def _chain_rows(unfused: Price, fused: Price) -> list[tuple[str, str, str]]:
    """Return the rows: a label and both figures, in one unit where that leaves digits of the second."""

    def pair(label: str, dimension: units.Dimension, name: str) -> tuple[str, str, str]:
        first, second = (float(getattr(price, name)) for price in (unfused, fused))
        like = None if 0 < second < FAR_APART * first else first
        texts = [units.format_quantity(value, dimension, like=like) for value in (first, second)]
        return label, texts[0], texts[1]

    def share(price: Price) -> str:
        return units.format_share(float(price.launch_share))

    intensities = [f"{float(price.arithmetic_intensity):.3g} FLOP/B" for price in (unfused, fused)]
    return [
        pair("time", units.TIME, "time"),
        ("kernels", units.format_count(float(unfused.kernels)), units.format_count(float(fused.kernels))),
        pair("bytes moved", units.SIZE, "bytes_moved"),
        pair("launches alone", units.TIME, "launch_time"),
        pair("memory alone", units.TIME, "memory_time"),
        pair("arithmetic alone", units.TIME, "compute_time"),
        ("launch share", share(unfused), share(fused)),
        ("arithmetic intensity", intensities[0], intensities[1]),
        pair("peak memory above inputs", units.SIZE, "peak_memory"),
        ("bound", unfused.bound, fused.bound),
    ]


def chain_verdict(price: ChainPrice) -> str:
    """Return the line a reader takes away."""
    if price.unfused.kernels == 1:
        return "nothing to save"
    saved = units.format_quantity(float(price.saving), units.TIME)
    return f"fusing saves {saved}: {units.format_ratio(float(price.speedup))}"


def chain_heading(price: ChainPrice, description: str) -> str:
    """Return what was priced, where, and by which model."""
    size = units.format_count(float(price.elements))
    asked = price.device.requested_as
    alias = f' (asked for as "{asked}")' if asked else ""
    return f"{description}, {size} {price.dtype} elements, {price.device.name}{alias}, {price.launch}, {price.model}"


def device_list(profiles: Iterable[HardwareProfile], *, names: bool = True) -> Table:
    """Return one line per device, without full names and aliases where there is no room for them."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("id", no_wrap=True)
    for heading in ("name", "also") if names else ():
        table.add_column(heading, overflow="fold")
    for heading in ("memory", "cache", "fp32", "bf16 tensor"):
        table.add_column(heading, justify="right", no_wrap=True)
    for profile in profiles:
        table.add_row(
            profile.id,
            *((profile.name, " ".join(profile.aliases)) if names else ()),
            units.format_quantity(profile.dram_bandwidth, units.BANDWIDTH),
            units.format_capacity(profile.cache_capacity),
            units.format_quantity(profile.vector_rate("fp32"), units.FLOP_RATE),
            units.format_quantity(profile.tensor_rate("bf16"), units.FLOP_RATE),
        )
    return table


def device_figures(profile: HardwareProfile) -> Table:
    """Return every figure of a device as its file states it, with its source."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, justify in (("figure", "left"), ("value", "right"), ("source", "left"), ("note", "left")):
        table.add_column(heading, justify="right" if justify == "right" else "left", overflow="fold")
    for path, figure in profile.figures():
        others = [f"also {_as_stated(a)} ({', '.join(a.source)})" for a in figure.alternatives]
        notes = "; ".join([figure.note, *others] if figure.note else others)
        table.add_row(path, _as_stated(figure), ", ".join(figure.source), notes)
    return table


def _as_stated(figure: Figure | Alternative) -> str:
    """Write a figure as its file does, with all of its digits."""
    return f"{repr(figure.value).removesuffix('.0')} {figure.unit}".rstrip()


def device_sources(profile: HardwareProfile) -> Table:
    """Return where a device's figures come from."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("source", "title", "address"):
        table.add_column(heading, overflow="fold")
    for key, source in profile.sources.items():
        table.add_row(key, source.title, source.url)
    return table


def roofline_table(ceilings: Sequence[Ceiling]) -> Table:
    """Return ceilings: name, rate, and the intensity at which memory stops being the limit."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("ceiling")
    table.add_column("dense peak", justify="right")
    table.add_column("ridge point", justify="right")
    for ceiling in ceilings:
        rate = units.format_quantity(ceiling.flop_rate, units.FLOP_RATE)
        table.add_row(ceiling.name, rate, f"{ceiling.ridge_point:.3g} FLOP/B")
    return table


def roofline_points(price: ChainPrice) -> Table:
    """Return where a chain stands before and after fusion."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("chain")
    for heading in ("arithmetic intensity", "memory alone", "arithmetic alone", "bound"):
        table.add_column(heading, justify="right")
    for name, side in (("unfused", price.unfused), ("fused", price.fused)):
        times = (units.format_quantity(float(time), units.TIME) for time in (side.memory_time, side.compute_time))
        table.add_row(name, f"{float(side.arithmetic_intensity):.3g} FLOP/B", *times, side.bound)
    return table
