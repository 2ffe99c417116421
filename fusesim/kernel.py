"""The time of one kernel on a real device: short formulas, one per effect, and their combination.

    time = floor + latency + body
    body = near maximum of throughput, the start of blocks, special functions, and one thread's time,
           and a part of the shorter of memory and arithmetic, which the first wave of blocks cannot overlap
    throughput = soft maximum of (all bytes through the cache), (the bytes that memory serves) and instruction issue

Theory. A kernel first waits for its first bytes (latency), then streams. All bytes pass the path between the SMs
and the cache; those that miss also pass the memory, and the two overlap. Instructions are issued beside, limited
by the SM with the most blocks; they overlap no better, since the loads of new blocks wait behind them. Special
functions have a narrow unit of their own; and no thread ends sooner than its own chain of dependent instructions. A
soft maximum (p-norm) stands for imperfect overlap: a sum for p = 1, a maximum for large p.

Numbers or arrays in, the same out. This file knows no op, no chain and no device name. Limits: kernels that
stream (read once, write once); uncoalesced access, atomics and shared memory are not in here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from fusesim.arrays import ONE, ZERO, flag, larger, smaller

if TYPE_CHECKING:
    from fusesim.arrays import Numbers
    from fusesim.machine import Machine

SMALLEST_GAP: Final = 0.44
DRAIN: Final = 4e-6
"""Shape of a stream's gap, see `stream_share`. [1, s]"""

AT_ONCE: Final = 0.33
"""Share of a full wave of blocks that starts at no cost, see `dispatch_time`."""


FIRST_WAVE: Final = 0.05
"""Share of the shorter of memory and arithmetic that adds to the longer in a kernel of one wave, less in one of more:
all its blocks start together, so they load together and then compute together. From chains of random ops on an H200:
without it 90 % of held-out ones lie within 8.3 %, with it within 7.7 %."""

TURNAROUND: Final = 0.1
"""How much more a written byte costs at the memory than the mean of one read and one written, and a read one less: the
bus turns around for writes. From kernels that read two and four tensors and write one, 67 million elements each, on an
H200: they reach 4 and 5 % more bandwidth than a copy."""

ROW_BESIDE: Final = 0.3
"""Part of a row's latency that is left where the first input comes from memory: finding the column and reading the row
from the cache run beside that. One block of an H200 takes 0.2 us longer for rows when all is cached, 16 to 32 blocks
0.06 us when nothing is."""


class KernelShape(NamedTuple):
    """What one kernel does, wherever its bytes come from.

    `bytes_moved` in all; `operands` and `rows` beyond the first input; `blocks` of `threads` threads, each doing
    `vector` elements; per element `slots` instructions, `overhead` of them for loads, addresses and stores, and
    `special` special functions, and `serial` clock cycles that one thread needs for one element.
    """

    bytes_moved: Numbers
    operands: int
    rows: int
    blocks: Numbers
    threads: int
    vector: int
    slots: Numbers
    overhead: Numbers
    special: Numbers
    serial: Numbers


class ShapeTimes(NamedTuple):
    """The times of a kernel that do not depend on where its bytes come from. [s].

    `apart` is arithmetic per wave of blocks, see `FIRST_WAVE`; `cache_4`, `issue_4` and `others_8` are powers that soft
    maxima are made of, kept because kernels of one shape share them.
    """

    cached_latency: Numbers
    extra_latency: Numbers
    cache: Numbers
    dispatch: Numbers
    issue: Numbers
    special: Numbers
    thread: Numbers
    apart: Numbers
    cache_4: Numbers
    issue_4: Numbers
    others_8: Numbers


