import html
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusesim
from app import ids, readout
from app.address import from_query, to_query
from app.answers import respond
from app.catalogue import shipped, stock
from app.settings import STOPS, Settings
from app.view import look
from fusesim import units
from fusesim.machine import EFFECTS

UNSET = str.maketrans("\N{NO-BREAK SPACE}\N{MICRO SIGN}", " u")  # figures as the library writes them
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["changes", "ops", "url", "x"]), inner),
    max_leaves=8,
)
DEVICES = shipped()
BUTTONS = (ids.PRESET, ids.CHAIN, ids.EDIT, ids.MODEL, ids.FOLLOW, ids.URL)


def ask(catalogue, settings="", **changes):
    changes = {control.replace("_", "-"): raw for control, raw in changes.items()}
    answer = respond({"settings": settings, "changes": changes}, catalogue)
    return answer | json.loads((answer["view"] or "{}").translate(UNSET))


def reasons_of(answer):
    """Return the reasons as the library says them, in small letters."""
    told = html.unescape(answer["parts"][ids.REASONS])
    return [reason.removesuffix(".</li>").lower() for reason in told.split("<li>")[1:]]


def texts(answer):
    return answer["texts"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ("220.3 us", "44.1 us", "5.00x", "671.1 MB", "134.2 MB", "9 %")),
        ("?elements=4096", ("20.0 us", "4.0 us", "5.00x", "81.9 kB", "16.4 kB", "99.9 %")),
        ("?ops=1", ("44.1 us", "44.1 us", "1.00x", "134.2 MB", "134.2 MB", "9 %")),
        ("?elements=4096&launch=graph", ("10.0 us", "6.0 us", "1.67x", "81.9 kB", "16.4 kB", "99.8 %")),
    ],
)
def test_figures_of_the_lesson(query, expected, catalogue):
    shown = texts(ask(catalogue, url=query))
    places = (ids.UNFUSED_TIME, ids.FUSED_TIME, ids.SPEEDUP, ids.UNFUSED_BYTES, ids.FUSED_BYTES, ids.UNFUSED_SHARE)
    assert tuple(shown[place] for place in places) == expected


def test_a_change_starts_from_the_settings_so_far(catalogue):
    answer = ask(catalogue, to_query(Settings(ops=9, dtype="fp32")), size=20)
    assert from_query(answer["query"], catalogue)[0] == Settings(ops=9, dtype="fp32", elements=2**20)


def test_every_figure_is_the_librarys(catalogue):
    answer = ask(catalogue, ops=13, elements="1000000", device="l4", dtype="fp32", launch="graph", launch_overhead=2.5)
    price = fusesim.price_chain(13, 10**6, device="l4", dtype="fp32", launch="graph", launch_overhead=2.5e-6)
    shown = texts(answer)
    assert shown[ids.UNFUSED_TIME] == units.format_quantity(float(price.unfused.time), units.TIME)
    assert shown[ids.FUSED_TIME] == units.format_quantity(float(price.fused.time), units.TIME)
    assert shown[ids.SPEEDUP] == units.format_ratio(float(price.speedup))
    assert shown[ids.SAVING] == units.format_quantity(float(price.saving), units.TIME)
    assert shown[ids.UNFUSED_KERNELS] == "13 kernels"


def test_the_overhead_is_read_out_with_its_mode(catalogue):
    assert texts(ask(catalogue, launch="stream"))[ids.reading(ids.OVERHEAD)] == "4.0 us per kernel"
    assert texts(ask(catalogue, launch="graph"))[ids.reading(ids.OVERHEAD)] == "1.0 us per node + 5.0 us per replay"


def test_an_overridden_bandwidth_is_told_from_the_devices(catalogue):
    assert texts(ask(catalogue, ops=5))[ids.reading(ids.RATE)] == "3.35 TB/s, as the device"
    assert texts(ask(catalogue, rate=12))[ids.reading(ids.RATE)] == "1.0 TB/s, device has 3.35 TB/s"


def test_bad_input_says_so_beside_its_control_and_leaves_the_figures(catalogue):
    answer = ask(catalogue, to_query(Settings(ops=7)), elements="many")
    assert not answer.get("charts")
    assert "many" in answer["alerts"][ids.problem(ids.SIZE)]
    assert answer["view"] is None
    assert from_query(answer["query"], catalogue)[0] == Settings(ops=7)


