"""PyTorch's kernels for composites that it runs as one op: norms, softmax, pooling, losses, running sums.

Norms, pictures and rows have files of their own; a kind without a rule of its own is one pass over what it touches.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access, Launch
from fusesim.lowering.access import accesses, ceil, width
from fusesim.lowering.batch_norms import batch_norm, batch_norm_backward, batch_norm_train
from fusesim.lowering.norms import group_norm, layer_norm
from fusesim.lowering.pictures import pool, pool_backward, touched_once, upsample
from fusesim.lowering.rows import THREADS, WARP, softmax

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target

    Rule = Callable[[Graph, Node, Target], list[Launch]]


def normalise(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of composites that have no rows of their own: one pass over what they touch."""
    rule = ROWS.get(node.kind)
    if rule is not None:
        return rule(graph, node, target)
    return [touched_once(graph, node)]


LOSSES, MOST_LOSS_THREADS = 16, 1024
"""Targets that a thread of a loss's only block adds up, and its threads at most: few targets take as long as many."""


def nll_loss(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the one block that gathers the targets' values and adds them up."""
    del target
    x, wanted = graph.tensors[node.inputs[0]], graph.tensors[node.inputs[1]]
    rows = float(max(wanted.elements, 1))
    threads = min(max(1 << round(math.log2(max(rows // LOSSES, 1.0))), WARP), MOST_LOSS_THREADS)
    return [
        Launch(
            name="nll_loss",
            row="nll_loss",
            nodes=(node.name,),
            reads=(Access(x.storage, rows * 32.0), Access(wanted.storage, float(wanted.bytes))),
            writes=accesses(graph, node.outputs),
            elements=rows,
            blocks=1,
            threads=threads,
            resident=1,
            steps=ceil(rows, threads),
            arithmetic=rows,
        )
    ]


def scan(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernel of a running sum along rows.

    Notes
    -----
    512 threads are shared between rows and their values as both numbers are, but for 16 to 512 along a row. They take
    two values each at a time, add them up in a tree, down and up again, and go on: every step waits for the one
    before, and for all threads twice as often as the tree is deep.
    """
    x = graph.tensors[node.inputs[0]]
    columns = max(x.shape[-1], 1)
    rows = max(x.elements // columns, 1)
    wide = (9 + (columns - 1).bit_length() - (rows - 1).bit_length()) // 2
    wide = 1 << min(max(wide, 4), 9)
    steps = ceil(columns, 2.0 * wide)
    return [
        Launch(
            name=node.kind,
            row=f"scan{width(x)}",
            nodes=(node.name,),
            reads=accesses(graph, node.inputs),
            writes=accesses(graph, node.outputs),
            elements=float(x.elements),
            blocks=ceil(rows, THREADS // wide),
            threads=THREADS,
            resident=max(target.machine.resident_threads // THREADS, 1),
            joins=steps,
            steps=steps,
            arithmetic=float(x.elements),
        )
    ]


ROWS: Final[dict[str, Rule]] = {
    "softmax": softmax,
    "log_softmax": softmax,
    "layer_norm": layer_norm,
    "rms_norm": layer_norm,
    "group_norm": group_norm,
    "batch_norm": batch_norm,
    "batch_norm_train": batch_norm_train,
    "batch_norm_backward": batch_norm_backward,
    "nll_loss": nll_loss,
    "cumsum": scan,
    "pool": pool,
    "pool_backward": pool_backward,
    "upsample": upsample,
}
"""Rules of composites."""
