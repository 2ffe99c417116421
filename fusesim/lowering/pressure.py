"""What too much in one kernel costs: registers that do not fit, and products that a library would have done faster.

A compiler keeps the values of a thread in registers; those beyond what a thread may have go to memory of its own and
come back (`fusesim.resources` counts them). They cross the first-level cache, so each is an instruction out and one
in, and bytes that the cache behind it serves as far as all resident threads' share of it fits. Threads with all
registers they may have leave room for few others. Both are counted, neither is fitted: no class of kernels here was
measured with more values than fit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.resources import (
    BASE_REGISTERS,
    POINTER_REGISTERS,
    REGISTER_BYTES,
    VECTOR_BYTES,
    resources_of,
)
from fusesim.textbook_cost import displaces_library
from fusesim.topology import topology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.graph import Graph, Node
    from fusesim.launches import Launch
    from fusesim.lowering.target import Target

GENERATED_SHARE: Final = 0.85
"""Share of a library's rate that a generated product reaches, as in `fusesim.textbook_cost`: an assumption."""


def pressed(graph: Graph, nodes: Sequence[Node], launches: Sequence[Launch], target: Target) -> list[Launch]:
    """Return a group's kernels with what spilled registers add to them.

    Parameters
    ----------
    graph : Graph
        The graph.
    nodes : sequence of Node
        The ops of the group.
    launches : sequence of Launch
        Its kernels; the first computes all ops.
    target : Target
        Where; without its limits nothing spills.

    Returns
    -------
    list of Launch
        The same where all values fit; else the first has more bytes to read again, instructions, and fewer blocks at
        once.

    Notes
    -----
    Per thread, r registers that do not fit are 2 r instructions and 2 r x 4 bytes for the values of its vector. Limits:
    values live at once are an upper bound (`fusesim.resources.liveness`): a compiler may load an operand again.
    """
    most = target.limits.registers_per_thread
    if not launches or most is None or _at_most(graph, nodes, launches[0]) <= most:
        return list(launches)
    topo = topology(graph)
    use = resources_of(topo, topo.mask(node.name for node in nodes), target.limits)
    if not use.spilled:
        return list(launches)
    first = launches[0]
    threads = min(first.elements, float(use.blocks) * use.threads)
    resident = max((target.limits.registers or target.registers) // (int(most) * first.threads), 1.0)
    more = replace(
        first,
        again=first.again + 2.0 * REGISTER_BYTES * use.spilled * threads,
        window=first.window + REGISTER_BYTES * use.spilled * target.machine.sms * resident * first.threads,
        slots=first.slots + 2.0 * use.spilled * threads / max(first.elements, 1.0),
        resident=min(first.resident, resident),
    )
    return [more, *launches[1:]]


def _at_most(graph: Graph, nodes: Sequence[Node], launch: Launch) -> float:
    """Return registers per thread if every value of the group were live at once: quick, and never too few."""
    names = [name for node in nodes for name in (*node.inputs, *node.outputs)]
    widest = max(graph.tensors[name].itemsize for name in names)
    vector = max(1, VECTOR_BYTES // widest)
    pointers = POINTER_REGISTERS * (len(launch.reads) + len(launch.writes))
    return BASE_REGISTERS + pointers + vector * len(set(names))


def displaced(graph: Graph, nodes: Sequence[Node], launch: Launch) -> Launch:
    """Return a product's kernel at a generated one's rate, where its epilogue is none that the library has."""
    topo = topology(graph)
    if displaces_library(topo, topo.mask(node.name for node in nodes)):
        return replace(launch, rate=launch.rate * GENERATED_SHARE)
    return launch
