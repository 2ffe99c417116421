"""`fusesim patterns`: the named graphs, and one of them op by op."""

from __future__ import annotations

import json

import pytest

from fusesim import patterns


def test_every_pattern_is_listed_with_its_arguments(run):
    outcome = run("patterns")
    assert (outcome.code, outcome.err) == (0, "")
    found = [line.split()[0] for line in outcome.out.splitlines()[1:]]
    assert found == list(patterns.PATTERNS)
    assert "tokens=8192 hidden=4096 dtype=bf16 upcast=false" in outcome.out


def test_the_list_as_json(run):
    rows = json.loads(run("patterns", "--json").out)
    assert {row["name"]: row["arguments"] for row in rows}["bias_relu"] == {"rows": 128, "cols": 512, "dtype": "fp32"}


def test_one_pattern_op_by_op(run):
    lines = [" ".join(line.split()) for line in run("patterns", "bias_relu").out.splitlines()]
    assert lines[0] == "bias_relu: 2 ops, inputs of 264.2 kB, 131.1 kFLOP"  # 128 x 512 x 4 B + 512 x 4 B
    assert "add add x, bias fp32[128, 512] 264.2 kB 262.1 kB 65.5 kFLOP" in lines
    assert "relu relu add fp32[128, 512] 262.1 kB 262.1 kB 65.5 kFLOP" in lines


def test_one_pattern_as_json(run):
    record = json.loads(run("patterns", "matmul", "m=2", "k=3", "n=4", "--json").out)
    assert record["flops"] == 2 * 2 * 3 * 4
    (op,) = record["ops"]
    assert (op["kind"], op["flops"]) == ("matmul", 48)
    assert [record["tensors"][name]["shape"] for name in op["inputs"]] == [[2, 3], [3, 4]]


def test_views_move_nothing(run):
    ops = run("patterns", "transformer_block").out.splitlines()
    view = next(line for line in ops if line.startswith("view "))
    assert view.split()[-6:] == ["0.0", "B", "0.0", "B", "0.0", "FLOP"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("patterns rmsnrom", 'unknown pattern "rmsnrom"; did you mean "rmsnorm"?'),
        ("patterns rows=3", "is no pattern; name one first"),
        ("patterns bias_relu rosw=3", 'unknown argument of bias_relu "rosw"; did you mean "rows"?'),
    ],
)
def test_wrong_input_is_one_sentence(run, words, message):
    outcome = run(*words.split())
    assert outcome.code == 1
    assert message in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
