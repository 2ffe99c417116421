"""HLO instructions that compute value by value, reduce, sort or draw numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from fusesim.errors import GraphError
from fusesim.frontends.hlo_walk import Number, Value, Walk, hlo_rule
from fusesim.tensor import Tensor

if TYPE_CHECKING:
    from fusesim.frontends.hlo_text import Instruction

POINTWISE: Final = {
    "abs": "abs",
    "negate": "neg",
    "exponential": "exp",
    "exponential-minus-one": "exp",
    "log": "log",
    "log-plus-one": "log1p",
    "logistic": "sigmoid",
    "rsqrt": "rsqrt",
    "sqrt": "sqrt",
    "cbrt": "pow",
    "sine": "sin",
    "cosine": "cos",
    "tan": "sin",
    "tanh": "tanh",
    "erf": "erf",
    "floor": "floor",
    "ceil": "floor",
    "round-nearest-afz": "floor",
    "round-nearest-even": "floor",
    "sign": "sign",
    "not": "logical_not",
    "is-finite": "ne",
    "convert": "cast",
    "reduce-precision": "cast",
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "maximum": "maximum",
    "minimum": "minimum",
    "power": "pow",
    "remainder": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "shift-left": "shift",
    "shift-right-logical": "shift",
    "shift-right-arithmetic": "shift",
    "clamp": "clamp",
    "atan2": "elementwise",
    "popcnt": "elementwise",
    "count-leading-zeros": "elementwise",
    "real": "elementwise",
    "imag": "elementwise",
    "complex": "elementwise",
    "stochastic-convert": "elementwise",
}
"""Element-wise opcodes to the kind of each."""

COMPARISONS: Final = {name: name.lower() for name in ("EQ", "NE", "LT", "LE", "GT", "GE")}
REDUCERS: Final = {
    "add": "sum",
    "maximum": "amax",
    "minimum": "amin",
    "multiply": "prod",
    "and": "all",
    "or": "any",
}
"""What a reduction's computation does to its kind."""


