"""Strides of a result from those of its operands, and of a tensor seen in another shape, as PyTorch has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim.tensor import permuted_dense, row_major

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.tensor import Shape, Tensor


def common_strides(shape: Shape, inputs: Sequence[Tensor]) -> Shape | None:
    """Return the strides of a pointwise result: the operands' own order where one of full shape has another order."""
    full = [tensor for tensor in inputs if tensor.shape == shape and permuted_dense(tensor)]
    if full and not full[0].contiguous:
        return full[0].strides
    partial = [tensor for tensor in inputs if tensor.shape == shape]
    if partial and not partial[0].contiguous and not full:
        return common_strides_like(shape, partial[0])
    return None


def common_strides_like(shape: Shape, like: Tensor) -> Shape:
    """Return dense strides for a shape, dimensions in the order of another tensor's."""
    order = sorted(range(len(shape)), key=lambda dim: (-like.strides[dim] if like.shape[dim] != 1 else 0, dim))
    if any(like.strides[dim] == 0 and like.shape[dim] > 1 for dim in range(len(shape))):
        return row_major(shape)
    order = _stable_order(like)
    strides, step = [0] * len(shape), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def _stable_order(tensor: Tensor) -> list[int]:
    """Return the dimensions from the slowest to the fastest; those of one value stay where they are."""
    big = [dim for dim in range(len(tensor.shape)) if tensor.shape[dim] != 1]
    by_stride = iter(sorted(big, key=lambda dim: (-tensor.strides[dim], dim)))
    return [next(by_stride) if tensor.shape[dim] != 1 else dim for dim in range(len(tensor.shape))]


def viewed_strides(x: Tensor, shape: Shape) -> Shape | None:
    """Return the strides of a tensor seen in another shape, None where that needs a copy.

    Notes
    -----
    Dimensions whose strides follow on from each other form one run; a new shape is a view where each of its
    dimensions lies within one run.
    """
    if x.contiguous or not x.elements:
        return row_major(shape)
    runs: list[tuple[int, int]] = []  # size, stride of the last dimension of the run
    for size, stride in zip(x.shape, x.strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == stride * size:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    strides: list[int] = []
    left = list(reversed(shape))
    for size, stride in reversed(runs):
        step, room = stride, size
        while room > 1:
            if not left:
                return None
            part = left.pop(0)
            if room % part:
                return None
            strides.append(step)
            step *= part
            room //= part
    strides.extend([1] * len(left))
    return tuple(reversed(strides)) if all(size == 1 for size in left) else None
