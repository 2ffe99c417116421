"""What the calibrated model needs to know of a device: measured parameters beside the datasheet's, as plain numbers.

Numbers only; this file knows no file format, no op and no kernel. Every effect has a name and can be switched off;
with all of them off the model is the textbook.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

EFFECTS: Final = (
    "bandwidth",
    "floor",
    "replay",
    "latency",
    "cache",
    "arithmetic",
    "blocks",
    "pipelining",
)
"""The effects, in the order in which they are best understood:

bandwidth: memory reaches a share of its datasheet's bandwidth; floor: a kernel costs what was measured, not 4 us;
replay: so does a graph's replay; latency: the first touch of cold memory takes time before bytes flow; cache:
what one kernel wrote the next may find in the cache; arithmetic: instructions and special functions take slots;
blocks: only as many SMs work as there are blocks, and blocks start at a finite rate; pipelining: on a stream the
host issues the next kernel while the device runs this one.
"""

ALL_EFFECTS: Final = frozenset(EFFECTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Parameters of a device in base units (s, B, B/s, Hz).

    Datasheet: `sms`, `clock`, `cache` (capacity that holds intermediates), `peak_bandwidth`, and per SM and clock
    `issue_per_clock` instructions (threads) and `special_per_clock` special functions; `resident_threads` per SM.

    Measured: `floor` of one kernel in a graph, `stream_gap` that a stream adds behind a long one, `idle` that one
    chain from idle adds, `replay` of a graph; `dram_latency` of the first touch of memory and `cache_latency` of the
    cache, which grows by `cache_spread` as a kernel touches more than `spread_bytes`, so more slices of it;
    `evicted_latency` of a launch whose own data left the cache; `operand_latency` per extra tensor, `row_latency`
    where there are rows; `bandwidth` of memory and `cache_bandwidth` that kernels reach, or `wave_bandwidth` while
    all their blocks are resident;
    `cache_reach`, the share of the cache beyond which reused data is lost, and `cache_sharpness` of that edge;
    `issue_share` and `special_share` of the peak issue rates; `dispatch`, blocks that start per second.
    """

    sms: float
    clock: float
    cache: float
    peak_bandwidth: float
    issue_per_clock: float = 128.0
    special_per_clock: float = 16.0
    resident_threads: float = 2048.0
    floor: float
    stream_gap: float
    idle: float
    replay: float
    dram_latency: float
    cache_latency: float
    cache_spread: float
    spread_bytes: float
    evicted_latency: float
    operand_latency: float
    row_latency: float
    bandwidth: float
    cache_bandwidth: float
    wave_bandwidth: float
    cache_reach: float
    cache_sharpness: float
    issue_share: float
    special_share: float
    dispatch: float


class Parameter(NamedTuple):
    """A measured parameter: its unit, and the range outside of which no device has been seen."""

    unit: str
    low: float
    high: float


PARAMETERS: Final = {
    "floor": Parameter("s", 1e-7, 2e-5),
    "stream_gap": Parameter("s", 0.0, 2e-5),
    "idle": Parameter("s", 1e-7, 1e-3),
    "replay": Parameter("s", 0.0, 1e-3),
    "dram_latency": Parameter("s", 2e-7, 1e-5),
    "cache_latency": Parameter("s", 5e-8, 3e-6),
    "cache_spread": Parameter("s", 0.0, 3e-6),
    "spread_bytes": Parameter("B", 1e3, 1e8),
    "evicted_latency": Parameter("s", 0.0, 3e-6),
    "operand_latency": Parameter("s", 0.0, 2e-6),
    "row_latency": Parameter("s", 0.0, 2e-6),
    "bandwidth": Parameter("B/s", 1e10, 1e14),
    "cache_bandwidth": Parameter("B/s", 1e10, 1e15),
    "wave_bandwidth": Parameter("B/s", 1e10, 1e15),
    "cache_reach": Parameter("1", 0.1, 1.2),
    "cache_sharpness": Parameter("1", 1.0, 40.0),
    "issue_share": Parameter("1", 0.3, 1.0),
    "special_share": Parameter("1", 0.3, 1.0),
    "dispatch": Parameter("1/s", 1e7, 1e11),
}
"""The parameters that a calibration holds. A fit that leaves a range is refused: it would be unphysical."""
