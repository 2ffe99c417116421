"""XLA's fusion on GPUs: library epilogues, producers into all of their consumers by priority, then siblings.

Rules, in the order of its passes:

1. A library product takes the epilogues that the library has: bias, residual, relu, gelu.
2. Priority fusion: a producer goes into all of its consumers, the one that saves most by the cost model first. Where
   it has several consumers it is computed again in each, so it must be cheap enough that the sum still saves; random
   numbers and ops that write over their input are never repeated. Products stay library calls.
3. A reduction shares a kernel with what follows when the row stays on chip (the block-level softmax and norm
   fusions); otherwise the kernel ends with it.
4. Multi-output fusion: groups that read the same tensor over one space, and a producer whose value is also wanted
   elsewhere, share a kernel where that saves.
5. Horizontal fusion: independent pointwise loops share a launch.

What is left out: block-level products with arbitrary epilogues, which XLA tries by measuring.

References
----------
.. [1] OpenXLA, xla/service/gpu/transforms/priority_fusion.cc, multi_output_fusion.cc, horizontal_loop_fusion.cc,
   softmax_rewriter_triton.cc, gemm_rewriter.cc.
.. [2] OpenXLA documentation, "XLA:GPU Architecture Overview".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.resources import resources_of
from fusesim.strategies.base import as_plan
from fusesim.strategies.clones import cloned
from fusesim.strategies.horizontal import siblings
from fusesim.strategies.mlir import only_user
from fusesim.strategies.quotient import LEAST, Quotient, greedy, neighbours
from fusesim.strategies.vertical import decomposed
from fusesim.templates import shape_of
from fusesim.textbook_cost import displaces_library
from fusesim.topology import bits, topology

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.strategies.base import Context

NEVER_TWICE: Final = frozenset({"dropout", "rand"})
"""Kinds that are not computed again."""

LOOPS: Final = frozenset({"pointwise", "row"})
"""Templates that XLA generates itself."""


def decide(graph: Graph, context: Context) -> FusionPlan:
    """Return what the passes make of the graph with composite ops written out."""
    form = decomposed(graph)
    quotient = Quotient(topology(form))
    _epilogues(quotient)
    _into_consumers(quotient, form, context)
    form, quotient = _into_all(form, quotient, context)
    prices = context.prices(form, quotient.topo)
    greedy(quotient, prices, lambda state, group: _multi_output(state, group, context))
    greedy(quotient, prices, _independent_loops)
    repeated = len(quotient.topo.names) - len(topology(decomposed(graph)).names)
    notes = (f"{repeated} ops are computed again in a second consumer",) if repeated else ()
    return as_plan(form, quotient.topo, quotient.groups(), "xla", source=graph, notes=notes)


def _epilogues(quotient: Quotient) -> None:
    """Put what libraries can do behind their products into the products' groups."""
    topo = quotient.topo
    for place, item in enumerate(topo.items):
        last = place if item.role in {"matmul", "conv"} else None
        while last is not None:
            user = only_user(topo, last)
            if user is None:
                break
            whole = quotient.masks[quotient.owner[place]] | quotient.masks[quotient.owner[user]]
            if shape_of(topo, whole).reason or displaces_library(topo, whole) or topo.between(whole):
                break
            quotient.unite(whole)
            last = user


def _fits(quotient: Quotient, mask: int, context: Context) -> bool:
    """Return whether a set of ops is a loop that XLA generates, rows on chip."""
    shape = shape_of(quotient.topo, mask)
    if shape.reason or shape.template not in LOOPS:
        return False
    return shape.template == "pointwise" or resources_of(quotient.topo, mask, context.limits).passes == 1


def _into_consumers(quotient: Quotient, form: Graph, context: Context) -> None:
    """Fuse producers into their only consumer, by saved time."""

    def partners(state: Quotient, group: int) -> Iterable[int]:
        """Return whom a group may be fused with."""
        return [other for other in neighbours(state, group) if _whole(state, group, other, context)]

    greedy(quotient, context.prices(form, quotient.topo), partners)


def _whole(state: Quotient, one: int, other: int, context: Context) -> bool:
    """Return whether one of two groups is used by the other alone, and both are loops that fit together."""
    first, second = (one, other) if state.leads(one, other) else (other, one)
    if _kept(state, first) or any(group != second for group in state.successors(first)):
        return False
    return _fits(state, state.masks[first] | state.masks[second], context)


def _kept(state: Quotient, group: int) -> bool:
    """Return whether the graph returns something that a group makes."""
    items = (state.topo.items[place] for place in bits(state.masks[group]))
    return any(write.kept for item in items for write in item.writes)


def _into_all(form: Graph, quotient: Quotient, context: Context) -> tuple[Graph, Quotient]:
    """Compute producers again in each of several consumers where that saves, later producers first."""
    for name in reversed(quotient.topo.names):
        topo = quotient.topo
        group = quotient.owner[topo.index[name]]
        users = list(quotient.successors(group))
        mask = quotient.masks[group]
        items = [topo.items[place] for place in bits(mask)]
        if len(users) < 2 or _kept(quotient, group) or items[-1].name != name:  # noqa: PLR2004 - one is above
            continue
        if any(item.role != "point" or item.kind in NEVER_TWICE or item.over for item in items):
            continue
        if not all(_fits(quotient, mask | quotient.masks[user], context) for user in users):
            continue
        found = _repeated(form, quotient, group, users, context)
        if found is not None:
            form, quotient = found
            _into_consumers(quotient, form, context)
    return form, quotient


def _repeated(
    form: Graph, quotient: Quotient, group: int, users: list[int], context: Context
) -> tuple[Graph, Quotient] | None:
    """Return the graph and groups with a producer in each of its users, None where that saves nothing."""
    topo = quotient.topo
    ops = topo.named(quotient.masks[group])
    readers = [topo.named(quotient.masks[user]) for user in users]
    other, copies = cloned(form, ops, readers)
    changed = topology(other)
    joined = [changed.mask((*copy, *names)) for copy, names in zip(copies, readers, strict=True)]
    prices = context.prices(other, changed)
    before = context.prices(form, topo).total(quotient.masks[index] for index in (group, *users))
    if prices.total(joined) >= before - LEAST or any(changed.between(mask) for mask in joined):
        return None
    rest = [topo.named(mask) for index, mask in quotient.masks.items() if index not in {group, *users}]
    return other, Quotient(changed, [*joined, *(changed.mask(names) for names in rest)])


def _multi_output(state: Quotient, group: int, context: Context) -> list[int]:
    """Return the loops beside a group over one space that read what it reads, and its producers and consumers."""
    near = {**dict.fromkeys(siblings(state, group)), **dict.fromkeys(neighbours(state, group))}
    mask = state.masks[group]
    found = []
    for other in near:
        whole = mask | state.masks[other]
        if _fits(state, whole, context) and len(shape_of(state.topo, whole).parts) == 1:
            found.append(other)
    return found


def _independent_loops(state: Quotient, group: int) -> list[int]:
    """Return the pointwise loops beside a pointwise loop."""
    topo = state.topo
    if shape_of(topo, state.masks[group]).template != "pointwise":
        return []
    return [other for other in siblings(state, group) if shape_of(topo, state.masks[other]).template == "pointwise"]
