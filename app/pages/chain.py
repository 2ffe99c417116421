"""The chain page: k element-wise operations as k kernels and as one."""
# ruff: noqa: TID252 - a page imports the workshop around it, whose own name differs between checkout and wheel

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dash import dcc, html

from fusesim.ops import DTYPES

from .. import controls, ids, layout
from ..controls import Settings
from ..layout import Action, Entry, Menu, Presets, Slider, Switch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dash.development.base_component import Component

    from ..catalogue import Catalogue
    from ..layout import Control

PATH: Final = "/"
TITLE: Final = "Fusing a chain of kernels"

OPS = Slider(
    id=ids.OPS,
    label="Operations in the chain, k",
    low=1,
    high=controls.MAX_OPS,
    step=1,
    marks={1: "1", 8: "8", 16: "16", 24: "24", 32: "32"},
)
SIZE = Slider(
    id=ids.SIZE,
    label="Tensor size",
    low=controls.SIZE_EXPONENTS[0],
    high=controls.SIZE_EXPONENTS[1],
    step=0.25,
    marks={10: "1 024", 15: "33k", 20: "1M", 25: "34M", 30: "1G"},
)
PRESETS = Presets(options=(("One decoded token, 4 096", "4096"), ("8 192 x 4 096", "8192x4096")))
ELEMENTS = Entry(id=ids.ELEMENTS, label="Exact number of values", placeholder="4096, 2^20 or 8192x4096")
DTYPE = Switch(id=ids.DTYPE, label="Element type", options=tuple((name, name) for name in DTYPES))
LAUNCH = Switch(id=ids.LAUNCH, label="Launched from", options=(("stream", "stream"), ("graph", "CUDA graph")))
OVERHEAD = Slider(
    id=ids.OVERHEAD,
    label="Launch overhead",
    low=0,
    high=controls.MAX_OVERHEAD,
    step=0.1,
    marks={0: "0", 5: "5", 10: "10", 15: "15", 20: "20 us"},
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
FOLLOW = Action(id=ids.FOLLOW, label="Follow the device")


def groups(catalogue: Catalogue) -> Mapping[str, Sequence[Control]]:
    """Return the page's controls, those that set one quantity together, by the control that names their alert."""
    devices = Menu(id=ids.DEVICE, label="Device", options=[(device.id, device.name) for device in catalogue.profiles])
    return {
        ids.OPS: (OPS,),
        ids.SIZE: (SIZE, PRESETS, ELEMENTS),
        ids.DEVICE: (devices,),
        ids.DTYPE: (DTYPE,),
        ids.LAUNCH: (LAUNCH,),
        ids.OVERHEAD: (OVERHEAD,),
        ids.RATE: (RATE, BANDWIDTH, FOLLOW),
    }


def build(catalogue: Catalogue) -> Component:
    """Build the page, its controls at the default view; charts and figures arrive with the first answer."""
    return html.Div(
        [_panel(catalogue), _charts(), dcc.Store(id=ids.REQUEST), dcc.Store(id=ids.ANSWER)],
        className="live",
    )


def _panel(catalogue: Catalogue) -> Component:
    values = controls.widget_values(Settings(), catalogue)
    parts = [layout.control_group(owner, parts, values) for owner, parts in groups(catalogue).items()]
    start_over = html.Button("Start over", id=ids.RESET, type="button", className="quiet")
    named = layout.attributes(aria_labelledby="settings")
    return html.Form([html.H2("Settings", id="settings"), *parts, start_over], className="card panel", **named)


def _charts() -> Component:
    charts = [
        layout.chart(
            ids.TIME_CHART,
            label="Time of the chain, unfused and fused, against tensor size, both axes logarithmic.",
            caption="Shaded: launches take the larger part of the time; dark for both ways, light for one.",
        ),
        layout.chart(ids.BYTES_CHART, label="Bytes moved, unfused and fused, at the chosen size."),
        layout.chart(
            ids.ROOFLINE_CHART,
            label="The chain before and after fusion under the device's roofline.",
            caption="The dotted line is the distance to the roof: what launches cost.",
        ),
    ]
    reasons = html.Div([html.H3("What decides here"), html.Ul(id=ids.REASONS)], className="card reasons")
    return html.Section([html.H2("Charts", className="unseen"), *charts, reasons], className="charts")
