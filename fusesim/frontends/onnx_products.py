"""ONNX operators that run on matrix units: products, sums over indices, attention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fusesim.frontends.onnx_reading import Operator, Reading, onnx_rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.builder import Builder
    from fusesim.tensor import Tensor

MATRIX: Final = 2
"""Dimensions of a matrix."""


@onnx_rule("MatMul", "MatMulInteger")
def _matmul(reading: Reading, operator: Operator) -> Tensor:
    """Matrix products; vectors are matrices of one row or column."""
    b, left, right = reading.builder, reading.tensor(operator, 0), reading.tensor(operator, 1)
    dtype = "int32" if operator.type == "MatMulInteger" else None
    row, column = len(left.shape) < MATRIX, len(right.shape) < MATRIX
    left = b.view(left, (1, *left.shape)) if row else left
    right = b.view(right, (*right.shape, 1)) if column else right
    if len(right.shape) == MATRIX and len(left.shape) > MATRIX:
        flat = b.view(left, (math.prod(left.shape[:-1]), left.shape[-1]))
        made = b.view(b.matmul(flat, right, dtype=dtype), (*left.shape[:-1], right.shape[-1]))
    else:
        made = b.matmul(left, right, dtype=dtype)
    shape = [*made.shape[:-2], *([] if row else [made.shape[-2]]), *([] if column else [made.shape[-1]])]
    return b.view(made, shape) if row or column else made


@onnx_rule("Gemm", "FusedMatMul")
def _gemm(reading: Reading, operator: Operator) -> Tensor:
    """Map a product, either side transposed, plus a row or a matrix in the same kernel."""
    b = reading.builder
    left, right = reading.tensor(operator, 0), reading.tensor(operator, 1)
    left = b.transpose(left) if operator.attrs.get("transA") else left
    right = b.transpose(right) if operator.attrs.get("transB") else right
    plus = reading.tensor(operator, 2) if operator.has(2) and operator.attrs.get("beta", 1.0) else None
    return b.matmul(left, right, plus)


@onnx_rule("Einsum")
def _einsum(reading: Reading, operator: Operator) -> Tensor | None:
    """Map a product of two tensors with at most one summed index; others have no rule."""
    terms, _, target = operator.attrs["equation"].replace(" ", "").partition("->")
    sides = terms.split(",")
    if len(sides) != MATRIX or not target or "." in terms or any(len(set(s)) != len(s) for s in (*sides, target)):
        return None
    b, tensors = reading.builder, reading.tensors(operator)
    first, second = sides
    batch = [i for i in target if i in first and i in second]
    rows, columns = (
        [i for i in target if i in one and i not in other] for one, other in ((first, second), (second, first))
    )
    summed = [i for i in first if i in second and i not in target]
    if len(batch) + len(rows) + len(summed) != len(first) or len(batch) + len(columns) + len(summed) != len(second):
        return None
    size = dict(zip(first + second, (*tensors[0].shape, *tensors[1].shape), strict=True))
    left = _arranged(b, tensors[0], first, [batch, rows, summed], size)
    right = _arranged(b, tensors[1], second, [batch, summed, columns], size)
    order = [*batch, *rows, *columns]
    made = b.view(b.matmul(left, right), [size[i] for i in order])
    return b.permute(made, [order.index(i) for i in target]) if order != list(target) else made


def _arranged(b: Builder, x: Tensor, indices: str, groups: Sequence[Sequence[str]], size: dict[str, int]) -> Tensor:
    """Return a tensor with its dimensions in order and joined by group."""
    order = [indices.index(i) for group in groups for i in group]
    x = b.permute(x, order) if order != sorted(order) else x
    return b.view(x, [math.prod(size[i] for i in group) for group in groups])


@onnx_rule("Attention")
def _attention(reading: Reading, operator: Operator) -> Tensor | None:
    """Attention of four-dimensional queries, keys and values; packed ones have no rule."""
    if operator.domain == "com.microsoft" or len(reading.shape(operator, 0)) != 4 or operator.has(4):  # noqa: PLR2004
        return None
    q, k, v = (reading.tensor(operator, place) for place in range(3))
    mask = reading.tensor(operator, 3) if operator.has(3) else None
    return reading.builder.attention(q, k, v, mask, causal=bool(operator.attrs.get("is_causal")))
