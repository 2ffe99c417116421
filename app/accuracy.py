"""Predicted against measured as one HTML file that needs no network: for `fusesim validate --html out.html`."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any, Final

from fusesim import validate, validation_tables
from fusesim.validate import REGIMES

from . import figures, palette
from .html_parts import chart, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fusesim.validate import Ablation, Comparison, Comparisons, Grade

MARKS: Final = {
    "launch": (palette.UNFUSED, "square"),
    "dram": (palette.FUSED, "circle"),
    "l2": ("#009E73", "diamond"),
    "arithmetic": ("#B8578A", "triangle-up"),
    "host": (palette.INK, "x"),
}
"""Colour and shape of what binds, so that neither alone tells it."""

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Predicted against measured</title>
<style>
{palette}
body {{ margin: 0 auto; max-width: 80rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 16px/1.6 var(--font); }}
.chart {{ height: 30rem; background: var(--card); border-radius: 10px; padding: .75rem; margin: 1rem 0;
  contain: strict; }}
.table {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .9rem; }}
th, td {{ padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }}
th.word, td.word {{ text-align: left; }}
</style>
</head>
<body>
<h1>Predicted against measured</h1>
<p>{heading}</p>
<p>Error of a time: |predicted / measured - 1|. Error of a saving (unfused minus fused): over the measured saving where
that is at least a tenth of the unfused time, else over the unfused time. Device-bound: all but what the host
decides.</p>
{body}
</body>
</html>
"""


def accuracy_html(heading: str, found: Comparisons, steps: Sequence[Ablation] = ()) -> str:
    """Draw predictions against measurements, and their deviations against size, with all tables.

    Parameters
    ----------
    heading : str
        What was compared, for the top of the page.
    found : Comparisons
        Times and savings.
    steps : sequence of Ablation
        Effects switched on and left out, where they are wanted.

    Returns
    -------
    str
        A whole HTML document with Plotly inside, about 5 MB; it asks nothing of any host.
    """
    parts = [chart(scatter(found.times), library=True), chart(residuals("Times", found.times), library=False)]
    if found.savings:
        parts.append(chart(residuals("Savings", found.savings), library=False))
    for title, members in (("Times", found.times), ("Savings", found.savings)):
        if members:
            parts += [_grades(title, validate.grades(members)), _worst(title, validate.worst(members, 10))]
    if steps:
        parts.append(_steps(steps))
    return _PAGE.format(palette=palette.style_sheet(), heading=html.escape(heading), body="\n".join(parts))


def scatter(found: Sequence[Comparison]) -> figures.Figure:
    """Predicted over measured, both logarithmic; on the line they are equal."""
    low, high = figures.decades([[each.measured for each in found], [each.predicted for each in found]])
    ends = [10.0**low, 10.0**high]
    layout = figures.frame("Predicted time against measured time")
    ticks = {"dtick": 1, "tickformat": "~s", "ticksuffix": "s"}
    layout["xaxis"] = figures.axis("measured", [low, high]) | ticks
    layout["yaxis"] = figures.axis("predicted", [low, high]) | ticks
    line: figures.Figure = {
        "type": "scatter",
        "mode": "lines",
        "x": ends,
        "y": ends,
        "line": {"color": palette.INK, "width": 1},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return {"data": [line, *_marks(found, lambda each: (each.measured, each.predicted))], "layout": layout}


def residuals(title: str, found: Sequence[Comparison]) -> figures.Figure:
    """Deviation of predicted from measured in percent, against tensor size."""
    sizes = [math.log10(each.row.elements) for each in found]
    layout = figures.frame(f"{title}: deviation against tensor size")
    layout["xaxis"] = figures.axis("tensor size [values]", [min(sizes) - 0.1, max(sizes) + 0.1])
    layout["xaxis"] |= {"dtick": 1, "tickformat": "~s"}
    layout["yaxis"] = {
        "title": {"text": "predicted over measured, minus 1", "standoff": 8},
        "tickformat": "+.0%",
        "gridcolor": palette.GRID,
        "zerolinecolor": palette.INK,
        "fixedrange": True,
    }
    return {"data": _marks(found, lambda each: (each.row.elements, each.deviation)), "layout": layout}


def _marks(found: Iterable[Comparison], place: Any) -> list[figures.Figure]:
    """Return one trace for each regime that occurs; a mark names its case when pointed at."""
    groups: dict[str, list[Comparison]] = {regime: [] for regime in REGIMES}
    for each in found:
        groups[each.regime].append(each)
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"{regime}-bound" if regime != "arithmetic" else "bound by arithmetic",
            "x": [place(each)[0] for each in members],
            "y": [place(each)[1] for each in members],
            "text": [f"{each.row.label}<br>{validation_tables.percent(each.deviation)}" for each in members],
            "hovertemplate": "%{text}<extra></extra>",
            "marker": {"color": MARKS[regime][0], "symbol": MARKS[regime][1], "size": 8, "opacity": 0.75},
        }
        for regime, members in groups.items()
        if members
    ]


def _grades(title: str, grades: Iterable[Grade]) -> str:
    rows = [[each.path, each.mode, each.regime, *validation_tables.grade_cells(each)] for each in grades]
    return table(title, [*validation_tables.GROUP_HEADINGS, *validation_tables.GRADE_HEADINGS], rows, words=range(3))


def _worst(title: str, found: Iterable[Comparison]) -> str:
    rows = [validation_tables.worst_cells(each) for each in found]
    return table(f"Worst {title.lower()}", validation_tables.WORST_HEADINGS, rows, words=range(2))


def _steps(steps: Iterable[Ablation]) -> str:
    rows = [[step.step, *validation_tables.ablation_cells(step)] for step in steps]
    title = "Effects; parameters are those of the full model, not fitted again"
    return table(title, validation_tables.ABLATION_HEADINGS, rows, words=range(1))
