"""Wiring, and nothing else.

The browser gathers what has moved into a request, and holds back the next one until this one is answered (see
assets/workshop.js); the server answers with all that the page shows. So a slider that is dragged faster than answers
come skips steps, and the page never lags behind the hand. The page asks the callback itself, as Dash's own script
would, and draws what it says: on its way through Dash's store of components each step would take a third longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dash import Input, Output

from . import ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from dash import Dash


def register(app: Dash, respond: Callable[[Any], dict[str, Any]]) -> None:
    """Wire a page to the plain function that answers it."""

    @app.callback(output=Output(ids.ANSWER, "data"), inputs=Input(ids.REQUEST, "data"), prevent_initial_call=True)
    def answer(request: Any) -> dict[str, Any]:
        return respond(request)
