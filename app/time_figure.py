"""Time against tensor size as a plain dictionary: curves, their intervals, measured points, and what decides where."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from . import palette, readout
from .figures import COLOURS, SIDES, SYMBOLS, axis, decade_step, decade_ticks, decades, frame, one_side
from .measured import GPU
from .view import launch_bound_up_to

if TYPE_CHECKING:
    from fusesim.arrays import Numbers
    from fusesim.measured import Measured

    from .figures import Figure
    from .view import View

_WIDTHS: Final = {"unfused": 5, "fused": 2.5}
"""The fused line is drawn over the unfused one and is thinner, so that both show where they coincide."""

_WIDTHS_IN_BAND: Final = {"unfused": 2.5, "fused": 1.5}
"""Where there is an interval around them, lines must not cover it."""

_BANDS: Final = {"unfused": palette.UNFUSED_BAND, "fused": palette.FUSED_BAND}
_NEAR_EDGE: Final = 0.22
"""Part of the chart's width that a written time may need."""

_HEADROOM: Final = 0.08
"""Part of the chart's height that is left free for a time written above the highest decade."""

_MOST_TICKS: Final = 7
"""Decades of an axis up to which each has its label; a narrow page shows every third size."""

_REGIMES: Final = {"launch": "launch", "host": "launch", "dram": "memory", "l2": "memory"}
"""What binds, as a region's name says it; everything else is arithmetic."""


def time_chart(view: View) -> Figure:
    """Time of the chain, unfused and fused, against tensor size; the chosen size is marked.

    Sizes at which launches decide the time of either are shaded, and darker where they decide both. The 90 %
    interval of each is a pale band, and what was measured are hollow marks.
    """
    times = [one_side(view.curve, side).time for side in SIDES]
    low, high = decades([*times, *([row.time] for row in view.measured)])
    layout = frame("Time against tensor size")
    layout["xaxis"] = axis("tensor size [values]", _size_limits(view))
    layout["xaxis"] |= decade_ticks(_size_limits(view), _MOST_TICKS)
    layout["xaxis"] |= {"tickformat": "~s", "unifiedhovertitle": {"text": "%{x:,.0f} values"}}
    layout["yaxis"] = axis("time", [low, high + _HEADROOM * (high - low)]) | _time_ticks(low, high)
    layout["xaxis"] |= {"spikecolor": palette.INK, "spikethickness": -1.5, "spikedash": "solid"}
    layout["hovermode"] = "x unified"
    layout["shapes"] = [*_launch_regions(view), _chosen_line(view)]
    layout["annotations"] = _region_names(view)
    lines = [_time_line(view, side) for side in SIDES]
    marks = [_time_mark(view, side) for side in SIDES]
    bands = [_band(view, side) for side in SIDES] if view.has_interval else []
    points = [_measured_points(view, side) for side in SIDES] if view.measured else []
    return {"data": lines + marks + bands + points, "layout": layout}


def _size_limits(view: View) -> list[float]:
    """Return the ends of the size axis, with room for a mark that stands on one of them and for its time."""
    low, high = math.log10(view.sizes[0]) - 0.1, math.log10(view.sizes[-1]) + 0.1
    chosen = math.log10(float(view.point.elements))
    return [low, max(high, low + (chosen - low) / (1 - _NEAR_EDGE))]


def _time_ticks(low: float, high: float) -> Figure:
    """Label whole decades in the units of the page, every third one where there are many."""
    step = decade_step(low, high, _MOST_TICKS)
    powers = [power for power in range(int(low), int(high) + 1) if power % step == 0]
    return {
        "tickvals": [10.0**power for power in powers],
        "ticktext": [readout.decade(power) for power in powers],
    }


def _time_line(view: View, side: str) -> Figure:
    """Draw one way's times; hover writes them in the browser, where it costs a class of learners nothing."""
    price = one_side(view.curve, side)
    binds = [readout.BINDS[bound] for bound in np.broadcast_to(price.bound, view.sizes.shape).tolist()]
    line: Figure = {
        "type": "scatter",
        "mode": "lines",
        "name": side,
        "x": view.sizes.tolist(),
        "y": price.time.tolist(),  # type: ignore[union-attr]
        "customdata": binds,
        "hovertemplate": f"{side} %{{y:.4~s}}s, by %{{customdata}}<extra></extra>",
        "line": {"color": COLOURS[side], "width": _WIDTHS[side], "simplify": False},
        "legendgroup": side,
    }
    if view.has_interval:
        low, high = (_short(end) for end in price.interval)
        line["customdata"] = [list(point) for point in zip(binds, low, high, strict=True)]
        known = "90 %: %{customdata[1]:.3~s} to %{customdata[2]:.3~s}s"
        line["hovertemplate"] = f"{side} %{{y:.4~s}}s, by %{{customdata[0]}}<br>{known}<extra></extra>"
        line["line"]["width"] = _WIDTHS_IN_BAND[side]
    return line


