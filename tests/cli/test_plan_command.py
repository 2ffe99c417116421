"""`fusesim plan`: kernels, totals and what is asked for besides, for people and as JSON."""

from __future__ import annotations

import json

import pytest

import fusesim
from fusesim import patterns
from fusesim.strategies import STRATEGIES

SMALL = ("plan", "bias_relu", "rows=128", "cols=512")
NORM = ("plan", "rmsnorm", "tokens=8192", "hidden=4096")


def record(run, *words):
    outcome = run(*words, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    return json.loads(outcome.out)


def lines(outcome):
    assert (outcome.code, outcome.err) == (0, "")
    return [" ".join(line.split()) for line in outcome.out.splitlines()]


def test_the_lesson_in_the_terminal(run):
    found = lines(run(*SMALL))
    assert found[0] == (
        "bias_relu rows=128 cols=512 dtype=fp32: eager on NVIDIA H200 SXM 141 GB, torch kernels, graph, calibrated"
    )
    assert found[1] == "kernel class ops read written time bound occupancy"
    assert found[2].startswith("0 add ")
    assert "264.2 kB 262.1 kB" in found[2]  # x and the bias; 128 x 512 x 4 B
    assert found[3].startswith("1 relu ")
    assert "kernels 2" in found
    assert "peak memory above inputs 524.3 kB" in found  # the sum is still there when the result is made
    assert any(line.startswith("- both kernels are bound by launches") for line in found)


def test_what_the_library_returns(run):
    printed = record(run, *SMALL)
    graph = patterns.bias_relu(128, 512)
    price = fusesim.price(fusesim.plan(graph, "eager", "h200-sxm"), device="h200-sxm")
    assert printed["price"] == {key: value for key, value in price.to_dict().items() if key != "per_kernel"}
    assert [kernel["ops"] for kernel in printed["kernels"]] == [["add"], ["relu"]]
    assert printed["arguments"] == {"rows": 128, "cols": 512, "dtype": "fp32"}


def test_options_reach_the_library(run):
    printed = record(
        run,
        *(*SMALL, "--strategy", "inductor", "--path", "cuda", "--device", "h100", "--launch", "stream"),
        *("--inputs", "2", "--host-interval", "3 us"),
    )
    plan = fusesim.plan(patterns.bias_relu(128, 512), "inductor", "h100-sxm")
    expected = fusesim.price(plan, device="h100", path="cuda", launch="stream", inputs=2, host_interval=3e-6)
    assert printed["price"]["time"] == expected.time
    assert (printed["device"], printed["requested_as"]) == ("h100-sxm", "h100")
    assert "transferred from h200-sxm" in printed["price"]["calibration"]


def test_a_process_without_a_profiler_is_quicker(run):
    seen, bare = (record(run, *SMALL, *flag)["price"] for flag in ((), ("--no-profiler",)))
    assert 2e-7 < (seen["time"] - bare["time"]) / seen["kernels"] < 6e-7


def test_repeats_share_a_replay(run):
    one, ten = (record(run, *SMALL, "--graph-repeats", count)["price"] for count in ("1", "10"))
    assert ten["time"] < one["time"]


def test_the_textbook_has_launches_and_bytes(run):
    printed = record(run, *SMALL, "--model", "textbook")
    times = [kernel["time"] for kernel in printed["kernels"]]
    assert times == pytest.approx([1e-6 + (2 * 262144 + 2048) / 4.8e12, 1e-6 + 2 * 262144 / 4.8e12])
    assert printed["price"]["time"] == pytest.approx(sum(times) + 5e-6)  # and one replay


def test_occupancy_names_what_limits_a_generated_kernel(run):
    (kernel,) = record(run, *NORM, "--strategy", "inductor")["kernels"]
    assert 0 < kernel["occupancy"] <= 1
    assert kernel["limit"] in {"threads", "blocks", "registers", "shared memory"}
    assert record(run, *SMALL)["kernels"][0]["occupancy"] is None  # the framework's kernel is its own
    assert f"% by {kernel['limit']}" in run(*NORM, "--strategy", "inductor").out


def test_strategies_side_by_side(run):
    rows = {row["strategy"]: row for row in record(run, *NORM, "--compare")["compare"]}
    assert list(rows) == list(STRATEGIES)
    assert rows["eager"]["saving"] == 0
    assert rows["eager"]["path"] == rows["cuda-graph"]["path"] == "torch"
    assert rows["inductor"]["path"] == rows["xla"]["path"] == "inductor"
    assert rows["inductor"]["kernels"] == 1
    assert rows["optimal"]["time"] <= rows["eager"]["time"]
    assert rows["inductor"]["compile_seconds"] == 0.385  # the measured default for few ops
    assert rows["xla"]["compile_seconds"] is None  # nobody measured it
    table = lines(run(*NORM, "--compare"))
    assert (
        "strategy kernels of kernels bytes moved time 90 % interval saving speedup peak memory pays after calls"
        in table
    )


def test_a_cuda_graph_is_one_whatever_the_launch_mode(run):
    rows = {row["strategy"]: row for row in record(run, *SMALL, "--compare", "--launch", "stream")["compare"]}
    assert rows["cuda-graph"]["time"] < rows["eager"]["time"]
    assert rows["cuda-graph"]["peak_memory"] == rows["eager"]["peak_memory"]
    assert rows["cuda-graph"]["kernels"] == rows["eager"]["kernels"] == 2


def test_after_how_many_calls_compiling_pays(run):
    found = lines(run(*NORM, "--strategy", "vertical", "--compile-seconds", "2 s"))
    (sentence,) = [line for line in found if "compiling takes" in line]
    assert sentence.startswith("- compiling takes 2.0 s and pays after ")
    measured = lines(run(*NORM, "--strategy", "inductor"))
    assert any("compiling takes 385.0 ms (patterns of 1 to 9 ops" in line for line in measured)
    assert not any("compiling takes" in line for line in lines(run(*NORM, "--strategy", "vertical")))
    # On a stream one compiled call costs this host more than two launches of eager mode do.
    never = lines(run(*SMALL, "--strategy", "inductor", "--launch", "stream"))
    assert any("never pays: a call saves nothing over eager" in line for line in never)


def test_explain_compares_with_eager_and_finds_the_flip(run):
    found = lines(run(*NORM, "--strategy", "vertical", "--explain"))
    assert any(line.startswith("- fusing saves ") and line.endswith(", 6 kernels to 1") for line in found)
    assert any("tokens = " in line for line in found)
    comparison = record(run, *NORM, "--strategy", "vertical", "--explain")["comparison"]
    assert comparison["speedup"] > 1
    low, high = comparison["saving_interval"]
    assert low < comparison["saving"] < high


def test_edges_are_paid_or_saved(run):
    edges = record(run, *SMALL, "--strategy", "vertical", "--edges")["edges"]
    states = {(edge["producer"], edge["consumer"]): edge["state"] for edge in edges}
    assert states["add", "relu"] == "saved"
    assert states["relu", None] == "paid"
    # paid: x, the bias and the result; saved: the sum
    assert "edges: paid 526.3 kB, saved 262.1 kB" in lines(run(*SMALL, "--strategy", "vertical", "--edges"))


def test_memory_of_both_forms(run):
    memory = record(run, *SMALL, "--strategy", "vertical", "--memory")["memory"]
    assert memory["unfused"]["peak"] == 2 * 262144  # the sum and the result
    assert memory["fused"]["peak"] == 262144
    found = lines(run(*SMALL, "--strategy", "vertical", "--memory"))
    assert "memory, eager: 524.3 kB at the peak" in found
    assert "memory, vertical: 262.1 kB at the peak" in found


def test_the_timeline_of_a_stream(run):
    spans = record(run, *SMALL, "--launch", "latency", "--timeline")["timeline"]
    assert [span["name"] for span in spans] == ["add", "relu"]
    assert spans[0]["end"] <= spans[1]["start"] < spans[1]["end"]
    assert any(line.startswith("0 add 0.0 s") for line in lines(run(*SMALL, "--timeline")))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("plan bias_relo", 1, 'unknown pattern "bias_relo"; did you mean "bias_relu"?'),
        ("plan bias_relu rows=0", 1, "rows"),
        ("plan bias_relu --strategy vertcal", 1, 'unknown strategy "vertcal"; did you mean "vertical"?'),
        ("plan bias_relu --path tosch", 1, 'unknown path "tosch"; did you mean "torch"?'),
        ("plan bias_relu --device h20", 1, "unknown device"),
        ("plan bias_relu --model textbok", 1, 'unknown model "textbok"; did you mean "textbook"?'),
        ("plan bias_relu --launch grpah", 1, 'unknown launch mode "grpah"; did you mean "graph"?'),
        ("plan bias_relu --inputs hot", 1, "unknown input state"),
        ("plan bias_relu --graph-repeats 0", 1, "--graph-repeats"),
        ("plan bias_relu --compile-seconds soon", 1, "--compile-seconds"),
        ("plan bias_relu --model textbook --timeline", 1, "the textbook has no timeline"),
        ("plan bias_relu --model textbook --host-interval 1us", 1, "host_interval"),
        ("plan", 2, "PATTERN"),
        ("plan bias_relu --stratgey eager", 2, "--stratgey"),
    ],
)
def test_wrong_input_is_one_sentence(run, words, code, message):
    outcome = run(*words.split())
    assert outcome.code == code
    assert message in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
