"""From what a browser's controls hold to settings that can be priced, or to a sentence that says what is wrong.

Moving a control is a change: the control's id and the raw value it now holds, which may be anything, since anyone
can send one. Sliders over magnitudes hold the exponent: of 2 for sizes and repeats, of 10 for the bandwidth.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from fusesim import units
from fusesim.chains import INPUT_STATES
from fusesim.errors import FusesimError, InputError, excerpt, unknown_name
from fusesim.inputs import choice, number
from fusesim.ops import find_dtype, find_op
from fusesim.paths import STYLES
from fusesim.schedule import LAUNCH_MODES

from . import ids
from .chain_text import MAX_OPS, TEXT_LIMIT, broadcasts, check_length, parse_chain
from .settings import ROTATING, STOPS, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .catalogue import Catalogue

SIZE_EXPONENTS: Final = (10, 30)
REPEAT_EXPONENTS: Final = (0, 12)
MAX_REPEATS: Final = 10**9
MAX_OVERHEAD: Final = 20.0
"""Right end of the launch slider. [us]"""

MAX_HOST: Final = 60.0
"""Right end of the host's slider. [us]"""

RATE_EXPONENTS: Final = (11.0, 13.3)
BANDWIDTHS: Final = (10**6, 10**18)
"""What may be typed, beyond the slider's ends. [B/s]"""

INPUTS: Final = (*INPUT_STATES, ROTATING)
KINDS: Final = ("identical", "named")
FOLLOWERS: Final = {
    ids.REPEATS: "repeats",
    ids.HOST: "host_interval",
    ids.OVERHEAD: "launch_overhead",
    ids.RATE: "dram_bandwidth",
}
"""Controls that follow until they are moved, and the setting that says so."""

SHORT_TEXT: Final = 80
MAX_EDITS: Final = 100


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


def with_chain(settings: Settings, ops: int | tuple[str, ...]) -> Settings:
    """Return the settings with another chain; where it reads a row, the size becomes a multiple of it."""
    changed = replace(settings, ops=ops)
    return _with_size(changed, settings.elements) if broadcasts(changed.named or ()) else changed


def with_elements(settings: Settings, elements: int) -> Settings:
    """Return the settings with that size.

    Raises
    ------
    InputError
        If the chain reads a row that does not divide it.
    """
    changed = replace(settings, elements=elements)
    check_row(changed)
    return changed


def with_row(settings: Settings, text: str) -> Settings:
    """Return the settings with another row length."""
    changed = replace(settings, row=units.parse_elements(text))
    check_row(changed)
    return changed


def check_row(settings: Settings) -> None:
    """Refuse a row that does not divide the size.

    Raises
    ------
    InputError
        If the chain reads one.
    """
    row, elements = settings.effective_row, settings.elements
    if row is not None and elements % row:
        size, length = units.format_count(elements), units.format_count(row)
        raise InputError(f"a row of {length} does not divide {size} values; give another size or row length")


def with_time(settings: Settings, name: str, microseconds: float) -> Settings:
    """Set a time to the nearest picosecond, so that it can be written out."""
    return replace(settings, **{name: units.parse(f"{microseconds:.6f} us", units.TIME)})  # type: ignore[arg-type]


