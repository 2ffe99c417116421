"""Components of a page, built from descriptions of its controls; no callback here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dash import dcc, html

from . import figures, ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dash.development.base_component import Component


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """A slider; over magnitudes it holds the exponent."""

    id: str
    label: str
    low: float
    high: float
    step: float
    marks: dict[float, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of text for an exact value."""

    id: str
    label: str
    placeholder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """A choice out of many, folded away."""

    id: str
    label: str
    options: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A choice out of few, all in sight."""

    id: str
    label: str
    options: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Presets:
    """Buttons, each of which sets the control that they belong to; the payload travels in the button's id."""

    options: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A button that does one thing."""

    id: str
    label: str


Control = Slider | Entry | Menu | Switch | Presets | Action


def control_group(owner: str, controls: Sequence[Control], values: dict[str, Any]) -> Component:
    """Build controls that set one quantity, and the alert that speaks for them.

    Parameters
    ----------
    owner : str
        Id of the control after which the alert is named.
    controls : sequence of Control
        Descriptions, in order.
    values : dict
        What each control holds at first, by id.
    """
    parts = [part for control in controls for part in _control(control, values)]
    alert = html.P(id=ids.problem(owner), className="problem", role="alert")
    return html.Div([*parts, alert], className="control")


def _control(control: Control, values: dict[str, Any]) -> list[Component]:
    match control:
        case Slider():
            return _slider(control, values[control.id])
        case Entry():
            return _entry(control, values[control.id])
        case Menu():
            return _menu(control, values[control.id])
        case Switch():
            return _switch(control, values[control.id])
        case Presets():
            buttons = [
                html.Button(label, id={"type": ids.PRESET, "value": value}, type="button", className="quiet")
                for label, value in control.options
            ]
            return [html.Div(buttons, className="presets")]
        case Action():
            return [html.Button(control.label, id=control.id, type="button", className="quiet")]


def _slider(control: Slider, value: float) -> list[Component]:
    heading = html.Div(
        [
            html.Span(control.label, id=ids.label(control.id), className="label"),
            html.Span(id=ids.reading(control.id), className="reading"),
        ],
        className="heading",
    )
    slider = dcc.Slider(
        id=control.id,
        min=control.low,
        max=control.high,
        step=control.step,
        value=value,
        marks=control.marks or None,
        updatemode="drag",
        allow_direct_input=False,
    )
    return [heading, slider]


def _entry(control: Entry, value: str) -> list[Component]:
    return [
        html.Label(control.label, htmlFor=control.id, id=ids.label(control.id), className="minor"),
        dcc.Input(
            id=control.id,
            type="text",
            value=value,
            debounce=True,
            placeholder=control.placeholder,
            autoComplete="off",
            spellCheck=False,
            maxLength=80,
        ),
    ]


def _menu(control: Menu, value: str) -> list[Component]:
    options = [{"label": label, "value": key} for key, label in control.options]
    return [
        html.Label(control.label, htmlFor=control.id, id=ids.label(control.id), className="label"),
        dcc.Dropdown(id=control.id, options=options, value=value, clearable=False, maxHeight=320),
    ]


def _switch(control: Switch, value: str) -> list[Component]:
    options = [{"label": label, "value": key} for key, label in control.options]
    return [
        html.Span(control.label, id=ids.label(control.id), className="label"),
        dcc.RadioItems(id=control.id, options=options, value=value, className="switch"),
    ]


def chart(name: str, *, label: str, caption: str = "") -> Component:
    """Build the frame of a chart, which an answer fills."""
    graph = dcc.Graph(
        id=name, config=figures.CONFIG, responsive=True, className="graph", figure={"data": [], "layout": _BLANK}
    )
    described = html.Div(graph, className="plot", role="img", **attributes(aria_label=label))
    return html.Figure([described, *([html.Figcaption(caption)] if caption else [])], className=f"card chart {name}")


_BLANK = {
    "xaxis": {"visible": False},
    "yaxis": {"visible": False},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
}


def attributes(**named: str) -> dict[str, Any]:
    """Return attributes whose names hold hyphens, which no Python argument can.

    Examples
    --------
    >>> attributes(aria_label="Settings")
    {'aria-label': 'Settings'}
    """
    return {name.replace("_", "-"): value for name, value in named.items()}
