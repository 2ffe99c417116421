"""What a price is: records that pricing returns, never bare floats.

Frozen; every field is a number or an array of the common shape. Records convert themselves (dict, HTML) and
explain themselves, but never compute a price.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusesim import units
from fusesim.arrays import plain
from fusesim.errors import InputError

if TYPE_CHECKING:
    from fusesim.arrays import Numbers
    from fusesim.hardware import HardwareProfile

BOUNDS: Final = ("launch", "host", "dram", "l2", "issue", "sfu", "tensor")
"""What can decide the time of a kernel or a chain."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Price:
    """What one way of running something costs.

    Times in seconds, sizes in bytes. `bytes_read`, `bytes_written` and `flops` are logical, the same in every
    model; `dram_bytes` and `l2_bytes` say where the bytes were served. `launch_time`, `memory_time` and
    `compute_time` are each part alone; launches and memory add up to `time` in the textbook only. `compute_time`
    is NaN where the device's file has no rate. `peak_memory` is above the inputs, outputs included.
    """

    time: Numbers
    interval: tuple[Numbers, Numbers]
    kernels: Numbers
    bytes_read: Numbers
    bytes_written: Numbers
    dram_bytes: Numbers
    l2_bytes: Numbers
    flops: Numbers
    launch_time: Numbers
    memory_time: Numbers
    compute_time: Numbers
    peak_memory: Numbers
    bound_index: Any
    calibration: str | None = None
    per_kernel: tuple[Price, ...] = ()

    @property
    def bytes_moved(self) -> Numbers:
        """Bytes read and written. [B]."""
        return self.bytes_read + self.bytes_written

    @property
    def arithmetic_intensity(self) -> Numbers:
        """FLOP per byte moved. [FLOP/B]."""
        return self.flops / self.bytes_moved

    @property
    def launch_share(self) -> Numbers:
        """Launches alone over the whole time."""
        return self.launch_time / self.time

    @property
    def bound(self) -> Any:
        """What decides the time: one of `BOUNDS`, or an array of them."""
        names = np.asarray(BOUNDS)[self.bound_index]
        return str(names) if names.ndim == 0 else names

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and lists, ready for JSON; unknown is None."""
        names = [field.name for field in fields(self) if field.name not in {"bound_index", "per_kernel"}]
        derived = ["bytes_moved", "arithmetic_intensity", "launch_share", "bound"]
        record = {name: plain(getattr(self, name)) for name in names + derived}
        return record | {"per_kernel": [kernel.to_dict() for kernel in self.per_kernel]}

    def _repr_html_(self) -> str:
        rows = {
            "time": _cell(self.time, units.TIME),
            "kernels": _cell(self.kernels, units.COUNT),
            "bytes moved": _cell(self.bytes_moved, units.SIZE),
            "launches alone": _cell(self.launch_time, units.TIME),
            "memory alone": _cell(self.memory_time, units.TIME),
            "bound": str(self.bound),
        }
        return _table(rows)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChainPrice:
    """A chain priced as separate kernels and as one.

    `saving` = unfused - fused [s] and may be negative; `speedup` = unfused / fused. `ridge_point` is where the
    device's plain arithmetic units and its memory take the same time [FLOP/B]; NaN where the rate is unknown.
    """

    unfused: Price
    fused: Price
    saving: Numbers
    saving_interval: tuple[Numbers, Numbers]
    speedup: Numbers
    ridge_point: Numbers
    elements: Numbers
    dtype: str
    device: HardwareProfile
    model: str
    launch: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and lists, ready for JSON; the device is named."""
        record: dict[str, Any] = {"device": self.device.id, "requested_as": self.device.requested_as}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "device":
                record[field.name] = value.to_dict() if isinstance(value, Price) else plain(value)
        return record

    def explain(self) -> list[str]:
        """Return what decides this price, in sentences; for one chain, not for an array of them.

        Raises
        ------
        InputError
            If the price is an array.
        """
        if np.ndim(self.speedup):
            raise InputError("explain() speaks of one chain; price a single size and a single length")
        return [self._verdict(), *self._crossover(), *self._intensity(), *self._capacity()]

    def _verdict(self) -> str:
        unfused, fused = self.unfused, self.fused
        share = units.format_share(float(unfused.launch_share))
        before, after = (units.format_quantity(float(p.bytes_moved), units.SIZE) for p in (unfused, fused))
        if unfused.kernels == 1:
            return f"one op is one kernel either way: nothing to fuse, {after} moved, launches are {share} of the time"
        moved = f"fused moves {after} instead of {before}"
        if unfused.bound == "launch":
            return f"launch-bound: launches are {share} of the unfused time, and fusing leaves 1 of {unfused.kernels:.0f}; {moved}"
        return f"memory-bound: {moved}; launches are {share} of the unfused time"

    def _crossover(self) -> list[str]:
        per_element = float(self.unfused.memory_time) / float(self.elements)
        size = float(self.unfused.launch_time) / per_element
        if size < 1:
            return []
        return [f"launches and memory weigh the same at about {size:.2g} elements; below, launches decide"]

    def _intensity(self) -> list[str]:
        ridge = float(self.ridge_point)
        if np.isnan(ridge):
            return []
        before, after = (float(price.arithmetic_intensity) for price in (self.unfused, self.fused))
        side = "below" if after < ridge else "above"
        return [
            f"arithmetic intensity is {before:.3g} FLOP/B unfused and {after:.3g} fused, {side} the ridge point of "
            f"{ridge:.3g} FLOP/B; the textbook leaves arithmetic out"
        ]

    def _capacity(self) -> list[str]:
        memory = self.device.memory.capacity
        least = float(self.fused.peak_memory) * 2  # the chain's input is as large as its output
        if memory is None or least <= memory.si:
            return []
        need, have = (units.format_quantity(size, units.SIZE) for size in (least, memory.si))
        return [f"input and output take {need}, more than the {have} of {self.device.id}: it will not fit"]

    def _repr_html_(self) -> str:
        rows = {
            "unfused": _cell(self.unfused.time, units.TIME),
            "fused": _cell(self.fused.time, units.TIME),
            "saving": _cell(self.saving, units.TIME),
            "device": self.device.id,
        }
        return _table(rows)


def _cell(value: Numbers, dimension: units.Dimension) -> str:
    """Write a number, or the range of an array."""
    if not np.ndim(value):
        return units.format_quantity(float(value), dimension)
    low, high = (units.format_quantity(float(end), dimension) for end in (np.min(value), np.max(value)))
    return f"{low} to {high} ({'x'.join(str(n) for n in np.shape(value))})"


def _table(rows: dict[str, str]) -> str:
    """Write a small HTML table."""
    body = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows.items())
    return f"<table>{body}</table>"
