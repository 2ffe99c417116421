"""The chart, the table and the words of the roofline page."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final

from fusesim import units

from . import ids, palette, readout
from .answering import DRAGGED, MORE, Shown
from .device_view import SECOND, THIRD
from .figures import COLOURS, SYMBOLS, Figure, axis, decade_ticks, decades, frame
from .page import items
from .plan_form import hidden, widgets
from .plan_words import call
from .roofline_view import look, ridge, roof
from .tables import Cell, table

if TYPE_CHECKING:
    from .catalogue import Catalogue
    from .fields import Form, Values
    from .roofline_view import Ceiling, Point, RooflineView

ROOFLINE: Final = "roof-chart"
KERNELS: Final = "kernels-table"
LIMITS: Final = "limits-table"
SAID: Final = "roof-said"
UNFUSED_RATE: Final = "unfused-rate"
FUSED_RATE: Final = "fused-rate"
KEY: Final = "roof-key"
MOST_ROWS: Final = 120

_DASHES: Final = {"memory": "solid", "L2 cache": "dash", "special functions": "dot"}


def show(values: Values, pace: str, *, catalogue: Catalogue, form: Form) -> Shown:
    """Return what the page shows; nobody reads a table while a slider moves, so tables come once it stands still."""
    view = look(values, catalogue)
    parts = {KEY: key(view), SAID: items(said(view))}
    if pace != DRAGGED:
        parts |= {KERNELS: kernels(view), LIMITS: limits(view), ids.SUMS: items(sums(view))}
    return {
        "charts": {} if pace == MORE else {ROOFLINE: chart(view)},
        "texts": texts(view),
        "verbatim": {ids.CALL: call(view.plan)},
        "widgets": roof_widgets(form, values),
        "hidden": hidden(values),
        "parts": parts,
        "more": pace == DRAGGED,
    }


def roof_widgets(form: Form, values: Values) -> dict[str, str]:
    """Return what each control has to hold."""
    return widgets(form, values) | {name: values[name] for name in (SECOND, THIRD)}


def texts(view: RooflineView) -> dict[str, str]:
    """Return the texts of the page by the id of their place."""
    unfused, fused = view.totals
    return {
        ids.UNFUSED_TIME: readout.time(unfused.time),
        UNFUSED_RATE: _rate(unfused.rate),
        ids.UNFUSED_BYTES: f"{unfused.intensity:.3g} FLOP/B",
        ids.UNFUSED_SHARE: _share(view, unfused),
        ids.FUSED_TIME: readout.time(fused.time),
        FUSED_RATE: _rate(fused.rate),
        ids.FUSED_BYTES: f"{fused.intensity:.3g} FLOP/B",
        ids.FUSED_SHARE: _share(view, fused),
        ids.SPEEDUP: units.format_ratio(view.plan.speedup),
        ids.SAVING: readout.time(abs(view.plan.saving)),
        ids.SENTENCE: (
            f"Fusion moves the program from {unfused.intensity:.3g} to {fused.intensity:.3g} FLOP/B: the same "
            "result on "
            f"{readout.size(fused.bytes_moved)} in place of {readout.size(unfused.bytes_moved)}."
        ),
        ids.reading("ops-slider"): str(len(view.plan.graph.paid_nodes)),
    }


def _rate(value: float) -> str:
    return units.format_quantity(value, units.FLOP_RATE)


def _share(view: RooflineView, point: Point) -> str:
    if not point.flops:
        return "no arithmetic"
    return units.format_share(point.rate / view.attainable(point.intensity))


def chart(view: RooflineView) -> Figure:
    """Draw the ceilings of the first device, the roofs of the others, and kernels before and after fusion."""
    points = [point for point in (*view.kernels, *view.totals) if point.flops]
    levels = [each for each in view.ceilings if not each.slope]
    ridges = [ridge(view.ceilings, each) for each in levels]
    x_low, x_high = decades([[point.intensity for point in points] or [1.0], ridges or [1.0], [0.1, 300.0]])
    roofs = [
        roof(ceilings, 10.0**x)
        for ceilings in (view.ceilings, *(each for _, each in view.others))
        for x in (x_low, x_high)
    ]
    y_low, y_high = decades([[point.rate for point in points] or [1e12], [max(roofs)]])
    layout = frame("Ceilings and kernels")
    layout["xaxis"] = axis("arithmetic intensity [FLOP/B]", [x_low, x_high]) | decade_ticks([x_low, x_high], 6)
    layout["xaxis"] |= {"tickformat": "~r"}
    layout["yaxis"] = axis("arithmetic done [FLOP/s]", [y_low, y_high + 0.25]) | {"tickformat": "~s"}
    layout["yaxis"] |= decade_ticks([y_low, y_high], 9)
    layout["hovermode"] = "closest"
    layout["margin"] = layout["margin"] | {"t": 50}
    layout["showlegend"] = False  # beside a phone's few pixels it would cover the picture; the caption has it
    layout["shapes"], names = _regions(ridges, x_low, x_high)
    layout["annotations"] = [*names, *(_name(each, x_high) for each in view.ceilings if not each.slope)]
    lines = [_line(each, x_low, x_high, view.ceilings) for each in view.ceilings]
    others = [
        _other(place, device.name, ceilings, (x_low, x_high)) for place, (device, ceilings) in enumerate(view.others, 1)
    ]
    marks = [_marks(view, side) for side in ("unfused", "fused")]
    return {"data": [*lines, *others, _ridges(view, levels), _move(view), *marks, *_totals(view)], "layout": layout}


def _regions(ridges: list[float], low: float, high: float) -> tuple[list[Figure], list[Figure]]:
    """Shade what memory binds for every kind of arithmetic, and name the regions at the lower edge."""
    if not ridges:
        return [], []
    first, last = min(ridges), max(ridges)
    shape = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "line": {"width": 0}, "layer": "below"}
    shapes = [shape | {"x0": 10**low, "x1": turn, "fillcolor": palette.SHADE} for turn in dict.fromkeys((first, last))]
    text = {"showarrow": False, "xref": "x", "yref": "paper", "y": 0.01, "yanchor": "bottom", "font": {"size": 12}}
    spans = (("memory-bound", low, math.log10(first)), ("compute-bound", math.log10(last), high))
    return shapes, [
        text | {"text": name, "x": left, "xanchor": "left", "xshift": 3}
        for name, left, right in spans
        if right - left > 0.22 * (high - low)
    ]


def _line(ceiling: Ceiling, low: float, high: float, ceilings: tuple[Ceiling, ...]) -> Figure:
    """Draw a ceiling: a slope up to the highest level, or a level from where the memory's slope reaches it."""
    top = max((each.rate for each in ceilings if not each.slope), default=math.inf)
    if ceiling.slope:
        end = min(10.0**high, top / ceiling.rate)
        x, y = [10.0**low, end], [10.0**low * ceiling.rate, end * ceiling.rate]
    else:
        start = max(10.0**low, min(ceiling.rate / each.rate for each in ceilings if each.slope))
        x, y = [start, 10.0**high], [ceiling.rate, ceiling.rate]
    unit = units.BANDWIDTH if ceiling.slope else units.FLOP_RATE
    said = f"{ceiling.name}: {units.format_quantity(ceiling.rate, unit)} ({ceiling.source})"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{ceiling.name} {units.format_quantity(ceiling.rate, unit)}",
        "x": x,
        "y": y,
        "hovertemplate": f"{said}<extra></extra>",
        "line": {"color": palette.INK, "width": 2.5, "dash": _DASHES.get(ceiling.name, "solid")},
        "showlegend": ceiling.slope,
    }


