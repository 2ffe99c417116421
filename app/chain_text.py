"""Chains of named operations as text: ``gelu x8, add``, for people and for addresses."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from fusesim.errors import InputError, excerpt
from fusesim.ops import OPS, find_op

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_OPS: Final = 32
TEXT_LIMIT: Final = 400
"""Longest text that is read: 32 of the longest names fit."""

FIVE: Final = "add, mul, relu, neg, abs"
_SIGN: Final = "[x*\N{MULTIPLICATION SIGN}]"
_NAME_FIRST: Final = re.compile(rf"([a-z_]\w*?)(?:\s*{_SIGN}\s*(\d{{1,4}}))?", re.ASCII)
_COUNT_FIRST: Final = re.compile(rf"(\d{{1,4}})\s*{_SIGN}?\s*([a-z_]\w*)", re.ASCII)


def parse_chain(text: str) -> tuple[str, ...]:
    """Read a chain of named operations.

    Parameters
    ----------
    text : str
        Names with commas between them, each once or ``x`` times: ``"gelu x8, add"``, ``"8 gelu"``, ``"gelu*8,add"``.

    Returns
    -------
    tuple of str
        The ops in order, at most 32.

    Raises
    ------
    InputError
        If a name is unknown, or there are none or too many of them.

    Examples
    --------
    >>> parse_chain("gelu x2, add"), parse_chain("2 relu")
    (('gelu', 'gelu', 'add'), ('relu', 'relu'))
    """
    if len(text) > TEXT_LIMIT:
        raise InputError(f"the chain must be a text of at most {TEXT_LIMIT} characters")
    ops: list[str] = []
    for part in filter(None, (piece.strip().lower() for piece in re.split(r"[,;>\n]|->", text))):
        name, count = _part(part)
        ops += [find_op(name).name] * _within(count, len(ops))
    if not ops:
        raise InputError("the chain is empty; name its ops, for example gelu x8")
    return tuple(ops)


def format_chain(ops: Iterable[str], *, times: str = " x", between: str = ", ") -> str:
    """Write a chain of named operations, repeated ones once with their number.

    Examples
    --------
    >>> format_chain(("gelu", "gelu", "add")), format_chain(("gelu", "gelu", "add"), times="*", between=",")
    ('gelu x2, add', 'gelu*2,add')
    """
    runs = ((name, len(list(run))) for name, run in itertools.groupby(ops))
    return between.join(name if count == 1 else f"{name}{times}{count}" for name, count in runs)


def broadcasts(ops: Iterable[str]) -> bool:
    """Return whether any op reads a row.

    Examples
    --------
    >>> broadcasts(("relu", "add_row"))
    True
    """
    return any(OPS[name].rows for name in ops)


def check_length(count: int) -> None:
    """Refuse a chain that is too long."""
    if count > MAX_OPS:
        raise InputError(f"the chain has {count} ops; give 1 to {MAX_OPS}")


def _part(part: str) -> tuple[str, int]:
    """Split one part into name and number; names hold no ``x`` before digits."""
    counted = _COUNT_FIRST.fullmatch(part)
    if counted:
        return counted[2], int(counted[1])
    named = _NAME_FIRST.fullmatch(part)
    if named is None:
        raise InputError(f'"{excerpt(part)}" is not an op; write names with commas between, for example gelu x8, add')
    return named[1], int(named[2] or 1)


def _within(count: int, so_far: int) -> int:
    """Return a number of ops that a chain has room for."""
    if count == 0:
        raise InputError("an op is given 0 times; leave it out")
    check_length(so_far + count)
    return count
