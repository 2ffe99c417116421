"""The suites: which cases calibrate a model, which judge it, and which are recorded for later.

"fit" and "mix" are what the cuda path is fitted on, "cupy" what the gap and the dispatch of CuPy's kernels are;
"judge", "plain", "stream-judge" and "cupy-judge" are held out. "matmul", "reduction" and "torch" are recorded only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fusesim.calibrate.cases import MAX_SETS, Case
from fusesim.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Iterator


def _chain(probe: str, ops: tuple[str, ...], elements: int, **fields: Any) -> Case:
    return Case(kind="chain", probe=probe, ops=ops, elements=elements, **fields)


def fit_suite() -> list[Case]:
    """Return the cases that the model of the cuda path is fitted on, each probing one effect."""
    cases = [
        *_floors(),
        *_sizes(),
        *_cache(),
        *_operands(),
        *_arithmetic(),
        *_occupancy(),
        *_serial(),
        *_zeros(),
        *_resident(),
        *_launches(),
    ]
    return list(dict.fromkeys(cases))


def _floors() -> Iterator[Case]:
    """Empty and smallest kernels, few and many to a graph: the floor per node and the cost of a replay."""
    for sets in (1, 4, 16, 64, 256):
        yield Case(kind="empty", probe="floor", sets=sets)
        yield _chain("floor", ("mul",), 2048, sets=sets)
        yield _chain("floor", ("mul",) * 4, 2048, sets=sets, fused=False)


def _sizes() -> Iterator[Case]:
    """One kernel and short chains over all sizes: latency, bandwidth."""
    for power in range(10, 29):
        for dtype in ("bf16", "fp32"):
            yield _chain("size", ("mul",), 1 << power, dtype=dtype)
        if power % 2 == 0:
            yield _chain("size", ("mul", "add", "relu"), 1 << power, fused=False)


def _cache() -> Iterator[Case]:
    """Unfused chains around the capacity of the cache, in steps of 2 MiB; and inputs that stay in it."""
    for mebibytes in (1, 2, 4, 6, 8, *range(10, 50, 2), 56, 64, 80, 96):
        yield _chain("cache", ("mul",) * 4, mebibytes << 19, fused=False)
    for power in range(11, 27):
        yield _chain("warm", ("mul",), 1 << power, sets=1)
    for mebibytes in (12, 20, 24, 28, 36, 40, 44):
        yield _chain("warm", ("mul",), mebibytes << 19, sets=1)


def _operands() -> Iterator[Case]:
    """Extra operands: more reads per write."""
    for power in (16, 20, 22, 24, 26):
        for ops in (("add_tensor",), ("add_tensor",) * 3):
            yield _chain("operands", ops, 1 << power)
            yield _chain("operands", ops, 1 << power, fused=False)
        yield _chain("operands", ("add_row", "mul_row"), 1 << power, row=4096)


def _arithmetic() -> Iterator[Case]:
    """Every op alone and repeated, in the cache and out of it: issue and special-function slots."""
    for name, op in OPS.items():
        if op.tensors or op.rows:
            continue
        for dtype in ("bf16", "fp32", "fp16"):
            yield _chain("arithmetic", (name,) * 4, 1 << 25, dtype=dtype)
            yield _chain("arithmetic", (name,) * 12, 1 << 22, dtype=dtype)
        yield _chain("arithmetic", (name,), 1 << 24, dtype="bf16")


def _occupancy() -> Iterator[Case]:
    """Heavy arithmetic on few blocks: only as many SMs work as there are blocks."""
    for power in range(11, 23):
        for name in ("gelu", "exp"):
            yield _chain("occupancy", (name,) * 8, 1 << power)


def _serial() -> Iterator[Case]:
    """Every op repeated in a single block: how long one thread takes when nothing else hides its latency."""
    for name in _unary():
        for dtype in ("bf16", "fp32"):
            yield _chain("serial", (name,) * 8, 2048, dtype=dtype, sets=MAX_SETS)
        yield _chain("serial", (name,) * 4, 2048, sets=MAX_SETS)
        yield _chain("serial", (name,) * 8, 132 * 4096)


def _zeros() -> Iterator[Case]:
    """Every op on values of which half are exactly zero: IEEE division then leaves its fast path."""
    for name in _unary():
        yield _chain("zeros", ("relu", *(name,) * 3), 1 << 23)


def _resident() -> Iterator[Case]:
    """Long unfused chains whose intermediates stay in the cache: the time of one kernel between two others."""
    for elements in (2048, 16_384, 40_000, 70_000, 135_168, 300_000, 540_000, 800_000, 1_081_344, 1_200_000):
        for depth in (4, 12):
            yield _chain("resident", ("mul",) * depth, elements, fused=False)
    for elements in (1_600_000, 2_162_688, 2_400_000, 3_200_000, 5_000_000, 7_000_000):
        for depth in (4, 12):
            yield _chain("resident", ("mul",) * depth, elements, fused=False)


def _unary() -> list[str]:
    """Return the ops without extra operands."""
    return [name for name, op in OPS.items() if not (op.tensors or op.rows)]


def _launches() -> Iterator[Case]:
    """Kernels on a stream with the queue full, and one chain from idle."""
    for mode in ("stream", "latency"):
        yield Case(kind="empty", probe="launch", mode=mode, sets=1)
        for power in (11, 14, 16, 18, 20, 22, 24, 26):
            for fused in (True, False):
                yield _chain("launch", ("mul", "add", "relu"), 1 << power, mode=mode, fused=fused)


def judge_suite(seed: int, chains: int = 120) -> list[Case]:
    """Return random chains, fused and unfused.

    Sizes are log-uniform from 2^12 to 2^27, every second one odd; depth 1 to 12; every op of the table, extra
    operands included.
    """
    random = np.random.default_rng(seed)
    names = list(OPS)
    cases = []
    for index in range(chains):
        depth = int(random.integers(1, 13))
        ops = tuple(names[pick] for pick in random.integers(0, len(names), depth))
        elements = int(2 ** random.uniform(12, 27))
        row = int(random.choice([64, 768, 1000, 4096])) if any(OPS[name].rows for name in ops) else 0
        if row:
            elements = max(elements // row, 1) * row
        elif index % 2:
            elements |= 1
        dtype = str(random.choice(["bf16", "fp32", "fp16"]))
        cases += [_chain("judge", ops, elements, dtype=dtype, row=row, fused=fused) for fused in (True, False)]
    return cases


def judge_plain_suite() -> list[Case]:
    """Return chains of cheap ops at sizes and depths between those that are fitted, fused and unfused."""
    sizes = (3000, 20_000, 100_000, 400_000, 1_500_000, 3_000_001, 6_000_000, 12_000_000, 25_000_000, 10**8)
    return [
        _chain("judge", (("add", "mul", "relu", "neg", "abs") * 4)[:depth], elements, dtype=dtype, fused=fused)
        for depth in (2, 3, 5, 8, 16)
        for elements in sizes
        for dtype in ("bf16", "fp32")
        for fused in (True, False)
    ]


def stream_judge_suite() -> list[Case]:
    """Return chains on a stream and from idle at sizes and a depth that are not fitted."""
    return [
        _chain("launch", ops, elements, mode=mode, fused=fused)
        for mode in ("stream", "latency")
        for elements in (3000, 50_000, 200_000, 700_001, 3_000_000, 20_000_000)
        for ops in (("add", "mul", "relu"), ("add", "mul", "relu", "neg", "abs"))
        for fused in (True, False)
    ]


def few_passes_suite() -> list[Case]:
    """Return short chains in graphs of one to eight passes, where the fixed cost of a replay shows; held out."""
    return [
        _chain("replay", ("add", "mul", "relu", "neg", "abs")[:depth], elements, sets=sets, fused=fused)
        for sets in (1, 2, 4, 8)
        for elements in (5000, 150_000, 900_000, 2_500_000)
        for depth in (2, 5)
        for fused in (True, False)
    ]


def cupy_suite() -> list[Case]:
    """Return chains as CuPy runs them: a ufunc per op, or one ElementwiseKernel."""
    cases = [
        Case(kind="empty", probe="floor", path="cupy", mode=mode, sets=sets)
        for mode, sets in (("graph", 64), ("graph", 256), ("stream", 1), ("latency", 1))
    ]
    for dtype in ("fp32", "fp16", "fp64"):
        for power in range(10, 27, 2):
            for ops in (("mul",), ("add", "mul", "abs")):
                cases += [
                    _chain("size", ops, 1 << power, path="cupy", dtype=dtype, fused=fused) for fused in (True, False)
                ]
    for name in ("exp", "tanh", "square", "neg", "abs", "add_tensor"):
        cases += [
            _chain("arithmetic", (name,) * 4, 1 << 24, path="cupy", dtype="fp32", fused=fused)
            for fused in (True, False)
        ]
    return cases


def cupy_judge_suite() -> list[Case]:
    """Return chains as CuPy runs them, at sizes, depths and ops that are not fitted."""
    chains = (
        ("abs",),
        ("mul", "add_tensor"),
        ("add", "neg", "square"),
        ("add_tensor", "mul", "abs", "add"),
        ("mul", "add", "neg", "mul", "abs"),
        ("add", "mul", "add_tensor", "neg", "abs", "add"),
    )
    return [
        _chain("judge", ops, elements, path="cupy", dtype=dtype, fused=fused)
        for elements in (3000, 50_000, 200_000, 700_001, 3_000_000, 20_000_000)
        for ops in chains
        for dtype in ("fp32", "fp16", "fp64")
        for fused in (True, False)
    ]


def matmul_suite(path: str = "cupy") -> list[Case]:
    """Return library matmuls: square, tall, skinny and odd. CuPy captures none in a graph, so they are queued."""
    shapes = [(size,) * 3 for size in (256, 512, 1024, 2048, 4096, 8192)]
    shapes += [(16_384, 1024, 1024), (65_536, 256, 256), (16, 4096, 4096), (1, 8192, 8192), (128, 4096, 14_336)]
    shapes += [(1000, 1000, 1000), (333, 777, 555), (4095, 4097, 4093)]
    dtypes = {"cupy": ("fp32", "fp16"), "torch": ("bf16", "fp32")}[path]
    return [
        Case(kind="matmul", probe="matmul", path=path, mode="stream", dtype=dtype, shape=shape)
        for shape in shapes
        for dtype in dtypes
    ]


def reduction_suite(path: str = "cupy") -> list[Case]:
    """Return sums of rows, over row lengths from short to long at two sizes of the whole."""
    dtypes = {"cupy": ("fp32", "fp16"), "torch": ("bf16", "fp32")}[path]
    return [
        Case(
            kind="reduction", probe="reduction", path=path, mode="stream", dtype=dtype, shape=(total // length, length)
        )
        for total in (1 << 20, 1 << 24)
        for length in (32, 128, 1000, 4096, 16_384, 65_536)
        for dtype in dtypes
    ]


def torch_suite(path: str) -> list[Case]:
    """Return element-wise ops as PyTorch runs them: op by op, or as one kernel that torch.compile generates."""
    chains = [("gelu",), ("add", "mul", "relu"), ("add", "mul", "relu", "neg", "abs")]
    chains += [("mul",), ("add_tensor",)] if path == "torch" else []
    return [
        _chain("torch", ops, elements, path=path, mode=mode, dtype=dtype, fused=path == "inductor")
        for mode in ("graph", "stream")
        for ops in chains
        for elements in (1 << 14, 1 << 20, 1 << 25)
        for dtype in ("bf16", "fp32")
    ]
