"""``fusesim check``: whether bytes in a time are good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fusesim import units
from fusesim.checking import check
from fusesim.cli import shared
from fusesim.cli.told import limit, refuse
from fusesim.errors import InputError, excerpt
from fusesim.inputs import MAX_BANDWIDTH, MAX_TIME, MIN_BANDWIDTH, choice
from fusesim.ops import find_dtype
from fusesim.schedule import LAUNCH_MODES

if TYPE_CHECKING:
    from fusesim.checking import Check


@click.command(name="check")
@click.argument("size", metavar="BYTES")
@click.argument("time", metavar="TIME")
@click.option("--device", default="h200-sxm", show_default=True, help="Device, see `fusesim devices`.")
@click.option("--device-file", metavar="PATH", help="A device file of your own instead.")
@click.option("--elements", metavar="N", help="Values that were touched, where some were more than once.")
@click.option("--dtype", default="fp32", show_default=True, help="Their type.")
@click.option("--launch", default="graph", show_default=True, help="graph, stream, or latency (one from idle).")
@click.option("--clock", metavar="FREQUENCY", help='What the SM clock was locked to, such as "1.2 GHz".')
@click.option("--power-cap", metavar="POWER", help='The power limit, such as "400 W".')
@click.option("--mig", metavar="SLICES", help="A MIG instance, such as 1/7.")
@click.option("--fail-above", metavar="RATIO", help="Exit 1 if measured over expected is above this.")
@shared.json_option
def check_command(*, size: str, time: str, as_json: bool, **options: Any) -> None:
    """Say whether moving BYTES in TIME is good: near the ceiling, launch-bound, L2-resident, impossible, or a problem.

    BYTES is what one kernel read plus wrote; TIME is what it took, or a rate such as "3 TB/s".

    \b
    fusesim check "268 MB" "63 us" --device h200-sxm
    fusesim check "64 MiB" "2.1 TB/s" --device h100-sxm
    fusesim check "268 MB" "480 us" --mig 1/7
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    most = limit(options["fail_above"])
    found = _checked(size, time, options)
    if as_json:
        shared.print_json(found.to_dict())
    else:
        out = shared.console()
        first, *rest = found.explain()
        out.print(first, style="bold", soft_wrap=True)
        for sentence in rest:
            out.print(f"- {sentence}", soft_wrap=True)
    refuse(found.time, found.expected, most, f"moving {units.format_quantity(found.bytes, units.SIZE)}")


def _checked(size: str, time: str, options: dict[str, Any]) -> Check:
    """Read what was given and judge it."""
    moved = _bytes(size)
    elements = options["elements"]
    touched = None
    if elements is not None:
        touched = float(shared.whole(elements, "--elements") * find_dtype(options["dtype"]).itemsize)
        if touched > moved:
            told = [units.format_quantity(value, units.SIZE) for value in (touched, moved)]
            raise InputError(f"--elements: {told[0]} are more than the {told[1]} that were moved")
    return check(
        moved,
        _seconds(time, moved),
        device=shared.chosen_device(options["device"], options["device_file"]),
        working_set=touched,
        launch=choice("launch mode", options["launch"], LAUNCH_MODES),
        clock=shared.optional(options["clock"], units.FREQUENCY, "--clock", (1e8, 1e10)),
        power_cap=shared.optional(options["power_cap"], units.POWER, "--power-cap", (10, 1e5)),
        mig=_slices(options["mig"]),
    )


def _bytes(text: str) -> float:
    """Read a number of bytes, with or without a unit."""
    try:
        return float(units.parse_elements(text))
    except InputError:
        value = shared.optional(text, units.SIZE, "BYTES", (1, 1e18))
        return float(value or 0.0)


def _seconds(text: str, moved: float) -> float:
    """Read a time, or a rate at which the bytes were moved."""
    try:
        rate = units.parse(text, units.BANDWIDTH)
    except InputError:
        value = shared.optional(text, units.TIME, "TIME", (1e-12, MAX_TIME))
        return float(value or 0.0)
    if not MIN_BANDWIDTH <= rate <= MAX_BANDWIDTH:
        raise InputError(f'TIME: "{excerpt(text)}" is out of range for a rate')
    return moved / rate


def _slices(text: str | None) -> tuple[int, int] | None:
    """Read a MIG instance."""
    if text is None:
        return None
    own, slash, whole = text.strip().partition("/")
    if not slash or not own.strip().isdecimal() or not whole.strip().isdecimal() or len(text) > 9:  # noqa: PLR2004
        raise InputError(f'--mig is "{excerpt(text)}"; give 1/7, 2/7, 3/7, 4/7 or 7/7')
    return int(own), int(whole)
