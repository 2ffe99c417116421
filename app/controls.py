"""From what a browser sends to settings that can be priced, or to a sentence that says what is wrong; and back.

A learner's view is a `Settings` record, and its text form is the query of the page's address. Moving a control
is a change: the control's id and the raw value it now holds, which may be anything, since anyone can send one.
Sliders over magnitudes hold the exponent: of 2 for the tensor size, of 10 for the bandwidth.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

from fusesim import units
from fusesim.errors import FusesimError, InputError, unknown_name
from fusesim.inputs import choice, number
from fusesim.ops import find_dtype
from fusesim.schedule import TEXTBOOK_LAUNCH

from . import ids

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .catalogue import Catalogue

MAX_OPS: Final = 32
SIZE_EXPONENTS: Final = (10, 30)
MAX_OVERHEAD: Final = 20.0
"""Right end of the launch slider. [us]"""

RATE_EXPONENTS: Final = (11.0, 13.3)
BANDWIDTHS: Final = (10**6, 10**18)
"""What may be typed, beyond the slider's ends. [B/s]"""

MODES: Final = ("stream", "graph")
TEXT_LIMIT: Final = 80
QUERY_LIMIT: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One view of the chain page. `None` follows: the launch mode's overhead, the device's bandwidth."""

    ops: int = 5
    elements: int = 8192 * 4096
    dtype: str = "bf16"
    device: str = "h100-sxm"
    launch: str = "stream"
    launch_overhead: float | None = None
    dram_bandwidth: float | None = None

    @property
    def overhead(self) -> float:
        """Launch overhead in force: the learner's, else the textbook's for the launch mode. [s]."""
        return TEXTBOOK_LAUNCH[self.launch] if self.launch_overhead is None else self.launch_overhead


def change(settings: Settings, control: str, raw: Any, catalogue: Catalogue) -> Settings:
    """Return the settings after a control has moved.

    Parameters
    ----------
    settings : Settings
        Before.
    control : str
        Id of the control.
    raw : object
        What it holds now, unchecked.
    catalogue : Catalogue
        The devices to choose from.

    Raises
    ------
    InputError
        If the value is not one that the control can hold; the sentence says what is.
    """
    if control == ids.DEVICE:
        return replace(settings, device=catalogue.find(raw).id)
    if control not in _CHANGES:
        raise unknown_name("control", control, _CHANGES)
    return _CHANGES[control](settings, raw)


def change_all(settings: Settings, changes: Mapping[str, Any], catalogue: Catalogue) -> tuple[Settings, dict[str, str]]:
    """Apply every change that can be; return the settings, and a sentence for each control whose value is refused."""
    problems = {}
    for control, raw in changes.items():
        try:
            settings = change(settings, control, raw, catalogue)
        except FusesimError as error:
            problems[_SPOKEN_BY.get(control, control)] = str(error)
    return settings, problems


def from_query(query: Any, catalogue: Catalogue) -> tuple[Settings, str | None]:
    """Read settings from the query of an address.

    Parameters
    ----------
    query : object
        For example ``"?ops=5&elements=4096"``; what is missing has its default.
    catalogue : Catalogue
        The devices to choose from.

    Returns
    -------
    settings : Settings
        The defaults if any value is wrong.
    note : str or None
        One sentence that says what was wrong. A setting that nobody knows is noted and passed over, since a link
        may pick up foreign ones on its way.
    """
    try:
        pairs = _pairs(query)
        settings = Settings()
        for key, text in pairs.items():
            if key == "device":
                settings = replace(settings, device=catalogue.find(text).id)
            elif key in _READERS:
                settings = _READERS[key](settings, text)
    except FusesimError as error:
        return Settings(), f"The address was not understood, so the defaults are shown: {error}."
    known = ("device", *_READERS)
    foreign = [unknown_name("setting", key, known) for key in pairs if key not in known]
    return settings, f"The address holds something that was passed over: {foreign[0]}." if foreign else None


def to_query(settings: Settings) -> str:
    """Write settings as the query of an address; `from_query` returns the very same.

    Examples
    --------
    >>> to_query(Settings(ops=3, launch_overhead=2.5e-6))
    '?ops=3&elements=33554432&dtype=bf16&device=h100-sxm&launch=stream&launch_overhead=2.5us'
    """
    fields: dict[str, Any] = {
        "ops": settings.ops,
        "elements": settings.elements,
        "dtype": settings.dtype,
        "device": settings.device,
        "launch": settings.launch,
    }
    if settings.launch_overhead is not None:
        fields["launch_overhead"] = _compact(settings.launch_overhead, units.TIME)
    if settings.dram_bandwidth is not None:
        fields["bandwidth"] = _compact(settings.dram_bandwidth, units.BANDWIDTH)
    return "?" + urlencode(fields, safe="/")


def widget_values(settings: Settings, catalogue: Catalogue) -> dict[str, Any]:
    """Return what each control has to hold to show the settings."""
    bandwidth = settings.dram_bandwidth
    in_force = catalogue.find(settings.device).dram_bandwidth if bandwidth is None else bandwidth
    return {
        ids.OPS: settings.ops,
        ids.SIZE: _clamp(math.log2(settings.elements), SIZE_EXPONENTS),
        ids.ELEMENTS: str(settings.elements),
        ids.DEVICE: settings.device,
        ids.DTYPE: settings.dtype,
        ids.LAUNCH: settings.launch,
        ids.OVERHEAD: _clamp(round(settings.overhead * 1e6, 6), (0.0, MAX_OVERHEAD)),
        ids.RATE: _clamp(math.log10(in_force), RATE_EXPONENTS),
        ids.BANDWIDTH: "" if bandwidth is None else units.format_exact(bandwidth, units.BANDWIDTH),
    }


def _set_ops(settings: Settings, raw: Any) -> Settings:
    return replace(settings, ops=int(_number("ops", raw, (1, MAX_OPS), whole=True)))


def _set_size(settings: Settings, raw: Any) -> Settings:
    return replace(settings, elements=round(2.0 ** _number("the size's exponent", raw, SIZE_EXPONENTS)))


def _set_elements(settings: Settings, raw: Any) -> Settings:
    return replace(settings, elements=units.parse_elements(_text("elements", raw)))


def _set_dtype(settings: Settings, raw: Any) -> Settings:
    return replace(settings, dtype=find_dtype(_text("dtype", raw)).name)


def _set_launch(settings: Settings, raw: Any) -> Settings:
    return replace(settings, launch=choice("launch mode", raw, MODES))


def _set_overhead(settings: Settings, raw: Any) -> Settings:
    return _with_overhead(settings, _number("launch overhead", raw, (0, MAX_OVERHEAD), unit="us"))


def _set_rate(settings: Settings, raw: Any) -> Settings:
    rate = 10.0 ** _number("the bandwidth's exponent", raw, RATE_EXPONENTS)
    return replace(settings, dram_bandwidth=float(f"{rate:.3g}"))  # a slider is not exact to more digits


def _set_bandwidth(settings: Settings, raw: Any) -> Settings:
    text = _text("bandwidth", "" if raw is None else raw)
    if not text.strip():
        return replace(settings, dram_bandwidth=None)
    rate = _number("bandwidth", units.parse(text, units.BANDWIDTH), BANDWIDTHS, unit="B/s")
    return replace(settings, dram_bandwidth=rate)


def _follow_device(settings: Settings, _: Any) -> Settings:
    return replace(settings, dram_bandwidth=None)


def _read_ops(settings: Settings, text: str) -> Settings:
    if not re.fullmatch(r"\d{1,9}", text):
        raise InputError(f'ops "{text}" is not a whole number from 1 to {MAX_OPS}')
    return _set_ops(settings, int(text))


def _read_overhead(settings: Settings, text: str) -> Settings:
    seconds = units.parse(_text("launch_overhead", text), units.TIME)
    if not 0 <= seconds <= units.parse(f"{MAX_OVERHEAD} us", units.TIME):
        raise InputError(f'launch_overhead "{text}" is out of range; give 0 to {MAX_OVERHEAD:.0f} us')
    return _with_overhead(settings, seconds * 1e6)


def _with_overhead(settings: Settings, microseconds: float) -> Settings:
    """Set the launch overhead to the nearest picosecond, so that it can be written out."""
    return replace(settings, launch_overhead=units.parse(f"{microseconds:.6f} us", units.TIME))


_CHANGES: Final[Mapping[str, Callable[[Settings, Any], Settings]]] = {
    ids.OPS: _set_ops,
    ids.SIZE: _set_size,
    ids.ELEMENTS: _set_elements,
    ids.PRESET: _set_elements,
    ids.DTYPE: _set_dtype,
    ids.LAUNCH: _set_launch,
    ids.OVERHEAD: _set_overhead,
    ids.RATE: _set_rate,
    ids.BANDWIDTH: _set_bandwidth,
    ids.FOLLOW: _follow_device,
}
_SPOKEN_BY: Final = {ids.ELEMENTS: ids.SIZE, ids.PRESET: ids.SIZE, ids.BANDWIDTH: ids.RATE, ids.FOLLOW: ids.RATE}
"""Controls that share one alert with another."""

_READERS: Final[Mapping[str, Callable[[Settings, str], Settings]]] = {
    "ops": _read_ops,
    "elements": _set_elements,
    "dtype": _set_dtype,
    "launch": _set_launch,
    "launch_overhead": _read_overhead,
    "bandwidth": _set_bandwidth,
}


def _pairs(query: Any) -> dict[str, str]:
    """Split a query into settings, each at most once."""
    if not isinstance(query, str) or len(query) > QUERY_LIMIT:
        raise InputError(f"it is not a text of at most {QUERY_LIMIT} characters")
    pairs: dict[str, str] = {}
    for key, text in parse_qsl(query.removeprefix("?"), keep_blank_values=True):
        if key in pairs:
            raise InputError(f'"{key[:TEXT_LIMIT]}" is given twice')
        pairs[key] = text
    return pairs


def _number(name: str, raw: Any, limits: tuple[float, float], *, unit: str = "", whole: bool = False) -> float:
    """Return one number within limits; arrays, which the library would take, are refused."""
    low, high = limits
    if isinstance(raw, list | tuple | dict):
        raise InputError(f"{name} must be one number")
    return float(number(name, raw, low=low, high=high, unit=unit, whole=whole))


def _text(name: str, raw: Any) -> str:
    """Return a text short enough to be read and repeated in a sentence."""
    if not isinstance(raw, str) or len(raw) > TEXT_LIMIT:
        raise InputError(f"{name} must be a text of at most {TEXT_LIMIT} characters")
    return raw


def _compact(value: float, dimension: units.Dimension) -> str:
    """Write a quantity exactly and without the space, which an address would escape."""
    return units.format_exact(value, dimension).replace(" ", "")


def _clamp(value: float, limits: tuple[float, float]) -> float:
    """Return the nearest value that a slider can show."""
    low, high = limits
    return min(max(value, low), high)
