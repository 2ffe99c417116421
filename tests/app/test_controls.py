import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import controls, ids
from app.address import from_query, to_query
from app.catalogue import shipped
from app.chain_text import MAX_OPS, format_chain, parse_chain
from app.controls import change, change_all
from app.settings import STOPS, Settings
from app.view import look
from app.widgets import hidden, widget_values
from fusesim.errors import InputError
from fusesim.ops import OPS
from fusesim.paths import STYLES
from fusesim.schedule import LAUNCH_MODES

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PICOSECONDS = st.integers(0, 20_000_000).map(lambda picoseconds: float(f"{picoseconds}e-12"))
ROWLESS = [name for name, op in OPS.items() if not op.rows]
SETTINGS = st.builds(
    Settings,
    ops=st.integers(1, 32) | st.lists(st.sampled_from(ROWLESS), max_size=32).map(tuple),
    row=st.integers(1, 10**18),
    elements=st.integers(1, 10**18),
    dtype=st.sampled_from(["fp64", "fp32", "bf16", "fp16", "fp8", "int8"]),
    device=st.sampled_from(["h100-sxm", "t4", "mi300x"]),
    launch=st.sampled_from(LAUNCH_MODES),
    step=st.integers(0, len(STOPS) - 1),
    inputs=st.sampled_from(controls.INPUTS),
    path=st.sampled_from(list(STYLES)),
    repeats=st.none() | st.integers(1, 10**9),
    host_interval=st.none() | PICOSECONDS,
    launch_overhead=st.none() | PICOSECONDS,
    dram_bandwidth=st.none() | st.floats(1e6, 1e18),
)
WITH_ROWS = st.builds(
    lambda settings, names, row, rows: replace(settings, ops=("add_row", *names), row=row, elements=row * rows),
    SETTINGS,
    st.lists(st.sampled_from(list(OPS)), max_size=31),
    st.integers(1, 2**26),
    st.integers(1, 2**26),  # beyond 2^53 values no float says whether a row divides them
)
DEVICES = shipped()  # not a fixture: Hypothesis would print all of it with every failure
CONTROLS = (*ids.WIDGETS, ids.PRESET, ids.CHAIN, ids.EDIT, ids.MODEL, ids.FOLLOW)


def shown(settings, catalogue):
    return widget_values(settings, look(settings, catalogue))


@given(settings=SETTINGS | WITH_ROWS)
def test_an_address_gives_back_the_very_same_settings(settings):
    assert from_query(to_query(settings), DEVICES) == (settings, None)


def test_an_address_names_all_that_is_not_followed():
    assert to_query(Settings()) == "?ops=5&elements=33554432&dtype=bf16&device=h100-sxm&launch=stream"
    explicit = to_query(Settings(launch_overhead=4e-6, dram_bandwidth=2e12))
    assert explicit.endswith("&launch_overhead=4us&bandwidth=2TB/s")
    chain = to_query(Settings(ops=("gelu",) * 8 + ("add_row",), row=64, step=5, inputs="rotating", host_interval=3e-6))
    assert chain.startswith("?ops=gelu*8,add_row&")
    assert chain.endswith("&row=64&model=cache&inputs=rotating&host_interval=3us")


