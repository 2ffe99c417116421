"""Devices as the text of device files, and copies of devices with some figures changed; nothing goes to disk."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from fusesim import units
from fusesim.errors import InputError, excerpt
from fusesim.hardware import HardwareProfile

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN: Final = "own"
OWN_SOURCE: Final = {"title": "Set by hand in the workshop", "url": "no address: a figure of your own"}
_QUANTITY: Final = re.compile(r"\+?([\d.]+(?:[eE][+-]?\d+)?)\s*(.*)", re.ASCII)
"""Every way of writing a number that `units.parse` reads."""
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def changed(profile: HardwareProfile, edits: Mapping[str, str], name: str) -> HardwareProfile:
    """Return a copy of a device in which some figures are others.

    Parameters
    ----------
    profile : HardwareProfile
        The device.
    edits : mapping of str to str
        By key path, a figure with its unit; an empty text leaves the figure out.
    name : str
        What the copy is called.

    Raises
    ------
    InputError
        If the copy contradicts itself, as a file that does so is refused.
    """
    held = profile.model_dump(exclude_none=True, exclude_defaults=True)
    held |= {"id": "copy", "name": name, "aliases": (), "sources": dict(held["sources"]) | {OWN: OWN_SOURCE}}
    held.pop("requested_as", None)
    for path, text in edits.items():
        *sections, last = path.split(".")
        table = held
        for section in sections:
            table = table.setdefault(section, {})
        if text:
            table[last] = quantity(text) | {"source": (OWN,)}
        else:
            table.pop(last, None)
    try:
        return HardwareProfile.model_validate(held)
    except ValidationError as error:
        raise InputError(_told(error)) from error


def quantity(text: str) -> dict[str, Any]:
    """Split a figure into value and unit.

    Examples
    --------
    >>> quantity("3.35 TB/s")
    {'value': 3.35, 'unit': 'TB/s'}
    """
    found = _QUANTITY.fullmatch(units.ungrouped(text.strip(), "write e.g. 3.35 TB/s"))
    try:
        return {"value": float(found[1]), "unit": found[2]} if found else {"value": text}
    except ValueError as error:
        raise InputError(f'"{excerpt(text)}" is not a figure with its unit, for example 3.35 TB/s') from error


def checked(text: str, dimension: units.Dimension) -> str:
    """Return a figure as it is written in a file, its unit checked.

    Raises
    ------
    InputError
        If it has none, or another.
    """
    if not text.strip():
        return ""
    value = units.parse(text, dimension)
    if not 0 < value < float("inf"):
        raise InputError(f'"{excerpt(text)}" is out of range; a figure is above zero')
    return f"{quantity(text)['value']!r} {quantity(text)['unit']}".strip()


def to_toml(profile: HardwareProfile) -> str:
    """Return the text of a device file; reading it gives the same device.

    Examples
    --------
    >>> import fusesim
    >>> 'name = "NVIDIA L4"' in to_toml(fusesim.device("l4"))
    True
    """
    held = profile.model_dump(exclude_none=True, exclude_defaults=True)
    held.pop("id")
    held.pop("requested_as", None)
    return "\n".join(_section(held, ())).strip() + "\n"


def _section(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    """Return a table's own lines, then those of the tables inside it; figures are written in one line."""
    plain = {key: value for key, value in table.items() if not _is_table(value)}
    lines = [f"\n[{'.'.join(map(_key, path))}]"] if path and plain else []
    lines += [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if _is_table(value):
            lines += _section(value, (*path, key))
    return lines


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and "value" not in value


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_value(each)}' for key, each in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key)


def _told(error: ValidationError) -> str:
    """Say in one sentence what is wrong with a device."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"{where} is missing: a device needs it; give the figure or take the change back"
    what = str(first["msg"]).removeprefix("Value error, ")
    return f"the copy contradicts itself: {f'{where}: ' if where else ''}{excerpt(what, 200)}; change what it names too"
