"""What the page of patterns and plans shows of its settings. Plain functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import ids, plan_figures, plan_form, plan_graph, plan_tables, plan_words
from .answering import DRAGGED, MORE, Shown
from .page import items
from .plan_view import look

if TYPE_CHECKING:
    from .catalogue import Catalogue
    from .fields import Form, Values

TIMELINE: Final = "timeline-chart"
MEMORY: Final = "memory-chart"
DRAWING: Final = "drawing"
REASONS: Final = "plan-reasons"
MOST_DRAGGED: Final = 30
"""Edges up to which a drawing follows a slider; a larger one waits until the slider stands still."""


def show(values: Values, pace: str, *, catalogue: Catalogue, form: Form) -> Shown:
    """Return what the page shows.

    Parameters
    ----------
    values : dict
        The settings.
    pace : str
        How they are asked for. Nobody reads a table while a slider moves, and every strategy's price and the source
        of a kernel take longer, so they come once the page stands still.
    catalogue : Catalogue
        The devices to choose from.
    form : Form
        The page's settings.

    Raises
    ------
    FusesimError
        If the settings cannot be priced.
    """
    view = look(values, catalogue, more=pace == MORE)
    parts = {plan_tables.ASKED: plan_tables.question(view), REASONS: items(plan_words.reasons(view))}
    if pace != DRAGGED or len(view.edges) <= MOST_DRAGGED:
        parts[DRAWING] = plan_graph.drawing(view)
    if pace != DRAGGED:
        parts |= {plan_tables.EDGES_TABLE: plan_tables.edges(view), ids.SUMS: items(plan_words.sums(view))}
    shown: Shown = {
        "texts": plan_words.texts(view) | {plan_tables.EDGES_NOTE: plan_tables.saved(view)},
        "verbatim": {ids.CALL: plan_words.call(view)},
        "widgets": plan_form.widgets(form, values),
        "hidden": plan_form.hidden(values),
        "parts": parts,
    }
    if pace == MORE:
        parts[plan_tables.STRATEGIES_TABLE] = plan_tables.strategies(view)
        parts[plan_tables.SOURCE] = plan_tables.source(view)
        return shown
    charts = {TIMELINE: plan_figures.timeline_chart(view), MEMORY: plan_figures.memory_chart(view)}
    return shown | {"charts": charts, "more": True}
