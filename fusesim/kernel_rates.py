"""What was measured of a framework's kernels on a device: one row of rates per kernel class, and how well it fits.

A record refuses what cannot be true: an unknown class or rate, a value outside of any device's range. A class that a
file does not have is priced by the row that it stands nearest to (`FALLBACK`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fusesim.errors import InputError
from fusesim.launches import PARAMETERS, Rates, launch_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusesim.launches import Launch, LaunchTime, Served
    from fusesim.machine import Machine

FALLBACK: Final = {
    "pool": "strided2_16",
    "conv_odd": "conv_rare16",
    "concat_strided": "strided2_16",
    "concat_last": "strided2_16",
    "upsample": "strided2_16",
    "bilinear": "strided2_16",
    "parts": "gen_loop16",
}
"""A row that stands in for classes whose name begins so."""

FRAMEWORKS: Final = frozenset({"torch", "inductor"})
"""Paths whose kernels a framework's profiler watches."""

STEM: Final = 8
"""Letters by which two classes are related: one that was measured stands in for one that was not."""


VECTORISED: Final = 5.0
"""Instructions per value of a vectorised loop for addresses, loads and stores; what the device's own calibration was
measured with, so that nothing else is added (`fusesim.ops.DType.overhead`)."""


class _Record(BaseModel):
    """Frozen, and every unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Row(_Record):
    """Rates of one class, in base units, how many cases they were fitted to, and the errors left."""

    rates: dict[str, float]
    cases: int = Field(ge=1)
    median_error: float = Field(ge=0, allow_inf_nan=False)
    error_90: float = Field(ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _is_physical(self) -> Row:
        for name, value in self.rates.items():
            if name not in PARAMETERS:
                raise InputError(f"rates.{name} is no rate; known: {', '.join(PARAMETERS)}")
            unit, low, high = PARAMETERS[name]
            if not low <= value <= high:
                raise InputError(f"rates.{name} is {value:g}, outside of {low:g} to {high:g} {unit}: unphysical")
        return self


class Spread(_Record):
    """Factors from a predicted time to the ends of its 90 % interval, from cases that nothing was fitted to."""

    low: float = Field(gt=0, le=1, allow_inf_nan=False)
    high: float = Field(ge=1, lt=100, allow_inf_nan=False)
    cases: int = Field(ge=1)


class KernelRates(_Record):
    """One file of kernel rates."""

    schema_: Literal["fusesim-kernels/1"] = Field(alias="schema")
    name: str
    device: str
    date: str
    protocol: str
    environment: dict[str, str | float | int]
    rows: dict[str, Row]
    spreads: dict[str, Spread]
    correlation: float = Field(ge=-1, le=1)
    profiled: float = Field(default=0.0, ge=0, le=1e-5)
    """What each kernel of a graph takes longer in a process in which a profiler has run. [s]"""
    replay: float = Field(default=0.0, ge=0, le=1e-3)
    """What a replay of the framework's graph takes beyond its kernels; none where it was not measured. [s]"""
    following: float = Field(default=0.0, ge=0, le=1e-6)
    """What a kernel takes longer where the one before has just written what it reads. [s]"""

    def replaying(self, path: str, otherwise: float) -> float:
        """Return what a replay of a path's graph takes beyond its kernels. [s]."""
        return self.replay or otherwise if path in FRAMEWORKS else otherwise

    def watched(self, path: str, *, launch: str = "graph", profiled: bool = True) -> float:
        """Return what a kernel takes longer for a profiler: in a framework's graphs, where one has run. [s]."""
        return self.profiled if profiled and launch == "graph" and path in FRAMEWORKS else 0.0

    def spread(self, path: str, bound: str) -> tuple[float, float]:
        """Return the ends of the 90 % interval of a path's plans, by what binds them where that is known."""
        known = path if path in self.spreads else "inductor"
        own = self.spreads.get(f"{known}/{bound}") or self.spreads[known]
        return own.low, own.high

    def time(self, launch: Launch, machine: Machine, served: Served, *, floor: float) -> LaunchTime:
        """Return the time of one kernel of a plan, behind the one before. [s]."""
        after = floor + self.following * served.follows
        return launch_time(launch, self.find(launch.row), machine, served, floor=after)

    def find(self, name: str) -> Rates:
        """Return the rates of a class, or of the one that stands in for it."""
        row = self.rows.get(name) or self.rows.get(self._stand_in(name))
        return rates_of(row.rates) if row is not None else Rates()

    def _stand_in(self, name: str) -> str:
        """Return the class that stands in for one that was not measured, by what their names say."""
        for stem, near in FALLBACK.items():
            if name.startswith(stem) and near in self.rows:
                return near
        even = name.replace("_odd", "")
        if even in self.rows:
            return even
        stem = name.rstrip("0123456789_").removesuffix("_odd")[:STEM]
        return next((other for other in self.rows if other.startswith(stem)), "")


def rates_of(values: Mapping[str, float]) -> Rates:
    """Return a row's rates; those that it does not state take nothing."""
    plain = {
        "gap": 0.0,
        "block": 0.0,
        "step": 0.0,
        "rounds": 0.0,
        "slots": 0.0,
        "meeting": 0.0,
        "cycles": 1.0,
        "share": 1.0,
    }
    return Rates(**(plain | dict(values)))
