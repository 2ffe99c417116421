"""The page of `fusesim validate --html`: figures as plain dictionaries, tables, nothing from the network."""

import dataclasses
import json

import pytest

from app import accuracy
from fusesim import validate
from fusesim.measured import Measured

ROW = Measured(
    source="<tiny>.json",
    suite="judge",
    path="cuda",
    mode="graph",
    ops=("add", "mul"),
    elements=4096,
    dtype="bf16",
    row=None,
    sets=256,
    fused=True,
    time=1.2e-6,
)


@pytest.fixture(scope="module")
def found():
    small = (ROW, dataclasses.replace(ROW, fused=False, time=2.3e-6))
    large = (
        dataclasses.replace(row, elements=2**26, sets=8, time=time)
        for row, time in zip(small, (66e-6, 132e-6), strict=True)
    )
    return validate.compare([*small, *large], device="h200-sxm")


def test_scatter_has_the_line_and_a_trace_for_each_regime(found):
    figure = accuracy.scatter(found.times)
    line, *marks = figure["data"]
    assert line["x"] == line["y"]
    assert [trace["name"] for trace in marks] == ["launch-bound", "dram-bound"]
    assert sorted(x for trace in marks for x in trace["x"]) == [1.2e-6, 2.3e-6, 66e-6, 132e-6]
    assert {figure["layout"][axis]["type"] for axis in ("xaxis", "yaxis")} == {"log"}
    json.dumps(figure, allow_nan=False)


def test_residuals_are_deviations_against_size(found):
    figure = accuracy.residuals("Times", found.times)
    marks = {(x, y) for trace in figure["data"] for x, y in zip(trace["x"], trace["y"], strict=True)}
    assert marks == {(each.row.elements, each.deviation) for each in found.times}
    assert "cuda graph fused, 2 ops (add+mul), 4 096 bf16" in figure["data"][0]["text"][0]


def test_colour_and_shape_tell_regimes_apart():
    assert set(accuracy.MARKS) == set(validate.REGIMES)
    for part in zip(*accuracy.MARKS.values(), strict=True):
        assert len(set(part)) == len(validate.REGIMES)


def test_the_page_escapes_and_holds_all_tables(found):
    page = accuracy.accuracy_html("a <b> & c", found, validate.ablate([ROW], device="h200-sxm"))
    assert "a &lt;b&gt; &amp; c" in page
    for title in ("Times", "Savings", "Worst times", "Worst savings", "Effects; "):
        assert f"<h2>{title}" in page
    assert page.count('<div class="chart">') == 3


def test_without_savings_there_is_nothing_of_them():
    page = accuracy.accuracy_html("one", validate.compare([ROW], device="h200-sxm"))
    assert "Savings" not in page
    assert page.count('<div class="chart">') == 2
