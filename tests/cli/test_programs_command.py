"""`fusesim trace`, `torch`, `onnx` and `hlo`: programs of one's own, ranked."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fusesim.frontends.trace import read_trace
from fusesim.ranking import rank

TRACES = Path(__file__).parents[1] / "reference/traces"
VIT = str(TRACES / "vit_16.eager.json.gz")
HLO = """HloModule add
ENTRY main {
  x = f32[1048576]{0} parameter(0)
  y = f32[1048576]{0} add(x, x)
  ROOT z = f32[1048576]{0} multiply(y, y)
}
"""


def test_a_trace_is_ranked(run):
    outcome = run("trace", VIT, "--top", "2")
    assert (outcome.code, outcome.err) == (0, "")
    assert "fusions, by what they save of a step" in outcome.out
    assert "measured kernels, by what there is to win" in outcome.out
    assert "more; --top shows them" in outcome.out
    assert "because it is transposed" in outcome.out


def test_json_is_what_the_library_returns(run):
    printed = json.loads(run("trace", VIT, "--json", "--launch", "graph", "--top", "3").out)
    report = rank(read_trace(VIT), launch="graph")
    assert printed["step"] == pytest.approx(report.step)
    assert len(printed["fusions"]) == 3
    assert printed["fusions"][0]["saved"] == pytest.approx(report.fusions[0].saved)
    assert printed["measured"]["ratio"] == pytest.approx(report.measured.ratio)


def test_one_row_is_explained(run):
    outcome = run("trace", VIT, "--explain", "1")
    assert "add + layer_norm: " in outcome.out.splitlines()[0]
    printed = json.loads(run("trace", VIT, "--explain", "1", "--json").out)
    assert printed["row"] == 1
    assert printed["explain"][0] == outcome.out.splitlines()[0]


def test_another_device_is_asked_about_and_times_stay_with_the_recorded_one(run):
    here = json.loads(run("trace", VIT, "--json").out)
    there = json.loads(run("trace", VIT, "--json", "--device", "t4").out)
    assert there["device"] == "t4"
    assert there["step"] > 2 * here["step"]
    assert there["measured"]["expected"] == pytest.approx(here["measured"]["expected"])


def test_a_page_that_works_offline(run, tmp_path):
    page = tmp_path / "report.html"
    outcome = run("trace", VIT, "--html", str(page))
    assert outcome.code == 0
    text = page.read_text(encoding="utf-8")
    assert "Kernels over time" in text
    assert "roofline" in text
    assert "add + layer_norm" in text
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=.https?:", text)


def test_limits_for_ci(run):
    assert run("trace", VIT, "--fail-above", "3").code == 0
    outcome = run("trace", VIT, "--fail-above", "0.5")
    assert outcome.code == 1
    assert "times the predicted" in outcome.err
    assert run("trace", VIT, "--measured", "10 ms", "--fail-above", "2").code == 1
    assert run("trace", VIT, "--measured", "300 us", "--fail-above", "2").code == 0
    assert run("plan", "gelu", "--measured", "1 s", "--fail-above", "2").code == 1
    assert run("plan", "gelu", "--fail-above", "2").code == 1


def test_hlo_is_ranked_beside_what_xla_chose(run, tmp_path):
    file = tmp_path / "module.txt"
    file.write_text(HLO, encoding="utf-8")
    outcome = run("hlo", str(file), "--launch", "graph")
    assert (outcome.code, outcome.err) == (0, "")
    assert "as XLA fused it a step takes" in outcome.out
    assert re.search(r"add \+ (mul|square)", outcome.out)
    blocked = run("hlo", str(file), "--fail-above", "2")
    assert (blocked.code, blocked.out) == (1, "")
    assert "--measured" in blocked.err


def test_onnx_is_ranked(run, tmp_path):
    helper = pytest.importorskip("onnx").helper
    x, y = (helper.make_tensor_value_info(name, 1, ["batch", 4096]) for name in "xy")
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Neg", ["h"], ["y"])]
    file = tmp_path / "model.onnx"
    file.write_bytes(helper.make_model(helper.make_graph(nodes, "model", [x], [y])).SerializeToString())
    outcome = run("onnx", str(file), "--size", "batch=2^12")
    assert (outcome.code, outcome.err) == (0, "")
    assert "relu + neg" in outcome.out
    assert "batch" in run("onnx", str(file)).err


PROGRAM = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(1024, 4096), nn.LayerNorm(4096)

    def forward(self, x):
        return nn.functional.gelu(self.norm(self.linear(x))) * 2

def build():
    return Net().to(torch.bfloat16), (torch.randn(8192, 1024, dtype=torch.bfloat16),)

def three():
    return 3

def twice(x):
    return x * 2 + 1

def train():
    net = Net()
    def step(x):
        net(x).sum().backward()
    return step, (torch.randn(64, 1024),)

def broken():
    raise ValueError("no luck")
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    (tmp_path / "my_model.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "torn.py").write_text("1/0", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("line", "fused"),
    [
        (["my_model:build"], "layer_norm + gelu + mul"),
        (["my_model:Net", "--input", "8x1024"], "layer_norm + gelu + mul"),
        (["my_model:twice", "--input", "8192x4096:bf16"], "mul + add"),
        (["my_model:train", "--grad"], "layer_norm"),
    ],
)
def test_torch_programs_are_ranked(run, line, fused):
    outcome = run("torch", *line)
    assert (outcome.code, outcome.err) == (0, "")
    assert fused in outcome.out


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["my_model:three"], "returned int"),
        (["my_model:twice"], "give --input"),
        (["my_model:broken"], "no luck"),
        (["my_model:buil"], 'did you mean "build"'),
        (["my_model"], "module:function"),
        (["no_such_model:x"], "cannot import no_such_model"),
        (["torn:x"], "torn fails to import: ZeroDivisionError"),
        (["my_model:twice", "--input", "8xq"], "is no tensor"),
        (["my_model:twice", "--input", "10^10x10^10"], "has 100000000000000000000 elements; the largest is 10^18"),
        (["my_model:twice", "--input", "8:foo"], "unknown type of an input"),
        (["my_model:train"], "give --grad"),
    ],
)
def test_torch_programs_that_cannot_be_read(run, line, message):
    outcome = run("torch", *line)
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["trace", "nope.json"], "cannot be read"),
        (["trace", VIT, "--explain", "99"], "the ranking has"),
        (["trace", VIT, "--explain", "0"], "--explain"),
        (["trace", VIT, "--top", "none"], "--top"),
        (["trace", VIT, "--device", "h20"], "unknown device"),
        (["trace", VIT, "--launch", "latency"], "stream and graph"),
        (["trace", VIT, "--strategy", "greedy"], "unknown strategy"),
        (["trace", VIT, "--fail-above", "much"], "--fail-above"),
        (["trace", VIT, "--measured", "long"], "--measured"),
        (["trace", VIT, "--html", VIT], "is no .html file"),
        (["hlo", "nope.txt"], "cannot be read"),
        (["hlo", VIT], "HLO"),
        (["onnx", "x", "--size", "batch"], "--size"),
    ],
)
def test_bad_input_is_one_sentence(run, line, message):
    outcome = run(*line)
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("command", ["trace", "torch", "onnx", "hlo"])
def test_a_missing_file_is_a_usage_error(run, command):
    assert run(command).code == 2
