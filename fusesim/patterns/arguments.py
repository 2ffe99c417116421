"""Arguments of patterns: checked once by their annotation, refused in one sentence; the rest is the pattern's own."""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable
from typing import Any, Final, ParamSpec

from fusesim.errors import GraphError, InputError, excerpt, unknown_name
from fusesim.graph import Graph
from fusesim.ops import DTYPES, find_dtype
from fusesim.tensor import MOST_ELEMENTS

Arguments = ParamSpec("Arguments")
Pattern = Callable[..., Graph]

FLOATING: Final = tuple(name for name in DTYPES if not name.startswith("int"))
"""Types that a pattern's tensors may have."""


def pattern(function: Callable[Arguments, Graph]) -> Callable[Arguments, Graph]:
    """Return the function with its arguments checked before it runs.

    Parameters
    ----------
    function : callable
        Makes a graph. Annotations say what each argument may be: `int` a size from 1 to 10^18, `float` a share in
        [0, 1), `bool` a switch; `dtype` is the name of a floating-point type. Others are passed as they are.

    Returns
    -------
    callable
        The same, with `InputError` for what cannot be; a graph that turns out too large is one too.
    """
    signature = inspect.signature(function)
    name = function.__name__

    @functools.wraps(function)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Graph:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InputError(f"{name}: {error}; it takes {', '.join(signature.parameters)}") from error
        for key, value in bound.arguments.items():
            bound.arguments[key] = _checked(name, key, str(signature.parameters[key].annotation), value)
        try:
            return function(*bound.args, **bound.kwargs)
        except GraphError as error:
            raise InputError(f"{name}: {error}") from error

    return checked


def _checked(pattern_name: str, key: str, annotation: str, value: Any) -> Any:
    """Return an argument as its annotation says."""
    where = f"{pattern_name}: {key}"
    if key == "dtype":
        return floating(where, value)
    if annotation == "int":
        return size(where, value)
    if annotation == "float":
        return share(where, value)
    if annotation == "bool" and not isinstance(value, bool):
        raise InputError(f"{where} is {excerpt(value)}; it is a switch: True or False")
    return value


def size(name: str, value: Any, most: int = MOST_ELEMENTS) -> int:
    """Return a size: a whole number from 1 to `most`.

    Raises
    ------
    InputError
        If it is something else.

    Examples
    --------
    >>> size("rows", 128.0)
    128
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if isinstance(value, bool) or not 1 <= number <= most:
        limit = f"10^{round(math.log10(most))}"
        raise InputError(f"{name} is {excerpt(value)}; it is a whole number from 1 to {limit}")
    return number


def share(name: str, value: Any) -> float:
    """Return a share in [0, 1).

    Raises
    ------
    InputError
        If it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise InputError(f"{name} is {excerpt(value)}; it is a number from 0 up to, not including, 1")
    return float(value)


def floating(name: str, value: Any) -> str:
    """Return the name of a floating-point type.

    Raises
    ------
    InputError
        If it is none.
    """
    found = find_dtype(value).name
    if found not in FLOATING:
        raise unknown_name(f"{name}:", value, FLOATING)
    return found


def even(name: str, value: int) -> None:
    """Refuse an odd size.

    Raises
    ------
    InputError
        If it is odd.
    """
    if value % 2:
        raise InputError(f"{name} is {value}; its halves swap places, so it must be even")


def divides(part: str, value: int, whole: str, total: int) -> None:
    """Refuse a size that does not divide another.

    Raises
    ------
    InputError
        If it does not.
    """
    if total % value:
        raise InputError(f"{part} is {value}, which does not divide {whole} {total}")
