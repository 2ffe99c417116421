"""The exception tree: who is at fault decides the class.

A message is one sentence: what is wrong, the value, the limit, where, and what to do.
Only these exceptions reach the command line's user without a traceback.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_NAMES: Final = 8
"""Names that a message lists."""


class FusesimError(Exception):
    """Base of every error that fusesim raises on purpose."""


class InputError(FusesimError, ValueError):
    """An argument of the caller is wrong."""


class HardwareSpecError(FusesimError):
    """A device file is wrong: a missing unit, an unknown key, a peak that its own figures contradict."""


class GraphError(FusesimError):
    """A graph of operations is not valid."""


class PlanError(FusesimError):
    """A partition of a graph into kernels is not legal."""


class MeasurementError(FusesimError):
    """A measurement could not be made or is not fit to use."""


class CalibrationError(FusesimError):
    """A calibration is missing, corrupt or not trustworthy."""


def unknown_name(kind: str, name: object, known: Iterable[str], everything: str = "") -> InputError:
    """Return the error for a name that is not in a table, with the nearest one that is.

    Parameters
    ----------
    kind : str
        What the name should have named, for example ``"device"``.
    name : object
        What the caller wrote.
    known : iterable of str
        The names that would have been accepted.
    everything : str
        What lists them all, for a table that a message has no room for.

    Examples
    --------
    >>> print(unknown_name("device", "h20", ["h100-sxm", "h200-sxm"]))
    unknown device "h20"; did you mean "h200-sxm"?
    >>> print(unknown_name("launch mode", "zzz", ["stream", "graph"]))
    unknown launch mode "zzz"; known: stream, graph
    """
    options = list(known)
    near = difflib.get_close_matches(name.lower(), options, n=1, cutoff=0.5) if isinstance(name, str) else []
    hint = f'did you mean "{near[0]}"?' if near else f"known: {_listed(options, everything)}"
    return InputError(f'unknown {kind} "{excerpt(name)}"; {hint}')


def _listed(names: list[str], everything: str) -> str:
    """List names, of many the first few."""
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    rest = f"; {everything} lists all" if everything else ""
    return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more{rest}"


def excerpt(value: object, limit: int = 60) -> str:
    r"""Return what the caller wrote, for a message: one printable line, cut where it would flood a terminal.

    Examples
    --------
    >>> excerpt("h100\nsxm"), excerpt("9" * 5000, limit=5)
    ('h100 sxm', '99999...')
    """
    text = "".join(letter if letter.isprintable() else " " for letter in str(value)[: limit + 1])
    return text if len(text) <= limit else text[:limit] + "..."
