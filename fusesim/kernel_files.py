"""Files of kernel rates: the shipped ones, and which of them stands for a device."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from fusesim import store
from fusesim.errors import CalibrationError
from fusesim.kernel_rates import KernelRates
from fusesim.textfile import read_text

if TYPE_CHECKING:
    from pathlib import Path

    from fusesim.calibration import Calibration
    from fusesim.hardware import HardwareProfile

MAX_SIZE: Final = 4 << 20
"""A file of rates larger than this is not one. [B]"""

WIDENING: Final = (1.35, 1.35)
"""By how much intervals widen on a device that no kernels were measured on: public cases of other GPUs lie within it
three times in four (tests/reference/test_public_plans.py)."""


@cache
def shipped_rates() -> dict[str, KernelRates]:
    """Return the shipped files by device."""
    found = {}
    for file in sorted((store.specs_folder() / "kernels").glob("*.json")):
        record = load_rates(file)
        found[record.device] = record
    return found


def load_rates(file: Path) -> KernelRates:
    """Read and check one file.

    Raises
    ------
    CalibrationError
        Names the file and what is wrong.
    """
    text = read_text(file, "kernel rates", limit=MAX_SIZE, fault=CalibrationError)
    try:
        return KernelRates.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CalibrationError(f"{file}: {where}: {first['msg']}; measure again or fetch the file anew") from error


def find_rates(profile: HardwareProfile) -> KernelRates:
    """Return the rates of a device, else those of the only family that was measured.

    Raises
    ------
    CalibrationError
        If no file is shipped.
    """
    every = shipped_rates()
    if not every:
        raise CalibrationError("no kernel rates are shipped with this installation; install fusesim again")
    return every.get(profile.id) or next(iter(every.values()))


def widening(record: Calibration) -> tuple[float, float]:
    """Return by how much intervals widen: nothing where the device itself was measured."""
    return WIDENING if record.transferred_from else (1.0, 1.0)
