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

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from fusesim.arrays import ONE, ZERO, bare, ceiling, either, larger, smaller
from fusesim.overlap import eighth, eighth_root, fourth, fourth_root

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


class LayoutTimes(NamedTuple):
    """The times of a kernel that depend on its blocks and operands alone, not on what it computes. [s].

    `elements` are those of the busiest SM, `waves` how many waves of blocks there are, at least 1; `cache_4` and
    `dispatch_8` are powers that soft maxima are made of.
    """

    cached_latency: Numbers
    extra_latency: Numbers
    cache: Numbers
    dispatch: Numbers
    elements: Numbers
    waves: Numbers
    cache_4: Numbers
    dispatch_8: Numbers


class ShapeTimes(NamedTuple):
    """The times of a kernel that do not depend on where its bytes come from. [s].

    `apart` is arithmetic per wave of blocks, see `FIRST_WAVE`; `issue_4` and `others_8` are powers that soft maxima are
    made of, kept because kernels of one shape share them.
    """

    layout: LayoutTimes
    issue: Numbers
    special: Numbers
    thread: Numbers
    apart: Numbers
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


def reused_share(distance: Numbers, machine: Machine) -> Numbers:
    """Share of data still in the cache when as many distinct bytes as `distance` were touched since.

    Notes
    -----
    1 / (1 + (distance / reach)^sharpness): near 1 for short distances, one half where the distance reaches
    `cache_reach` of the capacity, falling smoothly because replacement is not strictly least-recently-used and the
    hash of addresses spreads unevenly over slices.
    """
    power: Numbers = bare(np.power(distance / (machine.cache_reach * machine.cache), machine.cache_sharpness))
    return 1.0 / (1.0 + power)


def cached_latency(shape: KernelShape, machine: Machine) -> Numbers:
    """Time until the first bytes arrive from the cache, in a kernel that was not evicted from it. [s].

    It grows with the slices of the cache that a kernel touches, since the farthest one counts; bytes of the first
    input and the output tell how many. A few blocks reach most of it.
    """
    touched = shape.bytes_moved * (2.0 / (2.0 + shape.operands))
    near: Numbers = bare(np.exp(touched / -machine.spread_bytes))
    return machine.cache_latency + machine.cache_spread * (1.0 - near)


def cache_time(shape: KernelShape, machine: Machine) -> Numbers:
    """All bytes over the path between SMs and cache. [s].

    Notes
    -----
    Blocks of one wave have all their loads in flight at once. Where there are more, a block starts to load only when
    another has stored, so fewer bytes are in flight and the rate is lower: 5.7 instead of 7.1 TB/s on an H200, where
    one block more than a wave takes 0.5 us longer.
    """
    wave = machine.sms * machine.resident_threads / shape.threads
    return shape.bytes_moved / either(shape.blocks > wave, machine.cache_bandwidth, machine.wave_bandwidth)


def busiest_sm_elements(shape: KernelShape, machine: Machine, *, whole_blocks: bool) -> Numbers:
    """Elements of the SM with the most blocks: blocks are whole, so few of them leave SMs idle."""
    per_sm = shape.blocks / machine.sms
    if whole_blocks:
        per_sm = ceiling(per_sm)
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


def layout_times(shape: KernelShape, machine: Machine, effects: frozenset[str]) -> LayoutTimes:
    """Return the times that kernels of one size with as many operands share; what is not in `effects` takes none."""
    cached = extra = cache = dispatch = ZERO
    if "latency" in effects:
        operands, rows = shape.operands * machine.operand_latency, (shape.rows > 0) * machine.row_latency
        cached, extra = cached_latency(shape, machine) + operands + rows, operands + ROW_BESIDE * rows
    if "cache" in effects:
        cache = cache_time(shape, machine)
    if "blocks" in effects:
        dispatch = dispatch_time(shape, machine)
    return LayoutTimes(
        cached_latency=cached,
        extra_latency=extra,
        cache=cache,
        dispatch=dispatch,
        elements=busiest_sm_elements(shape, machine, whole_blocks="blocks" in effects),
        waves=larger(shape.blocks * (shape.threads / (machine.sms * machine.resident_threads)), ONE),
        cache_4=fourth(cache),
        dispatch_8=eighth(dispatch),
    )


def shape_times(shape: KernelShape, layout: LayoutTimes, machine: Machine, effects: frozenset[str]) -> ShapeTimes:
    """Return the times that do not depend on where the bytes come from; what is not in `effects` takes none."""
    if "arithmetic" not in effects:
        return ShapeTimes(layout, ZERO, ZERO, ZERO, ZERO, ZERO, layout.dispatch_8)
    elements, special = layout.elements, ZERO
    rate = machine.clock * machine.issue_per_clock * machine.issue_share
    issue = elements * (shape.slots / rate)
    if isinstance(shape.special, np.ndarray) or shape.special:
        special = elements * (shape.special / (machine.clock * machine.special_per_clock * machine.special_share))
    thread = shape.serial * (shape.vector / machine.clock)
    unit_8 = eighth(special) + eighth(thread)
    own_8 = eighth(elements * ((shape.slots - shape.overhead) / rate)) + unit_8
    return ShapeTimes(
        layout=layout,
        issue=issue,
        special=special,
        thread=thread,
        apart=eighth_root(own_8) / layout.waves,
        issue_4=fourth(issue),
        others_8=layout.dispatch_8 + unit_8,
    )


def kernel_time(
    times: ShapeTimes,
    machine: Machine,
    *,
    dram_load: Numbers,
    cold: Numbers,
    evicted: Numbers,
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
    evicted : float or ndarray
        Share of what a launch itself needs (code, arguments, its descriptor) that has left the cache since the same
        kernel ran last. Where the first bytes come from memory that wait hides this one.
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
    first, again = (machine.dram_latency, machine.evicted_latency) if "latency" in effects else (0.0, 0.0)
    layout = times.layout
    latency = cold * (first + layout.extra_latency) + (1.0 - cold) * (layout.cached_latency + again * evicted)
    memory_4 = layout.cache_4 + fourth(dram)
    throughput_4 = memory_4 + times.issue_4
    body = eighth_root(throughput_4 * throughput_4 + times.others_8)
    body = body + FIRST_WAVE * smaller(fourth_root(memory_4), times.apart)
    if isinstance(stream_gap, np.ndarray) or stream_gap:
        floor = floor + stream_gap * stream_share(body)
    return KernelTime(times, floor, latency, dram, body)
