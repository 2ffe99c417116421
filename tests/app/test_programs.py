"""The page of one's own program: uploads that are refused, and what is shown of those that are read."""

import contextlib
import gzip
import io
import json
import re
import threading
import time
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app import create_app, ids, program_view, programs, uploads
from app.catalogue import shipped
from app.pages.program import program
from app.program_lesson import steps
from app.program_view import FOLDER, SAMPLES
from fusesim.errors import InputError

UNSET = str.maketrans("\N{NO-BREAK SPACE}\N{MICRO SIGN}", " u")  # figures as the library writes them
DEVICES = shipped()
PAGE = program(DEVICES)
FORM = program_view.program_form(DEVICES)
BLOCK = (FOLDER / "block.json.gz").read_bytes()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def ask(query="", changes=None):
    answer = PAGE.respond({"settings": query, "changes": changes or {"url": query}})
    return answer | json.loads((answer["view"] or "{}").translate(UNSET))


def hand_in(client, name, body, query="?"):
    args = {"settings": query} if name is None else {"name": name, "settings": query}
    return client.post("/program/read", query_string=args, data=body, content_type="application/octet-stream")


def zipped():
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("trace.json", b"0" * 1_000_000)
    return held.getvalue()


def test_a_trace_is_ranked(client):
    answer = hand_in(client, "mine.json.gz", BLOCK)
    assert answer.status_code == 200
    shown = answer.json
    assert shown["texts"][programs.NAME].startswith("mine.json.gz, recorded on NVIDIA H200")
    assert shown["parts"][programs.RANKING].count("<tr") > 3
    sample = ask("?sample=block")
    assert shown["texts"][ids.SPEEDUP] == sample["texts"][ids.SPEEDUP]
    assert {bar["name"] for bar in answer.json["charts"][programs.TIMELINE]["data"]} == {"measured", "unfused", "fused"}


def test_an_unpacked_trace_is_the_same(client):
    packed, plain = (
        hand_in(client, name, body).json for name, body in (("a.json.gz", BLOCK), ("a.json", gzip.decompress(BLOCK)))
    )
    packed["texts"].pop(programs.NAME), plain["texts"].pop(programs.NAME)
    packed.pop("verbatim"), plain.pop("verbatim")
    assert packed == plain


def test_settings_travel_with_the_file(client):
    slow = hand_in(client, "a.json.gz", BLOCK, "?device=t4&launch=graph").json
    fast = hand_in(client, "a.json.gz", BLOCK, "?device=b200&launch=graph").json
    assert "priced for NVIDIA T4" in slow["texts"][programs.NAME]
    assert slow["texts"][ids.UNFUSED_TIME] != fast["texts"][ids.UNFUSED_TIME]


