"""In how many passes a generated kernel goes over its rows, and what each pass computes.

A row that does not fit on chip is read anew for each reduction that needs the one before, and once more for what
needs the last. A maximum and a sum of powers that needs it share a pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.graph import Graph, Node

VARIANCES: Final = frozenset({"var", "var_mean"})

UNROLLED: Final = 5
RUNNING: Final = 3.0
DIVIDING: Final = 17.0
"""Instructions per value of a running variance beyond those of a plain sum. Up to this many steps the compiler writes
the loop out, knows how many values have been seen, and divides by constants; where the last step is full as well, by
the same for all threads, which costs nothing (Triton 3.6 for sm_90: 21, 6.5 and 3.6 instructions per value; a plain sum
has 3.5)."""

ONLINE_SLOTS: Final = 20.0
"""Instructions per value of a running maximum with its sum of powers beyond those of plain reductions: two powers.
Compiled, such a loop has 33 instructions per value, some 17 beyond what is counted here; it takes as long as 20."""

JOINED: Final = 45.0
JOINED_MAXIMUM: Final = 120.0
JOINED_VARIANCE: Final = 250.0
JOINED_EVEN: Final = 160.0
"""Instructions of each thread after a loop, to join what its block has: a plain reduction, a maximum with its sum of
powers, a variance, and one of threads that have seen as many values (five shuffles, shared memory, four shuffles;
Triton 3.6 for sm_90, 512 threads)."""

SHUFFLED: Final = 12.0
"""Instructions of each thread to join what one warp has of a row: five shuffles."""


def pass_levels(graph: Graph, nodes: Sequence[Node]) -> dict[str, int]:
    """Return in which pass over its row each op is computed: after every reduction that it needs.

    A maximum and the sum of powers that needs it share a pass: the sum is corrected where the maximum grows.
    """
    levels: dict[str, int] = {}
    after: dict[str, int] = {}
    softened: dict[str, set[str]] = {}
    powers: set[str] = set()
    own = {node.name for node in nodes}
    for node in nodes:
        before = [made for made in _producers(graph, node) if made.name in own]
        soft = set[str]().union(*(softened.get(made.name, set()) for made in before))
        power = any(made.name in powers for made in before)
        level = max((after[made.name] for made in before), default=0)
        reduction = node.family == "reduction"
        if node.kind == "sum" and reduction and power:
            level -= level == max(after[name] for name in soft)
        levels[node.name] = level
        after[node.name] = level + reduction
        softened[node.name] = soft | {node.name} if node.kind == "amax" else set() if reduction else soft
        if not reduction and (power or (node.kind == "exp" and soft)):
            powers.add(node.name)
    return levels


def _producers(graph: Graph, node: Node) -> list[Node]:
    """Return the ops that made what an op reads, views seen through."""
    found = (graph.producers.get(graph.base(name)) for name in node.inputs)
    return [made for made in found if made is not None]


def passes(
    graph: Graph, nodes: Sequence[Node], levels: dict[str, int], outputs: set[str], whole: int
) -> list[list[Node]]:
    """Return for each pass the ops that it computes: what its reductions or results need, found anew.

    `outputs` are stored; those of at least `whole` values are made in a pass of their level.
    """

    def ends(node: Node) -> bool:
        if node.family == "reduction":
            return True
        return bool(outputs & set(node.outputs)) and graph.tensors[node.outputs[0]].elements >= whole

    made = []
    for level in range(max(levels.values(), default=0) + 1):
        found = _cone(graph, nodes, [node for node in nodes if levels[node.name] == level and ends(node)])
        if found:
            made.append(found)
    return made


def _cone(graph: Graph, nodes: Sequence[Node], ends: list[Node]) -> list[Node]:
    """Return ops with all that is computed on the way to them; reductions are looked up, not computed again."""
    own = {node.name for node in nodes}
    found: dict[str, Node] = {}
    stack = list(ends)
    while stack:
        node = stack.pop()
        if node.name in found:
            continue
        found[node.name] = node
        stack.extend(made for made in _producers(graph, node) if made.name in own and made.family != "reduction")
    return list(found.values())


def running_slots(graph: Graph, ops: Sequence[Node], steps: float) -> float:
    """Return what running reductions of one pass issue per value beyond plain ones, in a row of so many steps."""
    variances, maxima, _ = _reductions(graph, ops)
    running = 0.0 if steps.is_integer() else RUNNING if steps <= UNROLLED else DIVIDING
    return running * variances + ONLINE_SLOTS * maxima


def joining_slots(graph: Graph, ops: Sequence[Node], steps: float) -> float:
    """Return what a thread issues after one pass to join its block's results."""
    variances, maxima, plain = _reductions(graph, ops)
    variance = JOINED_EVEN if steps.is_integer() else JOINED_VARIANCE
    return variance * variances + JOINED_MAXIMUM * maxima + JOINED * plain


def _reductions(graph: Graph, ops: Sequence[Node]) -> tuple[int, int, int]:
    """Return how many variances, maxima with sums of powers, and plain reductions a pass has."""
    kinds = [node.kind for node in ops if node.family == "reduction"]
    variances = len({graph.base(node.inputs[0]) for node in ops if node.kind in VARIANCES})
    maxima = int("sum" in kinds and "amax" in kinds and _powers(graph, ops))
    plain = sum(kind not in VARIANCES for kind in kinds)
    return variances, maxima, plain - 2 * maxima


def _powers(graph: Graph, ops: Sequence[Node]) -> bool:
    """Return whether a sum adds up what needs a maximum of the same pass."""
    maxima = {name for node in ops if node.kind == "amax" for name in node.outputs}
    need: dict[str, bool] = {}
    for node in sorted(ops, key=lambda node: graph.index[node.name]):
        found = any(graph.base(n) in maxima or need.get(graph.base(n), False) for n in node.inputs)
        need.update(dict.fromkeys(node.outputs, found))
        if node.kind == "sum" and found:
            return True
    return False
