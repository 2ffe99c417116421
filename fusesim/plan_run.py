"""A plan that runs: its kernels with their times, added up in a launch mode; what a `Price` of a plan is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from fusesim.kernel import stream_share
from fusesim.limits import Limits
from fusesim.records import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.fusion import FusionPlan
    from fusesim.launches import Launch, LaunchTime, Served


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a plan is run. [s].

    `floor` and stream `gap` of a kernel, the share of a graph's `replay`, what one call from `idle` adds, the host's
    `interval` per launch, or per call where `per_call`; `host_range` are the ends of that interval over it.
    """

    mode: str
    path: str
    floor: float
    gap: float
    replay: float
    idle: float
    interval: float
    per_call: bool
    host_range: tuple[float, float]


class Span(NamedTuple):
    """When a kernel runs on the device, and what binds it. [s]."""

    name: str
    ops: tuple[str, ...]
    start: float
    end: float
    bound: str
    issued: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel of a plan: what it does, the group that it belongs to, its time, and where its bytes come from.

    `plain` is the element type of its product where the device's matrix units lack it, so that plain arithmetic units
    run it; empty otherwise.
    """

    launch: Launch
    group: int
    time: LaunchTime
    served: Served
    plain: str = ""

    def total(self, settings: Settings) -> float:
        """Return its time on the device, with what a stream adds. [s]."""
        own = self.time
        return own.time + (settings.gap * float(stream_share(own.body)) if settings.gap else 0.0)

    @property
    def parts(self) -> dict[str, float]:
        """What each resource alone takes. [s]."""
        own = self.time
        return {
            "launch": own.floor + own.latency,
            "dram": own.dram,
            "l2": 0.7 * own.cache,
            "issue": max(own.issue, own.waves),
            "sfu": own.special,
            "fma" if self.plain else "tensor": own.tensor,
        }

    @property
    def bound(self) -> str:
        """What takes longest."""
        parts = self.parts
        return max(parts, key=lambda name: parts[name])


@dataclass(frozen=True, kw_only=True)
class PlanRun:
    """A plan's kernels and times; the `Parts` of its price. `matrix_types` are those that the matrix units have."""

    plan: FusionPlan
    kernels_run: tuple[Kernel, ...]
    settings: Settings
    spread: Callable[[str], tuple[float, float]]
    widening: tuple[float, float]
    correlation: float
    peak_memory: float
    limits: Limits = field(default_factory=Limits)
    matrix_types: frozenset[str] = frozenset()

    @property
    def kernels(self) -> float:
        """How many kernels run, memory clears included."""
        return float(len(self.kernels_run))

    @cached_property
    def device_time(self) -> float:
        """Sum of the kernels' times. [s]."""
        return sum(kernel.total(self.settings) for kernel in self.kernels_run)

    @property
    def host_time(self) -> float:
        """Time that the host needs to issue it all. [s]."""
        if self.settings.mode == "graph" or not self.kernels_run:
            return 0.0
        return self.settings.interval * (1.0 if self.settings.per_call else self.kernels)

    @cached_property
    def time(self) -> float:
        """Time of the plan in its launch mode; where no kernel runs, none: nothing is issued or waited for. [s]."""
        own = self.settings
        if not self.kernels_run:
            return 0.0
        if own.mode == "graph":
            return self.device_time + own.replay
        if own.mode == "stream":
            return max(self.device_time, self.host_time)
        spans = self.timeline()
        return own.idle + spans[-1].end

    def timeline(self) -> tuple[Span, ...]:
        """Return when each kernel runs, from idle: none before the host has issued it and the one before has ended."""
        own, spans, free = self.settings, [], 0.0
        step = 0.0 if own.mode == "graph" else own.interval / (max(self.kernels, 1.0) if own.per_call else 1.0)
        for place, kernel in enumerate(self.kernels_run):
            issued = place * step
            start = max(free, issued)
            free = start + kernel.total(own)
            spans.append(Span(kernel.launch.name, kernel.launch.nodes, start, free, kernel.bound, issued))
        return tuple(spans)

    @property
    def bytes_read(self) -> float:
        """Bytes read. [B]."""
        return sum(kernel.launch.bytes_read - kernel.launch.again for kernel in self.kernels_run)

    @property
    def bytes_written(self) -> float:
        """Bytes written. [B]."""
        return sum(kernel.launch.bytes_written for kernel in self.kernels_run)

    @property
    def dram_bytes(self) -> float:
        """Bytes that memory serves. [B]."""
        return sum(kernel.served.read + kernel.served.written for kernel in self.kernels_run)

    @property
    def l2_bytes(self) -> float:
        """Bytes that the cache serves. [B]."""
        moved = sum(kernel.launch.bytes_read + kernel.launch.bytes_written for kernel in self.kernels_run)
        return max(moved - self.dram_bytes, 0.0)

    @property
    def flops(self) -> float:
        """Arithmetic of the graph. [FLOP]."""
        return self.plan.graph.total_flops

    @property
    def launch_time(self) -> float:
        """Floors, and the share of a replay or the wait from idle. [s]."""
        once = self.settings.replay + self.settings.idle if self.kernels_run else 0.0
        return sum(kernel.time.floor for kernel in self.kernels_run) + once

    @property
    def memory_time(self) -> float:
        """Latency and bytes, nothing else in the way. [s]."""
        return sum(kernel.time.latency + max(kernel.time.dram, kernel.time.cache) for kernel in self.kernels_run)

    @property
    def compute_time(self) -> float:
        """Instructions, special functions and matrix units, nothing else in the way. [s]."""
        return sum(max(k.time.issue, k.time.special, k.time.tensor) for k in self.kernels_run)

    @property
    def bound(self) -> str:
        """What takes longest over all kernels, or the host."""
        if self.host_time > self.device_time:
            return "host"
        totals: dict[str, float] = {}
        for kernel in self.kernels_run:
            for name, value in kernel.parts.items():
                totals[name] = totals.get(name, 0.0) + value
        return max(totals, key=lambda name: totals[name], default="launch")

    @property
    def bound_index(self) -> Any:
        """Place in `BOUNDS` of what decides the time."""
        return BOUNDS.index(self.bound)

    @property
    def interval_factors(self) -> tuple[float, float]:
        """Ends of the 90 % interval over the time."""
        low, high = self.kernel_factors(self.bound)
        if self.host_time > self.device_time:
            return min(low, self.settings.host_range[0]), max(high, self.settings.host_range[1])
        return low, high

    def kernel_factors(self, bound: str) -> tuple[float, float]:
        """Return the ends of the 90 % interval of kernels over their time by what binds them, the host left out."""
        low, high = self.spread(bound)
        return low / self.widening[0], high * self.widening[1]

    def each(self) -> tuple[OneKernel, ...]:
        """Return each kernel as what a price is made of."""
        return tuple(OneKernel(kernel=kernel, run=self) for kernel in self.kernels_run)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneKernel:
    """One kernel of a plan as the `Parts` of a price of its own."""

    kernel: Kernel
    run: PlanRun

    @property
    def name(self) -> str:
        """What it computes."""
        return self.kernel.launch.name

    @property
    def time(self) -> float:
        """Time on the device. [s]."""
        return self.kernel.total(self.run.settings)

    @property
    def kernels(self) -> float:
        """One."""
        return 1.0

    @property
    def bytes_read(self) -> float:
        """Bytes read. [B]."""
        return self.kernel.launch.bytes_read - self.kernel.launch.again

    @property
    def bytes_written(self) -> float:
        """Bytes written. [B]."""
        return self.kernel.launch.bytes_written

    @property
    def dram_bytes(self) -> float:
        """Bytes that memory serves. [B]."""
        return self.kernel.served.read + self.kernel.served.written

    @property
    def l2_bytes(self) -> float:
        """Bytes that the cache serves. [B]."""
        launch = self.kernel.launch
        return max(launch.bytes_read + launch.bytes_written - self.dram_bytes, 0.0)

    @property
    def flops(self) -> float:
        """Arithmetic. [FLOP]."""
        return self.kernel.launch.arithmetic

    @property
    def launch_time(self) -> float:
        """Its floor. [s]."""
        return self.kernel.time.floor

    @property
    def memory_time(self) -> float:
        """Latency and bytes, nothing else in the way. [s]."""
        return self.kernel.time.latency + max(self.kernel.time.dram, self.kernel.time.cache)

    @property
    def compute_time(self) -> float:
        """Arithmetic, nothing else in the way. [s]."""
        own = self.kernel.time
        return max(own.issue, own.special, own.tensor)

    @property
    def peak_memory(self) -> float:
        """Bytes that it writes. [B]."""
        return self.kernel.launch.bytes_written

    @property
    def bound_index(self) -> Any:
        """Place in `BOUNDS` of what decides the time."""
        return BOUNDS.index(self.kernel.bound)

    @property
    def interval_factors(self) -> tuple[float, float]:
        """Ends of the 90 % interval over the time, as for the whole plan."""
        return self.run.interval_factors


