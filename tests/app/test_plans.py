"""The page of patterns and plans, its plain functions: what a browser sends in, what it is shown out."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusesim
from app import ids, plan_form, plan_tables
from app.catalogue import shipped
from app.pages.plans import plans
from app.plan_answers import DRAWING, MEMORY, REASONS, TIMELINE
from app.plan_lesson import steps
from app.plan_view import edited, look, source_of
from fusesim import patterns, units
from fusesim.errors import PlanError
from fusesim.legality import check_plan
from fusesim.plans import compare

UNSET = str.maketrans("\N{NO-BREAK SPACE}\N{MICRO SIGN}", " u")  # figures as the library writes them
DEVICES = shipped()  # not a fixture: Hypothesis would print all of it with every failure
PAGE = plans(DEVICES)
FORM = plan_form.plan_form(DEVICES)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
CONTROLS = [name for each in FORM.fields.values() for name in (each.name, *each.also)]


def ask(query="", **changes):
    changes = {control.replace("_", "-") if control != "head_dim" else control: raw for control, raw in changes.items()}
    answer = PAGE.respond({"settings": query, "changes": changes or {"url": query}})
    return answer | json.loads((answer["view"] or "{}").translate(UNSET))


def texts(answer):
    return answer["texts"]


def test_figures_are_the_librarys():
    shown = texts(ask("?pattern=softmax&composite=no&rows=8192&cols=1024&device=a100"))
    found = compare(patterns.softmax(rows=8192, cols=1024, composite=False), device="a100-sxm-80gb")
    for place, price in ((ids.UNFUSED_TIME, found.unfused), (ids.FUSED_TIME, found.fused)):
        assert shown[place] == units.format_quantity(float(price.time), units.TIME)
    assert shown[ids.SPEEDUP] == units.format_ratio(found.speedup)
    assert shown[ids.UNFUSED_KERNELS] == f"{found.unfused.kernels:.0f}"


@pytest.mark.parametrize("name", patterns.PATTERNS)
def test_every_pattern_is_drawn_and_told(name):
    answer = ask(f"?pattern={name}", more=1)
    parts = answer["parts"]
    assert not any(answer["alerts"].values())
    assert parts[DRAWING].startswith("<svg")
    assert not answer.get("charts")  # what takes longer draws no chart anew
    assert parts[plan_tables.STRATEGIES_TABLE].count("<tr") == 10  # nine strategies and the heads
    chart = ask(f"?pattern={name}")["charts"][TIMELINE]
    assert {bar["name"] for bar in chart["data"]} == {"unfused", "fused"}
    assert len(json.dumps(chart)) < 60_000


def test_the_call_reproduces_the_view(capsys):
    answer = ask("?pattern=rmsnorm&tokens=4096&strategy=tvm")
    exec(answer["verbatim"][ids.CALL], {})  # the very text that is copied
    assert f"{float(texts(answer)[ids.UNFUSED_TIME].split()[0]):g} us" in capsys.readouterr().out


def test_the_call_of_an_edited_plan_reproduces_it_too(capsys):
    answer = ask("?pattern=rmsnorm&edits=rsqrt~mul_1")
    assert texts(answer)[ids.FUSED_KERNELS] == "2"
    exec(answer["verbatim"][ids.CALL], {})
    assert f"{float(texts(answer)[ids.FUSED_TIME].split()[0]):.3g}" in capsys.readouterr().out


def test_an_address_gives_back_the_view():
    query = "?pattern=chain&elements=4096&ops=gelu*8,add&device=t4&launch=stream&strategy=xla&compile=12"
    values, note = FORM.from_query(query)
    assert note is None
    assert FORM.to_query(values) == query
    assert FORM.from_query("?")[0] == FORM.defaults


def test_another_pattern_begins_at_its_own_sizes():
    answer = ask("?pattern=rmsnorm&tokens=64&edits=rsqrt~mul_1", pattern="swiglu")
    assert answer["query"] == "?pattern=swiglu"
    assert answer["widgets"]["tokens"] == "2048"


def test_an_edge_is_cut_and_joined():
    device = DEVICES.find("h200-sxm")
    plan = fusesim.plan(patterns.rmsnorm(), "inductor")
    cut = edited(plan, (("rsqrt", "mul_1"),), device)
    assert [group.nodes for group in cut.groups] == [("mul", "mean", "add", "rsqrt"), ("mul_1", "mul_2")]
    check_plan(cut)
    eager = fusesim.plan(patterns.rmsnorm(), "eager")
    joined = edited(eager, (("mul", "mul_1"),), device)
    assert len(joined.groups) == 2  # what lies between comes along; the last product stays alone
    check_plan(joined)
    with pytest.raises(PlanError, match="cannot share a kernel"):
        edited(fusesim.plan(patterns.matmul_bias_relu(), "eager"), (("matmul", "nothing"),), device) and edited(
            fusesim.plan(patterns.swiglu_mlp(), "eager"), (("matmul", "matmul_2"),), device
        )


def test_picking_and_asking():
    one = ask("?pattern=rmsnorm", pick="mean")
    assert one["query"] == "?pattern=rmsnorm&ask=mean".replace("pattern=rmsnorm&", "")
    two = ask(one["query"], pick="mul")
    assert "can share a kernel" in two["parts"][plan_tables.ASKED]
    assert "67.1 MB go from the one to the other" in two["parts"][plan_tables.ASKED]  # 8192 x 4096 x 2 B
    assert ask(two["query"], pick="mul")["query"] == "?ask=mean"
    assert "?ask=mul,mean" in ask("", edge="mul~mean")["query"]


def test_why_not_is_a_sentence():
    told = ask("?pattern=swiglu_mlp&ask=matmul,matmul_2")["parts"][plan_tables.ASKED]
    assert "cannot share a kernel" in told


def test_break_even_is_compile_time_over_saving():
    shown = texts(ask("?compile=30"))
    found = compare(patterns.rmsnorm())
    assert f"{round(30 / found.saving):,}".replace(",", " ") in shown["break-even"]
    assert "never pays" in texts(ask("?pattern=matmul"))["break-even"]
    few = re.search(r"([\d.]+) s / ([\d.]+) s = ([\d.]+) calls", texts(ask("?tokens=1000000000"))["break-even"])
    assert float(few[3]) == pytest.approx(float(few[1]) / float(few[2]), rel=0.01)


@pytest.mark.parametrize(
    ("query", "control", "raw", "owner", "said"),
    [
        ("?pattern=transformer_block", "heads", "7", "heads", "does not divide"),
        ("", "tokens", "many", "tokens", "many"),
        ("", "tokens", "0", "tokens", 'Tokens "0" is out of range'),
        ("", "hidden", "NaN", "hidden", 'Hidden size "NaN" is not a whole number'),
        ("", "pattern", "banana", "pattern", "banana"),
        ("", "compile", "-1", "compile", "0 to 600"),
        ("", "device", "h20", "device", "did you mean"),
        ("?pattern=chain", "ops", "banana", "ops", "Unknown op"),
    ],
)
def test_bad_input_says_so_where_it_arises_and_the_picture_stays(query, control, raw, owner, said):
    answer = ask(query, **{control: raw})
    assert said in answer["alerts"][ids.problem(owner)]
    assert not answer.get("charts")
    assert answer["query"] == (query or "?")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changes=st.dictionaries(st.sampled_from([*CONTROLS, "url", "more", "x"]), JSON, max_size=3), query=JSON)
def test_anything_sent_is_answered(changes, query):
    for request in ({"changes": changes, "settings": query}, {"changes": changes}, changes, query):
        answer = PAGE.respond(request)
        assert set(answer) == {"query", "alerts", "view"}
        json.loads(answer["view"] or "{}", parse_constant=pytest.fail)  # a browser knows no NaN


@pytest.mark.parametrize("size", ["1", "1000000000000000000", "7", "1048577"])
@pytest.mark.parametrize("name", patterns.PATTERNS)
def test_any_size_is_priced_or_refused(name, size):
    for control in patterns.parameters(name):
        if control in plan_form.HIGHEST:
            answer = ask(f"?pattern={name}", **{control: size})
            assert MEMORY in answer.get("charts", ()) or any(answer["alerts"].values())


def test_memory_over_time_ends_at_the_outputs():
    chart = ask("?pattern=rmsnorm")["charts"][MEMORY]
    fused = next(line for line in chart["data"] if line["name"] == "fused")
    assert fused["y"][-1] == 8192 * 4096 * 2


def test_every_step_of_the_lesson_is_a_view():
    told = steps()
    assert len(told) >= 8
    for step in told:
        values, note = FORM.from_query(step.query)
        assert note is None, step.query
        look(values, DEVICES)
        assert 0 <= step.right < len(step.options)


def test_source_is_written_for_what_can_be_read():
    assert "relu" in source_of(fusesim.plan(patterns.bias_relu(), "inductor")).cuda
    assert source_of(fusesim.plan(patterns.rmsnorm(), "eager")) is None


def test_source_that_is_not_the_priced_kernel_says_so():
    query = "?pattern=rmsnorm&strategy=inductor"
    told = ask(query)
    assert any("reads 67.1 MB again" in line for line in re.findall("<li>(.*?)</li>", told["parts"][REASONS]))
    assert told["texts"][plan_tables.EDGES_NOTE].endswith("On top, kernels read 67.1 MB again within themselves.")
    source = ask(query, more=1)["parts"][plan_tables.SOURCE]
    assert "memory is read once" in source
    assert "The kernel that is priced is another one" in source
    assert "it reads 67.1 MB again" in source


def test_source_of_a_kernel_that_reads_once_claims_no_other():
    query = "?pattern=bias_relu&strategy=inductor"
    assert "another one" not in ask(query, more=1)["parts"][plan_tables.SOURCE]
    assert "On top" not in ask(query)["texts"][plan_tables.EDGES_NOTE]


def test_a_plan_that_does_not_fit_is_told():
    told = ask("?pattern=bias_relu&rows=2097152&cols=131072")["parts"][REASONS]
    assert told.count("ill fit") == 1
    assert "more than the 141.0 GB of h200-sxm" in told


def test_the_drawing_escapes_and_names_what_can_be_picked():
    drawn = ask("?pattern=rmsnorm")["parts"][DRAWING]
    assert 'data-change="pick" data-value="mean"' in drawn
    assert 'data-change="edge" data-value="mul~mean"' in drawn
    assert drawn.count('class="box') == 1
