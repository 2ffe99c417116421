"""One slider step on the server: a request in, everything that the page shows of it out. Plain functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dash import no_update

from . import address, controls, figures, ids, readout, roofline_figure, time_figure, widgets
from .settings import Settings
from .view import look

if TYPE_CHECKING:
    from .catalogue import Catalogue

MAX_CHANGES: Final = 40
NO_CHANGE: Final = "The page sent something that is not a change of a control; load it again."
EMPTY: Final = "The chain is empty: pick its first op."


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
        `charts` by id, and `answer`: the new query, what each control has to hold, texts by the id of their place,
        and what is to be hidden. Where nothing in the request can be used, charts and figures stay as they are.
    """
    settings, problems, usable = _read(request, catalogue)
    answer: dict[str, Any] = {
        "serial": request.get("serial") if isinstance(request, dict) else None,
        "query": address.to_query(settings),
        "widgets": {},
        "hidden": None,
        "texts": {ids.problem(control): problems.get(control, "") for control in ids.PROBLEMS},
        "reasons": [],
    }
    if settings.ops == ():
        answer["widgets"] = {ids.NAMES: ""}
    if not usable:
        return {"charts": dict.fromkeys(ids.CHARTS, no_update), "answer": answer}
    view = look(settings, catalogue)
    answer["texts"] |= readout.figures(view) | readout.readings(settings, view) | readout.stepper(settings, view)
    answer["texts"][ids.MEASURED] = readout.measured_note(settings, view)
    answer["widgets"] = widgets.widget_values(settings, view)
    answer["hidden"] = widgets.hidden(settings, view)
    answer["reasons"] = readout.reasons(view)
    charts = {
        ids.TIME_CHART: time_figure.time_chart(view),
        ids.BYTES_CHART: figures.bytes_chart(view),
        ids.ROOFLINE_CHART: roofline_figure.roofline_chart(view),
    }
    return {"charts": charts, "answer": answer}


def _read(request: Any, catalogue: Catalogue) -> tuple[Settings, dict[str, str], bool]:
    """Return the settings asked for, a sentence per control that is refused, and whether anything is left to show."""
    changes = request.get("changes") if isinstance(request, dict) else None
    if not isinstance(changes, dict) or not 0 < len(changes) <= MAX_CHANGES:
        return Settings(), {ids.URL: NO_CHANGE}, False
    fresh = ids.URL in changes
    settings, note = address.from_query(changes[ids.URL] if fresh else request.get("settings"), catalogue)
    moved = {control: raw for control, raw in changes.items() if control != ids.URL}
    settings, problems = controls.change_all(settings, moved, catalogue)
    usable = fresh or len(moved) > len(problems)
    if note:
        problems[ids.URL] = note
    if settings.ops == () and fresh:
        settings, problems[ids.URL] = Settings(), "The address holds an empty chain, so the defaults are shown."
    elif settings.ops == ():
        problems[ids.KIND], usable = EMPTY, False
    if settings.step and settings.device in catalogue.refusals:
        settings, problems[ids.STEP] = replace(settings, step=0), catalogue.refusals[settings.device]
    return settings, problems, usable
