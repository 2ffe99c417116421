"""The lesson of the page of accuracy; figures come from the file of cases."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fusesim.validation_tables import percent

from .accuracy_view import BOUNDS, look
from .guide import Step

if TYPE_CHECKING:
    from .accuracy_view import Evidence, Grade
    from .fields import Form

TITLE: Final = "Accuracy"
LEAD: Final = (
    "How far predictions lie from measurements that no parameter was fitted on: chains and whole programs on one H200, "
    "by what binds them."
)
WORDS: Final = ("Regime", "Residual", "Ablation", "90 % interval", "Textbook model", "Calibrated model")
ALIKE: Final = 0.15
"""Errors that differ by no more than this share are called about the same."""


def steps(evidence: Evidence, form: Form) -> tuple[Step, ...]:
    """Return the steps of the lesson."""
    return (
        _book(evidence),
        _effect(evidence),
        _saving(evidence, form),
        _interval(evidence, form),
        _worst(evidence, form),
    )


def _grade(evidence: Evidence, form: Form, query: str) -> Grade:
    found = look(form.from_query(query)[0], evidence).whole
    assert found is not None  # noqa: S101 - the lesson speaks of suites that the file has
    return found


def _step(evidence: Evidence, name: str) -> tuple[float, float, float]:
    return next(step.times for step in evidence.steps if step.name == name)


def _book(evidence: Evidence) -> Step:
    book, whole = _step(evidence, "textbook"), _step(evidence, "+ pipelining")
    return Step(
        title="The textbook, held against measurements",
        text="Launches plus bytes over the datasheet's bandwidth: the [Textbook model]. Chains written by hand, run "
        "in a "
        "CUDA graph.",
        query="?suite=1",
        ask="Within how much does it predict nine in ten of their times?",
        options=("10 %", "25 %", "50 %"),
        right=2,
        answer=f"Within {percent(book[1])}; half of them within {percent(book[0])}. With all effects it is "
        f"{percent(whole[1])} "
        f"and {percent(whole[0])}.",
    )


def _effect(evidence: Evidence) -> Step:
    without = {
        step.name.removeprefix("all but "): step.times[1] for step in evidence.steps if step.name.startswith("all but")
    }
    most = sorted(without, key=lambda name: -without[name])[:3]
    told = ", ".join(f"without {name} {percent(without[name])}" for name in most)
    return Step(
        title="Which effect matters",
        text="An [ablation] leaves out one effect at a time and keeps all others.",
        query="?suite=1",
        ask="Which one is missed most?",
        options=("the cache", "the graph's replay", "how many blocks there are"),
        right=0 if most[0] == "cache" else 1,
        answer=f"Nine in ten errors are then {told}. What one kernel leaves in the cache for the next decides most "
        "about "
        "chains of middle size, the very ones for which fusion is asked about.",
    )


def _saving(evidence: Evidence, form: Form) -> Step:
    times, savings = (_grade(evidence, form, query) for query in ("?", "?what=savings"))
    return Step(
        title="Times and savings",
        text="A saving is the difference of two times. It is what one decides by.",
        query="?what=savings",
        ask="Is it predicted better or worse than the times?",
        options=("better", "worse", "about the same"),
        right=2 if math.isclose(savings.p90, times.p90, rel_tol=ALIKE) else 1 if savings.p90 > times.p90 else 0,
        answer=f"Nine in ten times are within {percent(times.p90)}, nine in ten savings within "
        f"{percent(savings.p90)}. A small "
        "difference of two large numbers inherits the errors of both, unless they go wrong together, as the two sides "
        "of one chain often do.",
    )


def _interval(evidence: Evidence, form: Form) -> Step:
    found, host = (_grade(evidence, form, query) for query in ("?", "?regime=host"))
    return Step(
        title="Does the model know what it does not know?",
        text="Each prediction comes with a [90 % interval].",
        query="?",
        ask="Which share of the measurements should lie inside?",
        options=("all of them", "about 90 %", "as many as possible"),
        right=1,
        answer=f"Here {percent(found.coverage)} do. All of them would mean that intervals are wider than they need "
        "be, and so "
        "say less than is known; far fewer, that the model is too sure of itself. It is where the host decides: "
        f"there {percent(host.coverage)} do.",
    )


def _worst(evidence: Evidence, form: Form) -> Step:
    grades = {name: _grade(evidence, form, f"?regime={name}") for name in ("dram", "arithmetic", "launch", "host")}
    told = ", ".join(f"{percent(found.p90)} if bound by {BOUNDS[name]}" for name, found in grades.items())
    ranked = sorted(grades, key=lambda name: -grades[name].p90)
    options = tuple(BOUNDS[name] for name in grades)
    return Step(
        title="Where it is wrong",
        text="Sort the cases by what binds them: the table has a line for each [regime].",
        query="?",
        ask="Where is the p90 largest?",
        options=options,
        right=tuple(grades).index(ranked[0]),
        answer=f"Nine in ten are within {told}. Bytes can be counted, and large tensors are mostly bytes. How busy "
        "each unit is, and what a few microseconds of starting and waiting consist of, is harder to tell; how soon a "
        "processor gets to its next launch depends on all else that it does.",
    )
