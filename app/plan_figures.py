"""Charts of the page of patterns and plans as plain dictionaries: kernels over time, and memory over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from . import palette, readout
from .figures import COLOURS, SIDES, Figure, frame

if TYPE_CHECKING:
    from .plan_view import PlanView, Side

MOST_BARS: Final = 150
"""Kernels of one side that are drawn; more would each be thinner than a line."""

_WIDTHS: Final = {"unfused": 3.5, "fused": 2.5}


def one(view: PlanView, side: str) -> Side:
    """Return one of the two ways."""
    return view.unfused if side == "unfused" else view.fused


def timeline_chart(view: PlanView) -> Figure:
    """Kernels of both ways on one axis of time, each a bar; neighbours differ in shade so that each is seen."""
    layout = frame("Kernels over time")
    most = max(span.end for side in SIDES for span in one(view, side).spans[-1:]) if view.unfused.spans else 1.0
    layout["xaxis"] = _time_axis(most)
    layout["yaxis"] = {"fixedrange": True, "showgrid": False, "tickfont": {"size": 14}}
    layout |= {"barmode": "overlay", "bargap": 0.35, "showlegend": False, "hovermode": "closest"}
    return {"data": [_bars(view, side) for side in reversed(SIDES)], "layout": layout}


def _bars(view: PlanView, side: str) -> Figure:
    shown = one(view, side).spans[:MOST_BARS]
    return {
        "type": "bar",
        "orientation": "h",
        "name": side,
        "y": [side] * len(shown),
        "base": [_short(span.start) for span in shown],
        "x": [_short(span.end - span.start) for span in shown],
        "customdata": [[span.name, readout.time(span.end - span.start), readout.BINDS[span.bound]] for span in shown],
        "hovertemplate": f"{side}: %{{customdata[0]}}<br>%{{customdata[1]}}, by %{{customdata[2]}}<extra></extra>",
        "marker": {"color": COLOURS[side], "opacity": [(1.0, 0.68)[place % 2] for place in range(len(shown))]},
    }


def memory_chart(view: PlanView) -> Figure:
    """Bytes alive above the inputs while the kernels run, unfused and fused."""
    layout = frame("Memory over time")
    most = max(span.end for side in SIDES for span in one(view, side).spans[-1:]) if view.unfused.spans else 1.0
    layout["xaxis"] = _time_axis(most)
    layout["yaxis"] = {
        "title": {"text": "alive above the inputs", "standoff": 8},
        "tickformat": "~s",
        "ticksuffix": "B",
        "nticks": 6,
        "rangemode": "tozero",
        "gridcolor": palette.GRID,
        "zerolinecolor": palette.INK,
        "fixedrange": True,
    }
    layout |= {"hovermode": "closest"}
    return {"data": [_alive(view, side) for side in SIDES], "layout": layout}


def _alive(view: PlanView, side: str) -> Figure:
    """Draw steps: what lives while each kernel runs, then what is left after the last."""
    way = one(view, side)
    starts: dict[int, float] = {}
    for span in way.spans:
        starts.setdefault(span.group, span.start)
    end = way.spans[-1].end if way.spans else 0.0
    x, y, said, now = [0.0], [0], ["before"], 0.0
    for step in way.memory.steps:
        now = max(now, starts.get(step.group, now))
        x.append(_short(now))
        y.append(step.live)
        said.append(f"kernel {step.group + 1}: {readout.size(step.live)}")
    return {
        "type": "scatter",
        "mode": "lines",
        "name": side,
        "x": [*x, _short(end)],
        "y": [*y, way.memory.end],
        "text": [*said, f"left: {readout.size(way.memory.end)}"],
        "hovertemplate": f"{side}, %{{text}}<extra></extra>",
        "line": {"shape": "hv", "color": COLOURS[side], "width": _WIDTHS[side]},
    }


def _time_axis(most: float) -> dict[str, Any]:
    return {
        "title": {"text": "time from the first launch", "standoff": 8},
        "range": [0, most * 1.03],
        "tickformat": "~s",
        "ticksuffix": "s",
        "nticks": 6,
        "gridcolor": palette.GRID,
        "zeroline": False,
        "fixedrange": True,
    }


def _short(value: float) -> float:
    """Return a time to five digits: a bar needs no more, and the answer is shorter."""
    return float(f"{value:.5g}")
