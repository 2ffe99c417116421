"""Tables as plain HTML: what an answer puts into a page besides charts and texts."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: a text, a class for its look, and a number for the CSV where the text rounds it."""

    text: str
    look: str = ""
    exact: float | None = None
    html: str = ""
    mark: bool = False


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell | str]], *, empty: str = "Nothing to show.") -> str:
    """Return a table; the first cell of each row is its heading.

    Parameters
    ----------
    heads : sequence of str
        Headings of the columns.
    rows : sequence of rows
        Cells, or their texts.
    empty : str
        What is said where there is no row.

    Examples
    --------
    >>> table(["a"], [])
    '<p class="empty">Nothing to show.</p>'
    """
    if not rows:
        return f'<p class="empty">{escape(empty)}</p>'
    looks = [cell.look if isinstance(cell, Cell) else "" for cell in rows[0]]
    head = "".join(f'<th scope="col"{_look(look)}>{escape(name)}</th>' for name, look in zip(heads, looks, strict=True))
    body = "".join(_row(heads, row) for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(heads: Sequence[str], row: Sequence[Cell | str]) -> str:
    cells = [cell if isinstance(cell, Cell) else Cell(text=cell) for cell in row]
    marked = ' class="marked"' if any(cell.mark for cell in cells) else ""
    first, *rest = cells
    others = "".join(_cell(cell, head) for cell, head in zip(rest, heads[1:], strict=True))
    return f'<tr{marked}><th scope="row"{_look(first.look)}>{first.html or escape(first.text)}</th>{others}</tr>'


def _cell(cell: Cell, head: str) -> str:
    exact = f' data-exact="{cell.exact!r}"' if cell.exact is not None else ""
    return f'<td data-label="{escape(head)}"{_look(cell.look)}{exact}>{cell.html or escape(cell.text)}</td>'


def _look(look: str) -> str:
    return f' class="{look}"' if look else ""


def framed(name: str, title: str, note: str = "", *, csv: bool = True, said: str = "") -> str:
    """Return the place of a table, which an answer fills, with a button that saves it; `said` is a text's place."""
    save = f'<button type="button" class="quiet small" data-csv="{name}">CSV</button>' if csv else ""
    told = f'<p class="note-line">{escape(note)}</p>' if note else ""
    told += f'<p id="{said}" class="note-line"></p>' if said else ""
    return (
        f'<section class="card sheet"><div class="sheet-head"><h3>{escape(title)}</h3>{save}</div>{told}'
        f'<div id="{name}" class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">'
        '<p class="empty">Loading.</p></div></section>'
    )
