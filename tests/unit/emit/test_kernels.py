"""Emitted kernels compute what numpy does: run on the host, fused and apart, and compiled by nvcc."""

import subprocess

import numpy as np
import pytest

from fusesim import patterns
from fusesim.builder import Builder
from fusesim.decompose import decompose
from fusesim.emit import evaluate


def broadcasts():
    # a row, a column, one value, and a plane that repeats in the middle
    b = Builder("broadcasts")
    x = b.input(3, 4, 16, dtype="fp32")
    row, column = b.input(16, dtype="fp32", name="row"), b.input(3, 4, 1, dtype="fp32", name="column")
    plane, one = b.input(3, 1, 16, dtype="fp32", name="plane"), b.input(1, dtype="fp32", name="one")
    b.output(b.op("mul", b.op("add", b.op("sub", b.op("mul", x, row), column), plane), one))
    return b.graph()


def odd_sizes():
    b = Builder("odd")  # 7 x 13 is divisible by no vector
    x, y = b.input(7, 13, dtype="bf16"), b.input(7, 13, dtype="bf16", name="y")
    b.output(b.op("silu", b.op("mul", x, y)))
    return b.graph()


def several_outputs():
    b = Builder("outputs")
    x, y = b.input(64, 8, dtype="fp16"), b.input(64, 8, dtype="fp32", name="y")
    total = b.op("add", x, y)  # fp32: two types meet
    b.output(total, b.op("exp", b.op("neg", x)), b.op("gt", total, scalar=0.5))
    return b.graph()


def choices():
    b = Builder("choices")
    x, y = b.input(5, 32, dtype="fp32"), b.input(5, 32, dtype="fp32", name="y")
    test = b.op("logical_and", b.op("lt", x, y), b.op("ge", x, scalar=-1.0))
    b.output(b.op("where", test, x, y), b.op("maximum", x, y), b.op("clamp", x, min=-0.5, max=0.25))
    b.output(b.op("where", test, x, scalar=7.0), b.op("where", test, x, scalar=7.0, reverse=True))
    b.output(b.op("where", test, scalar=7.0, other=-2.0, dtype="fp32"))
    return b.graph()


def strided_copy():
    b = Builder("strided")  # a transposed part of x, written in order
    x = b.input(24, 40, dtype="bf16")
    b.output(b.op("mul", b.copy(b.transpose(b.slice(x, 1, 8, 24))), scalar=2.0))
    return b.graph()


def channels_last():
    b = Builder("channels")  # all in the same order that is not row-major: one loop all the same
    x = b.input(2, 8, 3, 5, dtype="fp32", strides=(120, 1, 40, 8))
    scale = b.input(8, 1, 1, dtype="fp32", name="scale")
    b.output(b.op("relu", b.op("mul", x, scale)))
    return b.graph()


def reshaped():
    b = Builder("reshaped")  # heads are split off between two ops of a kernel
    x, y = b.input(6, 32, dtype="fp32"), b.input(6, 4, 8, dtype="fp32", name="y")
    b.output(b.op("add", b.view(b.op("relu", x), (6, 4, 8)), y))
    return b.graph()


def whole_numbers():
    b = Builder("whole")
    x, y = b.input(100, dtype="int64"), b.input(100, dtype="int32", name="y")
    b.output(b.op("add", b.op("mul", x, scalar=3), y), b.op("div", x, scalar=4.0), b.cast(x, "bf16"))
    return b.graph()


def over_itself():
    b = Builder("over")
    x, bias = b.input(16, 64, dtype="fp32"), b.input(64, dtype="fp32", name="bias")
    b.output(b.op("relu", b.op("add", x, bias, over=True), over=True))
    return b.graph()


def doubles():
    b = Builder("doubles")
    x = b.input(33, dtype="fp64")
    b.output(b.op("tanh", b.op("exp", b.op("sin", x))))
    return b.graph()


def functions():
    b = Builder("functions")
    x = b.input(4, 16, dtype="fp32")
    positive = b.op("add", b.op("abs", x), scalar=0.5)
    for kind in ("sqrt", "rsqrt", "log", "log1p", "reciprocal", "exp2", "gelu", "gelu_tanh", "sigmoid", "erf", "cos"):
        b.output(b.op(kind, positive))
    for kind in ("sign", "floor", "hardswish", "leaky_relu", "elu", "softplus", "square", "silu"):
        b.output(b.op(kind, x))
    b.output(
        b.op("pow", positive, scalar=1.5),
        b.op("sub", x, scalar=1.0, reverse=True),
        b.op("lerp", x, positive, scalar=0.25),
    )
    return b.graph()


def gradients():
    b = Builder("gradients")
    g, x = b.input(4, 16, dtype="fp32", name="g"), b.input(4, 16, dtype="fp32")
    for kind in ("relu", "sigmoid", "tanh", "silu", "gelu", "gelu_tanh"):
        b.output(b.op(f"{kind}_backward", g, x))
    return b.graph()