def _name(ceiling: Ceiling, high: float) -> Figure:
    """Write a level's name above its right end; slopes have theirs in the legend."""
    text: Figure = {"showarrow": False, "xref": "x", "yref": "y", "font": {"size": 12}, "yanchor": "bottom"}
    rate = units.format_quantity(ceiling.rate, units.FLOP_RATE)
    return text | {"text": f"{ceiling.name} {rate}", "x": high, "y": math.log10(ceiling.rate), "xanchor": "right"}


def _other(place: int, name: str, ceilings: tuple[Ceiling, ...], span: tuple[float, float]) -> Figure:
    """Draw the roof of another device: its memory's slope and its highest level."""
    memory = next(each.rate for each in ceilings if each.slope)
    top = max((each.rate for each in ceilings if not each.slope), default=math.inf)
    turn = min(top / memory, 10.0 ** span[1])
    x = [10.0 ** span[0], turn, 10.0 ** span[1]]
    colour, symbol = palette.DEVICES[place % len(palette.DEVICES)]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": [roof(ceilings, each) for each in x],
        "hovertemplate": f"roof of {name}<br>%{{x:.3~g}} FLOP/B<extra></extra>",
        "line": {"color": colour, "width": 2, "dash": "longdash"},
        "marker": {"symbol": symbol, "size": [0.1, 12, 0.1], "color": colour, "line": {"width": 2}},
    }


