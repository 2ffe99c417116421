"""Building graphs by hand: one method per op, shapes and element types worked out on the way.

    >>> b = Builder("bias_relu")
    >>> x, bias = b.input(128, 512, dtype="fp32"), b.input(512, dtype="fp32")
    >>> b.output(b.op("relu", b.op("add", x, bias)))
    >>> b.graph()
    <Graph bias_relu: 2 ops, 2 inputs, 1 outputs>

Results have PyTorch's shapes, types and strides, so that the same program means the same kernels. This file knows no
device.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fusesim.errors import GraphError, excerpt
from fusesim.kinds import find_kind
from fusesim.promotion import RANKS, promoted
from fusesim.signatures import checked
from fusesim.strided import common_strides, common_strides_like, viewed_strides
from fusesim.tensor import INTEGERS, Tensor, broadcast_shape, permuted_dense
from fusesim.viewing import Views

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.tensor import Shape

__all__ = ["RANKS", "Builder", "common_strides", "common_strides_like", "promoted", "viewed_strides"]


@checked
class Builder(Views):
    """Collects tensors and ops by a method for each; `graph()` makes the graph of them."""

    def op(
        self, kind: str, *inputs: Tensor, scalar: float | None = None, dtype: str | None = None, **attrs: Any
    ) -> Tensor:
        """Add a pointwise op of tensors that broadcast, and a number where `scalar` is given.

        The result has PyTorch's type (`promoted`) unless `dtype` is given, and the operands' order of dimensions where
        all of full shape share one. `over=True` writes it over the first operand.
        """
        row = find_kind(kind)
        if row.family != "pointwise":
            raise GraphError(f"{kind} is no pointwise op; use the method of its own")
        for other in inputs:
            if not isinstance(other, Tensor):
                raise GraphError(f"op {kind} takes tensors, not {type(other).__name__}; give a number as scalar=")
        shape = broadcast_shape([tensor.shape for tensor in inputs]) if inputs else self._given_shape(kind, attrs)
        if dtype is None:
            dtype = row.returns or promoted(inputs[1:] if kind == "where" and len(inputs) > 1 else inputs, scalar)
            if dtype in INTEGERS and (row.floats or kind == "div"):
                dtype = "fp32"
        if attrs.pop("over", None) is True:
            target = inputs[0] if inputs else None
            if target is None or shape != target.shape:
                raise GraphError(f"op {kind}: a result of shape {shape} cannot be written over its first operand")
            result = self.tensor(
                shape, target.dtype, stem=kind, strides=target.strides, of=target, offset=target.offset
            )
            self.node(kind, inputs, [result], scalar=scalar, over=target.name, **attrs)
            return result
        result = self.tensor(shape, dtype, stem=kind, strides=common_strides(shape, inputs))
        self.node(kind, inputs, [result], scalar=scalar, **attrs)
        return result

    def _given_shape(self, kind: str, attrs: dict[str, Any]) -> Shape:
        """Take the shape of an op without operands out of its settings."""
        shape = attrs.pop("shape", None)
        if not isinstance(shape, list | tuple):
            raise GraphError(f"op {kind} has no inputs; give its tensors, or shape=")
        return tuple(shape)

    def cast(self, x: Tensor, dtype: str) -> Tensor:
        """Add a change of element type; none where it has that type already."""
        return x if x.dtype == dtype else self.op("cast", x, dtype=dtype)

    def reduce(
        self,
        kind: str,
        x: Tensor,
        dims: Sequence[int] = (-1,),
        *,
        keepdim: bool = True,
        dtype: str | None = None,
    ) -> Tensor:
        """Add a reduction over some dimensions; `var_mean` returns the variance, see `reduce_all` for both."""
        return self.reduce_all(kind, x, dims, keepdim=keepdim, dtype=dtype)[0]

    def reduce_all(
        self, kind: str, x: Tensor, dims: Sequence[int] = (-1,), *, keepdim: bool = True, dtype: str | None = None
    ) -> list[Tensor]:
        """Add a reduction and return everything it makes."""
        row = find_kind(kind)
        rank = len(x.shape)
        gone = tuple(sorted({self._dim(x, dim) for dim in dims})) if dims else tuple(range(rank))
        if keepdim:
            shape = tuple(1 if place in gone else size for place, size in enumerate(x.shape))
        else:
            shape = tuple(size for place, size in enumerate(x.shape) if place not in gone)
        made = dtype or row.returns or ("int64" if x.dtype in INTEGERS and kind in {"sum", "prod"} else x.dtype)
        results = [self.tensor(shape, made, stem=kind) for _ in range(row.outputs)]
        self.node(kind, [x], results, dims=gone, keepdim=keepdim or None)
        return results

    def softmax(self, x: Tensor, dim: int = -1, *, log: bool = False, dtype: str | None = None) -> Tensor:
        """Add a softmax, or its logarithm, along a dimension."""
        result = self.tensor(x.shape, dtype or x.dtype, stem="softmax")
        dims = (self._dim(x, dim),) if x.shape else ()
        self.node("log_softmax" if log else "softmax", [x], [result], dims=dims)
        return result

    def layer_norm(
        self, x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, rank: int = 1
    ) -> Tensor:
        """Add a layer norm over the last `rank` dimensions."""
        return self._norm("layer_norm", x, [weight, bias], rank)

    def rms_norm(self, x: Tensor, weight: Tensor | None = None, *, rank: int = 1) -> Tensor:
        """Add a norm by the root of the mean square over the last `rank` dimensions."""
        return self._norm("rms_norm", x, [weight], rank)

    def _norm(self, kind: str, x: Tensor, operands: Sequence[Tensor | None], rank: int) -> Tensor:
        """Add a norm over the last dimensions."""
        if not 0 < rank <= len(x.shape):
            raise GraphError(f"{kind}: {x.name} {x.shape} has no last {excerpt(rank)} dimensions to go over")
        dims = tuple(range(len(x.shape) - rank, len(x.shape)))
        result = self.tensor(x.shape, x.dtype, stem=kind)
        present = [tensor for tensor in operands if tensor is not None]
        self.node(kind, [x, *present], [result], dims=dims)
        return result

    def batch_norm(
        self, x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None = None, bias: Tensor | None = None
    ) -> Tensor:
        """Add a batch norm of inference: statistics are given, one per channel."""
        present = [tensor for tensor in (mean, var, weight, bias) if tensor is not None]
        result = self.tensor(x.shape, x.dtype, stem="batch_norm", strides=x.strides if permuted_dense(x) else None)
        self.node("batch_norm", [x, *present], [result])
        return result

    def nll_loss(self, log_probabilities: Tensor, target: Tensor) -> Tensor:
        """Add the mean of minus the log-probabilities of the targets."""
        result = self.tensor((), log_probabilities.dtype, stem="nll_loss")
        self.node("nll_loss", [log_probabilities, target], [result])
        return result

    def cross_entropy(self, logits: Tensor, target: Tensor) -> Tensor:
        """Add the cross entropy of rows of logits: log-softmax, then the mean at the targets."""
        return self.nll_loss(self.softmax(logits, -1, log=True), target)

    def matmul(self, a: Tensor, b: Tensor, bias: Tensor | None = None, *, dtype: str | None = None) -> Tensor:
        """Add a [.., m, k] x b [.., k, n], and a bias row [n] inside the same kernel where given."""
        if min(len(a.shape), len(b.shape)) < 2:  # noqa: PLR2004 - a matrix has two dimensions
            raise GraphError(f"matmul takes matrices, not {a.shape} and {b.shape}")
        if a.shape[-1] != b.shape[-2]:
            sizes = f"{a.shape[-1]} and {b.shape[-2]}"
            raise GraphError(f"matmul: {a.name} {a.shape} x {b.name} {b.shape}: the inner sizes {sizes} differ")
        batch = broadcast_shape([a.shape[:-2], b.shape[:-2]])
        result = self.tensor((*batch, a.shape[-2], b.shape[-1]), dtype or a.dtype, stem="matmul")
        self.node("matmul", [a, b] if bias is None else [a, b, bias], [result])
        return result

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Add x [.., k] times the transpose of weight [n, k], plus bias [n]; leading dimensions are flattened."""
        self._of_rank("linear", 1, x)
        self._of_rank("linear", 2, weight)
        flat = self.view(x, (math.prod(x.shape[:-1]), x.shape[-1])) if len(x.shape) != 2 else x  # noqa: PLR2004
        made = self.matmul(flat, self.permute(weight, (1, 0)), bias)
        return self.view(made, (*x.shape[:-1], weight.shape[0])) if flat is not x else made

    def conv(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        *,
        stride: Sequence[int] = (1, 1),
        padding: Sequence[int] = (0, 0),
        groups: int = 1,
        dilation: Sequence[int] = (1, 1),
    ) -> Tensor:
        """Add a convolution of x [n, c, h, w] with weight [o, c / groups, kh, kw]."""
        self._of_rank("conv", 2, x, weight)
        if len(x.shape) != len(weight.shape) or x.shape[1] != weight.shape[1] * groups:
            raise GraphError(f"conv: x {x.shape} does not fit weight {weight.shape} in {excerpt(groups)} groups")
        settings = _window(len(x.shape) - 2, stride=stride, padding=padding, dilation=dilation)
        space = tuple(
            (size + 2 * pad - dil * (window - 1) - 1) // step + 1
            for size, window, step, pad, dil in zip(x.shape[2:], weight.shape[2:], *settings.values(), strict=True)
        )
        if min(space, default=1) < 1:
            raise GraphError(f"conv: the window {weight.shape[2:]} is larger than x {x.shape} with its padding")
        shape = (x.shape[0], weight.shape[0], *space)
        lead = weight if x.contiguous and _last(weight) else x  # channels last where either operand is
        result = self.tensor(shape, x.dtype, stem="conv", strides=common_strides_like(shape, lead))
        self.node(
            "conv",
            [x, weight] if bias is None else [x, weight, bias],
            [result],
            groups=groups,
            **settings,
        )
        return result

    def attention(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
        """Add tiled attention: q, k, v [batch, heads, seq, dim], the scores never in memory."""
        self._of_rank("attention", 2, q, k, v)
        shape = (*q.shape[:-1], v.shape[-1])
        result = self.tensor(shape, q.dtype, stem="attention", strides=common_strides_like(shape, q))
        self.node("attention", [q, k, v] if mask is None else [q, k, v, mask], [result], causal=causal or None)
        return result

    def dropout(self, x: Tensor, p: float) -> Tensor:
        """Add a dropout of training; its mask is a second result that inference frees at once."""
        if not 0 <= p <= 1:
            raise GraphError(f"dropout: p is {excerpt(p)}; it is a share, from 0 to 1")
        result = self.tensor(x.shape, x.dtype, stem="dropout", strides=x.strides if permuted_dense(x) else None)
        mask = self.tensor(x.shape, "bool", stem="mask")
        self.node("dropout", [x], [result, mask], p=p)
        return result

    def concat(self, tensors: Sequence[Tensor], dim: int = -1) -> Tensor:
        """Put tensors next to each other along a dimension."""
        if not tensors:
            raise GraphError("concat has no tensors to put next to each other")
        dim = self._dim(tensors[0], dim)
        shapes = {tensor.shape[:dim] + tensor.shape[dim + 1 :] for tensor in tensors}
        if len(shapes) > 1:
            raise GraphError(f"concat: {' and '.join(str(t.shape) for t in tensors)} differ beside dimension {dim}")
        shape = list(tensors[0].shape)
        shape[dim] = sum(tensor.shape[dim] for tensor in tensors)
        strides = common_strides_like(tuple(shape), tensors[0]) if all(_last(one) for one in tensors) else None
        result = self.tensor(shape, promoted(tensors, None), stem="concat", strides=strides)
        self.node("concat", tensors, [result], dim=dim)
        return result

    def embedding(self, table: Tensor, index: Tensor) -> Tensor:
        """Add rows of a table [rows, width], chosen by an index of any shape."""
        self._of_rank("embedding", 1, table)
        result = self.tensor((*index.shape, table.shape[-1]), table.dtype, stem="embedding")
        self.node("embedding", [table, index], [result])
        return result

    def embedding_bag(self, table: Tensor, index: Tensor) -> Tensor:
        """Add sums of rows of a table: index [bags, rows per bag]."""
        self._of_rank("embedding_bag", 1, table, index)
        result = self.tensor((index.shape[0], table.shape[-1]), table.dtype, stem="embedding_bag")
        self.node("embedding_bag", [table, index], [result])
        return result

    def gather(self, kind: str, x: Tensor, index: Sequence[Tensor], shape: Sequence[int], **attrs: Any) -> Tensor:
        """Add elements or rows of x chosen by indices."""
        result = self.tensor(shape, x.dtype, stem=kind)
        self.node(kind, [x, *index], [result], **attrs)
        return result


def _window(rank: int, **settings: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return how a window goes over so many dimensions; refuse steps that are none."""
    least = {"padding": 0}
    for name, values in settings.items():
        if len(values) != rank or min(values, default=1) < least.get(name, 1):
            raise GraphError(f"conv: {name} {excerpt(tuple(values))} does not say how far to go in {rank} dimensions")
    return {name: tuple(values) for name, values in settings.items()}


def _last(x: Tensor) -> bool:
    """Return whether channels lie next to each other, as PyTorch asks: of pictures, and not where row-major too."""
    return len(x.shape) in {4, 5} and permuted_dense(x) and not x.contiguous and x.strides[1] == 1
