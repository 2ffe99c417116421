"""One slider step on the chain page: a request in, everything that the page shows of it out. Plain functions."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from fusesim.errors import FusesimError

from . import address, chain_words, controls, figures, ids, readout, roofline_figure, time_figure, widgets
from .answering import KEPT, as_text
from .page import items
from .settings import Settings
from .typeset import typeset
from .view import look

if TYPE_CHECKING:
    from .answering import Shown
    from .catalogue import Catalogue

MAX_CHANGES: Final = 40
NO_CHANGE: Final = "The page sent something that is not a change of a control; load it again."
EMPTY: Final = "The chain is empty: pick its first op."


def respond(request: Any, catalogue: Catalogue) -> dict[str, Any]:
    """Answer a request of the chain page.

    Parameters
    ----------
    request : object
        A dict with `settings`, the query of the view so far, and `changes`, raw values by control, where the control
        `url` stands for a whole new query. Unchecked: anyone can send one.
    catalogue : Catalogue
        The devices to choose from.

    Returns
    -------
    dict
        As `answering.Answers` returns it. Where nothing in the request can be used, charts and figures stay as they
        are.
    """
    settings, problems, usable = _read(request, catalogue)
    view = _EMPTIED if settings.ops == () else None
    if usable:
        try:
            view = _view(settings, catalogue)
        except FusesimError as error:
            problems[ids.SIZE] = f"{error}."
    return {
        "query": address.to_query(settings),
        "alerts": {ids.problem(control): typeset(problems.get(control, "")) for control in ids.PROBLEMS},
        "view": view,
    }


_EMPTIED: Final = as_text({"widgets": {ids.NAMES: ""}})


@lru_cache(maxsize=KEPT)
def _view(settings: Settings, catalogue: Catalogue) -> str:
    """Return a view as the text that is sent."""
    return as_text(show(settings, catalogue))


def show(settings: Settings, catalogue: Catalogue) -> Shown:
    """Return what the chain page shows."""
    view = look(settings, catalogue)
    texts = readout.figures(view) | readout.readings(settings, view) | readout.stepper(settings, view)
    return {
        "charts": {
            ids.TIME_CHART: time_figure.time_chart(view),
            ids.BYTES_CHART: figures.bytes_chart(view),
            ids.ROOFLINE_CHART: roofline_figure.roofline_chart(view),
        },
        "texts": texts | {ids.MEASURED: readout.measured_note(settings, view)},
        "widgets": widgets.widget_values(settings, view),
        "hidden": widgets.hidden(settings, view),
        "parts": {ids.REASONS: items(readout.reasons(view)), ids.SUMS: items(chain_words.sums(view))},
        "verbatim": {ids.CALL: chain_words.call(settings, catalogue)},
    }


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