class KernelTime(NamedTuple):
    """The time of one kernel and its parts. [s]."""

    shape: ShapeTimes
    floor: Numbers
    latency: Numbers
    dram: Numbers
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
    fitted together with all else and came out at 4.0 to 4.2 in four runs on an H200, so it is fixed at 4.

    Examples
    --------
    >>> float(soft_maximum(3.0, 0.0)), round(float(soft_maximum(1.0, 1.0)), 3)
    (3.0, 1.189)
    """
    return _root(_root(_fourth(first) + _fourth(second)))


def near_maximum(first: Numbers, second: Numbers) -> Numbers:
    """Combine two times that overlap almost wholly: (a^8 + b^8)^(1/8).

    Examples
    --------
    >>> float(near_maximum(3.0, 0.0)), round(float(near_maximum(1.0, 1.0)), 3)
    (3.0, 1.091)
    """
    return _root(_root(_root(_eighth(first) + _eighth(second))))


def _fourth(time: Numbers) -> Numbers:
    """Return the fourth power, with one temporary array."""
    return _square(time * time)


def _eighth(time: Numbers) -> Numbers:
    """Return the eighth power, with one temporary array."""
    return _square(_fourth(time))


def _square(own: Numbers) -> Numbers:
    """Square a temporary array in place."""
    own *= own
    return own


def _root(own: Numbers) -> Numbers:
    """Return the square root of a temporary array, in place."""
    return np.sqrt(own, out=own) if isinstance(own, np.ndarray) else math.sqrt(own)


def reused_share(distance: Numbers, machine: Machine) -> Numbers:
    """Share of data still in the cache when as many distinct bytes as `distance` were touched since.

    Notes
    -----
    1 / (1 + (distance / reach)^sharpness): near 1 for short distances, one half where the distance reaches
    `cache_reach` of the capacity, falling smoothly because replacement is not strictly least-recently-used and the
    hash of addresses spreads unevenly over slices.
    """
    return 1.0 / (1.0 + (distance / (machine.cache_reach * machine.cache)) ** machine.cache_sharpness)


def cached_latency(shape: KernelShape, machine: Machine) -> Numbers:
    """Time until the first bytes arrive from the cache. [s].

    It grows with the slices of the cache that a kernel touches, since the farthest one counts; bytes of the first
    input and the output tell how many.
    """
    touched = shape.bytes_moved * (2.0 / (2.0 + shape.operands))
    return machine.cache_latency + machine.cache_spread * (1.0 - np.exp(touched / -machine.spread_bytes))


def cache_time(shape: KernelShape, machine: Machine) -> Numbers:
    """All bytes over the path between SMs and cache, and once more its latency beyond one wave of blocks. [s]."""
    wave = machine.sms * machine.resident_threads / shape.threads
    return shape.bytes_moved / machine.cache_bandwidth + machine.wave_latency * flag(shape.blocks > wave)


def busiest_sm_elements(shape: KernelShape, machine: Machine, *, whole_blocks: bool) -> Numbers:
    """Elements of the SM with the most blocks: blocks are whole, so few of them leave SMs idle."""
    per_sm = shape.blocks / machine.sms
    if whole_blocks:
        per_sm = np.ceil(per_sm)
    return per_sm * (shape.threads * shape.vector)


def dispatch_time(shape: KernelShape, machine: Machine) -> Numbers:
    """Time until the last block has started: blocks start one by one at a finite rate. [s].

    The first of them find empty SMs and start while the kernel's latency runs; measured with CuPy's kernels, whose
    many small blocks this binds, they are about `AT_ONCE` of what the SMs can hold.
    """
    resident = machine.sms * machine.resident_threads / shape.threads
    return larger(shape.blocks - AT_ONCE * resident, ZERO) / machine.dispatch


def stream_share(body: Numbers) -> Numbers:
    """Return the part of a stream's gap that a kernel of that body has.

    On a stream the next kernel waits until this one has drained and its writes are settled; a small kernel leaves
    little to settle. Measured gaps grow from 0.7 us behind the smallest kernels of an H200 to 1.6 us behind long ones,
    half of it at about 4 us.
    """
    return SMALLEST_GAP + (1.0 - SMALLEST_GAP) * (body / (body + DRAIN))


def shape_times(shape: KernelShape, machine: Machine, effects: frozenset[str]) -> ShapeTimes:
    """Return the times that do not depend on where the bytes come from; what is not in `effects` takes none."""
    issue = special = thread = apart = cache = dispatch = ZERO
    if "cache" in effects:
        cache = cache_time(shape, machine)
    if "blocks" in effects:
        dispatch = dispatch_time(shape, machine)
    unit_8 = ZERO
    if "arithmetic" in effects:
        elements = busiest_sm_elements(shape, machine, whole_blocks="blocks" in effects)
        rate = machine.clock * machine.issue_per_clock * machine.issue_share
        issue = elements * (shape.slots / rate)
        if isinstance(shape.special, np.ndarray) or shape.special:
            special = elements * (shape.special / (machine.clock * machine.special_per_clock * machine.special_share))
        thread = shape.serial * (shape.vector / machine.clock)
        unit_8 = _eighth(special) + _eighth(thread)
        own_8 = _eighth(elements * ((shape.slots - shape.overhead) / rate)) + unit_8
        waves = shape.blocks * (shape.threads / (machine.sms * machine.resident_threads))
        apart = _root(_root(_root(own_8))) / larger(waves, ONE)
    operands, rows = shape.operands * machine.operand_latency, (shape.rows > 0) * machine.row_latency
    return ShapeTimes(
        cached_latency=cached_latency(shape, machine) + operands + rows if "latency" in effects else ZERO,
        extra_latency=operands + ROW_BESIDE * rows if "latency" in effects else ZERO,
        cache=cache,
        dispatch=dispatch,
        issue=issue,
        special=special,
        thread=thread,
        apart=apart,
        cache_4=_fourth(cache),
        issue_4=_fourth(issue),
        others_8=_eighth(dispatch) + unit_8,
    )


def kernel_time(
    times: ShapeTimes,
    machine: Machine,
    *,
    dram_load: Numbers,
    cold: Numbers,
    floor: Numbers,
    stream_gap: Numbers = ZERO,
    effects: frozenset[str],
) -> KernelTime:
    """Return the time of one kernel and its parts.

    Parameters
    ----------
    times : ShapeTimes
        What it takes wherever its bytes come from.
    machine : Machine
        Where it runs.
    dram_load : float or ndarray
        Bytes that memory serves, written ones counted for more, see `TURNAROUND`. [B]
    cold : float or ndarray
        Share of its first bytes that wait for memory rather than the cache.
    floor : float or ndarray
        What it costs to start and end. [s]
    stream_gap : float or ndarray
        What a stream adds to that behind a long kernel; 0 in a graph. [s]
    effects : frozenset of str
        Which of `machine.EFFECTS` to count.

    Notes
    -----
    body = near maximum of soft(cache, dram, issue), dispatch, special and thread, written with the powers that the
    maxima are made of, so that each root is taken once; and what the first wave cannot overlap.
    """
    dram = dram_load / (machine.bandwidth if "bandwidth" in effects else machine.peak_bandwidth)
    first = machine.dram_latency if "latency" in effects else 0.0
    latency = cold * (first + times.extra_latency) + (1.0 - cold) * times.cached_latency
    memory_4 = times.cache_4 + _fourth(dram)
    body = _root(_root(_root(_square(memory_4 + times.issue_4) + times.others_8)))
    body = body + FIRST_WAVE * smaller(_root(_root(memory_4)), times.apart)
    if isinstance(stream_gap, np.ndarray) or stream_gap:
        floor = floor + stream_gap * stream_share(body)
    return KernelTime(times, floor, latency, dram, body)
