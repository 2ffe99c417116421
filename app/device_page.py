"""What the page of devices shows: a chart of ratios, the table of figures with their sources, and the copy's file."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any, Final

from fusesim import units

from . import ids, palette, readout
from .device_file import OWN, to_toml
from .device_view import EDITS, edit_control, figures_of, l2_rate, look, ridge, special_rate, widgets
from .figures import NAMES_WIDE, Figure, frame
from .forms import button
from .page import items
from .tables import Cell, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.hardware import Figure as Fact
    from fusesim.hardware import HardwareProfile

    from .answering import Shown
    from .catalogue import Catalogue
    from .device_view import DeviceView
    from .fields import Values

RATIOS: Final = "ratios-chart"
FACTS: Final = "facts-table"
COPY: Final = "copy-table"
FILE: Final = "copy-file"
NOTE: Final = "copy-note"
ADVICE: Final = "advice"
ALIKE: Final = 1.02
"""Multiple of another device's figure up to which two devices are alike in it."""

NARROW: Final = 2.5
"""Largest over smallest multiple up to which the chart has ticks between 1 and 2."""

QUANTITIES: Final[Sequence[tuple[str, Callable[[HardwareProfile], float], units.Dimension]]] = (
    ("memory bandwidth", lambda device: device.dram_bandwidth, units.BANDWIDTH),
    ("memory capacity", lambda device: device.memory.capacity.si if device.memory.capacity else math.nan, units.SIZE),
    ("L2 capacity", lambda device: device.cache.l2.si if device.cache.l2 else math.nan, units.SIZE),
    ("L2 bandwidth", l2_rate, units.BANDWIDTH),
    ("fp32", lambda device: device.vector_rate("fp32"), units.FLOP_RATE),
    ("bf16 tensor", lambda device: device.tensor_rate("bf16"), units.FLOP_RATE),
    ("fp8 tensor", lambda device: device.tensor_rate("fp8"), units.FLOP_RATE),
    ("special functions", special_rate, units.COUNT),
)


def show(values: Values, _: str, *, catalogue: Catalogue) -> Shown:
    """Return what the page shows."""
    view = look(values, catalogue)
    return {
        "charts": {RATIOS: ratios(view)},
        "texts": {NOTE: note(view)},
        "verbatim": {ids.CALL: call(view), FILE: to_toml(view.copy)},
        "widgets": widgets(values),
        "hidden": [],
        "parts": {FACTS: facts(view), COPY: copied(view), ADVICE: items(advice(view)), ids.SUMS: items(sums(view))},
    }


def ratios(view: DeviceView) -> Figure:
    """Draw each device's figures as multiples of the first one's."""
    layout = frame("Multiples of the first device")
    base = view.shown[0]
    rows = [(name, of, unit) for name, of, unit in QUANTITIES if not math.isnan(of(base))]
    ticks = _ticks([of(device) / of(base) for device in view.columns for _, of, _ in rows])
    layout["xaxis"] = {
        "type": "log",
        "title": {"text": "times as much", "standoff": 8},
        "gridcolor": palette.GRID,
        "tickvals": ticks,
        "ticktext": [f"{tick:g}" for tick in ticks],
        "fixedrange": True,
        "zeroline": False,
    }
    layout["yaxis"] = {"autorange": "reversed", "fixedrange": True, "gridcolor": palette.GRID}
    layout["hovermode"] = "closest"
    layout["margin"] = layout["margin"] | {"l": NAMES_WIDE, "t": 96}
    layout["shapes"] = [
        {
            "type": "line",
            "x0": 1,
            "x1": 1,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "line": {"color": palette.INK, "dash": "dot"},
        }
    ]
    return {"data": [_dots(device, place, rows, base) for place, device in enumerate(view.columns)], "layout": layout}


def _ticks(ratios: list[float]) -> list[float]:
    """Return the ticks of the axis: closer ones where all devices are much alike, else there would be but a 1."""
    known = [ratio for ratio in ratios if not math.isnan(ratio)]
    wide = max(known, default=1.0) > NARROW * min(known, default=1.0)
    return [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20] if wide else [0.4, 0.5, 0.6, 0.8, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.5]


