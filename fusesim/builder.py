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
from typing import TYPE_CHECKING, Any, Final

from fusesim.errors import GraphError
from fusesim.graph import Graph, Node
from fusesim.kinds import find_kind
from fusesim.tensor import INTEGERS, Tensor, broadcast_shape, permuted_dense, row_major

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.tensor import Shape

RANKS: Final = {name: rank for rank, name in enumerate(("bool", "uint8", "int8", "int16", "int32", "int64"))}
"""Whole-number types in the order in which they promote; every floating-point type stands above them."""


class Builder:
    """Collects tensors and ops; `graph()` makes the graph of them."""

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.parameters: set[str] = set()
        self.gaps: list[str] = []
        self.held: dict[str, str] = {}
        self.scope = ""
        self._counts: dict[str, int] = {}

    def _name(self, stem: str) -> str:
        """Return a name that nothing has yet."""
        while True:
            count = self._counts.get(stem, 0)
            self._counts[stem] = count + 1
            name = f"{stem}_{count}" if count else stem
            if name not in self.tensors:
                return name

    def tensor(
        self,
        shape: Sequence[int],
        dtype: str,
        *,
        stem: str,
        strides: Sequence[int] | None = None,
        of: Tensor | None = None,
        offset: int = 0,
    ) -> Tensor:
        """Add a tensor: one of its own, or one in the memory of another, `offset` elements from its start."""
        name = self._name(stem)
        if strides is None:  # of what is no size the tensor itself says so
            strides = row_major(shape) if all(isinstance(size, int) for size in shape) else tuple(shape)
        storage = of.storage if of is not None else name
        made = Tensor(
            name=name, shape=tuple(shape), dtype=dtype, strides=tuple(strides), storage=storage, offset=offset
        )
        self.tensors[name] = made
        return made

    def input(self, *shape: int, dtype: str = "bf16", name: str = "x", strides: Sequence[int] | None = None) -> Tensor:
        """Add an input."""
        made = self.tensor(shape, dtype, stem=name, strides=strides)
        self.inputs.append(made.name)
        return made

    def parameter(
        self, *shape: int, dtype: str = "bf16", name: str = "w", strides: Sequence[int] | None = None
    ) -> Tensor:
        """Add an input that does not change from call to call: a weight."""
        made = self.input(*shape, dtype=dtype, name=name, strides=strides)
        self.parameters.add(made.name)
        return made

    def output(self, *tensors: Tensor) -> None:
        """Say what must exist at the end."""
        self.outputs.extend(tensor.name for tensor in tensors)

    def hold(self, *tensors: Tensor) -> None:
        """Say that the program keeps tensors after their last use, as a variable does: to its end, or to `release`."""
        self.held.update(dict.fromkeys((tensor.name for tensor in tensors), ""))

    def release(self, *tensors: Tensor) -> None:
        """Say that the program lets go of tensors that it held, after the latest op."""
        self.held.update(dict.fromkeys((tensor.name for tensor in tensors), self.nodes[-1].name))

    def graph(self) -> Graph:
        """Return the graph.

        Raises
        ------
        GraphError
            If it is not valid.
        """
        return Graph(
            tensors=dict(self.tensors),
            nodes=tuple(self.nodes),
            inputs=tuple(self.inputs),
            outputs=tuple(dict.fromkeys(self.outputs)),
            parameters=frozenset(self.parameters),
            name=self.name,
            gaps=tuple(self.gaps),
            held=dict(self.held),
        )

    def node(self, kind: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], **attrs: Any) -> None:
        """Add an op whose results are known."""
        row = find_kind(kind)
        made = Node(
            name=self._node_name(row.name),
            kind=kind,
            inputs=tuple(tensor.name for tensor in inputs),
            outputs=tuple(tensor.name for tensor in outputs),
            attrs=tuple(sorted((key, value) for key, value in attrs.items() if value is not None)),
            scope=self.scope,
        )
        self.nodes.append(made)

    def _node_name(self, kind: str) -> str:
        """Return mul, mul_1, mul_2, ..."""
        count = self._counts.get(f"op {kind}", 0)
        self._counts[f"op {kind}"] = count + 1
        return f"{kind}_{count}" if count else kind

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
        if not inputs and "shape" not in attrs:
            raise GraphError(f"op {kind} has no inputs; give its tensors, or shape=")
        shape = broadcast_shape([tensor.shape for tensor in inputs]) if inputs else tuple(attrs.pop("shape"))
        if dtype is None:
            dtype = row.returns or promoted(inputs[1:] if kind == "where" and len(inputs) > 1 else inputs, scalar)
            if dtype in INTEGERS and (row.floats or kind == "div"):
                dtype = "fp32"
        if attrs.pop("over", False):
            target = inputs[0]
            result = self.tensor(
                shape, target.dtype, stem=kind, strides=target.strides, of=target, offset=target.offset
            )
            self.node(kind, inputs, [result], scalar=scalar, over=target.name, **attrs)
            return result
        result = self.tensor(shape, dtype, stem=kind, strides=common_strides(shape, inputs))
        self.node(kind, inputs, [result], scalar=scalar, **attrs)
        return result

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

    def _dim(self, x: Tensor, dim: int) -> int:
        """Return a dimension counted from the front."""
        rank = len(x.shape)
        if not isinstance(dim, int) or not -rank <= dim < rank:
            raise GraphError(f"tensor {x.name} of shape {x.shape} has no dimension {dim}")
        return dim % rank

    def softmax(self, x: Tensor, dim: int = -1, *, log: bool = False, dtype: str | None = None) -> Tensor:
        """Add a softmax, or its logarithm, along a dimension."""
        result = self.tensor(x.shape, dtype or x.dtype, stem="softmax")
        self.node("log_softmax" if log else "softmax", [x], [result], dims=(self._dim(x, dim),))
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
        batch = broadcast_shape([a.shape[:-2], b.shape[:-2]])
        result = self.tensor((*batch, a.shape[-2], b.shape[-1]), dtype or a.dtype, stem="matmul")
        self.node("matmul", [a, b] if bias is None else [a, b, bias], [result])
        return result

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Add x [.., k] times the transpose of weight [n, k], plus bias [n]; leading dimensions are flattened."""
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
        if len(x.shape) != len(weight.shape) or x.shape[1] != weight.shape[1] * groups:
            raise GraphError(f"conv: x {x.shape} does not fit weight {weight.shape} in {groups} groups")
        space = tuple(
            (size + 2 * pad - dil * (window - 1) - 1) // step + 1
            for size, window, step, pad, dil in zip(
                x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True
            )
        )
        if min(space, default=1) < 1:
            raise GraphError(f"conv: the window {weight.shape[2:]} is larger than x {x.shape} with its padding")
        shape = (x.shape[0], weight.shape[0], *space)
        strides = common_strides_like(shape, x)
        result = self.tensor(shape, x.dtype, stem="conv", strides=strides)
        self.node(
            "conv",
            [x, weight] if bias is None else [x, weight, bias],
            [result],
            stride=tuple(stride),
            padding=tuple(padding),
            groups=groups,
            dilation=tuple(dilation),
        )
        return result

    def attention(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
        """Add tiled attention: q, k, v [batch, heads, seq, dim], the scores never in memory."""
        shape = (*q.shape[:-1], v.shape[-1])
        result = self.tensor(shape, q.dtype, stem="attention", strides=common_strides_like(shape, q))
        self.node("attention", [q, k, v] if mask is None else [q, k, v, mask], [result], causal=causal or None)
        return result

    def dropout(self, x: Tensor, p: float) -> Tensor:
        """Add a dropout of training; its mask is a second result that inference frees at once."""
        result = self.tensor(x.shape, x.dtype, stem="dropout", strides=x.strides if permuted_dense(x) else None)
        mask = self.tensor(x.shape, "bool", stem="mask")
        self.node("dropout", [x], [result, mask], p=p)
        return result

    def view(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Look at a tensor in another shape; where its strides do not allow that, copy it first, as PyTorch does."""
        if math.prod(shape) != x.elements:
            raise GraphError(
                f"view: {x.name} {x.shape} has {x.elements} elements, {tuple(shape)} has {math.prod(shape)}"
            )
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
        if any(size not in {before, size if before == 1 else before} for before, size in zip(old, shape, strict=True)):
            raise GraphError(f"expand: {x.name} {x.shape} does not broadcast to {tuple(shape)}")
        strides = tuple(
            0 if before == 1 and size != 1 else step for before, size, step in zip(old, shape, strides, strict=True)
        )
        made = self.tensor(shape, x.dtype, stem="expand", strides=strides, of=x, offset=x.offset)
        self.node("expand", [x], [made])
        return made

    def slice(self, x: Tensor, dim: int, start: int, stop: int, step: int = 1) -> Tensor:
        """Look at a part of a dimension."""
        dim = self._dim(x, dim)
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
        if not isinstance(place, int) or not -x.shape[dim] <= place < x.shape[dim]:
            raise GraphError(f"select: dimension {dim} of {x.name} {x.shape} has no place {place}")
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

    def concat(self, tensors: Sequence[Tensor], dim: int = -1) -> Tensor:
        """Put tensors next to each other along a dimension."""
        dim = self._dim(tensors[0], dim)
        shapes = {tensor.shape[:dim] + tensor.shape[dim + 1 :] for tensor in tensors}
        if len(shapes) > 1:
            raise GraphError(f"concat: {' and '.join(str(t.shape) for t in tensors)} differ beside dimension {dim}")
        shape = list(tensors[0].shape)
        shape[dim] = sum(tensor.shape[dim] for tensor in tensors)
        result = self.tensor(shape, promoted(tensors, None), stem="concat")
        self.node("concat", tensors, [result], dim=dim)
        return result

    def embedding(self, table: Tensor, index: Tensor) -> Tensor:
        """Add rows of a table [rows, width], chosen by an index of any shape."""
        result = self.tensor((*index.shape, table.shape[-1]), table.dtype, stem="embedding")
        self.node("embedding", [table, index], [result])
        return result

    def embedding_bag(self, table: Tensor, index: Tensor) -> Tensor:
        """Add sums of rows of a table: index [bags, rows per bag]."""
        result = self.tensor((index.shape[0], table.shape[-1]), table.dtype, stem="embedding_bag")
        self.node("embedding_bag", [table, index], [result])
        return result

    def gather(self, kind: str, x: Tensor, index: Sequence[Tensor], shape: Sequence[int], **attrs: Any) -> Tensor:
        """Add elements or rows of x chosen by indices."""
        result = self.tensor(shape, x.dtype, stem=kind)
        self.node(kind, [x, *index], [result], **attrs)
        return result


