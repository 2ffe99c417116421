"""The charts, tables and words of the page of accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fusesim.validation_tables import percent

from . import ids, palette, readout
from .accuracy_view import ALL, BOUNDS, REGIME, SUITE, WHAT, look
from .figures import COLOURS, NAMES_WIDE, Figure, axis, decades, frame
from .page import items
from .tables import Cell, table

if TYPE_CHECKING:
    from .accuracy_view import AccuracyView, Case, Evidence, Grade, Step
    from .answering import Shown
    from .fields import Values

SCATTER: Final = "scatter-chart"
DEVIATIONS: Final = "deviation-chart"
ABLATION: Final = "ablation-chart"
GRADES: Final = "grades-table"
WORST: Final = "worst-table"
STEPS: Final = "steps-table"
MEDIAN: Final = "median"
P90: Final = "p90"
COVERAGE: Final = "coverage"
CASES: Final = "cases"
MOST_POINTS: Final = 140
"""Marks of one way that are drawn; of more, evenly spaced ones. The tables count all."""

SHAPES: Final = {"launch": "square", "dram": "circle", "l2": "diamond", "arithmetic": "triangle-up", "host": "x"}
MOST_WORST: Final = 15
CALL: Final = """\
fusesim calibrate --device h200-sxm      # on a GPU: measures, fits, and writes a calibration
fusesim validate measurements.json       # predicted beside measured, any measurements of chains
python tests/reference/workshop_accuracy.py   # in a checkout: what this page shows, anew"""
"""The commands that make the same of measurements of one's own."""


def show(values: Values, _: str, *, evidence: Evidence) -> Shown:
    """Return what the page shows; the charts stay as they are where nothing was measured."""
    view = look(values, evidence)
    return {
        "charts": {SCATTER: scatter(view), DEVIATIONS: deviations(view), ABLATION: ablation(view)}
        if view.cases
        else {},
        "texts": texts(view),
        "verbatim": {ids.CALL: CALL},
        "widgets": {name: values[name] for name in (WHAT, SUITE, REGIME)},
        "hidden": [],
        "parts": {GRADES: grades(view), WORST: worst(view), STEPS: steps(view), ids.SUMS: items(sums(view))},
    }


def texts(view: AccuracyView) -> dict[str, str]:
    """Return the texts of the page by the id of their place."""
    whole = view.whole
    if whole is None:
        nothing = (
            "No such case was measured: choose other measurements, or another regime. The charts stay as they were."
        )
        return {MEDIAN: "-", P90: "-", COVERAGE: "-", CASES: "0", ids.SENTENCE: nothing}
    what = "savings" if view.values[WHAT] == "savings" else "times"
    return {
        MEDIAN: percent(whole.median),
        P90: percent(whole.p90),
        COVERAGE: percent(whole.coverage),
        CASES: str(whole.cases),
        ids.SENTENCE: (
            f"Of {whole.cases} {what} that no parameter was fitted on, half are predicted within "
            f"{percent(whole.median)} and "
            f"nine in ten within {percent(whole.p90)}; {percent(whole.coverage)} lie in their 90 % interval."
        ),
    }


def _drawn(cases: list[Case]) -> list[Case]:
    step = -(-len(cases) // MOST_POINTS)
    return cases[::step] if cases else []


def _sides(view: AccuracyView) -> dict[str, list[Case]]:
    groups: dict[str, list[Case]] = {}
    for case in sorted(view.cases, key=lambda case: case.side != "unfused"):
        groups.setdefault(case.side, []).append(case)
    return {name: _drawn(members) for name, members in groups.items()}


def _marks(view: AccuracyView, place: Any) -> list[Figure]:
    """Return a trace for each way; the shape of a mark says what binds."""
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [float(f"{place(case)[0]:.4g}") for case in members],
            "y": [float(f"{place(case)[1]:.4g}") for case in members],
            "text": [f"{case.label}<br>{percent(case.deviation)}, by {BOUNDS[case.regime]}" for case in members],
            "hovertemplate": "%{text}<extra></extra>",
            "marker": {
                "color": COLOURS.get(name, palette.INK),
                "symbol": [SHAPES[case.regime] for case in members],
                "size": 7,
                "opacity": 0.6,
            },
        }
        for name, members in _sides(view).items()
    ]


def scatter(view: AccuracyView) -> Figure:
    """Predicted over measured, both logarithmic; on the line they are equal. What is not above zero cannot be drawn."""
    shown = [case for case in view.cases if case.measured > 0 and case.predicted > 0]
    values = [[case.measured for case in shown] or [1e-6], [case.predicted for case in shown] or [1e-5]]
    low, high = decades(values)
    layout = frame("Predicted against measured")
    ticks = {"dtick": 1, "tickformat": "~s", "ticksuffix": "s"}
    layout["xaxis"] = axis("measured", [low, high]) | ticks
    layout["yaxis"] = axis("predicted", [low, high]) | ticks
    layout["hovermode"] = "closest"
    ends = [10.0**low, 10.0**high]
    line = {"type": "scatter", "mode": "lines", "x": ends, "y": ends, "hoverinfo": "skip", "showlegend": False}
    line |= {"line": {"color": palette.INK, "width": 1.5}}
    return {"data": [line, *_marks(view, lambda case: (case.measured, case.predicted))], "layout": layout}


