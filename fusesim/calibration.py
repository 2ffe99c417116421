"""What was measured of a device: fitted parameters with their uncertainty, residuals, and where they come from.

A record refuses what cannot be true: a missing or unknown parameter, a value outside the range of any device, NaN,
a unit that is not the parameter's, a bandwidth above the datasheet's peak.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fusesim.errors import CalibrationError, InputError
from fusesim.machine import PARAMETERS, Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusesim.hardware import HardwareProfile

REGIMES = ("launch", "dram", "l2", "arithmetic")
"""Residuals are kept apart by what binds; issue slots and special functions are one regime."""

Source = Literal["launch", "dram", "l2", "arithmetic", "thread", "start", "all"]
SOURCES: Final[tuple[Source, ...]] = get_args(Source)
"""Where deviations come from, see `fusesim.uncertainty`."""


class _Record(BaseModel):
    """Frozen, and every unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Fitted(_Record):
    """A parameter's value in base units and one standard deviation of it."""

    value: float = Field(ge=0, allow_inf_nan=False)
    sigma: float = Field(ge=0, allow_inf_nan=False)
    unit: str


class Residuals(_Record):
    """Measured over predicted of cases that were not fitted: how many, and the quantiles of the ratio."""

    cases: int = Field(ge=1)
    median_error: float = Field(ge=0, allow_inf_nan=False)
    low: float = Field(gt=0, le=1.0, allow_inf_nan=False)
    high: float = Field(ge=1.0, lt=100, allow_inf_nan=False)


class Spread(_Record):
    """Factors that enclose 90 % of the times of something that is all of one source."""

    low: float = Field(gt=0, le=1.0, allow_inf_nan=False)
    high: float = Field(ge=1.0, lt=100, allow_inf_nan=False)


class PathCost(_Record):
    """What is peculiar to a software path, in seconds.

    `interval` is what its host needs to issue one launch, within `low` to `high`; it belongs to the host and moves
    with its load. `gap` is what each of its kernels costs beyond the device's floor.
    """

    interval: float = Field(gt=0, lt=1, allow_inf_nan=False)
    low: float = Field(gt=0, allow_inf_nan=False)
    high: float = Field(gt=0, allow_inf_nan=False)
    gap: float = Field(default=0.0, ge=0, lt=1e-4, allow_inf_nan=False)
    note: str = ""


class Calibration(_Record):
    """One calibration file."""

    schema_: Literal["fusesim-calibration/1"] = Field(alias="schema")
    name: str
    device: str
    date: str
    protocol: str
    environment: dict[str, str | float | int]
    parameters: dict[str, Fitted]
    residuals: dict[Literal["launch", "dram", "l2", "arithmetic"], Residuals]
    spreads: dict[Source, Spread]
    correlation: float = Field(ge=-1, le=1)
    paths: dict[Literal["cuda", "cupy", "torch", "inductor"], PathCost]
    transferred_from: str | None = None
    note: str = ""

    @model_validator(mode="after")
    def _is_physical(self) -> Calibration:
        if missing := set(SOURCES) - set(self.spreads):
            raise InputError(f"spreads: {', '.join(sorted(missing))} missing")
        unknown = set(self.parameters) ^ set(PARAMETERS)
        if unknown:
            raise InputError(f"parameters: {', '.join(sorted(unknown))} unknown or missing")
        for name, limits in PARAMETERS.items():
            fitted = self.parameters[name]
            if fitted.unit != limits.unit:
                raise InputError(f'parameters.{name}: unit "{fitted.unit}", should be "{limits.unit}"')
            if not limits.low <= fitted.value <= limits.high:
                accepted = f"{limits.low:g} to {limits.high:g} {limits.unit}"
                raise InputError(f"parameters.{name} is {fitted.value:g}, outside of {accepted}: unphysical")
        return self


def machine_of(calibration: Calibration, profile: HardwareProfile) -> Machine:
    """Join a calibration and its device's datasheet into what the model takes.

    Raises
    ------
    CalibrationError
        If the datasheet lacks a figure that the model needs, or the calibration exceeds the datasheet's bandwidth.
    """
    values = {name: calibration.parameters[name].value for name in PARAMETERS}
    if values["bandwidth"] > profile.dram_bandwidth:
        raise CalibrationError(
            f"calibration {calibration.name}: {values['bandwidth']:.4g} B/s is more than the "
            f"{profile.dram_bandwidth:.4g} B/s that the memory of {profile.id} can do"
        )
    return join(values, profile)


def join(values: Mapping[str, float], profile: HardwareProfile) -> Machine:
    """Join measured values, one for each of `PARAMETERS`, and a datasheet.

    Raises
    ------
    CalibrationError
        If the datasheet lacks a figure that the model needs.
    """
    chip, sm = profile.chip, profile.sm
    if chip.sms is None or chip.boost_clock is None or profile.cache.l2 is None:
        raise CalibrationError(
            f"{profile.id}: its file states no SMs, clock or cache, so only the textbook can price it"
        )
    return Machine(
        sms=chip.sms.si,
        clock=chip.boost_clock.si,
        cache=profile.cache_capacity,
        peak_bandwidth=profile.dram_bandwidth,
        issue_per_clock=sm.fp32_per_clock.si if sm.fp32_per_clock else 128.0,
        special_per_clock=sm.special_per_clock.si if sm.special_per_clock else 16.0,
        resident_threads=sm.threads.si if sm.threads else 2048.0,
        **values,
    )
