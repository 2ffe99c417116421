import json
import re
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[1] / "reference"
LESSON, CHAINS = REFERENCE / "h200_stream_cpp.json", REFERENCE / "h200_chains.json"


def one_chain(med, name="NVIDIA H200"):
    us = {"med": med, "lo": med, "hi": med, "n": 15}
    row = {"kind": "chain", "backend": "cuda", "ops": ["add", "mul"], "S": 4096, "dtype": "bf16", "variant": "fused"}
    return json.dumps({"meta": {"name": name}, "rows": [row | {"mode": "graph", "sets": 256, "us": us}]})


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def tiny(*arguments):
        Path("tiny.json").write_text(one_chain(*arguments), encoding="utf-8")
        return "tiny.json"

    return tiny


def test_tables_in_the_terminal(run):
    outcome = run("validate", LESSON)
    assert (outcome.code, outcome.err) == (0, "")
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert lines[0] == "54 times and 27 savings, NVIDIA H200 SXM 141 GB, calibration h200-sxm"
    assert lines.count("path mode bound cases median p90 worst bias in 90 % interval half-width") == 2
    assert any(line.startswith("cuda stream host ") for line in lines)
    assert any(line.startswith("cuda graph device-bound 18 ") for line in lines)
    assert {"times", "savings", "worst times", "worst savings"} <= set(lines)


def test_several_files_are_taken_together(run):
    assert run("validate", LESSON, CHAINS).out.startswith("257 times and ")


def test_json_has_everything(run):
    record = json.loads(run("validate", LESSON, "--ablate", "--json").out)
    assert (record["device"], record["calibration"]) == ("h200-sxm", "h200-sxm")
    assert len(record["cases"]) == 54
    assert {grade["regime"] for grade in record["times"]} <= {"launch", "dram", "l2", "host", "device-bound"}
    assert record["worst_times"][0]["error"] >= record["worst_times"][1]["error"]
    assert record["ablation"][0]["step"] == "textbook"
    assert record["ablation"][-1]["savings"]["cases"] == 27


def test_ablation_in_the_terminal(run):
    out = run("validate", LESSON, "--ablate").out
    assert "parameters are those of the full model, not fitted again" in out
    for step in ("textbook", "+ bandwidth", "all but pipelining"):
        assert re.search(rf"^{re.escape(step)} ", out, re.MULTILINE)


def test_the_page_needs_no_network(run, tmp_path):
    page = tmp_path / "accuracy.html"
    outcome = run("validate", LESSON, "--html", page, "--ablate")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.endswith(f"page: {page}\n")
    text = page.read_text(encoding="utf-8")
    assert text.lower().startswith("<!doctype html>")
    assert not re.search(r"<(?:script|link|img)\b[^>]*\b(?:src|href)\s*=", text)
    assert text.count('<div class="chart">') == 3
    assert text.count("<table>") == 5  # times, savings, the worst of each, effects


def test_another_device_widens_or_misses(run):
    outcome = run("validate", LESSON, "--device", "h100-sxm")
    assert "calibration h100-sxm (transferred from h200-sxm)" in outcome.out.splitlines()[0]


def test_a_file_that_names_no_device_needs_one(run, tiny):
    file = tiny(1.2, "Example GPU")
    outcome = run("validate", file)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "fusesim: tiny.json names no device that is known; say which with --device\n"
    assert run("validate", file, "--device", "h200").code == 0


def test_files_of_different_devices_need_one(run, tiny):
    outcome = run("validate", tiny(1.2, "NVIDIA A100"), LESSON)
    assert outcome.code == 1
    assert outcome.err.startswith("fusesim: the files name different devices (a100-")


def test_a_device_or_a_file_of_one(run):
    outcome = run("validate", LESSON, "--device", "h200", "--device-file", "mine.toml")
    assert outcome.err == "fusesim: give --device or --device-file, not both\n"


@pytest.mark.parametrize(("limit", "code"), [("500", 0), ("0.001", 1)])
def test_fail_above(run, limit, code):
    outcome = run("validate", LESSON, "--fail-above", limit)
    assert outcome.code == code
    assert outcome.out
    assert not code or re.fullmatch(r"fusesim: cuda \w+: median error [\d.]+ %, above 0.001 %\n", outcome.err)


@pytest.mark.parametrize("limit", ["-1", "nan"])
def test_fail_above_is_a_percentage(run, limit):
    outcome = run("validate", LESSON, "--fail-above", limit)
    assert (outcome.code, outcome.out) == (1, "")
    assert "give a percentage from 0 upwards" in outcome.err


@pytest.mark.parametrize("microseconds", [1200.0, 1.2e6, 0.0012])
def test_a_unit_mixed_up_is_told(run, tiny, microseconds):
    outcome = run("validate", tiny(microseconds))
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("fusesim: tiny.json: ")
    assert outcome.err.count("\n") == 1


def test_nothing_is_written_where_nothing_is_compared(run, tiny, tmp_path):
    assert run("validate", tiny(1.2e6), "--html", tmp_path / "out.html").code == 1
    assert not (tmp_path / "out.html").exists()


@pytest.mark.parametrize("options", [("--calibration", "nobody"), ("--device", "h20"), ("--suite", "none")])
def test_a_wrong_option_is_one_sentence(run, options):
    outcome = run("validate", LESSON, *options)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.count("\n") == 1


def test_no_file_is_a_usage_error(run):
    assert run("validate").code == 2


def test_the_page_does_not_replace_a_measurement_file(run, tiny):
    name = tiny(5.0)
    before = Path(name).read_bytes()
    outcome = run("validate", name, "--html", f"./{name}")
    assert outcome.code == 1
    assert "is one of the measurement files; name another one" in outcome.err
    assert Path(name).read_bytes() == before


def test_a_file_counts_once(run):
    outcome = run("validate", CHAINS, CHAINS.parent / "." / CHAINS.name)
    assert outcome.code == 1
    assert outcome.err.endswith("is given twice; name each file once\n")
