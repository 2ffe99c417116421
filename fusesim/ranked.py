"""Kernels of a fused plan that stand for several eager ones, ranked by what each saves of a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fusesim import units
from fusesim.common_kernels import Side, common_time, form, saving_deviation
from fusesim.errors import InputError
from fusesim.explain import BOUND_IN_WORDS
from fusesim.plan_losses import origin
from fusesim.plan_run import PlanRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fusesim.graph import Graph
    from fusesim.plan_run import Kernel
    from fusesim.records import Price

FEW: Final = 5
"""Kinds of ops that are named; more are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion:
    """A kernel of the fused plan that stands for several eager ones. [s, B].

    `ops` are the eager ops that it computes parts of, `what` their kinds. It occurs `count` times; `kernels` eager ones
    with `before` seconds become `own` with `after`; all are sums over the occurrences. `saved` is what the step loses
    by it in the launch mode asked for, with its 90 % `interval`; `share` of the step, and `speedup` of the whole step
    where nothing else is done (Amdahl). `groups` are its places in the fused plan.
    """

    what: str
    ops: tuple[str, ...]
    count: int
    kernels: int
    own: int
    before: float
    after: float
    saved: float
    interval: tuple[float, float]
    share: float
    speedup: float
    bytes_saved: float
    bound_before: str
    bound_after: str
    groups: tuple[int, ...]

    def explain(self) -> list[str]:
        """Return why it saves what it saves, in sentences."""
        times = f"{_time(self.before)} in {self.kernels} kernels become {_time(self.after)} in {self.own}"
        low, high = (_time(end) for end in self.interval)
        said = [f"{self.what}: {times}"]
        verb = "saves" if self.saved >= 0 else "loses"
        said.append(f"it {verb} {_time(abs(self.saved))} of the step ({low} to {high} with 90 % confidence)")
        said.append(f"alone it makes the step {self.speedup:.3f} times as fast: {units.format_share(self.share)} of it")
        if self.bytes_saved > 0:
            said.append(f"it moves {units.format_quantity(self.bytes_saved, units.SIZE)} less")
        bounds = [BOUND_IN_WORDS[bound] for bound in (self.bound_before, self.bound_after)]
        said.append(f"bound by {bounds[0]} before, by {bounds[1]} after")
        each = "" if self.count == 1 else f" ({self.count} times; the first)"
        return [*said, f"ops{each}: {', '.join(self.ops)}"]


@dataclass(slots=True)
class _Sums:
    """What is added up over groups of one form. [s, B]."""

    what: str
    ops: tuple[str, ...]
    groups: list[int]
    kernels: float = 0.0
    own: int = 0
    before: float = 0.0
    after: float = 0.0
    common: float = 0.0
    moved: float = 0.0
    was: str = "launch"
    now: str = "launch"


def ranked(graph: Graph, eager: PlanRun, fused: PlanRun) -> tuple[tuple[Fusion, ...], float]:
    """Return the fusions of a plan, the one that saves most first, and what single ops save besides. [s].

    Parameters
    ----------
    graph : Graph
        The program.
    eager : PlanRun
        Every op as the framework's kernels, in the launch mode that the step runs in.
    fused : PlanRun
        The fused plan, in the same mode.
    """
    parts = _parts(graph, fused)
    before = _kernels_by(eager, lambda kernel: eager.plan.groups[kernel.group].nodes[0])
    after = _kernels_by(fused, lambda kernel: kernel.group)
    sums: dict[Any, _Sums] = {}
    elsewhere = 0.0
    for place, group in enumerate(fused.plan.groups):
        mine = {op: share for op, share in parts[place].items() if op in before}
        now = after.get(place, [])
        replaced = sum(share * len(before[op]) for op, share in mine.items())
        time = sum(share * kernel.total(eager.settings) for op, share in mine.items() for kernel in before[op])
        if len(group.nodes) == 1 and replaced <= len(now):
            elsewhere += time - sum(kernel.total(fused.settings) for kernel in now)
            continue
        found = sums.setdefault(_form(fused, place), _Sums(_what(graph, mine, group.nodes), tuple(mine), []))
        _add(found, eager, replaced, [(share, before[op]) for op, share in mine.items()], time)
        _add_own(found, fused, place, now)
        found.common += _common((eager, fused), [(share, before[op]) for op, share in mine.items()], now)
    made = [_fusion(one, eager, fused) for one in sums.values()]
    return tuple(sorted(made, key=lambda one: -one.saved)), elsewhere


