"""Components of a page, built from descriptions of its controls; no callback here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dash import dcc, html

from . import ids

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

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
    dots: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of text for an exact value."""

    id: str
    label: str
    placeholder: str
    longest: int = 80
    counted: bool = False


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
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buttons:
    """Buttons, each of which makes one change: a label and the value that it sends.

    `look` is a class name; `id`, where there is one, is the single button's.
    """

    change: str
    options: Sequence[tuple[str, str]]
    look: str = "presets"
    label: str = ""
    id: str = ""


Control = Slider | Entry | Menu | Switch | Buttons


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Controls that set one quantity: shown and hidden together, and with one alert unless another group has it."""

    owner: str
    controls: Sequence[Control]
    alert: bool = True


def control_group(group: Group, values: dict[str, Any], hidden: Collection[str]) -> Component:
    """Build controls that set one quantity, and the alert that speaks for them.

    Parameters
    ----------
    group : Group
        Descriptions, in order.
    values : dict
        What each control holds at first, by id.
    hidden : collection of str
        Ids of what is not shown at first.
    """
    parts = [part for control in group.controls for part in _control(control, values, hidden)]
    if group.alert:
        parts.append(html.P(id=ids.problem(group.owner), className="problem", role="alert"))
    name = ids.group(group.owner)
    return html.Div(parts, id=name, className="control", hidden=name in hidden)


def _control(control: Control, values: dict[str, Any], hidden: Collection[str]) -> list[Component]:
    match control:
        case Slider():
            return _slider(control, values[control.id])
        case Entry():
            return _entry(control, values[control.id])
        case Menu():
            return _menu(control, values[control.id])
        case Switch():
            return _switch(control, values[control.id])
        case Buttons():
            return _buttons(control, hidden)


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
        dots=control.dots,
        updatemode="drag",
        allow_direct_input=False,
    )
    return [heading, slider]


def _entry(control: Entry, value: str) -> list[Component]:
    label = html.Label(control.label, htmlFor=control.id, id=ids.label(control.id), className="minor")
    count = html.Span(id=ids.reading(control.id), className="reading")
    return [
        html.Div([label, count], className="heading") if control.counted else label,
        dcc.Input(
            id=control.id,
            type="text",
            value=value,
            debounce=True,
            placeholder=control.placeholder,
            autoComplete="off",
            spellCheck=False,
            maxLength=control.longest,
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
        *([html.P(control.note, className="minor")] if control.note else []),
    ]


def button(label: str, change: str, value: str = "", **named: Any) -> Component:
    """Build a button that makes a change; the page's script reads which one off it.

    Dash is told of no click, since it looks at all that it is told of with every step of a slider.
    """
    sent = attributes(data_change=change, data_value=value)
    return html.Button(label, type="button", className="quiet", disable_n_clicks=True, **sent, **named)


def _buttons(control: Buttons, hidden: Collection[str]) -> list[Component]:
    if control.id:
        ((label, value),) = control.options
        return [button(label, control.change, value, id=control.id, hidden=control.id in hidden)]
    row = [button(label, control.change, value) for label, value in control.options]
    named = attributes(aria_label=control.label) if control.label else {}
    return [html.Div(row, className=control.look, role="group" if control.label else None, **named)]


def attributes(**named: str) -> dict[str, Any]:
    """Return attributes whose names hold hyphens, which no Python argument can.

    Examples
    --------
    >>> attributes(aria_label="Settings")
    {'aria-label': 'Settings'}
    """
    return {name.replace("_", "-"): value for name, value in named.items()}