def _band(view: View, side: str) -> Figure:
    """Fill the 90 % interval around one way's times."""
    low, high = (_short(end) for end in one_side(view.curve, side).interval)
    sizes = view.sizes.tolist()
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{side}, 90 % interval",
        "x": sizes + sizes[::-1],
        "y": high + low[::-1],
        "fill": "toself",
        "fillcolor": _BANDS[side],
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": side,
    }


def _measured_points(view: View, side: str) -> Figure:
    """Draw what was measured of one way."""
    rows = [row for row in view.measured if row.fused == (side == "fused")]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{side}, measured",
        "x": [row.elements for row in rows],
        "y": [row.time for row in rows],
        "customdata": [_conditions(row) for row in rows],
        "hovertemplate": f"measured %{{y:.4~s}}s on {GPU},<br>%{{customdata}}<extra></extra>",
        "marker": {"color": COLOURS[side], "size": 11, "symbol": f"{SYMBOLS[side]}-open", "line": {"width": 2}},
        "showlegend": False,  # the caption says what they are, and a phone has no room for a third name
    }


def _conditions(row: Measured) -> str:
    """Say under which conditions a time was measured."""
    if row.mode == "graph":
        return f"one of {row.sets} passes of a graph"
    return "one chain from idle" if row.mode == "latency" else "on a full stream"


def _short(values: Numbers) -> list[float]:
    """Return numbers to three digits: a band needs no more, and the answer is shorter."""
    return [float(f"{value:.3g}") for value in np.atleast_1d(values)]


def _time_mark(view: View, side: str) -> Figure:
    """Mark the chosen size on one line, its time written where a rising line leaves room: above left, below right."""
    time = float(one_side(view.point, side).time)
    low, high = _size_limits(view)
    above = side == "unfused"
    room = math.log10(float(view.point.elements)) - low > _NEAR_EDGE * (high - low)
    edge = "left" if above and room else "right"
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": f"{side}, chosen size",
        "x": [float(view.point.elements)],
        "y": [time],
        "text": [f"<b>{readout.time(time)}</b>"],
        "textposition": f"{'top' if above else 'bottom'} {edge}",
        "textfont": {"color": COLOURS[side], "size": 14},
        "marker": {"color": COLOURS[side], "size": 12, "symbol": SYMBOLS[side], "line": {"width": 2, "color": "#fff"}},
        "cliponaxis": False,
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": side,
    }


def _boundaries(view: View) -> list[float]:
    """Return, for each way in which launches decide somewhere, the size up to which they do."""
    turns = [launch_bound_up_to(one_side(view.curve, side), view.sizes) for side in SIDES]
    return [min(turn, 10 ** _size_limits(view)[1]) for turn in turns if turn is not None]


def _launch_regions(view: View) -> list[Figure]:
    """Shade the sizes at which launches decide, once for each way."""
    region = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "line": {"width": 0}, "layer": "below"}
    start = 10 ** _size_limits(view)[0]
    return [region | {"x0": start, "x1": turn, "fillcolor": palette.SHADE} for turn in _boundaries(view)]


def _chosen_line(view: View) -> Figure:
    chosen = float(view.point.elements)
    line = {"color": palette.INK, "width": 1.5, "dash": "dot"}
    return {"type": "line", "yref": "paper", "x0": chosen, "x1": chosen, "y0": 0, "y1": 1, "line": line}


def _region_names(view: View) -> list[Figure]:
    """Name the regions that are wide enough for it, in the corners that no line reaches."""
    first, last = _size_limits(view)
    turns = [math.log10(turn) for turn in _boundaries(view)] or [first]
    spans = (("launch-bound", "left", first, min(turns)), (_last_regime(view), "right", max(turns), last))
    corners = {"left": {"y": 0.99, "yanchor": "top"}, "right": {"y": 0.01, "yanchor": "bottom"}}
    return [
        {"text": name, "xref": "x", "xanchor": edge, "x": left if edge == "left" else right, "yref": "paper"}
        | {"showarrow": False, "font": {"size": 13}, **corners[edge]}
        for name, edge, left, right in spans
        if right - left > (last - first) / 4
    ]


def _last_regime(view: View) -> str:
    """Name what decides at the largest sizes."""
    bounds = [str(np.broadcast_to(one_side(view.curve, side).bound, view.sizes.shape)[-1]) for side in SIDES]
    names = list(dict.fromkeys(_REGIMES.get(bound, "arithmetic") for bound in bounds))
    return f"{names[0]}-bound" if len(names) == 1 else f"{names[0]}-bound, fused {names[1]}-bound"
