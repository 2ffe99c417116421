"""What a price is: records that pricing returns, never bare floats.

Frozen; every field is a number or an array of the common shape. Records convert themselves (dict, HTML) and
explain themselves, but never compute a price.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from fusesim import units
from fusesim.arrays import frozen, plain, share, spread, whole
from fusesim.errors import InputError
from fusesim.explain import chain_sentences

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.arrays import Numbers
    from fusesim.hardware import HardwareProfile

BOUNDS: Final = ("launch", "host", "dram", "l2", "issue", "sfu", "tensor", "fma")
"""What can decide the time of a kernel or a chain."""


class Parts(Protocol):
    """What a model says of a run besides its time; computed when it is asked for, in shapes that broadcast."""

    @property
    def kernels(self) -> Numbers:
        """How many kernels run."""

    @property
    def bytes_read(self) -> Numbers:
        """Bytes read, logically: every kernel reads each of its inputs once. [B]."""

    @property
    def bytes_written(self) -> Numbers:
        """Bytes written, logically. [B]."""

    @property
    def dram_bytes(self) -> Numbers:
        """Bytes that device memory served. [B]."""

    @property
    def l2_bytes(self) -> Numbers:
        """Bytes that the cache served. [B]."""

    @property
    def flops(self) -> Numbers:
        """Arithmetic, an FMA counted as two. [FLOP]."""

    @property
    def launch_time(self) -> Numbers:
        """Launches alone. [s]."""

    @property
    def memory_time(self) -> Numbers:
        """Memory traffic alone. [s]."""

    @property
    def compute_time(self) -> Numbers:
        """Arithmetic alone, NaN where the device's file has no rate. [s]."""

    @property
    def peak_memory(self) -> Numbers:
        """Bytes above the inputs at the peak, outputs included. [B]."""

    @property
    def interval_factors(self) -> tuple[Any, Any]:
        """Ends of the 90 % interval of the time, as factors of it."""

    @property
    def bound_index(self) -> Any:
        """Place in `BOUNDS` of what decides the time."""


LATE: Final = tuple(
    name for name in vars(Parts) if isinstance(vars(Parts)[name], property) and name != "interval_factors"
)
"""Names of the fields of a Price that are computed when they are asked for."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Price:
    """What one way of running something costs.

    `time` and its 90 % `interval` are in seconds. The other fields, those of `Parts`, are plain attributes too;
    they are computed on first use, so that a million prices of which only the time is wanted cost little.
    Launches and memory add up to `time` in the textbook only. Records compare by identity: two of them are equal
    only if they are the same one; compare their fields, or `to_dict()`.
    """

    time: Numbers
    parts: Parts
    shape: tuple[int, ...] = ()
    calibration: str | None = None
    per_kernel: tuple[Price, ...] = ()

    if TYPE_CHECKING:
        kernels: Numbers = field(init=False)
        bytes_read: Numbers = field(init=False)
        bytes_written: Numbers = field(init=False)
        dram_bytes: Numbers = field(init=False)
        l2_bytes: Numbers = field(init=False)
        flops: Numbers = field(init=False)
        launch_time: Numbers = field(init=False)
        memory_time: Numbers = field(init=False)
        compute_time: Numbers = field(init=False)
        peak_memory: Numbers = field(init=False)
        bound_index: Any = field(init=False)

    def __post_init__(self) -> None:
        """Keep arrays from being written to."""
        frozen(self.time)

    def __getattr__(self, name: str) -> Any:
        """Compute a field of `Parts` in the common shape, and keep it."""
        if name not in LATE:
            raise AttributeError(f"a Price has no {name}")
        value = frozen(spread(getattr(self.parts, name), self.shape))
        object.__setattr__(self, name, value)
        return value

    @cached_property
    def interval(self) -> tuple[Numbers, Numbers]:
        """Ends of the 90 % interval of the time; both the time itself in the textbook. [s]."""
        low, high = (frozen(spread(self.time * factor, self.shape)) for factor in self.parts.interval_factors)
        return low, high

    @cached_property
    def bytes_moved(self) -> Numbers:
        """Bytes read and written. [B]."""
        return frozen(self.bytes_read + self.bytes_written)  # type: ignore[no-any-return]

    @property
    def arithmetic_intensity(self) -> Numbers:
        """FLOP per byte moved, 0 where nothing is. [FLOP/B]."""
        return share(self.flops, self.bytes_moved)

    @property
    def launch_share(self) -> Numbers:
        """Launches alone over the whole time, 0 where nothing runs."""
        return share(self.launch_time, self.time)

    @property
    def bound(self) -> Any:
        """What decides the time: one of `BOUNDS`, or an array of them."""
        names = np.asarray(BOUNDS)[self.bound_index]
        return str(names) if names.ndim == 0 else names

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and lists, ready for JSON; unknown is None."""
        names = (
            "time",
            "interval",
            *LATE,
            "bytes_moved",
            "arithmetic_intensity",
            "launch_share",
            "bound",
            "calibration",
        )
        record = {name: plain(getattr(self, name)) for name in names if name != "bound_index"}
        record["kernels"] = whole(self.kernels)
        return record | {"per_kernel": [kernel.to_dict() for kernel in self.per_kernel]}

    def __repr__(self) -> str:
        """Return one line: the time, and what it rests on."""
        model = f", calibration {self.calibration}" if self.calibration else ""
        return f"<Price{_shape(self.time)}: {_span(self.time, units.TIME)}{model}>"

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


