"""What a page of the workshop is: its place, its words, its controls, and the plain function that answers it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

from dash import dcc, html

from . import ids

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dash.development.base_component import Component
    from flask import Flask

MENU: Final = (
    ("/", "Chain"),
    ("/roofline/", "Roofline"),
    ("/plans/", "Patterns and plans"),
    ("/program/", "Your program"),
    ("/accuracy/", "Accuracy"),
    ("/devices/", "Devices"),
)
"""Every page's path and name, in the order of the navigation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page.

    `bench` is the HTML of its controls, figures and charts, `below` of what follows. `respond` answers a request.
    `look` is a class of the bench; `routes` adds addresses besides.
    """

    path: str
    title: str
    lead: str
    look: str
    bench: str
    below: str
    respond: Callable[[Any], dict[str, Any]]
    routes: Callable[[Flask], None] | None = None


def navigation(path: str) -> str:
    """Return the links between pages, the page itself marked.

    Examples
    --------
    >>> navigation("/devices/").count("<a "), 'href="/devices/" aria-current="page"' in navigation("/devices/")
    (6, True)
    """
    links = "".join(
        f'<a href="{each}"{" aria-current=" + chr(34) + "page" + chr(34) if each == path else ""}>{escape(name)}</a>'
        for each, name in MENU
    )
    return f'<nav class="pages" aria-label="Pages">{links}</nav>'


def live() -> Component:
    """Return the part of a page that is Dash's: the stores by which its callback is named."""
    return html.Div([dcc.Store(id=ids.REQUEST), dcc.Store(id=ids.ANSWER)], hidden=True)


def charts(*shown: str, after: str = "") -> str:
    """Return the section of a page's charts; the page's script draws them, from what its callback answers."""
    return f'<section class="charts"><h2 class="unseen">Charts</h2>{"".join(shown)}{after}</section>'


def chart(name: str, label: str, key: str = "", caption: str = "") -> str:
    """Return the frame of a chart; `key` is the place of a legend that stands outside the picture."""
    said = (f'<span id="{key}" class="chart-key"></span>' if key else "") + caption
    told = f"<figcaption>{said}</figcaption>" if said else ""
    return (
        f'<figure class="card chart {name}"><div class="plot" role="group" aria-label="{escape(label)}">'
        f'<div id="{name}" class="graph"></div></div>{told}</figure>'
    )


def cards(*shown: tuple[str, str, str, Sequence[tuple[str, str]]]) -> str:
    """Return the figures to read off: for each its look, its title, its place, and names and places of facts."""
    inside = "".join(
        f'<div class="card figure {look}"><h3>{escape(title)}</h3><p id="{place}" class="big"></p>'
        f"<dl>{''.join(_fact(name, each) for name, each in facts)}</dl></div>"
        for look, title, place, facts in shown
    )
    return f'<section class="figures"><h2 class="unseen">What it costs</h2><div class="cards">{inside}</div>'


def _fact(name: str, place: str) -> str:
    return f'<div><dt>{escape(name)}</dt><dd id="{place}"></dd></div>'


def said(place: str = ids.SENTENCE) -> str:
    """Return the place of the sentence that says the whole view, and the end of the figures."""
    return f'<p id="{place}" class="sentence" aria-live="polite"></p></section>'


def workings(call: str = "The same in Python") -> str:
    """Return the places of the arithmetic and of the library call, folded away."""
    return (
        '<section class="workings"><h2 class="unseen">How to check and to repeat it</h2>'
        '<details class="card sums"><summary>Show the arithmetic</summary>'
        f'<ol id="{ids.SUMS}"></ol></details>'
        f'<details class="card sums"><summary>{escape(call)}</summary>'
        f'<pre tabindex="0"><code id="{ids.CALL}"></code></pre>'
        f'<button type="button" class="quiet small" data-copy="{ids.CALL}">Copy</button></details>'
        "</section>"
    )


def share() -> str:
    """Return the buttons that give the view to somebody else: its link, and the view itself as one file."""
    return (
        '<div class="share"><button type="button" class="quiet" data-copy="">Copy the link to this view</button>'
        '<button type="button" class="quiet" data-keep>Download this view as HTML</button>'
        '<span class="reading copied" role="status"></span></div>'
    )


def items(lines: Sequence[str]) -> str:
    """Return lines as the items of a list."""
    return "".join(f"<li>{escape(line)}</li>" for line in lines)