def _dots(device: HardwareProfile, place: int, rows: Any, base: HardwareProfile) -> Figure:
    known = [(name, of(device), of(base), unit) for name, of, unit in rows if not math.isnan(of(device))]
    colour, symbol = palette.DEVICES[place % len(palette.DEVICES)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": device.name,
        "x": [float(f"{value / first:.4g}") for _, value, first, _ in known],
        "y": [name for name, *_ in known],
        "customdata": [written(value, unit) for _, value, _, unit in known],
        "hovertemplate": f"{device.name}<br>%{{y}}: %{{customdata}}, %{{x:.3~g}}x<extra></extra>",
        "marker": {"color": colour, "symbol": symbol, "size": 10 + 3 * place, "line": {"width": 2}},
    }


def written(value: float, unit: units.Dimension) -> str:
    """Write a quantity, and that it is unknown where nobody sourced it."""
    if math.isnan(value):
        return "not sourced"
    return f"{readout.size(value)[:-1].strip()}/s" if unit is units.COUNT else units.format_quantity(value, unit)


def facts(view: DeviceView) -> str:
    """Return every figure of every device with its sources."""
    columns = view.columns
    known = [figures_of(device) for device in columns]
    paths = dict.fromkeys(path for held in known for path in held)
    rows: list[list[Cell | str]] = [
        [
            Cell(text=path, html=f"<code>{escape(path)}</code>"),
            *(_fact(held.get(path), device) for held, device in zip(known, columns, strict=True)),
        ]
        for path in paths
    ]
    rows += [
        [Cell(text=f"ridge point, {name}"), *(Cell(text=_ridge(device, name)) for device in columns)]
        for name in ("fp32", "bf16 tensor", "fp8 tensor")
    ]
    return table(("Figure", *(device.name for device in columns)), rows)


def _ridge(device: HardwareProfile, name: str) -> str:
    value = ridge(device, name)
    return "not sourced" if math.isnan(value) else f"{value:.0f} FLOP/B, worked out"


def _fact(figure: Fact | None, device: HardwareProfile) -> Cell:
    """Return a figure as printed, with where it comes from below it."""
    if figure is None:
        return Cell(text="not sourced", look="unknown")
    sources = ", ".join(_source(key, device) for key in figure.source)
    note = f" {escape(figure.note)}." if figure.note else ""
    others = "".join(
        f" Also {each.value:g} {escape(each.unit)}: {', '.join(_source(key, device) for key in each.source)}."
        for each in figure.alternatives
    )
    value = f"{figure.value:g} {figure.unit}".strip()
    return Cell(
        text=value,
        exact=figure.si,
        html=f'<strong>{escape(value)}</strong><span class="src">{sources}.{note}{others}</span>',
    )


def _source(key: str, device: HardwareProfile) -> str:
    """Return a source's name, as a link where it has an address."""
    source = device.sources[key]
    title = escape(source.title)
    if source.url.startswith("https://"):
        return f'<a href="{escape(source.url)}" rel="noreferrer noopener" title="{title}">{escape(key)}</a>'
    return f'<span title="{title}">{escape(key)}</span>'


def copied(view: DeviceView) -> str:
    """Return the first device's figures as entries; what was set by hand is marked."""
    edits = dict(view.values[EDITS])
    rows: list[list[Cell | str]] = []
    for path, figure in figures_of(view.shown[0]).items():
        own = f"{figure.value:g} {figure.unit}".strip()
        held = edits.get(path, own)
        entry = (
            f'<input type="text" class="entry" id="{edit_control(path)}" data-control value="{escape(held)}" '
            f'aria-label="{escape(path)} of your copy" maxlength="40" autocomplete="off" spellcheck="false">'
        )
        rows.append(
            [Cell(text=path, html=f"<code>{escape(path)}</code>", mark=path in edits), own, Cell(text=held, html=entry)]
        )
    undo = button("Take all changes back", "undo", "all") if edits else ""
    return table(("Figure", "As sourced", "In your copy"), rows) + undo


def note(view: DeviceView) -> str:
    """Say what the copy is."""
    count = len(view.values[EDITS])
    changes = (
        "nothing is changed yet" if not count else f"{count} {'figure is' if count == 1 else 'figures are'} your own"
    )
    return (
        f"A copy of {view.shown[0].name}, {changes}. Write a figure with its unit; an empty entry leaves it out. "
        "Figures "
        f'that you set have the source "{OWN}". A copy that contradicts itself is refused, as a file would be.'
    )


