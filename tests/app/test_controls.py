import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import controls, ids
from app.catalogue import shipped
from app.controls import Settings, change, change_all, from_query, to_query, widget_values
from fusesim.errors import InputError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
SETTINGS = st.builds(
    Settings,
    ops=st.integers(1, 32),
    elements=st.integers(1, 10**18),
    dtype=st.sampled_from(["fp64", "fp32", "bf16", "fp16", "fp8", "int8"]),
    device=st.sampled_from(["h100-sxm", "t4", "mi300x"]),
    launch=st.sampled_from(controls.MODES),
    launch_overhead=st.none() | st.integers(0, 20_000_000).map(lambda picoseconds: float(f"{picoseconds}e-12")),
    dram_bandwidth=st.none() | st.floats(1e6, 1e18),
)
DEVICES = shipped()  # not a fixture: Hypothesis would print all of it with every failure
CONTROLS = (*ids.WIDGETS, ids.PRESET, ids.FOLLOW)


@given(settings=SETTINGS)
def test_an_address_gives_back_the_very_same_settings(settings):
    assert from_query(to_query(settings), DEVICES) == (settings, None)


def test_an_address_names_all_that_is_not_followed():
    assert to_query(Settings()) == "?ops=5&elements=33554432&dtype=bf16&device=h100-sxm&launch=stream"
    explicit = to_query(Settings(launch_overhead=4e-6, dram_bandwidth=2e12))
    assert explicit.endswith("&launch_overhead=4us&bandwidth=2TB/s")


def test_what_an_address_leaves_out_has_its_default(catalogue):
    assert from_query("", catalogue) == (Settings(), None)
    assert from_query("?ops=7&elements=8192x4096&device=H100", catalogue) == (Settings(ops=7), None)


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("?ops=banana", 'ops "banana" is not a whole number'),
        ("?ops=99", "ops is 99; give a whole number from 1 to 32"),
        ("?ops=", 'ops "" is not'),
        ("?ops=\N{SUPERSCRIPT TWO}", "is not a whole number"),
        ("?elements=0", "out of range"),
        ("?elements=1.5", "not a whole number"),
        ("?dtype=bf61", 'did you mean "bf16"'),
        ("?device=h20", 'unknown device "h20"; did you mean'),
        ("?launch=latency", 'unknown launch mode "latency"'),
        ("?launch_overhead=4", '"4" has no unit'),
        ("?launch_overhead=21us", "give 0 to 20 us"),
        ("?launch_overhead=nan us", "not"),
        ("?bandwidth=3us", "bandwidth"),
        ("?ops=1&ops=2", '"ops" is given twice'),
        ("?" + "a" * 3000, "at most 2000 characters"),
        (None, "not a text"),
        (["?ops=1"], "not a text"),
    ],
)
def test_a_malformed_address_falls_back_to_the_defaults_and_says_why(query, wrong, catalogue):
    settings, note = from_query(query, catalogue)
    assert settings == Settings()
    assert note is not None
    assert wrong in note
    assert note.startswith("The address was not understood, so the defaults are shown: ")


@pytest.mark.parametrize("query", ["?utm=1&ops=3", "?ops=3&garbage", "?ops=3&%ff=%ff"])
def test_a_foreign_setting_is_passed_over_with_a_note(query, catalogue):
    settings, note = from_query(query, catalogue)
    assert settings == Settings(ops=3)
    assert "passed over" in note


def test_the_ends_of_the_sliders_are_accepted(catalogue):
    view = Settings()
    assert change(view, ids.OPS, 32, catalogue).ops == 32
    assert change(view, ids.SIZE, 10, catalogue).elements == 1024
    assert change(view, ids.SIZE, 30, catalogue).elements == 2**30
    assert change(view, ids.OVERHEAD, 0, catalogue).launch_overhead == 0
    assert change(view, ids.OVERHEAD, 20, catalogue).launch_overhead == 20e-6
    assert from_query("?launch_overhead=20us", catalogue)[0].launch_overhead == 20e-6


