"""A chain on a real device: the times of its kernels added up in its launch mode, with an interval.

The core: no file, no name to look up, no clock; numbers or arrays in, records out. On a stream the host issues the
next kernel while the device runs this one, so the longer of the two sums counts; one chain from idle waits for the
host's first launch and for its own last kernel; a graph's replay has a fixed cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fusesim import work
from fusesim.arrays import ONE, ZERO, larger, rows_of, spread
from fusesim.chain_kernels import fused_pieces, unfused_pieces
from fusesim.kernel import kernel_time, layout_times, shape_times, stream_share
from fusesim.overlap import soft_maximum
from fusesim.records import BOUNDS, ChainPrice, Price
from fusesim.roofline import ridge_point
from fusesim.run import ChainRun
from fusesim.uncertainty import chain_sensitivities, deviation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.arrays import Numbers
    from fusesim.chain_kernels import Piece, Situation
    from fusesim.hardware import HardwareProfile
    from fusesim.kernel import KernelTime, LayoutTimes, ShapeTimes
    from fusesim.machine import Machine
    from fusesim.ops import Op
    from fusesim.uncertainty import Uncertainty
    from fusesim.work import Chain

_INDEX = {name: np.uint8(BOUNDS.index(name)) for name in BOUNDS}

HOST_JITTER = {"stream": 0.05, "latency": 0.1, "graph": 0.0}
"""How far a host that is known deviates from its own interval, 90 % of it, as a logarithm: an idle one wakes up first.
From chains of five on a stream from C++, and from idle in two runs on one machine."""

CACHE_WEIGHT = 0.7
"""Bytes that memory serves pass the cache path too; it decides only where it is clearly the longer of the two."""


Layouts = dict[tuple[int, int], "LayoutTimes"]
"""Times of the kernels of one chain by their extra tensors and rows; unfused and fused share them."""

BLOCK = 1 << 15
"""Points that are priced at once: as many as leave all that is computed of them in the caches of a CPU."""


@dataclass(frozen=True)
class CalibratedRun(ChainRun):
    """Kernels of a chain and their times; the `Parts` of its price.

    `ops` None stands for `chain.ops` multiplications.
    """

    situation: Situation
    machine: Machine
    ops: Sequence[Op] | None
    fused: bool
    uncertainty: Uncertainty | None = None
    layouts: Layouts = field(default_factory=dict)

    @cached_property
    def pieces(self) -> tuple[tuple[Piece, KernelTime], ...]:
        """Kernels that are alike, and the time of one of them."""
        pieces = (fused_pieces if self.fused else unfused_pieces)(self.chain, self.ops, self.situation, self.machine)
        return timed_pieces(pieces, self.situation, self.machine, self.layouts)

    @property
    def device_time(self) -> Numbers:
        """Sum of the kernels' times. [s]."""
        return self._total(lambda time: time.time)

    @property
    def host_time(self) -> Numbers:
        """Time that the host needs to issue the kernels. [s]."""
        if "pipelining" not in self.situation.effects or self.situation.launch == "graph":
            return ZERO
        return self.kernels * self.situation.host_interval

    @property
    def time(self) -> Numbers:
        """Time of the chain in its launch mode. [s]."""
        return self.once + larger(self.device_time, self.host_side)

    @property
    def once(self) -> Numbers:
        """What the launch mode costs a chain once: its share of a graph's replay, or the wait from idle. [s]."""
        situation = self.situation
        if situation.launch == "graph":
            return situation.replay / situation.graph_repeats
        return self.machine.idle if self._from_idle else ZERO

    @property
    def host_side(self) -> Numbers:
        """What the host needs at least: for all launches, from idle for all but the last and then its kernel. [s]."""
        if not self._from_idle:
            return self.host_time
        return self.host_time - self.situation.host_interval + self._total(lambda time: time.time, last=True)

    @property
    def _from_idle(self) -> bool:
        return self.situation.launch == "latency" and "pipelining" in self.situation.effects

    def _total(self, part: Callable[[KernelTime], Numbers], *, last: bool = False) -> Numbers:
        """Add a part up over all kernels, or over the chain's last one."""
        total = ZERO
        for piece, time in self.pieces:
            total = total + (piece.last if last else piece.kernels) * part(time)
        return total

    @property
    def launch_time(self) -> Numbers:
        """Floors of the kernels, with the share of a graph's replay or the wait from idle. [s]."""
        return self._total(lambda time: time.floor) + self.once

    @property
    def memory_time(self) -> Numbers:
        """Latency and bytes, nothing else in the way. [s]."""
        return self._total(lambda time: time.latency + soft_maximum(time.shape.layout.cache, time.dram))

    @property
    def compute_time(self) -> Numbers:
        """Instructions, special functions and dependent chains, nothing else in the way. [s]."""
        return self._total(lambda time: larger(larger(time.shape.issue, time.shape.special), time.shape.thread))

    @property
    def dram_bytes(self) -> Numbers:
        """Bytes that memory serves. [B]."""
        total = ZERO
        for piece, _ in self.pieces:
            total = total + piece.kernels * piece.dram_bytes
        return total

    @property
    def l2_bytes(self) -> Numbers:
        """The other bytes: the cache serves them. [B]."""
        return larger(work.bytes_moved(self.chain, self.kernels) - self.dram_bytes, ZERO)

    @property
    def interval_factors(self) -> tuple[Any, Any]:
        """Ends of the 90 % interval over the time.

        Notes
        -----
        The longer of device and host at the same end of both their ranges; what the mode costs once deviates apart.
        """
        known = self.uncertainty
        if known is None:
            return ONE, ONE
        device, host = self.device_time, self.host_side
        parts = chain_sensitivities(self.pieces, self.machine, device)
        gap = self._total(lambda time: self.situation.stream_gap * stream_share(time.body)) * known.gap
        of_once = known.replay if self.situation.launch == "graph" else known.idle
        ends = []
        for sign, sources, drift in ((-1, known.low, 0), (1, known.high, 1)):
            own = np.hypot(deviation(parts, sources, device), gap / device)
            slack = np.exp(sign * HOST_JITTER[self.situation.launch]) * self.situation.host_factors[drift]
            core = larger(device * np.exp(sign * own), host * slack) - larger(device, host)
            once = self.once * np.expm1(sign * of_once)
            ends.append(ONE + sign * np.hypot(core, once) / self.time)
        return ends[0], ends[1]

    @property
    def bound_index(self) -> Any:
        """What takes the largest part: the host, launches with the latency behind them, or a ceiling."""
        parts = {
            "launch": self.launch_time + self._total(lambda time: time.latency),
            "dram": self._total(lambda time: time.dram),
            "l2": self._total(lambda time: time.shape.layout.cache) * CACHE_WEIGHT,
            "issue": self._total(lambda time: larger(time.shape.issue, time.shape.thread)),
            "sfu": self._total(lambda time: time.shape.special),
        }
        if not any(np.ndim(part) for part in parts.values()) and not np.ndim(self.host_time):
            name = max(parts, key=lambda key: float(parts[key]))
            return _INDEX["host" if self.host_time > self.device_time else name]
        stacked = np.stack(np.broadcast_arrays(*parts.values()))
        index = np.asarray([_INDEX[name] for name in parts], dtype=np.uint8)[np.argmax(stacked, axis=0)]
        return np.where(self.host_time > self.device_time, _INDEX["host"], index)


