"""Generated kernels of pointwise groups: one loop over all values."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim.launches import Launch
from fusesim.lowering.access import aligned_strides, ceil
from fusesim.lowering.counting import arithmetic, odd_loop

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node
    from fusesim.lowering.counting import Arithmetic, Part

THREADS: Final = 128
"""Threads of a block of a generated loop."""

LEAST_BLOCK: Final = 256.0
MOST_BLOCK: Final = 1024.0
"""Values of a block, a power of two between these, smaller for fewer values."""

SECTOR_VALUES: Final = 8
"""A fastest dimension shorter than this uses sectors of memory whole even where it is turned."""


def pointwise_loop(part: Part, path: str) -> list[Launch]:
    """Return the kernel of a pointwise group: one loop over the largest result.

    Triton's approximate division and its device library call no subroutine, so a thread's values overlap and none waits
    for another: six sigmoids on 400,000 values take what they issue (h200_generated_more.json).
    """
    graph = part.graph
    elements = float(max(graph.tensors[node.outputs[0]].elements for node in part.nodes))
    known = arithmetic(graph, part.nodes, elements, part.shares)
    loop = loop_over(part, elements, known, float(len(part.reads)), _class(part, path, elements))
    if path != "cuda":
        return [loop]
    serial = known.serial * _values_of_block(elements) / THREADS
    return [replace(loop, serial=serial, branched=0.0, chain=0.0)]


def loop_over(part: Part, elements: float, known: Arithmetic, loads: float, row: str = "") -> Launch:
    """Return a kernel in which each thread makes some of so many values.

    Parameters
    ----------
    part : Part
        What is computed.
    elements : float
        Values that are made.
    known : Arithmetic
        What one of them takes.
    loads : float
        How many values are loaded for it.
    row : str
        The class, if it is not that of plain loops.
    """
    per_block = _values_of_block(elements)
    return Launch(
        name=part.title,
        row=row or _plain(part, elements),
        nodes=part.names,
        reads=part.reads,
        writes=part.writes,
        elements=elements,
        blocks=max(ceil(elements, per_block), 1.0),
        threads=THREADS,
        resident=16,
        slots=known.slots + loads + len(part.writes),
        special=known.special,
        branched=known.branched,
        chain=per_block / THREADS,
        code=known.slots * per_block / THREADS,
        arithmetic=known.flops,
    )


def _values_of_block(elements: float) -> float:
    """Return how many of so many values a block makes."""
    per_block = min(max(elements / 128.0, LEAST_BLOCK), MOST_BLOCK)
    return float(1 << math.floor(math.log2(per_block)))


def _class(part: Part, path: str, elements: float) -> str:
    """Return the class of a loop: by its widest element, and whether an operand lies the other way round."""
    if any(turned(part.graph, name, part.nodes) for name in part.inputs):
        return f"gen_turned{part.wide}"
    return "cuda" if path == "cuda" else _plain(part, elements)


def _plain(part: Part, elements: float) -> str:
    """Return the class of a loop whose operands all lie as its results do."""
    return f"gen_loop{odd_loop(part.graph, part.inputs, elements)}{part.wide}"


def turned(graph: Graph, name: str, nodes: tuple[Node, ...]) -> bool:
    """Return whether a large operand's fastest dimension is not that of what is made of it."""
    return any(_reads_turned(graph, name, node) for node in nodes if name in node.inputs)


def _reads_turned(graph: Graph, name: str, node: Node) -> bool:
    """Return whether one op reads a large operand across its fastest dimension."""
    tensor, output = graph.tensors[name], graph.tensors[node.outputs[0]]
    shape = output.shape
    if len(tensor.shape) > len(shape) or (node.family != "pointwise" and node.kind != "copy"):
        return False
    own = aligned_strides(output, shape)
    dims = [dim for dim in range(len(shape)) if shape[dim] > 1 and own[dim]]
    fast = min(dims, key=lambda dim: own[dim], default=None)
    if fast is None or shape[fast] < SECTOR_VALUES:
        return False
    return aligned_strides(tensor, shape)[fast] > 1 and 2 * tensor.distinct > math.prod(shape)