def test_what_an_address_leaves_out_has_its_default(catalogue):
    assert from_query("", catalogue) == (Settings(), None)
    assert from_query("?ops=7&elements=8192x4096&device=H100", catalogue) == (Settings(ops=7), None)


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("?ops=banana", 'unknown op "banana"'),
        ("?ops=99", 'ops "99" is not a whole number from 1 to 32'),
        ("?ops=0", "is not a whole number from 1 to 32"),
        ("?ops=1.5", "is not a whole number from 1 to 32"),
        ("?ops=,", "the chain is empty"),
        ("?ops=gelu*33", "the chain has 33 ops; give 1 to 32"),
        ("?ops=gelu*0", "0 times"),
        ("?ops=" + "add," * 200, "at most 400 characters"),
        ("?ops=\N{SUPERSCRIPT TWO}", "plain letters"),
        ("?ops=add_row&elements=1000", "a row of 4 096 does not divide 1 000 values"),
        ("?ops=add_row&row=7", "a row of 7 does not divide 33 554 432 values"),
        ("?row=0", "out of range"),
        ("?model=calibratd", 'did you mean "calibrated"'),
        ("?model=8", 'unknown model "8"'),
        ("?inputs=hot", 'unknown input state "hot"'),
        ("?path=cudda", 'did you mean "cuda"'),
        ("?repeats=0", "from 1 to 1000000000"),
        ("?host_interval=61us", "give 0 to 60 us"),
        ("?elements=0", "out of range"),
        ("?elements=1.5", "not a whole number"),
        ("?dtype=bf61", 'did you mean "bf16"'),
        ("?device=h20", 'unknown device "h20"; did you mean'),
        ("?launch=idle", 'unknown launch mode "idle"'),
        ("?launch_overhead=4", '"4" has no unit'),
        ("?launch_overhead=21us", "give 0 to 20 us"),
        ("?launch_overhead=nan us", "not"),
        ("?bandwidth=3us", "bandwidth"),
        ("?ops=1&ops=2", '"ops" is given twice'),
        ("?" + "a" * 3000, "at most 2000 characters"),
        (None, "must be a text"),
        (["?ops=1"], "must be a text"),
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


@pytest.mark.parametrize(
    "text", ["4096%0A", "%0A4096", "40%0096", "%D9%A4", "%EF%BC%94", "4096%E2%80%A8", "%E2%80%AE4"]
)
@pytest.mark.parametrize(
    "key", ["elements", "ops", "row", "repeats", "device", "launch_overhead", "bandwidth", "model"]
)
def test_an_address_holds_plain_characters_only(key, text, catalogue):
    settings, note = from_query(f"?{key}={text}", catalogue)
    assert settings == Settings()
    assert f'{key} "' in note
    assert "holds characters other than plain letters" in note
    assert note.isprintable()


def test_signs_that_people_write_are_plain(catalogue):
    settings, note = from_query("?ops=gelu%C3%978&elements=64%C3%9764&launch_overhead=5%C2%B5s", catalogue)
    assert note is None
    assert settings == Settings(ops=("gelu",) * 8, elements=4096, launch_overhead=5e-6)


@pytest.mark.parametrize(
    ("query", "limit"),
    [("?ops=" + "a" * 401, 400), ("?device=t4&elements=" + "9" * 81, 80), ("?x=" + "y" * 2000, 2000)],
)
def test_a_text_that_is_too_long_is_quoted_in_part(query, limit, catalogue):
    settings, note = from_query(query, catalogue)
    assert settings == Settings()
    assert f"at most {limit} characters" in note
    assert '..."' in note
    assert len(note) < 240


def test_a_note_that_asks_ends_in_its_question_mark(catalogue):
    assert from_query("?launch=steam", catalogue)[1].endswith('did you mean "stream"?')


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


@pytest.mark.parametrize(("control", "name"), controls.FOLLOWERS.items())
def test_a_control_that_was_moved_follows_again(control, name, catalogue):
    moved = change(Settings(), control, 11.5, catalogue)
    assert getattr(moved, name) is not None
    assert change(moved, ids.FOLLOW, control, catalogue) == Settings()


def test_the_launch_overhead_follows_the_mode_until_it_is_moved(catalogue):
    graph = change(Settings(), ids.LAUNCH, "graph", catalogue)
    assert [look(settings, catalogue).overhead for settings in (Settings(), graph)] == [4e-6, 1e-6]
    moved = change(Settings(), ids.OVERHEAD, 4, catalogue)  # where it stood anyway
    assert look(change(moved, ids.LAUNCH, "graph", catalogue), catalogue).overhead == 4e-6


def test_widgets_show_the_settings(catalogue):
    values = shown(Settings(), catalogue)
    assert set(values) == set(ids.WIDGETS)
    assert (values[ids.SIZE], values[ids.ELEMENTS], values[ids.OVERHEAD], values[ids.BANDWIDTH]) == (
        25,
        "33554432",
        4,
        "",
    )
    far = shown(Settings(elements=10**18, dram_bandwidth=1e18), catalogue)
    assert (far[ids.SIZE], far[ids.RATE]) == (30, controls.RATE_EXPONENTS[1])  # as far as the sliders go


