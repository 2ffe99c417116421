"""Predicted against measured programs, by the errors that the model is held to.

Where what is shipped misses a figure, what it reaches stands in MISSED with its target beside it; a test fails when a
figure that stood there is met, and when another is missed.
"""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from fusesim.common_kernels import RESIDUAL

HERE = Path(__file__).parent
_SPEC = importlib.util.spec_from_file_location("plan_accuracy", HERE / "plan_accuracy.py")
accuracy = importlib.util.module_from_spec(_SPEC)
sys.modules["plan_accuracy"] = accuracy
_SPEC.loader.exec_module(accuracy)

SAME_KERNELS = ("again", "own_patterns", "own_patterns_dropped", "own_patterns_first", "patterns")
"""Files whose programs were measured as eager and compiled, some of them the same kernels either way."""
FIGURES = ("median", "p90")
MISSED: dict[tuple[str, str, str], float] = {}
COVERAGE = (0.83, 0.98)
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
    least = {"patterns": 24, "own patterns": 60, "random": 100, "judge": 100}[suite]
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


@pytest.mark.parametrize("suite", accuracy.SUITES)
def test_intervals_of_savings_hold(suite):
    # what both sides run alike cancels (fusesim.common_kernels), and what is left must still be wide enough
    assert COVERAGE[0] <= accuracy.graded(suite)[1]["saving"].inside <= COVERAGE[1]


def test_the_same_kernels_lie_as_far_apart_as_the_residual_says():
    apart = [change for name in SAME_KERNELS for change in same_kernels(name)]
    assert len(apart) == 21
    assert 0.85 <= sum(abs(change) <= RESIDUAL for change in apart) / len(apart) <= 0.95


def same_kernels(name):
    """Return what compiling changed, relative, where both sides of a program are the same library kernels."""
    for row in json.loads((HERE / f"h200_{name}.json").read_text(encoding="utf-8"))["rows"]:
        sides = [row.get(side, {}) for side in accuracy.SIDES]
        names = [[kernel[0] for kernel in side.get("kernels", ())] for side in sides]
        if names[0] and names[0] == names[1] and not any("triton" in one for one in names[0]):
            eager, compiled = (side["graph"]["med"] for side in sides)
            yield 1 - compiled / eager


def test_the_readme_states_what_comes_out():
    numbers = re.compile(r"-?\d+\.\d+|-?\d+")
    stated, made = (HERE.parents[1] / "README.md").read_text(encoding="utf-8"), accuracy.readme()
    assert numbers.sub("0", stated) == numbers.sub("0", made), "run python tests/reference/plan_accuracy.py --readme"
    pairs = zip(numbers.findall(stated), numbers.findall(made), strict=True)
    # another numpy may round the last digit the other way
    changed = [(old, new) for old, new in pairs if abs(float(old) - float(new)) > (0.101 if "." in old else 1)]
    assert not changed, "run python tests/reference/plan_accuracy.py --readme"
