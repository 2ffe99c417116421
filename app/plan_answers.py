"""A request of the page of patterns and plans in, everything that it shows of it out. Plain functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dash import no_update

from . import ids, plan_figures, plan_form, plan_graph, plan_tables, plan_words
from .fields import answer_with
from .page import items
from .plan_view import look

if TYPE_CHECKING:
    from .catalogue import Catalogue
    from .fields import Asked, Form
    from .plan_view import PlanView

TIMELINE: Final = "timeline-chart"
MEMORY: Final = "memory-chart"
CHARTS: Final = (TIMELINE, MEMORY)
DRAWING: Final = "drawing"
REASONS: Final = "plan-reasons"
MOST_DRAGGED: Final = 30
"""Edges up to which a drawing follows a slider; a larger one waits until the slider stands still."""


def respond(request: Any, catalogue: Catalogue, form: Form) -> dict[str, Any]:
    """Answer a request.

    Parameters
    ----------
    request : object
        As `fields.Form.ask` takes it, unchecked.
    catalogue : Catalogue
        The devices to choose from.
    form : Form
        The page's settings.

    Returns
    -------
    dict
        `charts` by id, and `answer`. Where the settings cannot be priced, what is on screen stays, and a sentence
        stands beside the control that was moved.
    """
    asked, view, answer = answer_with(form, request, lambda asked: look(asked.values, catalogue, more=asked.more))
    if view is None:
        return {"charts": dict.fromkeys(CHARTS, no_update), "answer": answer}
    return _shown(view, asked, form, answer)


def _shown(view: PlanView, asked: Asked, form: Form, answer: dict[str, Any]) -> dict[str, Any]:
    """Fill in an answer."""
    answer["texts"] |= plan_words.texts(view) | {plan_tables.EDGES_NOTE: plan_tables.saved(view)}
    answer["widgets"] = plan_form.widgets(form, asked.values)
    answer["hidden"] = plan_form.hidden(asked.values)
    answer["parts"] = {plan_tables.ASKED: plan_tables.question(view), REASONS: items(plan_words.reasons(view))}
    if not asked.dragged or len(view.edges) <= MOST_DRAGGED:
        answer["parts"][DRAWING] = plan_graph.drawing(view)
    if not asked.dragged:  # nobody reads a table while a slider moves
        answer["parts"] |= {
            plan_tables.EDGES_TABLE: plan_tables.edges(view),
            ids.SUMS: items(plan_words.sums(view)),
        }
    if asked.more:
        answer["parts"] |= {
            plan_tables.STRATEGIES_TABLE: plan_tables.strategies(view),
            plan_tables.SOURCE: plan_tables.source(view),
        }
        return {"charts": dict.fromkeys(CHARTS, no_update), "answer": answer}
    answer["more"] = True
    charts = {TIMELINE: plan_figures.timeline_chart(view), MEMORY: plan_figures.memory_chart(view)}
    return {"charts": charts, "answer": answer}
