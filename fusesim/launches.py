"""One kernel of a plan: what it moves and computes, in what blocks, and how long it takes.

A `Launch` is counted, not fitted: bytes, elements, blocks, steps per thread. A `Rates` row is measured: what a class of
kernels costs per block, per step and per element beyond the device's own ceilings. A class is decided from element
types, strides and shapes alone (`fusesim.lowering`); every class has its own row, and nothing else is fitted.

    time       = floor + latency + gap + own + body
    own        = dependent instructions of one thread
    body       = waves of hypot(throughput, block x joins + step x steps), or matrix units
    throughput = soft maximum of bytes through the cache, bytes from memory, instructions, and special functions

Theory: blocks that do not fit on the device at once run in waves. A block takes a time of its own (its synchronisations
and dependent loads), and each thread of it one more for every step of its loop; where enough blocks are in flight
memory, instructions or the matrix units are longer, and hide most of that. Plain floats: one kernel at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from fusesim.attention_tiles import attention_time
from fusesim.kernel import TURNAROUND
from fusesim.products import product_time
from fusesim.waves import in_waves, rounds

if TYPE_CHECKING:
    from fusesim.attention_tiles import TiledAttention
    from fusesim.machine import Machine
    from fusesim.products import Product, Tiling


INSTRUCTION: Final = 16.0
"""Bytes of one instruction (Volta and later). [B]"""

CODE_CACHE: Final = 32768.0
"""Code that an SM's nearest instruction cache holds (Hopper; microbenchmarks of its predecessors say 32 KiB). [B]"""

FETCH: Final = 1.0
"""By how much instructions slow down where code is far larger than that and is fetched anew for each block. Of 0, 0.5,
1.0 and 1.5, what fits rows of 1000 values with costly ops, 32 to a thread, best (H200); sine alone doubles beyond 16
per thread (tests/reference/h200_threads.json)."""

SPECIAL_ISSUE: Final = 8.0
"""Clock cycles that a warp's special function occupies its scheduler's unit: 32 lanes on 4 (Hopper)."""

SECOND_PASS: Final = 0.25
"""Part of the bytes of a second pass over rows that leaves the SM: most is still in its own first-level cache. Of 1.0,
0.5, 0.25 and 0.1, 0.25 fits norms of long rows in fp32 best (H200)."""


class Access(NamedTuple):
    """Bytes of one tensor's memory that a kernel reads or writes, each once. [B]."""

    storage: str
    bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel: what it touches, what it issues, and how its work is cut into blocks.

    `row` names its class. `reads` and `writes` are distinct bytes; `again` are bytes read once more in the same kernel
    (a second pass over a row), which the cache serves as far as `window`, the bytes in flight between the two passes,
    stays in it. `crossing` bytes leave the cache beside those that are distinct: of sectors that are fetched whole, or
    again, for a part that is used. Per element `slots` instructions and `special` functions beyond the class's own, and
    `branched` clock cycles in which the other elements of its thread wait; per thread `joined` instructions that join
    what its block has, whatever the length. `serial` clock cycles are what a thread's dependent instructions take
    between its last load and its store, and `partial` those of a last block that is not full; `chain` values are what
    one thread works through in a block, which no other warp can take from it; `code` instructions are written out for
    it one behind the other. `steps` are what one thread does one after the other; `resident` blocks fit on an SM, and
    their threads meet `joins` times. A kernel on the matrix units has `flops` at `rate` per SM: a `product` cut by a
    `tiling`, or `attention` in tiles. `arithmetic` is its share of the graph's FLOP, `nodes` the ops that it computes.
    """

    name: str
    row: str
    nodes: tuple[str, ...] = ()
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    again: float = 0.0
    window: float = 0.0
    crossing: float = 0.0
    elements: float = 0.0
    blocks: float = 1.0
    threads: int = 128
    resident: float = 16.0
    joins: float = 1.0
    steps: float = 1.0
    slots: float = 0.0
    special: float = 0.0
    joined: float = 0.0
    branched: float = 0.0
    serial: float = 0.0
    partial: float = 0.0
    chain: float = 0.0
    code: float = 0.0
    flops: float = 0.0
    rate: float = 0.0
    product: Product | None = None
    tiling: Tiling | None = None
    attention: TiledAttention | None = None
    arithmetic: float = 0.0

    @property
    def bytes_read(self) -> float:
        """Bytes read, each tensor once, second passes too. [B]."""
        return sum(access.bytes for access in self.reads) + self.again

    @property
    def bytes_written(self) -> float:
        """Bytes written. [B]."""
        return sum(access.bytes for access in self.writes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What was measured of a class of kernels.

    `gap` seconds that a kernel of the class takes beyond the device's floor and latency, `block` seconds that a block
    takes whatever its length, `step` seconds of one step of a thread, `rounds` how often it waits for memory in a
    step, `slots` instructions per element for addresses, loads and stores, `meeting` those of each thread where a
    block's threads combine what they have (shuffles, shared memory: a row costs them whatever its length), `cycles`
    clocks per instruction of a warp that nothing hides, `share` of the device's memory bandwidth that the class
    reaches. On the matrix units `peak` is the share that one SM reaches, `fill` what it takes in, `drain` what it lets
    out, and `sustained` the share of the device's peak that power allows.
    """

    gap: float = 0.0
    block: float = 0.0
    step: float = 0.0
    rounds: float = 0.0
    slots: float = 6.0
    meeting: float = 0.0
    cycles: float = 1.0
    share: float = 1.0
    peak: float = 0.8
    fill: float = 1.4e11
    sustained: float = 0.8
    drain: float = 0.0


