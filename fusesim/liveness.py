"""Peak memory of a plan: which tensors are alive while each of its kernels runs.

A group's external tensors are allocated when it starts and freed after the last group that reads them; what stays
inside a group never has memory. Views keep the tensor alive in whose memory they lie. Inputs are there before and
after, and are not counted; outputs stay. This file knows no device and no time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusesim.errors import PlanError
from fusesim.memory import ALLOCATION_STEP
from fusesim.tensor import permuted_dense

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fusesim.fusion import FusionPlan, Group
    from fusesim.graph import Graph, Node
    from fusesim.tensor import Tensor

STATISTIC: Final = 4
"""Bytes of one statistic that a composite keeps: a mean or a variance in fp32. [B]"""


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


def allocation(size: int) -> int:
    """Return what a caching allocator sets aside. [B].

    Examples
    --------
    >>> allocation(1), allocation(512), allocation(0)
    (512, 512, 0)
    """
    return -(-size // ALLOCATION_STEP) * ALLOCATION_STEP


def liveness(
    plan: FusionPlan,
    *,
    program: bool | None = None,
    reuse: bool | None = None,
    scratch: Sequence[int] | None = None,
) -> Timeline:
    """Return what is alive while each group of a plan runs.

    Parameters
    ----------
    plan : FusionPlan
        The groups, in the order in which they run.
    program : bool, optional
        Whether what the graph says that its program holds (`Graph.held`) outlives its last use, as it does where a
        framework runs the program line by line; unless given, for the strategy `eager`.
    reuse : bool, optional
        Whether a kernel may write a result over an input that dies with it, as compilers let it; unless given, for
        every strategy but `eager`.
    scratch : sequence of int, optional
        What each group allocates for itself while it runs, for example the partial results of a split reduction;
        unless given, as `scratch_bytes` says for groups of one op. [B]

    Returns
    -------
    Timeline
        Steps, one per group, and the peak. [B]

    Raises
    ------
    PlanError
        If `scratch` has another length than the plan.

    Notes
    -----
    Every tensor takes its bytes rounded up to the allocator's step, 512 B. Workspaces that a library keeps from call to
    call (cuBLAS) are not counted. The assumption that fails first: PyTorch's allocator does not split a block of more
    than 10 MiB where less than 1 MiB would be left, and then counts the whole block.
    """
    eager = plan.strategy == "eager"
    own = [scratch_bytes(plan, group) for group in plan.groups] if scratch is None else list(scratch)
    if len(own) != len(plan.groups):
        raise PlanError(f"scratch has {len(own)} entries; the plan has {len(plan.groups)} groups")
    last = _last_use(plan, program=eager if program is None else program)
    made = _made(plan)
    over = _written_over(plan, made, last) if (not eager if reuse is None else reuse) else {}
    return _replay(plan, made, last, over, own)


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
    if len(group.nodes) > 1:
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


def _replay(
    plan: FusionPlan, made: list[tuple[str, ...]], last: dict[str, int], over: dict[str, str], own: list[int]
) -> Timeline:
    """Return the timeline: allocate, run, free."""
    sizes: dict[str, int] = {}
    dying: dict[int, list[str]] = {}
    steps, live = [], 0
    for place, fresh in enumerate(made):
        taken = {over[name] for name in fresh if name in over}
        for name in fresh:
            sizes[name] = allocation(_storage_bytes(plan.graph.tensors[name]))
            dying.setdefault(max(last[name], place), []).append(name)
        new = tuple(name for name in fresh if name not in over)
        live += sum(sizes[name] for name in new)
        worst = live + own[place]
        freed = tuple(name for name in dying.get(place, ()) if name not in taken)
        live -= sum(sizes[name] for name in freed)
        steps.append(Step(group=place, allocated=new, freed=freed, scratch=own[place], live=worst, after=live))
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
        dying = [name for name in _same_place(plan, group) if name in intermediate and last[name] == place]
        for name in fresh:
            match = next((old for old in dying if _alike(plan.graph, name, old)), None)
            if match is not None:
                dying.remove(match)
                found[name] = match
    return found


def _same_place(plan: FusionPlan, group: Group) -> Iterable[str]:
    """Return the inputs of a group that it only reads at the place at which it writes: no window, no other order."""
    good: dict[str, bool] = {}
    for node in plan.nodes(group):
        for name in node.inputs:
            tensor = plan.graph.tensors[name]
            straight = node.family in {"pointwise", "reduction"} and not tensor.is_view
            good[tensor.storage] = good.get(tensor.storage, True) and straight
    own = {name for node in plan.nodes(group) for name in node.outputs}
    return [name for name, straight in good.items() if straight and name not in own]


def _alike(graph: Graph, result: str, old: str) -> bool:
    """Return whether a result fits where an input was: same type, shape and order, made by a pointwise op."""
    new, before = graph.tensors[result], graph.tensors[old]
    same = (new.dtype, new.shape, new.strides) == (before.dtype, before.shape, before.strides)
    return same and graph.producers[result].family == "pointwise" and permuted_dense(new)


def _statistics(count: int) -> Callable[[Graph, Node], int]:
    """Return a rule: that many statistics per row, each an allocation of its own."""

    def rule(graph: Graph, node: Node) -> int:
        x = graph.tensors[node.inputs[0]]
        dims = node.attr("dims", (len(x.shape) - 1,))
        rows = math.prod(size for dim, size in enumerate(x.shape) if dim not in dims)
        return count * allocation(rows * STATISTIC)

    return rule


def _per_channel(graph: Graph, node: Node) -> int:
    """Return two statistics per channel."""
    return 2 * allocation(graph.tensors[node.inputs[0]].shape[1] * STATISTIC)


def _per_group(graph: Graph, node: Node) -> int:
    """Return two statistics per sample and group of channels."""
    return 2 * allocation(graph.tensors[node.inputs[0]].shape[0] * int(node.attr("groups", 1)) * STATISTIC)


def _steps(count: int) -> Callable[[Graph, Node], int]:
    """Return a rule: that many allocations of the least size."""
    return lambda _graph, _node: count * ALLOCATION_STEP


SCRATCH: Final[dict[str, Callable[[Graph, Node], int]]] = {
    "layer_norm": _statistics(2),  # mean and reciprocal deviation of each row
    "rms_norm": _statistics(1),  # reciprocal root of each row
    "group_norm": _per_group,  # mean and reciprocal deviation
    "batch_norm": _per_channel,  # copies of the mean and of the reciprocal deviation
    "batch_norm_train": _per_channel,
    "nll_loss": _steps(1),  # the sum of the weights
    "attention": _steps(3),  # cuDNN: seed, offset, and a workspace that it clears
    "conv": _steps(1),  # cuDNN's least workspace, which it clears
    "embedding_bag": _steps(0),
}
"""What a framework's kernel of a kind allocates for itself, seen on an H200 with PyTorch 2.11; the others nothing."""


def scratch_bytes(plan: FusionPlan, group: Group) -> int:
    """Return what a group allocates for itself while it runs and frees at its end. [B].

    Notes
    -----
    Only what a library's own kernel does is known, so only groups around one op that is not pointwise have any; a
    generated kernel keeps statistics on chip.
    """
    nodes = plan.nodes(group)
    anchors = [node for node in nodes if node.kind in SCRATCH]
    if len(anchors) != 1 or (len(nodes) > 1 and anchors[0].family == "normalise"):
        return 0
    return SCRATCH[anchors[0].kind](plan.graph, anchors[0])
