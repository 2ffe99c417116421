"""Settings of a page as a table of fields: what each is called, how a raw value is read, and how it is written.

The chain page has its own code for this, since its settings hang together; the other pages' do not, so that one table
serves their controls and their address. Values are never changed in place: every change makes a new mapping.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

from fusesim.errors import FusesimError, InputError, excerpt, unknown_name

from . import ids
from .controls import short_text
from .typeset import begun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

QUERY_LIMIT: Final = 2000
MAX_CHANGES: Final = 40
NO_CHANGE: Final = "The page sent something that is not a change of a control; load it again."
_PLAIN: Final = re.compile(r"[ -~\N{MULTIPLICATION SIGN}\N{MICRO SIGN}]*")
"""What values in an address are written in."""

Values = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One setting; its name is its control's id and its key in the address.

    `read` turns a raw value, which may be anything, into the setting or raises; `write` is its inverse. `also` holds
    further controls that set it, by id, each with a
    reader that is given all settings so far too. `clears` names fields that lose their value with it.
    """

    name: str
    default: Any
    read: Callable[[Any], Any]
    write: Callable[[Any], str] = str
    also: Mapping[str, Callable[[Any, Values], Any]] = field(default_factory=dict)
    clears: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request comes to: settings, a sentence for each control that is refused, and whether to draw anew.

    `more` says that the page stands still and wants what takes longer, `fresh` that it opens at an address, `moved`
    which controls have moved.
    """

    values: Values
    problems: dict[str, str]
    usable: bool
    more: bool
    fresh: bool = False
    moved: tuple[str, ...] = ()

    @property
    def dragged(self) -> bool:
        """Whether only sliders have moved, so that the next request is on its way already."""
        return bool(self.moved) and all(control.endswith("-slider") for control in self.moved)


class Form:
    """The fields of a page."""

    def __init__(self, *fields: Field) -> None:
        self.fields = {each.name: each for each in fields}
        self._owners = {control: each for each in fields for control in (each.name, *each.also)}

    @property
    def defaults(self) -> Values:
        """Every field at its default."""
        return {name: each.default for name, each in self.fields.items()}

    def change(self, values: Values, control: str, raw: Any) -> Values:
        """Return the settings after a control has moved.

        Raises
        ------
        InputError
            If the control cannot hold the value; the sentence says what it can.
        """
        if control not in self._owners:
            raise unknown_name("control", control, self._owners)
        each = self._owners[control]
        value = each.read(raw) if control == each.name else each.also[control](raw, values)
        cleared = (
            {name: self.fields[name].default for name in each.clears if name in self.fields}
            if value != values[each.name]
            else {}
        )
        return values | cleared | {each.name: value}

    def owner(self, control: str) -> str:
        """Return the field whose alert speaks for a control."""
        return self._owners[control].name if control in self._owners else ids.URL

    def from_query(self, query: Any) -> tuple[Values, str | None]:
        """Return the settings of an address, the defaults where it is wrong, and one sentence that says so."""
        try:
            pairs = _pairs(query)
            values = self.defaults
            for name, each in self.fields.items():
                if name in pairs:
                    if not _PLAIN.fullmatch(pairs[name]):
                        held = excerpt(pairs[name])
                        raise InputError(f'{name} "{held}" holds characters other than plain letters, digits and signs')
                    values = self.change(values, each.name, pairs[name])
        except FusesimError as error:
            return self.defaults, stopped(f"The address was not understood, so the defaults are shown: {error}")
        foreign = [unknown_name("setting", key, self.fields) for key in pairs if key not in self.fields]
        note = f"The address holds something that was passed over: {foreign[0]}" if foreign else None
        return values, stopped(note) if note else None

    def to_query(self, values: Values) -> str:
        """Return the address of a view: what differs from the defaults, in the order of the fields."""
        held = {name: each.write(values[name]) for name, each in self.fields.items() if values[name] != each.default}
        return "?" + urlencode(held, safe="/,*~:") if held else "?"

    def ask(self, request: Any) -> Asked:
        """Read a request of a page: `settings`, the query so far, and `changes` by control.

        Unchecked: anyone can send one. The change `url` stands for a whole new query, `more` for nothing new.
        """
        changes = request.get("changes") if isinstance(request, dict) else None
        if not isinstance(changes, dict) or not 0 < len(changes) <= MAX_CHANGES:
            return Asked(values=self.defaults, problems={ids.URL: NO_CHANGE}, usable=False, more=False)
        fresh, more = ids.URL in changes, ids.MORE in changes
        values, note = self.from_query(changes[ids.URL] if fresh else request.get("settings"))
        problems = {ids.URL: note} if note else {}
        moved = {control: raw for control, raw in changes.items() if control not in {ids.URL, ids.MORE}}
        refused = 0
        for control, raw in moved.items():
            try:
                values = self.change(values, control, raw)
            except FusesimError as error:
                refused += 1
                problems[self.owner(control)] = sentence(str(error))
        usable = fresh or more or len(moved) > refused
        return Asked(
            values=values,
            problems=problems,
            usable=usable,
            more=more,
            fresh=fresh,
            moved=tuple(moved),
        )


def sentence(text: str) -> str:
    """Begin and end a text like a sentence."""
    return stopped(begun(text))


def stopped(text: str) -> str:
    """End a sentence that may end in a question already."""
    return text if text.endswith(("?", ".")) else f"{text}."


def whole(name: str, raw: Any, low: int, high: int) -> int:
    """Return a whole number within limits, from a number or from its digits.

    Raises
    ------
    InputError
        If it is none.
    """
    text = str(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else raw
    found = re.fullmatch(r"(-?\d{1,19})(?:\.0+)?", short_text(name, text).strip(), re.ASCII)
    if found is None or not low <= int(found[1]) <= high:
        raise InputError(f'{name} "{excerpt(text)}" is not a whole number from {low} to {high}')
    return int(found[1])


def decimal(name: str, raw: Any, low: float, high: float) -> float:
    """Return a number within limits, from a number or from its digits.

    Raises
    ------
    InputError
        If it is none.
    """
    text = str(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else raw
    found = re.fullmatch(r"-?\d{1,12}(?:\.\d{1,12})?(?:e-?\d{1,2})?", short_text(name, text).strip(), re.ASCII)
    if found is None or not low <= float(found[0]) <= high:
        raise InputError(f'{name} "{excerpt(text)}" is not a number from {low:g} to {high:g}')
    return float(found[0])


def _pairs(query: Any) -> dict[str, str]:
    """Split a query into settings, each at most once."""
    query = short_text("it", query, QUERY_LIMIT)
    pairs: dict[str, str] = {}
    for key, text in parse_qsl(query.removeprefix("?"), keep_blank_values=True):
        if key in pairs:
            raise InputError(f'"{excerpt(key)}" is given twice')
        pairs[key] = text
    return pairs
