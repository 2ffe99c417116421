"""The page of patterns and plans: what people fuse, who fuses it how, and what that is worth."""
# ruff: noqa: TID252 - a page imports the workshop around it, whose own name differs between checkout and wheel

from __future__ import annotations

from functools import partial
from html import escape
from typing import TYPE_CHECKING, Final

from .. import forms, guide, ids, page, plan_form, plan_lesson, tables
from ..answering import Answers
from ..plan_answers import DRAWING, MEMORY, REASONS, TIMELINE, show
from ..plan_tables import ASKED, EDGES_NOTE, EDGES_TABLE, SOURCE, STRATEGIES_TABLE
from ..plan_words import BREAK_EVEN, EDITED, FUSED_PEAK, SUMMARY, UNFUSED_PEAK

if TYPE_CHECKING:
    from ..catalogue import Catalogue

PATH: Final = "/plans/"


def plans(catalogue: Catalogue) -> page.Page:
    """Return the page."""
    form = plan_form.plan_form(catalogue)
    panel = forms.form(
        "Settings", plan_form.parts(catalogue), plan_form.widgets(form, form.defaults), plan_form.hidden(form.defaults)
    )
    return page.Page(
        path=PATH,
        title=plan_lesson.TITLE,
        lead=plan_lesson.LEAD,
        look="wide",
        bench=f"{guide.guide(plan_lesson.steps())}{panel}{_figures()}{_board()}{_charts()}{_sheets()}",
        below=_below(),
        respond=Answers(form, partial(show, catalogue=catalogue, form=form)),
    )


def _figures() -> str:
    unfused = (
        ("kernels", ids.UNFUSED_KERNELS),
        ("moved", ids.UNFUSED_BYTES),
        ("peak", UNFUSED_PEAK),
        ("90 %", ids.UNFUSED_RANGE),
    )
    fused = (
        ("kernels", ids.FUSED_KERNELS),
        ("moved", ids.FUSED_BYTES),
        ("peak", FUSED_PEAK),
        ("90 %", ids.FUSED_RANGE),
    )
    shown = page.cards(
        ("unfused", "Unfused", ids.UNFUSED_TIME, unfused),
        ("fused", "Fused", ids.FUSED_TIME, fused),
        ("gain", "Speedup", ids.SPEEDUP, (("saved per call", ids.SAVING),)),
    )
    return f"{shown}{page.said()}"


def _board() -> str:
    """Return the place of the drawing, and of what is said about it."""
    keys = "".join(
        f'<span class="stroke {look}">{escape(said)}</span>'
        for look, said in (("paid", "paid: through memory"), ("re-read", "read again"), ("saved", "saved: on the chip"))
    )
    alerts = "".join(f'<p id="{ids.problem(name)}" class="problem" role="alert"></p>' for name in ("ask", "edits"))
    return (
        '<section class="card board"><div class="sheet-head"><h3>The plan</h3>'
        f'<button type="button" class="quiet small" data-drawing="{DRAWING}">SVG</button></div>'
        f'<p id="{SUMMARY}" class="note-line"></p><p class="strokes">{keys}</p>'
        f'<div class="split"><div id="{DRAWING}" class="drawing" tabindex="0" role="region" '
        'aria-label="Drawing of the plan"><p class="empty">Loading.</p></div>'
        f'<div class="beside"><div id="{ASKED}" class="asked" aria-live="polite"></div>{alerts}'
        f'<p id="{EDITED}" class="finding" role="status"></p><h4>What decides here</h4>'
        f'<ul id="{REASONS}" class="reasons-list"></ul><h4>When compiling pays</h4>'
        f'<p id="{BREAK_EVEN}"></p></div></div></section>'
    )


def _sheets() -> str:
    return (
        '<div class="sheets">'
        f"{tables.framed(STRATEGIES_TABLE, 'Strategies side by side', 'A name chooses.')}"
        f"{tables.framed(EDGES_TABLE, 'Bytes per edge', 'The largest first.', said=EDGES_NOTE)}"
        f"{tables.framed(SOURCE, 'Source of the largest fused kernel', csv=False)}"
        f"{page.workings()}</div>"
    )


def _below() -> str:
    compilers = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in plan_lesson.COMPILERS)
    ideas = "".join(
        f"<section><h3>{escape(name)}</h3><p>{escape(text)}</p></section>" for name, text in plan_lesson.IDEAS
    )
    return (
        '<article class="lesson"><h2>What each compiler does</h2>'
        f'<dl class="glossary columns">{compilers}</dl><h2 class="after">Ideas behind it</h2>'
        f'<div class="columns">{ideas}</div>{guide.glossary(plan_lesson.WORDS)}</article>'
    )


def _charts() -> str:
    return page.charts(
        page.chart(TIMELINE, "Kernels over time, unfused above fused."),
        page.chart(MEMORY, "Memory over time above the inputs, unfused and fused."),
    )