def test_a_slider_over_magnitudes_holds_the_exponent(catalogue):
    assert change(Settings(), ids.SIZE, 12.25, catalogue).elements == round(2**12.25)
    assert change(Settings(), ids.RATE, 12, catalogue).dram_bandwidth == 1e12


def test_text_sets_an_exact_value(catalogue):
    assert change(Settings(), ids.ELEMENTS, "4097", catalogue).elements == 4097
    assert change(Settings(), ids.PRESET, "8192x4096", catalogue).elements == 33554432
    assert change(Settings(), ids.BANDWIDTH, "2.5 TB/s", catalogue).dram_bandwidth == 2.5e12


@pytest.mark.parametrize("raw", ["", "  ", None])
def test_an_empty_bandwidth_follows_the_device(raw, catalogue):
    assert change(Settings(dram_bandwidth=1e12), ids.BANDWIDTH, raw, catalogue).dram_bandwidth is None
    assert change(Settings(dram_bandwidth=1e12), ids.FOLLOW, raw, catalogue).dram_bandwidth is None


def test_the_launch_overhead_follows_the_mode_until_it_is_moved(catalogue):
    graph = change(Settings(), ids.LAUNCH, "graph", catalogue)
    assert (Settings().overhead, graph.overhead) == (4e-6, 1e-6)
    moved = change(Settings(), ids.OVERHEAD, 4, catalogue)  # where it stood anyway
    assert change(moved, ids.LAUNCH, "graph", catalogue).overhead == 4e-6


def test_widgets_show_the_settings(catalogue):
    values = widget_values(Settings(), catalogue)
    assert set(values) == set(ids.WIDGETS)
    assert (values[ids.SIZE], values[ids.ELEMENTS], values[ids.OVERHEAD], values[ids.BANDWIDTH]) == (
        25,
        "33554432",
        4,
        "",
    )
    far = widget_values(Settings(elements=10**18, dram_bandwidth=1e18), catalogue)
    assert (far[ids.SIZE], far[ids.RATE]) == (30, controls.RATE_EXPONENTS[1])  # as far as the sliders go


@given(settings=SETTINGS)
def test_widgets_put_back_change_nothing_that_text_holds(settings):
    values = widget_values(settings, DEVICES)
    texts = {name: values[name] for name in (ids.OPS, ids.ELEMENTS, ids.DEVICE, ids.DTYPE, ids.LAUNCH, ids.BANDWIDTH)}
    assert change_all(settings, texts, DEVICES) == (settings, {})


@given(control=st.sampled_from(CONTROLS), raw=JSON)
def test_any_value_is_taken_or_refused_in_a_sentence(control, raw):
    after, problems = change_all(Settings(), {control: raw}, DEVICES)
    assert from_query(to_query(after), DEVICES) == (after, None)
    for sentence in problems.values():
        assert 0 < len(sentence) < 500
        assert "\n" not in sentence


@given(
    query=st.text(max_size=60)
    | st.builds("?{}={}".format, st.sampled_from(["ops", "elements", "bandwidth"]), st.text())
)
def test_any_address_is_read_or_noted(query):
    settings, note = from_query(query, DEVICES)
    assert isinstance(settings, Settings)
    assert note is None or note.startswith("The address ")


def test_one_bad_change_does_not_hold_up_the_others(catalogue):
    settings, problems = change_all(Settings(), {ids.OPS: 3, ids.ELEMENTS: "many"}, catalogue)
    assert settings == replace(Settings(), ops=3)
    assert list(problems) == [ids.SIZE]  # the alert of the size speaks for its text
    assert "many" in problems[ids.SIZE]


def test_an_unknown_control_is_refused(catalogue):
    with pytest.raises(InputError, match="unknown control"):
        change(Settings(), "colour", "red", catalogue)


def test_settings_survive_json(catalogue):
    assert json.loads(json.dumps(widget_values(Settings(), catalogue))) == widget_values(Settings(), catalogue)
