"""From Inductor's loops to a plan: an op that several kernels compute is copied for each but the first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fusesim.fusion import FusionPlan, Group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.graph import Graph, Node
    from fusesim.strategies.inductor_loops import Loop
    from fusesim.tensor import Tensor


Change = tuple["Node", "Node"]
"""An op of the graph, and what stands behind it or, under the same name, in its place."""


def as_plan(source: Graph, form: Graph, loops: Sequence[Loop]) -> FusionPlan:
    """Return the plan in which each loop is a kernel.

    Parameters
    ----------
    source : Graph
        What was to be planned.
    form : Graph
        What the loops speak of.
    loops : sequence of Loop
        The kernels; an op may be in several.

    Returns
    -------
    FusionPlan
        A partition of `form` with copies of ops that several kernels compute.
    """
    first = _first_kernels(form, loops)
    tensors = dict(form.tensors)
    changes: list[Change] = []
    named: list[list[str]] = []
    for place, loop in enumerate(loops):
        names, made = _kernel(form, loop, place, first, tensors)
        named.append(names)
        changes.extend(made)
    graph = _spliced(form, changes, tensors)
    groups = [Group(nodes=tuple(sorted(names, key=lambda name: graph.index[name]))) for names in named if names]
    return FusionPlan(graph=graph, groups=tuple(_ordered(graph, groups)), strategy="inductor", source=source)


def _first_kernels(form: Graph, loops: Sequence[Loop]) -> dict[str, int]:
    """Return the kernel that computes each op without a copy: the one that stores it, else the first that needs it."""
    owner = {root: place for place, loop in enumerate(loops) for root in loop.roots}
    first: dict[str, int] = {}
    for node in form.paid_nodes:
        places = [place for place, loop in enumerate(loops) if node.name in loop.cone]
        if places:
            first[node.name] = owner.get(node.name, places[0])
    return first


def _kernel(
    form: Graph, loop: Loop, place: int, first: dict[str, int], tensors: dict[str, Tensor]
) -> tuple[list[str], list[Change]]:
    """Return the names of a kernel's ops and what has to change in the graph for it; tensors of copies are added."""
    renamed: dict[str, str] = {}
    names: list[str] = []
    changes: list[Change] = []
    for node in form.nodes:
        if node.family == "view":
            if node.inputs[0] in renamed:
                changes.append((node, _copied(node, renamed, tensors, place)))
            continue
        if node.name not in loop.cone:
            continue
        if first[node.name] != place:
            changes.append((node, _copied(node, renamed, tensors, place)))
        elif any(name in renamed for name in node.inputs):
            changes.append((node, replace(node, inputs=tuple(renamed.get(name, name) for name in node.inputs))))
        names.append(node.name if first[node.name] == place else changes[-1][1].name)
    return names, changes


def _copied(node: Node, renamed: dict[str, str], tensors: dict[str, Tensor], place: int) -> Node:
    """Add a copy of an op for another kernel."""
    for name in node.outputs:
        wanted = f"{name}@{place}"
        renamed[name] = wanted
        tensor = tensors[name]
        storage = renamed.get(tensor.storage, tensor.storage)
        tensors[wanted] = replace(tensor, name=wanted, storage=storage)
    return replace(
        node,
        name=f"{node.name}@{place}",
        inputs=tuple(renamed.get(name, name) for name in node.inputs),
        outputs=tuple(renamed[name] for name in node.outputs),
    )


def _spliced(form: Graph, changes: Sequence[Change], tensors: dict[str, Tensor]) -> Graph:
    """Return the graph with copies behind their originals and readers rewired."""
    after: dict[str, list[Node]] = {}
    instead: dict[str, Node] = {}
    for original, changed in changes:
        if changed.name == original.name:
            instead[original.name] = changed
        else:
            after.setdefault(original.name, []).append(changed)
    nodes: list[Node] = []
    for node in form.nodes:
        nodes.append(instead.get(node.name, node))
        nodes.extend(after.get(node.name, ()))
    return replace(form, tensors=tensors, nodes=tuple(nodes))


def _ordered(graph: Graph, groups: list[Group]) -> list[Group]:
    """Return the groups in an order in which they can run."""
    owner = {name: place for place, group in enumerate(groups) for name in group.nodes}
    waits: list[set[int]] = [
        {owner[b] for n in group.nodes for b in graph.predecessors[n] if b in owner and owner[b] != place}
        for place, group in enumerate(groups)
    ]
    done: set[int] = set()
    order: list[Group] = []
    while len(order) < len(groups):
        left = [k for k in range(len(groups)) if k not in done]
        ready = [k for k in left if waits[k] <= done] or left
        best = min(ready, key=lambda k: graph.index[groups[k].nodes[0]])
        done.add(best)
        order.append(groups[best])
    return order
