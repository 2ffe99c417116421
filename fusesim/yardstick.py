"""A good kernel as a yardstick: a vectorised copy, on a device as it runs, clocked down, capped or sliced."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fusesim import kernel_files
from fusesim.chains import price_chain
from fusesim.errors import InputError, excerpt
from fusesim.inputs import single
from fusesim.kernel import stream_share
from fusesim.launches import Access, Launch, Served, launch_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusesim.calibration import Calibration
    from fusesim.hardware import HardwareProfile
    from fusesim.machine import Machine

MIG_MEMORY: Final[Mapping[int, int]] = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}
"""Memory slices, of eight, that a MIG instance of so many compute slices, of seven, has (A100, H100, H200)."""

COMPUTE_SLICES: Final = 7
MEMORY_SLICES: Final = 8
PER_BLOCK: Final = 4096.0
"""Bytes that a block of the yardstick reads: 256 threads of 16. [B]"""


def clocked(machine: Machine, profile: HardwareProfile, clock: float | None, power_cap: float | None) -> Machine:
    """Return a machine whose clock is locked or lowered by a power cap."""
    factor = 1.0
    if clock is not None:
        factor = single("clock", clock, low=1e8, high=1e10, unit="Hz") / machine.clock
    if power_cap is not None:
        cap, board = single("power_cap", power_cap, low=10, high=1e5, unit="W"), _power(profile)
        factor = min(factor, (cap / board) ** (1 / 3) if cap < board else 1.0)
    if factor == 1.0:
        return machine
    return replace(
        machine,
        clock=machine.clock * factor,
        cache_bandwidth=machine.cache_bandwidth * factor,
        wave_bandwidth=machine.wave_bandwidth * factor,
    )


def _power(profile: HardwareProfile) -> float:
    """Return a board's power. [W]."""
    found = profile.chip.board_power
    if found is None:
        raise InputError(f"{profile.id}: no source states its power; leave power_cap out and give the clock")
    return float(found.si)


def sliced(machine: Machine, mig: tuple[int, int] | None) -> Machine:
    """Return the part of a machine that a MIG instance has."""
    if mig is None:
        return machine
    if not isinstance(mig, tuple) or mig not in [(slices, COMPUTE_SLICES) for slices in MIG_MEMORY]:
        text = "/".join(map(str, mig)) if isinstance(mig, tuple) else mig
        raise InputError(f"mig is {excerpt(text)}; give 1/7, 2/7, 3/7, 4/7 or 7/7, in the library as (1, 7)")
    memory, compute = MIG_MEMORY[mig[0]] / MEMORY_SLICES, mig[0] / COMPUTE_SLICES
    return replace(
        machine,
        sms=float(max(int(machine.sms * compute), 1)),
        cache=machine.cache * memory,
        peak_bandwidth=machine.peak_bandwidth * memory,
        bandwidth=machine.bandwidth * memory,
        cache_bandwidth=machine.cache_bandwidth * memory,
        wave_bandwidth=machine.wave_bandwidth * memory,
        dispatch=machine.dispatch * compute,
    )


class Yardstick:
    """A good kernel on a machine, in a launch mode."""

    def __init__(self, machine: Machine, profile: HardwareProfile, mode: str) -> None:
        self.machine, self.profile, self.mode = machine, profile, mode
        self.rates = kernel_files.find_rates(profile)
        self.once = machine.idle if mode == "latency" else 0.0

    def time(self, size: float, *, cold: bool = True) -> tuple[float, float]:
        """Return what so many bytes take, and the part of it that is launch and latency. [s]."""
        half = size / 2
        launch = Launch(
            name="check",
            row="vectorised32",
            reads=(Access("x", half),),
            writes=(Access("y", half),),
            elements=half / 4,
            blocks=max(half / PER_BLOCK, 1.0),
            slots=1.0,
        )
        where = Served(read=half, written=half) if cold else Served(cold=0.0)
        own = launch_time(launch, self.rates.find(launch.row), self.machine, where, floor=self.machine.floor)
        gap = self.machine.stream_gap * float(stream_share(own.body)) if self.mode != "graph" else 0.0
        return own.time + gap + self.once, own.floor + own.latency + gap + self.once

    def interval(self, size: float, record: Calibration) -> tuple[float, float]:
        """Return the 90 % interval of that time: as wide as that of a chain of one op of the size. [s]."""
        whole = max(round(size / 8), 1)
        one = price_chain(
            1,
            whole,
            dtype="fp32",
            device=self.profile,
            model="calibrated",
            launch=self.mode,
            graph_repeats=100,
            calibration=record,
        ).fused
        time = self.time(size)[0]
        return tuple(time * float(end) / float(one.time) for end in one.interval)  # type: ignore[return-value]

    def useful_size(self) -> float:
        """Return from how many bytes four fifths of the achievable rate are reached. [B]."""
        low, high = 1e3, 1e12
        for _ in range(40):
            middle = (low * high) ** 0.5
            reached = middle / self.time(middle)[0]
            low, high = (low, middle) if reached >= 0.8 * self.machine.bandwidth else (middle, high)
        return high
