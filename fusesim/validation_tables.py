"""Accuracy as text for a terminal: tables of grades, of the worst cases and of effects left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table

from fusesim import units

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fusesim.validate import Ablation, Comparison, Grade

ERRORS: Final = ("median", "p90", "worst")
GROUP_HEADINGS: Final = ("path", "mode", "bound")
GRADE_HEADINGS: Final = ("cases", *ERRORS, "bias", "in 90 % interval", "half-width")
WORST_HEADINGS: Final = ("case", "bound", "measured", "predicted", "90 % interval", "error")
ABLATION_HEADINGS: Final = ("step", *(f"{quantity} {name}" for quantity in ("time", "saving") for name in ERRORS))


def percent(share: float) -> str:
    """Write a share in percent, one decimal where it is small.

    Examples
    --------
    >>> percent(0.0123), percent(0.456), percent(-0.004)
    ('1.2 %', '46 %', '-0.4 %')
    """
    # "z": what rounds to zero has no sign.
    return f"{100 * share:z.1f} %" if abs(share) < 0.0995 else f"{100 * share:.0f} %"  # noqa: PLR2004 - rounds to 10


def grade_table(title: str, grades: Iterable[Grade]) -> Table:
    """Return errors, bias, coverage and half-width by path, launch mode and regime."""
    rows = ([grade.path, grade.mode, grade.regime, *grade_cells(grade)] for grade in grades)
    return _table(title, GROUP_HEADINGS, GRADE_HEADINGS, rows)


def grade_cells(grade: Grade) -> list[str]:
    """Return a grade's figures as text, under `GRADE_HEADINGS`."""
    errors = [percent(getattr(grade, name)) for name in ERRORS]
    return [str(grade.cases), *errors, percent(grade.bias), f"{100 * grade.coverage:.0f} %", percent(grade.half_width)]


def worst_table(title: str, found: Iterable[Comparison]) -> Table:
    """Return cases by name: measured, predicted, interval and error with its sign."""
    return _table(title, WORST_HEADINGS[:2], WORST_HEADINGS[2:], map(worst_cells, found))


def worst_cells(found: Comparison) -> list[str]:
    """Return a comparison as text, under `WORST_HEADINGS`."""
    quantities = (found.measured, found.predicted, found.low, found.high)
    measured, predicted, low, high = (units.format_quantity(q, units.TIME, like=found.measured) for q in quantities)
    error = percent(found.deviation)
    return [found.row.label, found.regime, measured, predicted, f"{low.split()[0]} to {high}", error]


def ablation_table(steps: Iterable[Ablation]) -> Table:
    """Return errors of times and savings with effects switched on one by one, and left out one at a time."""
    rows = ([step.step, *ablation_cells(step)] for step in steps)
    title = "effects; parameters are those of the full model, not fitted again"
    return _table(title, ABLATION_HEADINGS[:1], ABLATION_HEADINGS[1:], rows)


def ablation_cells(step: Ablation) -> list[str]:
    """Return an ablation's figures as text, under `ABLATION_HEADINGS` from the second on."""
    times = [percent(getattr(step.times, name)) for name in ERRORS]
    savings = [percent(getattr(step.savings, name)) for name in ERRORS] if step.savings else ["-"] * len(ERRORS)
    return times + savings


def _table(title: str, words: Sequence[str], figures: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table of columns of words and columns of figures."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for heading in words:
        table.add_column(heading)
    for heading in figures:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    return table
