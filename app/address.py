"""Settings as the query of the page's address, and back: a view can be shared and reloaded."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

from fusesim import units
from fusesim.errors import FusesimError, InputError, excerpt, unknown_name

from . import ids
from .chain_text import MAX_OPS, TEXT_LIMIT, format_chain, parse_chain
from .controls import MAX_HOST, MAX_OVERHEAD, MAX_REPEATS, change, check_row, short_text, with_time
from .settings import STOPS, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .catalogue import Catalogue

QUERY_LIMIT: Final = 2000
_PLAIN: Final = re.compile(r"[ -~\N{MULTIPLICATION SIGN}\N{MICRO SIGN}]*")
"""What values are written in: digits of other scripts, line ends and controls are in none."""


def from_query(query: Any, catalogue: Catalogue) -> tuple[Settings, str | None]:
    """Read settings from the query of an address.

    Parameters
    ----------
    query : object
        For example ``"?ops=gelu*8&elements=4096&model=calibrated"``; what is missing has its default.
    catalogue : Catalogue
        The devices to choose from.

    Returns
    -------
    settings : Settings
        The defaults if any value is wrong.
    note : str or None
        One sentence that says what was wrong. A setting that nobody knows is noted and passed over, since a link
        may pick up foreign ones on its way.
    """
    try:
        pairs = _pairs(query)
        settings = Settings()
        for key in sorted(set(pairs) & set(KEYS), key=KEYS.index):
            settings = _read(settings, key, pairs[key], catalogue)
        check_row(settings)
    except FusesimError as error:
        return Settings(), _stopped(f"The address was not understood, so the defaults are shown: {error}")
    foreign = [unknown_name("setting", key, KEYS) for key in pairs if key not in KEYS]
    return settings, _stopped(f"The address holds something that was passed over: {foreign[0]}") if foreign else None


def _stopped(sentence: str) -> str:
    """End a sentence that may end in a question already."""
    return sentence if sentence.endswith("?") else f"{sentence}."


def to_query(settings: Settings) -> str:
    """Write settings as the query of an address; `from_query` returns the very same.

    Examples
    --------
    >>> to_query(Settings(ops=("gelu",) * 8, launch_overhead=2.5e-6))
    '?ops=gelu*8&elements=33554432&dtype=bf16&device=h100-sxm&launch=stream&launch_overhead=2.5us'
    """
    ops, default = settings.ops, Settings()
    fields: dict[str, Any] = {
        "ops": ops if isinstance(ops, int) else format_chain(ops, times="*", between=","),
        "elements": settings.elements,
        "dtype": settings.dtype,
        "device": settings.device,
        "launch": settings.launch,
    }
    if settings.row != default.row:
        fields["row"] = settings.row
    if settings.step:
        fields["model"] = STOPS[settings.step]
    for name in ("inputs", "path", "repeats"):
        if getattr(settings, name) != getattr(default, name):
            fields[name] = getattr(settings, name)
    for name, dimension in (
        ("host_interval", units.TIME),
        ("launch_overhead", units.TIME),
        ("dram_bandwidth", units.BANDWIDTH),
    ):
        if getattr(settings, name) is not None:
            fields[_SPELT.get(name, name)] = _compact(getattr(settings, name), dimension)
    return "?" + urlencode(fields, safe="/,*")


_SPELT: Final = {"dram_bandwidth": "bandwidth"}
KEYS: Final = (
    *("device", "row", "ops", "elements", "dtype", "launch", "model", "inputs", "path"),
    *("repeats", "host_interval", "launch_overhead", "bandwidth"),
)
"""What an address may hold, in the order in which it is read."""

_AS_CONTROL: Final[Mapping[str, str]] = {
    "device": ids.DEVICE,
    "row": ids.ROW,
    "elements": ids.ELEMENTS,
    "dtype": ids.DTYPE,
    "launch": ids.LAUNCH,
    "model": ids.MODEL,
    "inputs": ids.INPUTS,
    "path": ids.PATH,
    "bandwidth": ids.BANDWIDTH,
}
"""What is written as a control takes it."""


def _read(settings: Settings, key: str, text: str, catalogue: Catalogue) -> Settings:
    """Take in one setting of an address."""
    if not _PLAIN.fullmatch(text):
        raise InputError(f'{key} "{excerpt(text)}" holds characters other than plain letters, digits and signs')
    if key in _AS_CONTROL:
        return change(settings, _AS_CONTROL[key], text, catalogue)
    if key == "ops":
        return _with_ops(settings, text)
    if key == "repeats":
        return replace(settings, repeats=_whole("repeats", text, MAX_REPEATS))
    return _with_microseconds(settings, key, text)


def _with_ops(settings: Settings, text: str) -> Settings:
    """Read the chain."""
    short_text("ops", text, TEXT_LIMIT)
    if re.fullmatch(r"-?[\d.]+", text, re.ASCII):
        return replace(settings, ops=_whole("ops", text, MAX_OPS))
    return replace(settings, ops=parse_chain(text) if text else ())


def _whole(name: str, text: str, most: int) -> int:
    if not re.fullmatch(r"\d{1,10}", text, re.ASCII) or not 1 <= int(text) <= most:
        raise InputError(f'{name} "{excerpt(text)}" is not a whole number from 1 to {most}')
    return int(text)


def _with_microseconds(settings: Settings, key: str, text: str) -> Settings:
    most = {"host_interval": MAX_HOST, "launch_overhead": MAX_OVERHEAD}[key]
    seconds = units.parse(short_text(key, text), units.TIME)
    if not 0 <= seconds <= units.parse(f"{most} us", units.TIME):
        raise InputError(f'{key} "{text}" is out of range; give 0 to {most:.0f} us')
    return with_time(settings, key, seconds * 1e6)


def _pairs(query: Any) -> dict[str, str]:
    """Split a query into settings, each at most once."""
    query = short_text("it", query, QUERY_LIMIT)
    pairs: dict[str, str] = {}
    for key, text in parse_qsl(query.removeprefix("?"), keep_blank_values=True):
        if key in pairs:
            raise InputError(f'"{excerpt(key)}" is given twice')
        pairs[key] = text
    return pairs


def _compact(value: float, dimension: units.Dimension) -> str:
    """Write a quantity exactly and without the space, which an address would escape."""
    return units.format_exact(value, dimension).replace(" ", "")