def all_reductions():
    b = Builder("reductions")
    x = b.input(5, 70, dtype="fp32")
    for kind in ("sum", "mean", "amax", "amin", "prod", "var", "norm", "argmax", "argmin"):
        b.output(b.reduce(kind, x))
    b.output(*b.reduce_all("max", x), *b.reduce_all("min", x), *b.reduce_all("var_mean", x, keepdim=False))
    test = b.op("gt", x, scalar=1.0)
    b.output(b.reduce("any", test), b.reduce("all", test), b.reduce("sum", test))
    return b.graph()


def over_first_dimension():
    b = Builder("columns")  # neighbours in memory lie in different rows
    x = b.input(40, 6, dtype="fp32")
    b.output(b.op("sub", x, b.reduce("mean", x, (0,))))
    return b.graph()


def everything_to_one():
    b = Builder("everything")
    x = b.input(9, 11, dtype="bf16")
    b.output(b.reduce("sum", b.op("square", x), (), keepdim=False))
    return b.graph()


def middle():
    b = Builder("middle")  # reduces the middle of three, kept dimension dropped, and broadcasts back
    x = b.input(3, 20, 8, dtype="fp32")
    mean = b.reduce("mean", x, (1,), keepdim=False)
    b.output(b.op("div", x, b.view(mean, (3, 1, 8))), mean)
    return b.graph()


def long_softmax():
    return patterns.softmax(2, 40001)  # odd and too long for registers: three passes


def no_hold():
    b = Builder("no_hold")
    x = b.input(3, 5000, dtype="bf16")
    b.output(b.reduce("amax", b.op("abs", x)), b.op("neg", x))
    return b.graph()


CASES = {
    function.__name__: function
    for function in (
        broadcasts, odd_sizes, several_outputs, choices, strided_copy, channels_last, reshaped, whole_numbers,
        over_itself, doubles, functions, gradients, all_reductions, over_first_dimension, everything_to_one, middle,
        long_softmax, no_hold,
    )
} | {
    "bias_relu": patterns.bias_relu,
    "chain": lambda: patterns.chain(["gelu", "mul_tensor", "add_row", "tanh"], 4096, row=128),
    "rmsnorm": lambda: patterns.rmsnorm(3, 1000),
    "rmsnorm_upcast": lambda: patterns.rmsnorm(3, 4096, upcast=True),
    "add_rmsnorm": lambda: patterns.add_rmsnorm(2, 520),
    "layernorm": lambda: patterns.layernorm(4, 200),
    "layernorm_ops": lambda: patterns.layernorm(4, 96, "fp32", composite=False),
    "layernorm_long": lambda: patterns.layernorm(2, 36000, "fp16"),
    "softmax": lambda: patterns.softmax(3, 1024, "fp16"),
    "softmax_ops": lambda: patterns.softmax(3, 33, "fp32", composite=False),
    "gelu_ops": lambda: patterns.gelu(8, 64, composite=False),
    "swiglu": lambda: patterns.swiglu(4, 64),
    "fp8_rowwise_quant": lambda: patterns.fp8_rowwise_quant(4, 256),
    "adam_step": lambda: patterns.adam_step(1000),
    "independent4": lambda: patterns.independent4(4096),
}  # fmt: skip


@pytest.fixture(scope="module")
def plans(emit_tools):
    return {key: emit_tools.one_group(make()) for key, make in CASES.items()}


@pytest.fixture(scope="module")
def library(plans, emit_tools, tmp_path_factory):
    return emit_tools.host_library(plans, tmp_path_factory.mktemp("host"))


def tolerance(graph):
    """Return what rounding may change: a step of the narrowest type, more where a sum of rounded values follows."""
    types = {tensor.dtype for tensor in graph.tensors.values()}
    steps = {"fp8": 0.13, "bf16": 0.02, "fp16": 0.003}
    return next((steps[name] for name in steps if name in types), 2e-5)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "apart"])
@pytest.mark.parametrize("key", CASES)
def test_a_kernel_on_the_host_computes_what_numpy_does(key, fused, plans, library, emit_tools):
    graph = plans[key].graph
    inputs = emit_tools.values_for(graph)
    expected = evaluate(decompose(graph), inputs)
    got = emit_tools.run_on_host(library, key, plans[key], expected, fused=fused)
    assert set(got) == set(graph.outputs)
    for name, values in got.items():
        limit = tolerance(graph)
        np.testing.assert_allclose(values, expected[name], rtol=limit, atol=limit, err_msg=name)


@pytest.mark.slow
def test_nvcc_compiles_every_kernel(plans, emit_tools, tmp_path):
    program = emit_tools.nvcc()
    headers = "".join(f"#include <{name}>\n" for name in ("cuda_bf16.h", "cuda_fp16.h", "cuda_fp8.h"))
    text = headers + "".join(source.text for source in emit_tools.sources(plans))
    (tmp_path / "all.cu").write_text(text, encoding="utf-8")
    command = [program, "-arch=sm_90", "-std=c++17", "-c", "all.cu", "-o", "all.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