def key(view: RooflineView) -> str:
    """Return what the slopes are, for the caption."""
    slopes = [
        (f"{each.name} {units.format_quantity(each.rate, units.BANDWIDTH)}", palette.INK, _DASHES[each.name])
        for each in view.ceilings
        if each.slope
    ]
    roofs = [
        (f"roof of {device.name}", palette.DEVICES[place % len(palette.DEVICES)][0], "dash")
        for place, (device, _) in enumerate(view.others, 1)
    ]
    return "".join(
        f'<span class="line-key" style="--line-key:{colour}" data-dash="{dash}">{escape(name)}</span>'
        for name, colour, dash in (*slopes, *roofs)
    )


def _ridges(view: RooflineView, levels: list[Ceiling]) -> Figure:
    """Mark the ridge points."""
    at = [ridge(view.ceilings, each) for each in levels]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "ridge points",
        "x": at,
        "y": [each.rate for each in levels],
        "customdata": [each.name for each in levels],
        "hovertemplate": "ridge point, %{customdata}: %{x:.4~g} FLOP/B<extra></extra>",
        "marker": {"color": palette.INK, "size": 9, "symbol": "circle-open", "line": {"width": 2}},
        "showlegend": False,
    }


def _marks(view: RooflineView, side: str) -> Figure:
    """Draw the kernels of one way."""
    own = [point for point in view.kernels if point.side == side][:MOST_ROWS]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{side}, each kernel",
        "x": [_short(point.intensity) for point in own],
        "y": [_short(point.rate) for point in own],
        "customdata": [
            [point.name, _rate(point.rate), _share(view, point), readout.BINDS[point.bound], readout.time(point.time)]
            for point in own
        ],
        "hovertemplate": f"{side}: %{{customdata[0]}}, %{{customdata[4]}}<br>%{{x:.3~g}} FLOP/B, %{{customdata[1]}}, "
        "%{customdata[2]} of the roof<br>by %{customdata[3]}<extra></extra>",
        "marker": {"color": COLOURS[side], "size": 9, "symbol": SYMBOLS[side], "opacity": 0.55},
        "showlegend": False,
    }


def _totals(view: RooflineView) -> list[Figure]:
    """Draw the whole program before and after."""
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": point.side,
            "x": [_short(point.intensity)],
            "y": [_short(point.rate)],
            "hovertemplate": f"{point.side}, all kernels: %{{x:.3~g}} FLOP/B, {_rate(point.rate)}<extra></extra>",
            "marker": {
                "color": COLOURS[point.side],
                "size": 16,
                "symbol": SYMBOLS[point.side],
                "line": {"width": 2, "color": "#fff"},
            },
        }
        for point in view.totals
        if point.flops
    ]


