"""Rankings: what fusions save adds up, what graphs save, what a trace reached."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

import fusesim
from fusesim import patterns
from fusesim.achieved import achieved, attainable, reason
from fusesim.builder import Builder
from fusesim.ranked import by_bound, run_of
from fusesim.ranking import rank


@pytest.fixture(scope="module")
def report():
    return rank(patterns.transformer_block(seq=256), launch="graph")


@pytest.mark.parametrize("launch", ["stream", "graph"])
def test_a_program_of_no_kernels_has_nothing_to_fuse(launch):
    b = Builder("nothing")
    b.input(0, 4)
    sentences = rank(b.graph(), launch=launch).explain()
    assert sentences == ["no kernel runs: the program looks at memory and makes no value, so there is nothing to fuse"]


@pytest.mark.parametrize("launch", ["stream", "graph"])
@pytest.mark.parametrize("strategy", ["inductor", "vertical"])
@pytest.mark.parametrize("name", ["transformer_block", "swiglu_mlp", "add_rmsnorm", "cross_entropy", "dlrm"])
def test_what_fusions_save_adds_up_to_what_the_plan_saves(name, strategy, launch):
    found = rank(patterns.find(name)(), launch=launch, fused=(strategy, "inductor"))
    whole = run_of(found.eager[launch]).device_time - run_of(found.fused[launch]).device_time
    parts = sum(one.before - one.after for one in found.fusions) + found.elsewhere
    assert parts == pytest.approx(whole, rel=1e-9, abs=1e-12)


def test_the_first_row_saves_most_and_intervals_hold_it(report):
    saved = [one.saved for one in report.fusions]
    assert saved == sorted(saved, reverse=True)
    for one in report.fusions:
        assert one.interval[0] <= one.saved <= one.interval[1]
        assert one.share == pytest.approx(one.saved / report.step)
        assert one.speedup == pytest.approx(1 / (1 - one.share))  # Amdahl


def test_kernels_of_a_row_are_those_that_it_replaces():
    # five cheap ops in five kernels become one: 10 passes over the tensor become 2
    found = rank(patterns.chain(ops=5, elements=2**24), launch="graph")
    (only,) = found.fusions
    assert (only.kernels, only.own, only.count) == (5, 1, 1)
    assert only.bytes_saved == 8 * 2**24 * 2  # 4 intermediate tensors of 2 B, written and read
    assert only.saved == pytest.approx(found.fusing_saves)
    assert found.peak_memory[0] > found.peak_memory[1]


def test_on_a_stream_that_waits_for_the_host_fewer_launches_count():
    found = rank(patterns.rmsnorm(tokens=8), launch="stream", host_interval=8e-6)
    (only,) = found.fusions
    run = run_of(found.eager["stream"])
    assert run.host_time > run.device_time
    # six launches of 8 us become one, and the kernels are the longer then
    assert only.saved == pytest.approx(run.host_time - max(run.device_time - only.before + only.after, 8e-6))


def test_graphs_and_fusing_and_what_is_left(report):
    assert report.graphs_save == pytest.approx(float(report.eager["stream"].time - report.eager["graph"].time))
    assert report.left == float(report.fused["graph"].time)
    assert sum(report.remaining.values()) == pytest.approx(run_of(report.fused["graph"]).device_time)
    assert by_bound(run_of(report.fused["graph"])) == report.remaining
    assert report.break_even_calls == pytest.approx(report.compile_seconds / report.fusing_saves, abs=1)


def test_it_is_ready_for_json_and_says_what_it_rests_on(report):
    record = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert record["step"] == report.step
    assert record["fusions"][0]["what"] == report.fusions[0].what
    assert record["measured"] is None
    assert any("calibration h200-sxm" in sentence for sentence in record["explain"])
    assert "us" in repr(report)


def test_a_compiled_call_of_one_kernel_is_told_as_what_it_costs_the_host():
    said = rank(patterns.gelu(rows=64, cols=64), launch="stream").explain()
    (sentence,) = [one for one in said if "compiled call" in one]
    assert sentence.startswith(
        "on a stream a compiled call costs 50.0 us of the host against 8.0 us to launch 1 kernel, which makes it "
        "42.0 us longer; the kernel takes no longer; under CUDA graphs fusing saves "
    )
    assert not any("fusing loses" in one for one in said)


def test_a_report_tells_of_types_that_the_matrix_units_lack():
    said = rank(patterns.matmul_bias_gelu(dtype="bf16"), device="t4").explain()
    assert sum("no bf16 matrix units" in one for one in said) == 1
    assert not any("matrix units" in one for one in rank(patterns.matmul_bias_gelu(dtype="bf16")).explain())


def test_nothing_to_fuse():
    found = rank(patterns.matmul(), launch="graph")
    assert found.fusions == ()
    assert found.break_even_calls == float("inf")
    assert found.to_dict()["break_even_calls"] is None
    assert "never pays" in " ".join(found.explain())


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"launch": "latency"}, "stream and graph"),
        ({"model": "textbook"}, "leave model out"),
        ({"device": "h20"}, "unknown device"),
        ({"fused": ("greedy", "inductor")}, "unknown strategy"),
    ],
)
def test_wrong_arguments(terms, message):
    with pytest.raises(fusesim.InputError, match=message):
        rank(patterns.bias_relu(), **terms)


def test_a_trace_without_a_graph():
    empty = SimpleNamespace(graph=None, name="t.json", notes=("its 3 ops have no shapes",))
    with pytest.raises(fusesim.GraphError, match="have no shapes"):
        rank(empty)


def eager_run(graph):
    return run_of(fusesim.price(fusesim.plan(graph, "eager"), launch="graph"))


def test_achieved_against_expected_and_attainable():
    graph = patterns.bias_relu(rows=8192, cols=4096)
    run = eager_run(graph)
    add = next(kernel for kernel in run.kernels_run if kernel.launch.nodes == ("add",))
    found = achieved(run, {"add": [("k", 2 * add.time.time)], "relu": [], "gone": [("x", 1.0)]})
    (one,) = found
    assert (one.op, one.count, one.kernels) == ("add", 1, ("k",))
    assert one.ratio == pytest.approx(2.0, rel=1e-6)
    assert one.share == pytest.approx(attainable(add) / (2 * add.time.time))
    assert "strided" in one.reason  # the bias is broadcast
    assert one.unexplained
    assert "2.00x what such kernels take" in one.sentence()


def test_ops_of_one_form_are_one_entry():
    graph = patterns.chain(ops=["relu", "neg", "relu"], elements=2**24)
    run = eager_run(graph)
    names = [node.name for node in graph.paid_nodes if node.kind == "relu"]
    found = achieved(run, {name: [("k", 50e-6)] for name in names})
    assert [(one.kind, one.count) for one in found] == [("relu", 2)]
    assert found[0].total == pytest.approx(100e-6)


def test_attainable_is_never_more_than_expected_and_every_kernel_has_a_reason():
    for name in ("transformer_block", "softmax", "cross_entropy", "conv_bn_relu"):
        for kernel in eager_run(patterns.find(name)()).kernels_run:
            assert attainable(kernel) <= kernel.time.time
            assert reason(kernel)
