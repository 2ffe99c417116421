"""Arguments at the library's edge: checked once, turned into numbers that broadcast, refused in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from fusesim.errors import InputError, excerpt, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.arrays import Numbers

LONG = 10**6
"""From here on a number is written as a power of ten."""

MAX_OPS = 10**6
"""Longest chain that is priced."""

MAX_REPEATS = 10**9
"""Most passes in one captured graph."""

MAX_TIME = 1
"""Longest launch, replay or host interval. [s]"""

MIN_BANDWIDTH, MAX_BANDWIDTH = 10**6, 10**18
"""Range of bandwidths. [B/s]"""

MAX_DIMENSIONS = 32
"""Most dimensions of an array; numpy iterates over no more."""


def number(name: str, value: Any, *, low: float, high: float, unit: str = "", whole: bool = False) -> Numbers:
    """Return the value as a float64 scalar or array within limits.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    value : number or array_like
        What the caller gave.
    low, high : float
        Least and greatest value that is accepted.
    unit : str
        The unit, for the message.
    whole : bool
        Refuse fractions.

    Raises
    ------
    InputError
        Says which value is wrong and what is accepted.
    """
    limits = _Limits(low, high, unit, whole)
    if type(value) in {int, float} and low <= value <= high and not (whole and value != int(value)):
        return np.float64(value)
    given = _as_array(name, value)
    if given.size == 0:
        raise InputError(f"{name} is empty; give at least one value")
    if given.ndim > MAX_DIMENSIONS:
        raise InputError(f"{name} has {given.ndim} dimensions; give at most {MAX_DIMENSIONS}")
    numbers = _as_float(name, given)
    outside = _outside(given if given.dtype.kind in "iuO" else numbers, low, high)  # float16 cannot hold the limits
    if outside.size:
        raise InputError(limits.refuse(name, outside.flat[0]))
    if whole and given.dtype.kind not in "iu":
        fractions = numbers[numbers != np.floor(numbers)]
        if fractions.size:
            raise InputError(limits.refuse(name, fractions.flat[0]))
    return numbers if numbers.ndim else np.float64(numbers)


def single(name: str, value: Any, *, low: float, high: float, unit: str = "", whole: bool = False) -> float:
    """Return the value as one number within limits, as `number` does.

    Raises
    ------
    InputError
        If it is several, no number or beyond the limits.
    """
    found = number(name, value, low=low, high=high, unit=unit, whole=whole)
    if np.ndim(found):
        raise InputError(f"{name} holds {np.size(found)} values; give one number")
    return float(found)


@dataclass(frozen=True, slots=True)
class _Limits:
    """What is accepted, for the message."""

    low: float
    high: float
    unit: str
    whole: bool

    def refuse(self, name: str, value: float) -> str:
        kind = "a whole number" if self.whole else "a number"
        unit = f" {self.unit}" if self.unit else ""
        return f"{name} is {_short(value)}; give {kind} from {_short(self.low)} to {_short(self.high)}{unit}"


def _as_array(name: str, value: Any) -> Any:
    """Return an array of numbers as they were given, refusing what is no number."""
    if isinstance(value, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array; give the values that are not masked, {name}.compressed()")
    try:
        numbers = np.asarray(value)
    except Exception as error:  # a ragged list, or an object whose conversion fails as it likes
        raise InputError(f"{name} must be a number or an array of numbers, not {_kind(value)}") from error
    if isinstance(value, bool) or not (numbers.dtype.kind in "iuf" or _holds_numbers(numbers)):
        raise InputError(f"{name} must be a number or an array of numbers, not {_kind(value)}")
    return numbers


def _as_float(name: str, numbers: Any) -> Any:
    """Return a copy as float64."""
    try:
        with np.errstate(over="raise"):
            return numbers.astype(np.float64)
    except (OverflowError, FloatingPointError) as error:
        raise InputError(f"{name} is too large to be a number") from error


def _outside(numbers: Any, low: float, high: float) -> Any:
    """Return the numbers beyond the limits; integers are compared exactly, and NaN is beyond any."""
    if numbers.dtype.kind == "O":
        return np.array([entry for entry in numbers.ravel() if not low <= entry <= high], dtype=object)
    least, greatest = numbers.min(), numbers.max()  # NaN if any is, and then the comparison fails
    if low <= least and greatest <= high:
        return numbers[:0] if numbers.ndim else np.empty(0)
    return numbers[~((numbers >= low) & (numbers <= high))]


def _holds_numbers(values: Any) -> bool:
    """Return whether an array of objects, such as integers beyond 64 bits, holds only numbers."""
    kinds = int | float | np.integer | np.floating
    return values.dtype.kind == "O" and all(
        isinstance(entry, kinds) and not isinstance(entry, bool) for entry in values.ravel()
    )


def _kind(value: Any) -> str:
    """Name what was given instead of a number."""
    if isinstance(value, str):
        return f'the text "{excerpt(value)}"'
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype.name}"
    return "nothing (None)" if value is None else f"a value of type {type(value).__name__}"


def _short(value: float) -> str:
    """Write a number exactly: small whole ones and powers of ten as people do."""
    if abs(value) < LONG and value == int(value):
        return f"{int(value)}"
    short = f"{value:.6g}"
    if isinstance(value, int | np.integer):
        return (short if Decimal(short) == int(value) else excerpt(value, 24)).replace("e+", "e")
    return (short if float(short) == value else repr(float(value)).removesuffix(".0")).replace("e+", "e")


def choice(kind: str, value: Any, options: Sequence[str]) -> str:
    """Return the option that was named.

    Raises
    ------
    InputError
        If it is none of them, with the nearest.
    """
    if isinstance(value, str) and value.strip().lower() in options:
        return value.strip().lower()
    raise unknown_name(kind, value, options)


def instance(what: str, value: Any, kind: type, advice: str) -> None:
    """Refuse a value that is no record of a kind.

    Raises
    ------
    InputError
        If it is another thing, with what to give.
    """
    if not isinstance(value, kind):
        raise InputError(f"{what} is a {kind.__name__}, {advice}; not {type(value).__name__}")


def strategy_and_path(name: str, value: Any) -> tuple[str, str]:
    """Return a pair that says who fuses and whose kernels run.

    Raises
    ------
    InputError
        If it is no pair.
    """
    if not isinstance(value, tuple | list) or len(value) != 2:  # noqa: PLR2004 - strategy and path
        raise InputError(f'{name} is {excerpt(value)}; give a strategy and a path, for example ("eager", "torch")')
    return value[0], value[1]


def common_shape(**arguments: Any) -> tuple[int, ...]:
    """Return the shape that the arguments broadcast to.

    Raises
    ------
    InputError
        If they do not, with the shapes.
    """
    if all(isinstance(value, float) for value in arguments.values()):
        return ()  # far the most common case, and np.shape is slow
    shapes = {name: np.shape(value) for name, value in arguments.items()}
    if not any(shapes.values()):
        return ()
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError as error:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise InputError(f"these shapes do not broadcast together: {listed}") from error
