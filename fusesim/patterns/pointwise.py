"""Patterns of pointwise ops only: each value out comes from the values at its place.

One node per call of the framework, in the order in which it evaluates them, so that `eager` launches what it does.
`hold` marks what a variable of the program keeps until it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fusesim.builder import Builder
from fusesim.errors import InputError, excerpt, unknown_name
from fusesim.ops import OPS, Op, find_ops
from fusesim.patterns.arguments import divides, even, pattern, size

if TYPE_CHECKING:
    from fusesim.graph import Graph
    from fusesim.tensor import Tensor

MOST_OPS: Final = 10_000
"""Longest chain that is built as a graph."""

GELU_SCALE: Final = 0.7978845608
"""sqrt(2 / pi), as the tanh form of GELU is written."""

GELU_CUBIC: Final = 0.044715
"""Weight of the cube in the tanh form of GELU (Hendrycks and Gimpel, 2016, arXiv:1606.08415)."""

LEARNING_RATE: Final = 1e-3
"""Adam's step; like all numbers in these graphs, it changes neither bytes nor kernels."""


@pattern
def chain(
    ops: int | str | Sequence[str] = 5, elements: int = 2**25, dtype: str = "bf16", *, row: int | None = None
) -> Graph:
    """Return a chain: each op takes the result of the one before.

    Parameters
    ----------
    ops : int, str or sequence of str
        That many multiplications by a number, or the names of the ops, as `price_chain` takes them.
    elements : int
        Values in the tensor that flows: x [elements], or x [elements / row, row] where a row is given.
    dtype : str
        Element type.
    row : int, optional
        Length of the distinct row that each add_row and mul_row broadcasts; divides `elements`. Each add_tensor and
        mul_tensor has a tensor of full size of its own.
    """
    named = _names(ops)
    if row is not None:
        divides("chain: row", size("chain: row", row), "elements", elements)
    elif any(op.rows for op in named):
        raise InputError("chain: add_row and mul_row broadcast a row; give its length, row=..., a divisor of elements")
    b = Builder("chain")
    shape = (elements,) if row is None else (elements // row, row)
    value = b.input(*shape, dtype=dtype)
    for op in named:
        value = _link(b, op.name, value, shape)
    b.output(value)
    return b.graph()


def _names(ops: int | str | Sequence[str]) -> tuple[Op, ...]:
    """Return the ops of a chain."""
    if isinstance(ops, str):
        return find_ops([ops])
    if isinstance(ops, Sequence):
        found = find_ops(ops)
        size("chain: the number of ops", len(found), MOST_OPS)
        for op in found:
            if op.name not in OPS:
                raise unknown_name("op", op.name, OPS, "fusesim.OPS")
        return found
    return find_ops(["mul"]) * size("chain: ops", ops, MOST_OPS)


def _link(b: Builder, name: str, value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Add one op of a chain with the operand that it needs."""
    kind, _, operand = name.partition("_")
    if operand == "tensor":
        return b.op(kind, value, b.input(*shape, dtype=value.dtype, name="operand"))
    if operand == "row":
        return b.op(kind, value, b.input(shape[-1], dtype=value.dtype, name="row"))
    return b.op(name, value, scalar=1.001 if name in {"add", "mul"} else None)


@pattern
def bias_relu(rows: int = 128, cols: int = 512, dtype: str = "fp32") -> Graph:
    """Return relu(x + bias): x [rows, cols], bias [cols]; 2 ops."""
    b = Builder("bias_relu")
    x, bias = b.input(rows, cols, dtype=dtype), b.parameter(cols, dtype=dtype, name="bias")
    b.output(b.op("relu", b.op("add", x, bias)))
    return b.graph()


@pattern
def gelu(
    rows: int = 1024, cols: int = 4096, dtype: str = "bf16", *, approximate: str = "none", composite: bool = True
) -> Graph:
    """Return GELU of x [rows, cols]: one op, erf ("none") or "tanh"; decomposed always the tanh form, 9 ops."""
    if not isinstance(approximate, str) or approximate not in {"none", "tanh"}:
        raise InputError(f'gelu: approximate is {excerpt(approximate)}; it is "none" (erf) or "tanh"')
    b = Builder("gelu")
    x = b.input(rows, cols, dtype=dtype)
    if composite:
        b.output(b.op("gelu_tanh" if approximate == "tanh" else "gelu", x))
        return b.graph()
    half = b.op("mul", x, scalar=0.5)
    cube = b.op("mul", b.op("mul", b.op("mul", x, scalar=GELU_CUBIC), x), x)
    inner = b.op("mul", b.op("add", x, cube), scalar=GELU_SCALE)
    b.output(b.op("mul", half, b.op("add", b.op("tanh", inner), scalar=1.0)))
    return b.graph()


@pattern
def swiglu(tokens: int = 2048, hidden: int = 14336, dtype: str = "bf16") -> Graph:
    """Return silu(a) * b: both [tokens, hidden]; 2 ops."""
    b = Builder("swiglu")
    gate, up = (b.input(tokens, hidden, dtype=dtype, name=name) for name in ("a", "b"))
    b.output(b.op("mul", b.op("silu", gate), up))
    return b.graph()


@pattern
def rope(tokens: int = 4096, heads: int = 32, head_dim: int = 128, dtype: str = "bf16") -> Graph:
    """Return x * cos + rotated * sin: x [tokens, heads, head_dim], cos and sin [tokens, 1, head_dim]; 5 ops.

    Rotated is x with its halves swapped and the one that comes first negated: slices are views, a negation and a
    concatenation are not.
    """
    even("rope: head_dim", head_dim)
    b = Builder("rope")
    x = b.input(tokens, heads, head_dim, dtype=dtype)
    cos, sin = (b.input(tokens, 1, head_dim, dtype=dtype, name=name) for name in ("cos", "sin"))
    b.output(rotary(b, x, cos, sin))
    return b.graph()


def rotary(b: Builder, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Add a rotary embedding over the last dimension of x."""
    half, full = x.shape[-1] // 2, x.shape[-1]
    straight = b.op("mul", x, cos)
    swapped = b.concat([b.op("neg", b.slice(x, -1, half, full)), b.slice(x, -1, 0, half)])
    return b.op("add", straight, b.op("mul", swapped, sin))


@pattern
def adam_step(elements: int = 2**24, dtype: str = "fp32") -> Graph:
    """Return one step of Adam, written out: p, g, m, v [elements] to new p, m, v; 12 ops."""
    b = Builder("adam_step")
    p, g, m, v = (b.input(elements, dtype=dtype, name=name) for name in ("p", "g", "m", "v"))
    mean = b.op("add", b.op("mul", m, scalar=0.9), b.op("mul", g, scalar=0.1))
    kept = b.op("mul", v, scalar=0.999)
    square = b.op("add", kept, b.op("mul", b.op("mul", g, g), scalar=0.001))
    step = b.op("mul", mean, scalar=LEARNING_RATE)
    root = b.op("add", b.op("sqrt", square), scalar=1e-8)
    b.output(b.op("sub", p, b.op("div", step, root)), mean, square)
    return b.graph()


@pattern
def independent4(elements: int = 2**22, dtype: str = "bf16") -> Graph:
    """Return relu(a), sigmoid(b), tanh(c) and d * d, all [elements]: siblings that share nothing; 4 ops."""
    b = Builder("independent4")
    first, second, third, fourth = (b.input(elements, dtype=dtype, name=name) for name in ("a", "b", "c", "d"))
    b.output(b.op("relu", first), b.op("sigmoid", second), b.op("tanh", third), b.op("mul", fourth, fourth))
    return b.graph()
