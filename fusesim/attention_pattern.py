"""Finding attention that a program writes out (matmul, scale, softmax, matmul), for which compilers have one kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node


def with_attention(graph: Graph) -> Graph:
    """Return the graph with written-out attention as one op; the very same graph where there is none.

    Notes
    -----
    Scores that nobody else reads, scaled by one number or not, a softmax over keys, and a product with the values. A
    mask between them keeps it from being recognised here.
    """
    found = [match for node in graph.nodes if (match := _match(graph, node))]
    if not found:
        return graph
    gone = {node.name for match in found for node in match[0]}
    made = {match[1].name: match[1] for match in found}
    nodes = tuple(made.get(node.name, node) for node in graph.nodes if node.name not in gone or node.name in made)
    return replace(graph, nodes=nodes)


def _only(graph: Graph, name: str) -> Node | None:
    """Return the op that made a tensor if nobody else reads it, views seen through."""
    base = graph.base(name)
    node = graph.producers.get(base)
    names = {base, *(n for n in graph.tensors if graph.base(n) == base)}
    readers = {r.name for n in names for r in graph.consumers[n] if r.family != "view"}
    return node if len(readers) == 1 and not names & set(graph.outputs) else None


def _match(graph: Graph, last: Node) -> tuple[list[Node], Node] | None:
    """Return the ops of attention that ends in a product, and the one op that stands for them."""
    if last.kind != "matmul" or len(last.inputs) != 2 or len(graph.tensors[last.inputs[1]].shape) < 3:  # noqa: PLR2004
        return None
    softmax = _only(graph, last.inputs[0])
    if softmax is None or softmax.kind != "softmax":
        return None
    scores = _only(graph, softmax.inputs[0])
    ops = [softmax, last]
    if scores is not None and scores.kind in {"mul", "div"} and scores.attr("scalar") is not None:
        ops.insert(0, scores)
        scores = _only(graph, scores.inputs[0])
    if scores is None or scores.kind != "matmul":
        return None
    ops.insert(0, scores)
    q, turned = scores.inputs[:2]
    view = graph.producers.get(turned)
    if view is None or view.kind != "permute":
        return None
    return ops, replace(last, kind="attention", inputs=(q, view.inputs[0], last.inputs[1]), attrs=())
