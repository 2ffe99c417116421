"""What a run measures: the suites of the chosen paths, in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.calibrate import suites
from fusesim.errors import InputError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.calibrate.cases import Case

MIX_SEED: Final = 20261129
JUDGE_SEED: Final = 20270117
"""Two draws of `suites.judge_suite`: one is fitted, the other held out."""

_SUITES: Final[dict[str, dict[str, Callable[[], list[Case]]]]] = {
    "cuda": {
        "fit": suites.fit_suite,
        "mix": lambda: suites.judge_suite(MIX_SEED),
        "judge": lambda: suites.judge_suite(JUDGE_SEED),
        "plain": suites.judge_plain_suite,
        "few-passes": suites.few_passes_suite,
        "stream-judge": suites.stream_judge_suite,
    },
    "cupy": {
        "cupy": suites.cupy_suite,
        "cupy-judge": suites.cupy_judge_suite,
        "reduction": suites.reduction_suite,
        "matmul": suites.matmul_suite,
    },
    "torch": {
        "torch": lambda: suites.torch_suite("torch"),
        "reduction": lambda: suites.reduction_suite("torch"),
        "matmul": lambda: suites.matmul_suite("torch"),
    },
    "inductor": {"torch": lambda: suites.torch_suite("inductor")},
}
"""The suites of each path."""

LAST: Final = ("reduction", "matmul")
"""Suites that every other one precedes: matmuls may lower the clocks."""


def plan(paths: Sequence[str]) -> list[Case]:
    """Return every case to measure for these paths, in the order of measuring.

    Parameters
    ----------
    paths : sequence of str
        Among cuda, cupy, torch and inductor; cuda must be there, since the others build on it.

    Raises
    ------
    InputError
        If a path is unknown, or cuda is missing.
    """
    for path in paths:
        if path not in _SUITES:
            raise unknown_name("path", path, _SUITES)
    if "cuda" not in paths:
        raise InputError("the paths must include cuda, since all others are fitted on top of it; add it to --paths")
    found: dict[str, list[Case]] = {}
    for path, builders in _SUITES.items():
        for name, build in builders.items() if path in paths else ():
            found.setdefault(name, []).extend(replace(case, suite=name) for case in build())
    names = sorted(found, key=lambda name: name in LAST)
    return [case for name in names for case in found[name]]
