"""Times of planning: 200 ops greedily and priced, 60 ops exactly; run it as a program.

    python tests/benchmarks/bench_planning.py

The targets are for a two-core machine. Each graph is planned anew every time: nothing is remembered between runs.
Groups are priced by the calibrated model, and so is the plan; where all ops fit into one kernel, groups are large and
dear to price: `textbook` says what planning by the textbook takes instead.
"""

from __future__ import annotations

import random
import time
from dataclasses import fields

from fusesim.api import find_device
from fusesim.builder import Builder
from fusesim.graph import Graph
from fusesim.planning import plan
from fusesim.plans import price as price_plan
from fusesim.textbook_cost import TextbookCost

COST = TextbookCost.of(find_device("h200-sxm"))
GREEDY, EXACT = 0.050, 5.0


def layers(count):
    """Blocks of norm, gated products and residual: 12 ops each."""
    b = Builder(f"{count} blocks")
    x = b.input(2048, 4096)
    for _ in range(count):
        mean = b.reduce("mean", b.op("mul", x, x))
        scaled = b.op("mul", b.op("mul", x, b.op("rsqrt", b.op("add", mean, scalar=1e-6))), b.parameter(4096))
        gate, up = (b.matmul(scaled, b.parameter(4096, 4096)) for _ in range(2))
        x = b.op("add", x, b.matmul(b.op("mul", b.op("silu", gate), up), b.parameter(4096, 4096)))
    b.output(x)
    return b.graph()


def chain(count):
    """A chain of pointwise ops."""
    b = Builder("chain")
    x = b.input(2048, 4096)
    for _ in range(count):
        x = b.op("relu", x)
    b.output(x)
    return b.graph()


def tangle(count, seed):
    """Random pointwise ops and row reductions, which all fit into one kernel: the hardest case for a planner."""
    draw = random.Random(seed)
    b = Builder("tangle")
    values = [b.input(2048, 4096) for _ in range(3)]
    rows = []
    while len(b.nodes) < count:
        kind = draw.random()
        x = draw.choice(values[-8:])
        if kind < 0.35:
            values.append(b.op(draw.choice(["relu", "exp", "neg"]), x))
        elif kind < 0.75:
            values.append(b.op(draw.choice(["add", "mul", "sub"]), x, draw.choice(values[-8:])))
        elif kind < 0.87:
            rows.append(b.reduce(draw.choice(["sum", "amax"]), x))
        elif rows:
            values.append(b.op("mul", x, draw.choice(rows[-4:])))
    b.output(values[-1], values[-2])
    return b.graph()


def fresh(graph):
    """The same graph with nothing derived yet."""
    return Graph(**{field.name: getattr(graph, field.name) for field in fields(Graph)})


def best(graph, strategy, repeats, cost=None):
    """Least time of planning and pricing, and the plan."""
    least, made = float("inf"), None
    for _ in range(repeats):
        copy = fresh(graph)
        start = time.perf_counter()
        made = plan(copy, strategy, cost=cost)
        price = price_plan(made, device="h200-sxm", path="inductor").time
        least = min(least, time.perf_counter() - start)
    return least, price, made


def main():
    """Print a line per case."""
    for graph in (layers(17), chain(200), tangle(200, 1), tangle(200, 2)):
        for strategy in ("vertical", "horizontal"):
            spent, price, made = best(graph, strategy, 5)
            simple, _, _ = best(graph, strategy, 5, COST)
            print(
                f"{graph.name:12} {len(graph.paid_nodes):4} ops {strategy:10} {spent * 1e3:7.1f} ms (target "
                f"{GREEDY * 1e3:.0f})  {len(made.groups)} kernels, {price * 1e6:.1f} us; textbook {simple * 1e3:.1f} ms"
            )
    plan(layers(1), "optimal")  # so that scipy is loaded
    for graph in (layers(5), chain(60), tangle(60, 3), tangle(60, 4)):
        spent, price, made = best(graph, "optimal", 1)
        print(
            f"{graph.name:12} {len(graph.paid_nodes):4} ops optimal    {spent:7.2f} s  (target {EXACT:.0f})  "
            f"{len(made.groups)} kernels, {price * 1e6:.1f} us; {made.notes[0]}"
        )


if __name__ == "__main__":
    main()