@pytest.mark.parametrize(
    ("query", "sides", "reason"),
    [
        ("?ops=5", "", ""),
        ("?ops=32&dtype=fp64&elements=1000000000000000000", "", ""),
        (
            "?ops=sin,exp,sin,exp,sin,exp,sin,exp&device=a100&bandwidth=1EB/s",
            "Fused",
            "arithmetic costs no",
        ),
        ("?ops=gelu*8&device=rtx-4090&elements=4194304&model=calibrated&launch=graph", "Unfused", "from the cache"),
        ("?ops=gelu*8&device=rtx-4090&elements=4194304&launch=graph", "", ""),
    ],
)
def test_a_chain_above_the_roof_says_why(query, sides, reason, catalogue):
    answer = ask(catalogue, url=query)
    assert answer["alerts"][ids.problem(ids.URL)] == ""
    told = texts(answer)[ids.ABOVE_ROOF]
    assert told.partition(":")[0] == sides
    assert reason in told


def test_a_figure_that_cannot_be_is_not_to_be_trusted(catalogue):
    view = look(Settings(ops=1, elements=2**28, device="h200-sxm", step=len(STOPS) - 1), catalogue)
    assert readout.above_roof(view) == ""
    assert "do not trust" in readout.above_roof(replace(view, peak=1e6))


def test_a_size_that_no_float_holds_is_refused_in_a_sentence(catalogue):
    row, rows = 73281971, 122911533  # their product is beyond 2^53, where a remainder is not exact
    answer = ask(catalogue, url=f"?ops=add_row&row={row}&elements={row * rows}")
    assert "row does not divide" in answer["alerts"][ids.problem(ids.SIZE)]


def test_the_next_good_input_clears_the_alert(catalogue):
    assert ask(catalogue, elements="4096")["alerts"][ids.problem(ids.SIZE)] == ""


def test_a_malformed_address_shows_the_defaults_and_a_note(catalogue):
    answer = ask(catalogue, url="?ops=0")
    assert texts(answer)[ids.UNFUSED_TIME] == "220.3 us"
    assert 'ops "0" is not a whole number' in answer["alerts"][ids.problem(ids.URL)]


def test_the_reasons_are_the_librarys(catalogue):
    told = [reason.lower() for reason in fusesim.price_chain(5, 33554432).explain()]
    assert reasons_of(ask(catalogue, ops=5))[: len(told)] == told


@given(
    request=JSON | st.fixed_dictionaries({"changes": st.dictionaries(st.sampled_from((*ids.WIDGETS, *BUTTONS)), JSON)})
)
def test_any_request_gets_an_answer(request):
    answer = respond(request, DEVICES)
    assert set(answer) == {"query", "alerts", "view"}
    json.loads(answer["view"] or "{}", parse_constant=pytest.fail)  # a browser knows no NaN


@given(
    changes=st.fixed_dictionaries(
        {
            ids.OPS: st.integers(1, 32),
            ids.ELEMENTS: st.integers(1, 10**18).map(str),
            ids.DTYPE: st.sampled_from(["fp64", "bf16", "int8"]),
            ids.DEVICE: st.sampled_from(["h100-sxm", "t4", "mi300x"]),
            ids.LAUNCH: st.sampled_from(["stream", "latency", "graph"]),
            ids.STEP: st.integers(0, len(STOPS) - 1),
            ids.INPUTS: st.sampled_from(["cold", "warm", "rotating"]),
            ids.PATH: st.sampled_from(["cuda", "cupy", "torch", "inductor"]),
            ids.REPEATS: st.integers(0, 12),
            ids.HOST: st.floats(0, 60),
            ids.OVERHEAD: st.floats(0, 20),
            ids.BANDWIDTH: st.sampled_from(["", "1 MB/s", "1 EB/s"]),
        }
    )
)
def test_all_good_settings_can_be_drawn(changes):
    answer = respond({"settings": "", "changes": changes}, DEVICES)
    assert not any(answer["alerts"][ids.problem(control)] for control in ids.PROBLEMS)
    json.loads(answer["view"], parse_constant=pytest.fail)


@pytest.mark.parametrize("query", ["", "?model=calibrated&device=h200-sxm&ops=gelu*8"])
def test_an_answer_is_small(query, catalogue):
    assert len(ask(catalogue, url=query)["view"]) < 27_000


