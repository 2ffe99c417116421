"""Whether bytes in a time are good: near the ceiling, launch-bound, from the cache, impossible, or a kernel's problem.

The yardstick is a vectorised kernel that reads half of the bytes and writes half, by the calibrated model.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from fusesim import calibrations, units
from fusesim.api import find_device
from fusesim.calibration import machine_of
from fusesim.inputs import MAX_BANDWIDTH, MAX_TIME, MIN_BANDWIDTH, choice, single
from fusesim.kernel import reused_share
from fusesim.schedule import LAUNCH_MODES
from fusesim.yardstick import Yardstick, clocked, sliced

if TYPE_CHECKING:
    from fusesim.calibration import Calibration
    from fusesim.hardware import HardwareProfile

Verdict = Literal["near the ceiling", "launch-bound", "L2-resident", "impossible", "kernel problem"]

SLACK: Final = 1.02
"""A rate above a peak by less than this factor is a clock's or a timer's rounding."""

MOSTLY: Final = 0.5
"""Share of the bytes that the cache may hold from which it explains a time."""

NEAR: Final = 1.15
"""A kernel that takes longer than a good one by up to this factor has no problem."""

LAUNCH_SHARE: Final = 0.5
"""Share of launches and latency in the expected time from which they decide."""

MOST_BYTES: Final = 1e18


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What is to be said of bytes in a time. [B, s, B/s].

    `expected` is what a good kernel takes with its 90 % `interval`, `ceiling` the device's peak as it runs,
    `achievable` what kernels reach of it, `cache_rate` that of the cache; `ratio` is measured over expected.
    `useful_size` is from how many bytes a good kernel reaches four fifths of the achievable rate.
    """

    bytes: float
    time: float
    device: str
    launch: str
    verdict: Verdict
    rate: float
    ceiling: float
    achievable: float
    cache_rate: float
    cache: float
    expected: float
    interval: tuple[float, float]
    launch_time: float
    useful_size: float
    sentences: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Measured over expected: above 1 is slower than a good kernel."""
        return self.time / self.expected

    def explain(self) -> list[str]:
        """Return the verdict and why, in sentences."""
        return list(self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self) | {"ratio": self.ratio}


def check(
    bytes: float,  # noqa: A002 - the public name
    time: float,
    *,
    device: str | HardwareProfile = "h200-sxm",
    working_set: float | None = None,
    launch: str = "graph",
    clock: float | None = None,
    power_cap: float | None = None,
    mig: tuple[int, int] | None = None,
    dram_bandwidth: float | None = None,
    calibration: Any = None,
) -> Check:
    """Say whether moving bytes in a time is good, and if not why.

    Parameters
    ----------
    bytes : float
        Read plus written by one kernel, each byte once. [B]
    time : float
        What it took. [s]
    device : str or HardwareProfile
        Where it ran.
    working_set : float, optional
        Distinct bytes that it touched, where it touched some more than once; `bytes` unless given. [B]
    launch : str
        How the time was taken: ``"graph"`` or ``"stream"``, many behind each other; ``"latency"``, one from idle.
    clock : float, optional
        What the SM clock was locked to. [Hz]
    power_cap : float, optional
        The board's power limit. [W]
    mig : tuple of int, optional
        Compute slices of a MIG instance out of seven: ``(1, 7)``.
    dram_bandwidth : float, optional
        In place of the datasheet's. [B/s]
    calibration : Calibration, str or path, optional
        As for prices.

    Returns
    -------
    Check
        `verdict`, the rates that it rests on, and `explain()`.

    Raises
    ------
    InputError
        If an argument is wrong.
    CalibrationError
        If nothing is known of the device.

    Notes
    -----
    Above the cache's rate, or above memory's with more bytes than the cache holds, is impossible: bytes were counted
    that were not moved, or the clock was stopped before the kernel was. A locked clock slows the cache and instructions
    in proportion, memory not; a power cap lowers the clock by the cube root of its share of the board's power, a rule
    of thumb; a MIG instance has its slices of memory, cache and SMs. Fails first for reads without writes, which are
    up to a few percent faster than the yardstick.

    Examples
    --------
    >>> check(268e6, 63e-6).verdict, check(8192, 2e-6).verdict, check(268e6, 20e-6).verdict
    ('near the ceiling', 'launch-bound', 'impossible')
    """
    size = single("bytes", bytes, low=1, high=MOST_BYTES, unit="B")
    took = single("time", time, low=1e-12, high=MAX_TIME, unit="s")
    touched = size if working_set is None else single("working_set", working_set, low=1, high=size, unit="B")
    mode, profile = choice("launch mode", launch, LAUNCH_MODES), find_device(device)
    record = calibrations.find_calibration(profile, calibration)
    machine = machine_of(record, profile)
    if dram_bandwidth is not None:
        peak = single("dram_bandwidth", dram_bandwidth, low=MIN_BANDWIDTH, high=MAX_BANDWIDTH, unit="B/s")
        reached = machine.bandwidth / machine.peak_bandwidth
        machine = replace(machine, peak_bandwidth=peak, bandwidth=reached * peak)
    machine = sliced(clocked(machine, profile, clock, power_cap), mig)
    good = Yardstick(machine, profile, mode)
    return _judged(size, took, touched, good, record)


def _judged(size: float, took: float, touched: float, good: Yardstick, record: Calibration) -> Check:
    """Return the verdict with what it rests on."""
    expected, launched = good.time(size)
    machine = good.machine
    found = Check(
        bytes=size,
        time=took,
        device=good.profile.id,
        launch=good.mode,
        verdict="near the ceiling",
        rate=size / took,
        ceiling=machine.peak_bandwidth,
        achievable=machine.bandwidth,
        cache_rate=max(machine.wave_bandwidth, machine.cache_bandwidth),
        cache=machine.cache * machine.cache_reach,
        expected=expected,
        interval=good.interval(size, record),
        launch_time=launched,
        useful_size=good.useful_size(),
        sentences=(),
    )
    host = record.paths["torch"].high + machine.idle if good.mode != "graph" else 0.0
    reused = float(reused_share(touched, machine))
    found = replace(found, verdict=_verdict(found, reused, max(host, 0.0), machine.floor))
    return replace(found, sentences=tuple(_sentences(found, touched, good.profile)))


def _verdict(found: Check, reused: float, host: float, floor: float) -> Verdict:
    """Return the verdict; `reused` is the share of the bytes that the cache may hold, `host` what a launch may add."""
    rate, low, high = found.rate, *found.interval
    quickest = max((1.0 - reused) * found.bytes / found.ceiling, found.bytes / found.cache_rate, 0.8 * floor)
    if found.time * SLACK < quickest:
        return "impossible"
    short = found.launch_time >= LAUNCH_SHARE * found.expected
    if rate > SLACK * found.ceiling or (
        found.time < low and reused > MOSTLY and rate > LAUNCH_SHARE * found.achievable
    ):
        return "L2-resident"
    if found.time <= NEAR * high:
        return "launch-bound" if short else "near the ceiling"
    return "launch-bound" if found.time <= high + host else "kernel problem"


def _sentences(found: Check, touched: float, profile: HardwareProfile) -> list[str]:
    """Say the verdict, what it rests on, and what to do."""

    def rate(value: float) -> str:
        return units.format_quantity(value, units.BANDWIDTH)

    def time(value: float) -> str:
        return units.format_quantity(value, units.TIME)

    size = units.format_quantity(found.bytes, units.SIZE)
    share = units.format_share(found.rate / found.ceiling)
    low, high = (time(end) for end in found.interval)
    held = units.format_capacity(found.cache)
    first = f"{found.verdict}: {size} in {time(found.time)} are {rate(found.rate)}, {share} of {rate(found.ceiling)}"
    expected = f"a good kernel takes {time(found.expected)} ({low} to {high}) on {profile.name}, {found.launch}"
    ratio = units.format_ratio(found.ratio)
    what = {
        "near the ceiling": [f"kernels reach {rate(found.achievable)} of memory here: there is little left to win"],
        "launch-bound": [
            f"launching and the first bytes take {time(found.launch_time)}, so the rate says nothing of the kernel",
            f"a rate means something from about {units.format_quantity(found.useful_size, units.SIZE)}",
            "fuse it with its neighbours or launch it in a CUDA graph; time many launches, not one",
        ],
        "L2-resident": [
            f"the cache holds {held} from call to call and serves up to {rate(found.cache_rate)}",
            "so memory was not measured: rotate over buffers of more than three times the cache, or flush it",
        ],
        "impossible": [
            f"neither memory nor the cache ({rate(found.cache_rate)}) is as fast",
            "bytes were counted that were not moved, or the clock was stopped before the kernel ended (synchronise)",
        ],
        "kernel problem": [
            f"it takes {ratio} what it should, and launching explains {time(found.launch_time)} only",
            "look for strided or broadcast operands, casts, too few blocks, spilled registers, or costly arithmetic",
        ],
    }[found.verdict]
    if found.verdict == "impossible" and touched > found.cache:
        what.insert(1, f"the cache holds {held} from call to call, too little for these bytes")
    return [first, expected, *what]
