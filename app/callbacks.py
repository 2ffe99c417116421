"""Wiring, and nothing else.

The browser gathers what has moved into a request, and holds back the next one until this one is answered (see
assets/workshop.js); the server answers with all that the page shows. So a slider that is dragged faster than
answers come skips steps, and the page never lags behind the hand. Buttons send their changes past Dash, and so do
the controls of every page but the chain's, which are the browser's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import ClientsideFunction, Input, Output

from . import ids
from .answers import respond

if TYPE_CHECKING:
    from dash import Dash

    from .catalogue import Catalogue
    from .page import Page

# Texts travel inside the answer and are put in place by `settle`: as thirty outputs of their own they would cost the
# browser as much as drawing a chart.
ANSWER_OUTPUTS = {
    "charts": {name: Output(name, "figure") for name in ids.CHARTS},
    "answer": Output(ids.ANSWER, "data"),
}


def register(app: Dash, catalogue: Catalogue) -> None:
    """Wire the chain page."""

    @app.callback(output=ANSWER_OUTPUTS, inputs={"request": Input(ids.REQUEST, "data")}, prevent_initial_call=True)
    def answer(request: Any) -> dict[str, Any]:
        return respond(request, catalogue)

    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("workshop", "collect"),
        [Input(name, "value") for name in ids.WIDGETS],
    )
    _settle(app)


def register_page(app: Dash, page: Page) -> None:
    """Wire another page."""
    outputs = {
        "charts": {name: Output(name, "figure") for name in page.charts},
        "answer": Output(ids.ANSWER, "data"),
    }

    @app.callback(output=outputs, inputs={"request": Input(ids.REQUEST, "data")}, prevent_initial_call=True)
    def answer(request: Any) -> dict[str, Any]:
        return page.respond(request)

    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("workshop", "begin"), Input(ids.REQUEST, "id")
    )
    _settle(app)


def _settle(app: Dash) -> None:
    app.clientside_callback(  # type: ignore[no-untyped-call]
        ClientsideFunction("workshop", "settle"), Input(ids.ANSWER, "data")
    )
