"""TVM's operator fusion: classes of ops, and an op joins the op through which everything it makes must pass.

Every op has a class: element-wise, broadcast, injective (a value in, a value out, elsewhere: copy, concat, gather),
reduction, complex with a fusable output (matmul, convolution), opaque (sort, softmax, library kernels). Rules, op by
op in the graph's order, each towards its immediate post-dominator, and with all that lies between:

1. A complex op joins when its output is used element-wise all the way and everything between is broadcast at most.
2. Element-wise and broadcast ops join an injective op, a reduction, or a complex op's group.
3. Injective ops join injective ones, in a second round.
4. A reduction starts nothing: what follows it is another kernel. Opaque ops stay alone.
5. A kernel has one output, since only post-dominators are joined, and at most 256 ops.

Norms are written out first, as TVM's simplification for inference does; softmax is opaque.

References
----------
.. [1] T. Chen et al., "TVM: An Automated End-to-End Optimizing Compiler for Deep Learning", OSDI 2018, section 3.
.. [2] Apache TVM, src/relay/transforms/fuse_ops.cc and include/tvm/relay/op_attr_types.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.decompose import RULES, decompose
from fusesim.strategies.base import as_plan
from fusesim.strategies.quotient import Quotient
from fusesim.templates import shape_of
from fusesim.topology import bits, topology

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.strategies.base import Context
    from fusesim.topology import Item, Topology

ELEMENTWISE, BROADCAST, INJECTIVE, REDUCTION, COMPLEX, OPAQUE = 0, 1, 2, 3, 4, 8
MOST_OPS: Final = 256
OPAQUE_COMPOSITES: Final = frozenset({"softmax", "log_softmax"})
INJECTIVE_KINDS: Final = frozenset({"copy", "concat", "pad", "embedding", "index", "gather"})


def decide(graph: Graph, context: Context) -> FusionPlan:
    """Return what the pass makes of the graph."""
    del context
    form = decompose(graph, [kind for kind in RULES if kind not in OPAQUE_COMPOSITES])
    topo = topology(form)
    fusion = _Fusion(topo)
    for phase in (0, 1):
        for place in range(len(topo.names)):
            fusion.visit(place, phase)
    return as_plan(form, topo, fusion.quotient.groups(), "tvm", source=graph)


def pattern_of(item: Item) -> int:
    """Return the class of an op."""
    if item.role in {"matmul", "conv"}:
        return COMPLEX
    if item.role == "reduce":
        return REDUCTION
    if item.role != "point" or item.kind in {"dropout", "rand"}:
        return OPAQUE
    if item.kind in INJECTIVE_KINDS:
        return INJECTIVE
    return BROADCAST if any(read.shape != item.shape for read in item.reads) else ELEMENTWISE


class _Fusion:
    """The state of the pass: groups, the class of each, and who post-dominates whom."""

    def __init__(self, topo: Topology) -> None:
        self.topo = topo
        self.quotient = Quotient(topo)
        self.pattern = [pattern_of(item) for item in topo.items]
        self.group_pattern = dict(enumerate(self.pattern))
        self.parent: list[int | None] = [None] * len(topo.names)
        self.path = [OPAQUE] * len(topo.names)
        self.depth = [1] * len(topo.names)
        for place in reversed(range(len(topo.names))):
            self._dominate(place)

    def _dominate(self, place: int) -> None:
        """Find an op's immediate post-dominator and the widest class on the ways there."""
        item = self.topo.items[place]
        readers = 0
        for write in item.writes:
            readers |= write.readers
        if not readers or any(write.kept for write in item.writes):
            return
        common: int | None = None
        widest = ELEMENTWISE
        for count, reader in enumerate(bits(readers)):
            widest = max(widest, self._edge(place, reader))
            if count == 0:
                common = reader
            else:
                common, widest = self._meet(common, reader, widest)
        self.parent[place], self.path[place] = common, widest
        self.depth[place] = 1 if common is None else self.depth[common] + 1

    def _edge(self, place: int, reader: int) -> int:
        """Return the class of one use: a broadcast op uses an operand of its own shape element-wise."""
        item = self.topo.items[reader]
        pattern = self.pattern[reader]
        for read in item.reads:
            if read.producer == place:
                if read.moved:
                    return max(pattern, INJECTIVE)
                if pattern == BROADCAST and read.shape == item.shape:
                    return ELEMENTWISE
        return pattern

    def _meet(self, one: int | None, other: int | None, widest: int) -> tuple[int | None, int]:
        """Return where two ops' post-dominators meet, and the widest class on the way."""
        while one != other:
            if one is None or other is None:
                return None, widest
            left, right = self.depth[one], self.depth[other]
            if left >= right:
                widest = max(widest, self.path[one])
                one = self.parent[one]
            if right >= left:
                widest = max(widest, self.path[other])
                other = self.parent[other]
        return one, widest

    def visit(self, place: int, phase: int) -> None:
        """Join one op to its post-dominator where a rule says so."""
        sink = self.parent[place]
        if sink is None or self.quotient.owner[place] == self.quotient.owner[sink]:
            return
        kind = self.group_pattern[self.quotient.owner[place]]
        between = self.topo.descendants[place] & self.topo.ancestors[sink]
        if kind == COMPLEX and phase == 0 and self.path[place] == ELEMENTWISE:
            self._commit(place, sink, between, lambda other, _: other <= BROADCAST)
        elif kind <= BROADCAST and (self.path[place] <= INJECTIVE or self.path[place] == REDUCTION):
            self._commit(
                place, sink, between, lambda other, last: other <= INJECTIVE or (last and other in {REDUCTION, COMPLEX})
            )
        elif kind == INJECTIVE and phase == 1:
            self._commit(place, sink, between, lambda other, _: other <= INJECTIVE)

    def _commit(self, place: int, sink: int, between: int, allowed: Callable[[int, bool], bool]) -> None:
        """Join an op, its post-dominator and what lies between, if all of them allow it."""
        quotient = self.quotient
        last = quotient.owner[sink]
        if not allowed(self.group_pattern[last], True):
            return
        owners = dict.fromkeys(quotient.owner[other] for other in bits(between))
        if not all(allowed(self.group_pattern[other], False) for other in owners if other != last):
            return
        whole = 0
        for other in (quotient.owner[place], *owners, last):
            whole |= quotient.masks[other]
        if whole.bit_count() > MOST_OPS or shape_of(self.topo, whole).reason or self.topo.between(whole):
            return
        widest = max(self.group_pattern[quotient.owner[other]] for other in bits(whole))
        self.group_pattern[quotient.unite(whole)] = widest
