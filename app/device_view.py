"""Devices side by side, and a copy of one with figures of one's own: settings in, records out."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fusesim import api
from fusesim.errors import InputError, excerpt

from .controls import short_text
from .device_file import changed, checked
from .fields import Field, Form, Values
from .forms import Part
from .layout import Entry, Menu

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.hardware import Figure, HardwareProfile

    from .catalogue import Catalogue

FIRST: Final = "first"
SECOND: Final = "second"
THIRD: Final = "third"
EDITS: Final = "edits"
NAME: Final = "name"
NONE: Final = "none"
MAX_EDITS: Final = 24
_PATH: Final = re.compile(r"[a-z0-9_]+(?:\.[a-z0-9_]+){1,2}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class DeviceView:
    """Devices in the order of their columns; `copy` is the first one with what was set by hand."""

    values: Values
    shown: tuple[HardwareProfile, ...]
    copy: HardwareProfile

    @property
    def edited(self) -> bool:
        """Whether anything was set by hand."""
        return bool(self.values[EDITS])

    @property
    def columns(self) -> tuple[HardwareProfile, ...]:
        """What is compared: the copy too, once it differs."""
        return (*self.shown, self.copy) if self.edited else self.shown


def figures_of(profile: HardwareProfile) -> dict[str, Figure]:
    """Return a device's figures by key path."""
    return dict(profile.figures())


def special_rate(profile: HardwareProfile) -> float:
    """Return how many special functions a device starts per second, NaN where a factor is unknown. [1/s]."""
    sms, clock, each = profile.chip.sms, profile.chip.boost_clock, profile.sm.special_per_clock
    return sms.si * clock.si * each.si if sms and clock and each else math.nan


def l2_rate(profile: HardwareProfile) -> float:
    """Return the published bandwidth of a device's L2 cache, NaN where there is none. [B/s]."""
    figure = profile.cache.l2_bandwidth
    return figure.si if figure else math.nan


def ridge(profile: HardwareProfile, ceiling: str) -> float:
    """Return the arithmetic intensity at which a ceiling meets the memory's slope, NaN if unknown. [FLOP/B]."""
    return next((each.ridge_point for each in api.ceilings(profile) if each.name == ceiling), math.nan)


def edit_control(path: str) -> str:
    """Return the id of the entry for a figure of the copy."""
    return f"edit:{path}"


def device_form(catalogue: Catalogue) -> Form:
    """Return the settings of the page."""

    def device(raw: Any) -> str:
        return catalogue.find(short_text("device", raw)).id

    def optional(raw: Any) -> str:
        return NONE if raw == NONE else device(raw)

    edits: dict[str, Callable[[Any, Values], Any]] = {
        edit_control(path): partial(_edited, path=path, figure=figure) for path, figure in known(catalogue).items()
    }
    return Form(
        Field(name=FIRST, default="h100-sxm", read=device, clears=(EDITS, NAME)),
        Field(name=SECOND, default="h200-sxm", read=optional),
        Field(name=THIRD, default=NONE, read=optional),
        Field(name=NAME, default="", read=_name),
        Field(
            name=EDITS,
            default=(),
            read=partial(_edits, catalogue=catalogue),
            write=_written,
            also={**edits, "undo": lambda raw, _: _nothing(raw)},
        ),
    )


def known(catalogue: Catalogue) -> dict[str, Figure]:
    """Return every key path of any device, with a figure of its kind."""
    return {path: figure for profile in catalogue.profiles for path, figure in profile.figures()}


def look(values: Values, catalogue: Catalogue) -> DeviceView:
    """Find the devices, and make the copy.

    Raises
    ------
    InputError
        If the copy contradicts itself.
    """
    names = dict.fromkeys(values[name] for name in (FIRST, SECOND, THIRD) if values[name] != NONE)
    shown = tuple(catalogue.find(name) for name in names)
    title = values[NAME] or f"My {shown[0].name}"
    return DeviceView(values=values, shown=shown, copy=changed(shown[0], dict(values[EDITS]), title))


def parts(catalogue: Catalogue) -> tuple[Part, ...]:
    """Return the controls of the panel."""
    options = [(device.id, device.name) for device in catalogue.profiles]
    return (
        Part(owner=FIRST, controls=(Menu(id=FIRST, label="Device", options=options),)),
        Part(owner=SECOND, controls=(Menu(id=SECOND, label="beside", options=[(NONE, "none"), *options]),)),
        Part(owner=THIRD, controls=(Menu(id=THIRD, label="and", options=[(NONE, "none"), *options]),)),
        Part(owner=NAME, controls=(Entry(id=NAME, label="Name of your copy", placeholder="My own GPU"),)),
        Part(owner=EDITS, controls=()),
    )


def widgets(values: Values) -> dict[str, str]:
    """Return what each control has to hold."""
    return {name: values[name] for name in (FIRST, SECOND, THIRD, NAME)}


def _nothing(raw: Any) -> tuple[()]:
    """Take everything back."""
    if short_text("undo", raw) != "all":
        raise InputError("only all changes at once can be taken back here")
    return ()


def _name(raw: Any) -> str:
    text = short_text("name", raw, 60).strip()
    if not text.isascii() or not text.isprintable():
        raise InputError("a name is of plain letters, digits and signs")
    return text


def _edited(raw: Any, values: Values, *, path: str, figure: Figure) -> tuple[tuple[str, str], ...]:
    """Set one figure of the copy."""
    text = checked(short_text(path, raw), figure.dimension)
    kept = tuple(pair for pair in values[EDITS] if pair[0] != path)
    if len(kept) >= MAX_EDITS:
        raise InputError(f"a copy takes at most {MAX_EDITS} changes here; download it and go on in the file")
    return (*kept, (path, text))


def _edits(raw: Any, *, catalogue: Catalogue) -> tuple[tuple[str, str], ...]:
    """Read the changes of an address: ``memory.bandwidth:6 TB/s,cache.l2:``."""
    found, paths = {}, known(catalogue)
    for part in filter(None, short_text("edits", raw, 1500).split(",")):
        path, colon, text = part.partition(":")
        if not colon or not _PATH.fullmatch(path) or path not in paths:
            raise InputError(f'"{excerpt(part)}" is not a change of a figure, such as memory.bandwidth:6 TB/s')
        found[path] = checked(text, paths[path].dimension)
    if len(found) > MAX_EDITS:
        raise InputError(f"a copy takes at most {MAX_EDITS} changes here")
    return tuple(found.items())


def _written(edits: tuple[tuple[str, str], ...]) -> str:
    return ",".join(f"{path}:{text.replace(' ', '')}" for path, text in edits)
