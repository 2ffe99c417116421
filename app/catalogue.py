"""The devices that a page offers: read once when the app is made, so that no callback touches a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import fusesim
from fusesim.errors import unknown_name

if TYPE_CHECKING:
    from fusesim.hardware import HardwareProfile


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Devices in the order in which they are offered."""

    profiles: tuple[HardwareProfile, ...]

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


def shipped() -> Catalogue:
    """Read every device that fusesim ships, by vendor and name.

    Examples
    --------
    >>> shipped().find("h100").id
    'h100-sxm'
    """
    profiles = (fusesim.device(name) for name in fusesim.devices())
    return Catalogue(tuple(sorted(profiles, key=lambda profile: (profile.vendor != "nvidia", profile.id))))
