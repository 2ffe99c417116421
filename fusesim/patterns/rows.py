"""Patterns with a reduction over each row: norms, softmax, quantisation, losses.

One node per call of the framework, in the order in which it evaluates them. `hold` marks what a variable of the
program keeps until it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.builder import Builder
from fusesim.patterns.arguments import pattern

if TYPE_CHECKING:
    from fusesim.graph import Graph
    from fusesim.tensor import Tensor

EPSILON: Final = 1e-6
"""What keeps a root from zero."""

FP8_LARGEST: Final = 448.0
"""Largest finite number of the type e4m3."""


@pattern
def rmsnorm(tokens: int = 8192, hidden: int = 4096, dtype: str = "bf16", *, upcast: bool = False) -> Graph:
    """Return RMSNorm step by step: x [tokens, hidden], weight [hidden]; 6 ops.

    Square, mean over the row, plus epsilon, reciprocal root, times x, times weight. With `upcast` x becomes fp32 first
    and what is normalised becomes `dtype` again before the weight; 8 ops.
    """
    b = Builder("rmsnorm")
    x, weight = b.input(tokens, hidden, dtype=dtype), b.parameter(hidden, dtype=dtype, name="weight")
    b.output(rms_upcast(b, x, weight) if upcast else _rms(b, x, weight))
    return b.graph()


def _rms(b: Builder, x: Tensor, weight: Tensor) -> Tensor:
    """Add RMSNorm in the type of x; every step is a variable."""
    square = b.op("mul", x, x)
    mean = b.reduce("mean", square)
    shifted = b.op("add", mean, scalar=EPSILON)
    scale = b.op("rsqrt", shifted)
    normal = b.op("mul", x, scale)
    b.hold(square, mean, shifted, scale, normal)
    return b.op("mul", normal, weight)


def rms_upcast(b: Builder, x: Tensor, weight: Tensor, *, inline: bool = False) -> Tensor:
    """Add RMSNorm in fp32; the reciprocal root is a variable unless `inline`, and a function's own end frees both."""
    wide = b.cast(x, "fp32")
    scale = b.op("rsqrt", b.op("add", b.reduce("mean", b.op("square", wide)), scalar=EPSILON))
    result = b.op("mul", b.cast(b.op("mul", wide, scale), x.dtype), weight)
    kept = [wide] if inline else [wide, scale]
    b.release(*(tensor for tensor in kept if tensor is not x))
    return result


@pattern
def add_rmsnorm(tokens: int = 4096, hidden: int = 4096, dtype: str = "bf16") -> Graph:
    """Return h = x + residual and its RMSNorm: x, residual [tokens, hidden], weight [hidden]; 7 ops, 2 outputs."""
    b = Builder("add_rmsnorm")
    x, residual = b.input(tokens, hidden, dtype=dtype), b.input(tokens, hidden, dtype=dtype, name="residual")
    weight = b.parameter(hidden, dtype=dtype, name="weight")
    summed = b.op("add", x, residual)
    b.output(_rms(b, summed, weight), summed)
    return b.graph()


@pattern
def layernorm(rows: int = 4096, cols: int = 4096, dtype: str = "bf16", *, composite: bool = True) -> Graph:
    """Return layer norm of x [rows, cols] with weight and bias [cols]: one op, or decomposed, 9 ops."""
    b = Builder("layernorm")
    x = b.input(rows, cols, dtype=dtype)
    weight, bias = (b.parameter(cols, dtype=dtype, name=name) for name in ("weight", "bias"))
    if composite:
        b.output(b.layer_norm(x, weight, bias))
        return b.graph()
    mean = b.reduce("mean", x)
    deviation = b.op("sub", x, mean)
    variance = b.reduce("mean", b.op("mul", deviation, deviation))
    b.hold(mean, deviation, variance)
    scale = b.op("rsqrt", b.op("add", variance, scalar=1e-5))
    b.output(b.op("add", b.op("mul", b.op("mul", deviation, scale), weight), bias))
    return b.graph()


@pattern
def softmax(rows: int = 4096, cols: int = 4096, dtype: str = "bf16", *, composite: bool = True) -> Graph:
    """Return softmax over the rows of x [rows, cols]: one op, or amax, subtract, exp, sum, divide: 5 ops."""
    b = Builder("softmax")
    x = b.input(rows, cols, dtype=dtype)
    if composite:
        b.output(b.softmax(x))
        return b.graph()
    largest = b.reduce("amax", x)
    powers = b.op("exp", b.op("sub", x, largest))
    b.hold(largest, powers)
    b.output(b.op("div", powers, b.reduce("sum", powers)))
    return b.graph()


@pattern
def dropout_residual_layernorm(tokens: int = 4096, hidden: int = 4096, p: float = 0.1, dtype: str = "bf16") -> Graph:
    """Return layer norm of dropout(x) + residual: both [tokens, hidden], weight, bias [hidden]; 3 ops (2 if p = 0)."""
    b = Builder("dropout_residual_layernorm")
    x, residual = b.input(tokens, hidden, dtype=dtype), b.input(tokens, hidden, dtype=dtype, name="residual")
    weight, bias = (b.parameter(hidden, dtype=dtype, name=name) for name in ("weight", "bias"))
    dropped = b.dropout(x, p) if p else x
    b.output(b.layer_norm(b.op("add", dropped, residual), weight, bias))
    return b.graph()


@pattern
def fp8_rowwise_quant(tokens: int = 4096, hidden: int = 4096, dtype: str = "bf16") -> Graph:
    """Return x [tokens, hidden] as fp8 and the fp32 scale [tokens, 1] of each row; 7 ops.

    The largest magnitude of a row over 448 is its scale; x in fp32 is divided by it and becomes fp8.
    """
    b = Builder("fp8_rowwise_quant")
    x = b.input(tokens, hidden, dtype=dtype)
    largest = b.reduce("amax", b.op("abs", x))
    scale = b.op("div", b.cast(largest, "fp32"), scalar=FP8_LARGEST)
    b.output(b.cast(b.op("div", b.cast(x, "fp32"), scale), "fp8"), scale)
    return b.graph()


@pattern
def cross_entropy(tokens: int = 4096, vocab: int = 32000, dtype: str = "bf16") -> Graph:
    """Return the mean cross entropy of logits [tokens, vocab], in fp32, at targets [tokens]; 3 ops."""
    b = Builder("cross_entropy")
    logits, target = b.input(tokens, vocab, dtype=dtype, name="logits"), b.input(tokens, dtype="int64", name="target")
    wide = b.cast(logits, "fp32")
    if wide is not logits:
        b.hold(wide)
    b.output(b.cross_entropy(wide, target))
    return b.graph()