def promoted(inputs: Sequence[Tensor], scalar: float | None) -> str:
    """Return the type that PyTorch gives to a result.

    Notes
    -----
    Tensors of some dimension decide over those of none, floating point over whole numbers; two different 16-bit
    floating-point types meet in fp32; a fractional number lifts whole-number tensors to fp32.

    Examples
    --------
    >>> b = Builder()
    >>> promoted([b.input(4, dtype="bf16"), b.input(4, dtype="fp32")], None)
    'fp32'
    >>> promoted([b.input(4, dtype="bf16"), b.input(dtype="fp32")], None)
    'bf16'
    """
    best = ""
    for ranked in (True, False):
        types = {tensor.dtype for tensor in inputs if bool(tensor.shape) == ranked}
        here = _joined(types)
        if here and (not best or (best in INTEGERS and here not in INTEGERS)):
            best = here
    if isinstance(scalar, float) and not float(scalar).is_integer() and (not best or best in INTEGERS):
        return "fp32"
    return best or "fp32"


def _joined(types: set[str]) -> str:
    """Return the type in which types meet."""
    floats = {name for name in types if name not in RANKS and name not in INTEGERS}
    if not floats:
        return max(types, key=lambda name: RANKS.get(name, 0), default="")
    if len(floats) == 1:
        return floats.pop()
    return "fp64" if "fp64" in floats else "fp32"


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