@dataclass(frozen=True, kw_only=True)
class TextbookRun:
    """A plan as the textbook has it: for each group a launch, then its bytes over the bandwidth. [s, B/s, FLOP/s]."""

    plan: FusionPlan
    overhead: float
    once: float
    bandwidth: float
    flop_rate: float
    peak_memory: float

    @property
    def kernels(self) -> float:
        """One kernel for each group that makes a value."""
        return float(sum(not self.plan.idle(group) for group in self.plan.groups))

    @cached_property
    def bytes_read(self) -> float:
        """Bytes of what groups read, each of its inputs once. [B]."""
        tensors = self.plan.graph.tensors
        return float(sum(tensors[n].bytes for group in self.plan.groups for n in self.plan.external_inputs(group)))

    @cached_property
    def bytes_written(self) -> float:
        """Bytes of what groups write for others. [B]."""
        tensors = self.plan.graph.tensors
        return float(sum(tensors[n].bytes for group in self.plan.groups for n in self.plan.external_outputs(group)))

    @property
    def dram_bytes(self) -> float:
        """All bytes: there are no caches. [B]."""
        return self.bytes_read + self.bytes_written

    @property
    def l2_bytes(self) -> float:
        """None. [B]."""
        return 0.0

    @property
    def flops(self) -> float:
        """Arithmetic. [FLOP]."""
        return self.plan.graph.total_flops

    @property
    def launch_time(self) -> float:
        """Launches. [s]."""
        return self.kernels * self.overhead + (self.once if self.kernels else 0.0)

    @property
    def memory_time(self) -> float:
        """Bytes over bandwidth. [s]."""
        return self.dram_bytes / self.bandwidth

    @property
    def compute_time(self) -> float:
        """Arithmetic over the plain rate, reported and not added. [s]."""
        return self.flops / self.flop_rate

    @property
    def time(self) -> float:
        """Launches and memory. [s]."""
        return self.launch_time + self.memory_time

    @property
    def bound_index(self) -> Any:
        """Place in `BOUNDS` of the longer of the two."""
        return BOUNDS.index("launch" if self.launch_time > self.memory_time else "dram")

    @property
    def interval_factors(self) -> tuple[float, float]:
        """The time itself."""
        return 1.0, 1.0
