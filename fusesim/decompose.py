"""Composite ops as what they are made of: pointwise ops and reductions, as compilers that fuse see them.

A rule says for each kind what it is; graphs go in and come out, every tensor of the original under its own name, so
that inputs, outputs and what stays as it was can be compared. 16-bit types are widened to fp32 inside a composite and
narrowed at its end, as PyTorch's composites do: what an intermediate would take in memory is then what a compiler's
own form would hold. This file knows no device.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.builder import Builder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fusesim.graph import Graph, Node
    from fusesim.tensor import Tensor

    Rule = Callable[[Builder, Node, Sequence[Tensor]], Sequence[Tensor] | None]

NARROW: Final = frozenset({"bf16", "fp16", "fp8"})
"""Types that composites widen to fp32."""

EPSILON: Final = 1e-5
"""What keeps a variance from zero unless the op says otherwise."""

IGNORED: Final = -100
"""The target that a loss leaves out."""


def decompose(graph: Graph, kinds: Iterable[str] | None = None) -> Graph:
    """Return the graph with its composite ops written out.

    Parameters
    ----------
    graph : Graph
        Any graph.
    kinds : iterable of str, optional
        Kinds to write out; all of `RULES` unless given.

    Returns
    -------
    Graph
        The same inputs, outputs and tensors; where an op was written out, new ops and tensors stand, named after it.
        The very same graph where nothing was.

    Notes
    -----
    Pointwise ops (GELU too), attention, matrix products, views and gathers stay. A layer norm is one reduction for
    variance and mean, then pointwise ops.
    """
    wanted = RULES if kinds is None else {kind: RULES[kind] for kind in kinds if kind in RULES}
    if not any(node.kind in wanted for node in graph.nodes):
        return graph
    b = Builder(graph.name)
    b.tensors = dict(graph.tensors)
    taken = {node.name for node in graph.nodes}
    last: dict[str, str] = {}
    for node in graph.nodes:
        start = len(b.nodes)
        rule = wanted.get(node.kind) if _written_out(graph, node) else None
        made = rule(b, node, [graph.tensors[name] for name in node.inputs]) if rule else None
        if made is None:
            b.nodes.append(node)
            continue
        _adopt(b, node, made, start)
        b.nodes[start:] = [_named(part, node, taken) for part in b.nodes[start:]]
        last[node.name] = b.nodes[-1].name
    held = {name: last.get(until, until) for name, until in graph.held.items()}
    return replace(graph, tensors=dict(b.tensors), nodes=tuple(b.nodes), held=held)


RESULTS: Final = {"layer_norm": 3, "rms_norm": 2, "nll_loss": 2, "dropout": 2}
"""Results that a rule can give where a backward pass keeps more than one; an op that makes more stays whole."""


def _written_out(graph: Graph, node: Node) -> bool:
    """Return whether an op makes values, and no more results than a rule gives."""
    values = any(graph.tensors[name].elements for name in node.outputs)
    return values and len(node.outputs) <= RESULTS.get(node.kind, 1)


def _adopt(b: Builder, node: Node, made: Sequence[Tensor], start: int) -> None:
    """Give the last results of a rule the names of the tensors that the op made."""
    names = {}
    for name, tensor in zip(node.outputs, made, strict=False):
        wanted = b.tensors[name]
        if tensor.dtype != wanted.dtype or tensor.is_view or tensor.name in node.inputs:
            tensor = b.op("cast", tensor, dtype=wanted.dtype)  # noqa: PLW2901 - a result of its own to rename
        names[tensor.name] = name
    for name in names:
        del b.tensors[name]
    for place in range(start, len(b.nodes)):
        part = b.nodes[place]
        ends = tuple(names.get(name, name) for name in part.outputs)
        starts = tuple(names.get(name, name) for name in part.inputs)
        b.nodes[place] = replace(part, inputs=starts, outputs=ends)


def _named(part: Node, whole: Node, taken: set[str]) -> Node:
    """Return a part of an op under a name that says whose part it is."""
    stem = name = f"{whole.name}.{part.kind}"
    count = 0
    while name in taken:
        count += 1
        name = f"{stem}_{count}"
    taken.add(name)
    return replace(part, name=name, scope=whole.scope)


def _wide(b: Builder, x: Tensor) -> Tensor:
    """Return a tensor in fp32 where its type is narrower."""
    return b.cast(x, "fp32") if x.dtype in NARROW else x


def _softmax(b: Builder, node: Node, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """exp(x - amax) over its sum."""
    x, dims = _wide(b, inputs[0]), node.attr("dims", (-1,))
    powers = b.op("exp", b.op("sub", x, b.reduce("amax", x, dims)))
    return [b.op("div", powers, b.reduce("sum", powers, dims))]


def _log_softmax(b: Builder, node: Node, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """X - amax, less the logarithm of the sum of its powers."""
    x, dims = _wide(b, inputs[0]), node.attr("dims", (-1,))
    shifted = b.op("sub", x, b.reduce("amax", x, dims))
    return [b.op("sub", shifted, b.op("log", b.reduce("sum", b.op("exp", shifted), dims)))]


def _affine(b: Builder, value: Tensor, operands: Sequence[Tensor]) -> Tensor:
    """Return the value times a weight, plus a bias, where they are given."""
    for kind, operand in zip(("mul", "add"), operands, strict=False):
        value = b.op(kind, value, operand)
    return value


def _normalised(b: Builder, x: Tensor, dims: Sequence[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return (x - mean) over the deviation, and both statistics."""
    variance, mean = b.reduce_all("var_mean", x, dims)
    scale = b.op("rsqrt", b.op("add", variance, scalar=eps))
    return b.op("mul", b.op("sub", x, mean), scale), mean, scale


