"""Peak memory of a plan: which tensors are alive while each of its kernels runs.

A group's external tensors are allocated when it starts and freed after the last group that reads them; what stays
inside a group never has memory. Views keep the tensor alive in whose memory they lie. Inputs are there before and
after, and are not counted; outputs stay. This file knows no device and no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusesim.errors import PlanError, unknown_name
from fusesim.scratch import ALLOCATORS, scratch_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.fusion import FusionPlan, Group
    from fusesim.graph import Graph
    from fusesim.tensor import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one group of a plan does to memory.

    `allocated` and `freed` name tensors by whose memory it is. `scratch` is what the kernel allocates for itself and
    frees again, `live` what is alive above the inputs while it runs, that included, `after` once it is done. [B]
    """

    group: int
    allocated: tuple[str, ...]
    freed: tuple[str, ...]
    scratch: int
    live: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Live bytes above the inputs, group by group, and what each group allocated and freed.

    `sizes` says how many bytes each allocated tensor takes. [B]
    """

    steps: tuple[Step, ...]
    sizes: tuple[tuple[str, int], ...]

    @property
    def peak(self) -> int:
        """Live bytes at the worst moment. [B]."""
        return max((step.live for step in self.steps), default=0)

    @property
    def end(self) -> int:
        """Bytes that are left: the outputs. [B]."""
        return self.steps[-1].after if self.steps else 0

    @property
    def worst(self) -> int | None:
        """The first group at which the peak is reached, None without any."""
        return next((step.group for step in self.steps if step.live == self.peak), None)

    def to_dict(self) -> dict[str, object]:
        """Return it ready for JSON. [B]."""
        return {
            "peak": self.peak,
            "end": self.end,
            "sizes": dict(self.sizes),
            "steps": [
                {name: getattr(step, name) for name in ("group", "allocated", "freed", "scratch", "live", "after")}
                for step in self.steps
            ],
        }


def liveness(
    plan: FusionPlan,
    *,
    program: bool | None = None,
    reuse: bool | None = None,
    scratch: Sequence[int] | None = None,
    allocator: str = "torch",
) -> Timeline:
    """Return what is alive while each group of a plan runs.

    Parameters
    ----------
    plan : FusionPlan
        The groups, in the order in which they run.
    program : bool, optional
        Whether what the graph says that its program holds (`Graph.held`) outlives its last use, as it does where a
        framework runs the program line by line; unless given, for the strategies `eager` and `cuda-graph`.
    reuse : bool, optional
        Whether a kernel may write a result over an input that dies with it, as compilers let it; unless given, for
        every strategy but these.
    scratch : sequence of int, optional
        What each group allocates for itself while it runs, for example the partial results of a split reduction;
        unless given, as `scratch_bytes` says for groups of one op. [B]
    allocator : str
        How memory is handed out, a name of `fusesim.scratch.ALLOCATORS`.

    Returns
    -------
    Timeline
        Steps, one per group, and the peak. [B]

    Raises
    ------
    PlanError
        If `scratch` has another length than the plan.
    InputError
        If the allocator is unknown.

    Notes
    -----
    Every tensor takes its bytes rounded up to 512 B, a large one what is left of its segment too, see
    `fusesim.scratch`. Workspaces that a library keeps from call to call (cuBLAS) are not counted. The assumption that
    fails first: blocks that earlier programs left behind do not matter.
    """
    if allocator not in ALLOCATORS:
        raise unknown_name("allocator", allocator, ALLOCATORS)
    eager = plan.strategy in {"eager", "cuda-graph"}  # a captured graph keeps the memory that eager mode handed out
    own = [scratch_bytes(plan, group) for group in plan.groups] if scratch is None else list(scratch)
    if len(own) != len(plan.groups):
        raise PlanError(f"scratch has {len(own)} entries; the plan has {len(plan.groups)} groups")
    last = _last_use(plan, program=eager if program is None else program)
    made = _made(plan)
    over = _written_over(plan, made, last) if (not eager if reuse is None else reuse) else {}
    return _replay(plan, made, _Rules(last, over, own, ALLOCATORS[allocator]))


def peak_memory(plan: FusionPlan, *, program: bool | None = None, reuse: bool | None = None) -> int:
    """Return bytes above the inputs at the peak of a plan, outputs included; see `liveness`. [B]."""
    return liveness(plan, program=program, reuse=reuse).peak


def _made(plan: FusionPlan) -> list[tuple[str, ...]]:
    """Return whose memory each group is the first to write, by the name of the tensor that owns it."""
    tensors = plan.graph.tensors
    seen = {tensors[name].storage for name in plan.graph.inputs}
    found = []
    for group in plan.groups:
        names = _outputs(plan, group)
        fresh = [name for name in dict.fromkeys(tensors[name].storage for name in names) if name not in seen]
        seen.update(fresh)
        found.append(tuple(fresh))
    return found


def _outputs(plan: FusionPlan, group: Group) -> tuple[str, ...]:
    """Return what a group allocates: what others read or the graph returns, and what a lone op makes for nobody."""
    outputs = plan.external_outputs(group)
    if len(group.nodes) != 1:
        return outputs
    return tuple(dict.fromkeys((*plan.nodes(group)[0].outputs, *outputs)))


def _last_use(plan: FusionPlan, *, program: bool) -> dict[str, int]:
    """Return the last group at which each memory is needed, one past the end for what stays."""
    graph, end = plan.graph, len(plan.groups)
    last: dict[str, int] = {}
    for place, group in enumerate(plan.groups):
        for node in plan.nodes(group):
            for name in (*node.inputs, *node.outputs):
                last[graph.tensors[name].storage] = place
    if program:
        for name, until in graph.held.items():
            storage = graph.tensors[name].storage
            place = _place(plan, until) if until else end - 1
            last[storage] = max(last.get(storage, 0), place)
    for name in (*graph.inputs, *graph.outputs):
        last[graph.tensors[name].storage] = end
    return last


def _place(plan: FusionPlan, name: str) -> int:
    """Return the group of an op; that of the last one before it where it is a view."""
    for node in reversed(plan.graph.nodes[: plan.graph.index[name] + 1]):
        if node.name in plan.group_of:
            return plan.group_of[node.name]
    return 0


@dataclass(frozen=True, slots=True)
class _Rules:
    """When memory goes, what is written over what, what groups allocate for themselves, and how much a tensor takes."""

    last: dict[str, int]
    over: dict[str, str]
    own: list[int]
    take: Callable[[int], int]


def _replay(plan: FusionPlan, made: list[tuple[str, ...]], rules: _Rules) -> Timeline:
    """Return the timeline: allocate, run, free."""
    sizes: dict[str, int] = {}
    dying: dict[int, list[str]] = {}
    steps, live = [], 0
    for place, fresh in enumerate(made):
        taken = {rules.over[name] for name in fresh if name in rules.over}
        for name in fresh:
            sizes[name] = rules.take(_storage_bytes(plan.graph.tensors[name]))
            dying.setdefault(max(rules.last[name], place), []).append(name)
        new = tuple(name for name in fresh if name not in rules.over)
        live += sum(sizes[name] for name in new)
        worst, own = live + rules.own[place], rules.own[place]
        freed = tuple(name for name in dying.get(place, ()) if name not in taken)
        live -= sum(sizes[name] for name in freed)
        steps.append(Step(group=place, allocated=new, freed=freed, scratch=own, live=worst, after=live))
    return Timeline(steps=tuple(steps), sizes=tuple(sizes.items()))


def _storage_bytes(tensor: Tensor) -> int:
    """Return the bytes of memory that a tensor's values span. [B]."""
    if not tensor.elements:
        return 0
    spans = ((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))
    return (sum(spans) + 1) * tensor.itemsize


