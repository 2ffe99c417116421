"""What makes a graph valid: plain records of the right form, names made once and before they are read, shapes that fit.

Each check refuses the first thing that is wrong, in one sentence with the op, the tensor and the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fusesim.errors import GraphError, excerpt
from fusesim.node import Node, are_names
from fusesim.tensor import Tensor, broadcast_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.graph import Graph


def check_form(graph: Graph) -> None:
    """Check that a graph is made of tensors by name, ops, and names.

    Raises
    ------
    GraphError
        If it is not.
    """
    where = f"graph {excerpt(graph.name)}"
    if not isinstance(graph.name, str):
        raise GraphError(f"a graph's name is {excerpt(graph.name)}, and not a text")
    if not isinstance(graph.tensors, Mapping) or not all(isinstance(one, Tensor) for one in graph.tensors.values()):
        raise GraphError(f"{where}: tensors are {excerpt(graph.tensors)}, and not tensors by their names")
    if not isinstance(graph.nodes, tuple) or not all(isinstance(node, Node) for node in graph.nodes):
        raise GraphError(f"{where}: nodes are {excerpt(graph.nodes)}, and not ops in a tuple")
    for what in ("inputs", "outputs", "gaps"):
        if not are_names(getattr(graph, what)):
            raise GraphError(f"{where}: {what} are {excerpt(getattr(graph, what))}, and not names in a tuple")
    if not isinstance(graph.parameters, frozenset | set) or not are_names(tuple(graph.parameters)):
        raise GraphError(f"{where}: parameters are {excerpt(graph.parameters)}, and not names in a set")
    if not isinstance(graph.held, Mapping) or not are_names((*graph.held, *graph.held.values())):
        raise GraphError(f"{where}: held is {excerpt(graph.held)}, and not tensors with the ops that end them")
    wrong = next((name for name, tensor in graph.tensors.items() if tensor.name != name), None)
    if wrong is not None:
        raise GraphError(f"{where}: tensor {excerpt(graph.tensors[wrong].name)} stands under the name {excerpt(wrong)}")


def check_order(graph: Graph) -> None:
    """Check that names are known and made once, and that each op comes after what it reads."""
    for name in graph.inputs:
        _known(graph, name, "an input")
    made = dict.fromkeys(graph.inputs, "the inputs")
    overwritten: dict[str, str] = {}
    names: set[str] = set()
    later = {name for node in graph.nodes for name in node.outputs}
    for node in graph.nodes:
        if node.name in names:
            raise GraphError(f"two ops are called {excerpt(node.name)}; give each a name of its own")
        names.add(node.name)
        _check_reads(graph, node, made, overwritten, later)
        _check_results(graph, node, made)
        made.update(dict.fromkeys(node.outputs, node.name))
        overwritten.update(_overwrites(graph, node))
    _check_ends(graph, made, names)


def _check_reads(
    graph: Graph, node: Node, made: Mapping[str, str], overwritten: Mapping[str, str], later: set[str]
) -> None:
    """Refuse an op that reads what is not there yet, or is there no more."""
    for name in node.inputs:
        _known(graph, name, f"op {node.name}")
        if name not in made:
            why = "is made later: ops stand in a cycle or out of order" if name in later else "has no producer"
            raise GraphError(f"op {node.name} reads {excerpt(name)}, which {why}")
        if name in overwritten:
            raise GraphError(f"op {node.name} reads {excerpt(name)} after op {overwritten[name]} wrote over it")


def _check_results(graph: Graph, node: Node, made: Mapping[str, str]) -> None:
    """Refuse an op that makes a tensor again."""
    for place, name in enumerate(node.outputs):
        _known(graph, name, f"op {node.name}")
        if name in made or name in node.outputs[:place]:
            maker = made.get(name, node.name)
            raise GraphError(f"tensor {excerpt(name)} is made twice, by {maker} and by op {node.name}")


def _overwrites(graph: Graph, node: Node) -> dict[str, str]:
    """Return the tensors that an op writes over, and its name."""
    over = node.attr("over")
    if over is None or node.family == "view" or not any(graph.tensors[name].is_view for name in node.outputs):
        return {}
    return {over: node.name}


def _check_ends(graph: Graph, made: Mapping[str, str], names: set[str]) -> None:
    """Refuse outputs that nothing makes, parameters that are no inputs, and lives that no op ends."""
    for name in graph.outputs:
        _known(graph, name, "an output")
        if name not in made:
            raise GraphError(f"output {excerpt(name)} is made by no op")
    inputs = frozenset(graph.inputs)
    for name in graph.parameters:
        if name not in inputs:
            raise GraphError(f"parameter {excerpt(name)} is not an input")
    for name, until in graph.held.items():
        _known(graph, name, "a held variable")
        if until and until not in names:
            raise GraphError(f"tensor {excerpt(name)} is held until op {excerpt(until)}, which the graph does not have")


def _known(graph: Graph, name: str, where: str) -> None:
    """Refuse a tensor that the graph does not have."""
    if name not in graph.tensors:
        raise GraphError(f"{where} names tensor {excerpt(name)}, which the graph does not have")


def check_shapes(node: Node, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    """Check how many tensors go in and out of an op, and that their shapes fit.

    Raises
    ------
    GraphError
        If they do not.
    """
    row = node.row
    if not row.least <= len(inputs) <= row.most:
        span = str(row.least) if row.least == row.most else f"{row.least} to {row.most}"
        raise GraphError(f"op {node.name} ({node.kind}) has {len(inputs)} inputs; it takes {span}")
    if not outputs:
        raise GraphError(f"op {node.name} ({node.kind}) makes nothing")
    if node.family == "pointwise" and inputs:
        try:
            shape = broadcast_shape([tensor.shape for tensor in inputs])
        except GraphError as error:
            raise GraphError(f"op {node.name} ({node.kind}): {error}") from error
        for tensor in outputs:
            if tensor.shape != shape:
                raise GraphError(f"op {node.name} ({node.kind}) makes {shape}, but {tensor.name} is {tensor.shape}")
    elif node.family == "matmul":
        _check_matmul(node, inputs, outputs[0])


def _check_matmul(node: Node, inputs: Sequence[Tensor], output: Tensor) -> None:
    """Check that a [.., m, k] x [.., k, n] fits."""
    left, right = inputs[0].shape, inputs[1].shape
    if len(left) < 2 or len(right) < 2:  # noqa: PLR2004 - a matrix has two dimensions
        raise GraphError(f"op {node.name}: matmul takes matrices, not {left} and {right}")
    if left[-1] != right[-2]:
        raise GraphError(f"op {node.name}: {left} x {right}: the inner sizes {left[-1]} and {right[-2]} differ")
    expected = (*broadcast_shape([left[:-2], right[:-2]]), left[-2], right[-1])
    if output.shape != expected:
        raise GraphError(f"op {node.name}: {left} x {right} makes {expected}, but {output.name} is {output.shape}")
