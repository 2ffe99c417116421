"""Make the app: a Dash app whose `server` any WSGI server can run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dash import Dash

from . import callbacks, lesson
from .catalogue import Catalogue, shipped
from .document import document
from .pages import chain
from .server import harden

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
        index_string=document(chain.TITLE, lesson.LEAD),
        serve_locally=True,
    )
    app.layout = chain.build(devices)
    callbacks.register(app, devices)
    harden(app.server, [name for name, entry in app.callback_map.items() if "callback" in entry])
    return app
