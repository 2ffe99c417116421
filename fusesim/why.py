"""Why two ops share a kernel or not: what it would buy, what stops it, and where a plan pays for which edge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from fusesim.errors import InputError
from fusesim.graph import Graph
from fusesim.group_work import moved, work_of
from fusesim.inputs import instance
from fusesim.legality import reason_against
from fusesim.planning import context_of
from fusesim.strategies.vertical import forms
from fusesim.textbook_cost import displaces_library
from fusesim.topology import bits, topology

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan
    from fusesim.hardware import HardwareProfile
    from fusesim.limits import Limits
    from fusesim.strategies.base import Cost
    from fusesim.topology import Read, Topology

LOW_OCCUPANCY: Final = 0.25
"""Share of a multiprocessor's threads below which too few loads are in flight to keep memory busy: a rule of thumb."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What fusing two ops would buy.

    `edge_bytes` go from the one op to the other, `saved_bytes` fewer are moved when they share a kernel, with the ops
    `along` that lie between and must come too. `apart` and `together` are times [s], `together` and `saving` None where
    `reason` says that it is not possible. `losses` say what fusing costs. `pair` are the ops asked about.
    """

    pair: tuple[str, str]
    along: tuple[str, ...]
    edge_bytes: int
    saved_bytes: int
    apart: float
    together: float | None
    reason: str | None
    losses: tuple[str, ...]

    @property
    def saving(self) -> float | None:
        """Time that fusing saves, negative where it loses. [s]."""
        return None if self.together is None else self.apart - self.together

    @property
    def loses(self) -> bool:
        """Whether fusing is possible and costs more."""
        return self.saving is not None and self.saving < 0


def why(
    graph: Graph,
    op_a: str,
    op_b: str,
    cost: Cost | None = None,
    *,
    device: str | HardwareProfile = "h200-sxm",
) -> Why:
    """Return what fusing two ops would buy, and what stops it.

    Parameters
    ----------
    graph : Graph
        The graph. Composite ops are written out where that lets them share a kernel.
    op_a, op_b : str
        Two of its ops, in any order.
    cost : callable, optional
        The time of one kernel, as for `fusesim.planning.plan`.
    device : str or HardwareProfile
        The device.

    Raises
    ------
    InputError
        If an op or the device is unknown.
    """
    instance("a program", graph, Graph, "such as fusesim.patterns.rmsnorm()")
    for name in (op_a, op_b):
        graph.node(name)
    topology(graph).mask((op_a, op_b))
    if op_a == op_b:
        raise InputError(f"{op_a} is one op; name another to fuse it with")
    first = None
    for form in reversed(forms(graph)):
        found = _ask(form, op_a, op_b, cost, device)
        if found.reason is None:
            return found
        first = found if first is None else first
    return first if first is not None else found


def _ask(graph: Graph, op_a: str, op_b: str, cost: Cost | None, device: str | HardwareProfile) -> Why:
    """Answer for one form of a graph."""
    context = context_of(device, cost)
    topo = topology(graph)
    one, other = (_parts(topo, name) for name in (op_a, op_b))
    if topo.reach(other, topo.descendants) & one & ~other:
        one, other = other, one
    both = one | other
    whole = both | topo.between(both)
    reason = reason_against(topo, whole, context.limits) or None
    prices = context.prices(graph, topo)
    along = whole & ~both
    pieces = [mask for mask in (one, other) if reason_against(topo, mask) == ""]
    singles = [1 << place for place in bits(whole & ~sum(pieces))] if one != other else []
    apart = prices.total((*dict.fromkeys(pieces), *singles))
    together = prices(whole) if reason is None else None
    if together == math.inf:
        together, reason = None, f"{op_a} and {op_b}: no kernel of this size fits the device"
    before = sum(sum(moved(topo, mask)) for mask in (*dict.fromkeys(pieces), *singles))
    return Why(
        pair=(op_a, op_b),
        along=topo.named(along),
        edge_bytes=edge_bytes(topo, one, other),
        saved_bytes=before - sum(moved(topo, whole)),
        apart=apart,
        together=together,
        reason=reason,
        losses=() if reason else losses(topo, whole, [*pieces, *singles], context.limits),
    )


def _parts(topo: Topology, name: str) -> int:
    """Return an op, or what it was written out as."""
    return sum(1 << place for place, own in enumerate(topo.names) if own == name or own.startswith(f"{name}."))


def edge_bytes(topo: Topology, one: int, other: int) -> int:
    """Return the bytes that ops of one set make and ops of another read. [B]."""
    sizes: dict[str, int] = {}
    for place in bits(other):
        for read in topo.items[place].reads:
            if read.producer >= 0 and one >> read.producer & 1:
                sizes[read.name] = read.bytes
    return sum(sizes.values())


def losses(topo: Topology, whole: int, pieces: list[int], limits: Limits) -> tuple[str, ...]:
    """Return in words what a kernel pays that its pieces do not."""
    work = work_of(topo, whole, limits)
    apart = [work_of(topo, mask, limits) for mask in pieces]
    found = []
    use = work.resources
    if use.spilled > max((one.resources.spilled for one in apart), default=0):
        found.append(
            f"spills: {use.live} values live at once need {use.registers} registers per thread, {use.spilled} too many"
        )
    if work.again > sum(one.again for one in apart):
        what = (
            "keys and values are read once per tile of queries"
            if work.template == "attention"
            else (f"a row of {use.row_bytes} bytes does not stay on chip and is gone through {use.passes} times")
        )
        found.append(f"re-reads: {what}, {work.again} bytes more")
    if work.repeated > sum(one.repeated for one in apart):
        found.append(f"recompute: {work.repeated:.3g} FLOP are computed more than once")
    lowest = min((one.resources.occupancy or 1.0 for one in apart), default=1.0)
    if use.occupancy is not None and use.occupancy < min(lowest, LOW_OCCUPANCY):
        found.append(f"occupancy: {use.occupancy:.0%} of the threads fit, limited by {use.limit}")
    if displaces_library(topo, whole) and not any(displaces_library(topo, mask) for mask in pieces):
        found.append("library: a generated product replaces the library's, which has no such epilogue")
    if work.template == "row" and limits.sms and use.row_bytes and use.blocks < limits.sms:
        found.append(f"parallelism: {use.blocks} rows for {limits.sms:.0f} multiprocessors")
    return tuple(found)


State = Literal["paid", "saved", "re-read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeUse:
    """A tensor on its way from who makes it (None: an input) to who reads it (None: an output), under a plan.

    `state` is saved where it never passes through memory on this way, paid where it does, re-read where another group
    has read it before. `readers` counts the groups that read it. `bytes` that this reader touches [B].
    """

    tensor: str
    producer: str | None
    consumer: str | None
    bytes: int
    state: State
    readers: int


def edges(plan: FusionPlan) -> tuple[EdgeUse, ...]:
    """Return for each edge of a plan's graph whether it is paid, saved inside a kernel, or read again.

    Notes
    -----
    Within one kernel a tensor from memory is read once for all ops: the first edge is paid, the others are saved.
    """
    topo = topology(plan.graph)
    groups = plan.group_of
    readers: dict[int, dict[int, None]] = {}
    found: list[tuple[Read, str | None, str, State]] = []
    seen: set[tuple[str, int]] = set()
    for place, item in enumerate(topo.items):
        group = groups[topo.names[place]]
        for read in item.reads:
            maker = topo.names[read.producer] if read.producer >= 0 else None
            inside = maker is not None and groups[maker] == group
            if not inside:
                readers.setdefault(read.base, {})[group] = None
            first = next(iter(readers.get(read.base, {group: None}))) == group
            saved = inside or (read.name, group) in seen
            seen.add((read.name, group))
            state: State = "saved" if saved else "paid" if first else "re-read"
            found.append((read, maker, item.name, state))
    made = [
        EdgeUse(
            tensor=read.name,
            producer=maker,
            consumer=consumer,
            bytes=read.bytes,
            state=state,
            readers=len(readers.get(read.base, {})),
        )
        for read, maker, consumer, state in found
    ]
    return (*made, *_returned(topo, readers))


def _returned(topo: Topology, readers: dict[int, dict[int, None]]) -> list[EdgeUse]:
    """Return the edges to the graph's outputs."""
    return [
        EdgeUse(
            tensor=topo.tensors[write.base],
            producer=item.name,
            consumer=None,
            bytes=write.bytes,
            state="paid",
            readers=len(readers.get(write.base, {})),
        )
        for item in topo.items
        for write in item.writes
        if write.kept
    ]
