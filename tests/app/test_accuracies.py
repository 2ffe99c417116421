"""The page of accuracy, its plain functions, and the file that it shows."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app import accuracies, accuracy_view, ids
from app.accuracy_lesson import steps
from app.pages.accuracy import accuracy
from fusesim.machine import EFFECTS

EVIDENCE = accuracy_view.load()
FORM = accuracy_view.accuracy_form(EVIDENCE)
PAGE = accuracy(None)
UNSET = str.maketrans("\N{NO-BREAK SPACE}\N{MICRO SIGN}", " u")  # figures as the library writes them
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def ask(query="", changes=None):
    answer = PAGE.respond({"settings": query, "changes": changes or {"url": query}})
    return answer | json.loads((answer["view"] or "{}").translate(UNSET))


def test_errors_are_those_of_the_cases():
    case = accuracy_view.Case(
        suite="s", side="fused", regime="dram", label="x", measured=2.0, predicted=2.5, low=1.9, high=2.6, scale=2.0
    )
    found = accuracy_view.grade("one", [case])
    assert (found.median, found.worst, found.bias, found.coverage) == (0.25, 0.25, 0.25, 1.0)


def test_the_file_holds_chains_and_programs_and_every_effect():
    assert sum(name.startswith("Chains") for name in EVIDENCE.suites) >= 3
    assert sum(name.startswith("Programs") for name in EVIDENCE.suites) >= 2
    assert [step.name for step in EVIDENCE.steps] == [
        "textbook",
        *(f"+ {name}" for name in EFFECTS),
        *(f"all but {name}" for name in EFFECTS),
    ]
    assert accuracy_view.FILE.stat().st_size < 400_000
    for case in EVIDENCE.cases:
        assert case.scale > 0
        assert case.low <= case.predicted <= case.high


def test_a_choice_is_graded_and_drawn():
    answer = ask("?what=savings&suite=1")
    cases = [case for case in EVIDENCE.cases if case.suite == EVIDENCE.suites[0] and case.side == "saving"]
    assert answer["texts"][accuracies.CASES] == str(len(cases))
    assert answer["parts"][accuracies.GRADES].count("<tr") > 1
    assert {len(json.dumps(chart)) < 90_000 for chart in answer["charts"].values()} == {True}


def test_where_nothing_was_measured_it_says_so_and_the_charts_stay():
    empty = next(
        f"?suite={suite}&regime={regime}"
        for suite in range(1, len(EVIDENCE.suites) + 1)
        for regime in accuracy_view.REGIMES
        if not accuracy_view.look(FORM.from_query(f"?suite={suite}&regime={regime}")[0], EVIDENCE).cases
    )
    answer = ask(empty)
    assert "No such case was measured" in answer["texts"][ids.SENTENCE]
    assert not answer.get("charts")


@pytest.mark.parametrize("query", ["?suite=99", "?suite=x", "?what=bytes", "?regime=cold"])
def test_a_malformed_address_is_noted(query):
    assert "The address" in ask(query)["alerts"][ids.problem(ids.URL)]


def test_the_lesson_asks_after_the_regime_that_the_table_shows_as_worst():
    view = accuracy_view.look(FORM.from_query("?")[0], EVIDENCE)
    worst = max((grade for grade in view.grades if grade.name.startswith("bound by")), key=lambda grade: grade.p90)
    last = steps(EVIDENCE, FORM)[-1]
    assert f"bound by {last.options[last.right]}" == worst.name


def test_every_step_of_the_lesson_is_a_view():
    for step in steps(EVIDENCE, FORM):
        assert ask(step.query)["alerts"][ids.problem(ids.URL)] == ""


@settings(max_examples=100, deadline=None)
@given(changes=st.dictionaries(st.sampled_from([*FORM.fields, "url", "more", "x"]), JSON, max_size=3), query=JSON)
def test_anything_sent_is_answered(changes, query):
    for request in ({"changes": changes, "settings": query}, changes, query):
        answer = PAGE.respond(request)
        assert set(answer) == {"query", "alerts", "view"}
        json.loads(answer["view"] or "{}", parse_constant=pytest.fail)  # a browser knows no NaN