def _written_over(plan: FusionPlan, made: list[tuple[str, ...]], last: dict[str, int]) -> dict[str, str]:
    """Return for results the input in whose memory they are written, each dying input used once."""
    found: dict[str, str] = {}
    intermediate = {name for fresh in made for name in fresh}
    for place, (group, fresh) in enumerate(zip(plan.groups, made, strict=True)):
        for old, sinks in _sinks(plan, group).items():
            dies = old in intermediate and last[old] == place
            if dies and len(sinks) == 1 and sinks[0] in fresh and _alike(plan.graph, sinks[0], old):
                found.setdefault(sinks[0], old)
    return found


def _sinks(plan: FusionPlan, group: Group) -> dict[str, list[str]]:
    """Return for each memory that a group reads what needs it: results that are written, and reductions.

    A value that is written is read back from there, so what follows it needs the input no more. Memory that an op reads
    elsewhere than at the place where it writes has the sink "" besides.
    """
    tensors, outputs = plan.graph.tensors, set(plan.external_outputs(group))
    sinks = {tensors[name].storage: list[str]() for name in plan.external_inputs(group)}
    needs = {name: {name} for name in sinks}
    for node in plan.nodes(group):
        before = {old for name in node.inputs for old in needs.get(tensors[name].storage, ())}
        ends = [tensors[name].storage for name in node.outputs if name in outputs or node.family != "pointwise"]
        aligned = node.family in {"pointwise", "reduction"} and all(_aligned(plan.graph, name) for name in node.inputs)
        for old in before:
            sinks[old].extend(ends if aligned else ["", *ends])
        for name in node.outputs:
            needs[tensors[name].storage] = set() if ends else before
    return sinks


def _aligned(graph: Graph, name: str) -> bool:
    """Return whether a tensor's values lie in the order of the memory that it lives in, all of them."""
    tensor = graph.tensors[name]
    owner = graph.tensors[tensor.storage]
    if tensor.contiguous and owner.contiguous:
        return tensor.elements == owner.elements
    return (tensor.shape, tensor.strides) == (owner.shape, owner.strides)


def _alike(graph: Graph, result: str, old: str) -> bool:
    """Return whether a result fits where an input was: same type, size and order, made by a pointwise op."""
    new, before = graph.tensors[result], graph.tensors[old]
    flat = new.contiguous and before.contiguous and new.elements == before.elements
    same = flat or (new.shape, new.strides) == (before.shape, before.strides)
    return same and new.dtype == before.dtype and graph.producers[result].family == "pointwise"
