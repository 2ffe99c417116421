"""Programs on other GPUs, priced by transferred rates, beside figures from public pages: public_cases.json.

    python tests/reference/public_plans.py

prints each point: predicted, measured, their ratio, the interval. The pages' harnesses flush the cache before every
call (C03, C12, C42, cold columns of C43) or repeat it on the same buffers (warm columns of C43, C45, C55); where they
launch on a stream the host is taken to be hidden. A point is device-bound where the harness's own floor, the least that
the same harness reports, is less than half of it.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import fusesim
from fusesim import patterns
from fusesim.builder import Builder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusesim.graph import Graph

HERE = Path(__file__).parent
CASES = {case["id"]: case for case in json.loads((HERE / "public_cases.json").read_text(encoding="utf-8"))["cases"]}
EAGER, ONE = ("eager", "torch"), ("inductor", "inductor")  # one kernel per op, and what one generated kernel is
HARNESS = {"C03": 7.33e-6, "C12": 6.14e-6, "C42": 5.71e-6, "C43": 5.3e-6, "C55": 2.21e-6}
HOSTS = {"rtx-4090": 2.65e-6, "a100-pcie-80gb": 7.28e-6}
"""Least time that each harness reports, in C45 on each machine; C03's is that of C01, the same. [s]"""


class Point(NamedTuple):
    """One figure of a page: case, what, measured [s], and the price."""

    case: str
    what: str
    measured: float
    price: fusesim.records.Price

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return float(self.price.time) / self.measured

    @property
    def half_width(self) -> float:
        """Half of the interval, over the time."""
        low, high = self.price.interval
        return float((high - low) / 2 / self.price.time)

    @property
    def inside(self) -> bool:
        """Whether the interval holds what was measured."""
        low, high = self.price.interval
        return bool(low <= self.measured <= high)

    @property
    def device_bound(self) -> bool:
        """Whether the harness is less than half of what it measures."""
        floor = HARNESS.get(self.case) or HOSTS.get(self.what.partition(" ")[0], 0.0)
        return self.measured > 2 * floor


def priced(graph: Graph, side: tuple[str, str], device: str, inputs: str = "cold", launch: str = "stream"):
    """Return the price of a graph whose launches the host does not hold up."""
    plan = fusesim.plan(graph, strategy=side[0], device=device)
    repeats = 1000 if launch == "graph" else 1
    return fusesim.price(
        plan, device=device, path=side[1], launch=launch, inputs=inputs, graph_repeats=repeats, host_interval=0
    )


def c03() -> Iterator[Point]:
    """RMSNorm with fp32 inside on an A100: eight kernels, or one."""
    for row in CASES["C03"]["reported"]:
        graph = patterns.rmsnorm(tokens=2048, hidden=row["x"], upcast=True)
        for side, name in ((EAGER, "huggingface"), (ONE, "liger")):
            price = priced(graph, side, "a100-sxm-80gb")
            yield Point("C03", f"{name} {row['x']}", row[name] * 1e-6, price)


def c12() -> Iterator[Point]:
    """Softmax on an RTX 3090: PyTorch's kernel, and a generated one."""
    for row in CASES["C12"]["reported"]["forward"]:
        graph = patterns.softmax(rows=2048, cols=row["x"])
        for side, name in ((EAGER, "torch"), (ONE, "liger")):
            yield Point("C12", f"{name} {row['x']}", row[name] * 1e-6, priced(graph, side, "rtx-3090"))


def c42() -> Iterator[Point]:
    """RMSNorm on an A10 as one kernel, with weights."""
    for hidden, rows, time, _ in CASES["C42"]["reported"]["rows"]:
        graph = patterns.rmsnorm(tokens=rows, hidden=hidden, dtype="fp16")
        yield Point("C42", f"{rows} x {hidden}", time * 1e-6, priced(graph, ONE, "a10"))


