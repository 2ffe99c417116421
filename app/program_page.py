"""A report of a program as one HTML file that needs no network: for `fusesim trace --html out.html` and its like."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from fusesim import ranking_tables, units
from fusesim.explain import BOUND_IN_WORDS
from fusesim.ranked import run_of

from . import figures, palette
from .html_parts import chart, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.plan_run import Kernel, PlanRun
    from fusesim.ranking import Report

MOST: Final = 600
"""Kernels of one side that are drawn, the longest; more would each be thinner than a line."""

MOST_ROWS: Final = 200
SIDES: Final = (("eager", "unfused"), ("fused", "fused"))

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{palette}
body {{ margin: 0 auto; max-width: 90rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 16px/1.6 var(--font); }}
.chart {{ background: var(--card); border-radius: 10px; padding: .75rem; margin: 1rem 0; contain: strict; }}
.table {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .9rem; }}
th, td {{ padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }}
th.word, td.word {{ text-align: left; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


def report_html(report: Report) -> str:
    """Draw a report: what it says, its timeline, its roofline, the ranking, and what measured kernels reached.

    Parameters
    ----------
    report : Report
        What `fusesim.rank` returned.

    Returns
    -------
    str
        A whole HTML document with Plotly inside, about 5 MB; it asks nothing of any host.
    """
    runs = {"eager": run_of(report.eager[report.launch]), "fused": run_of(report.fused[report.launch])}
    said = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in report.explain())
    parts = [
        f"<ul>{said}</ul>",
        table("The step", ranking_tables.STEP_HEADINGS, ranking_tables.step_cells(report), words=(0,)),
        chart(timeline(runs, report.measured.spans if report.measured else ()), "20rem", library=True),
        chart(roofline(report, runs), "32rem", library=False),
        _ranking(report),
    ]
    if report.measured is not None and report.measured.ops:
        rows = ranking_tables.achieved_cells(report.measured.ops[:MOST_ROWS])
        title = "Measured kernels, by what there is to win"
        parts.append(table(title, ranking_tables.ACHIEVED_HEADINGS, rows, words=(0, 1, 7)))
    title = html.escape(f"{report.name} on {report.device.name}")
    return _PAGE.format(title=title, palette=palette.style_sheet(), body="\n".join(parts))


def timeline(runs: dict[str, PlanRun], measured: Sequence[tuple[str, float, float]] = ()) -> figures.Figure:
    """Draw the kernels of both sides over time, from idle, above what was measured; neighbours differ in shade."""
    layout = figures.frame("Kernels over time, from the first launch")
    layout["xaxis"] = {"ticksuffix": "s", "tickformat": "~s", "nticks": 8, "gridcolor": palette.GRID, "zeroline": False}
    layout["yaxis"] = {"showgrid": False, "tickfont": {"size": 14}, "automargin": True, "fixedrange": True}
    layout |= {"barmode": "overlay", "bargap": 0.35, "showlegend": False, "hovermode": "closest", "dragmode": "zoom"}
    bars = [_bars(runs[side], side, colour) for side, colour in reversed(SIDES)]
    return {"data": [*([_measured(measured)] if measured else []), *bars], "layout": layout}


def _measured(spans: Sequence[tuple[str, float, float]]) -> figures.Figure:
    """Draw the kernels of a trace."""
    shown = spans[:MOST]
    return {
        "type": "bar",
        "orientation": "h",
        "name": "measured",
        "y": ["measured"] * len(shown),
        "base": [_short(start) for _, start, _ in shown],
        "x": [_short(end - start) for _, start, end in shown],
        "customdata": [[html.escape(name[:100]), _time(end - start)] for name, start, end in shown],
        "hovertemplate": "measured: %{customdata[0]}<br>%{customdata[1]}<extra></extra>",
        "marker": {"color": palette.INK, "opacity": [(1.0, 0.68)[at % 2] for at in range(len(shown))]},
    }


def _bars(run: PlanRun, side: str, colour: str) -> figures.Figure:
    """Draw one side, the longest kernels of it."""
    spans = run.timeline()
    shown = sorted(sorted(range(len(spans)), key=lambda at: spans[at].start - spans[at].end)[:MOST])
    return {
        "type": "bar",
        "orientation": "h",
        "name": side,
        "y": [side] * len(shown),
        "base": [_short(spans[at].start) for at in shown],
        "x": [_short(spans[at].end - spans[at].start) for at in shown],
        "customdata": [
            [html.escape(spans[at].name), _time(spans[at].end - spans[at].start), BOUND_IN_WORDS[spans[at].bound]]
            for at in shown
        ],
        "hovertemplate": f"{side}: %{{customdata[0]}}<br>%{{customdata[1]}}, by %{{customdata[2]}}<extra></extra>",
        "marker": {"color": figures.COLOURS[colour], "opacity": [(1.0, 0.68)[at % 2] for at in shown]},
    }


def roofline(report: Report, runs: dict[str, PlanRun]) -> figures.Figure:
    """Draw every kernel with arithmetic at its intensity and rate, under memory's and the matrix units' ceilings."""
    marks = {side: _points(run, SIDE_COLOURS[side]) for side, run in runs.items()}
    layout = figures.frame("Kernels on the device's roofline")
    points = [point for _, point in _all(runs)]
    if not points:
        return {"data": [], "layout": layout | {"title": {"text": "No kernel computes anything: there is no roofline"}}}
    peak, bandwidth = _peak(report), report.device.dram_bandwidth
    x_low, x_high = figures.decades([[x for x, _ in points], [1.0, peak / bandwidth * 3]])
    low, high = figures.decades([[y for _, y in points], [peak]])
    layout["xaxis"] = figures.axis("arithmetic intensity [FLOP/B]", [x_low - 0.1, x_high]) | {"tickformat": "~s"}
    layout["yaxis"] = figures.axis("arithmetic done [FLOP/s]", [low - 0.1, high + 0.15]) | {"tickformat": "~s"}
    layout["hovermode"] = "closest"
    ends = [10.0**x_low, peak / bandwidth, 10.0**x_high]
    roof: figures.Figure = {
        "type": "scatter",
        "mode": "lines",
        "name": f"memory {units.format_quantity(bandwidth, units.BANDWIDTH)}, peak "
        f"{units.format_quantity(peak, units.FLOP_RATE)}",
        "x": ends,
        "y": [min(x * bandwidth, peak) for x in ends],
        "line": {"color": palette.INK, "width": 2.5},
        "hoverinfo": "skip",
    }
    return {"data": [roof, *(marks[side] | {"name": side} for side, _ in SIDES)], "layout": layout}


SIDE_COLOURS: Final = dict(SIDES)


def _peak(report: Report) -> float:
    """Return the highest ceiling: that of the matrix units where the device has them for bf16. [FLOP/s]."""
    rates = (report.device.tensor_rate("bf16"), report.device.vector_rate("fp32"))
    return max(rate for rate in rates if rate == rate)  # noqa: PLR0124 - NaN where nothing is known


def _all(runs: dict[str, PlanRun]) -> list[tuple[Kernel, tuple[float, float]]]:
    """Return every kernel that computes, with its place."""
    return [(kernel, point) for run in runs.values() for kernel, point in _placed(run)]


def _placed(run: PlanRun) -> list[tuple[Kernel, tuple[float, float]]]:
    """Return kernels that compute with their intensity [FLOP/B] and rate [FLOP/s], the longest."""
    found = []
    for kernel in sorted(run.kernels_run, key=lambda one: -one.time.time)[:MOST]:
        launch = kernel.launch
        moved, work = launch.bytes_read + launch.bytes_written, max(launch.arithmetic, launch.flops)
        if moved > 0 and work > 0:
            found.append((kernel, (work / moved, work / kernel.total(run.settings))))
    return found


def _points(run: PlanRun, colour: str) -> figures.Figure:
    """Draw one side's kernels; larger marks take longer."""
    placed = _placed(run)
    longest = max((kernel.time.time for kernel, _ in placed), default=1.0)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [_short(x) for _, (x, _) in placed],
        "y": [_short(y) for _, (_, y) in placed],
        "customdata": [[html.escape(k.launch.name), _time(k.total(run.settings))] for k, _ in placed],
        "hovertemplate": "%{customdata[0]}, %{customdata[1]}<br>%{x:.3~g} FLOP/B, %{y:.3~s}FLOP/s<extra></extra>",
        "marker": {
            "color": figures.COLOURS[colour],
            "symbol": figures.SYMBOLS[colour],
            "opacity": 0.75,
            "size": [6 + 14 * (kernel.time.time / longest) ** 0.5 for kernel, _ in placed],
        },
    }


def _ranking(report: Report) -> str:
    """Return the table of fusions."""
    if not report.fusions:
        return "<p>Nothing is left to fuse.</p>"
    rows = ranking_tables.fusion_cells(report.fusions[:MOST_ROWS])
    return table("Fusions, by what they save of a step", ranking_tables.FUSION_HEADINGS, rows, words=(1, 10))


def _time(value: float) -> str:
    return units.format_quantity(value, units.TIME)


def _short(value: float) -> float:
    """Return a figure to five digits: a mark needs no more, and the page is shorter."""
    return float(f"{value:.5g}")
