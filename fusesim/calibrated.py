"""A chain on a real device: the times of its kernels added up in its launch mode, with an interval.

The core: no file, no name to look up, no clock; numbers or arrays in, records out. On a stream the host issues the
next kernel while the device runs this one, so the longer of the two sums counts; one chain from idle waits for the
host's first launch and for its own last kernel; a graph's replay has a fixed cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fusesim import work
from fusesim.arrays import ONE, ZERO, larger, spread
from fusesim.chain_kernels import fused_pieces, unfused_pieces
from fusesim.kernel import kernel_time, shape_times, soft_maximum
from fusesim.records import BOUNDS, ChainPrice, Price
from fusesim.roofline import ridge_point
from fusesim.run import ChainRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.arrays import Numbers
    from fusesim.chain_kernels import Piece, Situation
    from fusesim.hardware import HardwareProfile
    from fusesim.kernel import KernelTime, ShapeTimes
    from fusesim.machine import Machine
    from fusesim.ops import Op
    from fusesim.work import Chain

_INDEX = {name: np.uint8(BOUNDS.index(name)) for name in BOUNDS}

CACHE_WEIGHT = 0.7
"""Bytes that memory serves pass the cache path too; it decides only where it is clearly the longer of the two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """How far measurements lie from predictions.

    For each of `BOUNDS` the factors that enclose 90 %, and how much of the deviation an unfused chain shares with
    the fused one (1: all of it).
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    correlation: float


@dataclass(frozen=True, slots=True)
class CalibratedRun(ChainRun):
    """Kernels of a chain and their times; the `Parts` of its price."""

    situation: Situation
    machine: Machine
    pieces: tuple[tuple[Piece, KernelTime], ...]
    uncertainty: Uncertainty | None = None

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
        situation, device = self.situation, self.device_time
        if situation.launch == "graph":
            return device + situation.replay / situation.graph_repeats
        if situation.launch == "stream" or "pipelining" not in situation.effects:
            return larger(device, self.host_time)
        before = self.host_time - situation.host_interval
        return self.machine.idle + larger(device, before + self._total(lambda time: time.time, last=True))

    def _total(self, part: Callable[[KernelTime], Numbers], *, last: bool = False) -> Numbers:
        """Add a part up over all kernels, or over the chain's last one."""
        total = ZERO
        for piece, time in self.pieces:
            if piece.last or not last:
                total = total + piece.kernels * part(time)
        return total

    @property
    def launch_time(self) -> Numbers:
        """Floors of the kernels, with the share of a graph's replay or the wait from idle. [s]."""
        once = ZERO
        if self.situation.launch == "graph":
            once = self.situation.replay / self.situation.graph_repeats
        elif self.situation.launch == "latency" and "pipelining" in self.situation.effects:
            once = self.machine.idle
        return self._total(lambda time: time.floor) + once

    @property
    def memory_time(self) -> Numbers:
        """Latency and bytes, nothing else in the way. [s]."""
        return self._total(lambda time: time.latency + soft_maximum(time.shape.cache, time.dram))

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
        """Ends of the 90 % interval over the time, by what binds."""
        if self.uncertainty is None:
            return ONE, ONE
        bound, host = self.bound_index, int(_INDEX["host"])
        ends = []
        for factors, drift in zip(
            (self.uncertainty.low, self.uncertainty.high), self.situation.host_factors, strict=True
        ):
            by_bound = np.asarray(factors)
            by_bound[host] *= drift
            ends.append(by_bound[bound])
        return ends[0], ends[1]

    @property
    def bound_index(self) -> Any:
        """What takes the largest part: the host, launches with the latency behind them, or a ceiling."""
        parts = {
            "launch": self.launch_time + self._total(lambda time: time.latency),
            "dram": self._total(lambda time: time.dram),
            "l2": self._total(lambda time: time.shape.cache) * CACHE_WEIGHT,
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
    pieces: Sequence[Piece], situation: Situation, machine: Machine
) -> tuple[tuple[Piece, KernelTime], ...]:
    """Return each piece with the time of one of its kernels; pieces of one shape share what the shape takes."""
    shapes: dict[int, ShapeTimes] = {}
    timed = []
    for piece in pieces:
        if id(piece.shape) not in shapes:
            shapes[id(piece.shape)] = shape_times(piece.shape, machine, situation.effects)
        time = kernel_time(
            shapes[id(piece.shape)],
            machine,
            dram_load=piece.dram_load,
            cold=piece.cold,
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
    prices = []
    for kernels, pieces in (
        (chain.ops, unfused_pieces(chain, ops, situation, machine)),
        (ONE, fused_pieces(chain, ops, situation, machine)),
    ):
        timed = timed_pieces(pieces, situation, machine)
        run = CalibratedRun(chain, kernels, situation, machine, timed, uncertainty)
        prices.append(Price(time=spread(run.time, shape), parts=run, shape=shape, calibration=calibration))
    unfused, fused = prices
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
