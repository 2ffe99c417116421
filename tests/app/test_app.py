import json
import re

import pytest

import fusesim
from app import create_app, export, ids, lesson, palette, real
from app.address import from_query
from app.answers import respond
from app.article import article
from fusesim import units
from fusesim.machine import EFFECTS
from fusesim.units import format_quantity

URL = re.compile(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""")


def post(client, body):
    return client.post("/_dash-update-component", json=body)


@pytest.fixture(scope="module")
def body():
    return {
        "output": "answer.data",
        "outputs": {"id": ids.ANSWER, "property": "data"},
        "inputs": [{"id": ids.REQUEST, "property": "data", "value": {"changes": {"ops": 5}, "settings": ""}}],
        "changedPropIds": ["request.data"],
    }


def test_the_document_stands_without_javascript(client):
    page = client.get("/").text
    assert '<html lang="en">' in page
    assert "Fusing a chain of kernels" in page
    assert "Count the bytes" in page
    assert not URL.search(page)


def test_it_is_healthy_and_guarded(client):
    answer = client.get("/health")
    assert answer.json == {"status": "ok"}
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]


def test_every_place_that_an_answer_writes_to_is_on_the_page(client, catalogue):
    page = client.get("/").text
    places = {ids.problem(control) for control in ids.PROBLEMS}
    places |= {ids.reading(control) for control in (ids.OPS, ids.SIZE, ids.OVERHEAD, ids.RATE)}
    view = json.loads(respond({"changes": {"url": "?model=calibrated&launch=graph"}}, catalogue)["view"])
    places |= {*ids.WIDGETS, *view["texts"], *view["parts"], *view["hidden"], *view["charts"]}
    assert {place for place in places if f'id="{place}"' not in page} == set()


def test_a_callback_answers_over_http(client, body):
    answer = post(client, body)
    assert answer.status_code == 200
    view = json.loads(answer.json["response"][ids.ANSWER]["data"]["view"])
    assert view["texts"][ids.UNFUSED_TIME] == "220.3\N{NO-BREAK SPACE}\N{MICRO SIGN}s"


@pytest.mark.parametrize(
    "value", [None, 3, "x", [], {}, {"changes": 5}, {"changes": {"ops": 1e308}}, {"changes": {"url": {"a": []}}}]
)
def test_a_hostile_value_is_answered_in_a_sentence(client, body, value):
    hostile = body | {"inputs": [{"id": ids.REQUEST, "property": "data", "value": value}]}
    answer = post(client, hostile)
    assert answer.status_code == 200
    assert any(answer.json["response"][ids.ANSWER]["data"]["alerts"].values())


@pytest.mark.parametrize("junk", [None, 7, [], {}, {"output": "nowhere.children", "inputs": [], "changedPropIds": []}])
def test_junk_is_the_senders_fault(client, junk):
    assert 400 <= post(client, junk).status_code < 500


def test_deeply_nested_or_long_junk_is_the_senders_fault(client):
    for text in ("[" * 20_000, '{"a":' * 5_000, "no json", "[" + "1," * 100_000):
        answer = client.post("/_dash-update-component", data=text, content_type="application/json")
        assert 400 <= answer.status_code < 500


def said(answer, status):
    """Return the one sentence in which a request was refused."""
    assert answer.status_code == status
    assert answer.mimetype == "text/plain"
    assert re.fullmatch(r"[A-Z][^.<\n]*\.\n", answer.text)
    return answer.text


JUNK = [5, "x", [5], [None], {"a": 1}, [{"id": "x"}], [[1]], None]


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("key", ["state", "inputs", "outputs", "output", "changedPropIds", "parsedChangedPropsIds"])
def test_a_malformed_part_is_refused_in_a_sentence(client, body, caplog, key, junk):
    assert "load the page again" in said(post(client, body | {key: junk}), 400)
    assert caplog.records == []


def test_what_is_no_callback_cannot_be_asked_of_the_server(client, body, caplog):
    said(post(client, body | {"output": "request.data", "outputs": {"id": "request", "property": "data"}}), 400)
    said(post(client, body | {"surplus": 1}), 400)
    said(client.post("/_dash-update-component?cancelJob=1", json=body), 400)
    assert caplog.records == []


def test_what_a_page_of_dash_adds_is_no_fault(client, body):
    answer = client.post("/_dash-update-component?endId=8YCLH0mA", json=body | {"state": []})
    assert answer.status_code == 200


@pytest.mark.parametrize("name", ["foo/bar.js", "dash/nope.js", "plotly/%00", "dash/../../README.md"])
def test_a_script_that_is_not_there_is_not_found(client, caplog, name):
    said(client.get(f"/_dash-component-suites/{name}"), 404)
    assert caplog.records == []


def test_other_refusals_are_a_sentence_too(client):
    said(client.get("/assets/nope.css"), 404)
    said(client.post("/_dash-update-component", data="1" * 100_000, content_type="application/json"), 413)
    answer = client.put("/_dash-update-component")
    said(answer, 405)
    assert "POST" in answer.headers["Allow"]


def test_text_is_compressed_for_those_who_ask(client, body):
    asked = client.post("/_dash-update-component", json=body, headers={"Accept-Encoding": "gzip"})
    assert asked.headers["Content-Encoding"] == "gzip"
    assert len(asked.data) < len(post(client, body).data) / 2
    assert "Content-Encoding" not in post(client, body).headers


def test_two_apps_do_not_share_anything():
    assert create_app().server is not create_app().server


def test_links_of_the_lesson_are_good_addresses(catalogue):
    for _, query in lesson.TRIES:
        assert from_query(query, catalogue)[1] is None


def test_figures_in_the_lesson_are_the_librarys():
    text = article()
    price = fusesim.price_chain(5, 8192 * 4096)
    for moved in (price.unfused.bytes_moved, price.fused.bytes_moved):
        assert format_quantity(float(moved), units.SIZE) in text
    assert f"{price.unfused.arithmetic_intensity:.2f} FLOP per byte" in text
    assert f"about {price.ridge_point:.0f} fp32 operations" in text
    for launch, unfused, fused in (("stream", "20.0 us", "4.0 us"), ("graph", "10.0 us", "6.0 us")):
        small = fusesim.price_chain(5, 4096, launch=launch)
        assert format_quantity(float(small.unfused.time), units.TIME) == unfused
        assert format_quantity(float(small.fused.time), units.TIME) == fused
        assert unfused in text
        assert fused in text
    for long, saved in ((5, "80 %"), (20, "95 %")):
        chain_price = fusesim.price_chain(long, 1)
        share = 1 - float(chain_price.fused.launch_time) / float(chain_price.unfused.launch_time)
        assert units.format_share(share) == saved
        assert saved in text


def test_exported_charts_need_no_other_file():
    page = export.chain_html(["relu", "add_tensor"], 4096, dtype="fp32")
    assert page.startswith("<!DOCTYPE html>")
    assert "A chain of 2 operations" in page
    assert not re.search(r"""<(?:script|link|img)[^>]*\s(?:src|href)=["']?(?:https?:)?//""", page)
    assert palette.FUSED in page


def test_the_export_escapes_what_it_is_given():
    assert "<b>" not in export.chain_html(1, 4096).split("<body>")[1].split("<div")[0]


def test_figures_of_the_real_effects_are_the_librarys():
    """The lesson's table and its sums are priced, whatever the calibration of the day."""
    text = article()
    rows = real.rows()
    assert rows[0].name == "textbook"
    assert len(rows) == len(EFFECTS) + 1
    gelus = fusesim.price_chain(["gelu"] * 8, 8192 * 4096, device="h200-sxm", model="calibrated")
    assert f"({units.format_ratio(float(gelus.speedup))})" in rows[-1].times[2]
    for figure in (rows[0].times[0], rows[-1].times[2], format_quantity(float(gelus.fused.time), units.TIME)):
        assert figure in text
    assert rows[0].times[2] == "255.7 us, 32.0 us (8.00x)"
    assert real.explanations().keys() == set(EFFECTS)


def test_a_calibrated_export_has_its_interval():
    page = export.chain_html(["gelu"] * 8, 4096, device="h200-sxm", model="calibrated", launch="graph")
    assert "90 % interval" in page
    assert "90 % interval" not in export.chain_html(5, 4096)
