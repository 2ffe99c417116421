"""What all pages have alike, over HTTP: documents, navigation, headers, refusals, and callbacks sent anything."""

import json
import re

import pytest

from app import ids
from app.page import MENU
from app.pages import PAGES

PATHS = [path for path, _ in MENU]
URL = re.compile(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def pages(catalogue):
    return {page.path: page for page in (make(catalogue) for make in PAGES)}


def body_of(value):
    """Return what the page's script sends."""
    inputs = [{"id": ids.REQUEST, "property": "data", "value": value}]
    output = {"id": ids.ANSWER, "property": "data"}
    return {"output": "answer.data", "outputs": output, "inputs": inputs, "changedPropIds": ["request.data"]}


def test_the_navigation_names_every_page(pages):
    assert set(PATHS) == set(pages)


@pytest.mark.parametrize("path", PATHS)
def test_a_document_stands_by_itself(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.text.count('aria-current="page"') == 1
    assert f'<a href="{path}" aria-current="page">' in answer.text
    assert not URL.search(answer.text)
    assert "need JavaScript" in answer.text


@pytest.mark.parametrize("path", PATHS)
def test_no_script_stands_inside_a_page(client, path):
    answer = client.get(path)
    policy = answer.headers["Content-Security-Policy"]
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert scripts == "script-src 'self'"
    assert not re.search(r"<script[^>]*>[^<]", answer.text)
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert not re.search(r"\son\w+=", answer.text.split("<main")[1].split("</main>")[0])


def test_scripts_are_shared_by_all_pages_and_kept(client):
    found = [re.findall(r'src="([^"]+)"', client.get(path).text) for path in PATHS]
    for script in {address for scripts in found for address in scripts}:
        answer = client.get(script, headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200
        assert answer.headers["Content-Encoding"] == "gzip"
        assert "max-age=31536000" in answer.headers["Cache-Control"]
        answer.close()
    assert all(scripts == found[0] for scripts in found)


@pytest.mark.parametrize("path", ["/nope", "/plans/nope", "/roofline/x/y", "/index.html", "/plans/%00"])
def test_unknown_paths_are_not_found(client, path):
    answer = client.get(path)
    assert (answer.status_code, answer.mimetype) == (404, "text/plain")


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/"])
def test_a_forgotten_slash_is_added(client, path):
    answer = client.get(path.rstrip("/"))
    assert (answer.status_code, answer.headers["Location"].endswith(path)) == (308, True)


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        "x",
        [],
        {},
        {"changes": 5},
        {"changes": {"device": 1e308}},
        {"changes": {"url": {"a": []}}, "settings": 7},
    ],
)
@pytest.mark.parametrize("path", PATHS)
def test_a_hostile_value_is_answered_in_a_sentence(client, path, value):
    answer = client.post(f"{path}_dash-update-component", json=body_of(value))
    assert answer.status_code == 200
    alerts = answer.json["response"][ids.ANSWER]["data"]["alerts"]
    assert any(text.endswith((".", "?")) for text in alerts.values())


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/"])
def test_every_place_that_an_answer_writes_to_is_on_the_page(client, pages, path):
    page, shown = pages[path], client.get(path).text
    answers = [page.respond({"changes": {"url": ""}}), page.respond({"changes": {"more": 1}, "settings": ""})]
    for answer in answers:
        view = json.loads(answer["view"])
        places = {*answer["alerts"], *view["texts"], *view["verbatim"], *view["parts"], *view["hidden"]}
        lost = {place for place in (*places, *view.get("charts", ())) if f'id="{place}"' not in shown}
        assert lost == set()
