"""The ops of one kernel as a graph of their own: what comes in, what must go out, composites written out.

A tensor that comes in is a pointer to its first value, whatever view of whatever it was; its strides stay.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.decompose import RULES, decompose
from fusesim.emit.formulas import supported
from fusesim.errors import InputError, PlanError, excerpt
from fusesim.fusion import FusionPlan, Group
from fusesim.graph import Graph
from fusesim.inputs import instance

if TYPE_CHECKING:
    from fusesim.graph import Node

REDUCTIONS: Final = frozenset(
    {"sum", "mean", "amax", "amin", "prod", "any", "all", "argmax", "argmin", "max", "min", "var", "var_mean", "norm"}
)
"""Reductions that are emitted."""

_INSTEAD: Final = {
    "matmul": "call cuBLAS, or start from a matmul template",
    "conv": "call cuDNN, or start from a convolution template",
    "attention": "call the flash-attention library, or plan its composite=False form and emit the softmax",
    "random": "add a generator such as Philox yourself",
    "dropout": "plan without it (p=0), or add a generator such as Philox yourself",
    "nll_loss": "it picks values by an index; emit the log-softmax before it from a group of its own",
    "gather": "emit the ops around it, each from a group of its own",
    "concat": "emit the ops around it, each from a group of its own",
}
_OTHERWISE: Final = "a library has it as a kernel of its own; emit the groups around it"


def part_of(plan: FusionPlan, group: int = 0) -> Graph:
    """Return the ops of a group as a graph: its inputs, its outputs, composite ops written out.

    Parameters
    ----------
    plan : FusionPlan
        The plan.
    group : int
        The place of the group in the plan.

    Returns
    -------
    Graph
        Inputs are the tensors that the kernel reads, outputs those that it must write.

    Raises
    ------
    InputError
        If the plan has no such group.
    PlanError
        If an op of it cannot be emitted.
    """
    instance("a plan", plan, FusionPlan, "such as fusesim.plan(graph) returns")
    if isinstance(group, bool) or not isinstance(group, int) or not 0 <= group < len(plan.groups):
        last = len(plan.groups) - 1
        raise InputError(
            f"group {excerpt(group)} is not in the {plan.strategy} plan of {plan.graph.name}; it has 0 to {last}"
        )
    return _emittable(_cut(plan, plan.groups[group].nodes))


def separate_parts(plan: FusionPlan, group: int = 0) -> list[Graph]:
    """Return the ops of a group each as a graph of its own, in the order in which they can run.

    Raises
    ------
    InputError
        If the plan has no such group.
    PlanError
        If an op of it cannot be emitted.
    """
    part_of(plan, group)
    members = set(plan.groups[group].nodes)
    ordered = [node.name for node in plan.graph.nodes if node.name in members]
    return [_emittable(_cut(plan, (name,))) for name in ordered]


def plans_of(plan: FusionPlan, group: int = 0) -> dict[str, FusionPlan]:
    """Return a group alone as two plans of its own graph: `fused`, one kernel, and `separate`, one per op.

    Raises
    ------
    InputError
        If the plan has no such group.
    PlanError
        If an op of it cannot be emitted.
    """
    fused = part_of(plan, group)
    apart = _cut(plan, plan.groups[group].nodes)
    one = (Group(nodes=tuple(node.name for node in fused.paid_nodes)),)
    each = tuple(Group(nodes=(node.name,)) for node in apart.paid_nodes)
    return {
        "fused": FusionPlan(graph=fused, groups=one, strategy=plan.strategy),
        "separate": FusionPlan(graph=apart, groups=each, strategy="eager"),
    }


def _emittable(part: Graph) -> Graph:
    """Return a part with its composites written out, and refuse what has no source here."""
    form = decompose(part, [kind for kind in RULES if kind not in _INSTEAD])
    for node in form.paid_nodes:
        if node.attr("like") is not None:
            raise PlanError(
                f"op {node.name} stands for {node.attr('like')}, which costs like {node.kind}: its source is not known"
            )
        if not (supported(node) or node.kind in REDUCTIONS):
            reason = _INSTEAD.get(node.kind) or _INSTEAD.get(node.family, _OTHERWISE)
            raise PlanError(f"op {node.name} ({node.kind}) is no pointwise op or row reduction: {reason}")
    return form


def _cut(plan: FusionPlan, names: tuple[str, ...]) -> Graph:
    """Return some ops of a plan as a graph, with the views between them."""
    whole = plan.graph
    own = set(names)
    nodes: list[Node] = []
    made: set[str] = set()
    for node in whole.nodes:
        inside = node.family == "view" and node.inputs[0] in made
        if node.name in own or inside:
            nodes.append(node)
            made.update(node.outputs)
    inputs = [name for name in dict.fromkeys(n for node in nodes for n in node.inputs) if name not in made]
    alone = FusionPlan(graph=whole, groups=(Group(nodes=names),), strategy=plan.strategy)
    outputs = alone.external_outputs(alone.groups[0]) or nodes[-1].outputs
    used = _used(nodes, set(outputs))
    tensors = {name: whole.tensors[name] for node in used for name in (*node.inputs, *node.outputs)}
    for name in inputs:
        tensors[name] = replace(tensors[name], storage=name, offset=offset_of(whole, name))
    return Graph(
        tensors=tensors,
        nodes=used,
        inputs=tuple(name for name in inputs if name in tensors),
        outputs=outputs,
        parameters=frozenset(name for name in inputs if name in whole.parameters),
        name=whole.name if len(names) > 1 else names[0],
    )


def _used(nodes: list[Node], outputs: set[str]) -> tuple[Node, ...]:
    """Return the ops without views that nobody inside looks through."""
    wanted = set(outputs)
    found: list[Node] = []
    for node in reversed(nodes):
        if node.family != "view" or wanted & set(node.outputs):
            found.append(node)
            wanted.update(node.inputs)
    return tuple(reversed(found))


def offset_of(graph: Graph, name: str) -> int:
    """Return how many elements behind its memory's start a tensor begins, as far as its views say."""
    tensor = graph.tensors[name]
    node = graph.producers.get(name)
    if tensor.offset or node is None or node.family != "view":
        return tensor.offset
    source = graph.tensors[node.inputs[0]]
    before = offset_of(graph, source.name)
    dim: int | None = node.attr("dim")
    place: int = node.attr("start", node.attr("place", 0))
    if dim is None or not source.shape[dim]:
        return before
    size: int = source.shape[dim]
    return before + place % size * source.strides[dim]
