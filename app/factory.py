"""Make the app: a Dash app for each page, all on one `server` that any WSGI server can run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import plotly  # type: ignore[import-untyped, unused-ignore]
from dash import Dash
from dash.fingerprint import build_fingerprint
from flask import Flask

from . import callbacks
from .catalogue import Catalogue, shipped
from .document import document
from .page import live
from .pages import PAGES
from .server import harden

if TYPE_CHECKING:
    from .page import Page

ASSETS: Final = str(Path(__file__).parent / "assets")
STYLES: Final = ("workshop.css", "workshop_pages.css")
SCRIPTS: Final = ("workshop.js", "hands.js", "keep.js", "program.js")
SUFFIX: Final = " - fusesim workshop"


def _address(name: str) -> str:
    """Return where one of the workshop's own files lies: with its time, so that a browser may keep it."""
    return f"/assets/{name}?m={int((Path(ASSETS) / name).stat().st_mtime)}"


def _plotly() -> str:
    """Return where Plotly lies: an address with its version, which a browser keeps for all pages."""
    path = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    name = build_fingerprint(f"package_data/{path.name}", plotly.__version__, int(path.stat().st_mtime))  # type: ignore[no-untyped-call]
    return f"/_dash-component-suites/plotly/{name}"


class _Page(Dash):
    """A page whose controls and charts are the browser's own: Dash answers its callback, and lays nothing out.

    So the page loads Plotly and the workshop's own scripts, and is there before Dash's scripts would have begun.
    """

    own_document: str

    def index(self, *_: Any, **__: Any) -> str:
        """Return the document."""
        return self.own_document


def _head() -> str:
    """Return the styles and scripts of a page; Plotly, by far the longest, comes last."""
    styles = "".join(f'<link rel="stylesheet" href="{_address(name)}">' for name in STYLES)
    scripts = (*map(_address, SCRIPTS), _plotly())
    return styles + "".join(f'<script defer src="{address}"></script>' for address in scripts)


def create_app(catalogue: Catalogue | None = None) -> Dash:
    """Make the workshop.

    Parameters
    ----------
    catalogue : Catalogue, optional
        Devices to offer; all that fusesim ships unless given.

    Returns
    -------
    Dash
        The chain page's. Its `server` attribute is the WSGI application of all pages. Nothing on a page comes from
        another host, and no state is kept between two requests.

    Examples
    --------
    >>> create_app().server.test_client().get("/health").json
    {'status': 'ok'}
    """
    devices = shipped() if catalogue is None else catalogue
    server = Flask(__name__)
    apps = [_app(server, make(devices)) for make in PAGES]
    paths = [each.config.requests_pathname_prefix for each in apps]
    harden(server, paths)
    return apps[0]


def _app(server: Flask, page: Page) -> Dash:
    """Make the app of a page, below its path on a server."""
    app = _Page(__name__, server=server, url_base_pathname=page.path, assets_folder=ASSETS, serve_locally=True)  # type: ignore[arg-type]
    app.own_document = document(page, title=f"{page.title}{SUFFIX}", head=_head())
    app.layout = live()
    callbacks.register(app, page.respond)
    if page.routes is not None:
        page.routes(server)
    return app