GELUS = "?ops=gelu*8&device=h200-sxm&model=calibrated"


def test_eight_gelus_are_not_eight_times_as_fast(catalogue):
    price = fusesim.price_chain(["gelu"] * 8, 8192 * 4096, device="h200-sxm", model="calibrated")
    shown = texts(ask(catalogue, url=GELUS))
    assert shown[ids.SPEEDUP] == units.format_ratio(float(price.speedup))
    assert float(price.speedup) < 2
    assert shown[ids.UNFUSED_RANGE] == readout.between(price.unfused.interval)
    assert shown[ids.FUSED_RANGE] == readout.between(price.fused.interval)
    assert shown[ids.SAVING_RANGE] == readout.between(price.saving_interval)
    assert texts(ask(catalogue, to_query(Settings(ops=("gelu",) * 8)), model="textbook"))[ids.SPEEDUP] == "8.00x"


@pytest.mark.parametrize("step", range(len(STOPS)))
@pytest.mark.parametrize("launch", ["stream", "latency", "graph"])
def test_each_step_says_what_it_changed(step, launch, catalogue):
    settings = Settings(ops=("gelu",) * 8, device="h200-sxm", step=step, launch=launch, elements=2**20)
    shown = texts(ask(catalogue, to_query(settings), size=20))
    before, now = (look(replace(settings, step=max(at, 0)), catalogue).point for at in (step - 1, step))
    model = "textbook" if step == 0 else f"{step} of {len(EFFECTS)}" if step < len(EFFECTS) else "calibrated"
    assert shown[ids.reading(ids.STEP)].startswith(model)
    assert shown[ids.MEANING].endswith(".")
    was, is_now = (float(price.unfused.time) for price in (before, now))
    if step and abs(is_now / was - 1) > 0.01:
        assert f"instead of {units.format_quantity(was, units.TIME, like=max(was, is_now))}" in shown[ids.FINDING]
    elif was == is_now and float(before.fused.time) == float(now.fused.time):
        assert "no change here" in shown[ids.FINDING] or step == 0


def test_the_cache_says_what_it_keeps(catalogue):
    finding = texts(ask(catalogue, url="?ops=5&elements=4096&device=h200-sxm&model=cache"))[ids.FINDING]
    assert finding.startswith("The cache keeps 100 % of the intermediates: unfused ")
    warm = texts(ask(catalogue, url="?ops=5&elements=4096&device=h200-sxm&model=cache&inputs=warm"))[ids.FINDING]
    assert warm.startswith("The cache serves ")
    assert texts(ask(catalogue, url="?ops=1&model=cache"))[ids.FINDING].startswith("A single kernel leaves nothing")


def test_a_device_without_its_own_calibration_says_so(catalogue):
    own, other = (texts(ask(catalogue, url=f"?model=calibrated&device={name}")) for name in ("h200-sxm", "h100-sxm"))
    assert own[ids.SOURCE] == "Parameters measured on h200-sxm."
    assert "transferred from h200-sxm" in other[ids.SOURCE]
    assert own[ids.UNFUSED_RANGE] != other[ids.UNFUSED_RANGE]


def test_between_the_ends_no_interval_is_claimed(catalogue):
    shown = texts(ask(catalogue, url="?model=cache"))
    assert (shown[ids.UNFUSED_RANGE], shown[ids.FUSED_RANGE], shown[ids.SAVING_RANGE]) == (*["no interval"] * 2, "")
    assert not any("confidence" in reason for reason in reasons_of(ask(catalogue, url="?model=cache")))


def test_calibrated_reasons_are_the_librarys(catalogue):
    price = fusesim.price_chain(["gelu"] * 8, 8192 * 4096, device="h200-sxm", model="calibrated")
    told = reasons_of(ask(catalogue, url=GELUS))
    assert told[: len(price.explain())] == [reason.lower() for reason in price.explain()]
    assert "a gelu is" in " ".join(told)


