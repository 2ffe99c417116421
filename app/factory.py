"""Make the app: a Dash app whose `server` any WSGI server can run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dash import Dash, html

from . import callbacks, palette
from .catalogue import Catalogue, shipped
from .pages import chain
from .server import harden

_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    f"%3Crect x='1' y='2' width='14' height='5' rx='1' fill='%23{palette.UNFUSED[1:]}'/%3E"
    f"%3Crect x='1' y='9' width='6' height='5' rx='1' fill='%23{palette.FUSED[1:]}'/%3E%3C/svg%3E"
)
_INDEX: Final = f"""<!DOCTYPE html>
<html lang="en">
<head>
{{%metas%}}
<title>{{%title%}}</title>
<link rel="icon" href="{_ICON}">
{{%css%}}
<style>
{palette.style_sheet()}
</style>
</head>
<body>
<noscript>The workshop draws its charts with JavaScript, which is switched off here.</noscript>
{{%app_entry%}}
{{%config%}}
{{%scripts%}}
{{%renderer%}}
</body>
</html>
"""
_METAS: Final = [
    {"name": "viewport", "content": "width=device-width, initial-scale=1"},
    {"name": "description", "content": "What fusing a chain of GPU kernels saves: time, launches and bytes."},
]


def create_app(catalogue: Catalogue | None = None) -> Dash:
    """Make the workshop.

    Parameters
    ----------
    catalogue : Catalogue, optional
        Devices to offer; all that fusesim ships unless given.

    Returns
    -------
    Dash
        Its `server` attribute is the WSGI application. Nothing on the page comes from another host.

    Examples
    --------
    >>> create_app().server.test_client().get("/health").json
    {'status': 'ok'}
    """
    devices = shipped() if catalogue is None else catalogue
    app = Dash(
        __name__,
        assets_folder=str(Path(__file__).parent / "assets"),
        title=f"{chain.TITLE} - fusesim workshop",
        update_title="",
        meta_tags=_METAS,
        index_string=_INDEX,
        serve_locally=True,
    )
    app.layout = html.Div(
        [
            html.A("Skip to the page", href="#main", className="skip"),
            html.Header([html.A("fusesim workshop", href=chain.PATH, className="brand"), _legend()], className="top"),
            chain.build(devices),
            html.Footer(
                html.P("Textbook model, datasheet figures; no measured corrections on this page."), className="end"
            ),
        ]
    )
    callbacks.register(app, devices)
    harden(app.server)
    return app


def _legend() -> html.P:
    """Say once, on top, which colour is which."""
    return html.P(
        [html.Span("unfused", className="key unfused"), html.Span("fused", className="key fused")], className="legend"
    )
