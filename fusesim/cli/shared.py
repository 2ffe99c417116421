"""What several commands share: options, reading of arguments, printing."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.cells import cell_len
from rich.console import Console

from fusesim import api, units
from fusesim.errors import FusesimError, InputError, excerpt
from fusesim.inputs import choice

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from rich.table import Table

    from fusesim.hardware import HardwareProfile

PAGES = (".html", ".htm")
"""Endings of the files that a page may be written over."""

WIDE = 240
"""Columns of a table that goes to a file or a pipe, where nothing says how wide a line may be."""


def device_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the two ways of naming a device."""
    command = click.option("--device-file", metavar="PATH", help="A device file of your own instead.")(command)
    return click.option("--device", default="h100-sxm", show_default=True, help="Device, see `fusesim devices`.")(
        command
    )


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON in SI base units (s, B, FLOP).")(command)


def chosen_device(device: str, device_file: str | None) -> HardwareProfile:
    """Return the device that the options name."""
    return api.find_device(device) if device_file is None else api.load_device(device_file)


def parse_ops(text: str) -> int | list[str]:
    """Read a chain: a number of identical ops, or names separated by commas.

    Examples
    --------
    >>> parse_ops("5"), parse_ops("add,mul")
    (5, ['add', 'mul'])
    """
    stripped = text.strip()
    if re.fullmatch(r"[-+]?\d{1,40}", stripped, flags=re.ASCII):
        return int(stripped)
    if re.fullmatch(r"[-+]?[\d._]+(e[-+]?\d+)?|[-+]?(nan|inf|infinity)", stripped, flags=re.IGNORECASE):
        raise InputError(f'ops is "{excerpt(text)}"; give a whole number, or names such as add,mul,relu')
    names = [name.strip() for name in stripped.split(",")]
    if not all(names):
        raise InputError(f'ops "{excerpt(text)}" has an empty name; give a number, or names such as add,mul,relu')
    return names


def optional(
    text: str | None, dimension: units.Dimension, option: str, limits: tuple[float, float] = (0, math.inf)
) -> float | None:
    """Read an optional quantity within limits; the message names the option."""
    if text is None:
        return None
    try:
        value = units.parse(text, dimension)
    except InputError as error:
        raise InputError(f"{option}: {error}") from error
    if not limits[0] <= value <= limits[1]:
        low, high = (units.format_exact(limit, dimension) for limit in limits)
        raise InputError(f'{option}: "{excerpt(text)}" is out of range; give {low} to {high}')
    return value


def whole(text: str, option: str, high: int = units.MAX_ELEMENTS) -> int:
    """Read a whole number up to a power of ten; the message names the option."""
    try:
        return units.parse_elements(text, high)
    except InputError as error:
        raise InputError(f"{option}: {str(error).removeprefix('elements ')}") from error


def print_json(record: Any) -> None:
    """Print a record as JSON; NaN and infinity never appear."""
    click.echo(json.dumps(record, indent=2, allow_nan=False))


class _Console(Console):
    """A console that leaves it to `main` what a reader means who left early."""

    def on_broken_pipe(self) -> None:
        """Raise what was caught."""
        raise BrokenPipeError


def console() -> Console:
    """Return where tables go: as wide as the terminal, or wide where there is none."""
    plain = Console()
    return _Console(highlight=False, width=None if plain.is_terminal else WIDE, markup=False, emoji=False)


def print_table(out: Console, table: Table) -> None:
    """Print a table; where a terminal is too narrow words fold, and figures stay whole even beyond its edge."""
    for column in table.columns:
        column.overflow = "fold"
        if column.justify == "right" or column.no_wrap:
            column.min_width = max((cell_len(str(cell)) for cell in column.cells), default=0)
            column.no_wrap = False  # so that headings fold
    out.print(table, crop=False)


def write_page(path: str, text: str) -> None:
    """Write a web page, and never over anything else that is there.

    Raises
    ------
    InputError
        If there is a file that is no page, or it cannot be written there.
    """
    if Path(path).suffix.lower() not in PAGES and Path(path).is_file():
        raise InputError(f'"{excerpt(path)}" exists and is no .html file; name another one')
    write_atomically(path, text)


def write_atomically(path: str, text: str) -> None:
    """Write a file whole or not at all.

    Raises
    ------
    InputError
        If it cannot be written there.

    Notes
    -----
    A link stays one: what it leads to is written.
    """
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file():  # a folder, or a device such as /dev/null
            raise OSError("it is not a file")  # noqa: TRY301 - told below, as what else keeps it from being written
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with temporary.open("x", encoding="utf-8") as file:
                file.write(text)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, and what no path can hold
        reason = getattr(error, "strerror", None) or error
        raise InputError(f'cannot write "{excerpt(path)}": {excerpt(reason, 200)}') from error


def load_app(module: str = "") -> ModuleType:
    """Return the workshop's package, or a module of it: `fusesim.app` where installed, `app` in a checkout.

    It stands above this package, so it is loaded by name and only when used: the one exception to the layers.
    """
    for package in ("fusesim.app", "app"):
        try:
            return importlib.import_module(f"{package}.{module}".rstrip("."))
        except ModuleNotFoundError as error:
            if error.name is None or not f"{package}.{module}".startswith(error.name):
                raise
    raise FusesimError("the workshop is missing from this installation; install fusesim again")


def model(text: str) -> str:
    """Read the name of a model."""
    return choice("model", text, ("textbook", "calibrated"))
