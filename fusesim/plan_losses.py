"""Why a fused kernel takes longer than the kernels that it replaces, and which kernels spill registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fusesim import units
from fusesim.explain import BOUND_IN_WORDS
from fusesim.plan_run import PlanRun
from fusesim.resources import resources_of
from fusesim.topology import topology

if TYPE_CHECKING:
    from fusesim.comparison import Comparison
    from fusesim.fusion import FusionPlan
    from fusesim.limits import Limits
    from fusesim.plan_run import Kernel
    from fusesim.resources import Resources

WORSE: Final = 1.02
"""A kernel that takes longer than those it replaces by less than this factor takes as long."""

SHORT: Final = 1.5
"""By how much the blocks of a kernel have to take longer than its bytes to be worth a sentence."""

FEW: Final = 3
"""Kernels that are named; more are counted."""


class Loss(NamedTuple):
    """A group of the fused plan, its time and that of the unfused kernels of its ops. [s]."""

    group: int
    fused: float
    unfused: float


def spilled(plan: FusionPlan, limits: Limits) -> list[tuple[str, Resources]]:
    """Return the groups that need more registers than a thread has, by their first op, and what they occupy."""
    topo = topology(plan.graph)
    found = []
    for group in plan.groups:
        if len(group.nodes) > 1:
            use = resources_of(topo, topo.mask(group.nodes), limits)
            if use.spilled:
                found.append((f"the kernel of {group.nodes[0]} and {len(group.nodes) - 1} more ops", use))
    return found[:FEW]


def origin(name: str, known: frozenset[str] | set[str]) -> str:
    """Return the op of the source graph that an op was written out or copied from.

    Examples
    --------
    >>> origin("softmax.exp@2", {"softmax"}), origin("add", {"add"})
    ('softmax', 'add')
    """
    stem = name.partition("@")[0]
    while stem not in known and "." in stem:
        stem = stem.rpartition(".")[0]
    return stem


def losses(comparison: Comparison) -> list[Loss]:
    """Return the groups of the fused plan that take longer than the unfused kernels of their ops, the worst first.

    Notes
    -----
    Kernels of both sides are joined where they compute parts of the same ops of the graph; a join is judged as a whole.
    """
    one, two = comparison.unfused.parts, comparison.fused.parts
    if not isinstance(one, PlanRun) or not isinstance(two, PlanRun):
        return []
    known = set(comparison.graph.by_name)
    times = {side: _by_op(run, known) for side, run in (("unfused", one), ("fused", two))}
    joined = _joined([ops for side in times.values() for ops, _, _ in side])
    found: dict[str, list[float]] = {}
    groups: dict[str, tuple[float, int]] = {}
    for column, side in enumerate(("unfused", "fused")):
        for ops, time, group in times[side]:
            key = joined[next(iter(ops))]
            found.setdefault(key, [0.0, 0.0])[column] += time
            if column:
                groups[key] = max(groups.get(key, (0.0, group)), (time, group))
    worse = [
        Loss(groups[key][1], fused, unfused)
        for key, (unfused, fused) in found.items()
        if key in groups and fused > WORSE * unfused > 0 and not _same_call(two, groups[key][1])
    ]
    return sorted(worse, key=lambda loss: loss.unfused - loss.fused)


def _same_call(run: PlanRun, group: int) -> bool:
    """Return whether a group is one call of a library, which is the same on either side."""
    nodes = run.plan.nodes(run.plan.groups[group])
    return len(nodes) == 1 and nodes[0].family in {"matmul", "conv", "attention"}


def _by_op(run: PlanRun, known: set[str]) -> list[tuple[frozenset[str], float, int]]:
    """Return for each group the ops of the source graph that it computes, its kernels' time, and its place."""
    times: dict[int, float] = {}
    for kernel in run.kernels_run:
        times[kernel.group] = times.get(kernel.group, 0.0) + kernel.total(run.settings)
    return [
        (frozenset(origin(name, known) for name in run.plan.groups[place].nodes), time, place)
        for place, time in times.items()
    ]


def _joined(sets: list[frozenset[str]]) -> dict[str, str]:
    """Return a common name for ops that sets connect."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for ops in sets:
        first, *rest = sorted(ops)
        top = root(first)
        for other in rest:
            parent[root(other)] = top
    return {name: root(name) for name in list(parent)}


def losing_kernels(comparison: Comparison) -> list[str]:
    """Say which fused kernels lose, by how much, and why."""
    found = losses(comparison)
    return [_sentence(comparison, loss) for loss in found[:FEW]]


def _sentence(comparison: Comparison, loss: Loss) -> str:
    """Say why one fused kernel loses."""
    run = comparison.fused.parts
    kernels = [kernel for kernel in run.kernels_run if kernel.group == loss.group]  # type: ignore[attr-defined]
    worst = max(kernels, key=lambda kernel: kernel.time.time)
    fused, unfused = (units.format_quantity(time, units.TIME) for time in (loss.fused, loss.unfused))
    names = comparison.fused_plan.groups[loss.group].nodes
    what = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    return f"the fused kernel of {what} loses, {fused} against {unfused}: {_reason(comparison, loss, worst)}"


def _reason(comparison: Comparison, loss: Loss, kernel: Kernel) -> str:
    """Return in words what a losing kernel pays."""
    run = comparison.fused.parts
    group = comparison.fused_plan.groups[loss.group]
    topo = topology(comparison.fused_plan.graph)
    use = resources_of(topo, topo.mask(group.nodes), run.limits)  # type: ignore[attr-defined]
    said = [f"it is bound by {BOUND_IN_WORDS[kernel.bound]}"]
    if kernel.launch.again:
        size = units.format_quantity(kernel.launch.again, units.SIZE)
        said.append(
            f"it reads {size} again since {'registers spill' if use.spilled else 'a row does not stay on chip'}"
        )
    families = {node.family for node in comparison.fused_plan.nodes(group)}
    if len(group.nodes) > 1 and families & {"matmul", "conv"}:
        said.append("it stands in for a library's product")
    known = comparison.graph.by_name
    whole = sorted({origin(name, set(known)) for name in group.nodes} - set(group.nodes))
    if whole:
        said.append(f"the framework's own kernels for {', '.join(whole[:FEW])} are quicker")
    return "; ".join(said)


def short_blocks(run: PlanRun) -> list[str]:
    """Say which kernels give too little to each block, such as short rows: a block takes its time whatever is in it."""
    found = []
    for kernel in run.kernels_run:
        own, launch = kernel.time, kernel.launch
        many = launch.blocks > (run.limits.sms or 1) * launch.resident
        idle = launch.elements <= launch.blocks * launch.threads
        took = max(own.waves, own.issue)
        if many and idle and took > SHORT * max(own.dram, own.cache):
            each, blocks = (
                units.format_count(max(round(n), 1)) for n in (launch.elements / launch.blocks, launch.blocks)
            )
            waves, moved = (units.format_quantity(t, units.TIME) for t in (took, max(own.dram, own.cache)))
            found.append(f"{launch.name} runs {blocks} blocks of {each} values: they take {waves}, its bytes {moved}")
    return found[:FEW]
