"""What all charts share, and the simplest of them: prices in, layout out, nothing computed but layout.

Charts are plain dictionaries, the form that Plotly takes, since building them takes microseconds where the object
form takes milliseconds of every slider step. Backgrounds are transparent and axes mid-grey, so one figure serves
light and dark.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from . import palette, readout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.records import Price

    from .view import View

Figure = dict[str, Any]
CONFIG: Final[Any] = {"displayModeBar": False, "responsive": True, "showTips": False}
"""How every chart behaves: it has the page's own buttons, and is not zoomed by accident on a phone."""

NAMES_WIDE: Final = 140
"""Margin for names at an axis: a margin that Plotly finds by itself costs a second drawing. [px]"""

SIDES: Final = ("unfused", "fused")
COLOURS: Final = {"unfused": palette.UNFUSED, "fused": palette.FUSED}
SYMBOLS: Final = {"unfused": "square", "fused": "circle"}


def bytes_chart(view: View) -> Figure:
    """Bytes that each way moves at the chosen size, reads and writes together; those from the cache are paler."""
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
    layout |= {"showlegend": False, "bargap": 0.35, "barmode": "stack"}
    bars = [_byte_bar(view, side) for side in SIDES]
    cached = [_cached_bar(view, side) for side in SIDES if float(one_side(view.point, side).l2_bytes) > 0]
    return {"data": bars + cached, "layout": layout}


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
        "margin": {"l": 70, "r": 24, "t": 70, "b": 54},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.01, "yanchor": "bottom", "tracegroupgap": 0},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": palette.INK, "activecolor": palette.INK},
        "separators": ". ",
        "dragmode": False,
    }


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


def decade_step(low: float, high: float, most: float) -> int:
    """Return the decades between labels: one, or three where more labels would stand on an axis than fit.

    Examples
    --------
    >>> decade_step(-6, -1, 6), decade_step(-6, 9, 6)
    (1, 3)
    """
    return 1 if high - low <= most else 3


def decade_ticks(limits: list[float], most: float) -> Figure:
    """Return labels at whole decades, and a line at each."""
    step = decade_step(limits[0], limits[1], most)
    return {"dtick": step, "tickangle": 0} | ({"minor": {"dtick": 1, "gridcolor": palette.GRID}} if step > 1 else {})


def decades(values: Iterable[Any]) -> tuple[float, float]:
    """Return the whole powers of ten that hold all values above zero."""
    numbers = np.concatenate([np.atleast_1d(value) for value in values])
    numbers = numbers[numbers > 0]
    low, high = math.floor(math.log10(numbers.min())), math.ceil(math.log10(numbers.max()))
    return low, max(high, low + 1)


def _byte_bar(view: View, side: str) -> Figure:
    """Draw what memory serves, with the whole written above where there is nothing else."""
    price = one_side(view.point, side)
    served, cached = float(price.dram_bytes), float(price.l2_bytes)
    return {
        "type": "bar",
        "name": side,
        "x": [side],
        "y": [served],
        "text": ["" if cached > 0 else _total(price)],
        "customdata": [
            [readout.size(price.bytes_moved), readout.size(price.bytes_read), readout.size(price.bytes_written)]
        ],
        "hovertemplate": f"{side} %{{customdata[0]}}<br>"
        "read %{customdata[1]}<br>written %{customdata[2]}<extra></extra>",
        "marker": {"color": COLOURS[side]},
        **_above(side),
    }


def _cached_bar(view: View, side: str) -> Figure:
    """Draw what the cache serves, on top."""
    price = one_side(view.point, side)
    return {
        "type": "bar",
        "name": f"{side}, from the cache",
        "x": [side],
        "y": [float(price.l2_bytes)],
        "text": [_total(price)],
        "hovertemplate": f"{side}: {readout.size(price.l2_bytes)} from the cache,<br>"
        f"{readout.size(price.dram_bytes)} from memory<extra></extra>",
        "marker": {"color": COLOURS[side], "opacity": 0.45},
        **_above(side),
    }


def _total(price: Price) -> str:
    return f"<b>{readout.size(price.bytes_moved)}</b>"


def _above(side: str) -> Figure:
    """Return how the text above a bar is set."""
    return {"textposition": "outside", "textfont": {"size": 15, "color": COLOURS[side]}, "cliponaxis": False}