def advice(view: DeviceView) -> list[str]:
    """Say which device is better for what, and why, then what each one's ridge point is."""
    if len(view.columns) == 1:
        return [_limit(view.columns[0])]
    decode = _better(
        view,
        lambda device: device.dram_bandwidth,
        units.BANDWIDTH,
        "Decoding token by token, norms and element-wise chains",
        "each byte of weights is read for about 2 FLOP, so the memory's bandwidth decides",
    )
    prompts = _better(
        view,
        lambda device: device.tensor_rate("bf16"),
        units.FLOP_RATE,
        "Long prompts and large matrix products",
        "their values are used again and again on the chip, so the dense peak of the matrix units decides",
    )
    return [*decode, *prompts, *(_limit(device) for device in view.columns)]


def _better(
    view: DeviceView, of: Callable[[HardwareProfile], float], unit: units.Dimension, work: str, why: str
) -> list[str]:
    """Say which device has most of what decides for some work; nothing where a source is missing."""
    known = sorted((device for device in view.columns if not math.isnan(of(device))), key=lambda device: -of(device))
    if len(known) < len(view.columns):
        return []
    best, *others = known
    told = ", ".join(f"{device.name} {units.format_quantity(of(device), unit)}" for device in known)
    ratio = of(best) / of(others[0])
    verdict = f"{best.name} is better, {_times(of(best), of(others[0]))}" if ratio > ALIKE else "they are alike"
    return [f"{work}: {verdict}. Here {why}: {told}."]


def _limit(device: HardwareProfile) -> str:
    """Say up to where memory is the limit."""
    point = ridge(device, "bf16 tensor")
    if math.isnan(point):
        return f"{device.name}: no source gives its matrix units a bf16 peak."
    return f"{device.name}: below {point:.0f} FLOP/B memory is the limit even for its matrix units."


def _times(value: float, base: float) -> str:
    return units.format_ratio(value / base)


def sums(view: DeviceView) -> list[str]:
    """Write out what is worked out of figures."""
    told = []
    for device in view.columns:
        memory, rate = device.memory, device.vector_rate("fp32")
        bandwidth = units.format_quantity(device.dram_bandwidth, units.BANDWIDTH)
        if memory.bus_width and memory.pin_rate:
            moved = units.format_quantity(memory.bus_width.si * memory.pin_rate.si / 8, units.BANDWIDTH)
            told.append(
                f"{device.name}: {memory.bus_width.value:g} bit x {memory.pin_rate.value:g} {memory.pin_rate.unit} "
                "/ 8 = "
                f"{moved}; stated are {bandwidth}."
            )
        peak = device.vector.get("fp32")
        clock = (peak.clock if peak else None) or device.chip.boost_clock
        if peak and clock and device.chip.sms and peak.flop_per_clock:
            product = device.chip.sms.si * clock.si * peak.flop_per_clock.si
            told.append(
                f"{device.name}: {device.chip.sms.si:.0f} SMs x {clock.value:g} {clock.unit} x "
                f"{peak.flop_per_clock.si:.0f} FLOP per clock = {units.format_quantity(product, units.FLOP_RATE)} "
                "in fp32; "
                f"stated are {units.format_quantity(rate, units.FLOP_RATE)}."
            )
        if not math.isnan(rate):
            told.append(
                f"{device.name}: {units.format_quantity(rate, units.FLOP_RATE)} / {bandwidth} = "
                f"{ridge(device, 'fp32'):.1f} FLOP/B, the ridge point in fp32."
            )
    return told


def call(view: DeviceView) -> str:
    """Return the library calls that read the same figures."""
    names = ", ".join(f'"{device.id}"' for device in view.shown)
    lines = [
        "import fusesim",
        "",
        f"for name in ({names},):",
        "    device = fusesim.device(name)",
        "    print(device.name, device.dram_bandwidth, device.tensor_rate('bf16'))",
    ]
    if view.edited:
        lines += [
            "",
            'mine = fusesim.load_device("my-device.toml")  # the file that is downloaded here',
            "print(mine.name)",
        ]
    return "\n".join(lines)
