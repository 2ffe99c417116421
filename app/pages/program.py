"""The page of one's own program: a trace or a model in, a ranking of fusions out."""
# ruff: noqa: TID252 - a page imports the workshop around it, whose own name differs between checkout and wheel

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from .. import forms, guide, ids, page, program_lesson, program_view, tables
from ..answering import Answers
from ..programs import ACHIEVED, LOSING, MEASURED, NAME, PATH, RANKING, REACHED, REMAINS, SAID, TIMELINE, route, show
from ..uploads import MAX_UPLOAD

if TYPE_CHECKING:
    from ..catalogue import Catalogue

RANKED: Final = "The best first."
LOST: Final = "What the strategy fuses although the step takes longer for it; the worst first."


def program(catalogue: Catalogue) -> page.Page:
    """Return the page."""
    form = program_view.program_form(catalogue)
    traces = program_view.samples()
    panel = forms.form(
        "Settings",
        program_view.parts(catalogue),
        form.defaults | {program_view.SIZES: ""},
        [ids.group(program_view.SIZES)],
    )
    steps = program_lesson.steps(catalogue, form, traces)
    return page.Page(
        path=PATH,
        title=program_lesson.TITLE,
        lead=program_lesson.LEAD,
        look="plain counted pairs handed",
        bench=f"{guide.guide(steps)}{_drop()}{panel}{_figures()}{_charts()}{_sheets()}",
        below=f'<article class="lesson">{guide.glossary(program_lesson.WORDS)}</article>',
        respond=Answers(form, partial(show, catalogue=catalogue, traces=traces)),
        routes=partial(route, catalogue=catalogue, form=form),
    )


def _drop() -> str:
    takes, ends = (", or an ONNX model", ",.onnx") if program_view.ONNX else ("", "")
    return (
        '<section class="card drop" id="drop"><label for="upload" class="label">A file of your own</label>'
        f'<p class="note-line">A profiler trace, .json or .json.gz, recorded with record_shapes=True{takes}; '
        f"up to {MAX_UPLOAD >> 20} MiB. It is read in memory, answered and forgotten; choose it here or drop it on the "
        "page.</p>"
        f'<input type="file" id="upload" accept=".json,.gz{ends}">'
        f'<p id="{NAME}" class="finding" role="status"></p></section>'
    )


def _figures() -> str:
    unfused = (("kernels", ids.UNFUSED_KERNELS), ("90 %", ids.UNFUSED_RANGE), ("recorded, all in all", MEASURED))
    fused = (("kernels", ids.FUSED_KERNELS), ("90 %", ids.FUSED_RANGE), ("in a graph too", REMAINS))
    shown = page.cards(
        ("unfused", "As it is", ids.UNFUSED_TIME, unfused),
        ("fused", "Fused", ids.FUSED_TIME, fused),
        ("gain", "Speedup", ids.SPEEDUP, (("saved per step", ids.SAVING),)),
    )
    return f"{shown}{page.said()}"


def _sheets() -> str:
    return (
        f'<div class="sheets">{tables.framed(RANKING, "Fusions worth making", RANKED)}'
        f"{tables.framed(LOSING, 'Fusions that lose', LOST)}"
        '<section class="card sheet"><h3>What decides</h3>'
        f'<ul id="{SAID}"></ul></section>'
        f"{tables.framed(REACHED, 'Achieved against attainable', 'Ops with the most time to win first.')}"
        f"{page.workings()}</div>"
    )


def _charts() -> str:
    return page.charts(
        page.chart(TIMELINE, "Kernels over time: measured, unfused and fused."),
        page.chart(
            ACHIEVED,
            "What each op took, against what the device's ceilings allow; both axes logarithmic.",
            caption="On the line nothing is to be won. The further above it, the more.",
        ),
    )
