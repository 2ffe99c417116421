"""After how many calls compiling pays, and that its defaults are what was measured."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import median

import pytest

from fusesim.breakeven import CACHED, FEW_OPS, MODEL, PATTERN, break_even, compile_time
from fusesim.errors import InputError

MEASURED = Path(__file__).parents[1] / "reference"


def test_calls_are_compile_time_over_saving():
    assert break_even(0.5, 200e-6) == 2500  # 0.5 s / 200 us
    assert break_even(0.5, 199e-6) == 2513  # 2512.6 calls: the 2513th pays the rest
    assert break_even(0.3, 0.1) == 3  # 0.3 / 0.1 is 2.9999999999999996 or 3.0000000000000004, not 4 calls


def test_what_saves_nothing_never_pays():
    assert break_even(0.5, 0.0) == math.inf
    assert break_even(0.5, -1e-6) == math.inf
    assert break_even(0.0, -1e-6) == math.inf


def test_what_compiles_in_no_time_pays_with_the_first_call():
    assert break_even(0.0, 1e-6) == 1


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan, "1 s"])
def test_a_compile_time_is_a_time(value):
    with pytest.raises(InputError, match="compile_time is"):
        break_even(value, 1e-6)


def test_a_saving_is_a_number():
    with pytest.raises(InputError, match="saving is nan s"):
        break_even(1.0, math.nan)


@pytest.mark.parametrize(
    ("stated", "file"),
    [(PATTERN, "h200_patterns.json"), (MODEL, "h200_models.json"), (CACHED, "h200_own_patterns.json")],
)
def test_defaults_are_what_was_measured(stated, file):
    rows = json.loads((MEASURED / file).read_text(encoding="utf-8"))["rows"]
    seconds = [row["compile_s"] for row in rows if "compile_s" in row]
    assert stated.cases == len(seconds)
    assert stated.seconds == pytest.approx(median(seconds), rel=0.01)
    assert stated.low == pytest.approx(min(seconds), rel=0.01)
    assert stated.high == pytest.approx(max(seconds), rel=0.01)
    assert file in stated.source


def test_a_path_has_its_own():
    assert compile_time("inductor", FEW_OPS) is PATTERN
    assert compile_time("inductor", FEW_OPS, cached=True) is CACHED
    assert compile_time("inductor", FEW_OPS + 1) is MODEL
    assert compile_time("torch", 100).seconds == 0  # eager mode compiles nothing


def test_a_path_that_nobody_measured_asks():
    with pytest.raises(InputError, match='no compile time was measured for path "cuda"; give compile_seconds'):
        compile_time("cuda", 1)
