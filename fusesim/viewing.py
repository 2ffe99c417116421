"""Looking at a tensor's memory in another way, which costs nothing, and copying it where no look will do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fusesim.collecting import Collector
from fusesim.errors import GraphError, excerpt
from fusesim.signatures import checked
from fusesim.strided import viewed_strides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.tensor import Tensor


@checked
class Views(Collector):
    """Adds views and copies."""

    def view(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Look at a tensor in another shape; where its strides do not allow that, copy it first, as PyTorch does."""
        count = math.prod(shape)
        if count != x.elements:
            form = excerpt(tuple(shape))
            raise GraphError(f"view: {x.name} {x.shape} has {x.elements} elements, {form} has {excerpt(count)}")
        strides = viewed_strides(x, tuple(shape))
        if strides is None:
            return self.view(self.copy(x), shape)
        made = self.tensor(shape, x.dtype, stem="view", strides=strides, of=x, offset=x.offset)
        self.node("view", [x], [made])
        return made

    def permute(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """Look at a tensor with its dimensions in another order."""
        order = [self._dim(x, dim) for dim in order]
        if sorted(order) != list(range(len(x.shape))):
            raise GraphError(f"permute: {order} is no order of the dimensions of {x.name} {x.shape}")
        shape, strides = (tuple(values[dim] for dim in order) for values in (x.shape, x.strides))
        made = self.tensor(shape, x.dtype, stem="permute", strides=strides, of=x, offset=x.offset)
        self.node("permute", [x], [made], order=tuple(order))
        return made

    def transpose(self, x: Tensor, first: int = -2, second: int = -1) -> Tensor:
        """Look at a tensor with two dimensions swapped."""
        order = list(range(len(x.shape)))
        first, second = self._dim(x, first), self._dim(x, second)
        order[first], order[second] = order[second], order[first]
        return self.permute(x, order)

    def expand(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Look at a tensor broadcast to a larger shape."""
        lead = len(shape) - len(x.shape)
        old, strides = (1,) * lead + x.shape, (0,) * lead + x.strides
        if lead < 0 or any(
            size not in {before, size if before == 1 else before} for before, size in zip(old, shape, strict=True)
        ):
            raise GraphError(f"expand: {x.name} {x.shape} does not broadcast to {excerpt(tuple(shape))}")
        strides = tuple(
            0 if before == 1 and size != 1 else step for before, size, step in zip(old, shape, strides, strict=True)
        )
        made = self.tensor(shape, x.dtype, stem="expand", strides=strides, of=x, offset=x.offset)
        self.node("expand", [x], [made])
        return made

    def slice(self, x: Tensor, dim: int, start: int, stop: int, step: int = 1) -> Tensor:
        """Look at a part of a dimension."""
        dim = self._dim(x, dim)
        if step < 1:
            raise GraphError(f"slice: a step of {excerpt(step)} leads nowhere; give 1 or more")
        places = range(*slice(start, stop, step).indices(x.shape[dim]))
        shape, strides = list(x.shape), list(x.strides)
        shape[dim], strides[dim] = len(places), strides[dim] * step
        offset = x.offset + places.start * x.strides[dim] * bool(places)
        made = self.tensor(shape, x.dtype, stem="slice", strides=strides, of=x, offset=offset)
        self.node("slice", [x], [made], dim=dim, start=start)
        return made

    def select(self, x: Tensor, dim: int, place: int) -> Tensor:
        """Look at one place of a dimension."""
        dim = self._dim(x, dim)
        shape, strides = (tuple(v for at, v in enumerate(values) if at != dim) for values in (x.shape, x.strides))
        if not -x.shape[dim] <= place < x.shape[dim]:
            raise GraphError(f"select: dimension {dim} of {x.name} {x.shape} has no place {excerpt(place)}")
        offset = x.offset + place % x.shape[dim] * x.strides[dim]
        made = self.tensor(shape, x.dtype, stem="select", strides=strides, of=x, offset=offset)
        self.node("select", [x], [made], dim=dim, place=place)
        return made

    def copy(self, x: Tensor, strides: Sequence[int] | None = None) -> Tensor:
        """Add a copy, row-major unless strides are given."""
        result = self.tensor(x.shape, x.dtype, stem="copy", strides=strides)
        self.node("copy", [x], [result])
        return result

    def contiguous(self, x: Tensor) -> Tensor:
        """Return the tensor where it is row-major, else a copy that is."""
        return x if x.contiguous else self.copy(x)
