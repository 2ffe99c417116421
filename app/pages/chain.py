"""The chain page: k element-wise operations as k kernels and as one."""
# ruff: noqa: TID252 - a page imports the workshop around it, whose own name differs between checkout and wheel

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fusesim.ops import DTYPES
from fusesim.ops import OPS as OP_TABLE
from fusesim.paths import STYLES

from .. import controls, forms, ids, lesson, page, widgets
from ..answers import respond
from ..article import article
from ..cards import cards
from ..chain_text import FIVE, MAX_OPS, TEXT_LIMIT
from ..forms import Part
from ..layout import Buttons, Entry, Menu, Slider, Switch
from ..settings import STOPS, Settings
from ..view import look

if TYPE_CHECKING:
    from ..catalogue import Catalogue

PATH: Final = "/"
TITLE: Final = "Fusing a chain of kernels"

KIND = Switch(id=ids.KIND, label="Chain of", options=(("identical", "identical ops"), ("named", "named ops")))
CHAINS = Buttons(change=ids.CHAIN, options=(("8 x GELU", "gelu x8"), ("The lesson's five ops", FIVE)))
OPS = Slider(
    id=ids.OPS,
    label="Operations in the chain, k",
    low=1,
    high=MAX_OPS,
    step=1,
    marks={1: "1", 8: "8", 16: "16", 24: "24", 32: "32"},
)
NAMES = Entry(
    id=ids.NAMES, label="Names, in order", placeholder="gelu x8, or add, mul, relu", longest=TEXT_LIMIT, counted=True
)
APPEND = Buttons(
    change=ids.EDIT, options=tuple((name, name) for name in OP_TABLE), look="chips", label="Append an op to the chain"
)
SHORTEN = Buttons(change=ids.EDIT, options=(("Remove last", ids.REMOVE), ("Clear", ids.CLEAR)))
ROW = Entry(id=ids.ROW, label="Row length, a divisor of the size", placeholder="4096")
SIZE = Slider(
    id=ids.SIZE,
    label="Tensor size",
    low=controls.SIZE_EXPONENTS[0],
    high=controls.SIZE_EXPONENTS[1],
    step=0.25,
    marks={10: "1 024", 15: "33k", 20: "1M", 25: "34M", 30: "1G"},
)
PRESETS = Buttons(change=ids.PRESET, options=(("One decoded token, 4 096", "4096"), ("8 192 x 4 096", "8192x4096")))
ELEMENTS = Entry(id=ids.ELEMENTS, label="Exact number of values", placeholder="4096, 2^20 or 8192x4096")
DTYPE = Switch(id=ids.DTYPE, label="Element type", options=tuple((name, name) for name in DTYPES))
LAUNCH = Switch(
    id=ids.LAUNCH,
    label="Launched",
    options=(("stream", "on a stream"), ("latency", "from idle"), ("graph", "in a graph")),
)
REPEATS = Slider(
    id=ids.REPEATS,
    label="Passes per replay",
    low=controls.REPEAT_EXPONENTS[0],
    high=controls.REPEAT_EXPONENTS[1],
    step=1,
    marks={0: "1", 4: "16", 8: "256", 12: "4 096"},
)
INPUTS = Switch(
    id=ids.INPUTS,
    label="Inputs",
    options=tuple((name, name) for name in controls.INPUTS),
    note="Cold: in memory. Warm: in the cache from the pass before. Rotating: over up to 256 buffer sets.",
)
PATH_OF = Switch(id=ids.PATH, label="Whose kernels", options=tuple((name, name) for name in STYLES))
HOST = Slider(
    id=ids.HOST,
    label="Host interval",
    low=0,
    high=controls.MAX_HOST,
    step=0.1,
    marks={0: "0", 15: "15", 30: "30", 45: "45", 60: "60 \N{MICRO SIGN}s"},
)
OVERHEAD = Slider(
    id=ids.OVERHEAD,
    label="Launch overhead",
    low=0,
    high=controls.MAX_OVERHEAD,
    step=0.1,
    marks={0: "0", 5: "5", 10: "10", 15: "15", 20: "20 \N{MICRO SIGN}s"},
)
RATE = Slider(
    id=ids.RATE,
    label="Bandwidth",
    low=controls.RATE_EXPONENTS[0],
    high=controls.RATE_EXPONENTS[1],
    step=0.01,
    marks={11: "0.1", 12: "1", 13: "10 TB/s"},
)
BANDWIDTH = Entry(id=ids.BANDWIDTH, label="Exact bandwidth", placeholder="empty: as the device")
STEP = Slider(
    id=ids.STEP,
    label="Model",
    low=0,
    high=len(STOPS) - 1,
    step=1,
    marks=dict(enumerate(STOPS)),
)
ENDS = Buttons(change=ids.MODEL, options=(("Textbook", STOPS[0]), ("Calibrated", STOPS[-1])))


