"""What flows through a graph: tensors with shape, element type, strides, and the memory that they live in.

Plain records and short formulas on shapes; this file knows no op and no device. Strides count elements. A tensor
that is a view names the tensor that owns its memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fusesim.errors import GraphError, excerpt, unknown_name
from fusesim.ops import DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

Shape = tuple[int, ...]

INTEGERS: Final = {"int64": 8, "int32": 4, "int16": 2, "uint8": 1, "bool": 1}
"""Types that only index, mask and count, with their bytes."""

ITEMSIZES: Final = {name: dtype.itemsize for name, dtype in DTYPES.items()} | INTEGERS
"""Bytes of an element of every type that a tensor may have."""

MOST_ELEMENTS: Final = 10**18
"""Largest tensor; byte counts stay exact in 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor: its shape, element type and strides, and the tensor whose memory it lives in.

    `strides` count elements, 0 where a dimension is broadcast. `storage` is its own name unless it is a view of
    another tensor or was written over it. Worked out once, since planners ask thousands of times: `elements`, how many
    values it has, repeated ones counted; `itemsize`, bytes of one; `distinct`, how many differ in memory; and `bytes`
    that reading it all once touches. [B]
    """

    name: str
    shape: Shape
    dtype: str
    strides: Shape
    storage: str
    offset: int = 0
    elements: int = field(init=False, repr=False, compare=False)
    itemsize: int = field(init=False, repr=False, compare=False)
    distinct: int = field(init=False, repr=False, compare=False)
    bytes: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what cannot be a tensor; work out its sizes."""
        if not isinstance(self.dtype, str) or self.dtype not in ITEMSIZES:
            raise GraphError(str(unknown_name(f"tensor {excerpt(self.name)}: dtype", self.dtype, ITEMSIZES)))
        for what, values, least in (
            ("shape", self.shape, 0),
            ("strides", self.strides, None),
            ("offset", (self.offset,), 0),
        ):
            if not isinstance(values, tuple) or not all(_is_count(value, least) for value in values):
                raise GraphError(
                    f"tensor {excerpt(self.name)}: {what} {excerpt(values)} holds something other than sizes"
                )
        if len(self.strides) != len(self.shape):
            raise GraphError(f"tensor {excerpt(self.name)}: {len(self.strides)} strides for {len(self.shape)} dims")
        elements, itemsize = math.prod(self.shape), ITEMSIZES[self.dtype]
        if elements > MOST_ELEMENTS:
            raise GraphError(f"tensor {excerpt(self.name)}: {excerpt(elements)} elements; the largest is 10^18")
        distinct = math.prod(n for n, stride in zip(self.shape, self.strides, strict=True) if stride or not n)
        sizes = {"elements": elements, "itemsize": itemsize, "distinct": distinct, "bytes": distinct * itemsize}
        for name, value in sizes.items():
            object.__setattr__(self, name, value)

    @property
    def contiguous(self) -> bool:
        """Whether its values lie one after the other in row-major order."""
        return dense(self.shape, self.strides)

    @property
    def is_view(self) -> bool:
        """Whether it lives in another tensor's memory."""
        return self.storage != self.name


def _is_count(value: object, least: int | None) -> bool:
    """Return whether a value is a whole number, and not below the least."""
    return isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least)


def row_major(shape: Sequence[int]) -> Shape:
    """Return the strides of a contiguous tensor.

    Examples
    --------
    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def channels_last(shape: Sequence[int]) -> Shape:
    """Return the strides of a tensor [batch, channels, height, width] whose channels lie next to each other.

    Examples
    --------
    >>> channels_last((2, 3, 4, 5))
    (60, 1, 15, 3)
    """
    batch, channels, height, width = shape
    n, h, w, c = row_major((batch, height, width, channels))
    return n, c, h, w


def dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether strides are row-major, dimensions of one value aside."""
    own = zip(shape, strides, row_major(shape), strict=True)
    return all(size == 1 or stride == expected for size, stride, expected in own)


def permuted_dense(tensor: Tensor) -> bool:
    """Return whether a tensor fills its memory without gaps in some order of its dimensions (channels last, say)."""
    dims = sorted((stride, size) for size, stride in zip(tensor.shape, tensor.strides, strict=True) if size != 1)
    step = 1
    for stride, size in dims:
        if stride != step:
            return False
        step *= size
    return True


def disjoint(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors of one memory surely share no byte of it.

    Notes
    -----
    A byte is shared where a sum of steps, as many of each stride as either tensor allows, leads from the start of one
    to that of the other. Interleaved halves of a row have none; where too many steps would have to be tried the answer
    is no.
    """
    if not one.elements or not other.elements:
        return True
    spans: dict[int, tuple[int, int]] = {1: (1 - other.itemsize, one.itemsize - 1)}
    for tensor, sign in ((one, 1), (other, -1)):
        for size, stride in zip(tensor.shape, tensor.strides, strict=True):
            low, high = spans.get(stride * tensor.itemsize, (0, 0))
            more = sign * (size - 1)
            spans[stride * tensor.itemsize] = min(low, low + more), max(high, high + more)
    away = other.offset * other.itemsize - one.offset * one.itemsize
    return not _reachable(away, sorted(((step, *span) for step, span in spans.items() if step), reverse=True))


MOST_TRIED: Final = 4
"""Numbers of steps of one stride that are tried; nested strides need two."""


def _reachable(away: int, spans: Sequence[tuple[int, int, int]]) -> bool:
    """Return whether steps within spans, larger strides first, may add up to a distance."""
    if not spans:
        return away == 0
    (step, low, high), rest = spans[0], spans[1:]
    least, most = (sum(stride * span[side] for stride, *span in rest) for side in (0, 1))
    first, last = max(low, -((most - away) // step)), min(high, (away - least) // step)
    return last - first >= MOST_TRIED or any(_reachable(away - step * k, rest) for k in range(first, last + 1))


def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    """Return the common shape of operands: aligned at the last dimension, ones stretch.

    Raises
    ------
    GraphError
        If two sizes differ and neither is 1.

    Examples
    --------
    >>> broadcast_shape([(4, 1), (3,)])
    (4, 3)
    """
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        distinct = {size for size in sizes if size != 1}
        if len(distinct) > 1:
            raise GraphError(f"shapes {' and '.join(map(str, shapes))} do not broadcast: {sorted(distinct)} differ")
        result.append(distinct.pop() if distinct else 1)
    return tuple(result)