def deviations(view: AccuracyView) -> Figure:
    """Deviation of predicted from measured against what was measured."""
    shown = [case.measured for case in view.cases if case.measured > 0]
    low, high = decades([shown or [1e-6]])
    most = min(max(0.05, *(abs(case.deviation) for case in view.cases)), 1.0)
    layout = frame("Deviation")
    layout["xaxis"] = axis("measured", [low, high]) | {"dtick": 1, "tickformat": "~s", "ticksuffix": "s"}
    layout["yaxis"] = {
        "title": {"text": "too short      error      too long", "standoff": 8},
        "tickformat": "+.0%",
        "range": [-most * 1.08, most * 1.08],
        "gridcolor": palette.GRID,
        "zerolinecolor": palette.INK,
        "fixedrange": True,
    }
    layout["hovermode"] = "closest"
    layout["showlegend"] = False
    return {"data": _marks(view, lambda case: (case.measured, case.deviation)), "layout": layout}


def ablation(view: AccuracyView) -> Figure:
    """Nine in ten errors as effects are switched on one by one: a bar for each step."""
    shown = [step for step in view.steps if not step.name.startswith("all but")]
    saving = view.values[WHAT] == "savings"
    values = [(step.savings if saving else step.times)[1] for step in shown]
    layout = frame("Effects switched on one by one")
    layout["xaxis"] = {"tickformat": ".0%", "gridcolor": palette.GRID, "fixedrange": True, "rangemode": "tozero"}
    layout["xaxis"] |= {"title": {"text": "nine in ten errors are below", "standoff": 8}}
    layout["yaxis"] = {"autorange": "reversed", "fixedrange": True}
    layout["margin"] = layout["margin"] | {"l": NAMES_WIDE, "t": 50}
    layout["showlegend"] = False
    bar = {
        "type": "bar",
        "orientation": "h",
        "y": [step.name for step in shown],
        "x": values,
        "text": [percent(value) for value in values],
        "textposition": "outside",
        "cliponaxis": False,
        "hoverinfo": "skip",
        "marker": {"color": palette.INK},
    }
    layout["xaxis"]["range"] = [0, max(values, default=1.0) * 1.18]
    return {"data": [bar], "layout": layout}


def grades(view: AccuracyView) -> str:
    """Return errors by suite and by regime."""
    heads = ("Group", "Cases", "Median", "p90", "Worst", "Bias", "In 90 % interval")
    return table(heads, [_grade(each) for each in view.grades], empty="Nothing of that kind was measured.")


def _grade(found: Grade) -> list[Cell]:
    number = "number"
    shares = (found.median, found.p90, found.worst, found.bias, found.coverage)
    return [
        Cell(text=found.name[:1].upper() + found.name[1:]),
        Cell(text=str(found.cases), look=number),
        *(Cell(text=percent(share), look=number, exact=share) for share in shares),
    ]


def worst(view: AccuracyView) -> str:
    """Return the cases with the largest errors: where the model is wrong."""
    found = sorted(view.cases, key=lambda case: -abs(case.deviation))[:MOST_WORST]
    rows = [
        [
            Cell(text=case.label),
            Cell(text=case.side),
            Cell(text=_time(case.measured), look="number", exact=case.measured),
            Cell(text=_time(case.predicted), look="number", exact=case.predicted),
            Cell(text=percent(case.deviation), look="number", exact=case.deviation),
            Cell(text=BOUNDS[case.regime], look="words"),
        ]
        for case in found
    ]
    return table(("Case", "Side", "Measured", "Predicted", "Deviation", "Bound by"), rows, empty="Nothing to list.")


def _time(seconds: float) -> str:
    return readout.time(seconds) if seconds >= 0 else f"-{readout.time(-seconds)}"


def steps(view: AccuracyView) -> str:
    """Return the ablation: effects switched on one by one, then left out one at a time."""
    heads = ("Model", "Times: median", "p90", "worst", "Savings: median", "p90 ", "worst ")
    return table(heads, [_step(step) for step in view.steps])


def _step(step: Step) -> list[Cell]:
    shares = (*step.times, *step.savings)
    return [Cell(text=step.name), *(Cell(text=percent(share), look="number", exact=share) for share in shares)]


def sums(view: AccuracyView) -> list[str]:
    """Write out how an error comes about, by the case with the largest."""
    told = [
        "Error of a time: |predicted / measured - 1|.",
        (
            "Error of a saving (unfused minus fused): over the measured saving where that is at least a tenth of "
            "the unfused "
            "time, else over the unfused time, since next to nothing cannot be relatively right."
        ),
    ]
    found = max(view.cases, key=lambda case: abs(case.deviation), default=None)
    if found is not None:
        told.append(
            f"The largest here, {found.label}: ({_time(found.predicted)} - {_time(found.measured)}) / "
            f"{_time(found.scale)} = {percent(found.deviation)}."
        )
    if view.values[SUITE] == ALL and len(view.cases) > MOST_POINTS:
        told.append(f"Of more than {MOST_POINTS} marks of one colour the charts leave some out; the tables count all.")
    return told