def c43() -> Iterator[Point]:
    """RMSNorm on an RTX 5090: a chain of ops, PyTorch's own kernel, one kernel; the page states bytes per time."""
    for hidden, *rates in CASES["C43"]["reported"]["rows"]:
        chain = patterns.rmsnorm(tokens=4096, hidden=hidden, dtype="fp16", upcast=True)
        b = Builder("rms_norm")
        b.output(b.rms_norm(b.input(4096, hidden, dtype="fp16"), b.input(hidden, dtype="fp16")))
        sides = (
            ("one, warm", chain, ONE, "warm"),
            ("chain, warm", chain, EAGER, "warm"),
            ("one, cold", chain, ONE, "cold"),
            ("rms_norm, cold", b.graph(), EAGER, "cold"),
        )
        for (what, graph, side, inputs), rate in zip(sides, rates, strict=True):
            time = 4 * 4096 * hidden / (rate * 1e9)  # 2 B in, 2 B out
            yield Point("C43", f"{what} {hidden}", time, priced(graph, side, "rtx-5090", inputs))


def c45() -> Iterator[Point]:
    """A multiplication repeated on one buffer: an RTX 4090 and an A800, the A100 of the same form otherwise."""
    for elements, *rates in CASES["C45"]["reported"]["rows"]:
        graph = patterns.chain(["mul"], elements, dtype="fp32")
        for device, rate in zip(("rtx-4090", "a100-pcie-80gb"), rates, strict=True):
            yield Point(
                "C45", f"{device} {elements}", 8 * elements / (rate * 1e9), priced(graph, EAGER, device, "warm")
            )


def c52() -> Iterator[Point]:
    """Group norm and SiLU on an H200 as two phases: 8.9 million values in each of 32 groups, 1.71 GB."""
    b = Builder("group_norm_silu")
    x = b.input(32, 256 * 17 * 256 * 256 // 32, dtype="fp16")
    around = b.op("sub", x, b.reduce("mean", x, [-1], keepdim=True))
    deviation = b.op("rsqrt", b.op("add", b.reduce("var", x, [-1], keepdim=True), scalar=1e-5))
    b.output(b.op("silu", b.op("mul", around, deviation)))
    yield Point("C52", "two phases", CASES["C52"]["reported"]["baseline_us"] * 1e-6, priced(b.graph(), ONE, "h200-sxm"))


def c55() -> Iterator[Point]:
    """Norms of four query heads and one key head on an H200, in a graph: two kernels of PyTorch, or one by hand."""
    for batch, _, by_hand, _, eager in CASES["C55"]["reported"]["rows"]:
        b = Builder("qk_norm")
        for heads in (4, 1):
            x = b.input(batch, heads, 128, dtype="bf16")
            b.output(b.rms_norm(x, b.input(128, dtype="bf16")))
        graph = b.graph()
        yield Point("C55", f"pytorch {batch}", eager * 1e-6, priced(graph, EAGER, "h200-sxm", "warm", "graph"))
        yield Point("C55", f"jit {batch}", by_hand * 1e-6, priced(graph, ONE, "h200-sxm", "warm", "graph"))


def c57() -> Iterator[Point]:
    """Quantising to fp8 on an H100 as one kernel, in blocks of 128 values."""
    for kernel, shape, time, *_ in CASES["C57"]["reported"]["rows"]:
        rows, columns = map(int, shape.split("x"))
        graph = patterns.fp8_rowwise_quant(tokens=rows * columns // 128, hidden=128)
        yield Point("C57", f"{kernel} {shape}", time * 1e-6, priced(graph, ONE, "h100-sxm"))


@cache
def points() -> tuple[Point, ...]:
    """Return every point of every case."""
    return tuple(point for case in (c03, c12, c42, c43, c45, c52, c55, c57) for point in case())


def main() -> None:
    for point in points():
        low, high = (1e6 * float(end) for end in point.price.interval)
        times = f"{1e6 * float(point.price.time):.4g}, {1e6 * point.measured:.4g}, {point.ratio:.2f}"
        print(f'    ("{point.case}", "{point.what}", {times}),  # {low:.4g} to {high:.4g}')


if __name__ == "__main__":
    main()
