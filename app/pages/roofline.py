"""The roofline page: ceilings of devices, and a program's kernels below them before and after fusion."""
# ruff: noqa: TID252 - a page imports the workshop around it, whose own name differs between checkout and wheel

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from fusesim.strategies import STRATEGIES

from .. import forms, guide, ids, page, plan_form, roofline_lesson, roofline_view, tables
from ..answering import Answers
from ..rooflines import FUSED_RATE, KERNELS, KEY, LIMITS, ROOFLINE, SAID, UNFUSED_RATE, roof_widgets, show

if TYPE_CHECKING:
    from ..catalogue import Catalogue

PATH: Final = "/roofline/"


def roofline(catalogue: Catalogue) -> page.Page:
    """Return the page."""
    form = roofline_view.roofline_form(catalogue)
    strategies = [(name, f"{name}: {told}") for name, told in STRATEGIES.items()]
    panel = forms.form(
        "Settings",
        roofline_view.parts(catalogue, strategies),
        roof_widgets(form, form.defaults),
        plan_form.hidden(form.defaults),
    )
    return page.Page(
        path=PATH,
        title=roofline_lesson.TITLE,
        lead=roofline_lesson.LEAD,
        look="plain counted",
        bench=f"{guide.guide(roofline_lesson.steps(catalogue, form))}{panel}{_figures()}{_charts()}{_sheets()}",
        below=f'<article class="lesson">{guide.glossary(roofline_lesson.WORDS)}</article>',
        respond=Answers(form, partial(show, catalogue=catalogue, form=form)),
    )


def _figures() -> str:
    unfused = (("rate", UNFUSED_RATE), ("at", ids.UNFUSED_BYTES), ("of the roof", ids.UNFUSED_SHARE))
    fused = (("rate", FUSED_RATE), ("at", ids.FUSED_BYTES), ("of the roof", ids.FUSED_SHARE))
    shown = page.cards(
        ("unfused", "Unfused", ids.UNFUSED_TIME, unfused),
        ("fused", "Fused", ids.FUSED_TIME, fused),
        ("gain", "Speedup", ids.SPEEDUP, (("difference", ids.SAVING),)),
    )
    return f"{shown}{page.said()}"


def _sheets() -> str:
    return (
        '<div class="sheets"><section class="card sheet"><h3>What the picture says</h3>'
        f'<ul id="{SAID}"></ul></section>'
        f"{tables.framed(KERNELS, 'Kernels under the roof', 'The longest first.')}"
        f"{tables.framed(LIMITS, 'Ceilings')}{page.workings()}</div>"
    )


def _charts() -> str:
    return page.charts(
        page.chart(
            ROOFLINE,
            "Ceilings of the device, and kernels before and after fusion, by arithmetic intensity; both axes "
            "logarithmic.",
            KEY,
            "Large marks are all kernels together, small ones each. Shaded: memory decides, dark for every kind of "
            "arithmetic, light for the fastest. Rings are ridge points.",
        )
    )
