"""Controls as plain HTML, built from descriptions.

Dash would look at every component of a page for each step of a slider; these controls are the browser's own, and the
page's script gathers what they hold. They also stand there before any script has run.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from . import ids
from .layout import Buttons, Entry, Menu, Slider, Switch

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A size: an entry for the exact value, and a slider over powers of two below it, named `<id>-slider`."""

    id: str
    label: str
    low: int
    high: int


def slider_of(name: str) -> str:
    """Return the id of the slider of a size."""
    return f"{name}-slider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Controls that set one field: shown and hidden together, with one alert unless another part's speaks for them."""

    owner: str
    controls: Sequence[Slider | Entry | Menu | Switch | Buttons | Sized]
    alert: bool = True


def form(title: str, parts: Sequence[Part], values: Mapping[str, Any], hidden: Collection[str] = ()) -> str:
    """Return a panel of controls.

    Parameters
    ----------
    title : str
        Its heading.
    parts : sequence of Part
        In order.
    values : mapping
        What each control holds at first, by id.
    hidden : collection of str
        Ids of what is not shown at first.
    """
    inside = controls_of(parts, values, hidden)
    reset = button("Start over", ids.RESET, name=ids.RESET)
    return (
        f'<form class="card panel controls" aria-labelledby="settings"><h2 id="settings">{escape(title)}</h2>'
        f"{inside}{reset}</form>"
    )


def controls_of(parts: Sequence[Part], values: Mapping[str, Any], hidden: Collection[str] = ()) -> str:
    """Return controls without a panel around them; the arguments are those of `form`."""
    return "".join(_part(part, values, hidden) for part in parts)


def button(label: str, change: str, value: str = "", *, name: str = "") -> str:
    """Return a button that makes a change.

    Examples
    --------
    >>> button("Start over", "reset")
    '<button type="button" class="quiet" data-change="reset" data-value="">Start over</button>'
    """
    named = f' id="{escape(name)}"' if name else ""
    sent = f'data-change="{escape(change)}" data-value="{escape(value)}"'
    return f'<button type="button" class="quiet"{named} {sent}>{escape(label)}</button>'


def _part(part: Part, values: Mapping[str, Any], hidden: Collection[str]) -> str:
    name = ids.group(part.owner)
    inside = "".join(_control(control, values, ids.problem(part.owner), hidden) for control in part.controls)
    alert = f'<p id="{ids.problem(part.owner)}" class="problem" role="alert"></p>' if part.alert else ""
    return f'<div id="{name}" class="control"{" hidden" if name in hidden else ""}>{inside}{alert}</div>'


def _control(control: Any, values: Mapping[str, Any], alert: str, hidden: Collection[str]) -> str:
    match control:
        case Slider():
            return _slider(control, values, alert)
        case Sized():
            return _sized(control, values, alert)
        case Entry():
            label = _label(control.id, control.label, "minor")
            if control.counted:
                label = (
                    f'<div class="heading">{label}<span id="{ids.reading(control.id)}" class="reading"></span></div>'
                )
            return f"{label}{_text(control.id, values[control.id], alert, control.placeholder, control.longest)}"
        case Menu():
            return _menu(control, values)
        case Switch():
            return _switch(control, values)
        case _:
            return _buttons(control, hidden)


def _label(name: str, label: str, look: str = "label") -> str:
    return f'<label class="{look}" for="{name}" id="{ids.label(name)}">{escape(label)}</label>'


def _slider(control: Slider, values: Mapping[str, Any], alert: str) -> str:
    reading = f'<span id="{ids.reading(control.id)}" class="reading"></span>'
    span = f'min="{control.low:g}" max="{control.high:g}" step="{control.step:g}"'
    return (
        f'<div class="heading">{_label(control.id, control.label)}{reading}</div>'
        f'<input type="range" id="{control.id}" data-control {span} value="{values[control.id]}" '
        f'aria-describedby="{ids.reading(control.id)} {alert}">{_marks(control)}'
    )


def _marks(control: Slider) -> str:
    """Return the words below a slider, each where the thumb stands for it."""
    span = control.high - control.low
    words = "".join(
        f'<span style="--at:{(place - control.low) / span:.4f}">{escape(word)}</span>'
        for place, word in control.marks.items()
    )
    return f'<div class="marks" aria-hidden="true">{words}</div>' if words else ""


def _sized(control: Sized, values: Mapping[str, Any], alert: str) -> str:
    slider = slider_of(control.id)
    return (
        f'<div class="heading sized">{_label(control.id, control.label)}'
        f"{_text(control.id, values[control.id], alert, '4096 or 2^12', 40)}</div>"
        f'<input type="range" id="{slider}" data-control min="{control.low}" max="{control.high}" step="1" '
        f'value="{values[slider]}" aria-label="{escape(control.label)}, as a power of two">'
    )


def _text(name: str, value: Any, alert: str, placeholder: str, longest: int) -> str:
    return (
        f'<input type="text" class="entry" id="{name}" data-control value="{escape(str(value))}" '
        f'placeholder="{escape(placeholder)}" maxlength="{longest}" autocomplete="off" spellcheck="false" '
        f'aria-describedby="{alert}">'
    )


def _menu(control: Menu, values: Mapping[str, Any]) -> str:
    options = "".join(
        f'<option value="{escape(key)}"{" selected" if key == values[control.id] else ""}>{escape(label)}</option>'
        for key, label in control.options
    )
    return f'{_label(control.id, control.label)}<select id="{control.id}" data-control>{options}</select>'


def _switch(control: Switch, values: Mapping[str, Any]) -> str:
    options = "".join(
        f'<label><input type="radio" name="{control.id}" value="{escape(key)}" data-control'
        f"{' checked' if key == values[control.id] else ''}>{escape(label)}</label>"
        for key, label in control.options
    )
    note = f'<p class="minor">{escape(control.note)}</p>' if control.note else ""
    return (
        f'<span class="label" id="{ids.label(control.id)}">{escape(control.label)}</span>'
        f'<div class="switch native" id="{control.id}" role="radiogroup" '
        f'aria-labelledby="{ids.label(control.id)}">{options}</div>{note}'
    )


def _buttons(control: Buttons, hidden: Collection[str]) -> str:
    row = "".join(button(label, control.change, value, name=control.id) for label, value in control.options)
    if control.id:
        return row.replace("<button ", "<button hidden ", 1) if control.id in hidden else row
    named = f' role="group" aria-label="{escape(control.label)}"' if control.label else ""
    return f'<div class="{control.look}"{named}>{row}</div>'
