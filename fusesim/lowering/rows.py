"""PyTorch's kernels over rows: reductions, softmax, norms. Which one a row gets depends on its length alone.

Rules as PyTorch 2.11's sources state them and its launches show them on an H200: see each function.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access, Launch
from fusesim.lowering.access import accesses, ceil, width
from fusesim.lowering.slow_paths import slow_row

if TYPE_CHECKING:
    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target

THREADS: Final = 512
"""Threads of a block of the reduction kernel."""

WARP: Final = 32

COLUMN_THREADS: Final = 128
COLUMN_VECTOR: Final = 4
"""Threads of a block of the reduction kernel where results lie next to each other, and results of one thread."""

MEETING_TRIPS: Final = 8
"""Trips to the cache until a column's parts can be added up: each block writes its own, waits for that to be seen,
counts itself, and is told. Of 0, 4, 6 and 8, what fits sums over 82 matrices best (H200)."""

SLOTS: Final = {"var": 6, "var_mean": 6, "amax": 2, "amin": 2, "argmax": 4, "argmin": 4, "max": 4, "min": 4, "norm": 2}
"""Instructions per element of reductions other than a sum's one."""

REDUCTIONS: Final = {
    "var": "var",
    "var_mean": "var",
    "amax": "max",
    "amin": "max",
    "argmax": "max",
    "argmin": "max",
    "max": "max",
    "min": "max",
}
"""Which class of reduction a kind belongs to; the others are sums."""


def below(value: float) -> int:
    """Return the largest power of two that is not larger."""
    return 1 << max(int(value).bit_length() - 1, 0)


def above(value: int) -> int:
    """Return the smallest power of two that is not smaller."""
    return 1 << max((int(value) - 1).bit_length(), 0)


