"""What kernels allocate for themselves while they run: a table by kind of op. Knows no device.

A kernel of a framework's library may need memory besides its inputs and outputs: statistics that inference drops, a
workspace that it clears. What a library keeps from call to call (cuBLAS) is not allocated and not here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fusesim.memory import ALLOCATION_STEP
from fusesim.tensor import INTEGERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.fusion import FusionPlan, Group
    from fusesim.graph import Graph, Node

STATISTIC: Final = 4
"""Bytes of one statistic that a composite keeps: a mean or a variance in fp32. [B]"""


MIB: Final = 2**20
"""One mebibyte, the unit of the allocator's own limits. [B]"""

LARGE, SEGMENT, SPLIT = 10 * MIB, 2 * MIB, MIB
"""From `LARGE` on PyTorch asks for segments of a multiple of `SEGMENT`, and splits them where more than `SPLIT` is left
(c10/cuda/CUDACachingAllocator, its documented defaults). [B]"""


def allocation(size: int) -> int:
    """Return what a caching allocator sets aside for a tensor of `size` bytes: whole steps. [B].

    Examples
    --------
    >>> allocation(1), allocation(512), allocation(0)
    (512, 512, 0)
    """
    return -(-size // ALLOCATION_STEP) * ALLOCATION_STEP


def torch_allocation(size: int) -> int:
    """Return what PyTorch's allocator counts for a tensor of `size` bytes. [B].

    Notes
    -----
    As `allocation`; a large tensor has a segment of its own, and where no more than 1 MiB of it would be left over, the
    rest counts as well. Seen on an H200: the peak of ResNet-50 holds three tensors of 49 MiB as 50 MiB each. It fails
    where an earlier program left a larger free block, which is split: then the figure is at most 1 MiB too high for
    each tensor. The same happens to tensors of 1 to 10 MiB at the end of the segments of 20 MiB that they share; which,
    depends on what came before, so it is not counted.

    Examples
    --------
    >>> torch_allocation(49 * MIB) // MIB, torch_allocation(48 * MIB + 512 * 1024) / MIB
    (50, 48.5)
    """
    rounded = allocation(size)
    if rounded < LARGE:
        return rounded
    segment = -(-rounded // SEGMENT) * SEGMENT
    return segment if segment - rounded <= SPLIT else rounded


ALLOCATORS: Final[dict[str, Callable[[int], int]]] = {"torch": torch_allocation, "step": allocation}
"""How memory is handed out, by name: PyTorch's allocator, or steps of 512 B alone (CuPy's pool)."""


def _statistics(count: int) -> Callable[[Graph, Node], int]:
    """Return a rule: that many statistics per row, each an allocation of its own."""

    def rule(graph: Graph, node: Node) -> int:
        x = graph.tensors[node.inputs[0]]
        dims = node.attr("dims", (len(x.shape) - 1,))
        rows = math.prod(size for dim, size in enumerate(x.shape) if dim not in dims)
        return count * allocation(rows * STATISTIC)

    return rule


def _per_channel(graph: Graph, node: Node) -> int:
    """Return two statistics per channel."""
    return 2 * allocation(graph.tensors[node.inputs[0]].shape[1] * STATISTIC)


def _per_group(graph: Graph, node: Node) -> int:
    """Return two statistics per sample and group of channels."""
    return 2 * allocation(graph.tensors[node.inputs[0]].shape[0] * int(node.attr("groups", 1)) * STATISTIC)


def _bags(graph: Graph, node: Node) -> int:
    """Return one whole number per row that is read and one per bag."""
    counts = graph.tensors[node.inputs[1]].elements, graph.tensors[node.outputs[0]].shape[0]
    return sum(allocation(count * INTEGERS["int64"]) for count in counts)


def _steps(count: int) -> Callable[[Graph, Node], int]:
    """Return a rule: that many allocations of the least size."""
    return lambda _graph, _node: count * ALLOCATION_STEP


SCRATCH: Final[dict[str, Callable[[Graph, Node], int]]] = {
    "layer_norm": _statistics(2),  # mean and reciprocal deviation of each row
    "rms_norm": _statistics(1),  # reciprocal root of each row
    "group_norm": _per_group,  # mean and reciprocal deviation
    "batch_norm": _per_channel,  # copies of the mean and of the reciprocal deviation
    "batch_norm_train": _per_channel,
    "nll_loss": _steps(1),  # the sum of the weights
    "attention": _steps(3),  # cuDNN: seed, offset, and a workspace that it clears
    "conv": _steps(1),  # cuDNN's least workspace, which it clears
    "embedding_bag": _bags,  # whose bag each row is, and how large each bag is
}
"""What a framework's kernel of a kind allocates for itself, seen on an H200 with PyTorch 2.11; the others nothing."""


def scratch_bytes(plan: FusionPlan, group: Group) -> int:
    """Return what a group allocates for itself while it runs and frees at its end. [B].

    Notes
    -----
    A generated kernel keeps statistics on chip, so in a group of several ops only the library's own kernel, a
    convolution or attention with what follows it, has any. Statistics that a backward pass keeps are results of their
    op and no scratch.
    """
    nodes = plan.nodes(group)
    lone = len(nodes) == 1
    known = (node for node in nodes if node.kind in SCRATCH and (lone or node.family in {"conv", "attention"}))
    known = (node for node in known if node.family != "normalise" or len(node.outputs) == 1)
    return sum(SCRATCH[node.kind](plan.graph, node) for node in known)
