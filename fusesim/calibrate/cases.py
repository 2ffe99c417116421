"""What is measured, as data: one case per measurement, and what came of it.

Measuring, saving and fitting know nothing about why a case is in a suite.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fusesim.ops import DTYPES, OPS

MAX_SETS, MIN_SETS = 256, 8
"""Buffer sets that a pass rotates over: enough to pass three times the cache, within these limits."""

ALIGNMENT = 512
"""Tensors start at multiples of this, as a caching allocator would place them. [B]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One measurement: which kernels, on what, launched how.

    `kind` is ``"empty"`` (an empty kernel), ``"chain"`` (`ops` over `elements`), ``"matmul"`` (`shape` is m, k, n)
    or ``"reduction"`` (the sums of the rows of `shape`). `sets` is the number of buffer sets that a pass rotates
    over; 0 means as many as it takes to pass three times the cache, so that inputs are cold. `probe` names what the
    case is there for, `suite` what its outcome is used for.
    """

    kind: str
    probe: str
    suite: str = ""
    path: str = "cuda"
    mode: str = "graph"
    ops: tuple[str, ...] = ()
    elements: int = 0
    dtype: str = "bf16"
    fused: bool = True
    row: int = 0
    sets: int = 0
    shape: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """A name that tells what is measured from everything else that is."""
        variant = "fused" if self.fused else "unfused"
        what = "x".join(map(str, self.shape)) or str(self.elements)
        ops = "+".join(self.ops)
        return f"{self.path}/{self.mode}/{self.kind}/{self.dtype}/{what}/{variant}/{self.row}/{self.sets}/{ops}"

    @property
    def identity(self) -> str:
        """A name that tells the case from every other case of every suite."""
        return f"{self.suite}/{self.probe}/{self.key}"

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The ops of each kernel of a chain."""
        return [self.ops] if self.fused else [(name,) for name in self.ops]

    @property
    def kernels(self) -> int:
        """How many kernels are launched."""
        return len(self.groups) if self.kind == "chain" else 1

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return asdict(self) | {"ops": list(self.ops), "shape": list(self.shape)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The outcome of one case: seconds per chain, median with 10th and 90th percentile, and the buffer sets.

    `host` is what the host took to issue one chain, where that was measured.
    """

    median: float
    low: float
    high: float
    repeats: int
    sets: int
    host: float | None = None
    registers: int = 0


def own_tensors(case: Case) -> list[int]:
    """Return the elements of every tensor that each buffer set has of its own: input, output, extra operands."""
    if case.kind == "matmul":
        m, k, n = case.shape
        return [m * k, m * n, k * n]
    if case.kind == "reduction":
        rows, length = case.shape
        return [rows * length, rows]
    return [case.elements] * (2 + sum(OPS[name].tensors for name in case.ops))


def shared_tensors(case: Case) -> list[int]:
    """Return the elements of every tensor that all sets share: two intermediates of a chain, and broadcast rows."""
    if case.kind != "chain":
        return []
    return [case.elements] * (2 + sum(OPS[name].rows for name in case.ops))


def set_count(case: Case, cache: float) -> int:
    """Return how many buffer sets the case rotates over, on a device whose cache holds `cache` bytes."""
    if case.sets:
        return case.sets
    footprint = max(sum(own_tensors(case)) * DTYPES[case.dtype].itemsize, 1)
    return int(min(max(np.ceil(3 * cache / footprint), MIN_SETS), MAX_SETS))


def aligned(elements: int, dtype: str) -> int:
    """Return the bytes that a tensor takes up, padding included."""
    return -(-elements * DTYPES[dtype].itemsize // ALIGNMENT) * ALIGNMENT


def memory_needed(case: Case, cache: float) -> int:
    """Return the bytes of all tensors of a case."""
    own, shared = (sum(aligned(n, case.dtype) for n in sizes) for sizes in (own_tensors(case), shared_tensors(case)))
    return set_count(case, cache) * own + shared
