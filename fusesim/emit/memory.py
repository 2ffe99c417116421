"""Tensors as bytes: rounding to an element type, and values laid out by strides, with numpy.

Narrow floating-point values are float32 arrays that hold only what the type can; in memory they are their bits.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fusesim.tensor import Tensor

Array = Any  # an array of numpy's, whatever its type

STORED: Final = {
    "fp64": np.float64,
    "fp32": np.float32,
    "tf32": np.float32,
    "bf16": np.uint16,
    "fp16": np.float16,
    "fp8": np.uint8,
    "int64": np.int64,
    "int32": np.int32,
    "int16": np.int16,
    "int8": np.int8,
    "uint8": np.uint8,
    "bool": np.bool_,
}
"""What holds an element in memory."""

VALUES: Final = STORED | {"bf16": np.float32, "fp16": np.float32, "fp8": np.float32}
"""What holds a value that is computed with."""

FP8_LARGEST: Final = 448.0


def rounded(values: Array, dtype: str) -> Array:
    """Return values as an element type holds them.

    Examples
    --------
    >>> rounded(np.float32([1.01, 257.0]), "bf16").tolist()
    [1.0078125, 256.0]
    """
    if dtype in {"bf16", "fp8", "fp16"}:
        return decoded(encoded(values, dtype), dtype)
    return np.asarray(values).astype(VALUES[dtype])


def encoded(values: Array, dtype: str) -> Array:
    """Return values as they stand in memory, rounded to the nearest, ties to even."""
    values = np.asarray(values)
    if dtype == "bf16":
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        even = ((bits >> 16) & 1) + np.uint32(0x7FFF)
        found = ((bits + even) >> 16).astype(np.uint16)
        return np.where(np.isnan(values), np.uint16(0x7FC0), found).reshape(values.shape)
    if dtype == "fp8":
        return _fp8(values)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(STORED[dtype])


def decoded(stored: Array, dtype: str) -> Array:
    """Return what stands in memory as values."""
    if dtype == "bf16":
        return (np.asarray(stored).astype(np.uint32) << 16).view(np.float32)
    if dtype == "fp8":
        return _fp8_table()[np.asarray(stored)]
    return np.asarray(stored).astype(VALUES[dtype])


@cache
def _fp8_table() -> NDArray[np.float32]:
    """Return the value of every byte of the type e4m3: no infinities, NaN where all bits below the sign are set."""
    code = np.arange(256)
    exponent, fraction = code >> 3 & 15, code & 7
    size = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7.0))
    size[(code & 127) == 127] = np.nan  # noqa: PLR2004 - the bits below the sign
    return np.where(code > 127, -size, size).astype(np.float32)  # noqa: PLR2004


def _fp8(values: Array) -> Array:
    """Return the nearest byte of the type e4m3; what is too large becomes the largest."""
    table = _fp8_table()[:127].astype(np.float64)
    size = np.minimum(np.abs(np.asarray(values, dtype=np.float64)), FP8_LARGEST)
    above = np.clip(np.searchsorted(table, size), 1, 126)
    low, high = size - table[above - 1], table[above] - size
    nearest = np.where((low < high) | ((low == high) & (above % 2 == 1)), above - 1, above)
    signed = np.where(np.signbit(values), nearest + 128, nearest)
    return np.where(np.isnan(values), 127, signed).astype(np.uint8)


def extent(tensor: Tensor) -> int:
    """Return how many elements of memory a tensor reaches over, gaps included."""
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))


def looked_at(buffer: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """Return a buffer seen as a tensor of that shape and those strides. [elements]."""
    steps = [stride * buffer.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(buffer, shape, steps)


def laid_out(values: Array, tensor: Tensor) -> Array:
    """Return the memory of a tensor that holds these values."""
    buffer: Array = np.zeros(extent(tensor), STORED[tensor.dtype])
    looked_at(buffer, tensor.shape, tensor.strides)[...] = encoded(values, tensor.dtype)
    return buffer


def read_back(buffer: Array, tensor: Tensor) -> Array:
    """Return the values of a tensor from its memory."""
    return decoded(np.ascontiguousarray(looked_at(buffer, tensor.shape, tensor.strides)), tensor.dtype)
