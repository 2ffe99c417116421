"""Charts as plain dictionaries, the form that Plotly takes: prices in, layout out, nothing computed but layout.

Backgrounds are transparent and axes mid-grey, so one figure serves light and dark. Plain dictionaries, since
building them takes microseconds where the object form takes milliseconds of every slider step.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusesim import units

from . import palette, readout
from .view import launch_bound_up_to

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.records import Price

    from .view import View

Figure = dict[str, Any]
CONFIG: Final[Any] = {
    "displaylogo": False,
    "modeBarButtons": [["toImage"]],
    "toImageButtonOptions": {"format": "png", "scale": 2},
    "responsive": True,
    "showTips": False,
}
"""How every chart behaves: it can be saved as a picture, and is not zoomed by accident on a phone."""

SIDES: Final = ("unfused", "fused")
COLOURS: Final = {"unfused": palette.UNFUSED, "fused": palette.FUSED}
_WIDTHS: Final = {"unfused": 5, "fused": 2.5}
"""The fused line is drawn over the unfused one and is thinner, so that both show where they coincide."""

_NEAR_EDGE: Final = 0.16
"""Part of the chart's width that a written time may need."""

SYMBOLS: Final = {"unfused": "square", "fused": "circle"}


def time_chart(view: View) -> Figure:
    """Time of the chain, unfused and fused, against tensor size; the chosen size is marked.

    Sizes at which launches decide the time of either are shaded, and darker where they decide both.
    """
    times = [one_side(view.curve, side).time for side in SIDES]
    low, high = decades(times)
    layout = frame("Time against tensor size")
    layout["xaxis"] = axis("tensor size [values]", _size_limits(view))
    layout["xaxis"] |= {"dtick": 1, "tickformat": "~s", "unifiedhovertitle": {"text": "%{x:,.0f} values"}}
    layout["yaxis"] = axis("time", [low, high]) | _time_ticks(low, high)
    layout["xaxis"] |= {"spikecolor": palette.INK, "spikethickness": -1.5, "spikedash": "solid"}
    layout["hovermode"] = "x unified"
    layout["shapes"] = [*_launch_regions(view), _chosen_line(view)]
    layout["annotations"] = _region_names(view)
    lines = [_time_line(view, side) for side in SIDES]
    return {"data": lines + [_time_mark(view, side) for side in SIDES], "layout": layout}


def bytes_chart(view: View) -> Figure:
    """Bytes that each way moves at the chosen size, reads and writes together."""
    layout = frame("Bytes at the chosen size")
    most = float(view.point.unfused.bytes_moved)
    layout["xaxis"] = {"fixedrange": True, "showgrid": False, "tickfont": {"size": 14}}
    layout["yaxis"] = {
        "title": {"text": "bytes read and written", "standoff": 8},
        "tickformat": "~s",
        "ticksuffix": "B",
        "nticks": 6,
        "range": [0, most * 1.12],
        "gridcolor": palette.GRID,
        "zerolinecolor": palette.INK,
        "fixedrange": True,
    }
    layout["showlegend"] = False
    layout["bargap"] = 0.35
    return {"data": [_byte_bar(view, side) for side in SIDES], "layout": layout}


def one_side(price: Any, side: str) -> Price:
    """Return one of the two prices of a chain."""
    return price.unfused if side == "unfused" else price.fused  # type: ignore[no-any-return]


def frame(title: str) -> Figure:
    """Return what all charts share."""
    return {
        "title": {"text": title, "x": 0.015, "xref": "container", "y": 0.975, "yanchor": "top", "font": {"size": 15}},
        "font": {"family": palette.FONT, "size": 13, "color": palette.INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 70, "r": 20, "t": 70, "b": 54},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.01, "yanchor": "bottom"},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": palette.INK, "activecolor": palette.INK},
        "separators": ". ",
        "dragmode": False,
    }


def _size_limits(view: View) -> list[float]:
    """Return the ends of the size axis, with room for a mark that stands on one of them."""
    return [math.log10(view.sizes[0]) - 0.1, math.log10(view.sizes[-1]) + 0.1]


def axis(title: str, limits: list[float]) -> Figure:
    """Return a logarithmic axis; limits are powers of ten."""
    return {
        "type": "log",
        "title": {"text": title, "standoff": 8},
        "range": limits,
        "gridcolor": palette.GRID,
        "linecolor": palette.INK,
        "zeroline": False,
        "fixedrange": True,
    }


def decades(values: Iterable[Any]) -> tuple[float, float]:
    """Return the whole powers of ten that hold all values above zero."""
    numbers = np.concatenate([np.atleast_1d(value) for value in values])
    numbers = numbers[numbers > 0]
    low, high = math.floor(math.log10(numbers.min())), math.ceil(math.log10(numbers.max()))
    return low, max(high, low + 1)


def _time_ticks(low: float, high: float) -> Figure:
    """Label whole decades in the units of the page, every second or third one where there are many."""
    step = 1 + int(high - low) // 8
    powers = range(int(low), int(high) + 1, step)
    return {
        "tickvals": [10.0**power for power in powers],
        "ticktext": [units.format_exact(float(f"1e{power}"), units.TIME) for power in powers],
    }


def _time_line(view: View, side: str) -> Figure:
    """Draw one way's times; hover writes them in the browser, where it costs a class of learners nothing."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": side,
        "x": view.sizes.tolist(),
        "y": one_side(view.curve, side).time.tolist(),  # type: ignore[union-attr]
        "hovertemplate": f"{side} %{{y:.4~s}}s<extra></extra>",
        "line": {"color": COLOURS[side], "width": _WIDTHS[side], "simplify": False},
        "legendgroup": side,
    }


def _time_mark(view: View, side: str) -> Figure:
    """Mark the chosen size on one line, its time written where a rising line leaves room: above left, below right."""
    time = float(one_side(view.point, side).time)
    span = math.log(view.sizes[-1] / view.sizes[0])
    place = math.log(float(view.point.elements) / view.sizes[0]) / span
    above = side == "unfused"
    edge = "left" if (place > _NEAR_EDGE if above else place > 1 - _NEAR_EDGE) else "right"
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
    spans = (("launch-bound", "left", first, min(turns)), ("memory-bound", "right", max(turns), last))
    corners = {"left": {"y": 0.99, "yanchor": "top"}, "right": {"y": 0.01, "yanchor": "bottom"}}
    return [
        {"text": name, "xref": "x", "xanchor": edge, "x": left if edge == "left" else right, "yref": "paper"}
        | {"showarrow": False, "font": {"size": 13}, **corners[edge]}
        for name, edge, left, right in spans
        if right - left > (last - first) / 4
    ]


def _byte_bar(view: View, side: str) -> Figure:
    price = one_side(view.point, side)
    moved = float(price.bytes_moved)
    return {
        "type": "bar",
        "name": side,
        "x": [side],
        "y": [moved],
        "text": [f"<b>{readout.size(moved)}</b>"],
        "textposition": "outside",
        "textfont": {"size": 15, "color": COLOURS[side]},
        "customdata": [[readout.size(moved), readout.size(price.bytes_read), readout.size(price.bytes_written)]],
        "hovertemplate": f"{side} %{{customdata[0]}}<br>"
        "read %{customdata[1]}<br>written %{customdata[2]}<extra></extra>",
        "marker": {"color": COLOURS[side]},
        "cliponaxis": False,
    }
