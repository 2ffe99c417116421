"""Every pattern's bytes by hand: what separate kernels move, and what one kernel could not do without.

Unfused, each op reads its inputs and writes its results; fused, only inputs and outputs of the graph move.
"""

import functools
import json
from pathlib import Path

import numpy as np
import pytest

from fusesim import patterns
from fusesim.errors import InputError

MEASURED = json.loads((Path(__file__).parents[1] / "reference" / "h200_patterns.json").read_text())["rows"]


def unfused(graph):
    named = ((node.inputs, node.outputs) for node in graph.paid_nodes)
    return sum(graph.tensors[name].bytes for into, out in named for name in (*dict.fromkeys(into), *out))


def fused(graph):
    return sum(graph.tensors[name].bytes for name in (*graph.inputs, *graph.outputs))


def kinds(graph):
    return [node.kind for node in graph.paid_nodes]


def test_the_lessons_bias_and_relu():
    graph = patterns.bias_relu(128, 512)
    x, bias = 128 * 512 * 4, 512 * 4
    assert kinds(graph) == ["add", "relu"]
    assert unfused(graph) == (x + bias + x) + (x + x) == 1_050_624  # add: x, bias, sum; relu: sum, result
    assert fused(graph) == x + bias + x == 526_336  # one kernel: x and bias read, the result written


def test_the_lessons_rmsnorm_step_by_step():
    graph = patterns.rmsnorm(tokens=8192, hidden=4096)
    x, row, weight = 8192 * 4096 * 2, 8192 * 2, 4096 * 2
    assert kinds(graph) == ["mul", "mean", "add", "rsqrt", "mul", "mul"]
    steps = [
        x + x,  # square: x times itself is read once
        x + row,  # mean of each row
        row + row,  # plus epsilon
        row + row,  # reciprocal root
        x + row + x,  # times x
        x + weight + x,  # times weight
    ]
    assert unfused(graph) == sum(steps)
    assert fused(graph) == x + weight + x


def test_rmsnorm_in_fp32_widens_and_narrows():
    graph = patterns.rmsnorm(64, 128, upcast=True)
    assert kinds(graph) == ["cast", "square", "mean", "add", "rsqrt", "mul", "cast", "mul"]
    x, wide, row, weight = 64 * 128 * 2, 64 * 128 * 4, 64 * 4, 128 * 2
    # cast; square; mean; + eps; rsqrt; times x; cast back; times weight
    steps = [x + wide, 2 * wide, wide + row, 2 * row, 2 * row, 2 * wide + row, wide + x, x + weight + x]
    assert unfused(graph) == sum(steps)


def test_rmsnorm_of_fp32_needs_no_cast():
    assert "cast" not in kinds(patterns.rmsnorm(64, 128, "fp32", upcast=True))


T, H = 96, 256
N, ROW, W = T * H * 2, T * 2, H * 2
M, K, C = 32, 64, 48
LEFT, RIGHT, MADE = M * K * 2, K * C * 2, M * C * 2


