"""Peak memory of plans against what PyTorch's allocator reported on an H200, byte for byte.

`python tests/reference/test_peak_memory.py` prints the table of errors.
"""

import json
import statistics
from pathlib import Path

import pytest

from fusesim import patterns
from fusesim.builder import Builder
from fusesim.decompose import decompose
from fusesim.fusion import FusionPlan, Group
from fusesim.liveness import liveness
from fusesim.tensor import channels_last

ROWS = json.loads((Path(__file__).parent / "h200_patterns.json").read_text())["rows"]

LIBRARY = {"matmul", "conv", "attention"}
"""Families that torch.compile leaves to a library's kernel."""


def apart(graph):
    groups = tuple(Group(nodes=(node.name,)) for node in graph.paid_nodes)
    return FusionPlan(graph=graph, groups=groups, strategy="eager")


def compiled(graph):
    """What torch.compile made of every row of the file: one generated kernel between the library's.

    The kernels' names in the file say so; attention step by step was recognised and replaced by the library's kernel.
    """
    graph = decompose(graph)
    groups, own = [], []
    for node in graph.paid_nodes:
        if node.family in LIBRARY:
            groups += [own, [node.name]]
            own = []
        else:
            own.append(node.name)
    parts = tuple(Group(nodes=tuple(names)) for names in (*groups, own) if names)
    return FusionPlan(graph=graph, groups=parts, strategy="inductor")


def plan_of(row, side):
    if side == "eager":
        return apart(patterns.from_measured(row["name"], row["dims"]))
    recognised = {"attention_ops": "attention_sdpa"}
    return compiled(patterns.from_measured(recognised.get(row["name"], row["name"]), row["dims"]))


def error(row, side):
    return liveness(plan_of(row, side)).peak / row[side]["peak_above_inputs"] - 1


def name_of(row):
    return row["name"] + "-" + "x".join(str(value) for value in row["dims"].values())


@pytest.mark.parametrize("side", ["eager", "compiled"])
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_every_row_to_the_byte(row, side):
    timeline = liveness(plan_of(row, side))
    assert timeline.peak == row[side]["peak_above_inputs"]
    assert timeline.end == row[side]["out_bytes"]


@pytest.mark.parametrize("side", ["eager", "compiled"])
def test_the_errors_that_it_is_held_to(side):
    errors = sorted(abs(error(row, side)) for row in ROWS)
    assert statistics.median(errors) <= 0.01
    assert errors[int(0.9 * len(errors))] <= 0.05


@pytest.mark.parametrize("row", [row for row in ROWS if row["name"] in {"rmsnorm_ops", "attention_ops"}], ids=name_of)
def test_variables_of_the_program_hold_their_tensors(row):
    # strict liveness misses what Python's variables keep until the function returns: the squares, the scores
    assert liveness(plan_of(row, "eager"), program=False).peak < row["eager"]["peak_above_inputs"]


@pytest.mark.parametrize("row", [row for row in ROWS if row["name"] == "matmul_bias_relu"], ids=name_of)
def test_a_generated_kernel_writes_over_what_dies_with_it(row):
    # without it the product and the result are two tensors, and the file says one
    assert liveness(plan_of(row, "compiled"), reuse=False).peak == 2 * row["compiled"]["peak_above_inputs"]


def test_a_whole_decoder_block():
    # h200_models: block:1,2048,2048,5632,16. Eager, at the product of the gates: y, q, k, v, the attention's result and
    # x [2048, 2048], then three tensors [2048, 5632], all bf16
    wide, narrow = 2048 * 5632 * 2, 2048 * 2048 * 2
    graph = patterns.transformer_block()
    assert liveness(apart(graph)).peak == 6 * narrow + 3 * wide == 119_537_664
    # compiled, at the second of the products: x, its norm and both gates; their product is then written over one
    assert liveness(compiled(graph)).peak == 2 * narrow + 2 * wide == 62_914_560


def test_the_worst_moment_of_resnet50():
    # h200_models: resnet50:32, eager, at the norm of the first shortcut. Three tensors [32, 256, 56, 56] of 49 MiB,
    # which the allocator counts as 50 MiB each, the block's input of 12.25 MiB, and the norm's two rows of statistics
    graph = _shortcut()
    large, statistics_row = 50 * 2**20, 1024
    assert liveness(apart(graph)).peak == 3 * large + 32 * 64 * 56 * 56 * 2 + 2 * statistics_row == 170_133_504
    assert liveness(apart(graph), allocator="step").peak == 170_133_504 - 3 * 2**20


def _shortcut():
    """The end of ResNet-50's first block: pooled input, the last convolution, the shortcut's, their norms."""
    b = Builder("shortcut")
    shape = (32, 64, 56, 56)
    x = b.op("relu", b.input(*shape, strides=channels_last(shape)))
    made = [_conv_norm(b, x), _conv_norm(b, x)]
    b.hold(x, made[0])
    b.output(b.op("relu", b.op("add", *made)))
    return b.graph()


def _conv_norm(b, x):
    weight = b.parameter(256, 64, 1, 1)
    return b.batch_norm(b.conv(x, weight), *(b.parameter(256) for _ in range(4)))


if __name__ == "__main__":
    for each in ROWS:
        cells = (f"{liveness(plan_of(each, side)).peak:>12} {error(each, side):8.3%}" for side in ("eager", "compiled"))
        print(f"{name_of(each):40}", *cells)
