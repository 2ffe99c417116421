"""What can be computed, as tables: element types and element-wise operations.

A new operation is a new row, never a new branch in the model. Each row states how its FLOP count is meant:
additions, multiplications, divisions, comparisons and sign changes count 1, and so does one evaluation of an
elementary function (exp, tanh, erf, rsqrt, sin, log1p), whatever it costs in instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from fusesim.errors import InputError, excerpt, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class DType:
    """An element type: bytes in memory, and the type in which element-wise arithmetic is done.

    `largest` is the largest number that it holds. `overhead` is how many instructions per element a vectorised
    kernel issues besides its ops (addresses, loads, conversions, the store), `operand` how many an extra operand
    adds, its op included; counted as in `Op`.
    """

    name: str
    itemsize: int
    compute: str = "fp32"
    aliases: tuple[str, ...] = ()
    largest: float = 3.4e38
    overhead: float = 6.7
    operand: float = 2.0


DTYPES = {
    dtype.name: dtype
    for dtype in (
        DType(name="fp64", itemsize=8, compute="fp64", aliases=("float64", "double")),
        DType(name="fp32", itemsize=4, aliases=("float32", "float")),
        DType(name="tf32", itemsize=4, aliases=("tensorfloat32",)),  # stored as fp32, multiplied as tf32
        DType(name="bf16", itemsize=2, aliases=("bfloat16",), overhead=5.6, operand=3.0),
        DType(name="fp16", itemsize=2, aliases=("float16", "half"), largest=65504.0, overhead=5.1, operand=2.5),
        DType(name="fp8", itemsize=1, aliases=("float8", "fp8_e4m3", "fp8_e5m2", "float8_e4m3fn", "float8_e5m2")),
        DType(name="int8", itemsize=1, aliases=("i8", "uint8")),
    )
}
_DTYPE_ALIASES = {alias: dtype for dtype in DTYPES.values() for alias in (dtype.name, *dtype.aliases)}


SlowPath = Literal["", "division", "sine"]
SLOW_PATHS: Final = get_args(SlowPath)

MOST_PER_OP: Final = 10**6
"""Most instructions, FLOP or operands per element that an op of the caller's own may state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """An element-wise operation; make one of your own and put it in a chain beside the names.

    `flops` is per element. `tensors` and `rows` count the extra operands that it reads besides the tensor that
    flows through the chain: distinct ones of full size, and distinct rows that are broadcast. `cuda` is the
    expression that was measured, in single precision: `v` is the value, `t` and `r` the extra operands.

    What it costs, per element, is counted and not fitted. `slots` are warp instructions issued and `special` those
    of them that go to the special-function unit (MUFU, and FCHK of an IEEE division). They are the difference
    between the kernels that apply the op four times and twice, divided by two, as the hardware counters
    smsp__inst_executed and smsp__inst_executed_pipe_xu give it on an H200 (sm_90, NVRTC 13.0), and agree with the
    main path of the disassembly; ``neg`` and ``abs`` fold into a neighbour every second time. `serial` is how many
    clock cycles one thread needs for one element when nothing hides its latency, from one block that applies the
    op once to four times: a thread interleaves its elements. `alone` is the same in a kernel that also calls a
    subroutine, as divisions and sines do, around which it cannot. What one more op with an operand adds to such
    kernels scatters by a factor of ten with what the compiler makes of it; its figure is typical. All these stand in
    tests/reference/h200_threads.json. `slow` names the slow path that the op takes for some values, see
    `fusesim.values`. `stalls` marks erf, whose instructions issue slower than their number says.
    """

    name: str
    flops: int
    definition: str
    cuda: str = ""
    tensors: int = 0
    rows: int = 0
    slots: float = 1
    special: float = 0
    serial: float = 2
    alone: float | None = None
    slow: SlowPath = ""
    stalls: bool = False

    def __hash__(self) -> int:
        """Hash the name alone: chains are keys of caches, and few ops share one."""
        return hash(self.name)

    def __post_init__(self) -> None:
        """Refuse counts that cannot be, and slow paths that nobody knows."""
        if not isinstance(self.name, str):
            raise InputError(f"an op's name is {excerpt(self.name)}; give text")
        if self.slow not in SLOW_PATHS:
            raise InputError(f'op {excerpt(self.name)}: slow is {excerpt(self.slow)}; give "division", "sine" or ""')
        for name in ("flops", "slots", "special", "serial", "alone", "tensors", "rows"):
            value = getattr(self, name)
            if name == "alone" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_PER_OP:
                raise InputError(f"op {excerpt(self.name)}: {name} is {value}; give a number from 0 to {MOST_PER_OP}")
            if name in {"tensors", "rows"} and value != int(value):
                raise InputError(f"op {excerpt(self.name)}: {name} is {value}; give a whole number")


OPS = {
    op.name: op
    for op in (
        Op(
            name="add",
            flops=1,
            definition="x + c",
            cuda="v + 0.5f",
            slots=1,
            special=0,
            serial=2,
        ),
        Op(
            name="mul",
            flops=1,
            definition="x * c",
            cuda="v * 1.0009765625f",
            slots=1,
            special=0,
            serial=2,
        ),
        Op(
            name="relu",
            flops=1,
            definition="max(x, 0)",
            cuda="fmaxf(v, 0.0f)",
            slots=1,
            special=0,
            serial=1,
        ),
        Op(name="neg", flops=1, definition="-x", cuda="-v", slots=0.5, special=0, serial=1),
        Op(
            name="abs",
            flops=1,
            definition="|x|",
            cuda="fabsf(v)",
            slots=0.5,
            special=0,
            serial=2,
        ),
        Op(
            name="square",
            flops=1,
            definition="x * x",
            cuda="v * v",
            slots=1,
            special=0,
            serial=2,
        ),
        Op(
            name="exp",
            flops=1,
            definition="exp(x)",
            cuda="__expf(v)",
            slots=2,
            special=1,
            serial=15,
        ),
        Op(
            name="tanh",
            flops=1,
            definition="tanh(x)",
            cuda="tanhf(v)",
            slots=15,
            special=2,
            serial=36,
            alone=55,
        ),
        Op(
            name="rsqrt",
            flops=1,
            definition="1 / sqrt(x), one function",
            cuda="rsqrtf(fabsf(v) + 1.0f)",
            slots=2,
            special=1,
            serial=15,
        ),
        Op(
            name="sin",
            flops=1,
            definition="sin(x)",
            cuda="sinf(v)",
            slots=24,
            special=1,
            serial=108,
            slow="sine",
        ),
        Op(
            name="log1p",
            flops=1,
            definition="log(1 + x), one function",
            cuda="log1pf(fabsf(v))",
            slots=25,
            special=0,
            serial=83,
        ),
        Op(
            name="sigmoid",
            flops=4,
            definition="1 / (1 + exp(-x)): neg, exp, add, div",
            cuda="1.0f / (1.0f + __expf(-v))",
            slots=13,
            special=2,
            serial=108,
            slow="division",
        ),
        Op(
            name="silu",
            flops=4,
            definition="x / (1 + exp(-x)): neg, exp, add, div",
            cuda="v / (1.0f + __expf(-v))",
            slots=13,
            special=3,
            serial=92,
            slow="division",
        ),
        Op(
            name="gelu",
            flops=5,
            definition="0.5 x (1 + erf(c x)): 3 mul, erf, add",
            cuda="0.5f * v * (1.0f + erff(v * 0.70710678f))",
            slots=27,
            special=1,
            serial=82,
            stalls=True,
        ),
        Op(
            name="gelu_tanh",
            flops=9,
            definition="0.5 x (1 + tanh(c (x + d x x x))): 6 mul, 2 add, tanh",
            cuda="0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)))",
            slots=22,
            special=2,
            serial=51,
            alone=75,
        ),
        Op(
            name="add_tensor",
            flops=1,
            definition="x + y, y a second tensor of full size",
            cuda="v + t",
            tensors=1,
            serial=15,
        ),
        Op(
            name="mul_tensor",
            flops=1,
            definition="x * y, y a second tensor of full size",
            cuda="v * t",
            tensors=1,
            serial=15,
        ),
        Op(name="add_row", flops=1, definition="x + r, r one row, broadcast", cuda="v + r", rows=1, serial=22),
        Op(name="mul_row", flops=1, definition="x * r, r one row, broadcast", cuda="v * r", rows=1, serial=22),
    )
}


ROW_SETUP: Final = 50
"""Instructions per thread that find the column of a broadcast row (an integer division), counted as in `Op`."""

ERF_STALL: Final = 1.15
"""How many slots each instruction of erf takes: the one op whose time its instruction count does not give (H200)."""


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
        raise unknown_name("op", name, OPS, "fusesim.OPS")
    return op
