"""`fusesim check`: bytes and a time in, a verdict out."""

from __future__ import annotations

import json

import pytest


def test_a_verdict_in_sentences(run):
    outcome = run("check", "268 MB", "63 us")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("near the ceiling: 268.0 MB in 63.0 us are 4.25 TB/s, 89 % of 4.8 TB/s\n- ")


@pytest.mark.parametrize(("size", "time"), [("268000000", "63 us"), ("268 MB", "4253.968253968254 GB/s")])
def test_bytes_without_a_unit_and_rates(run, size, time):
    printed = json.loads(run("check", size, time, "--json").out)
    assert printed["bytes"] == 268e6
    assert printed["time"] == pytest.approx(63e-6)


def test_clock_cap_slice_and_working_set(run):
    line = ("check", "268 MB", "500 us", "--mig", "1/7", "--clock", "1.2 GHz", "--power-cap", "400 W", "--json")
    printed = json.loads(run(*line).out)
    assert printed["ceiling"] == pytest.approx(4.8e12 / 8)
    again = json.loads(run("check", "268 MB", "50 us", "--elements", "1024x1024", "--json").out)
    assert again["verdict"] == "L2-resident"


def test_a_limit_for_ci(run):
    assert run("check", "268 MB", "70 us", "--fail-above", "1.1").code == 0
    outcome = run("check", "268 MB", "140 us", "--fail-above", "1.1")
    assert outcome.code == 1
    assert outcome.out.startswith("kernel problem")  # it is told all the same
    assert outcome.err.count("\n") == 1
    assert "times the predicted" in outcome.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["10 lightyears", "1 us"], "BYTES"),
        (["10 MB", "soon"], "TIME"),
        (["10 MB", "1 us", "--mig", "half"], "--mig"),
        (["10 MB", "1 us", "--mig", "5/7"], "mig is 5/7"),
        (["10 MB", "1 us", "--fail-above", "-1"], "--fail-above"),
        (["10 MB", "1 us", "--fail-above", "nan"], "--fail-above"),
        (["10 MB", "1 us", "--elements", "10^9"], "more than the"),
        (["10 MB", "1 us", "--device", "h20"], "unknown device"),
        (["10 MB", "1 us", "--launch", "later"], "launch mode"),
        (["0", "1 us"], "BYTES"),
    ],
)
def test_bad_input_is_one_sentence(run, line, message):
    outcome = run("check", *line)
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_missing_argument_is_a_usage_error(run):
    assert run("check", "10 MB").code == 2