def short_text(name: str, raw: Any, limit: int = SHORT_TEXT) -> str:
    """Return a text short enough to be read and repeated in a sentence.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(raw, str):
        raise InputError(f"{name} must be a text of at most {limit} characters")
    if len(raw) > limit:
        raise InputError(f'{name} must be a text of at most {limit} characters, and "{excerpt(raw)}" has {len(raw)}')
    return raw


def one_number(name: str, raw: Any, limits: tuple[float, float], *, unit: str = "", whole: bool = False) -> float:
    """Return one number within limits, from a number or its digits; arrays, which the library would take, are refused.

    Raises
    ------
    InputError
        If it is none, or outside.
    """
    low, high = limits
    if isinstance(raw, list | tuple | dict):
        raise InputError(f"{name} must be one number")
    if isinstance(raw, str) and re.fullmatch(r"-?\d{1,20}(\.\d{0,20})?", raw, re.ASCII):
        raw = float(raw)
    return float(number(name, raw, low=low, high=high, unit=unit, whole=whole))


def _with_size(settings: Settings, wanted: float) -> Settings:
    """Set the nearest size that the chain can have."""
    row = settings.effective_row or 1
    if wanted % row:
        wanted = min(max(round(wanted / row), 1), units.MAX_ELEMENTS // row) * row
    return replace(settings, elements=round(wanted))


def _set_kind(settings: Settings, raw: Any) -> Settings:
    kind = choice("kind of chain", raw, KINDS)
    if (kind == "named") == (settings.named is not None):
        return settings
    return with_chain(settings, ("mul",) * settings.length if kind == "named" else max(settings.length, 1))


def _set_ops(settings: Settings, raw: Any) -> Settings:
    return replace(settings, ops=int(one_number("ops", raw, (1, MAX_OPS), whole=True)))


def _set_names(settings: Settings, raw: Any) -> Settings:
    return with_chain(settings, parse_chain(short_text("the chain", raw, TEXT_LIMIT)))


def _edit(settings: Settings, raw: Any) -> Settings:
    """Append ops, take the last one off, or begin anew; several edits may have been gathered."""
    if not isinstance(raw, list) or len(raw) > MAX_EDITS:
        raise InputError(f"the chain takes a list of at most {MAX_EDITS} edits")
    ops: list[str] = list(settings.named or ())
    for edit in raw:
        if edit == ids.CLEAR:
            ops = []
        elif edit == ids.REMOVE:
            ops = ops[:-1]
        else:
            ops.append(find_op(edit).name)
    check_length(len(ops))
    return with_chain(settings, tuple(ops))


def _set_row(settings: Settings, raw: Any) -> Settings:
    return with_row(settings, short_text("row", raw))


def _set_size(settings: Settings, raw: Any) -> Settings:
    return _with_size(settings, 2.0 ** one_number("the size's exponent", raw, SIZE_EXPONENTS))


def _set_elements(settings: Settings, raw: Any) -> Settings:
    return with_elements(settings, units.parse_elements(short_text("elements", raw)))


def _set_preset(settings: Settings, raw: Any) -> Settings:
    return _with_size(settings, units.parse_elements(short_text("elements", raw)))


def _set_dtype(settings: Settings, raw: Any) -> Settings:
    return replace(settings, dtype=find_dtype(short_text("dtype", raw)).name)


def _set_launch(settings: Settings, raw: Any) -> Settings:
    return replace(settings, launch=choice("launch mode", raw, LAUNCH_MODES))


def _set_repeats(settings: Settings, raw: Any) -> Settings:
    return replace(settings, repeats=round(2.0 ** one_number("the repeats' exponent", raw, REPEAT_EXPONENTS)))


def _set_inputs(settings: Settings, raw: Any) -> Settings:
    return replace(settings, inputs=choice("input state", raw, INPUTS))


def _set_path(settings: Settings, raw: Any) -> Settings:
    return replace(settings, path=choice("path", raw, tuple(STYLES)))


def _set_host(settings: Settings, raw: Any) -> Settings:
    return with_time(settings, "host_interval", one_number("host interval", raw, (0, MAX_HOST), unit="us"))


def _set_overhead(settings: Settings, raw: Any) -> Settings:
    return with_time(settings, "launch_overhead", one_number("launch overhead", raw, (0, MAX_OVERHEAD), unit="us"))


def _set_rate(settings: Settings, raw: Any) -> Settings:
    rate = 10.0 ** one_number("the bandwidth's exponent", raw, RATE_EXPONENTS)
    return replace(settings, dram_bandwidth=float(f"{rate:.3g}"))  # a slider is not exact to more digits


def _set_bandwidth(settings: Settings, raw: Any) -> Settings:
    text = short_text("bandwidth", "" if raw is None else raw)
    if not text.strip():
        return replace(settings, dram_bandwidth=None)
    rate = one_number("bandwidth", units.parse(text, units.BANDWIDTH), BANDWIDTHS, unit="B/s")
    return replace(settings, dram_bandwidth=rate)


def _set_step(settings: Settings, raw: Any) -> Settings:
    return replace(settings, step=int(one_number("the model's step", raw, (0, len(STOPS) - 1), whole=True)))


def _set_model(settings: Settings, raw: Any) -> Settings:
    return replace(settings, step=STOPS.index(choice("model", raw, STOPS)))


def _follow(settings: Settings, raw: Any) -> Settings:
    name = FOLLOWERS[choice("control that follows", raw, tuple(FOLLOWERS))]
    return replace(settings, **{name: None})  # type: ignore[arg-type]


_CHANGES: Final[Mapping[str, Callable[[Settings, Any], Settings]]] = {
    ids.KIND: _set_kind,
    ids.OPS: _set_ops,
    ids.NAMES: _set_names,
    ids.CHAIN: _set_names,
    ids.EDIT: _edit,
    ids.ROW: _set_row,
    ids.SIZE: _set_size,
    ids.ELEMENTS: _set_elements,
    ids.PRESET: _set_preset,
    ids.DTYPE: _set_dtype,
    ids.LAUNCH: _set_launch,
    ids.REPEATS: _set_repeats,
    ids.INPUTS: _set_inputs,
    ids.PATH: _set_path,
    ids.HOST: _set_host,
    ids.OVERHEAD: _set_overhead,
    ids.RATE: _set_rate,
    ids.BANDWIDTH: _set_bandwidth,
    ids.STEP: _set_step,
    ids.MODEL: _set_model,
    ids.FOLLOW: _follow,
}
_SPOKEN_BY: Final = {
    **dict.fromkeys((ids.OPS, ids.NAMES, ids.CHAIN, ids.EDIT), ids.KIND),
    **dict.fromkeys((ids.ELEMENTS, ids.PRESET), ids.SIZE),
    **dict.fromkeys((ids.BANDWIDTH, ids.FOLLOW), ids.RATE),
    ids.MODEL: ids.STEP,
}
"""Controls that share one alert with another."""