@hlo_rule(*POINTWISE)
def _pointwise(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Value by value."""
    return pointwise(walk, POINTWISE[instruction.opcode], instruction, operands)


@hlo_rule("select")
def _select(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """One of two values, either of which may be a number, by a condition."""
    array, (test, then, other) = instruction.arrays[0], operands
    if not any(isinstance(value, Tensor) for value in operands):
        return Number(None, array)
    tensors = [walk.tensor(test), *(value for value in (then, other) if isinstance(value, Tensor))]
    numbers = [value.value for value in (then, other) if isinstance(value, Number)]
    made = walk.builder.tensor(array.shape, array.dtype, stem="where", strides=array.strides)
    reverse = isinstance(then, Number) and isinstance(other, Tensor)
    sides: dict[str, Any] = dict(zip(("scalar", "other"), numbers, strict=False))
    walk.builder.node("where", tensors, [made], reverse=reverse or None, **sides)
    return made


@hlo_rule("compare")
def _compare(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Compare, by a direction."""
    return pointwise(walk, COMPARISONS[instruction.attrs["direction"]], instruction, operands)


def pointwise(walk: Walk, kind: str, instruction: Instruction, operands: list[Any]) -> Value:
    """Add an element-wise op; numbers among its operands are settings, numbers alone stay a number."""
    array = instruction.arrays[0]
    tensors = [value for value in operands if isinstance(value, Tensor)]
    numbers = [value.value for value in operands if isinstance(value, Number)]
    if not tensors:
        return Number(None if len(numbers) > 1 or kind != "cast" else numbers[0], array)
    made = walk.builder.tensor(array.shape, array.dtype, stem=kind, strides=array.strides)
    attrs: dict[str, Any] = {}
    if numbers and isinstance(operands[0], Number) and kind != "clamp":
        attrs["reverse"] = True
    if kind == "clamp":
        limits = zip(("min", "max"), (operands[0], operands[2]), strict=True)
        attrs = {name: limit.value for name, limit in limits if isinstance(limit, Number)}
        numbers = []
    walk.builder.node(kind, tensors, [made], scalar=numbers[0] if numbers else None, **attrs)
    return made


@hlo_rule("constant")
def _constant(walk: Walk, instruction: Instruction, _operands: list[Any]) -> Value:
    """Map a number, or an array that lies in memory."""
    array = instruction.arrays[0]
    found = re.fullmatch(r"\{*\s*(-?[\w.+\-]+)\s*\}*", instruction.literal)
    if array.shape and (found is None or array.shape != (1,)):
        return walk.builder.parameter(*array.shape, dtype=array.dtype, name=instruction.name, strides=array.strides)
    text = found[1] if found else ""
    words = {"true": 1.0, "false": 0.0}
    try:
        number = words[text] if text in words else float(text)
    except ValueError:
        number = None
    return Number(number if number is not None and abs(number) < float("inf") else None, array)


@hlo_rule("iota")
def _iota(walk: Walk, instruction: Instruction, _operands: list[Any]) -> Value:
    """Numbers in a row along a dimension."""
    made = walk.empty(instruction.arrays[0], "iota")
    walk.builder.node("iota", [], [made])
    return made


@hlo_rule("rng", "rng-bit-generator", "rng-get-and-update-state")
def _random(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Map random numbers; a state goes through."""
    made = walk.empty(instruction.arrays[-1], "rand")
    walk.builder.node("rand", [], [made])
    return (operands[0], made) if instruction.is_tuple else made


@hlo_rule("reduce")
def _reduce(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Many values to one; of several arrays at once, the largest and its place."""
    half = len(operands) // 2
    x = walk.tensor(operands[0])
    dims = tuple(sorted(dim % max(len(x.shape), 1) for dim in instruction.sizes("dimensions")))
    made = [walk.empty(array, "reduce") for array in instruction.arrays]
    kind = _reducer(walk, instruction) if half == 1 else "max"
    inputs = [x] if half == 1 or kind == "max" else [walk.tensor(value) for value in operands[:half]]
    walk.builder.node(kind, inputs, made, dims=dims)
    return tuple(made) if instruction.is_tuple else made[0]


def _reducer(walk: Walk, instruction: Instruction) -> str:
    """Return what a reduction does: the opcode at the root of its computation."""
    name = walk.callee(instruction, "to_apply", "calls")
    if name not in walk.module.computations:
        raise GraphError(f"{walk.where} calls {name}, which the module does not have")
    computation = walk.module.computations[name]
    opcodes = {part.name: part.opcode for part in computation.instructions}
    found = REDUCERS.get(opcodes[computation.root])
    return found or next((REDUCERS[code] for code in opcodes.values() if code in REDUCERS), "sum")


@hlo_rule("reduce-window")
def _reduce_window(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Windows; one that goes over all that came before is a running sum."""
    x = walk.tensor(operands[0])
    made = [walk.empty(array, "pool") for array in instruction.arrays]
    largest = max(window_of(instruction).get("size", [1]))
    running = made[0].shape == x.shape and largest in x.shape and largest > 8  # noqa: PLR2004 - no pooling window
    if running:
        walk.builder.node("cumsum", [x], made[:1], dims=(x.shape.index(largest),))
    else:
        walk.builder.node("pool", [x], made, mode="max" if _reducer(walk, instruction) == "amax" else "mean")
    return tuple(made) if instruction.is_tuple else made[0]


def window_of(instruction: Instruction) -> dict[str, list[int]]:
    """Return the numbers of a window by name; of pads, all in order."""
    text = instruction.attrs.get("window", "").strip("{} ")
    found = {}
    for part in text.split():
        name, _, values = part.partition("=")
        found[name] = [int(number) for number in re.findall(r"-?\d+", values)]
    return found


@hlo_rule("select-and-scatter")
def _select_and_scatter(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Gradients of the largest in windows."""
    made = walk.empty(instruction.arrays[0], "pool_backward")
    walk.builder.node("pool_backward", [walk.tensor(operands[1]), walk.tensor(operands[0])], [made])
    return made


@hlo_rule("sort")
def _sort(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Values in order, others along with them."""
    made = [walk.empty(array, "sort") for array in instruction.arrays]
    for value, result in zip(operands, made, strict=True):
        walk.builder.node("sort", [walk.tensor(value)], [result], dims=instruction.sizes("dimensions"))
    return tuple(made) if instruction.is_tuple else made[0]
