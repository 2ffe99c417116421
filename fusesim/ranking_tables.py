"""Reports as tables: the step, its fusions, and what measured kernels reached. Cells are text, for any table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fusesim import units
from fusesim.explain import BOUND_IN_WORDS
from fusesim.plan_report import size, table, time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from fusesim.achieved import Achieved
    from fusesim.ranked import Fusion
    from fusesim.ranking import Report

STEP_HEADINGS: Final = ("", "stream", "90 % interval", "graph", "90 % interval", "kernels", "peak memory")
FUSION_HEADINGS: Final = (
    "row",
    "fusion",
    "times",
    "kernels",
    "before",
    "after",
    "saves",
    "90 % interval",
    "of the step",
    "step alone",
    "bound",
)
ACHIEVED_HEADINGS: Final = ("op", "kind", "times", "measured", "expected", "attainable", "reaches", "because")


def step_cells(report: Report) -> list[list[str]]:
    """Return the step in both ways and modes."""
    rows = []
    for name, side in (("as it is", report.eager), ("fused", report.fused)):
        cells = [name]
        for mode in ("stream", "graph"):
            low, high = (time(float(end)) for end in side[mode].interval)
            cells += [time(float(side[mode].time)), f"{low} to {high}"]
        graph = side["graph"]
        rows.append([*cells, units.format_count(float(graph.kernels)), size(float(graph.peak_memory))])
    return rows


def fusion_cells(fusions: Iterable[Fusion]) -> list[list[str]]:
    """Return the ranking, numbered from 1."""
    return [
        [
            str(place),
            one.what,
            str(one.count),
            f"{one.kernels} to {one.own}",
            time(one.before),
            time(one.after),
            time(one.saved),
            f"{time(one.interval[0])} to {time(one.interval[1])}",
            f"{100 * one.share:.1f} %",
            f"{one.speedup:.3f}x",
            BOUND_IN_WORDS[one.bound_after],
        ]
        for place, one in enumerate(fusions, 1)
    ]


def achieved_cells(found: Iterable[Achieved]) -> list[list[str]]:
    """Return what measured kernels reached; times are those of one."""
    return [
        [
            one.op,
            one.kind,
            str(one.count),
            time(one.measured),
            time(one.expected),
            time(one.attainable),
            units.format_share(one.share),
            one.reason or ("took longer than such kernels do" if one.unexplained else ""),
        ]
        for one in found
    ]


def step_table(report: Report) -> Table:
    """Return the step as a table for a terminal."""
    return _filled(table(STEP_HEADINGS[:1], STEP_HEADINGS[1:]), step_cells(report))


def fusion_table(fusions: Iterable[Fusion]) -> Table:
    """Return the ranking as a table for a terminal."""
    return _filled(table(FUSION_HEADINGS[:2], FUSION_HEADINGS[2:-1], FUSION_HEADINGS[-1:]), fusion_cells(fusions))


def achieved_table(found: Iterable[Achieved]) -> Table:
    """Return what measured kernels reached as a table for a terminal."""
    return _filled(table(ACHIEVED_HEADINGS[:2], ACHIEVED_HEADINGS[2:-1], ACHIEVED_HEADINGS[-1:]), achieved_cells(found))


def _filled(made: Table, rows: Iterable[Any]) -> Table:
    """Return a table with rows."""
    for row in rows:
        made.add_row(*row)
    return made
