"""Predicted against measured programs, by the errors that the model is held to.

Where what is shipped misses a figure, what it reaches stands in MISSED with its target beside it; a test fails when a
figure that stood there is met, and when another is missed.
"""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_SPEC = importlib.util.spec_from_file_location("plan_accuracy", HERE / "plan_accuracy.py")
accuracy = importlib.util.module_from_spec(_SPEC)
sys.modules["plan_accuracy"] = accuracy
_SPEC.loader.exec_module(accuracy)

FIGURES = ("median", "p90")
MISSED = {
    ("patterns", "compiled", "median"): 0.072,  # target 7 %
    ("own patterns", "saving", "median"): 0.072,  # target 5 %
    ("random", "saving", "median"): 0.077,  # target 6 %
    ("judge", "saving", "median"): 0.075,  # target 6 %
}
COVERAGE = (0.85, 0.98)
FIGURED = [
    (suite, quantity, figure)
    for suite, quantities in accuracy.HELD_TO.items()
    for quantity, limits in quantities.items()
    for figure, limit in zip(FIGURES, limits, strict=True)
    if limit is not None
]


@pytest.mark.parametrize(("suite", "quantity", "figure"), FIGURED)
def test_errors_are_what_the_model_is_held_to(suite, quantity, figure):
    found = getattr(accuracy.graded(suite)[1][quantity], figure)
    target = accuracy.HELD_TO[suite][quantity][FIGURES.index(figure)]
    reached = MISSED.get((suite, quantity, figure))
    if reached is None:
        assert found <= target
    else:
        assert target < found <= reached, f"{found:.4f}: the target is {target}; met ones leave MISSED"


@pytest.mark.parametrize("suite", accuracy.SUITES)
def test_enough_programs_were_measured(suite):
    least = {"patterns": 24, "own patterns": 60, "random": 100, "judge": 90}[suite]
    assert len(accuracy.graded(suite)[0]) >= least


def test_intervals_hold_where_they_were_not_drawn():
    # spreads come from own patterns and random programs; h200_patterns.json is others' evidence
    every = accuracy.graded("patterns")[0]
    hits = [one[f"in_{side}"] for one in every for side in accuracy.SIDES]
    assert sum(hits) / len(hits) >= 0.75


@pytest.mark.parametrize("suite", ["own patterns", "random"])
def test_intervals_are_as_wide_as_they_say(suite):
    grades = accuracy.graded(suite)[1]
    inside = sum(grades[side].inside for side in accuracy.SIDES) / 2
    assert COVERAGE[0] <= inside <= COVERAGE[1]


def test_the_readme_states_what_comes_out():
    numbers = re.compile(r"-?\d+\.\d+|-?\d+")
    stated, made = (HERE.parents[1] / "README.md").read_text(encoding="utf-8"), accuracy.readme()
    assert numbers.sub("0", stated) == numbers.sub("0", made), "run python tests/reference/plan_accuracy.py --readme"
    pairs = zip(numbers.findall(stated), numbers.findall(made), strict=True)
    # another numpy may round the last digit the other way
    changed = [(old, new) for old, new in pairs if abs(float(old) - float(new)) > (0.101 if "." in old else 1)]
    assert not changed, "run python tests/reference/plan_accuracy.py --readme"
