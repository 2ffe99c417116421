"""Ten questions, each asked by its one command and its one call: the right cause, and what flips the verdict."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import fusesim
import fusesim.why
from fusesim import patterns
from fusesim.cli import questions

ROOT = Path(__file__).parents[2]
TRACES = ROOT / "tests/reference/traces"
OVERHEAD, SLOWER, RATE, BIG, WHY, LYING, SMALL, BUYS, SHORT, MERGE = questions.QUESTIONS


@pytest.fixture
def ask(run, tmp_path, monkeypatch):
    """Return what the command and the call of a question say, with a trace where both look for one."""
    monkeypatch.chdir(tmp_path)

    def asked(question, trace="bert_8-128-768-12.eager"):
        (tmp_path / "trace.json.gz").write_bytes((TRACES / f"{trace}.json.gz").read_bytes())
        outcome = run(*shlex.split(question.command))
        assert (outcome.code, outcome.err) == (0, "")
        answer = eval(question.call, {"fusesim": fusesim})
        return outcome.out, " | ".join(answer) if isinstance(answer, list) else str(answer)

    return asked


def told(comparison):
    return " | ".join(comparison.explain())


def test_there_are_ten_and_readme_and_help_list_them(run):
    assert len({one.command for one in questions.QUESTIONS}) == 10
    assert questions.markdown() in (ROOT / "README.md").read_text(encoding="utf-8"), questions.markdown()
    shown = run("--help").out
    for one in questions.QUESTIONS:
        assert one.text in shown
        assert f"fusesim {one.command}" in shown


def test_launch_overhead(ask):
    # BERT at 8 x 128 tokens: 11 launches of 8 us each outlast its kernels
    out, answer = ask(OVERHEAD)
    for text in (out, answer):
        assert "host-bound" in text
        assert "CUDA graphs alone would save" in text
    # size decides: eight rows wait for the host, 8192 do not
    small, large = (fusesim.rank(patterns.rmsnorm(tokens=tokens)) for tokens in (8, 8192))
    assert small.graphs_save > 0.4 * small.step
    assert large.graphs_save < 0.1 * large.step
    assert "next to nothing" in " ".join(large.explain())
    # launch decides: in a graph nothing waits for the host
    assert "host-bound" not in " ".join(fusesim.rank(patterns.rmsnorm(tokens=8), launch="graph").explain())


def test_why_a_fused_kernel_is_slower(ask):
    # erf-GELU alone: both kernels issue the same instructions, the generated one more for addresses
    for text in ask(SLOWER):
        assert "fusing loses" in text
        assert "bound by instruction issue" in text
    # type decides what binds: fp32 moves twice the bytes for the same instructions
    wide = fusesim.compare(patterns.gelu(rows=8192, cols=4096, dtype="fp32"))
    assert (wide.unfused.bound, wide.fused.bound) == ("dram", "dram")
    # the framework's one kernel decides: written out as nine, the same fused kernel wins
    assert fusesim.compare(patterns.gelu(rows=8192, cols=4096, composite=False)).saving > 0


def test_whether_a_rate_is_good(ask):
    for text in ask(RATE):
        assert "near the ceiling" in text
    # size decides: so fast are 32 MB only where the cache holds them, and 268 MB never
    assert fusesim.check(32e6, 32e6 / 6e12).verdict == "L2-resident"
    assert fusesim.check(268e6, 268e6 / 6e12).verdict == "impossible"
    # device decides: 4.2 TB/s are beyond an H100's 3.35
    assert fusesim.check(268e6, 268e6 / 4.2e12, device="h100-sxm").verdict == "impossible"
    assert fusesim.check(268e6, 268e6 / 1.4e12).verdict == "kernel problem"
    # a slice of a GPU has an eighth of its memory: 0.53 TB/s are good there
    assert fusesim.check(268e6, 0.5e-3, mig=(1, 7)).verdict == "near the ceiling"
    assert fusesim.check(268e6, 0.5e-3).verdict == "kernel problem"


def test_public_rates_are_near_the_ceiling():
    # C01: a fused relu and square over 4096 x 16384 bf16 on an H100, 94.4 us with the 7 us of its harness
    moved = 2 * 4096 * 16384 * 2  # one read and one write of 2 B each
    assert fusesim.check(moved, 94.4e-6 - 7e-6, device="h100-sxm").verdict == "near the ceiling"
    # the same at N = 128: 2 MB in 7.33 us
    assert fusesim.check(2 * 4096 * 128 * 2, 7.33e-6, device="h100-sxm", launch="latency").verdict == "launch-bound"


def test_when_a_fusion_is_too_big(ask):
    # a row of 65536 bf16 values is 131 kB, read once for the mean and again for the result
    for text in ask(BIG):
        assert "does not stay on chip" in text
    small = fusesim.compare(patterns.rmsnorm(tokens=2048, hidden=1024), fused=("vertical", "inductor"))
    assert "does not stay on chip" not in told(small)


def test_why_a_compiler_did_not_fuse(ask):
    out, _ = ask(WHY)
    assert "fusing saves" in out
    assert "kernels of their own under inductor" in out
    # size decides: with few rows the generated product is slower than the library's by more than the epilogue saves
    few = fusesim.why.why(patterns.matmul_bias_gelu(m=128), "matmul", "gelu")
    many = fusesim.why.why(patterns.matmul_bias_gelu(m=2048), "matmul", "gelu")
    assert few.loses
    assert many.saving > 0
    # and two products with others between them cannot share a kernel at all
    stopped = fusesim.why.why(patterns.swiglu_mlp(), "matmul", "matmul_2")
    assert "two products" in stopped.reason


def test_whether_a_benchmark_lies(ask):
    # one call from idle: 6.5 us of waiting around 4 us of kernel
    for text in ask(LYING):
        assert "launch-bound" in text
    # launch decides: the same time behind a full queue in a graph is a slow kernel
    assert fusesim.check(8e6, 12e-6, launch="graph").verdict == "kernel problem"
    # and the same bytes faster than memory are from a warm cache
    assert fusesim.check(8e6, 1.7e-6, launch="graph").verdict == "L2-resident"


def test_why_compiling_is_slower_on_small_tensors(ask):
    for text in ask(SMALL):
        assert "fusing loses" in text
        assert "50.0 us per call" in text  # against 2 x 8 us of eager launches
    # launch decides: in a graph the host is out of the way
    small = patterns.bias_relu(rows=128, cols=512)
    assert fusesim.compare(small, launch="graph").saving > 0
    # size decides
    assert fusesim.compare(patterns.bias_relu(rows=65536, cols=512), launch="stream").saving > 0


def test_what_a_fusion_buys_end_to_end(ask):
    for text in ask(BUYS, trace="vit_16.eager"):
        assert "add + layer_norm" in text
        assert "of the step" in text
    # sizes decide: beside large products the same fusion is worth a tenth of what it is worth beside small ones
    shares = [
        fusesim.rank(patterns.swiglu_mlp(hidden=hidden, inner=inner), launch="graph").fusions[0].share
        for hidden, inner in ((512, 1024), (8192, 28672))
    ]
    assert shares[0] > 0.05 > shares[1]


def test_why_short_rows_are_slow(ask):
    # a block of 128 threads for each row of 32 values
    for text in ask(SHORT):
        assert "layer_norm runs 1 048 576 blocks of 32 values" in text
        assert "fusing saves" in text
    # size decides: as many values in rows of 4096 keep their blocks busy
    assert "blocks of" not in told(fusesim.compare(patterns.layernorm(rows=8192, cols=4096)))


def test_whether_tiny_kernels_can_be_merged(ask):
    for text in ask(MERGE):
        assert "4 kernels to 1" in text
        assert "launches and the latency behind them" in text
    # size decides: at 268 million values each, memory is busy either way
    large = fusesim.compare(patterns.independent4(elements=2**28), fused=("horizontal", "inductor"))
    assert large.saving < 0.05 * large.unfused.time
    assert large.unfused.bound == "dram"
