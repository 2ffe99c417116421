"""One slider step on the server: a request in, everything that the page shows of it out. Plain functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dash import no_update

from . import controls, figures, ids, readout, roofline_figure
from .controls import Settings
from .view import look

if TYPE_CHECKING:
    from .catalogue import Catalogue

MAX_CHANGES: Final = 20


def respond(request: Any, catalogue: Catalogue) -> dict[str, Any]:
    """Answer a request of the chain page.

    Parameters
    ----------
    request : object
        A dict with `settings`, the query of the view so far; `changes`, raw values by control, where the control
        `url` stands for a whole new query; and `serial`, which comes back. Unchecked: anyone can send one.
    catalogue : Catalogue
        The devices to choose from.

    Returns
    -------
    dict
        `charts` by id, and `answer`: the new query, what each control has to hold, and texts by the id of their
        place. Where nothing in the request can be used, charts and figures stay as they are.
    """
    settings, problems, usable = _read(request, catalogue)
    answer: dict[str, Any] = {
        "serial": request.get("serial") if isinstance(request, dict) else None,
        "query": controls.to_query(settings),
        "widgets": controls.widget_values(settings, catalogue),
        "texts": {ids.problem(control): problems.get(control, "") for control in ids.PROBLEMS},
        "reasons": [],
    }
    if not usable:
        return {"charts": dict.fromkeys(ids.CHARTS, no_update), "answer": answer}
    view = look(settings, catalogue)
    answer["texts"] |= readout.figures(view) | readout.readings(settings, view)
    answer["reasons"] = readout.reasons(view)
    charts = {
        ids.TIME_CHART: figures.time_chart(view),
        ids.BYTES_CHART: figures.bytes_chart(view),
        ids.ROOFLINE_CHART: roofline_figure.roofline_chart(view),
    }
    return {"charts": charts, "answer": answer}


def _read(request: Any, catalogue: Catalogue) -> tuple[Settings, dict[str, str], bool]:
    """Return the settings asked for, a sentence per control that is refused, and whether anything is left to show."""
    changes = request.get("changes") if isinstance(request, dict) else None
    if not isinstance(changes, dict) or not 0 < len(changes) <= MAX_CHANGES:
        return Settings(), {ids.URL: "The page sent something that is not a change of a control; load it again."}, False
    fresh = ids.URL in changes
    settings, note = controls.from_query(changes[ids.URL] if fresh else request.get("settings"), catalogue)
    moved = {control: raw for control, raw in changes.items() if control != ids.URL}
    settings, problems = controls.change_all(settings, moved, catalogue)
    if note:
        problems[ids.URL] = note
    return settings, problems, fresh or len(moved) > len(problems)
