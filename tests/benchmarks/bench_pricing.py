"""How fast pricing is, in units that any machine has: multiplications by numpy, measured in the same run.

    python tests/benchmarks/bench_pricing.py

A broadcast price over a million points may take as long as 60 multiplications of as many floats, by the calibrated
model 600; and a single price by the calibrated model as long as 3 by the textbook. Exits 1 above that. These are times
and savings: what a price computes when it is asked for, such as bytes and intervals, is not in these figures but in one
of their own.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

import fusesim
from fusesim.records import LATE

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT, CALIBRATED_LIMIT = 60, 600
"""Multiplications that a price of as many points may take."""

RATIO_LIMIT = 3
"""Prices by the textbook in whose time there is one by the calibrated model."""

CALIBRATED = {"device": "h200-sxm", "model": "calibrated"}

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


def report(name: str, work: Callable[[], object], shape: tuple[int, ...], limit: float | None = LIMIT) -> bool:
    """Print a ratio and return whether it is within the limit."""
    reference, taken = multiply(shape), median_time(work)
    ratio = taken / reference
    allowed = "" if limit is None else f" (limit {limit})"
    print(f"{name}: {taken * 1e3:.1f} ms, {ratio:.1f} multiplications of {reference * 1e3:.2f} ms{allowed}")
    return limit is None or ratio <= limit


def with_all_fields(price: fusesim.ChainPrice) -> object:
    """Ask a price for everything that it computes only then."""
    sides = (price.unfused, price.fused)
    names = (*LATE, "interval", "bytes_moved", "arithmetic_intensity", "launch_share", "bound")
    return price.saving_interval, [getattr(side, name) for side in sides for name in names]


def single_calls() -> bool:
    """Print what one price takes by each model, and return whether their ratio is within the limit."""
    times = {"textbook": {"device": "h200-sxm"}, "calibrated": CALIBRATED}
    took = {
        name: median_time(lambda terms=terms: fusesim.price_chain(5, 4096, **terms), repeats=2001)
        for name, terms in times.items()
    }
    full = median_time(lambda: with_all_fields(fusesim.price_chain(5, 4096, **CALIBRATED)), repeats=501)
    ratio = took["calibrated"] / took["textbook"]
    print(f"one call: textbook {took['textbook'] * 1e6:.0f} us, calibrated {took['calibrated'] * 1e6:.0f} us, ", end="")
    print(f"{ratio:.1f} times as long (limit {RATIO_LIMIT}); calibrated with all fields {full * 1e6:.0f} us")
    return ratio <= RATIO_LIMIT


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
        report(
            "1000 x 1000, calibrated",
            lambda: fusesim.price_chain(ops[:, None], elements, **CALIBRATED),
            (SIDE, SIDE),
            CALIBRATED_LIMIT,
        ),
        report(
            "1 000 000, calibrated",
            lambda: fusesim.price_chain(flat_ops, flat_elements, **CALIBRATED),
            (POINTS,),
            CALIBRATED_LIMIT,
        ),
    ]
    for name, terms in (("textbook", {}), ("calibrated", CALIBRATED)):
        report(
            f"1000 x 1000, {name}, with all fields",
            lambda terms=terms: with_all_fields(fusesim.price_chain(ops[:, None], elements, **terms)),
            (SIDE, SIDE),
            None,
        )
    within.append(single_calls())
    start_up = median_time(lambda: subprocess.run([sys.executable, "-c", "import fusesim"], check=True), repeats=5)
    bare = median_time(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), repeats=5)
    print(f"import fusesim: {start_up - bare:.2f} s (Python's own start of {bare:.2f} s taken off)")
    return 0 if all(within) else 1


if __name__ == "__main__":
    sys.exit(main())
