"""The size at which a verdict flips: where fusing begins to pay, or stops.

Sizes are tried a factor of four apart, up and down, until the verdict is another one; then the place is narrowed down.
A verdict that changes twice within a factor of four is missed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusesim import units
from fusesim.errors import FusesimError

if TYPE_CHECKING:
    from collections.abc import Callable

STEP: Final = 4.0
STEPS: Final = 5
"""Sizes are tried up to 4^5, so 1024, times larger and smaller."""

HALVINGS: Final = 5
"""Leaves a factor of 4^(1/32), so 4 %."""

EVEN: Final = 0.01
"""A gain below this share of the time is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Where the verdict flips.

    `verdict` is ``"saves"``, ``"loses"`` or ``"even"`` now, `other` what it is beyond `factor` times the size, None
    where it is the same from `low` to `high` times the size. `dimension` is the size that was scaled.
    """

    verdict: str
    factor: float | None
    other: str | None
    low: float
    high: float
    dimension: tuple[str, float] | None

    def sentence(self) -> str:
        """Say it."""
        if self.factor is None:
            what = {"saves": "fusing saves", "loses": "fusing loses", "even": "fusing changes nothing"}[self.verdict]
            return f"{what} at every size tried, {self._size(self.low)} to {self._size(self.high, bare=True)}"
        beyond = "above" if self.factor > 1 else "below"
        what = {"saves": "fusing saves", "loses": "fusing loses", "even": "fusing is worth nothing"}[str(self.other)]
        return f"{what} {beyond} about {self._size(self.factor)}"

    def _size(self, factor: float, *, bare: bool = False) -> str:
        """Write a size, with its name unless `bare`."""
        if self.dimension is None:
            return f"{factor:.2g} times" if bare else f"{factor:.2g} times this size"
        name, now = self.dimension
        value = units.format_count(round(float(f"{max(now * factor, 1):.2g}")))
        return value if bare else f"{name} = {value}"


def verdict(gain: float) -> str:
    """Return whether a share of the time is saved, lost, or neither.

    Examples
    --------
    >>> verdict(0.5), verdict(-0.2), verdict(0.001)
    ('saves', 'loses', 'even')
    """
    return "even" if abs(gain) < EVEN else "saves" if gain > 0 else "loses"


def find_flip(gain: Callable[[float], float], now: float, dimension: tuple[str, float] | None = None) -> Flip:
    """Return where the verdict flips.

    Parameters
    ----------
    gain : callable
        The saving over the longer time, at so many times the size; it may refuse a size by a `FusesimError`.
    now : float
        The same at the size itself.
    dimension : tuple of str and float, optional
        What is scaled, and what it is now.

    Examples
    --------
    >>> find_flip(lambda factor: 1 - 10 / factor, -9.0, ("rows", 100)).sentence()
    'fusing saves above about rows = 970'
    """
    is_now = verdict(now)
    ends = {"down": 1.0, "up": 1.0}
    for way, step in (("down", 1 / STEP), ("up", STEP)):
        for power in range(1, STEPS + 1):
            factor = step**power
            if dimension is not None and dimension[1] * factor < 1:
                break
            try:
                found = verdict(gain(factor))
            except FusesimError:
                break
            if found != is_now:
                edge = _narrowed(gain, is_now, ends[way], factor)
                return Flip(verdict=is_now, factor=edge, other=found, low=0.0, high=0.0, dimension=dimension)
            ends[way] = factor
    return Flip(verdict=is_now, factor=None, other=None, low=ends["down"], high=ends["up"], dimension=dimension)


def _narrowed(gain: Callable[[float], float], is_now: str, same: float, other: float) -> float:
    """Return where the verdict changes between two sizes."""
    for _ in range(HALVINGS):
        middle = math.sqrt(same * other)
        try:
            changed = verdict(gain(middle)) != is_now
        except FusesimError:
            break
        same, other = (same, middle) if changed else (middle, other)
    return math.sqrt(same * other)
