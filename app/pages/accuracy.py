"""The page of accuracy: predicted beside measured."""
# ruff: noqa: TID252 - a page imports the workshop around it, whose own name differs between checkout and wheel

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from .. import accuracy_lesson, accuracy_view, forms, guide, page, tables
from ..accuracies import (
    ABLATION,
    CASES,
    COVERAGE,
    DEVIATIONS,
    GRADES,
    MEDIAN,
    P90,
    SCATTER,
    STEPS,
    WORST,
    show,
)
from ..answering import Answers

if TYPE_CHECKING:
    from ..catalogue import Catalogue

PATH: Final = "/accuracy/"
GRADED: Final = (
    "p90: nine in ten errors are below it. Bias: the median with its sign; above zero, predictions are too long. "
    "On a stream and from idle the host often decides, which no model of the device can foresee."
)
ABLATED: Final = (
    "Effects are switched on one by one, as on the page Chain, then each is left out alone. Over all chains by hand in "
    "a graph, of which the charts and the other tables hold a sample, so figures differ slightly."
)


def accuracy(_: Catalogue) -> page.Page:
    """Return the page."""
    evidence = accuracy_view.load()
    form = accuracy_view.accuracy_form(evidence)
    panel = forms.form("Settings", accuracy_view.parts(evidence), form.defaults)
    return page.Page(
        path=PATH,
        title=accuracy_lesson.TITLE,
        lead=accuracy_lesson.LEAD,
        look="plain counted pairs",
        bench=f"{guide.guide(accuracy_lesson.steps(evidence, form))}{panel}{_figures()}{_charts()}{_sheets()}",
        below=f'<article class="lesson">{guide.glossary(accuracy_lesson.WORDS)}</article>',
        respond=Answers(form, partial(show, evidence=evidence)),
    )


def _figures() -> str:
    shown = page.cards(
        ("gain", "Median error", MEDIAN, (("cases", CASES),)),
        ("gain", "Nine in ten within", P90, ()),
        ("gain", "In the 90 % interval", COVERAGE, ()),
    )
    return f"{shown}{page.said()}"


def _sheets() -> str:
    return (
        '<div class="sheets">'
        f"{tables.framed(GRADES, 'Errors by measurements and by what binds', GRADED)}"
        f"{tables.framed(STEPS, 'Ablation', ABLATED)}"
        f"{tables.framed(WORST, 'Where the model is most wrong')}"
        f"{page.workings('The same on the command line')}</div>"
    )


def _charts() -> str:
    return page.charts(
        page.chart(
            SCATTER,
            "Predicted against measured, both logarithmic; on the line they are equal.",
            caption="Squares wait for launches, circles for memory, diamonds for the cache, triangles for "
            "arithmetic, "
            "crosses for the host.",
        ),
        page.chart(DEVIATIONS, "Deviation of predicted from measured, against what was measured."),
        page.chart(
            ABLATION,
            "The error that nine in ten chains stay below, as effects are switched on one by one.",
            caption="Chains by hand, in a graph. Parameters stay those of the whole model.",
        ),
    )