@dataclass(frozen=True, kw_only=True, eq=False)
class ChainPrice:
    """A chain priced as separate kernels and as one.

    `saving` = unfused - fused [s] and may be negative; `speedup` = unfused / fused. `ridge_point` is where the
    device's plain arithmetic units and its memory take the same time [FLOP/B]; NaN where the rate is unknown.
    Records compare by identity, as a `Price` does.
    """

    unfused: Price
    fused: Price
    saving: Numbers
    speedup: Numbers
    ridge_point: Numbers
    elements: Numbers
    dtype: str
    device: HardwareProfile
    model: str
    launch: str
    correlation: float = field(default=1.0, repr=False)

    def __post_init__(self) -> None:
        """Keep arrays from being written to."""
        for value in (self.saving, self.speedup, self.ridge_point, self.elements):
            frozen(value)

    @cached_property
    def saving_interval(self) -> tuple[Numbers, Numbers]:
        """Ends of the 90 % interval of the saving; what both sides' deviations share cancels. [s].

        Notes
        -----
        Var(u - f) = Var(u) + Var(f) - 2 r sd(u) sd(f), for each end apart: the saving is least when the unfused
        chain is fast and the fused one slow. r is the correlation of the two deviations in the calibration.
        """

        def combine(first: Any, second: Any) -> Any:
            return np.sqrt(np.maximum(first**2 + second**2 - 2.0 * self.correlation * first * second, 0.0))

        unfused, fused = self.unfused, self.fused
        two = np.asarray(unfused.kernels > 1, dtype=np.float64)[()]  # one op is the same kernel either way
        below = combine(unfused.time - unfused.interval[0], fused.interval[1] - fused.time) * two
        above = combine(unfused.interval[1] - unfused.time, fused.time - fused.interval[0]) * two
        return frozen(self.saving - below), frozen(self.saving + above)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and lists, ready for JSON; the device is named."""
        record: dict[str, Any] = {"device": self.device.id, "requested_as": self.device.requested_as}
        for name in [*(entry.name for entry in fields(self)), "saving_interval"]:
            value = getattr(self, name)
            if name not in {"device", "correlation"}:
                record[name] = value.to_dict() if isinstance(value, Price) else plain(value)
        return record | {"elements": whole(self.elements)}

    def explain(self) -> list[str]:
        """Return what decides this price, in sentences; for one chain, not for an array of them.

        Raises
        ------
        InputError
            If the price is an array.
        """
        if np.ndim(self.speedup):
            raise InputError("explain() speaks of one chain; price a single size and a single length")
        return chain_sentences(self)

    def __repr__(self) -> str:
        """Return one line: both times, the speedup, and what they hold for."""
        unfused, fused = (_span(side.time, units.TIME) for side in (self.unfused, self.fused))
        speedups = _ends(self.speedup, units.format_ratio)
        where = f"{self.device.id}, {self.launch}, {self.model}"
        return f"<ChainPrice{_shape(self.speedup)}: {unfused} unfused, {fused} fused, {speedups}; {where}>"

    def _repr_html_(self) -> str:
        rows = {
            "unfused": _cell(self.unfused.time, units.TIME),
            "fused": _cell(self.fused.time, units.TIME),
            "saving": _cell(self.saving, units.TIME),
            "device": self.device.id,
        }
        return _table(rows)


def _cell(value: Numbers, dimension: units.Dimension) -> str:
    """Write a number, or the range and the shape of an array."""
    return f"{_span(value, dimension)}{_shape(value, '({})')}"


def _span(value: Numbers, dimension: units.Dimension) -> str:
    """Write a quantity, or the range of an array."""
    return _ends(value, lambda end: units.format_quantity(end, dimension))


def _ends(value: Numbers, write: Callable[[float], str]) -> str:
    """Write a number, or the least and the greatest of an array."""
    if not np.ndim(value):
        return write(float(value))
    return f"{write(float(np.min(value)))} to {write(float(np.max(value)))}"


def _shape(value: Numbers, frame: str = "{}") -> str:
    """Write the shape of an array behind a space, nothing for a number."""
    return f" {frame.format('x'.join(map(str, np.shape(value))))}" if np.ndim(value) else ""


def _table(rows: dict[str, str]) -> str:
    """Write a small HTML table."""
    body = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows.items())
    return f"<table>{body}</table>"
