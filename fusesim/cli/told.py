"""What the commands for programs share: options, the report on the screen, as JSON and as a page, and its limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from fusesim import ranking_tables, units
from fusesim.cli import shared
from fusesim.errors import InputError, MeasurementError, unknown_name
from fusesim.inputs import MAX_REPEATS, MAX_TIME
from fusesim.ranking import rank
from fusesim.strategies import STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.ranking import Report

TOP: Final = "10"
NOT_MEASURED: Final = "--fail-above compares with something measured; give --measured TIME"


@dataclass(frozen=True, kw_only=True)
class Told:
    """How a report is made and told."""

    as_rank: dict[str, Any]
    top: int
    row: int | None
    as_json: bool
    html: str | None
    measured: float | None
    fail_above: float | None


def program_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a report."""
    for option in reversed(
        (
            click.option("--device", metavar="ID", help="Device, see `fusesim devices`; h200-sxm unless known."),
            click.option("--device-file", metavar="PATH", help="A device file of your own instead."),
            click.option("--launch", default="stream", show_default=True, help="Launched now: stream, graph."),
            click.option("--strategy", default="inductor", show_default=True, help="Who fuses, see `fusesim plan`."),
            click.option("--inputs", default="cold", show_default=True, help="cold, or warm: called on the same data."),
            click.option("--graph-repeats", metavar="N", default="1", show_default=True, help="Steps in one replay."),
            click.option("--host-interval", metavar="TIME", help="Of the host, per launch."),
            click.option("--compile-seconds", metavar="TIME", help="What compiling takes, for when it pays."),
            click.option("--top", metavar="N", default=TOP, show_default=True, help="Rows that are shown."),
            click.option("--explain", metavar="ROW", help="One row of the ranking in sentences."),
            click.option("--html", metavar="FILE", help="Also write timeline, roofline, tables as one page."),
            *measured_options_list(),
            click.option("--json", "as_json", is_flag=True, help="Print JSON in SI base units (s, B, FLOP)."),
        )
    ):
        command = option(command)
    return command


def measured_options_list() -> tuple[Callable[..., Any], ...]:
    """Return the options that make a command a check."""
    return (
        click.option("--measured", metavar="TIME", help="What a step took, for --fail-above."),
        click.option("--fail-above", metavar="RATIO", help="Exit 1 if measured over predicted is above this."),
    )


def measured_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that make a command a check."""
    for option in reversed(measured_options_list()):
        command = option(command)
    return command


def read_told(options: dict[str, Any], default_device: str = "h200-sxm") -> Told:
    """Turn the options' text into how a report is made and told."""
    device = shared.chosen_device(options["device"] or default_device, options["device_file"])
    inputs = options["inputs"].strip().lower()
    row = options["explain"]
    return Told(
        as_rank={
            "device": device,
            "launch": options["launch"].strip().lower(),
            "fused": (options["strategy"].strip().lower(), "inductor"),
            "inputs": shared.whole(inputs, "--inputs", MAX_REPEATS) if inputs[:1].isdigit() else inputs,
            "graph_repeats": shared.whole(options["graph_repeats"], "--graph-repeats", MAX_REPEATS),
            "host_interval": shared.optional(options["host_interval"], units.TIME, "--host-interval", (0, MAX_TIME)),
            "compile_seconds": shared.optional(options["compile_seconds"], units.TIME, "--compile-seconds", (0, 1e9)),
        },
        top=shared.whole(options["top"], "--top", 10**6),
        row=None if row is None else shared.whole(row, "--explain", 10**6),
        as_json=options["as_json"],
        html=options["html"],
        measured=shared.optional(options["measured"], units.TIME, "--measured", (1e-12, MAX_TIME)),
        fail_above=limit(options["fail_above"]),
    )


def limit(text: str | None) -> float | None:
    """Read a ratio above which a command fails."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:  # noqa: PLR2004 - far beyond any ratio
        raise InputError(f'--fail-above is "{text}"; give a ratio such as 1.2')
    return value


def refuse(measured: float | None, predicted: float, most: float | None, what: str) -> None:
    """Fail where something measured took more than a ratio times what is predicted.

    Raises
    ------
    InputError
        If nothing was measured.
    MeasurementError
        If the ratio is above the limit.
    """
    if most is None:
        return
    if measured is None:
        raise InputError(NOT_MEASURED)
    ratio = measured / predicted
    if ratio > most:
        times = [units.format_quantity(value, units.TIME) for value in (measured, predicted)]
        raise MeasurementError(f"{what} took {times[0]}, {ratio:.3g} times the predicted {times[1]}: above {most:g}")


def tell(program: Any, told: Told, recorded: str | None = None, extra: tuple[str, ...] = ()) -> None:
    """Make a report of a program and print it, write its page, and fail where it is to fail."""
    if told.as_rank["fused"][0] not in STRATEGIES:
        raise unknown_name("strategy", told.as_rank["fused"][0], STRATEGIES)
    report = rank(program, recorded=recorded, **told.as_rank)
    if told.row is not None and not 1 <= told.row <= len(report.fusions):
        rows = len(report.fusions)
        raise InputError(f"--explain {told.row}: the ranking has " + (f"rows 1 to {rows}" if rows else "no rows"))
    if told.fail_above is not None and told.measured is None and report.measured is None:
        raise InputError(NOT_MEASURED)
    if told.html is not None:
        shared.write_page(told.html, shared.load_app("program_page").report_html(report))
    if told.as_json:
        shared.print_json(_record(report, told, extra))
    else:
        _print(report, told, extra)
    if told.measured is not None or report.measured is None:
        refuse(told.measured, report.step, told.fail_above, f"a step of {report.name}")
    else:
        found = report.measured
        refuse(found.known, found.expected or found.known, told.fail_above, f"the kernels of {report.name}")


def _record(report: Report, told: Told, extra: tuple[str, ...]) -> dict[str, Any]:
    """Return what --json prints. [s, B]."""
    record = report.to_dict()
    if told.row is not None:
        return {"row": told.row, **record["fusions"][told.row - 1]}
    record["explain"] += extra
    record["fusions"] = record["fusions"][: told.top]
    if record["measured"] is not None:
        record["measured"]["ops"] = record["measured"]["ops"][: told.top]
    if told.measured is not None:
        record["measured_step"] = told.measured
    return record


def _print(report: Report, told: Told, extra: tuple[str, ...]) -> None:
    """Print a report, or one row of it."""
    out = shared.console()
    if told.row is not None:
        first, *rest = report.fusions[told.row - 1].explain()
        out.print(first, style="bold", soft_wrap=True)
        for sentence in rest:
            out.print(f"- {sentence}", soft_wrap=True)
        return
    heading = f"{report.name} on {report.device.name}, {report.launch}"
    out.print(heading, style="bold", soft_wrap=True)
    for sentence in (*report.explain(), *extra):
        out.print(f"- {sentence}", soft_wrap=True)
    shared.print_table(out, ranking_tables.step_table(report))
    if report.fusions:
        out.print("fusions, by what they save of a step", style="bold")
        shared.print_table(out, ranking_tables.fusion_table(report.fusions[: told.top]))
        if len(report.fusions) > told.top:
            out.print(f"and {len(report.fusions) - told.top} more; --top shows them", soft_wrap=True)
    if report.measured is not None and report.measured.ops:
        out.print("measured kernels, by what there is to win", style="bold")
        shared.print_table(out, ranking_tables.achieved_table(report.measured.ops[: told.top]))
    if told.html is not None:
        out.print(f"page: {told.html}", soft_wrap=True)
