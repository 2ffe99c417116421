"""From Inductor's loops to a plan: an op that several kernels compute is copied for each but the first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fusesim.fusion import FusionPlan, Group
from fusesim.legality import ordered
from fusesim.topology import topology

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
    first = _first_kernels(loops)
    looks = _views_of(form)
    tensors = dict(form.tensors)
    changes: list[Change] = []
    named: list[list[str]] = []
    for place, loop in enumerate(loops):
        names, made = _kernel(form, loop, place, (first, looks), tensors)
        named.append(names)
        changes.extend(made)
    graph = _spliced(form, changes, tensors)
    groups = [Group(nodes=tuple(sorted(names, key=lambda name: graph.index[name]))) for names in named if names]
    return FusionPlan(graph=graph, groups=tuple(_ordered(graph, groups)), strategy="inductor", source=source)


def _first_kernels(loops: Sequence[Loop]) -> dict[str, int]:
    """Return the kernel that computes each op without a copy: the one that stores it, else the first that needs it."""
    first: dict[str, int] = {}
    for place, loop in enumerate(loops):
        for name in loop.cone:
            first.setdefault(name, place)
    first.update((root, place) for place, loop in enumerate(loops) for root in loop.roots)
    return first


def _views_of(form: Graph) -> dict[str, list[Node]]:
    """Return the views of each tensor, views of views among them."""
    found: dict[str, list[Node]] = {}
    for node in form.nodes:
        if node.family == "view":
            found.setdefault(form.base(node.inputs[0]), []).append(node)
    return found


def _kernel(
    form: Graph,
    loop: Loop,
    place: int,
    known: tuple[dict[str, int], dict[str, list[Node]]],
    tensors: dict[str, Tensor],
) -> tuple[list[str], list[Change]]:
    """Return the names of a kernel's ops and what has to change in the graph for it; tensors of copies are added.

    `known` are the kernels that compute without a copy, and the views of each tensor.
    """
    first, looks = known
    renamed: dict[str, str] = {}
    names: list[str] = []
    changes: list[Change] = []
    for node in sorted((form.by_name[name] for name in loop.cone), key=lambda node: form.index[node.name]):
        if first[node.name] != place:
            copy = _copied(node, renamed, tensors, place)
            views = [view for name in node.outputs for view in looks.get(name, ())]
            changes += [(node, copy), *((view, _copied(view, renamed, tensors, place)) for view in views)]
            names.append(copy.name)
            continue
        names.append(node.name)
        if any(name in renamed for name in node.inputs):
            changes.append((node, replace(node, inputs=tuple(renamed.get(name, name) for name in node.inputs))))
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
    topo = topology(graph)
    by_mask = {topo.mask(group.nodes): group for group in groups}
    sets, stuck = ordered(topo, list(by_mask))
    return [by_mask[mask] for mask in (*sets, *stuck)]
