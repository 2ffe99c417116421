"""The time of one kernel on a real device: short formulas, one per effect, and their combination.

    time = floor + latency + body
    body = soft maximum of (memory and issue), special functions, and the time of one thread
    memory = soft maximum of (all bytes through the cache) and (the bytes that memory serves)

Theory. A kernel first waits for its first bytes (latency), then streams. All bytes pass the path between the SMs
and the cache; those that miss also pass the memory, and the two overlap. Instructions are issued beside, limited
by the SM with the most blocks; special functions have a narrow unit of their own; and no thread ends sooner than
its own chain of dependent instructions. A soft maximum (p-norm) stands for imperfect overlap: a sum for p = 1,
a maximum for large p.

Numbers or arrays in, the same out. This file knows no op, no chain and no device name. Limits: kernels that
stream (read once, write once); uncoalesced access, atomics and shared memory are not in here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from fusesim.arrays import ZERO, larger

if TYPE_CHECKING:
    from fusesim.arrays import Numbers
    from fusesim.machine import Machine

AT_ONCE: Final = 0.33
"""Share of a full wave of blocks that starts at no cost, see `dispatch_time`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWork:
    """What one kernel does.

    `bytes_moved` in all and `dram_bytes` of them from memory; `cold`, the share of its first bytes that wait for
    memory rather than the cache; `operands` and `rows` beyond the first input; `blocks` of `threads` threads, each
    doing `vector` elements; per element `slots` instructions and `special` special functions, and `serial` clock
    cycles that one thread needs for one element.
    """

    bytes_moved: Numbers
    dram_bytes: Numbers
    cold: Numbers
    operands: int
    rows: int
    blocks: Numbers
    threads: int
    vector: int
    slots: Numbers
    special: Numbers
    serial: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """The time of one kernel and its parts. [s]."""

    floor: Numbers
    latency: Numbers
    dram: Numbers
    cache: Numbers
    issue: Numbers
    special: Numbers
    thread: Numbers
    body: Numbers

    @property
    def time(self) -> Numbers:
        """Floor, latency and body. [s]."""
        return self.floor + self.latency + self.body


def soft_maximum(first: Numbers, second: Numbers) -> Numbers:
    """Combine two times that overlap imperfectly: (a^4 + b^4)^(1/4), between their maximum and their sum.

    Notes
    -----
    Equal times take 1.19 times one of them; where one is twice the other, the other adds 1.5 %. The exponent was
    fitted together with all else and came out at 4.0 to 4.2 in four runs on an H200, so it is fixed at 4, which
    costs no power of floats.

    Examples
    --------
    >>> soft_maximum(3.0, 0.0), round(soft_maximum(1.0, 1.0), 3)
    (3.0, 1.189)
    """
    return np.sqrt(np.sqrt(_fourth(first) + _fourth(second)))


def nearly_maximum(first: Numbers, second: Numbers) -> Numbers:
    """Combine two times that overlap almost wholly: (a^8 + b^8)^(1/8).

    Examples
    --------
    >>> nearly_maximum(3.0, 0.0), round(nearly_maximum(1.0, 1.0), 3)
    (3.0, 1.091)
    """
    return np.sqrt(np.sqrt(np.sqrt(_fourth(first) ** 2 + _fourth(second) ** 2)))


def _fourth(time: Numbers) -> Numbers:
    squared = time * time
    return squared * squared


def reused_share(distance: Numbers, machine: Machine) -> Numbers:
    """Share of data still in the cache when as many distinct bytes as `distance` were touched since.

    Notes
    -----
    1 / (1 + (distance / reach)^sharpness): near 1 for short distances, one half where the distance reaches
    `cache_reach` of the capacity, falling smoothly because replacement is not strictly least-recently-used and the
    hash of addresses spreads unevenly over slices.
    """
    return 1.0 / (1.0 + (distance / (machine.cache_reach * machine.cache)) ** machine.cache_sharpness)


def first_touch_latency(work: KernelWork, machine: Machine) -> Numbers:
    """Time until the first bytes arrive: of memory where they are cold, of the cache where they are not. [s].

    The cache is slower to reach the more of its slices a kernel touches: the farthest one counts.
    """
    spread = 1.0 - np.exp(-work.bytes_moved * 2.0 / (2.0 + work.operands) / machine.spread_bytes)
    cached = machine.cache_latency + machine.cache_spread * spread
    extra = work.operands * machine.operand_latency + work.rows * machine.row_latency
    return work.cold * machine.dram_latency + (1.0 - work.cold) * cached + extra


def cache_time(work: KernelWork, machine: Machine) -> Numbers:
    """All bytes over the path between SMs and cache, and once more its latency beyond one wave of blocks. [s]."""
    waves = work.blocks * work.threads / (machine.sms * machine.resident_threads)
    again = np.asarray(waves > 1.0, dtype=np.float64)[()]
    return work.bytes_moved / machine.cache_bandwidth + machine.wave_latency * again


def busiest_sm_elements(work: KernelWork, machine: Machine, *, whole_blocks: bool) -> Numbers:
    """Elements of the SM with the most blocks: blocks are whole, so few of them leave SMs idle."""
    per_sm = work.blocks / machine.sms
    if whole_blocks:
        per_sm = np.ceil(per_sm)
    return per_sm * (work.threads * work.vector)


def dispatch_time(work: KernelWork, machine: Machine) -> Numbers:
    """Time until the last block has started: blocks start one by one at a finite rate. [s].

    The first of them find empty SMs and start while the kernel's latency runs; measured with CuPy's kernels, whose
    many small blocks this binds, they are about `AT_ONCE` of what the SMs can hold.
    """
    resident = machine.sms * machine.resident_threads / work.threads
    return larger(work.blocks - AT_ONCE * resident, ZERO) / machine.dispatch


def kernel_time(work: KernelWork, machine: Machine, *, floor: Numbers, effects: frozenset[str]) -> KernelTime:
    """Return the time of one kernel and its parts.

    Parameters
    ----------
    work : KernelWork
        What it does.
    machine : Machine
        Where.
    floor : float or ndarray
        What it costs to start and end. [s]
    effects : frozenset of str
        Which of `machine.EFFECTS` to count; without "latency", "cache" or "arithmetic" that part is nothing.
    """
    bandwidth = machine.bandwidth if "bandwidth" in effects else machine.peak_bandwidth
    dram = work.dram_bytes / bandwidth
    cache = cache_time(work, machine) if "cache" in effects else ZERO
    latency = first_touch_latency(work, machine) if "latency" in effects else ZERO
    memory = soft_maximum(cache, dram) if "cache" in effects else dram
    issue: Numbers = ZERO
    special: Numbers = ZERO
    thread: Numbers = ZERO
    body = memory
    if "blocks" in effects:
        body = nearly_maximum(body, dispatch_time(work, machine))
    if "arithmetic" in effects:
        elements = busiest_sm_elements(work, machine, whole_blocks="blocks" in effects)
        issue = elements * work.slots / (machine.issue_per_clock * machine.clock * machine.issue_share)
        special = elements * work.special / (machine.special_per_clock * machine.clock * machine.special_share)
        thread = work.serial * (work.vector / machine.clock)
        body = nearly_maximum(soft_maximum(body, issue), nearly_maximum(special, thread))
    return KernelTime(
        floor=floor,
        latency=latency,
        dram=dram,
        cache=cache,
        issue=issue,
        special=special,
        thread=thread,
        body=body,
    )
