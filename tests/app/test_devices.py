"""The page of devices, its plain functions, and device files written out."""

import json
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusesim
from app import device_page, device_view, ids
from app.catalogue import shipped
from app.device_file import changed, quantity, to_toml
from app.device_lesson import steps
from app.pages.devices import devices
from fusesim.errors import InputError
from fusesim.hardware import HardwareProfile

UNSET = str.maketrans("\N{NO-BREAK SPACE}\N{MICRO SIGN}", " u")  # figures as the library writes them
DEVICES = shipped()
PAGE = devices(DEVICES)
FORM = device_view.device_form(DEVICES)
CONTROLS = [name for each in FORM.fields.values() for name in (each.name, *each.also)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def ask(query="", changes=None):
    answer = PAGE.respond({"settings": query, "changes": changes or {"url": query}})
    return answer | json.loads((answer["view"] or "{}").translate(UNSET))


def texts(answer):
    return answer["texts"]


@pytest.mark.parametrize("name", fusesim.devices())
def test_a_device_written_out_reads_back_the_same(name, tmp_path):
    profile = fusesim.device(name)
    held = tomllib.loads(to_toml(profile))
    assert HardwareProfile.model_validate(held | {"id": name}) == profile
    path = tmp_path / f"{name}.toml"
    path.write_text(to_toml(profile), encoding="utf-8")
    assert fusesim.load_device(path).dram_bandwidth == profile.dram_bandwidth


def test_every_figure_has_its_source():
    shown = ask("?first=h200-sxm&second=none")["parts"][device_page.FACTS]
    for path, figure in fusesim.device("h200-sxm").figures():
        assert f"<code>{path}</code>" in shown
        assert all(key in shown for key in figure.source)
    assert "<script" not in shown


def test_a_copy_is_edited_and_downloaded():
    first = ask("?first=h100-nvl", {"edit:memory.bandwidth": "6 TB/s", "edit:memory.pin_rate": ""})
    assert "memory.bandwidth:6.0TB/s" in first["query"]
    held = tomllib.loads(first["verbatim"][device_page.FILE])
    assert held["memory"]["bandwidth"] == {"value": 6.0, "unit": "TB/s", "source": ["own"]}
    assert "pin_rate" not in held["memory"]
    again = ask(first["query"])
    assert again["verbatim"] == first["verbatim"]
    undone = ask(first["query"], {"undo": "all"})
    assert undone["query"] == "?first=h100-nvl"


def test_a_copy_that_contradicts_itself_is_refused_and_the_picture_stays():
    answer = ask("?first=l4", {"edit:memory.bandwidth": "600 GB/s"})
    assert "bus width x pin rate gives" in answer["alerts"][ids.problem("edits")]
    assert answer["view"] is None
    assert answer["query"] == "?first=l4"
    opened = ask("?first=l4&edits=memory.bandwidth:600GB/s")
    assert "so the defaults are shown" in opened["alerts"][ids.problem(ids.URL)]
    assert opened["charts"][device_page.RATIOS]


@pytest.mark.parametrize("text", ["6", "6 s", "-1 TB/s", "0 TB/s", "nan TB/s", "1e999 TB/s", "x" * 200, 7, None, [1]])
def test_what_is_no_figure_is_refused_in_a_sentence(text):
    answer = ask("", {"edit:memory.bandwidth": text})
    assert answer["alerts"][ids.problem("edits")].endswith((".", "?"))


@pytest.mark.parametrize("text", ["+6 TB/s", "6,000 GB/s", "6_000 GB/s", "6E12 B/s", "6e+12 B/s"])
def test_a_figure_may_be_written_in_every_way_that_is_read(text):
    answer = ask("?first=h100-nvl", {"edit:memory.bandwidth": text, "edit:memory.pin_rate": ""})
    assert not any(answer["alerts"].values())
    held = tomllib.loads(answer["verbatim"][device_page.FILE])["memory"]["bandwidth"]
    assert held["value"] * {"TB/s": 1e12, "GB/s": 1e9, "B/s": 1}[held["unit"]] == 6e12


def test_a_decimal_comma_is_refused_and_not_dropped():
    answer = ask("?first=h100-nvl", {"edit:memory.bandwidth": "3,35 TB/s"})
    assert "a separator that groups no thousands" in answer["alerts"][ids.problem("edits")]
    with pytest.raises(InputError, match="groups no thousands"):
        quantity("3,35 TB/s")


def test_a_copy_may_leave_figures_out():
    profile = changed(fusesim.device("h200-sxm"), {"cache.l2": ""}, "Without")
    assert profile.cache.l2 is None


def test_a_required_figure_that_is_cleared_is_missing():
    with pytest.raises(InputError, match=r"^memory\.bandwidth is missing: a device needs it"):
        changed(fusesim.device("h200-sxm"), {"memory.bandwidth": ""}, "Without")
    said = ask("?first=l4", {"edit:memory.bandwidth": ""})["alerts"][ids.problem("edits")]
    assert said.startswith("memory.bandwidth is missing")  # a name in code is no capitalised word


def test_a_figure_without_its_unit_is_told_by_its_name_as_it_is_written():
    said = ask("?first=h200-sxm", {"edit:sm.fp64_per_clock": "5 GB/s"})["alerts"][ids.problem("edits")]
    assert "Sm." not in said
    assert said.endswith((".", "?"))


def test_ratios_are_to_the_first_device():
    chart = ask("?first=h100-sxm&second=h200-sxm")["charts"][device_page.RATIOS]
    first, second = chart["data"]
    assert set(first["x"]) == {1.0}
    assert dict(zip(second["y"], second["x"], strict=True))["memory bandwidth"] == pytest.approx(4.8 / 3.35, rel=1e-3)


@pytest.mark.parametrize("second", ["none", "h200-sxm", "t4"])
def test_the_axis_of_ratios_has_more_than_one_tick_where_they_differ(second):
    chart = ask(f"?first=h100-sxm&second={second}")["charts"][device_page.RATIOS]
    seen = [x for trace in chart["data"] for x in trace["x"]]
    ticks = [tick for tick in chart["layout"]["xaxis"]["tickvals"] if min(seen) <= tick <= max(seen)]
    assert len(ticks) >= (1 if second == "none" else 3)


def test_the_call_runs(capsys):
    exec(ask("?first=t4")["verbatim"][ids.CALL], {})
    assert "T4" in capsys.readouterr().out


def test_every_step_of_the_lesson_is_a_view():
    for step in steps(DEVICES):
        assert ask(step.query)["alerts"][ids.problem(ids.URL)] == ""


@settings(max_examples=120, deadline=None)
@given(changes=st.dictionaries(st.sampled_from([*CONTROLS, "url", "more", "x"]), JSON, max_size=3), query=JSON)
def test_anything_sent_is_answered(changes, query):
    for request in ({"changes": changes, "settings": query}, changes, query):
        answer = PAGE.respond(request)
        assert set(answer) == {"query", "alerts", "view"}
        json.loads(answer["view"] or "{}", parse_constant=pytest.fail)  # a browser knows no NaN
