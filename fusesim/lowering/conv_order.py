"""Convolutions in a compiled graph: Inductor keeps pictures with channels last, whatever order they came in.

Weights are turned in each call, pictures only where they come from outside; what generates them writes them so. The
rule, its numbers included, is that of PyTorch 2.11; a ResNet in fp32 compiled for an H200 shows it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access, Launch
from fusesim.lowering.access import ceil, channels_last, width
from fusesim.lowering.convolutions import bias_kernels, kernels_in_order

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target
    from fusesim.tensor import Tensor

PICTURE: Final = 4
"""Dimensions of a batch of pictures, which alone are turned."""

GROUPED, OTHERS = 1.358, 0.8
"""What a grouped convolution takes with channels last over what it takes as it is, and what others do on average: by
PyTorch's own benchmarks, weighed by arithmetic."""

MOST_OPS: Final = 300
"""Ops of a graph for each convolution beyond which nothing is turned."""


def turned(graph: Graph, node: Node) -> bool:
    """Return whether a convolution's operands are turned: it is on pictures, they are not, and it pays on the whole."""
    if node.kind != "conv":
        return False
    x, w = (graph.tensors[name] for name in node.inputs[:2])
    if len(x.shape) != PICTURE or channels_last(x) or (channels_last(w) and _window(w) > 1):
        return False
    convs = [each for each in graph.nodes if each.kind == "conv"]
    grouped = sum(graph.flops(each) for each in convs if _grouped(graph, each))
    total = sum(graph.flops(each) for each in convs)
    return len(graph.nodes) < MOST_OPS * len(convs) and GROUPED * grouped + OTHERS * (total - grouped) <= total


def _grouped(graph: Graph, node: Node) -> bool:
    """Return whether a convolution has groups of several channels."""
    return int(node.attr("groups", 1)) > 1 and graph.tensors[node.inputs[1]].shape[1] > 1


def _window(weight: Tensor) -> int:
    """Return how many places a window has."""
    return math.prod(weight.shape[2:])


def turned_conv(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of such a convolution: what turns its operands, then cuDNN's on channels last."""
    x, w = (graph.tensors[name] for name in node.inputs[:2])
    before = [_turning(node, x)] if graph.base(x.name) not in graph.producers and _window(x) > 1 else []
    if _window(w) > 1 and w.shape[1] > 1:
        before.append(_turning(node, w))
    return [*before, *kernels_in_order(graph, node, target), *bias_kernels(graph, node)]


def _turning(node: Node, tensor: Tensor) -> Launch:
    """Return the generated kernel that puts a tensor's channels last."""
    return Launch(
        name="conv operand turned",
        row=f"gen_turned{width(tensor)}",
        nodes=(node.name,),
        reads=(Access(tensor.storage, float(tensor.bytes)),),
        writes=(Access(f"{node.name}.{tensor.name}", float(tensor.bytes)),),
        elements=float(tensor.elements),
        blocks=max(ceil(tensor.elements, 1024.0), 1.0),
        resident=16,
        slots=2,
    )
