"""What ONNX operators compute, as ops of a graph: element-wise ones by a table, the others by a rule each.

Rules for views, joins and windows stand in `onnx_layout`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from fusesim.errors import GraphError
from fusesim.frontends.onnx_reading import TYPES, Operator, Reading, onnx_rule

if TYPE_CHECKING:
    from fusesim.tensor import Tensor

UNARY: Final = {
    "Relu": "relu",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Exp": "exp",
    "Log": "log",
    "Sqrt": "sqrt",
    "Erf": "erf",
    "Neg": "neg",
    "Abs": "abs",
    "Floor": "floor",
    "Ceil": "floor",
    "Round": "floor",
    "Sin": "sin",
    "Cos": "cos",
    "Reciprocal": "reciprocal",
    "Not": "logical_not",
    "Sign": "sign",
    "Elu": "elu",
    "Selu": "elu",
    "Celu": "elu",
    "Softplus": "softplus",
    "Mish": "softplus",
    "HardSwish": "hardswish",
    "HardSigmoid": "hardswish",
    "LeakyRelu": "leaky_relu",
    "ThresholdedRelu": "relu",
    "FastGelu": "gelu_tanh",
    "QuickGelu": "silu",
    "Swish": "silu",
}
"""Element-wise operators of one tensor to their kind."""

BINARY: Final = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "Div": "div",
    "Pow": "pow",
    "Mod": "remainder",
    "Max": "maximum",
    "Min": "minimum",
    "Sum": "add",
    "Mean": "add",
    "Equal": "eq",
    "Less": "lt",
    "LessOrEqual": "le",
    "Greater": "gt",
    "GreaterOrEqual": "ge",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_or",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "BitShift": "shift",
    "PRelu": "lerp",
}
"""Element-wise operators of several tensors to the kind of each step."""

REDUCTIONS: Final = {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceMax": "amax",
    "ReduceMin": "amin",
    "ReduceProd": "prod",
    "ReduceL1": "norm",
    "ReduceL2": "norm",
    "ReduceSumSquare": "norm",
}

POWERS: Final = {2.0: "square", 0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal"}
"""Exponents that run as another op."""


@onnx_rule(*UNARY)
def _unary(reading: Reading, operator: Operator) -> Tensor:
    """One tensor, value by value."""
    return reading.builder.op(UNARY[operator.type], reading.tensor(operator, 0))


@onnx_rule("Gelu", "BiasGelu")
def _gelu(reading: Reading, operator: Operator) -> Tensor:
    """By erf or by tanh, a bias first where there is one."""
    b, x = reading.builder, reading.tensor(operator, 0)
    if operator.has(1):
        x = b.op("add", x, reading.tensor(operator, 1))
    return b.op("gelu_tanh" if operator.attrs.get("approximate") == "tanh" else "gelu", x)


@onnx_rule(*BINARY)
def _binary(reading: Reading, operator: Operator) -> Tensor:
    """Two tensors or more, pairwise; one number among them is no tensor."""
    b, kind = reading.builder, BINARY[operator.type]
    numbers = [reading.number(operator, place) for place in range(len(operator.inputs))]
    if len(numbers) == 2 and numbers[1] is not None and numbers[0] is None:  # noqa: PLR2004
        return _with_number(reading, reading.tensor(operator, 0), kind, numbers[1])
    if len(numbers) == 2 and numbers[0] is not None and numbers[1] is None:  # noqa: PLR2004
        x = reading.tensor(operator, 1)
        return b.op(kind, x, scalar=numbers[0], reverse=True, dtype=None if _compares(kind) else x.dtype)
    tensors = reading.tensors(operator)
    result = tensors[0]
    for other in tensors[1:]:
        result = b.op(kind, result, other, dtype=None if _compares(kind) else result.dtype)
    if operator.type == "Mean" and len(tensors) > 1:
        result = b.op("mul", result, scalar=1 / len(tensors))
    return result


def _with_number(reading: Reading, x: Tensor, kind: str, number: float) -> Tensor:
    """Add an op of a tensor and a number; a few powers are ops of their own."""
    if kind == "pow" and number in POWERS:
        return reading.builder.op(POWERS[number], x)
    return reading.builder.op(kind, x, scalar=number, dtype=None if _compares(kind) else x.dtype)


def _compares(kind: str) -> bool:
    """Return whether a kind makes truth values."""
    return kind in {"eq", "lt", "le", "gt", "ge", "logical_and", "logical_or"}


@onnx_rule("Clip")
def _clip(reading: Reading, operator: Operator) -> Tensor:
    """Two limits, either of which may be missing; ReLU where only 0 from below."""
    low = operator.attrs.get("min", reading.number(operator, 1))
    high = operator.attrs.get("max", reading.number(operator, 2))
    limits = {key: value for key, value in (("min", low), ("max", high)) if value is not None}
    return reading.builder.op("clamp", reading.tensor(operator, 0), **limits)


@onnx_rule("Where")
def _where(reading: Reading, operator: Operator) -> Tensor:
    """One of two values, either of which may be a number."""
    numbers = [reading.number(operator, place) for place in (1, 2)]
    places = [0, *(place for place in (1, 2) if numbers[place - 1] is None)]
    tensors = [reading.tensor(operator, place) for place in places]
    sides: dict[str, Any] = dict(
        zip(("scalar", "other"), (value for value in numbers if value is not None), strict=False)
    )
    dtype = tensors[1].dtype if len(tensors) > 1 else "fp32"
    return reading.builder.op("where", *tensors, dtype=dtype, reverse=places == [0, 2] or None, **sides)


@onnx_rule("IsNaN", "IsInf")
def _is_nan(reading: Reading, operator: Operator) -> Tensor:
    """Whether a value is no number."""
    return reading.builder.op("ne", reading.tensor(operator, 0), scalar=0.0)


@onnx_rule("Cast", "CastLike")
def _cast(reading: Reading, operator: Operator) -> Tensor:
    """Another element type; none where it is that already."""
    x = reading.tensor(operator, 0)
    target = reading.tensor(operator, 1).dtype if operator.type == "CastLike" else TYPES.get(operator.attrs["to"])
    if target is None:
        raise GraphError(f"casts to element type {operator.attrs['to']}, which is no number")
    return reading.builder.cast(x, target)


@onnx_rule("QuantizeLinear", "DequantizeLinear")
def _quantize(reading: Reading, operator: Operator) -> Tensor:
    """Scale and change the type, in one pass."""
    x, scale = reading.tensor(operator, 0), reading.tensor(operator, 1)
    quantizes = operator.type == "QuantizeLinear"
    zero = reading.tensor(operator, 2).dtype if operator.has(2) else "uint8"
    return reading.builder.op("cast", x, dtype=zero if quantizes else scale.dtype)


@onnx_rule(*REDUCTIONS)
def _reduce(reading: Reading, operator: Operator) -> Tensor:
    """Over some dimensions, or over all."""
    x = reading.tensor(operator, 0)
    axes = reading.sizes(operator, 1, "axes")
    if not axes and operator.attrs.get("noop_with_empty_axes"):
        return x
    kept = bool(operator.attrs.get("keepdims", 1))
    return reading.builder.reduce(REDUCTIONS[operator.type], x, axes or (), keepdim=kept, dtype=x.dtype)


@onnx_rule("ReduceLogSumExp", "ReduceLogSum")
def _reduce_log(reading: Reading, operator: Operator) -> Tensor:
    """Exponentials, their sum, its logarithm."""
    b, x = reading.builder, reading.tensor(operator, 0)
    x = b.op("exp", x) if operator.type == "ReduceLogSumExp" else x
    axes, kept = reading.sizes(operator, 1, "axes"), bool(operator.attrs.get("keepdims", 1))
    return b.op("log", b.reduce("sum", x, axes or (), keepdim=kept))


@onnx_rule("ArgMax", "ArgMin")
def _arg(reading: Reading, operator: Operator) -> Tensor:
    """Where the largest or smallest stands."""
    kept = bool(operator.attrs.get("keepdims", 1))
    axis = operator.attrs.get("axis", 0)
    return reading.builder.reduce(operator.type.lower(), reading.tensor(operator, 0), (axis,), keepdim=kept)


@onnx_rule("Softmax", "LogSoftmax")
def _softmax(reading: Reading, operator: Operator) -> Tensor:
    """Along a dimension; before version 13 along it and all behind it."""
    b, x = reading.builder, reading.tensor(operator, 0)
    log, old = operator.type == "LogSoftmax", reading.version < 13  # noqa: PLR2004
    axis = operator.attrs.get("axis", 1 if old else -1) % len(x.shape)
    if old and axis != len(x.shape) - 1 and math.prod(x.shape[axis + 1 :]) > 1:
        flat = b.view(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
        return b.view(b.softmax(flat, -1, log=log), x.shape)
    return b.softmax(x, axis, log=log)


@onnx_rule("LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization")
def _layer_norm(reading: Reading, operator: Operator) -> Tensor:
    """Norms over the last dimensions."""
    b, (x, *rest) = reading.builder, reading.tensors(operator)
    rank = len(x.shape) - operator.attrs.get("axis", -1) % len(x.shape)
    if operator.type != "LayerNormalization":
        return b.rms_norm(x, *rest[:1], rank=rank)
    return b.layer_norm(x, *rest[:2], rank=rank)


@onnx_rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def _skip_layer_norm(reading: Reading, operator: Operator) -> list[Tensor | None]:
    """Map a sum, then its norm; the sum is the fourth result."""
    b = reading.builder
    total = b.op("add", reading.tensor(operator, 0), reading.tensor(operator, 1))
    rest = [reading.tensor(operator, place) for place in (2, 3) if operator.has(place)]
    simple = "Simplified" in operator.type
    return [b.rms_norm(total, *rest[:1]) if simple else b.layer_norm(total, *rest), None, None, total]


@onnx_rule("BatchNormalization")
def _batch_norm(reading: Reading, operator: Operator) -> Tensor:
    """Map a batch norm of inference: x, scale, bias, mean, variance."""
    x, scale, bias, mean, variance = reading.tensors(operator)
    if operator.attrs.get("training_mode"):
        raise GraphError("normalises by the batch (training_mode); export the model for inference")
    return reading.builder.batch_norm(x, mean, variance, scale, bias)


@onnx_rule("InstanceNormalization", "GroupNormalization")
def _group_norm(reading: Reading, operator: Operator) -> Tensor:
    """Norms over groups of channels, or over each."""
    b, (x, *rest) = reading.builder, reading.tensors(operator)
    result = b.tensor(x.shape, x.dtype, stem="group_norm")
    b.node("group_norm", [x, *rest], [result], groups=operator.attrs.get("num_groups", x.shape[1]))
    return result


@onnx_rule("Dropout", "Identity")
def _identity(reading: Reading, operator: Operator) -> Tensor:
    """Nothing, in inference."""
    return reading.tensor(operator, 0)


@onnx_rule("CumSum")
def _cumsum(reading: Reading, operator: Operator) -> Tensor:
    """Map a running sum."""
    return along(reading, "cumsum", reading.tensor(operator, 0), int(reading.number(operator, 1) or 0))


@onnx_rule("TopK")
def _topk(reading: Reading, operator: Operator) -> list[Tensor]:
    """Map the largest values and their places."""
    b, x = reading.builder, reading.tensor(operator, 0)
    axis = operator.attrs.get("axis", -1) % len(x.shape)
    count = (reading.sizes(operator, 1, "k") or (1,))[0]
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    made = [b.tensor(shape, dtype, stem="topk") for dtype in (x.dtype, "int64")]
    b.node("topk", [x], made, dims=(axis,))
    return made


@onnx_rule("Trilu")
def _trilu(reading: Reading, operator: Operator) -> Tensor:
    """Map a triangle of a matrix."""
    return reading.builder.op("triu" if operator.attrs.get("upper", 1) else "tril", reading.tensor(operator, 0))


def along(reading: Reading, kind: str, x: Tensor, axis: int) -> Tensor:
    """Add an op along a dimension that keeps the shape."""
    result = reading.builder.tensor(x.shape, x.dtype, stem=kind)
    reading.builder.node(kind, [x], [result], dims=(axis % len(x.shape),))
    return result
