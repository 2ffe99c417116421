"""The lesson's text, set as components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import html

from . import lesson
from .layout import attributes

if TYPE_CHECKING:
    from dash.development.base_component import Component


def article() -> Component:
    """Set the lesson."""
    return html.Article(
        [
            html.H2("The lesson", id="lesson"),
            html.Div([_section(section) for section in lesson.SECTIONS], className="columns"),
            html.Section(
                [html.H3("Fusion, fusion and graphs"), html.P(lesson.TERMS_LEAD), _terms(), html.P(lesson.TERMS_NOTE)]
            ),
            html.Div([_tries(), _glossary()], className="columns"),
        ],
        className="lesson",
    )


def _section(section: lesson.Section) -> Component:
    points = [html.Ul([html.Li(point) for point in section.points])] if section.points else []
    title = html.H3(inline(section.title), id=section.anchor)
    return html.Section([title, *(html.P(inline(text)) for text in section.paragraphs), *points])


def _terms() -> Component:
    heads = [html.Th(name, scope="col") for name in ("Term", "What it is", "Saves bytes?", "Saves launches?")]
    rows = [
        html.Tr(
            [
                html.Th(term.name, scope="row"),
                html.Td(term.meaning),
                html.Td(term.bytes_saved, **attributes(data_label="Saves bytes?")),
                html.Td(term.launches_saved, **attributes(data_label="Saves launches?")),
            ]
        )
        for term in lesson.TERMS
    ]
    return html.Table([html.Thead(html.Tr(heads)), html.Tbody(rows)])


def _tries() -> Component:
    links = [html.Li(html.A(text, href=query)) for text, query in lesson.TRIES]
    return html.Section([html.H3("Try it"), html.P(lesson.TRY_LEAD), html.Ul(links)])


def _glossary() -> Component:
    entries = [part for term, meaning in lesson.GLOSSARY for part in (html.Dt(term), html.Dd(meaning))]
    return html.Section([html.H3("Terms"), html.Dl(entries, className="glossary")])


def inline(text: str) -> list[Any]:
    """Set words between backticks as code.

    Examples
    --------
    >>> [type(part).__name__ for part in inline("a `b` c")]
    ['str', 'Code', 'str']
    """
    return [html.Code(part) if index % 2 else part for index, part in enumerate(text.split("`")) if part]
