"""Fits the model's parameters to recorded measurements. Runs anywhere, the same numbers every time.

The parameters of a kernel are fitted together to kernels and chains inside CUDA graphs, as least squares of the
logarithm of predicted over measured with a loss that outliers cannot dominate. What belongs to one launch mode or
one software path is fitted after that, alone: the rate of dispatch and a path's gap to CuPy's kernels, a stream's
gap and the wait from idle to chains in that mode. A parameter's sigma comes from the curvature of the fit.
Residuals, and so intervals, come from chains that were not fitted.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusesim.calibrate.residuals import judge
from fusesim.calibrated import CalibratedRun
from fusesim.calibration import Calibration, Fitted, PathCost, join
from fusesim.chain_kernels import Situation
from fusesim.errors import CalibrationError
from fusesim.kernel import stream_share
from fusesim.machine import ALL_EFFECTS, PARAMETERS, Machine
from fusesim.ops import OPS, find_dtype
from fusesim.paths import STYLES
from fusesim.work import Chain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.calibrate.record import Measurements, Row
    from fusesim.hardware import HardwareProfile

START: Final = {
    "floor": 1e-6,
    "stream_gap": 1e-6,
    "idle": 6e-6,
    "replay": 3e-6,
    "dram_latency": 9e-7,
    "cache_latency": 3e-7,
    "cache_spread": 3e-7,
    "spread_bytes": 1e4,
    "evicted_latency": 2e-7,
    "operand_latency": 6e-8,
    "row_latency": 4e-8,
    "bandwidth": 0.9,  # of the peak
    "cache_bandwidth": 1.3,  # of the peak of memory
    "wave_bandwidth": 1.5,
    "cache_reach": 0.66,
    "cache_sharpness": 6.0,
    "issue_share": 0.9,
    "special_share": 0.95,
    "dispatch": 1.5e9,
}
"""Where the fit starts: typical of data-centre parts."""

KERNEL_PARAMETERS: Final = tuple(name for name in START if name not in {"stream_gap", "idle", "dispatch"})
OUTLIER: Final = 0.015
"""Relative deviation beyond which a row weighs less; the same case measured twice differs by about half of it."""
DRIFT: Final = {"replay": 0.15, "idle": 0.2, "stream_gap": 0.1}
"""Relative standard deviation between runs of what the host has a part in, from runs minutes apart on one machine:
the scatter within a run does not show it."""
HOSTS: Final = 2.2
"""Factor between the launch intervals of two hosts: from C++ they take 2.1 us (published) to 4.7 us, through CuPy 7 to
20 us, with the same software on hosts of H200s. Nothing on the device tells which."""
FEWEST_SIZES: Final = 10
"""Fewer sizes do not tell a latency from a rate."""
SUITES: Final = ("fit", "mix")
HELD_OUT: Final = ("judge", "plain")


def predict(row: Row, machine: Machine, *, gap: float = 0.0, effects: frozenset[str] = ALL_EFFECTS) -> CalibratedRun:
    """Return the run that the model makes of a measured case; its `time` is the prediction.

    Parameters
    ----------
    row : Row
        A chain.
    machine : Machine
        Parameters to predict with.
    gap : float
        What a kernel of the row's path costs beyond the device's floor. [s]
    effects : frozenset of str
        Effects to count.
    """
    ops, dtype = tuple(OPS[name] for name in row.ops), find_dtype(row.dtype)
    chain = Chain(
        ops=float(len(ops)),
        flops=float(sum(op.flops for op in ops)),
        tensors=sum(op.tensors for op in ops),
        rows=sum(op.rows for op in ops),
        elements=float(row.elements),
        row=float(row.row or 1),
        itemsize=dtype.itemsize,
    )
    floor = machine.floor + gap
    situation = Situation(
        dtype=dtype,
        style=STYLES[row.path],
        launch=row.mode,
        buffer_sets=float(row.sets),
        effects=effects,
        floor=floor,
        stream_gap=0.0 if row.mode == "graph" else machine.stream_gap,
        replay=machine.replay,
        graph_repeats=float(row.sets),
        host_interval=0.0,
    )
    kernels = 1.0 if row.fused else float(len(ops))
    return CalibratedRun(chain, kernels, situation, machine, ops, row.fused)


def fit(measured: Measurements, profile: HardwareProfile, name: str) -> Calibration:
    """Fit a calibration to recorded measurements.

    Parameters
    ----------
    measured : Measurements
        With the suites "fit" and "mix" of path cuda, and held-out ones.
    profile : HardwareProfile
        The datasheet of the device.
    name : str
        Name of the result.

    Raises
    ------
    CalibrationError
        If rows are missing, or the parameters come out unphysical.
    """
    fitted = [row for row in measured.of(path="cuda", mode="graph", kind="chain") if row.suite in SUITES]
    held = [row for row in measured.of(path="cuda", mode="graph", kind="chain") if row.suite in HELD_OUT]
    _check_enough(fitted, held)
    empty = measured.of(suite="fit", path="cuda", mode="graph", kind="empty")
    machine = _start(profile)
    machine, sigmas = _least_squares([*empty, *fitted], machine, KERNEL_PARAMETERS)
    machine, gap, sigmas = _fit_paths(measured, machine, sigmas)
    parameters = {
        key: Fitted(value=value, sigma=math.hypot(sigmas.get(key, 0.0), DRIFT.get(key, 0.0) * value), unit=unit.unit)
        for key, unit in PARAMETERS.items()
        for value in [float(getattr(machine, key))]
    }
    judged = [*held, *measured.of(path="cupy", mode="graph", kind="chain", suite="cupy-judge")]
    runs = [predict(row, machine, gap=gap if row.path == "cupy" else 0.0) for row in judged]
    found = judge(judged, runs, parameters["replay"])
    return Calibration.model_validate(
        {
            "schema": "fusesim-calibration/1",
            "name": name,
            "device": profile.id,
            "date": measured.date,
            "protocol": measured.protocol,
            "environment": measured.environment,
            "parameters": parameters,
            "residuals": found.residuals,
            "spreads": found.spreads,
            "correlation": found.correlation,
            "paths": _path_costs(measured, gap),
        }
    )


def _check_enough(fitted: Sequence[Row], held: Sequence[Row]) -> None:
    """Refuse what cannot determine the parameters."""
    least = 10 * len(KERNEL_PARAMETERS)
    if len(fitted) < least:
        raise CalibrationError(f"only {len(fitted)} measured kernels to fit, {least} are needed; measure again")
    if len(held) < 40:  # noqa: PLR2004 - below that a 5 % quantile means nothing
        raise CalibrationError(f"only {len(held)} measured kernels to judge by, 40 are needed; measure again")
    sizes = {row.elements for row in fitted}
    if len(sizes) < FEWEST_SIZES:
        raise CalibrationError(f"only {len(sizes)} sizes were measured, {FEWEST_SIZES} are needed; measure again")
    medians = np.array([row.median for row in fitted])
    if medians.max() < 10 * medians.min():
        raise CalibrationError("all measured times are alike, whatever the size: nothing was measured")


def _start(profile: HardwareProfile) -> Machine:
    """Return the machine that the fit starts from."""
    peak = profile.dram_bandwidth
    rates = {name: START[name] * peak for name in ("bandwidth", "cache_bandwidth", "wave_bandwidth")}
    return join(START | rates, profile)


def _least_squares(rows: Sequence[Row], machine: Machine, names: Sequence[str]) -> tuple[Machine, dict[str, float]]:
    """Fit the named parameters, in logarithms so that none can turn negative; return their standard deviations."""
    from scipy.optimize import least_squares  # noqa: PLC0415 - slow to import, and only a fit needs it

    measured = np.log([row.median for row in rows])

    def with_values(logs: Any) -> Machine:
        return dataclasses.replace(machine, **dict(zip(names, map(float, np.exp(logs)), strict=True)))

    def deviations(logs: Any) -> Any:
        trial = with_values(logs)
        return np.log([_time(row, trial) for row in rows]) - measured

    start = np.log([getattr(machine, name) for name in names])
    low, high = (np.log([max(getattr(PARAMETERS[n], end), 1e-12) for n in names]) for end in ("low", "high"))
    peak = [i for i, name in enumerate(names) if name == "bandwidth"]
    high[peak] = np.log(0.99 * machine.peak_bandwidth)
    found = least_squares(deviations, start, bounds=(low, high), loss="soft_l1", f_scale=OUTLIER, x_scale=0.1)
    variance = 2 * found.cost / max(len(rows) - len(names), 1)
    covariance = np.linalg.pinv(found.jac.T @ found.jac) * variance
    fitted = with_values(found.x)
    spread = np.sqrt(np.diag(covariance))
    return fitted, {n: float(s * getattr(fitted, n)) for n, s in zip(names, spread, strict=True)}


def _time(row: Row, machine: Machine) -> float:
    """Return the predicted time of a row in a graph; only empty kernels tell the floor from the latencies."""
    if row.kind == "empty":
        return machine.floor + machine.replay / row.sets
    return float(predict(row, machine).time)


def _fit_paths(
    measured: Measurements, machine: Machine, sigmas: dict[str, float]
) -> tuple[Machine, float, dict[str, float]]:
    """Fit what belongs to a launch mode or to CuPy's kernels; return the machine, CuPy's gap and all sigmas."""
    stream = measured.of(suite="fit", path="cuda", mode="stream", kind="chain")
    latency = measured.of(suite="fit", path="cuda", mode="latency", kind="chain", fused=True)
    sigmas = dict(sigmas)
    if stream:
        bare = dataclasses.replace(machine, stream_gap=0.0)
        gaps = [_gap_behind(row, predict(row, bare)) for row in stream]
        machine, sigmas["stream_gap"] = _median_of("stream_gap", gaps, machine)
    if latency:
        bare = dataclasses.replace(machine, idle=0.0)
        machine, sigmas["idle"] = _median_of(
            "idle", [row.median - float(predict(row, bare).time) for row in latency], machine
        )
    cupy = [row for row in measured.of(path="cupy", mode="graph", kind="chain") if row.suite == "cupy"]
    gap = 0.0
    if cupy:
        machine, gap, sigmas["dispatch"] = _fit_cupy(cupy, machine)
    return machine, gap, sigmas


def _gap_behind(row: Row, bare: CalibratedRun) -> float:
    """Return the gap behind a long kernel that would explain the row, `bare` being its run without any."""
    shares = sum(float(piece.kernels * stream_share(time.body)) for piece, time in bare.pieces)
    return (row.median - float(bare.time)) / shares


def _kernels(row: Row) -> int:
    """Return how many kernels the case runs as."""
    return 1 if row.fused or not row.ops else len(row.ops)


def _median_of(name: str, values: Sequence[float], machine: Machine) -> tuple[Machine, float]:
    """Set one parameter to the median of direct estimates; its sigma is the median's."""
    centre = float(max(np.median(values), PARAMETERS[name].low))
    sigma = float(1.25 * np.std(values) / np.sqrt(len(values)))
    return dataclasses.replace(machine, **{name: centre}), sigma


