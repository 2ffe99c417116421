"""HLO instructions that move, choose or join values, and those that call others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fusesim.errors import GraphError
from fusesim.frontends.hlo_text import Array
from fusesim.frontends.hlo_walk import Number, Value, Walk, hlo_rule
from fusesim.tensor import Tensor

if TYPE_CHECKING:
    from fusesim.frontends.hlo_text import Instruction


@hlo_rule("fusion")
def _fusion(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Write a fused computation out in place."""
    where = walk.where
    value = walk.inlined(walk.callee(instruction, "calls"), operands)
    walk.where = where
    return value


@hlo_rule("call", "map", "async-start")
def _call(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Write a called computation out in place."""
    return walk.inlined(walk.callee(instruction, "to_apply", "calls"), operands)


@hlo_rule("tuple")
def _tuple(_walk: Walk, _instruction: Instruction, operands: list[Any]) -> Value:
    """Several values as one."""
    return tuple(operands)


@hlo_rule("get-tuple-element")
def _element(_walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """One value of several."""
    value: Value = operands[0][int(instruction.attrs["index"])]
    return value


@hlo_rule("opt-barrier", "domain", "async-done", "async-update", "copy-done", "add-dependency", "after-all", "token")
def _through(_walk: Walk, _instruction: Instruction, operands: list[Any]) -> Value:
    """Pass on what went in."""
    return operands[0] if operands else ()


@hlo_rule("copy", "copy-start", "reverse")
def _copy(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Copy values into another layout or order."""
    made = walk.empty(instruction.arrays[0], "copy")
    walk.builder.node("copy", [walk.tensor(operands[0])], [made])
    return made


@hlo_rule("bitcast", "bitcast-convert")
def _bitcast(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Another look at the same memory."""
    array = instruction.arrays[0]
    if isinstance(operands[0], Number):
        return Number(operands[0].value, array)
    x = walk.tensor(operands[0])
    if array.dtype != x.dtype:
        made = walk.empty(array, "cast")
        walk.builder.node("elementwise" if made.shape == x.shape else "copy", [x], [made])
        return made
    return walk.look(x, array)


@hlo_rule("reshape", "dynamic-reshape")
def _reshape(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Another shape."""
    if isinstance(operands[0], Number):
        return Number(operands[0].value, instruction.arrays[0])
    return walk.reshaped(walk.tensor(operands[0]), instruction.arrays[0].shape)


@hlo_rule("broadcast")
def _broadcast(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Values repeated along new dimensions; inside a kernel that is a view."""
    array = instruction.arrays[0]
    if isinstance(operands[0], Number):
        return Number(operands[0].value, array)
    x = walk.tensor(operands[0])
    places = instruction.sizes("dimensions")
    shape, strides = [1] * len(array.shape), [0] * len(array.shape)
    for dim, place in enumerate(places):
        shape[place], strides[place] = x.shape[dim], x.strides[dim]
    wide = walk.look(x, Array(tuple(shape), x.dtype, tuple(strides))) if len(shape) != len(x.shape) else x
    return walk.builder.expand(wide, array.shape) if wide.shape != array.shape else wide


@hlo_rule("transpose")
def _transpose(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Dimensions in another order; inside a kernel that is a view."""
    if isinstance(operands[0], Number):
        return Number(operands[0].value, instruction.arrays[0])
    return walk.builder.permute(walk.tensor(operands[0]), instruction.sizes("dimensions"))


@hlo_rule("slice")
def _slice(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Parts of dimensions: [first:last] or [first:last:step] for each."""
    if isinstance(operands[0], Number):
        return Number(operands[0].value, instruction.arrays[0])
    x = walk.tensor(operands[0])
    parts = re.findall(r"\[(\d+):(\d+)(?::(\d+))?\]", instruction.attrs["slice"])
    for dim, (first, last, step) in enumerate(parts):
        if (int(first), int(last), int(step or 1)) != (0, x.shape[dim], 1):
            x = walk.builder.slice(x, dim, int(first), int(last), int(step or 1))
    return x


@hlo_rule("dynamic-slice")
def _dynamic_slice(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Map a part that begins at a place known only when it runs: as a view of the first such part."""
    x, array = walk.tensor(operands[0]), instruction.arrays[0]
    return walk.look(x, Array(array.shape, x.dtype, x.strides), "as_strided")


@hlo_rule("dynamic-update-slice")
def _update(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Write over a part, in place: only the part is read and written."""
    if isinstance(operands[0], Number):
        operands = [walk.tensor(operands[0]), *operands[1:]]
    target, part = walk.tensor(operands[0]), walk.tensor(operands[1])
    seen = walk.look(target, Array(part.shape, target.dtype, target.strides))
    made = walk.builder.tensor(part.shape, target.dtype, stem="copy_into", strides=target.strides, of=target)
    walk.builder.node("copy_into", [seen, part], [made], over=seen.name)
    whole = walk.builder.tensor(target.shape, target.dtype, stem="view", strides=target.strides, of=target)
    walk.builder.node("as_strided", [made], [whole], over_part=True)
    del instruction
    return whole


@hlo_rule("pad")
def _pad(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Values with others around them."""
    made = walk.empty(instruction.arrays[0], "pad")
    walk.builder.node("pad", [walk.tensor(operands[0])], [made])
    return made


@hlo_rule("concatenate")
def _concatenate(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Arrays next to each other."""
    made = walk.empty(instruction.arrays[0], "concat")
    dims = instruction.sizes("dimensions")
    walk.builder.node("concat", [walk.tensor(value) for value in operands], [made], dim=dims[0])
    return made


@hlo_rule("gather")
def _gather(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Parts of an array by indices; whole rows of a matrix are an embedding."""
    x, index = walk.tensor(operands[0]), walk.tensor(operands[1])
    made = walk.empty(instruction.arrays[0], "gather")
    rows = len(x.shape) == 2 and instruction.sizes("slice_sizes") == (1, x.shape[1])  # noqa: PLR2004 - a matrix
    walk.builder.node("embedding" if rows else "index", [x, index], [made])
    return made


@hlo_rule("scatter")
def _scatter(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Values put or added to places."""
    made = [walk.empty(array, "scatter") for array in instruction.arrays]
    count = len(made)
    index = walk.tensor(operands[count])
    for place, result in enumerate(made):
        inputs = [walk.tensor(operands[place]), index, walk.tensor(operands[count + 1 + place])]
        walk.builder.node("scatter", inputs, [result])
    return tuple(made) if instruction.is_tuple else made[0]


@hlo_rule("conditional")
def _conditional(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Leave out the branches."""
    walk.gap("the branches of a conditional are left out")
    return walk.opaque(instruction, operands, "conditional")


@hlo_rule("while")
def _while(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Write the body of a loop out, as often as it runs."""
    for _ in range(walk.turns(instruction, operands)):
        operands = [walk.inlined(walk.callee(instruction, "body"), operands)]
    return operands[0]  # type: ignore[no-any-return]


@hlo_rule("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast")
@hlo_rule("all-reduce-start", "all-gather-start", "collective-permute-start", "send", "recv")
def _communicate(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Leave out communication: what came in goes on, in its new shape."""
    walk.gap("communication between devices is not priced")
    tensors = [value for value in operands if isinstance(value, Tensor)]
    same = [array for array in instruction.arrays if array.shape == (tensors[0].shape if tensors else ())]
    if tensors and same:
        return tuple(tensors) if instruction.is_tuple and len(tensors) > 1 else tensors[0]
    made = [walk.empty(array, "received") for array in instruction.arrays[-1:]]
    if not made:
        raise GraphError(f"{walk.where} makes nothing")
    walk.builder.node("opaque", tensors, made, op=instruction.opcode)
    return made[0]


@hlo_rule("all-reduce-done", "all-gather-done", "collective-permute-done", "send-done", "recv-done")
def _communicated(_walk: Walk, _instruction: Instruction, operands: list[Any]) -> Value:
    """Pass on what came."""
    value: Value = operands[0]
    return value
