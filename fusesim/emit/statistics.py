"""Reductions that need another one first, written out: a variance, a norm.

A variance is the mean of squared deviations from the mean, which is what keeps its digits; it takes one more pass
over a row than a running form would.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fusesim.graph import Graph, Node
from fusesim.tensor import Shape, Tensor, row_major

if TYPE_CHECKING:
    from collections.abc import Sequence


def with_statistics(part: Graph) -> Graph:
    """Return the graph with variances as mean, deviation, square and mean, and norms as square, sum and root."""
    if not any(node.kind in {"var", "var_mean", "norm"} for node in part.nodes):
        return part
    writer = _Writer(part)
    for node in part.nodes:
        if node.kind in {"var", "var_mean"}:
            writer.variance(node)
        elif node.kind == "norm":
            writer.norm(node)
        else:
            writer.nodes.append(node)
    return replace(part, tensors=writer.tensors, nodes=tuple(writer.nodes))


class _Writer:
    """Collects ops and tensors of the graph that is written."""

    def __init__(self, part: Graph) -> None:
        self.tensors = dict(part.tensors)
        self.nodes: list[Node] = []

    def add(self, whole: Node, kind: str, inputs: Sequence[str], result: str, **attrs: Any) -> str:
        """Add an op and return what it makes."""
        name = f"{whole.name}.{kind}.{len(self.nodes)}"
        made = tuple(sorted((key, value) for key, value in attrs.items() if value is not None))
        self.nodes.append(Node(name=name, kind=kind, inputs=tuple(inputs), outputs=(result,), attrs=made))
        return result

    def tensor(self, stem: str, shape: Shape, dtype: str) -> str:
        """Add a tensor under a name that nothing has."""
        name = stem
        while name in self.tensors:
            name += "_"
        self.tensors[name] = Tensor(name=name, shape=shape, dtype=dtype, strides=row_major(shape), storage=name)
        return name

    def variance(self, node: Node) -> None:
        """Write out a variance, and the mean where it is wanted too."""
        source = self.tensors[node.inputs[0]]
        dims = node.attr("dims", tuple(range(len(source.shape))))
        kept = tuple(1 if dim in dims else size for dim, size in enumerate(source.shape))
        wide = "fp64" if source.dtype == "fp64" else "fp32"
        result = node.outputs[0]
        keepdim = node.attr("keepdim")
        if len(node.outputs) > 1:
            mean = self.add(node, "mean", node.inputs, node.outputs[1], dims=dims, keepdim=keepdim)
            if self.tensors[mean].shape != kept:
                mean = self.add(node, "view", [mean], self.tensor(f"{mean}_kept", kept, self.tensors[mean].dtype))
        else:
            mean = self.add(
                node, "mean", node.inputs, self.tensor(f"{result}_mean", kept, wide), dims=dims, keepdim=True
            )
        away = self.add(node, "sub", [source.name, mean], self.tensor(f"{result}_deviation", source.shape, wide))
        square = self.add(node, "square", [away], self.tensor(f"{result}_square", source.shape, wide))
        count = math.prod(source.shape[dim] for dim in dims) - node.attr("correction", 0)
        self.add(node, "mean", [square], result, dims=dims, keepdim=keepdim, divisor=count)

    def norm(self, node: Node) -> None:
        """Write out the root of the sum of squares."""
        source, result = self.tensors[node.inputs[0]], self.tensors[node.outputs[0]]
        wide = "fp64" if source.dtype == "fp64" else "fp32"
        square = self.add(node, "square", node.inputs, self.tensor(f"{result.name}_square", source.shape, wide))
        total = self.tensor(f"{result.name}_sum", result.shape, wide)
        self.add(node, "sum", [square], total, dims=node.attr("dims"), keepdim=node.attr("keepdim"))
        self.add(node, "sqrt", [total], result.name)
