"""What a page offers: devices, what was measured of each, and measured chains.

Read once when the app is made, so that no callback touches a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import fusesim
from fusesim import calibrations
from fusesim.calibration import machine_of
from fusesim.errors import CalibrationError, unknown_name
from fusesim.ops import find_dtype

from .measured import Rotation, load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.calibration import Calibration
    from fusesim.hardware import HardwareProfile
    from fusesim.readers import MeasuredFile


@dataclass(frozen=True, kw_only=True, eq=False)
class Catalogue:
    """Devices in the order in which they are offered.

    `records` holds the calibration of each device by its id, and `refusals` the reason for those that only the
    textbook can price.
    """

    profiles: tuple[HardwareProfile, ...]
    records: dict[str, Calibration] = field(repr=False)
    refusals: dict[str, str] = field(repr=False)
    measured: MeasuredFile = field(repr=False)

    def find(self, name: object) -> HardwareProfile:
        """Return a device by its id or an alias.

        Raises
        ------
        InputError
            If there is none, with the nearest name.
        """
        wanted = name.strip().lower() if isinstance(name, str) else name
        for profile in self.profiles:
            if wanted == profile.id or wanted in profile.aliases:
                return profile
        raise unknown_name("device", name, [profile.id for profile in self.profiles])

    @cached_property
    def rotation(self) -> Rotation:
        """Over how many buffer sets the measured passes rotated, by the size of a tensor."""
        return Rotation(self.measured, find_dtype(self.measured.rows[0].dtype).itemsize)


def stock(profiles: Iterable[HardwareProfile]) -> Catalogue:
    """Return a catalogue of these devices."""
    offered = tuple(profiles)
    records: dict[str, Calibration] = {}
    refusals: dict[str, str] = {}
    for profile in offered:
        try:
            record = calibrations.find_calibration(profile)
            machine_of(record, profile)
        except CalibrationError as error:
            refusals[profile.id] = str(error)
        else:
            records[profile.id] = record
    return Catalogue(profiles=offered, records=records, refusals=refusals, measured=load())


def shipped() -> Catalogue:
    """Read every device that fusesim ships, by vendor and name.

    Examples
    --------
    >>> shipped().find("h100").id
    'h100-sxm'
    """
    profiles = (fusesim.device(name) for name in fusesim.devices())
    return stock(sorted(profiles, key=lambda profile: (profile.vendor != "nvidia", profile.id)))
