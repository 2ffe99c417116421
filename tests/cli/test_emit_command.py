"""`fusesim emit`: source on the terminal or in a file, and predicted beside measured."""

import ast

import pytest

import fusesim.cli.emit as command
from fusesim import patterns, planning
from fusesim.emit import emit, emit_separate
from fusesim.emit.verify import Verified
from fusesim.errors import MeasurementError

LESSON = ("emit", "bias_relu", "rows=128", "cols=512")


def plan(strategy="vertical"):
    return planning.plan(patterns.bias_relu(128, 512), strategy)


def test_the_source_is_the_librarys(run):
    outcome = run(*LESSON)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == emit(plan())


def test_separate_kernels_and_triton(run):
    assert run(*LESSON, "--separate").out == emit_separate(plan())
    source = run(*LESSON, "--language", "triton").out
    assert source == emit(plan(), language="triton")
    assert ast.parse(source)


def test_a_group_of_another_strategy(run):
    assert run(*LESSON, "--strategy", "eager", "--group", "1").out == emit(plan("eager"), 1)


def test_source_goes_to_a_file(run, tmp_path):
    file = tmp_path / "kernel.cu"
    file.write_text("old", encoding="utf-8")
    outcome = run(*LESSON, "--out", file)
    assert (outcome.code, outcome.out) == (0, f"source: {file}\n")
    assert file.read_text(encoding="utf-8") == emit(plan())


def test_source_replaces_nothing_but_source(run, tmp_path):
    file = tmp_path / "notes.md"
    file.write_text("mine", encoding="utf-8")
    outcome = run(*LESSON, "--out", file)
    assert (outcome.code, file.read_text(encoding="utf-8")) == (1, "mine")
    assert outcome.err.startswith("fusesim: ")
    assert "is no file of source" in outcome.err


def test_arguments_are_read_as_their_defaults_are(run):
    read = command.read_arguments
    assert read("layernorm", ["rows=2^10", "cols=64x2", "dtype=fp16", "composite=no"]) == {
        "rows": 1024,
        "cols": 128,
        "dtype": "fp16",
        "composite": False,
    }
    assert read("dropout_residual_layernorm", ["p=0"]) == {"p": 0.0}
    assert read("chain", ["ops=add,relu", "elements=4096", "row=64"]) == {
        "ops": ["add", "relu"],
        "elements": 4096,
        "row": 64,
    }
    assert run("emit", "chain", "ops=add,relu", "elements=4096").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("bias_relo", 'unknown pattern "bias_relo"; did you mean "bias_relu"?'),
        ("bias_relu 128", '"128" is no argument; write name=value, for example rows=1024'),
        ("bias_relu rosw=1", 'unknown argument of bias_relu "rosw"; did you mean "rows"?'),
        ("bias_relu rows=1 rows=2", "bias_relu: rows is given twice; give it once"),
        ("layernorm composite=maybe", "layernorm: composite is maybe; it is a switch: true or false"),
        ("dropout_residual_layernorm p=half", "dropout_residual_layernorm: p is half; it is a number"),
        ("bias_relu --language cuba", 'unknown language "cuba"; did you mean "cuda"?'),
        ("bias_relu --group 7", '--group "7" is none of the plan\'s kernels; give 0 to 0'),
        ("bias_relu --group -1", '--group "-1" is none of the plan\'s kernels; give 0 to 0'),
        ("bias_relu --language triton --verify", "--verify compiles through CuPy, which takes CUDA C++; "),
        ("matmul", "op matmul (matmul) is no pointwise op or row reduction: call cuBLAS"),
        ("bias_relu --strategy verical", 'unknown strategy "verical"; did you mean "vertical"?'),
    ],
)
def test_bad_input_is_one_sentence(run, words, message):
    outcome = run("emit", *words.split())
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert outcome.err.startswith(f"fusesim: {message}")


def measured(form, kernels, median, predicted=None):
    return Verified(
        form=form,
        kernels=kernels,
        median=median,
        low=0.99 * median,
        high=1.02 * median,
        repeats=9,
        sets=8,
        largest_error=1e-7,
        predicted=predicted,
    )


def test_verify_prints_predicted_beside_measured(run, monkeypatch):
    def verify(_, group, *, predicted):
        assert group == 0
        return tuple(measured(form, kernels, 1e-6 * kernels, predicted.get(form)) for form, kernels in FORMS)

    monkeypatch.setattr(command, "verify", verify)
    monkeypatch.setattr(command, "predicted_times", lambda *_: {"fused": 1.2e-6, "separate": 2.1e-6})
    outcome = run(*LESSON, "--verify")
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert "fused 1 1.2 us 1.0 us 0.99 us to 1.02 us 1.20 1.0e-07" in lines
    assert lines[-2:] == ["- measured: fusing saves 1.0 us, 2.00x", "- predicted: 900.0 ns, 1.75x"]
    assert outcome.out.startswith(emit(plan()))


FORMS = (("fused", 1), ("separate", 2))


def test_verify_without_a_model_prints_what_was_measured(run, monkeypatch):
    monkeypatch.setattr(command, "_pricer", lambda: None)
    monkeypatch.setattr(command, "verify", lambda *_, **__: tuple(measured(f, n, 1e-6 * n) for f, n in FORMS))
    out = run(*LESSON, "--verify").out
    assert "predicted:" not in out
    assert "measured: fusing saves" in out


def test_predictions_are_of_the_group_alone():
    asked = []

    def pricer(alone, **terms):
        asked.append((len(alone.groups), terms["launch"], terms["path"]))
        return type("Price", (), {"time": 1e-6})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "_pricer", lambda: pricer)
        assert command.predicted_times(plan(), 0, None) == {"fused": 1e-6, "separate": 1e-6}
    assert asked == [(1, "graph", "cuda"), (2, "graph", "cuda")]


def test_no_gpu_is_one_sentence(run, monkeypatch):
    def verify(*_, **__):
        raise MeasurementError('measuring needs CuPy; install it with: pip install "fusesim[gpu]"')

    monkeypatch.setattr(command, "verify", verify)
    outcome = run(*LESSON, "--verify")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == 'fusesim: measuring needs CuPy; install it with: pip install "fusesim[gpu]"\n'
