"""Files of kernel rates: the shipped ones, and which of them stands for a device."""

from __future__ import annotations

from functools import cache, lru_cache
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

WIDENING: Final = (1.15, 1.05)
"""By how much intervals widen on a device that no kernels were measured on: nine in ten of the device-bound public
points of other GPUs then lie within (tests/reference/test_public_plans.py)."""


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
    """Return the rates of a device, else those of the only family that was measured, carried over.

    Notes
    -----
    A class that reaches only a share of the memory's bandwidth is held up by what its threads keep in flight, so by
    SMs and clock, not by the memory: on a device with less bandwidth to feed each of them it reaches a larger share.
    Where there is more, the share stays: what a class could reach beyond the whole of it was not measured.

    Raises
    ------
    CalibrationError
        If no file is shipped.
    """
    every = shipped_rates()
    if not every:
        raise CalibrationError("no kernel rates are shipped with this installation; install fusesim again")
    if profile.id in every:
        return every[profile.id]
    nearest = next(iter(every.values()))
    measured = store.load_known_device(nearest.device)
    first, second = fed(measured), fed(profile)
    return carried(nearest.device, first / second if first and second else 1.0)


def fed(profile: HardwareProfile) -> float:
    """Return the memory's bandwidth for each SM and clock; 0 where the sheet does not state them. [B]."""
    chip = profile.chip
    if chip.sms is None or chip.boost_clock is None:
        return 0.0
    return profile.dram_bandwidth / (chip.sms.si * chip.boost_clock.si)


@lru_cache(maxsize=64)
def carried(device: str, factor: float) -> KernelRates:
    """Return the rates that were measured on a device for one whose SMs have so many times less bandwidth each."""
    record = shipped_rates()[device]
    rows = {}
    for name, row in record.rows.items():
        share = min(row.rates.get("share", 1.0) * max(factor, 1.0), 1.0)
        rows[name] = row.model_copy(update={"rates": row.rates | {"share": share}})
    return record.model_copy(update={"rows": rows})


def widening(record: Calibration) -> tuple[float, float]:
    """Return by how much intervals widen: nothing where the device itself was measured."""
    return WIDENING if record.transferred_from else (1.0, 1.0)
