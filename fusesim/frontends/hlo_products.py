"""HLO instructions that run on matrix units: dot, convolution, and the library calls that XLA makes of them."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final

from fusesim.builder import common_strides_like
from fusesim.errors import GraphError
from fusesim.frontends.hlo_ops import window_of
from fusesim.frontends.hlo_walk import Value, Walk, hlo_rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.frontends.hlo_text import Array, Instruction
    from fusesim.tensor import Tensor

DIMS: Final = ("lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims")
EPILOGUES: Final = {"RELU": "relu", "GELU": "gelu_tanh", "SILU": "silu", "SWISH": "silu"}
ACTIVATIONS: Final = {"kRelu": "relu", "kRelu6": "clamp", "kElu": "elu", "kLeakyRelu": "leaky_relu"}


@hlo_rule("dot")
def _dot(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Map a product over any dimensions."""
    dims = [instruction.sizes(name) for name in DIMS]
    return product(walk, instruction.arrays[0], operands, dims)


def product(walk: Walk, array: Array, operands: list[Any], dims: Sequence[Sequence[int]], bias: Any = None) -> Tensor:
    """Add a product: contracted dimensions of left and right, then batch dimensions of each."""
    left, right = walk.tensor(operands[0]), walk.tensor(operands[1])
    over_left, over_right, batch_left, batch_right = dims
    rows = [dim for dim in range(len(left.shape)) if dim not in {*over_left, *batch_left}]
    columns = [dim for dim in range(len(right.shape)) if dim not in {*over_right, *batch_right}]
    a = _arranged(walk, left, [batch_left, rows, over_left])
    b = _arranged(walk, right, [batch_right, over_right, columns])
    shape = (*a.shape[:-2], a.shape[-2], b.shape[-1])
    result = walk.builder.tensor(shape, array.dtype, stem="dot")
    plus = [] if bias is None else [walk.tensor(bias)]
    walk.builder.node("matmul", [a, b, *plus], [result])
    return result if shape == array.shape else walk.look(result, array)


def _arranged(walk: Walk, x: Tensor, groups: Sequence[Sequence[int]]) -> Tensor:
    """Return a tensor with its dimensions in order and joined by group; an empty batch vanishes."""
    order = [dim for group in groups for dim in group]
    if order != sorted(order):
        x = walk.builder.permute(x, order)
    if len(order) != len(x.shape):
        raise GraphError(f"{walk.where}: its dimensions {order} are not those of {x.shape}")
    sizes = list(x.shape)
    joined = []
    for group in groups:
        joined.append(math.prod(sizes[: len(group)]))
        del sizes[: len(group)]
    return walk.reshaped(x, joined if groups[0] else joined[1:])


