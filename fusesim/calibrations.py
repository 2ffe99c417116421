"""Reads calibration files and chooses the one that a device is priced with."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from pydantic import ValidationError

from fusesim import store
from fusesim.calibration import Calibration
from fusesim.errors import CalibrationError, FusesimError, unknown_name
from fusesim.textfile import read_text
from fusesim.transfer import nearest, transfer

if TYPE_CHECKING:
    from fusesim.hardware import HardwareProfile

MAX_SIZE = 4 << 20
"""A calibration file larger than this is not one."""


def user_calibrations() -> Path:
    """Return the folder where `fusesim calibrate` keeps this user's calibrations, one file per device."""
    return Path(platformdirs.user_data_dir("fusesim")) / "calibrations"


@cache
def shipped_calibrations() -> dict[str, Calibration]:
    """Return the shipped calibrations by name."""
    files = sorted((store.specs_folder() / "calibrations").glob("*.json"))
    return {file.stem: load_calibration_file(file) for file in files}


def find_calibration(profile: HardwareProfile, given: Calibration | str | Path | None = None) -> Calibration:
    """Return the calibration to use for a device.

    Parameters
    ----------
    profile : HardwareProfile
        The device.
    given : Calibration, str or Path, optional
        A record, the name of a shipped one, or a file. Without it the user's own file for the device, else the
        shipped one, else one transferred from the nearest calibrated relative.

    Raises
    ------
    InputError
        If the name is unknown.
    CalibrationError
        If a file is wrong, or nothing can be transferred.
    """
    if given is None:
        return _default_calibration(profile)
    if isinstance(given, Calibration):
        record = given
    elif str(given) in shipped_calibrations():
        record = shipped_calibrations()[str(given)]
    elif isinstance(given, Path) or re.search(r"[/\\]|\.json$", str(given)):
        record = load_calibration_file(given)
    else:
        raise unknown_name("calibration", given, shipped_calibrations())
    return record if record.device == profile.id else _transferred(record, profile)


def _default_calibration(profile: HardwareProfile) -> Calibration:
    """Return the user's own calibration, else the shipped one, else a transferred one."""
    if store.is_shipped(profile):
        return _known_default(profile.id)
    return _transfer_nearest(profile)


@cache
def _known_default(device: str) -> Calibration:
    """Look a shipped device's calibration up once a process."""
    own = user_calibrations() / f"{device}.json"
    if own.is_file():
        return load_calibration_file(own)
    shipped = [record for record in shipped_calibrations().values() if record.device == device]
    return shipped[0] if shipped else _transfer_nearest(store.load_known_device(device))


def _transfer_nearest(profile: HardwareProfile) -> Calibration:
    candidates = [(record, store.load_known_device(record.device)) for record in shipped_calibrations().values()]
    record = nearest(profile, candidates)
    if record is None:
        raise CalibrationError("no calibration is shipped with this installation; install fusesim again")
    return _transferred(record, profile)


def _transferred(record: Calibration, profile: HardwareProfile) -> Calibration:
    return transfer(record, store.load_known_device(record.device), profile)


def load_calibration_file(path: str | Path) -> Calibration:
    """Read and check one calibration file.

    Raises
    ------
    CalibrationError
        Names the file and what is wrong.
    """
    file = Path(path)
    text = read_text(file, "a calibration", limit=MAX_SIZE, fault=CalibrationError)
    try:
        return Calibration.model_validate_json(text)
    except ValidationError as error:
        raise CalibrationError(f"{file.name}: {store.first_problem(error, Calibration)}") from error
    except FusesimError as error:
        raise CalibrationError(f"{file.name}: {error}") from error
