"""After how many calls a compiler has paid for itself: the time that it took, over what each call saves.

Compile times are measured, by path; those of a path that nobody measured are asked for. They hold for one machine and
one version, and a cache of compiled kernels makes them several times shorter, so their ranges are wide and are told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from fusesim.errors import InputError, excerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileTime:
    """How long a path compiles: the median of what was measured, its range [s], of how many cases, and where."""

    seconds: float
    low: float
    high: float
    cases: int
    source: str


MOST_SECONDS: Final = 1e9
"""Longest compile time: thirty years. [s]"""

FEW_OPS: Final = 12
"""Ops up to which a program counts as a pattern: none that was compiled as one has more."""

PATTERN: Final = CompileTime(
    seconds=0.385, low=0.089, high=1.13, cases=24, source="patterns of 1 to 9 ops, H200, h200_patterns.json"
)
MODEL: Final = CompileTime(seconds=3.75, low=1.08, high=11.6, cases=4, source="whole models, H200, h200_models.json")
CACHED: Final = CompileTime(
    seconds=0.0678, low=0.0434, high=0.213, cases=68, source="patterns from a full cache, H200, h200_own_patterns.json"
)
NOTHING: Final = CompileTime(seconds=0.0, low=0.0, high=0.0, cases=0, source="eager mode compiles nothing")


def compile_time(path: str, ops: int, *, cached: bool = False) -> CompileTime:
    """Return what a path takes to compile a program of so many ops.

    Parameters
    ----------
    path : str
        ``"inductor"`` or ``"torch"``; others were not measured.
    ops : int
        How many ops the program has; more than `FEW_OPS` is a model.
    cached : bool
        Whether the compiler finds its kernels in the cache of an earlier process.

    Raises
    ------
    InputError
        If nothing was measured of the path.

    Examples
    --------
    >>> compile_time("inductor", 6).seconds
    0.385
    """
    if path == "torch":
        return NOTHING
    if path != "inductor":
        raise InputError(f'no compile time was measured for path "{path}"; give compile_seconds, or use path inductor')
    if ops > FEW_OPS:
        return MODEL
    return CACHED if cached else PATTERN


def break_even(compile_time: float, saving: float) -> float:
    """Return after how many calls a compiled program has saved what it took to compile.

    Parameters
    ----------
    compile_time : float
        Once. [s]
    saving : float
        Per call, negative where the compiled program is slower. [s]

    Returns
    -------
    float
        A whole number of calls, at least 1; infinite where a call saves nothing.

    Raises
    ------
    InputError
        If the compile time is negative or not a number, or the saving is not a number.

    Notes
    -----
    calls = compile time / saving, rounded up. It assumes that shapes stay the same: a new shape compiles again.

    Examples
    --------
    >>> break_even(0.5, 200e-6)
    2500.0
    >>> break_even(0.5, -1e-6)
    inf
    """
    if not (isinstance(compile_time, int | float) and 0 <= compile_time <= MOST_SECONDS):
        raise InputError(f"compile_time is {excerpt(compile_time)} s; it is a time from 0 s to {MOST_SECONDS:g} s")
    if not isinstance(saving, int | float) or math.isnan(saving):
        raise InputError(f"saving is {excerpt(saving)} s; it is a time per call")
    if saving <= 0:
        return math.inf
    return float(max(math.ceil(compile_time / saving * (1.0 - 1e-12)), 1))