@pytest.mark.parametrize(
    "query",
    [
        "?ops=5",
        GELUS,
        "?ops=add_row,gelu&row=1024&launch=graph&model=cache&repeats=16&device=a100&bandwidth=1TB/s",
        "?ops=add,mul,relu,neg,abs&device=h200-sxm&launch=graph&inputs=rotating&model=calibrated&path=cupy",
        "?ops=3&launch=latency&model=calibrated&host_interval=7us&launch_overhead=2us",
    ],
)
def test_the_call_makes_the_view(query, catalogue):
    answer, told = ask(catalogue, url=query), {}
    exec(answer["verbatim"][ids.CALL], told)  # the very text that is copied
    price = told["found"]
    assert texts(answer)[ids.UNFUSED_TIME] == units.format_quantity(float(price.unfused.time), units.TIME)
    assert texts(answer)[ids.FUSED_TIME] == units.format_quantity(float(price.fused.time), units.TIME)


def test_where_fusing_stops_paying_is_told(catalogue):
    told = " ".join(reasons_of(ask(catalogue, url="?ops=5&elements=4096&launch=graph")))
    two, many = (fusesim.price_chain(ops, 4096, launch="graph").speedup for ops in (2, 32))
    assert f"2 ops gain {two:.2f}x, 32 ops {many:.2f}x" in told


def test_a_speedup_has_its_range(catalogue):
    price = fusesim.price_chain(["gelu"] * 8, 8192 * 4096, device="h200-sxm", model="calibrated")
    low, high = (float(price.unfused.time / (price.unfused.time - end)) for end in price.saving_interval)
    assert f"a speedup of {low:.2f}x to {high:.2f}x" in " ".join(reasons_of(ask(catalogue, url=GELUS)))
    assert low < 1.44 < high  # what was measured


@pytest.fixture(scope="module")
def bare():
    """A device whose file states no SMs, so that only the textbook can price it."""
    profile = fusesim.device("h100-sxm")
    return stock([profile.model_copy(update={"id": "bare", "chip": profile.chip.model_copy(update={"sms": None})})])


def test_a_device_for_the_textbook_only_stays_there_and_says_why(bare):
    for answer in (ask(bare, "?device=bare", step=3), ask(bare, url="?device=bare&model=calibrated")):
        shown = texts(answer)
        assert "only the textbook can price it" in answer["alerts"][ids.problem(ids.STEP)]
        assert shown[ids.UNFUSED_TIME] == "220.3 us"
        assert answer["widgets"][ids.STEP] == 0
    assert ask(bare, "?device=bare", ops=3)["alerts"][ids.problem(ids.STEP)] == ""


def test_sliders_follow_the_calibrated_device(catalogue):
    answer = ask(catalogue, url="?model=calibrated&device=h200-sxm&launch=graph")
    run = fusesim.price_chain(5, 8192 * 4096, device="h200-sxm", model="calibrated", launch="graph").unfused.parts
    assert answer["widgets"][ids.OVERHEAD] == pytest.approx(run.situation.floor * 1e6)
    assert "reached" in texts(answer)[ids.reading(ids.RATE)]
    moved = texts(ask(catalogue, "?model=calibrated&device=h200-sxm&launch=graph", launch_overhead=2))
    assert moved[ids.reading(ids.OVERHEAD)].startswith("2.0 us per node")


def test_an_emptied_chain_waits_for_its_first_op(catalogue):
    emptied = ask(catalogue, to_query(Settings(ops=("add",))), edit=[ids.REMOVE])
    assert "charts" not in emptied
    assert emptied["alerts"][ids.problem(ids.KIND)] == "The chain is empty: pick its first op."
    assert emptied["widgets"] == {ids.NAMES: ""}
    begun = ask(catalogue, emptied["query"], edit=["gelu"])
    assert begun["widgets"][ids.NAMES] == "gelu"
    assert begun["alerts"][ids.problem(ids.KIND)] == ""
    reloaded = ask(catalogue, url=emptied["query"])
    assert "empty chain" in reloaded["alerts"][ids.problem(ids.URL)]
    assert texts(reloaded)[ids.UNFUSED_TIME] == "220.3 us"


def test_a_measured_graph_tells_how_to_be_matched(catalogue):
    chain = "?ops=add,mul,relu,neg,abs&device=h200-sxm&launch=graph"
    assert "choose the inputs to be rotating" in texts(ask(catalogue, url=chain))[ids.MEASURED]
    matched = ask(catalogue, url=f"{chain}&inputs=rotating&elements=4096")
    assert "choose" not in texts(matched)[ids.MEASURED]
    assert texts(matched)[ids.reading(ids.REPEATS)] == "256 passes"
    assert texts(ask(catalogue, url=""))[ids.MEASURED] == ""
