"""How far two calibrations of a device lie apart, parameter by parameter."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from fusesim.errors import InputError
from fusesim.machine import PARAMETERS

if TYPE_CHECKING:
    from fusesim.calibration import Calibration

AGREE: Final = 2.0
"""Two values agree that lie within so many combined standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One parameter in two calibrations, in base units; `sigmas` is None where neither states an uncertainty."""

    parameter: str
    unit: str
    first: float
    second: float
    sigma: float
    sigmas: float | None

    @property
    def agrees(self) -> bool:
        """Whether the two lie within two combined sigma, or are equal."""
        return self.first == self.second if self.sigmas is None else abs(self.sigmas) <= AGREE

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"agrees": self.agrees}


def drift(first: Calibration, second: Calibration) -> list[Drift]:
    """Return every parameter of two calibrations side by side.

    Raises
    ------
    InputError
        If they are of different devices.
    """
    if first.device != second.device:
        raise InputError(
            f"a calibration of {first.device} and one of {second.device} differ as the devices do; give two of one"
        )
    return [_drift(name, first, second) for name in PARAMETERS]


def _drift(name: str, first: Calibration, second: Calibration) -> Drift:
    before, now = first.parameters[name], second.parameters[name]
    sigma = math.hypot(before.sigma, now.sigma)
    return Drift(
        parameter=name,
        unit=before.unit,
        first=before.value,
        second=now.value,
        sigma=sigma,
        sigmas=(now.value - before.value) / sigma if sigma else None,
    )
