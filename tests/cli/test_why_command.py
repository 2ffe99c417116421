"""`fusesim why`: what fusing two ops would buy, and what stops it."""

from __future__ import annotations

import json

import pytest

from fusesim import patterns
from fusesim.planning import cost_of
from fusesim.why import why


def test_what_fusing_two_ops_buys(run):
    outcome = run("why", "bias_relu", "add", "relu", "rows=128", "cols=512")
    assert (outcome.code, outcome.err) == (0, "")
    verdict, *rest = outcome.out.splitlines()
    assert verdict.startswith("fusing saves ")
    assert rest == [
        "- 262.1 kB go from the one to the other",
        "- one kernel moves 524.3 kB less",
        "- one kernel under vertical, inductor, xla, tvm, mlir",
    ]


def test_which_compilers_fuse_an_epilogue(run):
    # Inductor leaves products to the library unless it tunes, XLA's library calls take bias and activation
    printed = json.loads(run("why", "matmul_bias_gelu", "matmul", "gelu", "m=2048", "--json").out)
    assert printed["fused_by"]["inductor"] is False
    assert printed["fused_by"]["xla"] is True


def test_json_is_what_the_library_returns(run):
    printed = json.loads(run("why", "bias_relu", "relu", "add", "--json").out)
    graph = patterns.bias_relu()
    found = why(graph, "add", "relu", cost_of("h200-sxm"), device="h200-sxm")
    assert printed["saving"] == pytest.approx(found.saving)
    assert printed["edge_bytes"] == 262144  # 128 x 512 x 4 B
    assert printed["reason"] is None
    assert printed["loses"] is False


def test_what_lies_between_must_come_too(run):
    out = run("why", "rmsnorm", "mul", "mul_2").out
    assert "between them stand mean, add, rsqrt, mul_1, which must come too" in out


def test_what_stops_it(run):
    outcome = run("why", "swiglu_mlp", "mul", "matmul_2")
    assert outcome.code == 0
    assert outcome.out.startswith("cannot share a kernel: ")
    assert "apart they take" in outcome.out


def test_what_loses_says_why(run):
    outcome = run("why", "swiglu_mlp", "matmul", "silu")
    assert outcome.out.startswith("fusing loses ")
    assert "library: a generated product replaces the library's" in outcome.out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("why bias_relu add rleu", 1, "bias_relu has no op rleu; it has add, relu"),
        ("why bias_relo add relu", 1, 'unknown pattern "bias_relo"'),
        ("why bias_relu add relu --model textbok", 1, 'unknown model "textbok"'),
        ("why bias_relu add", 2, "OPB"),
    ],
)
def test_wrong_input_is_one_sentence(run, words, code, message):
    outcome = run(*words.split())
    assert outcome.code == code
    assert message in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1


def test_what_no_digit_shows_is_not_told_as_a_saving(run):
    # both products are bound by the matrix units: 452 ps of 488 us is no saving
    outcome = run("why", "swiglu_mlp", "matmul", "matmul_1")
    assert outcome.out.startswith("fusing saves next to nothing: ")
