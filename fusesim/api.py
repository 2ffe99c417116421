"""The front desk for devices: names and paths in, records out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fusesim import calibrations, store
from fusesim.hardware import HardwareProfile
from fusesim.roofline import ridge_point

if TYPE_CHECKING:
    from pathlib import Path

    from fusesim.calibration import Calibration


def find_device(name: str | HardwareProfile) -> HardwareProfile:
    """Return a device by its id or an alias.

    Parameters
    ----------
    name : str or HardwareProfile
        For example ``"h100-sxm"``; an alias such as ``"h100"`` gives the common part, whose `requested_as` says so.
        A record is returned as it is.

    Raises
    ------
    InputError
        If there is no such device.
    HardwareSpecError
        If its file is damaged.

    Examples
    --------
    >>> find_device("h100").id, find_device("h100").dram_bandwidth
    ('h100-sxm', 3350000000000.0)
    """
    return name if isinstance(name, HardwareProfile) else store.load_known_device(name)


def list_devices() -> tuple[str, ...]:
    """Return the id of every device that is shipped."""
    return store.device_ids()


def load_device(path: str | Path) -> HardwareProfile:
    """Read and check a device file of your own; pass the record wherever a device name is accepted.

    Raises
    ------
    HardwareSpecError
        Names the file, the key and what is wrong.
    """
    return store.load_device_file(path)


class Ceiling(NamedTuple):
    """One limit on arithmetic: its name, its dense peak, and where the memory stops being the limit."""

    name: str
    flop_rate: float
    ridge_point: float


def ceilings(device: str | HardwareProfile) -> list[Ceiling]:
    """Return the arithmetic ceilings that a device's file states, plain units first. [FLOP/s, FLOP/B].

    Examples
    --------
    >>> [f"{c.name} {c.ridge_point:.0f}" for c in ceilings("h100-sxm") if c.name in {"fp32", "bf16 tensor"}]
    ['fp32 20', 'bf16 tensor 295']
    """
    profile = find_device(device)
    rates: dict[str, float] = {str(name): peak.rate.si for name, peak in profile.vector.items()}
    rates |= {f"{name} tensor": peak.rate.si for name, peak in profile.tensor.items()}
    bandwidth = profile.dram_bandwidth
    return [
        Ceiling(name, rate, float(ridge_point(flop_rate=rate, bandwidth=bandwidth))) for name, rate in rates.items()
    ]


def load_calibration(path: str | Path) -> Calibration:
    """Read and check a calibration file, such as `fusesim calibrate` writes.

    Raises
    ------
    CalibrationError
        Names the file and what is wrong with it.
    """
    return calibrations.load_calibration_file(path)
