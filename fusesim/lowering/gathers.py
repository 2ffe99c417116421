"""PyTorch's kernels that read rows or elements at places that an index names."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.launches import SECOND_PASS, Access, Launch
from fusesim.lowering.access import accesses, ceil
from fusesim.lowering.rows import WARP
from fusesim.lowering.strided import SECTOR

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target
    from fusesim.tensor import Tensor

PAIR: Final = 64.0
"""Bytes that memory hands out at once. [B]"""

PIECE: Final = 4096.0
"""Bytes of a row that one block copies: 256 threads of 16 bytes; a shorter row takes a block of its own."""


def gather(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernel that reads rows or elements at places that an index names: only those are read.

    Notes
    -----
    Rows of a multiple of 16 bytes are copied whole, a block for each: by an embedding, an index of rows, and a gather
    whose index is the same along a row. Elements are read one by one: of every sector that is touched, all of it.
    """
    del target
    output, table = graph.tensors[node.outputs[0]], graph.tensors[node.inputs[0]]
    if node.kind == "embedding_bag":
        return _bag(graph, node, output, table)
    row = output.shape[-1] * output.itemsize if output.shape else 0
    if row and row % 16 == 0 and len(node.inputs) == 2 and _names_rows(graph, node):  # noqa: PLR2004
        return [_rows(graph, node, output, table, row)]
    return [_elements(graph, node, output, table)]


def _elements(graph: Graph, node: Node, output: Tensor, table: Tensor) -> Launch:
    """Return the kernel that reads element by element.

    Notes
    -----
    Along the last dimension a row's elements share what the row brings into the SM. Along another every element is a
    sector of its own, and where the table exceeds the cache memory is asked for it again, two sectors at once.
    """
    count = float(output.elements)
    if node.kind != "gather":  # rows of an odd width
        rows = _launch(graph, node, "gather_elements", float(output.bytes), count)
        return replace(rows, blocks=max(ceil(count, 1024.0), 1.0))
    touched = table.bytes * -math.expm1(-count * PAIR / max(table.bytes, 1.0))
    launch = _launch(graph, node, "gather_elements", touched, count)
    launch = replace(launch, blocks=max(ceil(count, 1024.0), 1.0))
    if node.attr("dim", -1) in {-1, len(table.shape) - 1}:
        return launch
    again = max(count * PAIR - touched, 0.0)
    crossing = max(count * SECTOR - touched - SECOND_PASS * again, 0.0)
    return replace(launch, again=again, window=touched, crossing=crossing)


def _names_rows(graph: Graph, node: Node) -> bool:
    """Return whether an index names whole rows."""
    if node.kind in {"embedding", "index"}:
        return True
    index = graph.tensors[node.inputs[1]]
    return node.attr("dim", -1) == 0 and len(index.shape) > 1 and not any(index.strides[1:])


def _launch(graph: Graph, node: Node, row: str, read: float, elements: float) -> Launch:
    """Return a kernel that reads so many bytes of a table, and all of its index."""
    table = graph.tensors[node.inputs[0]]
    return Launch(
        name=node.kind,
        row=row,
        nodes=(node.name,),
        reads=(Access(table.storage, float(min(read, table.bytes))), *accesses(graph, node.inputs[1:])),
        writes=accesses(graph, node.outputs),
        elements=elements,
    )


def _rows(graph: Graph, node: Node, output: Tensor, table: Tensor, row: int) -> Launch:
    """Return the kernel that copies rows: a block for each, or for every `PIECE` of it."""
    del table
    rows = output.bytes / row
    threads = int(min(ceil(row / 16, 32.0) * 32, PIECE / 16))
    launch = _launch(graph, node, "gather_rows", float(output.bytes), float(output.bytes) / 16.0)
    return replace(launch, blocks=max(rows * ceil(row, PIECE), 1.0), threads=threads, resident=min(2048 // threads, 32))


BAG_THREADS: Final = 1024 * 256
"""Threads of the kernel that adds up rows of a table, whatever the size."""

OPENED: Final = 6.0
"""Rows that take as long as finding a bag (H200: 3 us for a bag of one row, 0.4 us for each more)."""


def _bag(graph: Graph, node: Node, output: Tensor, table: Tensor) -> list[Launch]:
    """Return the kernel that adds up rows; where no offsets are given, they are made first.

    Notes
    -----
    A thread takes a result after the other: it waits for where its bag begins and ends, which takes as long as `OPENED`
    rows, and for the place and the value of each row in turn; threads beside it take turns with it at loading.
    """
    named, width = graph.tensors[node.inputs[1]].elements, output.shape[-1]
    each = OPENED + named / max(output.shape[0], 1)
    lanes = output.shape[0] * ceil(width, WARP) * WARP  # of a warp, what lies beyond a row is idle
    steps = max(ceil(lanes, BAG_THREADS), 1.0) * each
    bag = _launch(graph, node, "bag", float(named * width * table.itemsize), lanes * each)
    bag = replace(bag, blocks=1024.0, threads=256, resident=8, steps=steps)
    if len(node.inputs) == 2:  # noqa: PLR2004 - no offsets
        offsets = (Access(f"{node.name}.offsets", 8.0 * output.shape[0]),)
        return [Launch(name="arange", row="vectorised32", writes=offsets), bag]
    return [bag]
