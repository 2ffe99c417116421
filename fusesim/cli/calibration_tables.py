"""A calibration as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table

from fusesim import units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.calibrate.compare import Drift
    from fusesim.calibration import Calibration

_DIMENSIONS: Final = {"s": units.TIME, "B": units.SIZE, "B/s": units.BANDWIDTH}


def _amount(value: float, unit: str, like: float | None = None) -> str:
    """Write a parameter with its unit."""
    if unit in _DIMENSIONS:
        return units.format_quantity(value, _DIMENSIONS[unit], like=like)
    return f"{value:.4g}" if unit == "1" else f"{value:.4g} {unit}"


def _table(*headings: str) -> Table:
    """Return an empty table: words to the left, figures to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(headings[0])
    for heading in headings[1:]:
        table.add_column(heading, justify="right")
    return table


def parameters(calibration: Calibration) -> Table:
    """Return every parameter with one standard deviation."""
    table = _table("parameter", "value", "+-", "share")
    for name, fitted in calibration.parameters.items():
        sigma = _amount(fitted.sigma, fitted.unit, like=fitted.value) if fitted.sigma else "not measured"
        share = units.format_share(fitted.sigma / fitted.value) if fitted.value and fitted.sigma else ""
        table.add_row(name, _amount(fitted.value, fitted.unit), sigma, share)
    return table


def residuals(calibration: Calibration) -> Table:
    """Return how far held-out cases lie from their prediction, by what binds them."""
    table = _table("held-out cases", "number", "median error", "90 % of measured over predicted")
    for regime, found in calibration.residuals.items():
        error = units.format_share(found.median_error)
        table.add_row(f"{regime}-bound", str(found.cases), error, f"{found.low:.3f} to {found.high:.3f}")
    return table


def hosts(calibration: Calibration) -> Table:
    """Return what the host of each path takes per launch."""
    table = _table("host per launch", "interval", "range", "origin")
    for path, cost in calibration.paths.items():
        low, high = (_amount(value, "s", like=cost.interval) for value in (cost.low, cost.high))
        table.add_row(path, _amount(cost.interval, "s"), f"{low} to {high}", cost.note)
    return table


def drift(rows: Sequence[Drift], names: tuple[str, str]) -> Table:
    """Return two calibrations side by side."""
    table = _table("parameter", *names, "difference in combined sigma")
    for row in rows:
        first, second = _amount(row.first, row.unit), _amount(row.second, row.unit, like=row.first)
        table.add_row(row.parameter, first, second, "unknown" if row.sigmas is None else f"{row.sigmas:+.1f}")
    return table
