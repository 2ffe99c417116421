"""A trace of several equal steps as one of them: what is repeated need not be planned again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fusesim.errors import InputError
from fusesim.frontends.trace_timeline import timeline_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.frontends.trace import Trace
    from fusesim.graph import Graph


def equal_parts(graph: Graph) -> int:
    """Return into how many equal parts a program falls, one behind the other; 1 where it does not repeat itself.

    Notes
    -----
    Ops are equal by kind, shapes and types. Equal layers are equal parts too: only who recorded it knows which are
    steps.
    """
    keys = _keys(graph)
    known: dict[Any, int] = {}
    numbers = [known.setdefault(key, len(known)) for key in keys]
    period = len(numbers) - _border(numbers)
    return len(numbers) // period if period and len(numbers) % period == 0 else 1


def one_step(trace: Trace, steps: int) -> Trace:
    """Return the last of several equal steps of a trace, as a trace.

    Parameters
    ----------
    trace : Trace
        A trace with a graph.
    steps : int
        How many it holds.

    Raises
    ------
    InputError
        If it does not fall into so many equal parts.
    """
    graph = trace.graph
    if graph is None or steps == 1:
        return trace
    count = equal_parts(graph)
    if steps < 1 or count % steps:
        hint = f"it holds {count} equal parts" if count > 1 else "it does not repeat itself"
        raise InputError(f"{trace.name}: does not hold {steps} equal steps; {hint}")
    part = _last(graph, len(graph.nodes) // steps)
    kernels = {name: found for name, found in trace.kernels_of.items() if name in part.by_name}
    mine = {launch.correlation for found in kernels.values() for launch in found}
    launches = tuple(launch for launch in trace.launches if launch.correlation in mine)
    return replace(trace, graph=part, kernels_of=kernels, launches=launches, timeline=timeline_of(launches))


def _keys(graph: Graph) -> list[Any]:
    """Return what makes ops equal."""
    tensors = graph.tensors
    return [
        (node.kind, *((tensors[name].shape, tensors[name].dtype) for name in (*node.inputs, *node.outputs)))
        for node in graph.nodes
    ]


def _border(numbers: Sequence[int]) -> int:
    """Return the length of the longest part that a sequence both begins and ends with, shorter than itself.

    Examples
    --------
    >>> _border([1, 2, 1, 2, 1, 2]), _border([1, 2, 3])
    (4, 0)
    """
    borders = [0] * len(numbers)
    for place in range(1, len(numbers)):
        length = borders[place - 1]
        while length and numbers[place] != numbers[length]:
            length = borders[length - 1]
        borders[place] = length + (numbers[place] == numbers[length])
    return borders[-1] if borders else 0


def _last(graph: Graph, count: int) -> Graph:
    """Return the last ops of a graph as one; what they read and did not make is its input."""
    nodes = graph.nodes[-count:]
    made = {name for node in nodes for name in node.outputs}
    read = dict.fromkeys(name for node in nodes for name in node.inputs)
    outside = [name for name in read if name not in made]
    tensors, renamed = dict(graph.tensors), {}
    for name in outside:
        tensor = tensors[name]
        if tensor.is_view and tensor.storage not in read:  # a view from an earlier step: memory of its own here
            tensors[name] = replace(tensor, storage=name, offset=0)
            renamed[tensor.storage] = name
    used = {*read, *made}
    kept = {
        name: replace(tensors[name], storage=renamed.get(tensors[name].storage, tensors[name].storage)) for name in used
    }
    unread = [name for node in nodes if node.family != "view" for name in node.outputs if name not in read]
    outputs = [name for name in graph.outputs if name in made]
    return replace(
        graph,
        tensors=kept,
        nodes=nodes,
        inputs=tuple(outside),
        outputs=tuple(outputs or unread[-1:]),
        parameters=frozenset(name for name in outside if name in graph.parameters),
        held={},
    )
