"""Make the app: a Dash app for each page, all on one `server` that any WSGI server can run."""

from __future__ import annotations

from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import plotly  # type: ignore[import-untyped, unused-ignore]
from dash import Dash
from dash.fingerprint import build_fingerprint
from flask import Flask

from . import callbacks, lesson
from .answers import respond
from .article import article
from .cards import cards
from .catalogue import Catalogue, shipped
from .document import Parts, document
from .page import live
from .pages import PAGES, chain
from .server import harden

if TYPE_CHECKING:
    from .page import Page

App = TypeVar("App", bound=Dash)
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


class _Chain(Dash):
    """The chain page, whose controls are Dash's. Its document has Plotly besides, which draws the charts."""

    def interpolate_index(self, **parts: Any) -> str:  # type: ignore[override]
        """Return the document."""
        parts["scripts"] = f'<script defer src="{_plotly()}"></script>{parts["scripts"]}'
        return str(super().interpolate_index(**parts))  # type: ignore[no-untyped-call]


class _Native(Dash):
    """A page whose controls and charts are the browser's own: Dash answers its callback, and lays nothing out.

    So the page loads Plotly and the workshop's own scripts, and is there before Dash's scripts would have begun.
    """

    own_document: str

    def index(self, *_: Any, **__: Any) -> str:
        """Return the document."""
        return self.own_document


def _parts(title: str) -> Parts:
    """Return head and scripts of a page that Dash does not lay out."""
    styles = "".join(f'<link rel="stylesheet" href="{_address(name)}">' for name in STYLES)
    scripts = (*map(_address, SCRIPTS), _plotly())
    loaded = "".join(f'<script defer src="{address}"></script>' for address in scripts)
    return Parts(title=escape(f"{title}{SUFFIX}"), head=f"{styles}{loaded}", entry="", end="")


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
    index = document(chain.TITLE, lesson.LEAD, bench=f"{cards()}{chain.charts()}", below=article())
    first = _dash(_Chain, server, chain.PATH, index_string=index, title=f"{chain.TITLE}{SUFFIX}", update_title="")
    first.layout = chain.build(devices)
    callbacks.register(first, partial(respond, catalogue=devices))
    callbacks.register_controls(first)
    apps = [first, *(_page(server, make(devices)) for make in PAGES)]
    paths = [each.config.requests_pathname_prefix for each in apps]
    harden(server, paths, (each for app in apps for each in app.csp_hashes()))
    return first


def _page(server: Flask, page: Page) -> Dash:
    """Make the app of a page."""
    app = _dash(_Native, server, page.path)
    app.own_document = document(
        page.title,
        page.lead,
        path=page.path,
        look=page.look,
        bench=page.bench,
        below=page.below,
        parts=_parts(page.title),
    )
    app.layout = live()
    callbacks.register(app, page.respond)
    if page.routes is not None:
        page.routes(server)
    return app


def _dash(kind: type[App], server: Flask, path: str, **more: Any) -> App:
    """Make a Dash app below a path of a server."""
    more |= {"server": server, "url_base_pathname": path}
    return kind(__name__, assets_folder=ASSETS, serve_locally=True, **more)