@given(settings=SETTINGS | WITH_ROWS)
def test_widgets_put_back_change_nothing_that_text_holds(settings):
    if settings.ops == ():
        return
    values = shown(settings, DEVICES)
    chain = ids.OPS if settings.named is None else ids.NAMES
    held = (chain, ids.KIND, ids.ROW, ids.ELEMENTS, ids.DEVICE, ids.DTYPE, ids.LAUNCH, ids.INPUTS, ids.PATH, ids.STEP)
    texts = {name: values[name] for name in (*held, ids.BANDWIDTH)}
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
    assert json.loads(json.dumps(shown(Settings(), catalogue))) == shown(Settings(), catalogue)


@pytest.mark.parametrize(
    ("text", "chain"),
    [
        ("gelu x8", ("gelu",) * 8),
        ("8 gelu", ("gelu",) * 8),
        ("8x GELU", ("gelu",) * 8),
        ("gelu*2,add", ("gelu", "gelu", "add")),
        ("add -> mul > relu; exp", ("add", "mul", "relu", "exp")),
        (" log1p,, neg ", ("log1p", "neg")),
    ],
)
def test_a_chain_is_read_as_people_write_it(text, chain):
    assert parse_chain(text) == chain
    assert parse_chain(format_chain(chain)) == chain


@pytest.mark.parametrize("text", ["", ",", "gelu x0", "gelu x33", "gelu x99999", "gel", "add mul", "x8", "a" * 500])
def test_what_is_no_chain_is_refused(text):
    with pytest.raises(InputError):
        parse_chain(text)


def test_a_chain_is_clicked_together(catalogue):
    begun = change(Settings(), ids.EDIT, ["gelu"], catalogue)
    assert begun.ops == ("gelu",)
    more = change(begun, ids.EDIT, ["add", "exp", ids.REMOVE, "relu"], catalogue)
    assert more.ops == ("gelu", "add", "relu")
    assert change(more, ids.EDIT, [ids.CLEAR, "neg"], catalogue).ops == ("neg",)
    assert change(more, ids.EDIT, [ids.CLEAR], catalogue).ops == ()
    full = change(Settings(), ids.EDIT, ["add"] * MAX_OPS, catalogue)
    _, problems = change_all(full, {ids.EDIT: ["add"]}, catalogue)
    assert problems == {ids.KIND: "the chain has 33 ops; give 1 to 32"}


def test_identical_ops_become_named_ones_and_back(catalogue):
    named = change(Settings(ops=3), ids.KIND, "named", catalogue)
    assert named.ops == ("mul", "mul", "mul")
    assert change(named, ids.KIND, "identical", catalogue) == Settings(ops=3)


def test_sizes_keep_to_the_row(catalogue):
    odd = change(Settings(), ids.SIZE, 20.25, catalogue)
    assert odd.elements % 4096
    rows = change(odd, ids.EDIT, ["add_row"], catalogue)
    assert rows.elements % 4096 == 0  # the nearest size that has whole rows
    assert change(rows, ids.SIZE, 10, catalogue).elements == 4096
    with pytest.raises(InputError, match="a row of 4 096 does not divide 4 097 values"):
        change(rows, ids.ELEMENTS, "4097", catalogue)
    with pytest.raises(InputError, match="does not divide"):
        change(rows, ids.ROW, "4099", catalogue)


def test_only_what_has_a_meaning_is_shown(catalogue):
    def gone(**settings):
        view = Settings(**settings)
        return set(hidden(view, look(view, catalogue)))

    assert {ids.group(name) for name in (ids.NAMES, ids.ROW, ids.REPEATS, ids.INPUTS, ids.PATH, ids.HOST)} <= gone()
    assert ids.group(ids.OPS) in gone(ops=("add",))
    assert ids.group(ids.ROW) not in gone(ops=("add_row",))
    assert ids.group(ids.REPEATS) not in gone(launch="graph")
    assert ids.group(ids.HOST) not in gone(step=len(STOPS) - 1)
    assert ids.group(ids.HOST) in gone(step=len(STOPS) - 1, launch="graph")
    assert ids.follow(ids.RATE) not in gone(dram_bandwidth=1e12)