PARAMETERS: Final = {
    "gap": ("s", 0.0, 2e-5),
    "block": ("s", 0.0, 2e-5),
    "step": ("s", 0.0, 2e-5),
    "rounds": ("1", 0.0, 4.0),
    "slots": ("1", 0.0, 1000.0),
    "meeting": ("1", 0.0, 2000.0),
    "cycles": ("1", 0.0, 20.0),
    "share": ("1", 0.1, 1.0),
    "peak": ("1", 0.02, 1.0),
    "fill": ("B/s", 1e9, 1e13),
    "sustained": ("1", 0.02, 1.2),
    "drain": ("B/s", 0.0, 1e13),
}
"""Unit and physical range of what a row holds; a fit that leaves a range is refused."""


class LaunchTime(NamedTuple):
    """The time of one kernel and its parts. [s]."""

    floor: float
    latency: float
    dram: float
    cache: float
    issue: float
    special: float
    tensor: float
    waves: float
    body: float

    @property
    def time(self) -> float:
        """Floor, latency and body. [s]."""
        return self.floor + self.latency + self.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Where a kernel's bytes come from: `dram` of those read and of those written, the rest from the cache. [B].

    `cold` is the largest share of any input that memory serves, `evicted` the share of a launch's own code and
    arguments that has left the cache since it last ran; `follows` says that the kernel before has just written what
    this one reads.
    """

    read: float = 0.0
    written: float = 0.0
    cold: float = 1.0
    evicted: float = 0.0
    follows: bool = False


def fetch_factor(code: float) -> float:
    """Return how much slower instructions issue for the size of their straight-line code. [B].

    Examples
    --------
    >>> fetch_factor(1000.0), fetch_factor(65536.0)
    (1.0, 1.5)
    """
    return 1.0 if code <= CODE_CACHE else 1.0 + FETCH * (1.0 - CODE_CACHE / code)


def matrix_time(launch: Launch, rates: Rates, machine: Machine) -> float:
    """Time of the matrix units alone; 0 for a kernel without. [s].

    Notes
    -----
    A product as `fusesim.products` has it, attention as `fusesim.attention_tiles`.
    """
    sms = int(machine.sms)
    if launch.product is not None and launch.tiling is not None:
        return product_time(launch.product, launch.tiling, rates, sms=sms, rate=launch.rate)
    if launch.attention is not None:
        places = sms * int(launch.resident)
        return attention_time(launch.attention, rates, places=places, rate=launch.rate / launch.resident)
    return 0.0


def launch_time(launch: Launch, rates: Rates, machine: Machine, served: Served, *, floor: float) -> LaunchTime:
    """Return the time of one kernel and its parts.

    Parameters
    ----------
    launch : Launch
        What it does.
    rates : Rates
        What was measured of its class.
    machine : Machine
        Where it runs.
    served : Served
        Where its bytes come from.
    floor : float
        What a kernel costs to start and end in this launch mode. [s]

    Returns
    -------
    LaunchTime
        The parts, each alone, and the body in which they overlap. [s]

    Notes
    -----
    Memory time counts written bytes for more than read ones (`fusesim.kernel.TURNAROUND`). Soft maxima as in
    `fusesim.kernel`: exponent 4 for what shares the path to memory, and between the matrix units and that; 8 for units
    of their own. Limits: kernels whose blocks differ in length, atomics.
    """
    load = served.read * (1.0 - TURNAROUND) + served.written * (1.0 + TURNAROUND)
    dram = load / (machine.bandwidth * rates.share)
    cache = _cache_time(launch, machine)
    issue, special = _issue_times(launch, rates, machine)
    first = _first_touch(launch, machine, served)
    operands = max(len(launch.reads) - 1, 0) * machine.operand_latency
    latency = (first + operands if launch.reads else 0.0) + rates.gap + launch.serial / machine.clock
    throughput = math.sqrt(math.sqrt(dram**4 + cache**4 + issue**4))
    tensor = matrix_time(launch, rates, machine)
    if tensor:
        body = math.sqrt(math.hypot(tensor**2, throughput**2))
        return LaunchTime(floor, latency, dram, cache, issue, special, tensor, 0.0, body)
    alone = _block_time(launch, rates, machine, first)
    count = launch.blocks / (machine.sms * launch.resident)
    body = in_waves((throughput**8 + special**8) ** 0.125, alone, count)
    latency += max((launch.partial - launch.serial) / machine.clock - max(dram, cache), 0.0)
    return LaunchTime(floor, latency, dram, cache, issue, special, tensor, rounds(count) * alone, body)


def _cache_time(launch: Launch, machine: Machine) -> float:
    """Time of all bytes on the path through the cache; wider while all blocks run at once. [s]."""
    resident = launch.blocks <= machine.sms * launch.resident
    path = machine.wave_bandwidth if resident else machine.cache_bandwidth
    moved = launch.bytes_read + launch.bytes_written + launch.crossing
    return (moved - (1.0 - SECOND_PASS) * launch.again) / path


def _issue_times(launch: Launch, rates: Rates, machine: Machine) -> tuple[float, float]:
    """Time to issue instructions, and special functions, on the SM that has most blocks. [s]."""
    per_sm = math.ceil(launch.blocks / machine.sms)
    elements = launch.elements * per_sm / launch.blocks if launch.blocks else 0.0
    slots, fetched = launch.slots + rates.slots, fetch_factor(launch.code * INSTRUCTION)
    meeting = launch.joins * rates.meeting + launch.joined
    issued = elements * slots * fetched + per_sm * launch.threads * meeting
    issue = issued / (machine.clock * machine.issue_per_clock * machine.issue_share)
    special = elements * launch.special / (machine.clock * machine.special_per_clock * machine.special_share)
    return issue, special


def _first_touch(launch: Launch, machine: Machine, served: Served) -> float:
    """Time until first bytes arrive, from memory as far as inputs are cold, else from the cache. [s]."""
    touched = -math.expm1(-(launch.bytes_read + launch.bytes_written) / machine.spread_bytes)
    cached = machine.cache_latency + machine.cache_spread * touched + served.evicted * machine.evicted_latency
    return served.cold * machine.dram_latency + (1.0 - served.cold) * cached


def _block_time(launch: Launch, rates: Rates, machine: Machine, first: float) -> float:
    """Time of one block alone; `first` is one wait for memory. [s]."""
    slots, fetched = launch.slots + rates.slots, fetch_factor(launch.code * INSTRUCTION)
    issued = launch.chain * (slots * fetched + SPECIAL_ISSUE * launch.special) + launch.joined
    alone = (issued * rates.cycles + launch.chain * launch.branched) / machine.clock
    return rates.block * launch.joins + (rates.step + rates.rounds * first) * launch.steps + alone
