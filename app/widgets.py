"""What each control has to hold, and which of them have a meaning, to show a view."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fusesim import units

from . import ids
from .chain_text import MAX_OPS, format_chain
from .controls import FOLLOWERS, KINDS, MAX_HOST, MAX_OVERHEAD, RATE_EXPONENTS, REPEAT_EXPONENTS, SIZE_EXPONENTS
from .settings import Settings

if TYPE_CHECKING:
    from .view import View


def widget_values(settings: Settings, view: View) -> dict[str, Any]:
    """Return what each control has to hold to show the settings, those that follow included."""
    bandwidth = settings.dram_bandwidth
    return {
        ids.KIND: KINDS[settings.named is not None],
        ids.OPS: min(max(settings.length, 1), MAX_OPS),
        ids.NAMES: format_chain(settings.named or ()),
        ids.ROW: str(settings.row),
        ids.SIZE: _clamp(math.log2(settings.elements), SIZE_EXPONENTS),
        ids.ELEMENTS: str(settings.elements),
        ids.DEVICE: settings.device,
        ids.DTYPE: settings.dtype,
        ids.LAUNCH: settings.launch,
        ids.REPEATS: _clamp(math.log2(view.repeats), REPEAT_EXPONENTS),
        ids.INPUTS: settings.inputs,
        ids.PATH: settings.path,
        ids.HOST: _clamp(round(view.host_interval * 1e6, 6), (0.0, MAX_HOST)),
        ids.OVERHEAD: _clamp(round(view.overhead * 1e6, 6), (0.0, MAX_OVERHEAD)),
        ids.RATE: _clamp(math.log10(view.peak_bandwidth), RATE_EXPONENTS),
        ids.BANDWIDTH: "" if bandwidth is None else units.format_exact(bandwidth, units.BANDWIDTH),
        ids.STEP: settings.step,
    }


def hidden(settings: Settings, view: View) -> list[str]:
    """Return the ids of what has no meaning in this view, so that it is not shown."""
    on = settings.effects
    shown = {
        ids.group(ids.OPS): settings.named is None,
        ids.group(ids.NAMES): settings.named is not None,
        ids.group(ids.ROW): settings.effective_row is not None,
        ids.group(ids.REPEATS): settings.launch == "graph",
        ids.group(ids.INPUTS): "cache" in on or settings.inputs != Settings().inputs or _graph_measured(view),
        ids.group(ids.PATH): settings.complete or settings.path != Settings().path,
        ids.group(ids.HOST): settings.complete and settings.launch != "graph",
        **{ids.follow(control): getattr(settings, name) is not None for control, name in FOLLOWERS.items()},
    }
    return [name for name, visible in shown.items() if not visible]


def _graph_measured(view: View) -> bool:
    """Return whether there are measured points to which the inputs, and so the repeats, can be matched."""
    return bool(view.measured) and view.point.launch == "graph"


def _clamp(value: float, limits: tuple[float, float]) -> float:
    """Return the nearest value that a slider can show."""
    low, high = limits
    return min(max(value, low), high)