def run_of(one: Price) -> PlanRun:
    """Return what a price of the calibrated model is made of.

    Raises
    ------
    InputError
        If it is the textbook's.
    """
    if not isinstance(one.parts, PlanRun):
        raise InputError("a report needs the calibrated model, which knows what binds each kernel")
    return one.parts


def by_bound(run: PlanRun) -> dict[str, float]:
    """Return the time of a plan's kernels by what binds them, the longest first. [s]."""
    found: dict[str, float] = {}
    for kernel in run.kernels_run:
        found[kernel.bound] = found.get(kernel.bound, 0.0) + kernel.total(run.settings)
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def _time(value: float) -> str:
    return units.format_quantity(value, units.TIME)


def _kernels_by(run: PlanRun, key: Any) -> dict[Any, list[Kernel]]:
    """Return kernels by a key."""
    found: dict[Any, list[Kernel]] = {}
    for kernel in run.kernels_run:
        found.setdefault(key(kernel), []).append(kernel)
    return found


def _parts(graph: Graph, fused: PlanRun) -> list[dict[str, float]]:
    """Return for each group which share of each op of the program it computes.

    Notes
    -----
    Copies (``@``) are computed again and count for nothing. An op that stands in a group under its own name is there
    as a whole, whatever was written out of it. What the plan does without counts for who would have read it.
    """
    known = set(graph.by_name)
    counts: list[dict[str, float]] = []
    for group in fused.plan.groups:
        mine: dict[str, float] = {}
        for name in group.nodes:
            op = origin(name, known)
            if "@" not in name and op in known:
                mine[op] = mine.get(op, 0.0) + 1.0
        counts.append(mine)
    whole = {name: place for place, group in enumerate(fused.plan.groups) for name in group.nodes if name in known}
    totals: dict[str, float] = {}
    for mine in counts:
        for op, number in mine.items():
            totals[op] = totals.get(op, 0.0) + number
    for op in [node.name for node in reversed(graph.paid_nodes) if node.name not in totals]:
        place = _reader(graph, op, counts)
        if place is not None:
            counts[place][op], totals[op] = 1.0, 1.0
    return [
        {op: float(whole[op] == place) if op in whole else number / totals[op] for op, number in mine.items()}
        for place, mine in enumerate(counts)
    ]


def _reader(graph: Graph, op: str, counts: Sequence[dict[str, float]]) -> int | None:
    """Return the first group that computes what reads an op, views seen through."""
    waiting, seen = [op], {op}
    while waiting:
        node = graph.by_name[waiting.pop(0)]
        for reader in (r for name in node.outputs for r in graph.consumers.get(name, ())):
            place = next((at for at, mine in enumerate(counts) if reader.name in mine), None)
            if place is not None:
                return place
            if reader.name not in seen:
                seen.add(reader.name)
                waiting.append(reader.name)
    return None


def _form(run: PlanRun, place: int) -> tuple[Any, ...]:
    """Return what groups have in common that are one row: kinds of ops, and what they make."""
    graph = run.plan.graph
    nodes = run.plan.nodes(run.plan.groups[place])
    return tuple(
        (node.kind, *((graph.tensors[n].shape, graph.tensors[n].dtype) for n in node.outputs)) for node in nodes
    )