def _fit_cupy(rows: Sequence[Row], machine: Machine) -> tuple[Machine, float, float]:
    """Fit the rate at which blocks start, and what CuPy's kernels cost beyond the floor."""
    from scipy.optimize import least_squares  # noqa: PLC0415

    measured = np.log([row.median for row in rows])

    def deviations(logs: Any) -> Any:
        trial = dataclasses.replace(machine, dispatch=float(np.exp(logs[0])))
        gap = float(np.exp(logs[1]))
        return np.log([float(predict(row, trial, gap=gap).time) for row in rows]) - measured

    start = np.log([START["dispatch"], 1e-7])
    found = least_squares(deviations, start, loss="soft_l1", f_scale=OUTLIER, x_scale=0.1)
    dispatch, gap = (float(value) for value in np.exp(found.x))
    variance = 2 * found.cost / max(len(rows) - 2, 1)
    sigma = float(np.sqrt(np.linalg.pinv(found.jac.T @ found.jac)[0, 0] * variance) * dispatch)
    return dataclasses.replace(machine, dispatch=dispatch), gap, sigma


def _path_costs(measured: Measurements, gap: float) -> dict[str, PathCost]:
    """Return what each path's host needs per launch: measured where it was, else as published."""
    costs = {path: PathCost(**values) for path, values in PUBLISHED_HOSTS.items()}
    own = float(measured.environment.get("call_overhead", 0.0))
    for path in ("cuda", "cupy"):
        rows = [row for row in measured.of(path=path, mode="stream") if row.host and row.kind in {"empty", "chain"}]
        values = [row.host / _kernels(row) for row in rows if row.host]
        if values:
            interval = max(float(np.median(values)) - (own if path == "cuda" else 0.0), 1e-7)
            costs[path] = PathCost(interval=interval, low=interval / HOSTS, high=interval * HOSTS, note="measured here")
    costs["cupy"] = costs["cupy"].model_copy(update={"gap": gap})
    return costs


PUBLISHED_HOSTS: Final[dict[str, dict[str, Any]]] = {
    "cuda": {"interval": 3.3e-6, "low": 2.1e-6, "high": 4.0e-6, "note": "C++ on an H200 host; 2.1 to 2.6 us published"},
    "cupy": {
        "interval": 17e-6,
        "low": 12e-6,
        "high": 30e-6,
        "note": "ufunc or ElementwiseKernel from Python, H200 host",
    },
    "torch": {"interval": 8e-6, "low": 5e-6, "high": 15e-6, "note": "PyTorch 2.11 eager, per op, H200 host"},
    "inductor": {"interval": 50e-6, "low": 35e-6, "high": 95e-6, "note": "torch.compile, per call, H200 host"},
}
"""Host intervals measured on one H200 host, for paths that a run did not measure; they drift by up to 1.9 times."""
