"""``fusesim devices``: the list, one device with its sources, or a check of a file."""

from __future__ import annotations

import click

from fusesim import api, report
from fusesim.cli import shared
from fusesim.errors import InputError

ROOM_FOR_NAMES = 120
"""Columns of a terminal from which the list shows full names and aliases."""


@click.command()
@click.argument("name", required=False)
@click.option("--file", "file", metavar="PATH", help="Check and show a device file of your own.")
@shared.json_option
def devices(*, name: str | None, file: str | None, as_json: bool) -> None:
    """List the devices, or show one with the source of every figure.

    \b
    fusesim devices
    fusesim devices h100-sxm
    fusesim devices --file my-gpu.toml
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    if name is not None and file is not None:
        raise InputError(f'give a device name or --file, not both ("{name}" and "{file}")')
    if name is not None or file is not None:
        _show(name, file, as_json=as_json)
        return
    profiles = [api.find_device(each) for each in api.list_devices()]
    if as_json:
        shared.print_json([profile.model_dump(mode="json", exclude_none=True) for profile in profiles])
    else:
        out = shared.console()
        shared.print_table(out, report.device_list(profiles, names=out.width >= ROOM_FOR_NAMES))


def _show(name: str | None, file: str | None, *, as_json: bool) -> None:
    """Print one device."""
    profile = api.find_device(str(name)) if file is None else api.load_device(file)
    if as_json:
        shared.print_json(profile.model_dump(mode="json", exclude_none=True))
        return
    out = shared.console()
    if profile.requested_as:
        out.print(f'"{profile.requested_as}" is taken to be {profile.id}', soft_wrap=True)
    checked = ": well formed, sources resolve, peaks agree with their factors" if file is not None else ""
    out.print(f"{profile.id}: {profile.name}, {profile.architecture}{checked}", style="bold", soft_wrap=True)
    if profile.note:
        out.print(profile.note, soft_wrap=True)
    shared.print_table(out, report.device_figures(profile))
    out.print()
    shared.print_table(out, report.device_sources(profile))