def _what(graph: Graph, mine: Iterable[str], names: Sequence[str]) -> str:
    """Name a fusion by the kinds of its ops."""
    kinds = [graph.by_name[op].kind for op in mine] or [names[0]]
    seen = {kind: kinds.count(kind) for kind in kinds}
    told = [kind if number == 1 else f"{number} {kind}" for kind, number in seen.items()]
    more = len(told) - FEW
    return " + ".join(told[:FEW]) + (f" + {more} more" if more > 0 else "")


def _add(
    found: _Sums, run: PlanRun, replaced: float, before: Sequence[tuple[float, list[Kernel]]], time: float
) -> None:
    """Add what a group replaces to the others of its form; `before` are shares of eager kernels."""
    found.kernels += replaced
    found.before += time
    found.moved += sum(share * _moved(kernels) for share, kernels in before)
    found.was = _bound(run, [kernel for _, kernels in before for kernel in kernels])


def _add_own(found: _Sums, run: PlanRun, place: int, now: Sequence[Kernel]) -> None:
    """Add the kernels of a group itself."""
    found.groups.append(place)
    found.own += len(now)
    found.after += sum(kernel.total(run.settings) for kernel in now)
    found.moved -= _moved(now)
    found.now = _bound(run, now)


def _common(
    runs: tuple[PlanRun, PlanRun], before: Sequence[tuple[float, list[Kernel]]], now: Sequence[Kernel]
) -> float:
    """Return the time of kernels that a group runs as eager mode does; `before` are shares of eager kernels. [s]."""
    eager, fused = (run.settings for run in runs)
    replaced = [(form(one.launch), share * one.total(eager)) for share, kernels in before for one in kernels]
    return common_time(replaced, [(form(one.launch), one.total(fused)) for one in now])


def _moved(kernels: Iterable[Kernel]) -> float:
    """Return the bytes that kernels read and write. [B]."""
    return sum(kernel.launch.bytes_read + kernel.launch.bytes_written for kernel in kernels)


def _bound(run: PlanRun, kernels: Sequence[Kernel]) -> str:
    """Return what binds kernels for most of their time."""
    totals: dict[str, float] = {}
    for kernel in kernels:
        totals[kernel.bound] = totals.get(kernel.bound, 0.0) + kernel.total(run.settings)
    return max(totals, key=lambda name: totals[name], default="launch")


def _saved(eager: PlanRun, less: float, fewer: float, host: float = 1.0) -> float:
    """Return what a step loses where its kernels take so much less and are so many fewer. [s].

    `host` is the host's interval over the one that is known.
    """
    if eager.settings.mode == "graph":
        return less
    issue, interval = eager.host_time * host, eager.settings.interval * host
    return max(eager.device_time, issue) - max(eager.device_time - less, issue - fewer * interval)


def _fusion(sums: _Sums, eager: PlanRun, fused: PlanRun) -> Fusion:
    """Return a row: what the step loses where this fusion alone is made.

    Notes
    -----
    In a graph that is the time of the kernels replaced less that of the new one. On a stream the longer of device and
    host counts, and the host issues fewer launches.
    """
    device = sums.before - sums.after
    before, now = (
        Side(max(time - sums.common, 0.0), *run.kernel_factors(bound))
        for time, run, bound in ((sums.before, eager, sums.was), (sums.after, fused, sums.now))
    )
    below, above = saving_deviation(before, now, common=sums.common, shared=eager.correlation)
    fewer = sums.kernels - sums.own
    mine = _saved(eager, device, fewer)
    known = [
        _saved(eager, less, fewer, host)
        for less in (device - below, device + above)
        for host in eager.settings.host_range
    ]
    step = eager.time
    return Fusion(
        what=sums.what,
        ops=sums.ops,
        count=len(sums.groups),
        kernels=round(sums.kernels),
        own=sums.own,
        before=sums.before,
        after=sums.after,
        saved=mine,
        interval=(min(mine, *known), max(mine, *known)),
        share=mine / step if step else 0.0,
        speedup=step / (step - mine) if step > mine else 1.0,
        bytes_saved=sums.moved,
        bound_before=sums.was,
        bound_after=sums.now,
        groups=tuple(sums.groups),
    )
