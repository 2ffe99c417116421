"""The roofline page, its plain functions."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusesim
from app import ids, roofline_view, rooflines
from app.catalogue import shipped
from app.pages.roofline import roofline
from app.roofline_lesson import steps
from fusesim import patterns, units
from fusesim.plans import compare

UNSET = str.maketrans("\N{NO-BREAK SPACE}\N{MICRO SIGN}", " u")  # figures as the library writes them
DEVICES = shipped()
PAGE = roofline(DEVICES)
FORM = roofline_view.roofline_form(DEVICES)
CONTROLS = [name for each in FORM.fields.values() for name in (each.name, *each.also)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def ask(query="", changes=None):
    answer = PAGE.respond({"settings": query, "changes": changes or {"url": query}})
    return answer | json.loads((answer["view"] or "{}").translate(UNSET))


def view(query):
    return roofline_view.look(FORM.from_query(query)[0], DEVICES)


def test_one_multiplication_stands_at_a_quarter_flop_per_byte():
    shown = view("?pattern=chain&ops=1&device=h100-sxm")
    assert shown.totals[0].intensity == 0.25  # 1 FLOP, 2 B in, 2 B out
    memory = shown.ceilings[0]
    assert shown.attainable(0.25) == memory.rate * 0.25 == 3.35e12 / 4


def test_ridge_points_are_level_over_slope():
    ceilings = {each.name: each for each in view("?device=h100-sxm").ceilings}
    tensor = roofline_view.ridge(tuple(ceilings.values()), ceilings["bf16 tensor"])
    assert tensor == pytest.approx(295, abs=1)  # 989 TFLOP/s / 3.35 TB/s, dense
    assert "special functions" in ceilings
    assert "L2 cache" in ceilings


def test_points_are_the_librarys():
    shown = view("?pattern=softmax&composite=no")
    found = compare(patterns.softmax(composite=False))
    assert [point.time for point in shown.totals] == [float(found.unfused.time), float(found.fused.time)]
    assert len(shown.kernels) == len(found.unfused.per_kernel) + len(found.fused.per_kernel)
    texts = ask("?pattern=softmax&composite=no")["texts"]
    assert texts[ids.SPEEDUP] == units.format_ratio(found.speedup)


@pytest.mark.parametrize("name", patterns.PATTERNS)
@pytest.mark.parametrize("model", ["calibrated", "textbook"])
def test_every_pattern_has_its_picture(name, model):
    answer = ask(f"?pattern={name}&model={model}&second=mi300x&third=t4")
    assert answer["alerts"][ids.problem(ids.URL)] == ""
    chart = answer["charts"][rooflines.ROOFLINE]
    assert len(json.dumps(chart)) < 60_000
    assert {"unfused", "fused"} <= {line.get("name") for line in chart["data"]}


@pytest.mark.parametrize("name", fusesim.devices())
def test_every_device_has_its_ceilings(name):
    answer = ask(f"?device={name}")
    if answer["alerts"][ids.problem(ids.URL)]:
        answer = ask(f"?device={name}&model=textbook")
    assert answer["alerts"][ids.problem(ids.URL)] == ""
    assert "memory, " in answer["parts"][rooflines.LIMITS]


def test_what_stands_above_the_slope_says_why():
    said = ask("?pattern=chain&ops=5&elements=4194304&device=rtx-4090")["parts"][rooflines.SAID]
    assert "L2 cache" in said


def test_every_step_of_the_lesson_is_a_view():
    for step in steps(DEVICES, FORM):
        assert FORM.from_query(step.query)[1] is None


def test_the_call_runs(capsys):
    exec(ask("?pattern=swiglu")["verbatim"][ids.CALL], {})
    assert "swiglu" in capsys.readouterr().out


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changes=st.dictionaries(st.sampled_from([*CONTROLS, "url", "more", "x"]), JSON, max_size=3), query=JSON)
def test_anything_sent_is_answered(changes, query):
    for request in ({"changes": changes, "settings": query}, changes, query):
        answer = PAGE.respond(request)
        assert set(answer) == {"query", "alerts", "view"}
        json.loads(answer["view"] or "{}", parse_constant=pytest.fail)  # a browser knows no NaN
