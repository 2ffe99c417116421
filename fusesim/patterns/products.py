"""Patterns around a product on the matrix units: matmul, convolution, attention, and what follows them.

One node per call of the framework, in the order in which it evaluates them. `hold` marks what a variable of the
program keeps until it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim.builder import Builder
from fusesim.patterns.arguments import pattern
from fusesim.tensor import Tensor, channels_last

if TYPE_CHECKING:
    from fusesim.graph import Graph


def _product(b: Builder, sizes: tuple[int, int, int], dtype: str) -> Tensor:
    """Add x [m, k] times weight [k, n]."""
    m, k, n = sizes
    return b.matmul(b.input(m, k, dtype=dtype), b.parameter(k, n, dtype=dtype, name="weight"))


@pattern
def matmul(m: int = 2048, k: int = 4096, n: int = 4096, dtype: str = "bf16") -> Graph:
    """Return x [m, k] times weight [k, n]; 1 op."""
    b = Builder("matmul")
    b.output(_product(b, (m, k, n), dtype))
    return b.graph()


def _with_bias(kind: str, sizes: tuple[int, int, int], dtype: str) -> Graph:
    """Return a pointwise op of a product plus a bias row."""
    b = Builder(f"matmul_bias_{kind}")
    product = _product(b, sizes, dtype)
    b.output(b.op(kind, b.op("add", product, b.parameter(sizes[-1], dtype=dtype, name="bias"))))
    return b.graph()


@pattern
def matmul_bias_relu(m: int = 2048, k: int = 4096, n: int = 4096, dtype: str = "bf16") -> Graph:
    """Return relu(x @ weight + bias): x [m, k], weight [k, n], bias [n]; 3 ops, the bias added apart."""
    return _with_bias("relu", (m, k, n), dtype)


@pattern
def matmul_bias_gelu(m: int = 2048, k: int = 4096, n: int = 4096, dtype: str = "bf16") -> Graph:
    """Return gelu(x @ weight + bias), the erf form: x [m, k], weight [k, n], bias [n]; 3 ops."""
    return _with_bias("gelu", (m, k, n), dtype)


@pattern
def swiglu_mlp(tokens: int = 2048, hidden: int = 4096, inner: int = 11008, dtype: str = "bf16") -> Graph:
    """Return (silu(x @ gate) * (x @ up)) @ down: x [tokens, hidden], weights [hidden, inner] and back; 5 ops."""
    b = Builder("swiglu_mlp")
    x = b.input(tokens, hidden, dtype=dtype)
    gate, up = (b.parameter(hidden, inner, dtype=dtype, name=name) for name in ("gate", "up"))
    down = b.parameter(inner, hidden, dtype=dtype, name="down")
    b.output(b.matmul(b.op("mul", b.op("silu", b.matmul(x, gate)), b.matmul(x, up)), down))
    return b.graph()


@pattern
def conv_bn_relu(
    batch: int = 32, cin: int = 64, cout: int = 64, size: int = 56, kernel: int = 3, *, dtype: str = "bf16"
) -> Graph:
    """Return relu(batch_norm(conv(x))) of inference, channels last; 3 ops.

    x [batch, cin, size, size], weight [cout, cin, kernel, kernel], padding kernel // 2; the norm's mean, variance,
    weight and bias [cout] are fp32.
    """
    b = Builder("conv_bn_relu")
    shape, window = (batch, cin, size, size), (cout, cin, kernel, kernel)
    x = b.input(*shape, dtype=dtype, strides=channels_last(shape))
    weight = b.parameter(*window, dtype=dtype, strides=channels_last(window))
    mean, var, gamma, beta = (b.parameter(cout, dtype="fp32", name=name) for name in ("mean", "var", "gamma", "beta"))
    made = b.conv(x, weight, padding=(kernel // 2, kernel // 2))
    b.output(b.op("relu", b.batch_norm(made, mean, var, gamma, beta)))
    return b.graph()


@pattern
def attention(
    batch: int = 1,
    heads: int = 32,
    seq: int = 2048,
    head_dim: int = 128,
    dtype: str = "bf16",
    *,
    causal: bool = False,
    composite: bool = True,
) -> Graph:
    """Return attention of q, k, v [batch, heads, seq, head_dim]: one tiled op, or step by step.

    Step by step: scores [batch, heads, seq, seq] = q times k transposed, scaled, softmax over the rows, times v: 4 ops.
    Where it is causal, a mask [seq, seq] of zeros and minus infinities is added to the scores: 5 ops.
    """
    b = Builder("attention")
    q, k, v = (b.input(batch, heads, seq, head_dim, dtype=dtype, name=name) for name in ("q", "k", "v"))
    if composite:
        b.output(b.attention(q, k, v, causal=causal))
        return b.graph()
    scores = b.op("mul", b.matmul(q, b.transpose(k)), scalar=head_dim**-0.5)
    if causal:
        scores = b.op("add", scores, b.parameter(seq, seq, dtype=dtype, name="mask"))
    b.hold(scores)
    b.output(b.matmul(b.softmax(scores), v))
    return b.graph()
