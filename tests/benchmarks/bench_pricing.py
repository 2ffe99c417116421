"""How fast pricing is, in units that any machine has: multiplications by numpy, measured in the same run.

    python tests/benchmarks/bench_pricing.py

A broadcast price over a million points may take as long as 60 multiplications of as many floats. Exits 1 above that.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

import fusesim

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 60
"""Multiplications that a price of as many points may take."""

SIDE = 1000
POINTS = SIDE**2


def median_time(work: Callable[[], object], repeats: int = 15) -> float:
    """Return the median time of a call, after one to warm up. [s]."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def multiply(shape: tuple[int, ...]) -> float:
    """Return the time of one multiplication of two arrays of that shape. [s]."""
    one, other = np.full(shape, 1.5), np.full(shape, 2.5)
    return median_time(lambda: one * other, repeats=51)


def report(name: str, work: Callable[[], object], shape: tuple[int, ...]) -> bool:
    """Print a ratio and return whether it is within the limit."""
    reference, taken = multiply(shape), median_time(work)
    ratio = taken / reference
    print(f"{name}: {taken * 1e3:.1f} ms, {ratio:.1f} multiplications of {reference * 1e3:.2f} ms (limit {LIMIT})")
    return ratio <= LIMIT


def main() -> int:
    """Run all, print all, and return the exit code."""
    ops = np.arange(1, SIDE + 1)
    elements = np.unique(np.geomspace(1000, 1e9, SIDE).astype(np.int64))
    flat_ops, flat_elements = np.tile(ops, SIDE), np.repeat(elements, SIDE)
    graph = {"launch": "graph", "graph_repeats": 10}
    within = [
        report("1000 x 1000", lambda: fusesim.price_chain(ops[:, None], elements), (SIDE, SIDE)),
        report("1 000 000", lambda: fusesim.price_chain(flat_ops, flat_elements), (POINTS,)),
        report("1000 x 1000, graph", lambda: fusesim.price_chain(ops[:, None], elements, **graph), (SIDE, SIDE)),
    ]
    one = median_time(lambda: fusesim.price_chain(5, 4096), repeats=2001)
    print(f"one call: {one * 1e6:.0f} us")
    start_up = median_time(lambda: subprocess.run([sys.executable, "-c", "import fusesim"], check=True), repeats=5)
    bare = median_time(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), repeats=5)
    print(f"import fusesim: {start_up - bare:.2f} s (Python's own start of {bare:.2f} s taken off)")
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