def follow(control: str, label: str) -> Buttons:
    """Return the button that lets a control follow again."""
    return Buttons(id=ids.follow(control), change=ids.FOLLOW, options=((label, control),))


def parts(catalogue: Catalogue) -> tuple[Part, ...]:
    """Return the panel's controls, those that set one quantity together."""
    devices = Menu(id=ids.DEVICE, label="Device", options=[(device.id, device.name) for device in catalogue.profiles])
    return (
        Part(owner=ids.KIND, controls=(KIND, CHAINS)),
        Part(owner=ids.OPS, controls=(OPS,), alert=False),
        Part(owner=ids.NAMES, controls=(NAMES, APPEND, SHORTEN), alert=False),
        Part(owner=ids.ROW, controls=(ROW,)),
        Part(owner=ids.SIZE, controls=(SIZE, PRESETS, ELEMENTS)),
        Part(owner=ids.DEVICE, controls=(devices,)),
        Part(owner=ids.DTYPE, controls=(DTYPE,)),
        Part(owner=ids.LAUNCH, controls=(LAUNCH,)),
        Part(owner=ids.REPEATS, controls=(REPEATS, follow(ids.REPEATS, "As the inputs rotate"))),
        Part(owner=ids.INPUTS, controls=(INPUTS,)),
        Part(owner=ids.PATH, controls=(PATH_OF,)),
        Part(owner=ids.HOST, controls=(HOST, follow(ids.HOST, "Follow the path"))),
        Part(owner=ids.OVERHEAD, controls=(OVERHEAD, follow(ids.OVERHEAD, "Follow the model"))),
        Part(owner=ids.RATE, controls=(RATE, BANDWIDTH, follow(ids.RATE, "Follow the device"))),
    )


def chain(catalogue: Catalogue) -> page.Page:
    """Return the page, its controls at the default view."""
    view = look(Settings(), catalogue)
    values, hidden = widgets.widget_values(Settings(), view), widgets.hidden(Settings(), view)
    panel = forms.form("Settings", parts(catalogue), values, hidden)
    return page.Page(
        path=PATH,
        title=TITLE,
        lead=lesson.LEAD,
        look="",
        bench=f"{cards()}{_stepper(values)}{panel}{_charts()}",
        below=article(),
        respond=partial(respond, catalogue=catalogue),
    )


def _stepper(values: dict[str, Any]) -> str:
    """Return the slider from textbook to calibrated, with words for where it stands."""
    inside = forms.controls_of((Part(owner=ids.STEP, controls=(STEP, ENDS)),), values)
    return (
        '<section class="card stepper controls"><h2 class="unseen">From textbook to calibrated</h2>'
        f'{inside}<div class="told"><p id="{ids.MEANING}" class="meaning"></p>'
        f'<p id="{ids.FINDING}" class="finding" aria-live="polite"></p><p id="{ids.SOURCE}" class="source"></p></div>'
        "</section>"
    )


def _charts() -> str:
    """Return the page's charts, and what stands beside them."""
    gap = f'The dotted line is the distance to the roof: <span id="{ids.ROOF_GAP}"></span>. '
    reasons = f'<div class="card reasons"><h3>What decides here</h3><ul id="{ids.REASONS}"></ul></div>'
    return page.charts(
        page.chart(
            ids.TIME_CHART,
            "Time of the chain, unfused and fused, against tensor size, both axes logarithmic.",
            caption="Shaded: launches take the larger part of the time; dark for both ways, light for one. "
            f'<span id="{ids.MEASURED}"></span>',
        ),
        page.chart(ids.BYTES_CHART, "Bytes moved, unfused and fused, at the chosen size."),
        page.chart(
            ids.ROOFLINE_CHART,
            "The chain before and after fusion under the device's roofline.",
            caption=f'{gap}<strong id="{ids.ABOVE_ROOF}"></strong>',
        ),
        after=f"{reasons}{page.workings()}",
    )
