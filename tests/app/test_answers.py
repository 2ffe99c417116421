import json

import pytest
from dash import no_update
from hypothesis import given
from hypothesis import strategies as st

import fusesim
from app import ids
from app.answers import respond
from app.catalogue import shipped
from app.controls import Settings, from_query, to_query
from fusesim import units

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["changes", "ops", "url", "x"]), inner),
    max_leaves=8,
)
DEVICES = shipped()


def ask(catalogue, settings="", **changes):
    changes = {control.replace("_", "-"): raw for control, raw in changes.items()}
    return respond({"settings": settings, "changes": changes, "serial": 1}, catalogue)


def texts(answer):
    return answer["answer"]["texts"]


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
    assert from_query(answer["answer"]["query"], catalogue)[0] == Settings(ops=9, dtype="fp32", elements=2**20)


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
    assert set(answer["charts"].values()) == {no_update}
    assert "many" in texts(answer)[ids.problem(ids.SIZE)]
    assert ids.UNFUSED_TIME not in texts(answer)
    assert from_query(answer["answer"]["query"], catalogue)[0] == Settings(ops=7)


def test_the_next_good_input_clears_the_alert(catalogue):
    assert texts(ask(catalogue, elements="4096"))[ids.problem(ids.SIZE)] == ""


def test_a_malformed_address_shows_the_defaults_and_a_note(catalogue):
    answer = ask(catalogue, url="?ops=0")
    assert texts(answer)[ids.UNFUSED_TIME] == "220.3 us"
    assert "ops is 0" in texts(answer)[ids.problem(ids.URL)]


def test_the_reasons_are_the_librarys(catalogue):
    reasons = ask(catalogue, ops=5)["answer"]["reasons"]
    assert [reason.lower().rstrip(".") for reason in reasons] == [
        reason.lower() for reason in fusesim.price_chain(5, 33554432).explain()
    ]


@given(request=JSON | st.fixed_dictionaries({"changes": st.dictionaries(st.sampled_from(ids.WIDGETS), JSON)}))
def test_any_request_gets_an_answer(request):
    answer = respond(request, DEVICES)
    assert set(answer) == {"charts", "answer"}
    assert isinstance(answer["answer"]["texts"], dict)


@given(
    changes=st.fixed_dictionaries(
        {
            ids.OPS: st.integers(1, 32),
            ids.ELEMENTS: st.integers(1, 10**18).map(str),
            ids.DTYPE: st.sampled_from(["fp64", "bf16", "int8"]),
            ids.DEVICE: st.sampled_from(["h100-sxm", "t4", "mi300x"]),
            ids.LAUNCH: st.sampled_from(["stream", "graph"]),
            ids.OVERHEAD: st.floats(0, 20),
            ids.BANDWIDTH: st.sampled_from(["", "1 MB/s", "1 EB/s"]),
        }
    )
)
def test_all_good_settings_can_be_drawn(changes):
    answer = respond({"settings": "", "changes": changes}, DEVICES)
    assert not any(texts(answer)[ids.problem(control)] for control in ids.PROBLEMS)
    json.dumps(answer, allow_nan=False)


def test_an_answer_is_small(catalogue):
    assert len(json.dumps(ask(catalogue, ops=5))) < 20_000
