"""Make the app: a Dash app for each page, all on one `server` that any WSGI server can run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dash import Dash
from flask import Flask

from . import callbacks, lesson
from .answers import respond
from .article import article
from .cards import cards
from .catalogue import Catalogue, shipped
from .document import document
from .pages import PAGES, chain
from .server import harden

if TYPE_CHECKING:
    from .page import Page

ASSETS: Final = str(Path(__file__).parent / "assets")
DESCRIPTION: Final = "What fusing GPU kernels saves: time, launches and bytes."


class _Paged(Dash):
    """A Dash app below a path that loads its scripts from the root, so that a browser keeps them for all pages."""

    def interpolate_index(self, **parts: Any) -> str:  # type: ignore[override]
        """Return the document; Dash's own has scripts below the page's path."""
        prefix = self.config.requests_pathname_prefix
        for name in ("scripts", "css"):
            for folder in ("_dash-component-suites/", "assets/"):
                parts[name] = parts[name].replace(f'"{prefix}{folder}', f'"/{folder}')
        return str(super().interpolate_index(**parts))  # type: ignore[no-untyped-call]


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
    index = document(chain.TITLE, lesson.LEAD, bench=cards(), below=article())
    apps = [_dash(server, chain.PATH, chain.TITLE, index)]
    apps[0].layout = chain.build(devices)
    callbacks.register(apps[0], partial(respond, catalogue=devices))
    callbacks.register_controls(apps[0])
    apps += [_page(server, make(devices)) for make in PAGES]
    paths = [each.config.requests_pathname_prefix for each in apps]
    harden(server, paths, (each for app in apps for each in app.csp_hashes()))
    return apps[0]


def _page(server: Flask, page: Page) -> Dash:
    """Make the app of a page."""
    index = document(page.title, page.lead, path=page.path, look=page.look, bench=page.bench, below=page.below)
    app = _dash(server, page.path, page.title, index)
    app.layout = page.layout
    callbacks.register(app, page.respond)
    callbacks.register_charts(app)
    if page.routes is not None:
        page.routes(server)
    return app


def _dash(server: Flask, path: str, title: str, index: str) -> Dash:
    """Make a Dash app below a path of a server."""
    return _Paged(
        __name__,
        server=server,  # type: ignore[arg-type]
        url_base_pathname=path,
        assets_folder=ASSETS,
        title=f"{title} - fusesim workshop",
        update_title="",
        meta_tags=[
            {"name": "viewport", "content": "width=device-width, initial-scale=1"},
            {"name": "description", "content": DESCRIPTION},
        ],
        index_string=index,
        serve_locally=True,
    )