def timed_pieces(
    pieces: Sequence[Piece], situation: Situation, machine: Machine, layouts: Layouts
) -> tuple[tuple[Piece, KernelTime], ...]:
    """Return each piece with the time of one of its kernels; pieces share what their shapes and layouts take."""
    shapes: dict[int, ShapeTimes] = {}
    timed = []
    for piece in pieces:
        shape = piece.shape
        if id(shape) not in shapes:
            layout = shape.operands, shape.rows
            if layout not in layouts:
                layouts[layout] = layout_times(shape, machine, situation.effects)
            shapes[id(shape)] = shape_times(shape, layouts[layout], machine, situation.effects)
        time = kernel_time(
            shapes[id(shape)],
            machine,
            dram_load=piece.dram_load,
            cold=piece.cold,
            evicted=piece.evicted,
            floor=situation.floor,
            stream_gap=situation.stream_gap,
            effects=situation.effects,
        )
        timed.append((piece, time))
    return tuple(timed)


def price_calibrated_chain(
    chain: Chain,
    ops: Sequence[Op] | None,
    *,
    situation: Situation,
    machine: Machine,
    uncertainty: Uncertainty,
    calibration: str,
    device: HardwareProfile,
    shape: tuple[int, ...],
) -> ChainPrice:
    """Price a chain by the calibrated model, unfused and fused.

    Parameters
    ----------
    chain : Chain
        The chain in numbers that broadcast to `shape`.
    ops : sequence of Op, optional
        Its ops; None for `chain.ops` multiplications.
    situation, machine : Situation, Machine
        How and where it runs.
    uncertainty : Uncertainty
        For the intervals.
    calibration : str
        What `machine` was taken from, named in the result.
    device : HardwareProfile
        Named in the result.
    shape : tuple of int
        Common shape of all arguments; () for scalars.

    Returns
    -------
    ChainPrice
        Every field has the shape `shape`.
    """
    flop_rate = device.vector_rate(situation.dtype.compute)
    runs = _both(chain, ops, situation, machine, uncertainty)
    times = [run.time for run in runs] if math.prod(shape) <= BLOCK else _times(chain, ops, situation, machine, shape)
    unfused, fused = (
        Price(time=spread(time, shape), parts=run, shape=shape, calibration=calibration)
        for time, run in zip(times, runs, strict=True)
    )
    saving = unfused.time - fused.time
    ridge = ridge_point(flop_rate=flop_rate, bandwidth=machine.bandwidth)
    return ChainPrice(
        unfused=unfused,
        fused=fused,
        saving=saving,
        correlation=uncertainty.correlation,
        speedup=unfused.time / fused.time,
        ridge_point=spread(ridge, shape),
        elements=spread(chain.elements, shape),
        dtype=situation.dtype.name,
        device=device,
        model="calibrated",
        launch=situation.launch,
    )


def _both(
    chain: Chain, ops: Sequence[Op] | None, situation: Situation, machine: Machine, uncertainty: Uncertainty | None
) -> tuple[CalibratedRun, CalibratedRun]:
    """Return the chain run unfused and fused."""
    layouts: Layouts = {}
    unfused, fused = (
        CalibratedRun(chain, kernels, situation, machine, ops, together, uncertainty, layouts)
        for kernels, together in ((chain.ops, False), (ONE, True))
    )
    return unfused, fused


def _times(
    chain: Chain, ops: Sequence[Op] | None, situation: Situation, machine: Machine, shape: tuple[int, ...]
) -> tuple[Numbers, Numbers]:
    """Return the times of both sides block by block; memory would be slower than the arithmetic. [s]."""
    unfused, fused = np.empty(shape), np.empty(shape)
    rows = max(BLOCK * shape[0] // math.prod(shape), 1)
    for start in range(0, shape[0], rows):
        part = slice(start, start + rows)
        mine, where, what = (
            rows_of(chain, part, shape),
            rows_of(situation, part, shape),
            rows_of(machine, part, shape),
        )
        for target, run in zip((unfused, fused), _both(mine, ops, where, what, None), strict=True):
            target[part] = run.time
    return unfused, fused
