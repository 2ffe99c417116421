"""How far a time may lie from its prediction: deviations of its parts, carried through to the whole.

A time is made of parts, and each of their formulas is off by so much of its own. By the propagation of uncertainty
each counts as far as the time follows it: a kernel that waits for memory is as uncertain as the memory's rate,
whatever its arithmetic may take.

    deviation of a time = root of the sum over sources of (sensitivity x deviation of the source)^2
    sensitivity = d time / d ln(part)

Sources: `launch` (floors and latencies), `dram`, `l2` and `arithmetic` (instructions and special functions) by their
part in the soft maxima; `thread`, what one thread takes alone, which a compiler's choices move most; `start`, the
first blocks that are said to start at no cost; `all`, the whole time, from one machine to the next. The same op run as
several kernels deviates the same way each time, and so do launches and memory; arithmetic of different kernels
deviates apart. Limits: sources are taken to be independent and small; deviations of parameters that several sources
have in common are not kept apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fusesim.arrays import ZERO, smaller
from fusesim.calibration import SOURCES
from fusesim.kernel import AT_ONCE
from fusesim.overlap import eighth, eighth_root, fourth

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fusesim.arrays import Numbers
    from fusesim.calibration import Calibration, Source
    from fusesim.chain_kernels import Piece
    from fusesim.kernel import KernelTime
    from fusesim.machine import Machine

NINE_IN_TEN = 1.645
"""Standard deviations of a normal distribution that enclose 90 % of it."""
TWO_RUNS = 2**0.5
"""What drifts from run to run has drifted in the calibration's run and drifts again in the one that is priced."""
SHARED = ("launch", "dram", "l2", "start")
"""Sources that deviate the same way in every kernel of a chain."""


class Uncertainty(NamedTuple):
    """Deviations that enclose 90 %, as logarithms: by source below and above, and of what a launch mode costs once.

    `gap` is that of a stream's gap. `correlation` is how much of its deviation an unfused chain shares with the fused
    one (1: all of it).
    """

    low: Mapping[Source, float]
    high: Mapping[Source, float]
    replay: float
    idle: float
    gap: float
    correlation: float


def uncertainty_of(calibration: Calibration) -> Uncertainty:
    """Return a calibration's deviations in the form that pricing takes."""

    def relative(name: str) -> float:
        fitted = calibration.parameters[name]
        return NINE_IN_TEN * TWO_RUNS * fitted.sigma / fitted.value if fitted.value else 0.0

    return Uncertainty(
        low={source: -float(np.log(spread.low)) for source, spread in calibration.spreads.items()},
        high={source: float(np.log(spread.high)) for source, spread in calibration.spreads.items()},
        replay=relative("replay"),
        idle=relative("idle"),
        gap=relative("stream_gap"),
        correlation=calibration.correlation,
    )


def sensitivities(piece: Piece, time: KernelTime, machine: Machine) -> dict[Source, Numbers]:
    """Return how far one kernel's time follows each source. [s].

    Notes
    -----
    body^8 = (cache^4 + dram^4 + issue^4)^2 + special^8 + thread^8 + dispatch^8, so for one of the first three
    d body / d ln x = x^4 (cache^4 + dram^4 + issue^4) / body^7. What one thread takes counts whole: where it is not
    the longest, it is still what the others may fail to overlap with.
    """
    shape = time.shape
    dram_4 = fourth(time.dram)
    throughput_4 = shape.layout.cache_4 + dram_4 + shape.issue_4
    body_8 = throughput_4 * throughput_4 + shape.others_8
    of_body = eighth_root(body_8 * 1.0) / body_8
    share = throughput_4 * of_body
    resident = machine.sms * machine.resident_threads / piece.shape.threads
    return {
        "launch": time.floor + time.latency,
        "dram": share * dram_4,
        "l2": share * shape.layout.cache_4,
        "arithmetic": share * shape.issue_4 + eighth(shape.special) * of_body,
        "thread": shape.thread,
        "start": smaller(piece.shape.blocks, AT_ONCE * resident) / machine.dispatch,
    }


def chain_sensitivities(
    pieces: Iterable[tuple[Piece, KernelTime]], machine: Machine, time: Numbers
) -> dict[Source, Numbers]:
    """Return how far the time of a chain's kernels follows each source. [s]."""
    totals: dict[Source, Numbers] = dict.fromkeys(SOURCES, ZERO)
    for piece, kernel in pieces:
        for source, each in sensitivities(piece, kernel, machine).items():
            part = piece.kernels * each
            totals[source] = totals[source] + (part if source in SHARED else part * part)
    for source in SOURCES:
        if source not in SHARED:
            totals[source] = np.sqrt(totals[source])
    totals["all"] = time
    return totals


def deviation(totals: Mapping[Source, Numbers], of: Mapping[Source, float], time: Numbers) -> Numbers:
    """Return the deviation of a time from those of its sources, relative: the logarithm of a factor."""
    total = ZERO
    for source, part in totals.items():
        total = total + (part * of[source]) ** 2
    return np.sqrt(total) / time
