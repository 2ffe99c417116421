"""Descriptions of controls: what each is called, and what it can hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """A slider; over magnitudes it holds the exponent."""

    id: str
    label: str
    low: float
    high: float
    step: float
    marks: dict[float, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of text for an exact value."""

    id: str
    label: str
    placeholder: str
    longest: int = 80
    counted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """A choice out of many, folded away."""

    id: str
    label: str
    options: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A choice out of few, all in sight."""

    id: str
    label: str
    options: Sequence[tuple[str, str]]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buttons:
    """Buttons, each of which makes one change: a label and the value that it sends.

    `look` is a class name; `id`, where there is one, is the single button's.
    """

    change: str
    options: Sequence[tuple[str, str]]
    look: str = "presets"
    label: str = ""
    id: str = ""
