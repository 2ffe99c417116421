"""``fusesim validate``: predicted against measured."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusesim import api, readers, validate, validation_tables
from fusesim.cli import shared
from fusesim.errors import InputError, MeasurementError, excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.hardware import HardwareProfile
    from fusesim.readers import MeasuredFile


@click.command(name="validate")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--device", metavar="ID", help="Device, see `fusesim devices`; the one that the files name unless given.")
@click.option("--device-file", metavar="PATH", help="A device file of your own instead.")
@click.option("--calibration", metavar="C", help="Name of a shipped calibration, or a file; the device's unless given.")
@click.option(
    "--suite", metavar="NAMES", help="Suites to compare, or all; those that nothing is fitted on unless given."
)
@click.option("--ablate", is_flag=True, help="Also switch effects on one by one, and leave them out one at a time.")
@click.option("--html", metavar="FILE", help="Also write scatter, residuals and tables as one self-contained file.")
@click.option("--fail-above", metavar="PCT", type=float, help="Exit 1 if a path and mode has a larger median error.")
@shared.json_option
def validate_command(
    *,
    files: tuple[str, ...],
    device: str | None,
    device_file: str | None,
    suite: str | None,
    fail_above: float | None,
    **options: Any,
) -> None:
    """Compare prices with measured chains: errors, bias, and whether the intervals hold them.

    Reads what `fusesim calibrate` saved, and tables of chains in microseconds.

    \b
    fusesim validate measured.json
    fusesim validate measured.json --device h200-sxm --ablate --html accuracy.html
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    if fail_above is not None and not fail_above >= 0:
        raise InputError(f"--fail-above is {fail_above:g}; give a percentage from 0 upwards")
    if options["html"] is not None and any(_same(options["html"], file) for file in files):
        raise InputError(f"--html {excerpt(options['html'])} is one of the measurement files; name another one")
    for place, file in enumerate(files):
        if any(_same(other, file) for other in files[:place]):
            raise InputError(f"{excerpt(file)} is given twice; name each file once")
    read = [readers.read_measured(file) for file in files]
    profile = _device(read, device, device_file)
    rows = readers.choose_suites((row for file in read for row in file.rows), suite)
    terms: dict[str, Any] = {"device": profile, "calibration": options["calibration"]}
    found = validate.compare(rows, **terms)
    steps = validate.ablate(rows, **terms) if options["ablate"] else []
    left_out = sum(len(file.rows) for file in read) - len(rows)
    heading = f"{len(rows)} times and {len(found.savings)} savings, {profile.name}, calibration {found.calibration}"
    if options["html"] is not None:
        page = shared.load_app("accuracy").accuracy_html(heading, found, steps)
        shared.write_page(options["html"], page)
    if options["as_json"]:
        shared.print_json(_record(profile, found, steps))
    else:
        _print(heading, left_out, found, steps)
        if options["html"] is not None:
            shared.console().print(f"page: {options['html']}", soft_wrap=True)
    if fail_above is not None:
        _refuse(validate.grades(found.times), fail_above)


def _device(read: Sequence[MeasuredFile], device: str | None, device_file: str | None) -> HardwareProfile:
    """Return the device to price on: given, or the one that every file names."""
    if device is not None and device_file is not None:
        raise InputError("give --device or --device-file, not both")
    if device_file is not None or device is not None:
        return shared.chosen_device(str(device), device_file)
    named = {file.device: file.name for file in read}
    if len(named) > 1:
        raise InputError(f"the files name different devices ({', '.join(map(str, named))}); say which with --device")
    (name,) = named
    if name is None:
        raise InputError(f"{read[0].name} names no device that is known; say which with --device")
    return api.find_device(name)


def _print(heading: str, left_out: int, found: validate.Comparisons, steps: Sequence[validate.Ablation]) -> None:
    """Print all tables."""
    out = shared.console()
    out.print(heading, style="bold", soft_wrap=True)
    if left_out:
        out.print(f"{left_out} times of other suites left out; --suite all takes them in", soft_wrap=True)
    for title, members in (("times", found.times), ("savings", found.savings)):
        if members:
            out.print()
            shared.print_table(out, validation_tables.grade_table(title, validate.grades(members)))
            out.print()
            shared.print_table(out, validation_tables.worst_table(f"worst {title}", validate.worst(members)))
    if steps:
        out.print()
        shared.print_table(out, validation_tables.ablation_table(steps))


def _record(
    profile: HardwareProfile, found: validate.Comparisons, steps: Sequence[validate.Ablation]
) -> dict[str, Any]:
    """Return what --json prints."""

    def plain(grade: validate.Grade | None) -> dict[str, Any] | None:
        return dataclasses.asdict(grade) if grade else None

    return {
        "device": profile.id,
        "calibration": found.calibration,
        "times": [plain(grade) for grade in validate.grades(found.times)],
        "savings": [plain(grade) for grade in validate.grades(found.savings)],
        "worst_times": [each.to_dict() for each in validate.worst(found.times)],
        "worst_savings": [each.to_dict() for each in validate.worst(found.savings)],
        "ablation": [
            {"step": s.step, "effects": s.effects, "times": plain(s.times), "savings": plain(s.savings)} for s in steps
        ],
        "cases": [each.to_dict() for each in found.times],
    }


def _refuse(grades: Sequence[validate.Grade], limit: float) -> None:
    """Fail where a median error is above the limit; what the host decides does not count."""
    for grade in grades:
        if grade.regime == validate.DEVICE_BOUND and 100 * grade.median > limit:
            error = validation_tables.percent(grade.median)
            raise MeasurementError(f"{grade.path} {grade.mode}: median error {error}, above {limit:g} %")


def _same(page: str, file: str | Path) -> bool:
    """Return whether two names mean one file."""
    return Path(page).resolve() == Path(file).resolve()
