"""A product's bias as an op of its own, as Inductor takes it out of a library call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.graph import Node

if TYPE_CHECKING:
    from fusesim.graph import Graph
    from fusesim.tensor import Tensor

WIDE: Final = 4
"""Bytes of a value from which on arithmetic needs no cast."""

BIASED: Final = 3
"""Operands of a product with a bias."""

WIDENED: Final = frozenset({"elu", "gelu", "gelu_tanh", "hardswish", "leaky_relu", "silu", "softplus"})
"""Ops that PyTorch writes as several in fp32, of which the first, for 16 bits, is a cast."""


def unfused_bias(graph: Graph) -> Graph:
    """Return the graph with a product's bias as an op of its own where a pointwise op reads it directly.

    Notes
    -----
    Inductor takes the bias of a linear layer out of the library call when only pointwise ops read the result, and out
    of every convolution, so that one loop adds it. A cast does not count as one, so that a layer in 16 bits keeps its
    bias before a GELU or a softmax (compiled for an H200, products of 256 to 32001 columns do).
    """
    nodes: list[Node] = []
    tensors = dict(graph.tensors)
    for node in graph.nodes:
        nodes.extend(_apart(node, tensors) if _taken_out(graph, node) else (node,))
    if len(nodes) == len(graph.nodes):
        return graph
    return replace(graph, nodes=tuple(nodes), tensors=tensors)


def _taken_out(graph: Graph, node: Node) -> bool:
    """Return whether an op has a bias that is added by a loop."""
    if len(node.inputs) < BIASED or node.kind not in {"conv", "matmul"}:
        return False
    readers = [reader for name in node.outputs for reader in graph.consumers[name]]
    returned = set(graph.outputs) & set(node.outputs)
    direct = bool(readers) and all(_is_loop(graph, reader) for reader in readers) and not returned
    return node.kind == "conv" or direct


def _is_loop(graph: Graph, node: Node) -> bool:
    """Return whether an op counts as pointwise where Inductor decides on a bias."""
    wide = all(graph.tensors[name].itemsize >= WIDE for name in node.inputs)
    return node.family == "pointwise" and node.kind != "cast" and (wide or node.kind not in WIDENED)


def _apart(node: Node, tensors: dict[str, Tensor]) -> list[Node]:
    """Return a product without its bias and the addition; their tensors are added."""
    (name,) = node.outputs
    bare, bias = f"{name}.bare", node.inputs[2]
    tensors[bare] = replace(tensors[name], name=bare, storage=bare)
    made = [replace(node, inputs=node.inputs[:2], outputs=(bare,))]
    if node.kind == "conv":
        vector, wide = tensors[bias], f"{bias}.{node.name}"
        ones = (1,) * (len(tensors[name].shape) - 2)
        tensors[wide] = replace(vector, name=wide, shape=(*vector.shape, *ones), strides=(*vector.strides, *ones))
        made.append(Node(name=f"{node.name}.view", kind="view", inputs=(bias,), outputs=(wide,)))
        bias = wide
    return [*made, Node(name=f"{node.name}.bias", kind="add", inputs=(bare, bias), outputs=(name,), scope=node.scope)]
