"""How many kernels a program launches, eager and compiled, against what the profiler saw on an H200."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import fusesim
from fusesim import patterns

HERE = Path(__file__).parent


def beside(name):
    """A module beside this file."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


accuracy = beside("plan_accuracy")
fit = beside("fit_kernels")

DIFFERENCES = {
    # label, side: predicted, measured, and why. At most three in each file.
    ("own patterns", "attention_ops {'B': 2, 'heads': 12, 'S': 512, 'D': 64}", "eager"): (
        4,
        5,
        "cuBLAS hands 96 batched tiles of its own choice out through a counter that a memset clears first",
    ),
}
SHARES = {"eager": 0.95, "compiled": 0.90}  # random programs


def wrong(suite):
    """Programs whose count is off: label and side to predicted and measured."""
    return {
        (suite, one["label"], side): counts
        for one in accuracy.graded(suite)[0]
        for side, counts in zip(accuracy.SIDES, one["kernels"], strict=True)
        if counts[0] != counts[1]
    }


@pytest.mark.parametrize("suite", ["patterns", "own patterns"])
def test_every_pattern_launches_what_the_profiler_saw(suite):
    known = {key: (ours, theirs) for key, (ours, theirs, _) in DIFFERENCES.items() if key[0] == suite}
    assert len(known) <= 3
    assert wrong(suite) == known


@pytest.mark.parametrize("side", accuracy.SIDES)
def test_random_programs_mostly_do(side):
    every = accuracy.graded("random")[0]
    assert len(every) >= 100
    right = np.mean([one["counts"][accuracy.SIDES.index(side)] for one in every])
    assert right >= SHARES[side], wrong("random")


def kernels(graph, strategy, path):
    plan = fusesim.plan(graph, strategy=strategy)
    return int(fusesim.price(plan, device="h200-sxm", path=path, launch="graph", graph_repeats=4).kernels)


MODULES = {
    row["name"]: row
    for name in ("models", "own_models")
    for row in json.loads((HERE / f"h200_{name}.json").read_text(encoding="utf-8"))["rows"]
}


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("block:")])
def test_a_decoder_block_launches_what_was_captured(name):
    graph = patterns.transformer_block(*map(int, name.partition(":")[2].split(",")))
    row = MODULES[name]
    assert kernels(graph, "eager", "torch") == row["eager"]["graph_kernels"]
    assert kernels(graph, "inductor", "inductor") == row["compiled"]["graph_kernels"]


@pytest.mark.parametrize("name", ["gpt:8,1024,1024,16", "bert:8,128,768,12"])
def test_a_module_launches_what_was_captured(name):
    torch = pytest.importorskip("torch")
    models_torch = beside("models_torch")
    with torch.no_grad():
        module, inputs = models_torch.build(name, "cpu")
        graph = fusesim.from_torch(module, *inputs)
    assert kernels(graph, "eager", "torch") == MODULES[name]["eager"]["graph_kernels"]
    assert kernels(graph, "inductor", "inductor") == MODULES[name]["compiled"]["graph_kernels"]


EXACT = (
    "vectorised", "narrowed", "converted", "strided", "transposed", "sum_block", "sum_warp", "max_", "var_",
    "columns", "softmax", "log_softmax", "layer_norm", "rms_norm", "moments", "normalised", "gather_elements",
    "depthwise_first", "nll_loss", "batch_norm", "pool", "scan", "upsample_last", "bilinear", "gather_rows",
    "layout", "concat_strided",
)  # fmt: skip
"""Classes whose blocks follow from PyTorch's rules; libraries choose theirs."""

ARANGE = "elementwise_kernel_with_index"


def test_single_ops_launch_in_as_many_blocks_as_the_profiler_saw():
    here, target = fit.machine()
    seen, right = 0, 0
    for case in fit.cases(
        ("pointwise", "rows", "products", "more", "columns", "layouts", "library", "training", "training_held"),
        here,
        target,
        sides=("eager",),
    ):
        if len(case.kernels) != len(case.launches):
            continue
        for (name, _, blocks, *_), launch in zip(case.kernels, case.launches, strict=True):
            if launch.row.startswith(EXACT) and not name.startswith(ARANGE):
                seen += 1
                right += int(blocks) == int(launch.blocks)
    assert seen >= 2100
    assert right / seen >= 0.99, (right, seen)


def test_single_ops_launch_as_many_kernels_as_the_profiler_saw():
    here, target = fit.machine()
    every = fit.cases(("pointwise", "rows", "more", "training", "training_held"), here, target, sides=("eager",))
    ours = [case for case in every if case.row["steps"][-1][1] not in {"conv", "linear", "attention"}]
    right = [len(case.kernels) == len(case.launches) for case in ours]
    assert len(right) >= 1000
    assert np.mean(right) >= 0.99
