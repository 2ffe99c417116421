"""What held-out measurements say of a fit: how far they lie from it by what binds, and where that comes from.

The deviation of each source (see `fusesim.uncertainty`) is fitted by maximum likelihood: measured over predicted times
scatter with the width that the sources give each case. Student's distribution with few degrees of freedom stands for
the scatter, so that outliers do not decide. All widths are then scaled together until nine in ten cases lie within.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from fusesim.calibration import REGIMES, SOURCES, Residuals, Spread
from fusesim.records import BOUNDS
from fusesim.uncertainty import NINE_IN_TEN, chain_sensitivities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.calibrate.record import Row
    from fusesim.calibrated import CalibratedRun
    from fusesim.calibration import Fitted, Source

MACHINES: Final = 1.014
"""Factor between two machines of one kind, whatever the kernel: long copies take 1 to 2 % longer on one H200 than on
another."""
MIN_REGIME: Final = 20
"""Fewer held-out rows than this in a regime say nothing of their own; all rows together are taken instead."""
FREEDOM: Final = 3.0
"""Degrees of freedom of Student's distribution: as heavy as the tails of kernels that a compiler makes."""
NARROWEST, WIDEST = 0.003, 1.0
"""Limits of a source's deviation, as a logarithm: below, the same kernel measured twice differs by more."""
DIGITS: Final = 4
"""Significant digits that are kept: more would differ from one numerical library to the next."""


class Judgement(NamedTuple):
    """Residuals by regime, deviations by source, and how much of theirs an unfused chain and its fused form share."""

    residuals: dict[str, Residuals]
    spreads: dict[Source, Spread]
    correlation: float


def judge(rows: Sequence[Row], runs: Sequence[CalibratedRun], replay: Fitted) -> Judgement:
    """Compare held-out rows inside graphs with the runs that the model makes of them.

    Parameters
    ----------
    rows : sequence of Row
        Not fitted; regimes and shared deviations are those of path cuda.
    runs : sequence of CalibratedRun
        One for each row.
    replay : Fitted
        Its own uncertainty explains a part of what is found.
    """
    ratios = np.array([row.median / float(run.time) for row, run in zip(rows, runs, strict=True)])
    cuda = np.array([row.path == "cuda" for row in rows])
    regimes = np.array([regime_of(run) for run in runs])
    residuals = {}
    for regime in REGIMES:
        mine = ratios[cuda & (regimes == regime)]
        residuals[regime] = _residuals(mine if len(mine) >= MIN_REGIME else ratios[cuda])
    own = [(row, ratio) for row, ratio in zip(rows, ratios, strict=True) if row.path == "cuda"]
    return Judgement(residuals, _spreads(runs, np.log(ratios), replay), _shared_deviation(own))


def regime_of(run: CalibratedRun) -> str:
    """Return the regime of residuals that a run belongs to."""
    bound = BOUNDS[int(run.bound_index)]
    return {"host": "launch", "issue": "arithmetic", "sfu": "arithmetic"}.get(bound, bound)


def _residuals(ratios: Any) -> Residuals:
    """Return what the ratios of measured over predicted times have in common."""
    low, high = np.quantile(ratios, [0.05, 0.95])
    return Residuals(
        cases=len(ratios),
        median_error=float(np.median(np.abs(1 / ratios - 1))),
        low=float(min(low, 1.0)),
        high=float(max(high, 1.0)),
    )


def _spreads(runs: Sequence[CalibratedRun], deviations: Any, replay: Fitted) -> dict[Source, Spread]:
    """Return the deviation of each source that makes these deviations likely."""
    from scipy.optimize import minimize  # noqa: PLC0415 - slow to import, and only a fit needs it

    shares = [chain_sensitivities(run.pieces, run.machine, run.time) for run in runs]
    squares = np.array(
        [[float(each[s] / run.time) ** 2 for s in SOURCES] for each, run in zip(shares, runs, strict=True)]
    )
    known = np.array([(NINE_IN_TEN * replay.sigma / replay.value * float(run.once / run.time)) ** 2 for run in runs])
    found = deviations**2

    def unlikelihood(logs: Any) -> tuple[float, Any]:
        widths = squares @ np.exp(2 * logs) + known
        tail = found / (FREEDOM * widths)
        value = np.sum(0.5 * np.log(widths) + 0.5 * (FREEDOM + 1) * np.log1p(tail))
        slope = 0.5 * (1 - (FREEDOM + 1) * tail / (1 + tail)) / widths
        return float(value), 2 * np.exp(2 * logs) * (squares.T @ slope)

    limits = [(np.log(NARROWEST), np.log(WIDEST))] * len(SOURCES)
    start = np.full(len(SOURCES), np.log(0.02))
    best = minimize(unlikelihood, start, jac=True, bounds=limits, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 0})
    widths = squares @ np.exp(2 * best.x) + known
    scale = float(np.quantile(np.sqrt(found / widths), 0.9))
    ends = dict(zip(SOURCES, scale * np.exp(best.x), strict=True))
    ends["all"] = np.hypot(ends["all"], np.log(MACHINES))
    return {source: _spread(float(f"{end:.{DIGITS}g}")) for source, end in ends.items()}


def _spread(end: float) -> Spread:
    """Return the factors of a deviation that is as large both ways."""
    return Spread(low=float(np.exp(-end)), high=float(np.exp(end)))


def _shared_deviation(rows: Sequence[tuple[Row, float]]) -> float:
    """Return the correlation of the deviations of an unfused chain and its fused form."""
    pairs: dict[Any, dict[bool, float]] = {}
    for row, ratio in rows:
        key = (row.ops, row.elements, row.dtype, row.row)
        pairs.setdefault(key, {})[row.fused] = float(np.log(ratio))
    both = np.array([(pair[False], pair[True]) for pair in pairs.values() if len(pair) == len((False, True))])
    if len(both) < MIN_REGIME:
        return 0.0
    return float(np.clip(np.corrcoef(both.T)[0, 1], 0.0, 0.95))