@pytest.mark.parametrize(
    ("graph", "apart", "together"),
    [
        (patterns.chain(5, 1000), 5 * 2 * 2000, 2 * 2000),  # each op: one read, one write
        (patterns.chain(["add_tensor", "mul_row"], 1000, row=10), 5 * 2000 + 20, 3 * 2000 + 20),  # operands once
        (patterns.add_rmsnorm(T, H), 10 * N + 6 * ROW + W, 4 * N + W),  # the sum is read by two, and returned
        (patterns.layernorm(T, H), 2 * N + 2 * W, 2 * N + 2 * W),  # one kernel of the framework
        (patterns.layernorm(T, H, composite=False), 12 * N + 8 * ROW + 2 * W, 2 * N + 2 * W),
        (patterns.softmax(T, H), 2 * N, 2 * N),
        (patterns.softmax(T, H, composite=False), 8 * N + 4 * ROW, 2 * N),  # amax 1, sub 2, exp 2, sum 1, div 2
        (patterns.gelu(T, H), 2 * N, 2 * N),
        (patterns.gelu(T, H, composite=False), 5 * 2 * N + 4 * 3 * N, 2 * N),  # five of one operand, four of two
        (patterns.swiglu(T, H), 2 * N + 3 * N, 3 * N),  # silu, then a product of two
        (patterns.dropout_residual_layernorm(T, H), 7 * N + N // 2 + 2 * W, 3 * N + 2 * W),  # the mask has one byte
        (patterns.matmul(M, K, C), LEFT + RIGHT + MADE, LEFT + RIGHT + MADE),
        (patterns.matmul_bias_relu(M, K, C), LEFT + RIGHT + 5 * MADE + C * 2, LEFT + RIGHT + MADE + C * 2),
        (patterns.matmul_bias_gelu(M, K, C), LEFT + RIGHT + 5 * MADE + C * 2, LEFT + RIGHT + MADE + C * 2),
        (patterns.adam_step(1000), 28 * 4000, 7 * 4000),  # in: p, g, m, v; out: p, m, v
        (patterns.independent4(1000), 8 * 2000, 8 * 2000),  # nothing is shared, so no byte is saved
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_bytes_apart_and_together(graph, apart, together):
    assert (unfused(graph), fused(graph)) == (apart, together)


def test_swiglu_mlp_reads_three_weights():
    graph = patterns.swiglu_mlp(T, H, 512)
    x, weight, inner = N, H * 512 * 2, T * 512 * 2
    assert kinds(graph) == ["matmul", "silu", "matmul", "mul", "matmul"]
    assert unfused(graph) == 3 * x + 3 * weight + 8 * inner  # inner: 3 products' sides, silu 2, product of two 3
    assert fused(graph) == 2 * x + 3 * weight


def test_rope_concatenates_halves():
    graph = patterns.rope(8, 4, 16)
    x, table = 8 * 4 * 16 * 2, 8 * 16 * 2
    assert kinds(graph) == ["mul", "neg", "concat", "mul", "add"]
    # times cos; half negated; both halves to one; times sin; sum of two
    assert unfused(graph) == (2 * x + table) + x + 2 * x + (2 * x + table) + 3 * x
    assert fused(graph) == 2 * x + 2 * table


def test_conv_bn_relu_is_channels_last():
    graph = patterns.conv_bn_relu(batch=2, cin=8, cout=16, size=10, kernel=3)
    x, weight, made, statistic = 2 * 8 * 100 * 2, 16 * 8 * 9 * 2, 2 * 16 * 100 * 2, 16 * 4
    assert unfused(graph) == x + weight + 5 * made + 4 * statistic  # conv 1, norm 2, relu 2
    assert fused(graph) == x + weight + made + 4 * statistic
    for name in ("conv", "batch_norm", "relu"):
        assert graph.tensors[name].strides == (16 * 100, 1, 16 * 10, 16)
    assert graph.flops(graph.node("conv")) == 2 * 2 * 16 * 100 * 8 * 9  # an FMA per output, channel and window place


def test_attention_step_by_step_and_tiled():
    sizes = {"batch": 2, "heads": 4, "seq": 64, "head_dim": 16}
    x, scores = 2 * 4 * 64 * 16 * 2, 2 * 4 * 64 * 64 * 2
    apart, tiled = patterns.attention(**sizes, composite=False), patterns.attention(**sizes)
    assert kinds(apart) == ["matmul", "mul", "softmax", "matmul"]
    assert unfused(apart) == (2 * x + scores) + 2 * scores + 2 * scores + (scores + 2 * x)
    assert unfused(tiled) == fused(tiled) == fused(apart) == 4 * x  # q, k, v and the result: no scores in memory
    assert apart.flops(apart.node("matmul")) * 2 == tiled.total_flops == 4 * 2 * 4 * 64 * 64 * 16


def test_causal_attention_adds_a_mask_or_says_so():
    apart, tiled = (patterns.attention(1, 2, 8, 4, causal=True, composite=composite) for composite in (False, True))
    assert kinds(apart) == ["matmul", "mul", "add", "softmax", "matmul"]
    assert tiled.node("attention").attr("causal") is True


def test_fp8_quantisation_widens_before_it_narrows():
    graph = patterns.fp8_rowwise_quant(T, H)
    wide, scale = 2 * N, T * 4
    assert kinds(graph) == ["abs", "amax", "cast", "div", "cast", "div", "cast"]
    steps = [2 * N, N + ROW, ROW + scale, 2 * scale, N + wide, wide + scale + wide, wide + N // 2]
    assert unfused(graph) == sum(steps)
    assert fused(graph) == N + N // 2 + scale


def test_cross_entropy_in_fp32():
    graph = patterns.cross_entropy(16, 100)
    logits, wide, target = 16 * 100 * 2, 16 * 100 * 4, 16 * 8
    assert unfused(graph) == (logits + wide) + 2 * wide + (wide + target + 4)  # the loss is one fp32 number
    assert fused(graph) == logits + target + 4


def test_gelu_by_its_form():
    assert kinds(patterns.gelu(2, 2, approximate="tanh")) == ["gelu_tanh"]
    made = kinds(patterns.gelu(2, 2, composite=False))
    assert made == ["mul", "mul", "mul", "mul", "add", "mul", "tanh", "add", "mul"]  # as Python evaluates it


def test_a_block_has_the_kernels_that_its_profile_shows():
    graph = patterns.transformer_block()
    norm = ["cast", "square", "mean", "add", "rsqrt", "mul", "cast", "mul"]
    rotary = ["mul", "neg", "concat", "mul", "add"]
    attention = [*norm, *["matmul"] * 3, *rotary, *rotary, "attention", "matmul", "add"]
    assert kinds(graph) == [*attention, *norm, "matmul", "silu", "matmul", "mul", "matmul", "add"]
    tokens, hidden, inner = 2048, 2048, 5632
    products = sum(graph.flops(node) for node in graph if node.kind == "matmul")
    assert products == 2 * tokens * hidden * (4 * hidden + 3 * inner)


def test_dlrm_multiplies_pairs_of_27_vectors():
    graph = patterns.dlrm(batch=128)
    assert graph.tensors["matmul_3"].shape == (128, 27, 27)
    assert graph.tensors["concat_1"].shape == (128, 64 + 351)
    layers = 13 * 512 + 512 * 256 + 256 * 64 + 415 * 512 + 512 * 256 + 256 * 1
    products = sum(graph.flops(node) for node in graph if node.family == "matmul")
    assert products == 2 * 128 * (layers + 27 * 27 * 64)
    assert kinds(graph).count("embedding_bag") == 26


@pytest.mark.parametrize("name", patterns.PATTERNS)
def test_defaults_can_be_read_and_build(name):
    defaults = patterns.parameters(name)
    assert all(value is not patterns for value in defaults.values())
    graph = patterns.find(name)()
    assert graph.name == name
    assert patterns.find(name)(**defaults) == graph
    assert patterns.summary(name).startswith("Return ")


MIXED = {"conv_bn_relu", "dlrm", "cross_entropy", "fp8_rowwise_quant"}


@pytest.mark.parametrize("name", sorted(set(patterns.PATTERNS) - MIXED))
def test_the_type_is_that_of_every_input(name):
    graph = patterns.find(name)(dtype="fp16")
    assert {graph.tensors[tensor].dtype for tensor in graph.inputs} == {"fp16"}
    assert {graph.tensors[tensor].dtype for tensor in graph.outputs} == {"fp16"}


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: f"{row['name']}-{row['in_bytes']}")
def test_inputs_of_measured_rows_have_their_bytes(row):
    assert patterns.from_measured(row["name"], row["dims"]).input_bytes == row["in_bytes"]


LIBRARY = ("Memset", "Memcpy", "batch_norm_calc_invstd")
"""What a library launches around its kernel: clearing a workspace, and batch norm's statistics."""


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: f"{row['name']}-{row['in_bytes']}")
def test_one_op_per_kernel_that_the_profiler_saw(row):
    kernels = [name for name, _ in row["eager"]["kernels"] if not any(part in name for part in LIBRARY)]
    assert len(patterns.from_measured(row["name"], row["dims"]).paid_nodes) == len(kernels)


@pytest.mark.parametrize("name", patterns.ALIASES)
def test_every_measured_name_is_one_of_a_pattern(name):
    alias = patterns.ALIASES[name]
    sizes = {there: 8 if there == "heads" else 64 for there in alias.dims}
    graph = patterns.from_measured(name, sizes)
    assert graph.name == alias.pattern
    assert patterns.find(name)(**{alias.dims[there]: size for there, size in sizes.items()}) == graph


def test_a_models_sizes_stand_behind_a_colon():
    graph = patterns.from_measured("block:1,8,16,24,2")
    assert graph == patterns.transformer_block(1, 8, 16, 24, 2)


SENTENCES = [
    (lambda: patterns.find("rmsnrm"), 'unknown pattern "rmsnrm"; did you mean "rmsnorm"?'),
    (lambda: patterns.rmsnorm(0), "rmsnorm: tokens is 0; it is a whole number from 1 to 10^18"),
    (lambda: patterns.rmsnorm(hidden=2.5), "rmsnorm: hidden is 2.5; it is a whole number from 1 to 10^18"),
    (lambda: patterns.rmsnorm(hidden=True), "rmsnorm: hidden is True; it is a whole number from 1 to 10^18"),
    (lambda: patterns.rmsnorm(hidden="x"), "rmsnorm: hidden is x; it is a whole number from 1 to 10^18"),
    (lambda: patterns.rmsnorm(upcast="yes"), "rmsnorm: upcast is yes; it is a switch: True or False"),
    (lambda: patterns.rmsnorm(dtype="bf61"), 'unknown dtype "bf61"; did you mean "bf16"?'),
    (lambda: patterns.rmsnorm(dtype="int8"), "unknown rmsnorm: dtype"),
    (lambda: patterns.rmsnorm(10**10, 10**9), "rmsnorm: tensor x: 10000000000000000000 elements; the largest is 10^18"),
    (lambda: patterns.rmsnorm(toks=1), "rmsnorm: got an unexpected keyword argument 'toks'; it takes tokens, hidden"),
    (lambda: patterns.gelu(approximate="erf"), 'gelu: approximate is erf; it is "none" (erf) or "tanh"'),
    (lambda: patterns.rope(head_dim=15), "rope: head_dim is 15; its halves swap places, so it must be even"),
    (lambda: patterns.dropout_residual_layernorm(p=1), "dropout_residual_layernorm: p is 1; it is a number from 0"),
    (lambda: patterns.transformer_block(heads=7), "transformer_block: heads is 7, which does not divide hidden 2048"),
    (lambda: patterns.chain(["mul", "add_row"]), "chain: add_row and mul_row broadcast a row; give its length"),
    (lambda: patterns.chain(2, 10, row=3), "chain: row is 3, which does not divide elements 10"),
    (lambda: patterns.chain(10**5), "chain: ops is 100000; it is a whole number from 1 to 10^4"),
    (lambda: patterns.chain(["swish"]), 'unknown op "swish"'),
    (lambda: patterns.chain([]), "the chain is empty"),
    (lambda: patterns.from_measured("rmsnorm_ops", {"T": 1}), "rmsnorm_ops has dimensions T; it takes T, H"),
    (lambda: patterns.from_measured("block:1,x"), "block:1,x: behind the colon stand whole numbers"),
    (lambda: patterns.from_measured("rms"), 'unknown measured pattern "rms"'),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=[sentence[:40] for _, sentence in SENTENCES])
def test_what_cannot_be_is_refused_in_one_sentence(call, sentence):
    with pytest.raises(InputError) as raised:
        call()
    assert str(raised.value).startswith(sentence)
    assert "\n" not in str(raised.value)


def test_numbers_of_numpy_and_whole_floats_are_sizes():
    assert patterns.rmsnorm(np.int64(8), 16.0) == patterns.rmsnorm(8, 16)


def test_no_dropout_is_no_op():
    assert kinds(patterns.dropout_residual_layernorm(8, 8, p=0)) == ["add", "layer_norm"]


def test_a_chain_takes_names_as_price_chain_does():
    assert kinds(patterns.chain("gelu", 8)) == ["gelu"]
    assert kinds(functools.partial(patterns.chain, ("add", "relu"))(8)) == ["add", "relu"]
