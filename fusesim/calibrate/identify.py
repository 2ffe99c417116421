"""Which device file describes a GPU, from what its driver says of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fusesim.errors import MeasurementError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.calibrate.environment import Gpu
    from fusesim.hardware import HardwareProfile

FORMS: Final = frozenset({"pcie", "nvl", "laptop", "server", "max"})
"""Words that tell variants of a chip apart; a variant without any is the one on SXM, or the only one."""
_NO_CHIP: Final = re.compile(r"sxm\d*|hbm\d\w*|\d+gb?")
MEMORY_RATIOS: Final = (0.88, 1.1)
"""Memory that a driver reports over the capacity that is printed on the box: ECC takes some, and GB may mean GiB."""


def identify(gpu: Gpu, profiles: Iterable[HardwareProfile]) -> HardwareProfile:
    """Return the device that a GPU is.

    Parameters
    ----------
    gpu : Gpu
        What the driver says.
    profiles : iterable of HardwareProfile
        The known devices.

    Raises
    ------
    MeasurementError
        If none or several match in name, SMs and memory.
    """
    found = [profile for profile in profiles if _matches(gpu, profile)]
    if len(found) == 1:
        return found[0]
    what = f'"{excerpt(gpu.name)}" ({gpu.sms} SMs, {gpu.memory / 1e9:.0f} GB)'
    if found:
        names = " or ".join(profile.id for profile in found)
        raise MeasurementError(f"this GPU, {what}, may be {names}; say which with --device")
    raise MeasurementError(
        f"this GPU, {what}, is none of the devices that fusesim knows; describe it in a device file, as "
        "hardware_specs/README.md says, and give --device-file FILE"
    )


def _matches(gpu: Gpu, profile: HardwareProfile) -> bool:
    sms, capacity = profile.chip.sms, profile.memory.capacity
    if profile.vendor != "nvidia" or (sms and sms.si != gpu.sms):
        return False
    if capacity and not MEMORY_RATIOS[0] <= gpu.memory / capacity.si <= MEMORY_RATIOS[1]:
        return False
    chip, form = _words(gpu.name)
    return bool(chip) and any(_words(name) == (chip, form) for name in (profile.id, *profile.aliases))


def _words(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words that name the chip (those with a digit) and its form.

    Examples
    --------
    >>> _words("NVIDIA H100 80GB HBM3") == _words("h100-sxm") == (frozenset({"h100"}), frozenset())
    True
    """
    words = frozenset(re.findall(r"[a-z0-9]+", name.lower()))
    chip = frozenset(word for word in words if re.search(r"\d", word) and not _NO_CHIP.fullmatch(word))
    return chip, words & FORMS