BOMB = gzip.compress(gzip.compress(b"{" + b" " * (200 << 20), 1), 1)
REFUSED = {
    "empty": ("a.json", b"", "is empty"),
    "zip": ("a.json", zipped(), "zip archive"),
    "picture": ("a.json.gz", b"\x89PNG\r\n\x1a\n", "picture"),
    "no json": ("a.json", b"<html>", "is no JSON"),
    "damaged": ("a.json.gz", b"\x1f\x8b" + b"x" * 40, "damaged"),
    "cut off": ("a.json.gz", BLOCK[:-200], "cut off"),
    "bomb": ("a.json.gz", gzip.compress(b"{" + b" " * (64 << 20), 9), "unpacks to more than 32 MiB"),
    "members": ("a.json.gz", gzip.compress(b"{" + b" " * (20 << 20)) * 2, "unpacks to more than 32 MiB"),
    "bomb in a bomb": ("a.json.gz", BOMB, "is no JSON"),
    "other json": ("a.json", b'{"a": 1}', "no profiler trace"),
    "list": ("a.json", b"[1, 2, 3]", "a.json"),
    "deep": ("a.json", b'{"traceEvents":[' + b'{"a":' * 50_000, "nested"),
    "deep list": ("a.json", b"[" * 400_000, "nested"),
    "numbers": ("a.json", b'{"traceEvents":[{"ph":"X","ts":1e999,"dur":-1,"name":5,"cat":7}]}', "a.json"),
    "model": ("a.onnx", b"\x00\x01junk", ""),
    "ending": ("a.exe", BLOCK, "ends neither"),
    "path": ("../../etc/passwd.json", BLOCK, "is a path"),
    "windows path": ("C:\\x.json", BLOCK, "is a path"),
    "hidden": (".json", BLOCK, "is a path"),
    "control": ("a\n.json", BLOCK, "printable"),
    "long": ("a" * 500 + ".json", BLOCK, "1 to 120"),
    "nameless": (None, BLOCK, "needs a name"),
    "script": ("<script>.json", b"", "is empty"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_a_sentence(client, caplog, case):
    name, body, said = REFUSED[case]
    answer = hand_in(client, name, body)
    assert answer.status_code == 422
    assert said in answer.json["problem"]
    assert re.fullmatch(r"[^\n]{5,400}[.?]", answer.json["problem"])
    assert caplog.records == []
    assert hand_in(client, "a.json.gz", BLOCK).status_code == 200  # the server is unharmed


@pytest.mark.parametrize(
    ("name", "body", "problem"),
    [
        ("ev.json", b'{"a": 1}', "ev.json is no profiler trace: it has no traceEvents; "),
        ("ev.json", b'{"a" 1}', "ev.json is no profiler trace: an object in it has no keys; "),
        ("ev.json", b'{"a": nothing}', "ev.json is no profiler trace: its JSON is broken or cut off; "),
        ("ev.json", b'{"a": 1, "b": "', "ev.json is no profiler trace: it breaks off before its first event; "),
        ("ev.json", b'{"traceEvents": []}', "ev.json has nothing to read: it holds no events; "),
        ("ev.json", b'{"nodes": [1]}', "ev.json is an execution trace"),
        ("trace.json", b'{"a": 1}', "trace.json is no profiler trace"),
        ("m.onnx", b"\x00\x01junk", "m.onnx is no ONNX model"),
    ],
)
def test_a_refusal_begins_with_the_files_name(client, name, body, problem):
    if name.endswith(".onnx"):
        pytest.importorskip("onnx")
    said = hand_in(client, name, body).json["problem"]
    assert said.startswith(problem)
    assert "line 1 column" not in said


def test_a_model_is_ranked_at_the_sizes_that_it_is_given(client):
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    node = make.make_node("Relu", ["x"], ["y"])
    ends = [make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", 512]) for name in ("x", "y")]
    body = make.make_model(make.make_graph([node], "g", ends[:1], ends[1:])).SerializeToString()
    assert "named dimension" in hand_in(client, "m.onnx", body).json["problem"]
    answer = hand_in(client, "m.onnx", body, "?sizes=batch:1024")
    assert answer.json["texts"][programs.MEASURED] == "not in the file"


@pytest.mark.parametrize(
    "raw",
    ["batch", "batch=0", "batch=x", ",".join(f"a{place}=1" for place in range(9)), 5, None, "=3", "b=99999999999"],
)
def test_what_is_no_size_of_a_dimension_is_refused(raw):
    assert ask("", {"sizes": raw})["alerts"][ids.problem("sizes")]


def test_a_file_that_is_too_long_is_not_read(client):
    answer = hand_in(client, "a.json", b"1" * (uploads.MAX_UPLOAD + 1))
    assert answer.status_code == 413
    assert answer.text == "The request is longer than 8192 KiB.\n"
    assert client.get("/program/read").status_code in {404, 405}


def test_the_limit_of_other_requests_stays(client):
    answer = client.post("/program/_dash-update-component", data="1" * 100_000, content_type="application/json")
    assert answer.status_code == 413


def test_many_at_once_are_all_answered():
    server = create_app().server
    found = []

    def one(place):
        body = BLOCK if place % 2 else zipped()
        found.append(hand_in(server.test_client(), "a.json.gz", body).status_code)

    threads = [threading.Thread(target=one, args=(place,)) for place in range(8)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(found) == [200] * 4 + [422] * 4
    assert time.monotonic() - start < 30


def test_nothing_is_written(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    hand_in(client, "a.json.gz", BLOCK)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_shown(name):
    answer = ask(f"?sample={name}")
    assert answer["alerts"][ids.problem(ids.URL)] == ""
    assert answer["charts"][programs.ACHIEVED]["data"]
    assert len(json.dumps(answer["charts"])) < 200_000


def test_the_first_sentence_says_what_the_chosen_one_saves():
    compiled, eager = (ask(f"?strategy={name}")["texts"] for name in ("inductor", "eager"))
    assert (
        f"Fused by torch.compile it takes {compiled[ids.FUSED_TIME]}: {compiled[ids.SAVING]} less."
        in (compiled[ids.SENTENCE])
    )
    assert "Fused by eager it takes the same time." in eager[ids.SENTENCE]


def test_the_longest_wait_is_part_of_all_waiting():
    held = ask("?sample=block")["parts"][programs.SAID]
    every, longest = re.search(r"waits for the host ([\d.]+) ms in 2 stretches, the longest ([\d.]+) ms", held).groups()
    assert float(longest) <= float(every)


def test_a_file_that_is_not_there_yet_leaves_the_picture():
    answer = ask("", {"sample": "file"})
    assert not answer.get("charts")
    assert answer["texts"][programs.NAME] == programs.CHOOSE
    assert answer["query"] == "?sample=file"


def test_the_call_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.json.gz").write_bytes(BLOCK)
    exec(ask("?sample=block")["verbatim"][ids.CALL], {})
    assert "a step takes" in capsys.readouterr().out


def test_every_step_of_the_lesson_is_a_view():
    for step in steps(DEVICES, FORM, program_view.samples()):
        assert FORM.from_query(step.query)[1] is None


@settings(max_examples=60, deadline=None)
@given(changes=st.dictionaries(st.sampled_from([*FORM.fields, "url", "more", "x"]), JSON, max_size=3), query=JSON)
def test_anything_sent_is_answered(changes, query):
    for request in ({"changes": changes, "settings": query}, changes, query):
        answer = PAGE.respond(request)
        assert set(answer) == {"query", "alerts", "view"}
        json.loads(answer["view"] or "{}", parse_constant=pytest.fail)  # a browser knows no NaN


@settings(max_examples=200, deadline=None)
@given(name=st.text(max_size=30), body=st.binary(max_size=200))
def test_any_file_is_taken_or_refused(name, body):
    with contextlib.suppress(InputError):
        assert uploads.checked(name, body).name
