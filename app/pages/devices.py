"""The page of devices: figures with their sources, side by side, and a copy of one's own."""
# ruff: noqa: TID252 - a page imports the workshop around it, whose own name differs between checkout and wheel

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from .. import device_lesson, device_view, forms, guide, page, tables
from ..answering import Answers
from ..device_page import ADVICE, COPY, FACTS, FILE, NOTE, RATIOS, show

if TYPE_CHECKING:
    from ..catalogue import Catalogue

PATH: Final = "/devices/"


def devices(catalogue: Catalogue) -> page.Page:
    """Return the page."""
    form = device_view.device_form(catalogue)
    panel = forms.form("Devices", device_view.parts(catalogue), device_view.widgets(form.defaults))
    return page.Page(
        path=PATH,
        title=device_lesson.TITLE,
        lead=device_lesson.LEAD,
        look="plain judged",
        bench=f"{guide.guide(device_lesson.steps(catalogue))}{panel}{_verdict()}{_charts()}{_sheets()}",
        below=f'<article class="lesson">{guide.glossary(device_lesson.WORDS)}</article>',
        respond=Answers(form, partial(show, catalogue=catalogue), blame=device_view.EDITS),
    )


def _verdict() -> str:
    return (
        '<section class="card board beside"><h3>Which is better for what</h3>'
        f'<ul id="{ADVICE}" class="reasons-list"></ul></section>'
    )


def _sheets() -> str:
    return (
        f'<div class="sheets">{tables.framed(FACTS, "Every figure, and where it comes from")}'
        '<section class="card sheet"><div class="sheet-head"><h3>A copy of your own</h3>'
        f'<button type="button" class="quiet small" data-file="{FILE}" data-name="my-device.toml">'
        "Download TOML</button>"
        f'</div><p id="{NOTE}" class="note-line"></p><div id="{COPY}" class="scroll" tabindex="0" role="region" '
        'aria-label="Figures of your copy"></div><details><summary>The file</summary>'
        f'<pre tabindex="0"><code id="{FILE}"></code></pre></details></section>'
        f"{page.workings()}</div>"
    )


def _charts() -> str:
    return page.charts(
        page.chart(RATIOS, "Figures of each device as multiples of the first device's, on a logarithmic axis.")
    )