def _move(view: RooflineView) -> Figure:
    """Draw the way from before to after."""
    shown = [point for point in view.totals if point.flops]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [_short(point.intensity) for point in shown],
        "y": [_short(point.rate) for point in shown],
        "line": {"color": palette.INK, "width": 2, "dash": "dot"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def kernels(view: RooflineView) -> str:
    """Return every kernel with its place under the roof."""
    number = "number"
    rows = [
        [
            Cell(text=point.name),
            Cell(text=point.side, look=f"state {'saved' if point.side == 'fused' else 'paid'}"),
            Cell(text=f"{point.intensity:.3g}", look=number, exact=point.intensity),
            Cell(text=_rate(point.rate), look=number, exact=point.rate),
            Cell(text=_share(view, point), look=number, exact=point.rate / view.attainable(point.intensity)),
            Cell(text=readout.time(point.time), look=number, exact=point.time),
            Cell(text=readout.BINDS[point.bound], look="words"),
        ]
        for point in sorted(view.kernels, key=lambda each: -each.time)[:MOST_ROWS]
    ]
    heads = ("Kernel", "Side", "FLOP/B", "Reached", "Of the roof", "Time", "Bound by")
    return table(heads, rows, empty="The textbook has no single kernels: switch the model to calibrated.")


def limits(view: RooflineView) -> str:
    """Return the ceilings with their sources and ridge points."""
    rows = [
        [
            Cell(text=f"{each.name}, {device.name}"),
            Cell(
                text=units.format_quantity(each.rate, units.BANDWIDTH if each.slope else units.FLOP_RATE),
                look="number",
                exact=each.rate,
            ),
            Cell(text="" if each.slope else f"{ridge(ceilings, each):.3g} FLOP/B", look="number"),
            Cell(text=each.source, look="words"),
        ]
        for device, ceilings in ((view.plan.device, view.ceilings), *view.others)
        for each in ceilings
    ]
    return table(("Ceiling", "Rate", "Ridge point", "Source"), rows)


def said(view: RooflineView) -> list[str]:
    """Say what the picture shows."""
    told = []
    for point in view.totals:
        if not point.flops:
            continue
        level = max((each for each in view.ceilings if not each.slope), key=lambda each: each.rate, default=None)
        turn = ridge(view.ceilings, level) if level else math.inf
        where = "left of" if point.intensity < turn else "right of"
        told.append(
            f"{point.side.capitalize()}: {point.intensity:.3g} FLOP/B, {where} the last ridge point at {turn:.3g}; "
            f"{_share(view, point)} of the roof there is reached, bound by {readout.BINDS[point.bound]}."
        )
    above = [point.name for point in view.kernels if point.rate > 1.02 * view.attainable(point.intensity)]
    if above:
        told.append(
            f"Above the memory's slope: {', '.join(dict.fromkeys(above[:4]))}. Their values come from the L2 cache, "
            "whose slope is the dashed line."
        )
    bound = [point.name for point in view.kernels if point.bound in {"sfu", "issue"} and point.side == "fused"]
    if bound:
        told.append(
            f"Below every ceiling drawn, and yet not bound by memory: {', '.join(dict.fromkeys(bound[:4]))}. "
            "Instructions that are no FLOP, or special functions, are their limit."
        )
    if view.idle:
        told.append(f"{view.idle} kernels do no arithmetic, such as copies, and have no place in this picture.")
    return told


def sums(view: RooflineView) -> list[str]:
    """Write out how points and ridge points came about."""
    memory = view.ceilings[0]
    bandwidth = units.format_quantity(memory.rate, units.BANDWIDTH)
    told = [
        f"{each.name}: {_rate(each.rate)} / {bandwidth} = {ridge(view.ceilings, each):.4g} FLOP/B, its ridge point."
        for each in view.ceilings
        if not each.slope
    ]
    for point in view.totals:
        flops = units.format_quantity(point.flops, units.FLOPS)
        if not point.flops:
            continue
        told.append(
            f"{point.side.capitalize()}: {flops} / {readout.size(point.bytes_moved)} = {point.intensity:.4g} "
            f"FLOP/B; {flops} / "
            f"{readout.time(point.time)} = {_rate(point.rate)}; the roof there is min({bandwidth} x "
            f"{point.intensity:.4g} "
            f"FLOP/B, highest level) = {_rate(view.attainable(point.intensity))}."
        )
    return told