@hlo_rule("convolution")
def _convolution(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Map a convolution, dimensions by their labels."""
    return _convolved(walk, instruction, instruction.arrays[0], operands)


def _convolved(walk: Walk, instruction: Instruction, array: Array, operands: list[Any]) -> Tensor:
    """Add a convolution as [n, c, ...] with [o, i, ...]; its result is seen in the order of its labels."""
    labels = re.fullmatch(r"([\w?]+)_([\w?]+)->([\w?]+)", instruction.attrs["dim_labels"])
    if labels is None:
        raise GraphError(f"{walk.where}: dim_labels {instruction.attrs['dim_labels']} are none")
    space = sorted(letter for letter in labels[1] if letter.isdigit())
    x = walk.builder.permute(walk.tensor(operands[0]), [labels[1].index(part) for part in ("b", "f", *space)])
    w = walk.builder.permute(walk.tensor(operands[1]), [labels[2].index(part) for part in ("o", "i", *space)])
    order = [labels[3].index(part) for part in ("b", "f", *space)]
    shape, strides = (tuple(values[at] for at in order) for values in (array.shape, array.strides))
    window = window_of(instruction)
    rank = len(space)
    settings: dict[str, Any] = {
        "stride": tuple(window.get("stride", [1] * rank)),
        "padding": tuple(window.get("pad", [0] * 2 * rank)[::2]),
        "dilation": tuple(window.get("rhs_dilate", [1] * rank)),
        "groups": int(instruction.attrs.get("feature_group_count", "1")),
    }
    made = walk.builder.tensor(shape, array.dtype, stem="conv", strides=strides)
    plus = [walk.tensor(value) for value in operands[2:3]]
    transposed = True if max(window.get("lhs_dilate", [1])) > 1 else None
    walk.builder.node("conv", [x, w, *plus], [made], transposed=transposed, **settings)
    back = [("b", "f", *space).index(part) for part in labels[3]]
    return walk.builder.permute(made, back)


@hlo_rule("custom-call")
def _custom(walk: Walk, instruction: Instruction, operands: list[Any]) -> Value:
    """Map calls of libraries by their target's name."""
    target = instruction.attrs.get("custom_call_target", "").strip('"')
    backward = "Backward" in target
    if target in {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"}:
        return walk.tensor(operands[0])
    if target == "TopK":
        made = [walk.empty(array, "topk") for array in instruction.arrays]
        walk.builder.node("topk", [walk.tensor(operands[0])], made)
        return tuple(made)
    result: Tensor | None = None
    if "gemm" in target or "matmul" in target:
        result = _gemm(walk, instruction, operands)
    elif "cudnn$conv" in target:
        made_by = _gradient if backward else _library_convolution
        result = made_by(walk, instruction, operands)
    elif "fmha" in target and not backward:
        result = _attention(walk, instruction, operands)
    if result is None:
        return walk.opaque(instruction, operands, target or "custom-call")
    return _with_workspace(instruction, result)


def _with_workspace(instruction: Instruction, result: Tensor) -> Value:
    """Return a result, and nothing for the memory that its call worked in."""
    return (result, *[()] * (len(instruction.arrays) - 1)) if instruction.is_tuple else result


def _config(instruction: Instruction) -> dict[str, Any]:
    """Return what the backend noted at a call, its inner records joined."""
    text = instruction.attrs.get("backend_config", "{}")
    if text.startswith('"'):
        text = text[1:-1].replace('\\"', '"')
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    for value in list(found.values()):
        if isinstance(value, dict) and (
            "epilogue" in value or "dot_dimension_numbers" in value or "activation_mode" in value
        ):
            found = found | value
    return found


def _gemm(walk: Walk, instruction: Instruction, operands: list[Any]) -> Tensor:
    """Map a library's product: dimensions, addends and epilogue stand in its configuration."""
    config = _config(instruction)
    numbers = config.get("dot_dimension_numbers", {})
    names = ("contracting_dimensions", "batch_dimensions")
    dims = [[int(dim) for dim in numbers.get(f"{side}_{name}", [])] for name in names for side in ("lhs", "rhs")]
    if not numbers:
        dims = [list(instruction.sizes(name)) for name in DIMS]
    if not dims[0]:
        dims[:2] = [[len(walk.tensor(operands[0]).shape) - 1], [len(walk.tensor(operands[1]).shape) - 2]]
    epilogue = str(config.get("epilogue", "DEFAULT")).upper()
    adds = bool(config.get("beta")) and len(operands) > 2  # noqa: PLR2004 - left, right, addend
    rest = operands[2:]
    bias = rest[1 if adds else 0] if "BIAS" in epilogue and len(rest) > int(adds) else None
    array = instruction.arrays[0]
    result = product(walk, array, operands, dims, bias)
    if adds:
        result = _after(walk, "add", array, result, walk.tensor(rest[0]))
    kind = next((kind for word, kind in EPILOGUES.items() if word in epilogue), "")
    return _after(walk, kind, array, result) if kind else result


def _library_convolution(walk: Walk, instruction: Instruction, operands: list[Any]) -> Tensor:
    """Map a library's convolution with its bias, a side input and its activation."""
    array = instruction.arrays[0]
    config = _config(instruction)
    result = _convolved(walk, instruction, array, operands)
    if len(operands) > 3:  # noqa: PLR2004 - x, w, bias, side input
        result = _after(walk, "add", array, result, walk.tensor(operands[3]))
    kind = ACTIVATIONS.get(str(config.get("activation_mode", "")), "")
    return _after(walk, kind, array, result) if kind else result


def _after(walk: Walk, kind: str, array: Array, *inputs: Tensor) -> Tensor:
    """Add an op of an epilogue."""
    made = walk.builder.tensor(array.shape, array.dtype, stem=kind, strides=array.strides)
    walk.builder.node(kind, inputs, [made])
    return made


def _gradient(walk: Walk, instruction: Instruction, operands: list[Any]) -> Tensor:
    """Map a gradient of a convolution: of its input or of its weight, both as [n, c, ...]."""
    first, second = walk.tensor(operands[0]), walk.tensor(operands[1])
    made = walk.empty(instruction.arrays[0], "conv")
    if "Filter" in instruction.attrs["custom_call_target"]:
        walk.builder.node("conv_weight_grad", [second, first], [made])
    else:
        walk.builder.node("conv_input_grad", [first, second], [made])
    return made


def _attention(walk: Walk, instruction: Instruction, operands: list[Any]) -> Tensor:
    """Map a library's attention; its operands are [batch, heads, tokens, dim], or tokens before heads."""
    q, k, v = (walk.tensor(value) for value in operands[:3])
    array = instruction.arrays[0]
    swapped = _config(instruction).get("mask_type") is None and q.shape[1] > q.shape[2]
    if swapped:
        q, k, v = (walk.builder.permute(x, (0, 2, 1, 3)) for x in (q, k, v))
    shape = (*q.shape[:-1], v.shape[-1])
    made = walk.builder.tensor(shape, array.dtype, stem="attention", strides=common_strides_like(shape, q))
    walk.builder.node("attention", [q, k, v], [made])
    return made if shape == array.shape else walk.look(made, array)
