"""Tables and charts of HTML files that need no network: what the reports of validations and of programs are made of."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import plotly.io  # type: ignore[import-untyped, unused-ignore]

from . import figures

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, words: Collection[int]) -> str:
    """Return a table with its heading; the columns in `words` are words, the others figures."""

    def line(tag: str, cells: Sequence[str]) -> str:
        marked = (
            f"<{tag}{' class=word' if place in words else ''}>{html.escape(cell)}</{tag}>"
            for place, cell in enumerate(cells)
        )
        return f"<tr>{''.join(marked)}</tr>"

    body = "\n".join([line("th", headings), *(line("td", row) for row in rows)])
    return f'<h2>{html.escape(title)}</h2>\n<div class="table"><table>\n{body}\n</table></div>'


def drawn(figure: figures.Figure, *, library: bool) -> str:
    """Return a figure as a part of a page, with Plotly before the first one."""
    return plotly.io.to_html(  # type: ignore[no-any-return, unused-ignore]
        figure,
        config=figures.CONFIG,
        include_plotlyjs=library,
        full_html=False,
        default_height="100%",
        validate=False,
    )


def chart(figure: figures.Figure, height: str = "", *, library: bool) -> str:
    """Return a chart, with Plotly before the first one; without `height` the page's style says how high it is."""
    style = f' style="height: {height}"' if height else ""
    return f'<div class="chart"{style}>{drawn(figure, library=library)}</div>'
