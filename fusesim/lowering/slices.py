"""Concatenations of more tensors than one generated kernel takes: a slice of the result for each.

What makes a tensor writes it straight into its slice, if the compiler makes it; what a library made or the caller gave
is copied there by a kernel of its own (PyTorch 2.11, torch/_inductor/ir.py, ConcatKernel; an H200 runs 9 and 20 kernels
for 9 and 20 tensors with a relu each).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fusesim.launches import Access, Launch
from fusesim.lowering.access import accesses, ceil, width
from fusesim.lowering.counting import library_ops
from fusesim.strategies.inductor_loops import MOST_CONCATENATED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.fusion import FusionPlan
    from fusesim.graph import Node
    from fusesim.lowering.counting import Part


def in_slices(plan: FusionPlan, node: Node) -> bool:
    """Return whether an op is a concatenation of so many tensors, in a group of its own."""
    if node.kind != "concat" or len(node.inputs) <= MOST_CONCATENATED:
        return False
    place = plan.group_of.get(node.name)
    return place is None or len(plan.groups[place].nodes) == 1


def pieces(plan: FusionPlan, node: Node) -> list[Launch]:
    """Return the kernels that copy tensors next to each other: one for each that is not written there already."""
    graph = plan.graph
    output = graph.tensors[node.outputs[0]]
    done: set[str] = set()
    launches = []
    for name in node.inputs:
        base = graph.base(name)
        if base not in done and _written_into(plan, base) is node:
            done.add(base)  # a tensor lies in one place: where it is named again it is copied
            continue
        tensor = graph.tensors[name]
        launch = Launch(
            name="concat part",
            row=f"gen_loop{width(tensor)}",
            nodes=(node.name,),
            reads=accesses(graph, [name]),
            writes=(Access(output.storage, float(tensor.bytes)),),
            elements=float(tensor.elements),
            blocks=max(ceil(tensor.elements, 512.0), 1.0),
        )
        launches.append(launch)
    return launches


def _written_into(plan: FusionPlan, base: str) -> Node | None:
    """Return the concatenation into whose slice a generated kernel of the plan writes a tensor: the first to read it.

    A group that is priced alone, in a plan of none, knows of no kernel before it.
    """
    maker = plan.graph.producers.get(base)
    if maker is None or maker.name not in plan.group_of:
        return None
    nodes = plan.nodes(plan.groups[plan.group_of[maker.name]])
    if library_ops(plan.graph, nodes) or any(in_slices(plan, node) for node in nodes):
        return None
    readers = (plan.graph.by_name[name] for name in plan.readers.get(base, ()))
    return next((reader for reader in readers if in_slices(plan, reader)), None)


def placed(part: Part, launches: Sequence[Launch]) -> list[Launch]:
    """Return a group's kernels with what they write into slices: instead of the tensor, or beside it for others.

    Notes
    -----
    Limits: where others read the tensor as well the compiler may have them read the slice; it is counted as written
    twice.
    """
    slices = _slices(part) if part.plan.groups else {}
    if not slices:
        return list(launches)
    return [
        replace(launch, writes=tuple(made for access in launch.writes for made in slices.get(access.storage, [access])))
        for launch in launches
    ]


def _slices(part: Part) -> dict[str, list[Access]]:
    """Return for each tensor of a group that is put into a slice, by its memory, what is written for it. [B]."""
    graph, plan = part.graph, part.plan
    found: dict[str, list[Access]] = {}
    for name in part.outputs:
        join = _written_into(plan, name)
        if join is None:
            continue
        tensor = graph.tensors[name]
        shared = len(set(plan.readers[name])) > 1 or name in graph.kept
        own = [Access(tensor.storage, float(tensor.bytes))] if shared else []
        found[tensor.storage] = [*own, Access(graph.tensors[join.outputs[0]].storage, float(tensor.bytes))]
    return found
