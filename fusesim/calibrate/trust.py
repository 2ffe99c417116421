"""What must hold of measurements before they are fitted, and of a fit before it is believed.

The bounds are wide: no GPU comes near them, while a file in other units, or of another device, breaks them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from fusesim import units
from fusesim.calibrate.fit import fit
from fusesim.errors import CalibrationError, MeasurementError, excerpt
from fusesim.machine import PARAMETERS
from fusesim.ops import OPS, find_dtype
from fusesim.store import first_problem

if TYPE_CHECKING:
    from fusesim.calibrate.record import Measurements, Row
    from fusesim.calibration import Calibration
    from fusesim.hardware import HardwareProfile

FASTEST, SLOWEST = 1 / 20, 100.0
"""A chain takes at least and at most this many times as long as its bytes take at the memory's peak bandwidth."""
SHORTEST, LONGEST = 1e-7, 1e-3
"""A kernel takes at least so long, and however small no longer. [s]"""

DOUBTFUL: Final = 0.05
"""Median error of held-out cases, all together, above which a calibration is not trusted."""
DOUBTFUL_REGIME: Final = 0.10
"""The same of the cases of one regime."""
AT_A_LIMIT: Final = 1e-3
"""A parameter so near a limit, as a share, was stopped by it."""


def calibrate(measured: Measurements, profile: HardwareProfile, name: str) -> Calibration:
    """Check measurements and fit a calibration to them.

    Parameters
    ----------
    measured : Measurements
        Of this device.
    profile : HardwareProfile
        The device's datasheet.
    name : str
        Name of the result.

    Raises
    ------
    MeasurementError
        If they are of another device, or of no GPU at all.
    CalibrationError
        If they do not determine the model's parameters, or these come out unphysical.
    """
    if measured.device != profile.id:
        raise MeasurementError(f"these are measurements of {measured.device}, not of {profile.id}")
    _check_origin(measured, profile)
    for row in measured.of(kind="chain"):
        _check_possible(row, profile)
    try:
        return fit(measured, profile, name)
    except ValidationError as error:
        raise CalibrationError(f"the measurements give {first_problem(error)}") from error


def _check_origin(measured: Measurements, profile: HardwareProfile) -> None:
    """Refuse measurements that do not say where they were made, and a case that is there twice."""
    if not measured.environment:
        raise MeasurementError(
            "the environment is empty, so nobody knows what was measured; give the file as it was saved"
        )
    sms, known = measured.environment.get("sms"), profile.chip.sms
    if sms is not None and known is not None and sms != known.si:
        raise MeasurementError(f"these are measurements of {excerpt(sms)} SMs, and {profile.id} has {known.si:.0f}")
    counts = Counter(row.case.identity for row in measured.rows)
    name, most = counts.most_common(1)[0] if counts else ("", 0)
    if most > 1:
        raise MeasurementError(f"{name} is there {most} times; each case is measured once")


def _check_possible(row: Row, profile: HardwareProfile) -> None:
    """Refuse a time that no GPU takes for that many bytes."""
    kernels = row.case.kernels
    extra = sum(OPS[name].tensors for name in row.ops)
    nbytes = (2 * kernels + extra) * row.elements * find_dtype(row.dtype).itemsize
    at_peak = nbytes / profile.dram_bandwidth
    low = max(SHORTEST * (1 if row.fused else kernels), FASTEST * at_peak)
    high = LONGEST * kernels + SLOWEST * at_peak
    if not low <= row.median <= high:
        took, least, most = (units.format_quantity(time, units.TIME) for time in (row.median, low, high))
        raise MeasurementError(
            f"{row.key}: {took} is not possible, {least} to {most} would be; the file is in other units, or damaged"
        )


def doubts(calibration: Calibration, profile: HardwareProfile) -> list[str]:
    """Return why a calibration should not be trusted, a sentence each; nothing where it can be.

    Parameters
    ----------
    calibration : Calibration
        Fresh from a fit.
    profile : HardwareProfile
        The device's datasheet.
    """
    found = []
    residuals = calibration.residuals
    cases = sum(residual.cases for residual in residuals.values())
    overall = sum(residual.median_error * residual.cases for residual in residuals.values()) / cases
    if overall > DOUBTFUL:
        found.append(f"held-out cases are off by {units.format_share(overall)} in the median")
    for regime, residual in residuals.items():
        if residual.median_error > DOUBTFUL_REGIME:
            error = units.format_share(residual.median_error)
            found.append(f"held-out {regime}-bound cases are off by {error} in the median")
    for name, limits in PARAMETERS.items():
        value = calibration.parameters[name].value
        high = min(limits.high, 0.99 * profile.dram_bandwidth) if name == "bandwidth" else limits.high
        for limit in (limits.low, high):
            if limit and abs(value / limit - 1) < AT_A_LIMIT:
                unit = "" if limits.unit == "1" else f" {limits.unit}"
                found.append(f"{name} stopped at its limit of {limit:g}{unit}")
    return found
