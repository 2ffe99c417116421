"""Predicted beside measured, read once from a file that a command writes: cases, and what to show of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusesim.inputs import choice
from fusesim.validate import REGIMES

from .case_words import in_words
from .fields import Field, Form, Values
from .forms import Part
from .layout import Menu, Switch

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE: Final = Path(__file__).parent / "data" / "accuracy.json"
"""Written by tests/reference/workshop_accuracy.py from measurements that nothing was fitted on."""

ALL: Final = "all"
WHAT: Final = "what"
SUITE: Final = "suite"
REGIME: Final = "regime"
QUANTITIES: Final = ("times", "savings")
BOUNDS: Final = {
    "launch": "launches",
    "dram": "memory",
    "l2": "the cache",
    "arithmetic": "arithmetic",
    "host": "the host",
}
"""What binds, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A measured quantity beside its prediction and 90 % interval; the error is relative to `scale`. [s]."""

    suite: str
    side: str
    regime: str
    label: str
    measured: float
    predicted: float
    low: float
    high: float
    scale: float

    @property
    def deviation(self) -> float:
        """Predicted minus measured, relative."""
        return (self.predicted - self.measured) / self.scale

    @property
    def covered(self) -> bool:
        """Whether the interval holds the measurement."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A model with some effects on: median, 90th percentile and worst error of times, then of savings."""

    name: str
    times: tuple[float, float, float]
    savings: tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All cases and the ablation."""

    cases: tuple[Case, ...]
    steps: tuple[Step, ...]

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites, in the file's order."""
        return tuple(dict.fromkeys(case.suite for case in self.cases))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """Errors of a group: how many, median, 90th percentile, worst, median with its sign, and share in the interval."""

    name: str
    cases: int
    median: float
    p90: float
    worst: float
    bias: float
    coverage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyView:
    """What is shown of the evidence."""

    values: Values
    cases: tuple[Case, ...]
    grades: tuple[Grade, ...]
    steps: tuple[Step, ...]

    @property
    def whole(self) -> Grade | None:
        """The grade of all that is shown, None where it is nothing."""
        return grade("all", self.cases) if self.cases else None


def load() -> Evidence:
    """Read the file.

    Examples
    --------
    >>> len(load().suites) > 3, load().steps[0].name
    (True, 'textbook')
    """
    held = json.loads(FILE.read_text(encoding="utf-8"))
    names = ("suite", "side", "regime", "label", "measured", "predicted", "low", "high", "scale")
    cases = tuple(
        Case(**dict(zip(names, each, strict=True)) | {"label": in_words(each[names.index("label")])})
        for each in held["cases"]
    )
    steps = tuple(Step(name=name, times=tuple(rest[:3]), savings=tuple(rest[3:])) for name, *rest in held["ablation"])
    return Evidence(cases=cases, steps=steps)


def accuracy_form(evidence: Evidence) -> Form:
    """Return the settings of the page; suites have numbers in the address."""
    numbers = tuple(str(place) for place in range(1, len(evidence.suites) + 1))

    def suite(raw: Any) -> str:
        return choice("suite", raw, (ALL, *numbers))

    return Form(
        Field(name=WHAT, default="times", read=lambda raw: choice("quantity", raw, QUANTITIES)),
        Field(name=SUITE, default=ALL, read=suite),
        Field(name=REGIME, default=ALL, read=lambda raw: choice("regime", raw, (ALL, *REGIMES))),
    )


def parts(evidence: Evidence) -> tuple[Part, ...]:
    """Return the controls of the panel."""
    suites = [(ALL, "All of them"), *((str(place), name) for place, name in enumerate(evidence.suites, 1))]
    whats = [(name, name) for name in QUANTITIES]
    regimes = [(ALL, ALL), *((name, BOUNDS[name].removeprefix("the ")) for name in REGIMES)]
    return (
        Part(owner=WHAT, controls=(Switch(id=WHAT, label="What is compared", options=whats),)),
        Part(owner=SUITE, controls=(Menu(id=SUITE, label="Measurements", options=suites),)),
        Part(owner=REGIME, controls=(Switch(id=REGIME, label="Bound by", options=regimes),)),
    )


def look(values: Values, evidence: Evidence) -> AccuracyView:
    """Choose and grade cases."""
    wanted = {"saving"} if values[WHAT] == "savings" else {"unfused", "fused"}
    suite = None if values[SUITE] == ALL else evidence.suites[int(values[SUITE]) - 1]
    cases = tuple(
        case
        for case in evidence.cases
        if case.side in wanted and suite in {None, case.suite} and values[REGIME] in {ALL, case.regime}
    )
    groups = {name: [case for case in cases if case.suite == name] for name in evidence.suites}
    groups |= {f"bound by {BOUNDS[name]}": [case for case in cases if case.regime == name] for name in REGIMES}
    grades = tuple(grade(name, members) for name, members in groups.items() if members)
    return AccuracyView(values=values, cases=cases, grades=grades, steps=evidence.steps)


def grade(name: str, cases: Sequence[Case]) -> Grade:
    """Return the errors of at least one case."""
    deviations = np.array([case.deviation for case in cases])
    errors = np.abs(deviations)
    return Grade(
        name=name,
        cases=len(cases),
        median=float(np.median(errors)),
        p90=float(np.quantile(errors, 0.9)),
        worst=float(errors.max()),
        bias=float(np.median(deviations)),
        coverage=float(np.mean([case.covered for case in cases])),
    )
