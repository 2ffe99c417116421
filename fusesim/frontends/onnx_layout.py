"""ONNX operators that move, choose, join or window values: reshapes, slices, gathers, pads, convolutions, pools."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusesim.builder import common_strides_like
from fusesim.errors import GraphError
from fusesim.frontends.onnx_reading import TYPES, Operator, Reading, onnx_rule
from fusesim.tensor import broadcast_shape

if TYPE_CHECKING:
    from fusesim.tensor import Tensor

MATRIX: Final = 2


@onnx_rule("Constant")
def _constant(reading: Reading, operator: Operator) -> Any:
    """Map a constant, kept as its values."""
    for name, value in operator.attrs.items():
        if name == "value":
            return reading.onnx.numpy_helper.to_array(value)
        if name.startswith("value_") and not isinstance(value, str):
            return np.asarray(value, dtype=np.int64 if "int" in name else np.float32)
    raise GraphError("holds no numbers")


@onnx_rule("Reshape")
def _reshape(reading: Reading, operator: Operator) -> Tensor:
    """Another shape: 0 keeps a size, -1 is worked out."""
    x, wanted = reading.tensor(operator, 0), reading.sizes(operator, 1, "shape") or ()
    keep = not operator.attrs.get("allowzero")
    sizes = [x.shape[at] if size == 0 and keep else size for at, size in enumerate(wanted)]
    if -1 in sizes:
        rest = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = x.elements // max(rest, 1)
    return reading.builder.view(x, sizes)


@onnx_rule("Flatten")
def _flatten(reading: Reading, operator: Operator) -> Tensor:
    """Two dimensions of all."""
    x, axis = reading.tensor(operator, 0), operator.attrs.get("axis", 1)
    axis = axis + len(x.shape) if axis < 0 else axis
    return reading.builder.view(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@onnx_rule("Squeeze", "Unsqueeze")
def _squeeze(reading: Reading, operator: Operator) -> Tensor:
    """Dimensions of one place less or more."""
    x, axes = reading.tensor(operator, 0), reading.sizes(operator, 1, "axes")
    if operator.type == "Squeeze":
        rank = len(x.shape)
        gone = {axis % rank for axis in axes} if axes is not None else {at for at, n in enumerate(x.shape) if n == 1}
        return reading.builder.view(x, [size for at, size in enumerate(x.shape) if at not in gone])
    rank = len(x.shape) + len(axes or ())
    added, own = {axis % rank for axis in axes or ()}, iter(x.shape)
    return reading.builder.view(x, [1 if at in added else next(own) for at in range(rank)])


@onnx_rule("Transpose")
def _transpose(reading: Reading, operator: Operator) -> Tensor:
    """Dimensions in another order."""
    x = reading.tensor(operator, 0)
    return reading.builder.permute(x, operator.attrs.get("perm") or range(len(x.shape))[::-1])


@onnx_rule("Expand")
def _expand(reading: Reading, operator: Operator) -> Tensor:
    """Broadcast to a shape, both ways."""
    x = reading.tensor(operator, 0)
    return reading.builder.expand(x, broadcast_shape([x.shape, reading.sizes(operator, 1) or ()]))


@onnx_rule("Slice")
def _slice(reading: Reading, operator: Operator) -> Tensor:
    """Parts of dimensions; backwards, a copy."""
    x, b = reading.tensor(operator, 0), reading.builder
    starts, ends = reading.sizes(operator, 1, "starts") or (), reading.sizes(operator, 2, "ends") or ()
    axes = reading.sizes(operator, 3, "axes") or tuple(range(len(starts)))
    steps = reading.sizes(operator, 4) or (1,) * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = x.shape[axis % len(x.shape)]
        if step > 0:
            x = b.slice(x, axis, start, end, step)
        else:
            count = len(range(*slice(start, end if end > -(10**9) else None, step).indices(size)))
            x = b.copy(b.slice(x, axis, 0, count))
    return x


@onnx_rule("Split", "SplitToSequence")
def _split(reading: Reading, operator: Operator) -> list[Tensor] | None:
    """Parts of a dimension, each a view."""
    if operator.type == "SplitToSequence":
        return None
    x, b = reading.tensor(operator, 0), reading.builder
    axis = operator.attrs.get("axis", 0) % len(x.shape)
    sizes = reading.sizes(operator, 1, "split")
    if sizes is None:
        each = -(-x.shape[axis] // len(operator.outputs))
        sizes = tuple(min(each, x.shape[axis] - at) for at in range(0, x.shape[axis], each))
    made, at = [], 0
    for size in sizes:
        made.append(b.slice(x, axis, at, at + size))
        at += size
    return made


@onnx_rule("Concat")
def _concat(reading: Reading, operator: Operator) -> Tensor:
    """Tensors next to each other."""
    parts = [part for part in reading.tensors(operator) if part.elements] or reading.tensors(operator)[:1]
    return reading.builder.concat(parts, operator.attrs.get("axis", 0))


@onnx_rule("Gather")
def _gather(reading: Reading, operator: Operator) -> Tensor:
    """Rows of a table, elements by an index, or one known place, which is a view."""
    b, x, axis = reading.builder, reading.tensor(operator, 0), operator.attrs.get("axis", 0)
    axis %= len(x.shape)
    place = reading.number(operator, 1)
    if place is not None and not reading.shape(operator, 1):
        return b.select(x, axis, int(place) % max(x.shape[axis], 1))
    index = reading.tensor(operator, 1)
    if axis == 0 and len(x.shape) == MATRIX:
        return b.embedding(x, index)
    return b.gather("index", x, [index], (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]), dims=(axis,))


@onnx_rule("GatherElements", "GatherND")
def _gather_elements(reading: Reading, operator: Operator) -> Tensor:
    """Elements by an index of each."""
    b, x, index = reading.builder, reading.tensor(operator, 0), reading.tensor(operator, 1)
    if operator.type == "GatherElements":
        return b.gather("gather", x, [index], index.shape, dim=operator.attrs.get("axis", 0) % len(x.shape))
    lead = operator.attrs.get("batch_dims", 0)
    return b.gather("index", x, [index], (*index.shape[:-1], *x.shape[lead + index.shape[-1] :]))


@onnx_rule("ScatterElements", "ScatterND", "Scatter")
def _scatter(reading: Reading, operator: Operator) -> Tensor:
    """Values put to places of a copy."""
    x, *rest = reading.tensors(operator)
    return reading.builder.gather("scatter", x, rest, x.shape)


@onnx_rule("ConstantOfShape")
def _fill(reading: Reading, operator: Operator) -> Tensor:
    """One value everywhere."""
    value = operator.attrs.get("value")
    array = reading.onnx.numpy_helper.to_array(value) if value is not None else np.zeros(1, np.float32)
    dtype = TYPES[value.data_type] if value is not None else "fp32"
    shape = reading.sizes(operator, 0) or ()
    return reading.builder.op("fill", shape=shape, scalar=float(array.reshape(-1)[0]), dtype=dtype)


@onnx_rule("Range", "EyeLike")
def _iota(reading: Reading, operator: Operator) -> Tensor:
    """Numbers in a row."""
    if operator.type == "EyeLike":
        x = reading.tensor(operator, 0)
        return reading.builder.op("iota", shape=x.shape, dtype=x.dtype)
    numbers = [reading.number(operator, place) for place in range(3)]
    if None in numbers:
        raise GraphError("its length depends on values; export the model with fixed shapes")
    start, limit, step = (value or 0.0 for value in numbers)
    return reading.builder.op("iota", shape=(max(0, math.ceil((limit - start) / step)),), dtype="int64")


@onnx_rule("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike")
def _random(reading: Reading, operator: Operator) -> Tensor:
    """Random numbers."""
    shape, dtype = reading.inferred(operator.outputs[0], None)
    result = reading.builder.tensor(shape, dtype, stem="rand")
    reading.builder.node("rand", [], [result])
    return result


@onnx_rule("Tile", "DepthToSpace", "SpaceToDepth", "ReverseSequence")
def _moved(reading: Reading, operator: Operator) -> Tensor:
    """Values elsewhere, some of them several times."""
    b, x = reading.builder, reading.tensor(operator, 0)
    shape = x.shape
    if operator.type == "Tile":
        shape = tuple(size * times for size, times in zip(x.shape, reading.sizes(operator, 1) or (), strict=True))
    elif operator.type != "ReverseSequence":
        block = operator.attrs["blocksize"]
        n, c, h, w = x.shape
        deep = operator.type == "SpaceToDepth"
        shape = (n, c * block**2, h // block, w // block) if deep else (n, c // block**2, h * block, w * block)
    result = b.tensor(shape, x.dtype, stem="copy")
    b.node("copy", [x], [result])
    return result


@onnx_rule("Pad")
def _pad(reading: Reading, operator: Operator) -> Tensor:
    """Values with others around them: the beginnings of all dimensions, then the ends."""
    b, x = reading.builder, reading.tensor(operator, 0)
    pads = reading.sizes(operator, 1, "pads") or ()
    axes = reading.sizes(operator, 3) if operator.has(3) else tuple(range(len(x.shape)))
    shape = list(x.shape)
    for place, axis in enumerate(axes or ()):
        shape[axis] += pads[place] + pads[place + len(pads) // 2]
    result = b.tensor(shape, x.dtype, stem="pad")
    b.node("pad", [x], [result], mode=operator.attrs.get("mode", "constant"))
    return result


@onnx_rule("Resize", "Upsample")
def _resize(reading: Reading, operator: Operator) -> Tensor:
    """Map a picture of another size."""
    b, x = reading.builder, reading.tensor(operator, 0)
    old = operator.type == "Upsample" or reading.version < 11  # noqa: PLR2004
    scales = operator.attrs.get("scales") or reading.constant(operator, 1 if old else 2)
    sizes = reading.sizes(operator, 3) if operator.has(3) and not old else None
    if sizes is None and scales is not None and np.size(scales):
        sizes = tuple(math.floor(size * float(scale)) for size, scale in zip(x.shape, np.ravel(scales), strict=True))
    if sizes is None:
        sizes, _ = reading.inferred(operator.outputs[0], x)
    result = b.tensor(sizes, x.dtype, stem="upsample")
    b.node("upsample", [x], [result], mode=operator.attrs.get("mode"))
    return result


@onnx_rule("Conv")
def _convolution(reading: Reading, operator: Operator) -> Tensor:
    """Map a convolution of any rank; where it pads unevenly, the padding is an op of its own."""
    b, (x, weight, *rest) = reading.builder, reading.tensors(operator)
    rank = len(x.shape) - 2
    if rank < 1:
        raise GraphError(f"convolves {x.shape}, which has no dimensions beside batch and channels")
    window = operator.attrs.get("kernel_shape") or weight.shape[2:]
    stride, dilation = (operator.attrs.get(name) or (1,) * rank for name in ("strides", "dilations"))
    pads = _pads(operator, x.shape[2:], window, stride, dilation)
    settings: dict[str, Any] = {"stride": tuple(stride), "dilation": tuple(dilation)}
    groups = operator.attrs.get("group", 1)
    if any(pads[at] != pads[at + rank] for at in range(rank)):
        wide = [*x.shape[:2], *(size + pads[at] + pads[at + rank] for at, size in enumerate(x.shape[2:]))]
        padded = b.tensor(wide, x.dtype, stem="pad")
        b.node("pad", [x], [padded], mode="constant")
        x, pads = padded, (0,) * (2 * rank)
    return b.conv(x, weight, rest[0] if rest else None, padding=pads[:rank], groups=groups, **settings)


@onnx_rule("ConvTranspose")
def _conv_transpose(reading: Reading, operator: Operator) -> Tensor:
    """Map a transposed convolution: weight [c, o / groups, kh, kw]."""
    b, (x, weight, *rest) = reading.builder, reading.tensors(operator)
    rank, groups = len(x.shape) - 2, operator.attrs.get("group", 1)
    stride, dilation = (operator.attrs.get(name) or (1,) * rank for name in ("strides", "dilations"))
    extra = operator.attrs.get("output_padding") or (0,) * rank
    pads = _pads(operator, x.shape[2:], weight.shape[2:], stride, dilation)
    space = operator.attrs.get("output_shape") or tuple(
        (size - 1) * stride[at] + extra[at] + (weight.shape[2 + at] - 1) * dilation[at] + 1 - pads[at] - pads[at + rank]
        for at, size in enumerate(x.shape[2:])
    )
    result = b.tensor((x.shape[0], weight.shape[1] * groups, *space[-rank:]), x.dtype, stem="conv")
    b.node("conv", [x, weight, *rest], [result], stride=tuple(stride), groups=groups, transposed=True)
    return result


def _pads(operator: Operator, space: tuple[int, ...], window: Any, stride: Any, dilation: Any) -> tuple[int, ...]:
    """Return how much is put around: before each dimension, then behind each."""
    automatic = operator.attrs.get("auto_pad", "NOTSET")
    rank = len(space)
    if automatic in {"NOTSET", ""}:
        return tuple(operator.attrs.get("pads") or (0,) * (2 * rank))
    if automatic == "VALID":
        return (0,) * (2 * rank)
    before, behind = [], []
    for at, size in enumerate(space):
        whole = max((-(-size // stride[at]) - 1) * stride[at] + (window[at] - 1) * dilation[at] + 1 - size, 0)
        small = whole // 2
        before.append(small if automatic == "SAME_UPPER" else whole - small)
        behind.append(whole - before[-1])
    return (*before, *behind)


@onnx_rule("MaxPool", "AveragePool", "LpPool")
def _pool(reading: Reading, operator: Operator) -> list[Tensor]:
    """Windows: the largest, with their places where asked for, or the mean."""
    b, x = reading.builder, reading.tensor(operator, 0)
    window = operator.attrs["kernel_shape"]
    rank = len(window)
    stride, dilation = (operator.attrs.get(name) or (1,) * rank for name in ("strides", "dilations"))
    pads = _pads(operator, x.shape[2:], window, stride, dilation)
    space = []
    for at, size in enumerate(x.shape[2:]):
        room = size + pads[at] + pads[at + rank] - dilation[at] * (window[at] - 1) - 1
        space.append((-(-room // stride[at]) if operator.attrs.get("ceil_mode") else room // stride[at]) + 1)
    shape = (*x.shape[:2], *space)
    types = [x.dtype, "int64"][: max(len([name for name in operator.outputs if name]), 1)]
    made = [b.tensor(shape, dtype, stem="pool", strides=common_strides_like(shape, x)) for dtype in types]
    mode = "max" if operator.type == "MaxPool" else "mean"
    b.node("pool", [x], made, mode=mode, kernel_size=tuple(window), stride=tuple(stride))
    return made


@onnx_rule("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(reading: Reading, operator: Operator) -> Tensor:
    """Map the mean or the largest of every channel."""
    x = reading.tensor(operator, 0)
    kind = "mean" if operator.type == "GlobalAveragePool" else "amax"
    return reading.builder.reduce(kind, x, tuple(range(2, len(x.shape))))