def extents(graph: Graph, node: Node) -> tuple[int, int]:
    """Return rows and columns: how many results, and how many values each is made of."""
    x = graph.tensors[node.inputs[0]]
    dims = node.attr("dims", (len(x.shape) - 1,))
    columns = math.prod(x.shape[dim] for dim in dims)
    return max(x.elements // max(columns, 1), 1), max(columns, 1)


def row_reduction(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of a reduction of rows that lie in one piece.

    Notes
    -----
    A warp takes a row; where that leaves a thread 16 times as many values as the block has rows, or 256, the whole
    block takes it. Where even that leaves many values to few blocks, several blocks share a row and meet through
    memory, behind a memset of their semaphores.
    """
    x = graph.tensors[node.inputs[0]]
    rows, columns = extents(graph, node)
    across, down = min(below(columns), THREADS), min(below(rows), THREADS)
    wide = min(across, WARP)
    high = min(down, THREADS // wide)
    wide = min(across, THREADS // high)
    per_thread = math.ceil(columns / wide)
    whole = per_thread >= high * 16 or per_thread >= 256  # noqa: PLR2004 - PyTorch's own limits
    lanes, rows_per_block = (wide * high, 1) if whole else (wide, high)
    blocks = math.ceil(rows / rows_per_block)
    per_thread = math.ceil(columns / lanes)
    launches = []
    split = 1
    if whole and per_thread >= 256 and blocks < target.machine.sms * 4:  # noqa: PLR2004
        split = max(min(int(target.machine.sms * 4 // blocks), per_thread // 16), 1)
        if split > 1:
            launches.append(memset(f"{node.name}.semaphores", 4.0 * blocks))
    kind = REDUCTIONS.get(node.kind, "sum")
    unroll = 1 if kind == "var" else 4
    slow = slow_row(graph, node)
    launches.append(
        Launch(
            name=node.kind,
            row=f"{kind}_{'block' if whole else 'warp'}{width(x)}" if split == 1 else f"sum_split{width(x)}",
            nodes=(node.name,),
            reads=accesses(graph, node.inputs),
            writes=accesses(graph, node.outputs),
            elements=float(x.elements),
            blocks=float(blocks * split),
            threads=wide * high,
            resident=max(target.machine.resident_threads // (wide * high), 1),
            steps=math.ceil(columns / (lanes * split * unroll)),
            slots=SLOTS.get(node.kind, 1) + slow.slots,
            serial=slow.cycles * per_thread / split,
            arithmetic=node.row.flops * x.elements,
        )
    )
    return launches


def column_reduction(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernels of a reduction whose results lie next to each other; split over blocks where they are few.

    Notes
    -----
    A thread loads four results' values at once, up to 32 threads lie side by side, and the rest of a block's 128 share
    the columns if those are long enough, else take further results. Parts of columns meet behind a memset: the block
    that comes last reads them from the cache, as many at once as it has threads on top of each other, one after
    the other, while all others are idle. That is why tall, narrow matrices are slow.
    """
    x = graph.tensors[node.inputs[0]]
    rows, columns = extents(graph, node)
    wide = min(below(rows / COLUMN_VECTOR), WARP)
    high = COLUMN_THREADS // wide
    shared = columns >= high * 16 or columns >= 256  # noqa: PLR2004 - PyTorch's own limits
    blocks = math.ceil(rows / (COLUMN_VECTOR * (wide if shared else COLUMN_THREADS)))
    per_thread = math.ceil(columns / high) if shared else columns
    split, launches, machine = 1, list[Launch](), target.machine
    if per_thread >= 256:  # noqa: PLR2004 - PyTorch's own limit
        split = max(min(math.ceil(machine.sms * 16 / blocks), math.ceil(per_thread / 16)), 1)
    if split > 1:
        launches.append(memset(f"{node.name}.semaphores", 4.0 * blocks))
    trips = math.ceil(split / high) + MEETING_TRIPS if split > 1 else 0
    launches.append(
        Launch(
            name=node.kind,
            row=f"columns{width(x)}",
            nodes=(node.name,),
            reads=accesses(graph, node.inputs),
            writes=accesses(graph, node.outputs),
            elements=float(x.elements),
            blocks=float(blocks * split),
            threads=COLUMN_THREADS,
            resident=9,
            steps=math.ceil(per_thread / split),
            slots=SLOTS.get(node.kind, 1),
            serial=trips * machine.cache_latency * machine.clock,
            arithmetic=node.row.flops * x.elements,
        )
    )
    return launches


def memset(storage: str, size: float) -> Launch:
    """Return the node that clears a little memory."""
    return Launch(name="memset", row="memset", writes=(Access(storage, size),), elements=0.0)


SOFTMAX_REGISTERS: Final = {2048: 80, 1024: 48}
"""Registers per thread of the kernel that keeps a row in a warp's registers, by the row rounded up."""


def softmax(graph: Graph, node: Node, target: Target) -> list[Launch]:
    """Return the kernel of a softmax or its logarithm.

    Notes
    -----
    Rows of up to 2048 values: a warp keeps a row in registers. Longer: a block of 1024 threads keeps it in registers up
    to nine values per thread, else in shared memory as far as that goes, else it reads it three times.
    """
    x = graph.tensors[node.inputs[0]]
    rows, columns = extents(graph, node)
    name = "softmax" if node.kind == "softmax" else "log_softmax"
    steps, again, elements, slow = 1.0, 0.0, float(x.elements), slow_row(graph, node)
    threads, blocks, resident = 1024, float(rows), 2.0
    if columns <= 2048:  # noqa: PLR2004
        size = above(columns)  # instructions for as many, those beyond the row masked
        elements = float(rows * size)
        form, threads = "warp", 128
        blocks = ceil(rows, 8.0 if size <= 128 else 4.0)  # noqa: PLR2004
        registers = SOFTMAX_REGISTERS.get(size, 32)
        resident = min(16.0, 65536 // (registers * threads))
        steps = ceil(columns, 32.0)
    elif columns <= 9 * 1024:
        form, steps = "registers", ceil(columns, 1024.0)
        resident = 2.0 if columns <= 6 * 1024 else 1.0
    elif columns * x.itemsize <= 48 * 1024:
        form, steps = "shared", ceil(columns * x.itemsize, 16.0 * 1024.0)
    else:
        form, steps, again = "loop", 3.0 * ceil(columns * x.itemsize, 16.0 * 1024.0), 2.0 * x.bytes
    return [
        Launch(
            name=node.kind,
            row=f"{name}_{form}{width(x)}",
            nodes=(node.name,),
            reads=accesses(graph, node.inputs),
            writes=accesses(graph, node.outputs),
            again=again,
            window=min(blocks, target.machine.sms * resident) * columns * x.itemsize,
            elements=elements,
            blocks=blocks,
            threads=threads,
            resident=resident,
            steps=steps,
            slots=10 + slow.slots,
            serial=slow.cycles * ceil(columns, 32.0 if form == "warp" else 1024.0),
            special=1,
            arithmetic=node.row.flops * x.elements,
        )
    ]
