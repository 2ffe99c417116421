"""What a framework launches without compiling: a kernel per op that is not a view.

Composite ops (softmax, layer norm, attention, ...) are single ops of the graph where the framework has a kernel for
them, so the graph says already what is launched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim.strategies.base import as_plan
from fusesim.topology import topology

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.strategies.base import Context


def decide(graph: Graph, context: Context) -> FusionPlan:
    """Return a group per op."""
    del context
    topo = topology(graph)
    return as_plan(graph, topo, [1 << place for place in range(len(topo.names))], "eager", source=graph)
