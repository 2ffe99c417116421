"""What can be computed, as tables: element types and element-wise operations.

A new operation is a new row, never a new branch in the model. Each row states how its FLOP count is meant:
additions, multiplications, divisions, comparisons and sign changes count 1, and so does one evaluation of an
elementary function (exp, tanh, erf, rsqrt, sin, log1p), whatever it costs in instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusesim.errors import InputError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class DType:
    """An element type: bytes in memory, and the type in which element-wise arithmetic is done."""

    name: str
    itemsize: int
    compute: str = "fp32"
    aliases: tuple[str, ...] = ()


DTYPES = {
    dtype.name: dtype
    for dtype in (
        DType(name="fp64", itemsize=8, compute="fp64", aliases=("float64", "double")),
        DType(name="fp32", itemsize=4, aliases=("float32", "float")),
        DType(name="tf32", itemsize=4, aliases=("tensorfloat32",)),  # stored as fp32, multiplied as tf32
        DType(name="bf16", itemsize=2, aliases=("bfloat16",)),
        DType(name="fp16", itemsize=2, aliases=("float16", "half")),
        DType(name="fp8", itemsize=1, aliases=("float8", "fp8_e4m3", "fp8_e5m2", "float8_e4m3fn", "float8_e5m2")),
        DType(name="int8", itemsize=1, aliases=("i8", "uint8")),
    )
}
_DTYPE_ALIASES = {alias: dtype for dtype in DTYPES.values() for alias in (dtype.name, *dtype.aliases)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """An element-wise operation.

    `flops` is per element. `tensors` and `rows` count the extra operands that it reads besides the tensor that
    flows through the chain: distinct ones of full size, and distinct rows that are broadcast.
    """

    name: str
    flops: int
    definition: str
    tensors: int = 0
    rows: int = 0


OPS = {
    op.name: op
    for op in (
        Op(name="add", flops=1, definition="x + c"),
        Op(name="mul", flops=1, definition="x * c"),
        Op(name="relu", flops=1, definition="max(x, 0)"),
        Op(name="neg", flops=1, definition="-x"),
        Op(name="abs", flops=1, definition="|x|"),
        Op(name="square", flops=1, definition="x * x"),
        Op(name="exp", flops=1, definition="exp(x)"),
        Op(name="tanh", flops=1, definition="tanh(x)"),
        Op(name="rsqrt", flops=1, definition="1 / sqrt(x), one function"),
        Op(name="sin", flops=1, definition="sin(x)"),
        Op(name="log1p", flops=1, definition="log(1 + x), one function"),
        Op(name="sigmoid", flops=4, definition="1 / (1 + exp(-x)): neg, exp, add, div"),
        Op(name="silu", flops=4, definition="x / (1 + exp(-x)): neg, exp, add, div"),
        Op(name="gelu", flops=5, definition="0.5 x (1 + erf(c x)): 3 mul, erf, add"),
        Op(name="gelu_tanh", flops=9, definition="0.5 x (1 + tanh(c (x + d x x x))): 6 mul, 2 add, tanh"),
        Op(name="add_tensor", flops=1, definition="x + y, y a second tensor of full size", tensors=1),
        Op(name="mul_tensor", flops=1, definition="x * y, y a second tensor of full size", tensors=1),
        Op(name="add_row", flops=1, definition="x + r, r one row, broadcast", rows=1),
        Op(name="mul_row", flops=1, definition="x * r, r one row, broadcast", rows=1),
    )
}


def find_dtype(name: object) -> DType:
    """Return the element type of that name or alias.

    Raises
    ------
    InputError
        If there is none, with the nearest name.

    Examples
    --------
    >>> find_dtype("bfloat16").itemsize
    2
    """
    key = str(name).strip().lower().removeprefix("torch.")
    if key not in _DTYPE_ALIASES:
        raise unknown_name("dtype", name, DTYPES)
    return _DTYPE_ALIASES[key]


def find_ops(names: Sequence[object]) -> tuple[Op, ...]:
    """Return the operations of a chain, in order; an `Op` of the caller's own stands for itself.

    Raises
    ------
    InputError
        If the chain is empty or a name is unknown.
    """
    if not names:
        raise InputError("the chain is empty; give at least one op, for example mul")
    return tuple(name if isinstance(name, Op) else find_op(name) for name in names)


def find_op(name: object) -> Op:
    """Return the operation of that name."""
    op = OPS.get(name.strip().lower()) if isinstance(name, str) else None
    if op is None:
        raise unknown_name("op", name, OPS)
    return op
