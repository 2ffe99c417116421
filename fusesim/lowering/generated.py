"""Kernels that a compiler generates for a group of ops, as Inductor's Triton code does it.

A pointwise group is one loop (`fusesim.lowering.loops`), and so is one whose rows have fewer than eight values
(`fusesim.lowering.unrolled`). A group with other reductions goes over rows (`fusesim.lowering.row_loops`): up to 1024
values on chip, longer ones once for each reduction that needs the one before and once more for what needs the last,
reading its operands anew; few long rows in two stages. Library ops are library calls. All of it is decided from shapes
alone (PyTorch 2.11, Triton 3.6, as launches on an H200 show it).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fusesim.launches import Access, Launch
from fusesim.lowering.access import accesses
from fusesim.lowering.conv_order import turned, turned_conv
from fusesim.lowering.convolutions import INPUT_LAYOUT
from fusesim.lowering.counting import Part, library_ops
from fusesim.lowering.eager import eager_launches
from fusesim.lowering.loops import pointwise_loop
from fusesim.lowering.padded import padded_bias
from fusesim.lowering.pressure import displaced, pressed
from fusesim.lowering.row_loops import row_kernels
from fusesim.lowering.slices import in_slices, pieces, placed
from fusesim.lowering.unrolled import unrolled_loops, written_out
from fusesim.strategies.inductor_loops import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.fusion import FusionPlan, Group
    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target


def group_launches(plan: FusionPlan, group: Group, path: str, target: Target) -> list[Launch]:
    """Return the kernels of one group.

    Parameters
    ----------
    plan : FusionPlan
        What is to be run.
    group : Group
        One of its groups.
    path : str
        Whose kernels: ``"inductor"``, ``"cuda"``, ...
    target : Target
        Where.

    Returns
    -------
    list of Launch
        None for a group that computes no values.
    """
    nodes = tuple(node for node in plan.nodes(group) if any(plan.graph.tensors[n].elements for n in node.outputs))
    if not nodes:
        return []
    if len(nodes) == 1 and in_slices(plan, nodes[0]):
        return pieces(plan, nodes[0])
    part = Part(plan, group, nodes)
    if anchors := library_ops(plan.graph, nodes):
        return _with_epilogue(part, anchors, target)
    made = pressed(plan.graph, nodes, _computing(part, path, target), target)
    return [*_seed(plan, nodes), *placed(part, made)]


def _computing(part: Part, path: str, target: Target) -> list[Launch]:
    """Return the kernels of a group that is computed value by value and row by row."""
    if not part.reductions:
        return pointwise_loop(part, path)
    return unrolled_loops(part) if written_out(part) else row_kernels(part, int(target.machine.sms))


def _seed(plan: FusionPlan, nodes: Sequence[Node]) -> list[Launch]:
    """Return the kernel that draws seeds for all random numbers of a graph, before the first of them."""
    drawn = [node.name for node in nodes if node.kind == "rand"]
    if not drawn or next(node.name for node in plan.graph.nodes if node.kind == "rand") not in drawn:
        return []
    return [Launch(name="seeds", row="vectorised32", writes=(Access("seeds", 8.0),), elements=1.0)]


def _with_epilogue(part: Part, anchors: Sequence[Node], target: Target) -> list[Launch]:
    """Return library calls; ops beside the first are its epilogue and read and write in its kernel."""
    graph = part.graph
    launches = [launch for node in anchors for launch in _library(graph, node, target)]
    launches = [launch for launch in launches if not _made_in_order(graph, launch)]
    if not launches or len(anchors) == len(part.nodes):
        return launches
    own = {graph.tensors[name].storage for node in part.nodes for name in node.outputs}
    reads = tuple(access for access in accesses(graph, part.inputs) if access.storage not in own)
    merged = displaced(graph, part.nodes, replace(launches[-1], reads=reads, writes=part.writes))
    return [*launches[:-1], replace(merged, nodes=part.names)]


def _library(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return a library's kernels as a compiled graph calls them."""
    if turned(graph, node):
        return turned_conv(graph, node, target)
    return [*padded_bias(graph, node), *eager_launches(graph, node, target)]


def _made_in_order(graph: Graph, launch: Launch) -> bool:
    """Return whether a copy is not needed: what generates a convolution's input writes it with channels last."""
    if launch.name != INPUT_LAYOUT:
        return False
    made = [node for name in launch.nodes for node in (graph.producers.get(graph.base(graph.by_name[name].inputs[0])),)]
    return all(node is not None and node.family not in LIBRARY for node in made)