def _layer_norm(b: Builder, node: Node, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """One reduction, then normalise, scale and shift."""
    x = _wide(b, inputs[0])
    normal, mean, scale = _normalised(b, x, node.attr("dims", (-1,)), node.attr("eps", EPSILON))
    return [_affine(b, normal, inputs[1:]), mean, scale]


def _rms_norm(b: Builder, node: Node, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """X times the reciprocal root of its mean square, times weight."""
    x = _wide(b, inputs[0])
    square = b.reduce("mean", b.op("square", x), node.attr("dims", (-1,)))
    scale = b.op("rsqrt", b.op("add", square, scalar=node.attr("eps", EPSILON)))
    return [_affine(b, b.op("mul", x, scale), inputs[1:]), scale]


def _group_norm(b: Builder, node: Node, inputs: Sequence[Tensor]) -> Sequence[Tensor] | None:
    """Layer norm over groups of channels; left as it is where the number of groups is not said."""
    groups = node.attr("groups")
    x, shape = inputs[0], inputs[0].shape
    if not groups or not x.contiguous or shape[1] % groups:
        return None
    parts = b.view(_wide(b, x), (shape[0], groups, x.elements // max(shape[0] * groups, 1)))
    normal = b.view(_normalised(b, parts, (-1,), node.attr("eps", EPSILON))[0], shape)
    return [_affine(b, normal, [_channels(b, tensor, shape) for tensor in inputs[1:]])]


def _channels(b: Builder, x: Tensor, shape: Sequence[int]) -> Tensor:
    """Look at one value per channel so that it broadcasts over the space."""
    return b.view(x, (x.elements, *(1,) * (len(shape) - 2)))


def _batch_norm(b: Builder, node: Node, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """Given statistics: (x - mean) / root(var + eps), scaled and shifted."""
    x = _wide(b, inputs[0])
    mean, var, *operands = (_wide(b, tensor) for tensor in inputs[1:])
    shape = x.shape
    deviation = b.tensor(var.shape, var.dtype, stem="deviation")
    b.node("sqrt", [b.op("add", var, scalar=node.attr("eps", EPSILON))], [deviation], positive=True)
    scale = b.op("reciprocal", deviation)
    centred = b.op("sub", x, _channels(b, mean, shape))
    normal = b.op("mul", centred, _channels(b, scale, shape))
    return [_affine(b, normal, [_channels(b, tensor, shape) for tensor in operands])]


def _nll_loss(b: Builder, node: Node, inputs: Sequence[Tensor]) -> Sequence[Tensor] | None:
    """Minus the values at the targets, their mean; targets that are ignored count neither here nor there."""
    values, target = inputs
    if len(values.shape) != 2 or b.tensors[node.outputs[0]].shape:  # noqa: PLR2004 - rows of classes, to one mean
        return None
    counted = b.op("ne", target, scalar=node.attr("ignore_index", IGNORED))
    place = b.op("where", counted, target, scalar=0)
    rows = values.shape[0]
    found = b.view(b.gather("gather", values, [b.view(place, (rows, 1))], (rows, 1), dim=1), (rows,))
    loss = b.op("where", counted, b.op("neg", found), scalar=0.0)
    total = b.reduce("sum", loss, (0,), keepdim=False)
    number = b.reduce("sum", counted, (0,), keepdim=False)
    weight = b.cast(number, values.dtype)
    return [b.op("div", total, weight), weight]


def _dropout(b: Builder, node: Node, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """Numbers from 0 to 1 that exceed p keep x, which is scaled up."""
    (x,) = inputs
    p = node.attr("p", 0.5)
    numbers = b.tensor(x.shape, "fp32", stem="rand", strides=b.tensors[node.outputs[0]].strides)
    b.node("rand", [], [numbers])
    mask = b.op("gt", numbers, scalar=p)
    kept = b.op("mul", x, mask)
    return [b.op("mul", kept, scalar=1.0 / (1.0 - p)), mask]


RULES: Final[dict[str, Rule]] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "batch_norm": _batch_norm,
    "nll_loss": _nll_loss,
    "dropout": _dropout,
}
"""What each composite kind is made of; a rule returns None where it does not know the op's form."""
