"""MLIR's fusion of element-wise ops on tensors: a producer goes into the one op that uses it.

Rules, of the pass `linalg-fuse-elementwise-ops` with its default control function:

1. The producer computes each value by itself (all loops parallel): pointwise ops, copies, gathers. A reduction is
   never a producer, so nothing behind it joins it.
2. Its result has exactly one use; a result that two ops read, or that is returned, stays in memory.
3. The consumer is a generic op: pointwise or a reduction, which reads at places that its loops fix, so no gather of
   the value. Matrix products and convolutions are named ops and stay alone, in front of them as behind.

References
----------
.. [1] LLVM project, mlir/lib/Dialect/Linalg/Transforms/ElementwiseOpFusion.cpp.
.. [2] MLIR documentation, "linalg Dialect" and "Passes": -linalg-fuse-elementwise-ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.strategies.base import as_plan
from fusesim.strategies.quotient import Quotient
from fusesim.strategies.vertical import decomposed
from fusesim.templates import shape_of
from fusesim.topology import topology

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.strategies.base import Context
    from fusesim.topology import Topology

NO_PRODUCERS: Final = frozenset({"concat", "pad", "dropout", "rand"})
"""Pointwise kinds that are no generic op: tensor ops and random numbers."""


def decide(graph: Graph, context: Context) -> FusionPlan:
    """Return what the pass makes of the graph with composite ops written out."""
    del context
    form = decomposed(graph)
    topo = topology(form)
    quotient = Quotient(topo)
    for place in range(len(topo.names)):
        user = only_user(topo, place)
        if user is not None and _producer(topo, place) and _consumer(topo, user, place):
            one, other = quotient.owner[place], quotient.owner[user]
            whole = quotient.masks[one] | quotient.masks[other]
            if one != other and not shape_of(topo, whole).reason and not quotient.blocked(one, other):
                quotient.merge(one, other)
    return as_plan(form, topo, quotient.groups(), "mlir", source=graph)


def only_user(topo: Topology, place: int) -> int | None:
    """Return the one op that uses what an op makes, None where there are more, none, or the graph returns it."""
    readers = 0
    for write in topo.items[place].writes:
        if write.kept:
            return None
        readers |= write.readers
    return readers.bit_length() - 1 if readers.bit_count() == 1 else None


def _producer(topo: Topology, place: int) -> bool:
    """Return whether an op may be fused into its user."""
    item = topo.items[place]
    return item.role == "point" and item.kind not in NO_PRODUCERS


def _consumer(topo: Topology, user: int, place: int) -> bool:
    """Return whether an op takes its producer in: a generic op that does not choose what it reads of it."""
    item = topo.items[user]
    return item.role in {"point", "reduce"} and not any(read.chosen and read.producer == place for read in item.reads)
