"""How soon a page is there, beside a bare Dash page with one empty graph: `bench_workshop.py first` runs it."""

from __future__ import annotations

import contextlib
import statistics
import threading
from typing import TYPE_CHECKING

import waitress.server
from dash import Dash, dcc, html

from app import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flask import Flask
    from selenium import webdriver

COLD = (True, False)
PATHS = ("", "roofline/", "plans/", "program/", "accuracy/", "devices/")
WATCH = """
(() => {
    const bare = location.search === '?bare';
    const there = () => bare ? document.querySelector('.js-plotly-plot .main-svg') : document.body?.dataset.answered;
    const look = () => { if (there()) { window.firstView = performance.now(); } else { setTimeout(look, 2); } };
    look();
})();
"""
THERE = """
const done = arguments[0];
const look = () => { if (window.firstView) { done(window.firstView); } else { setTimeout(look, 5); } };
look();
"""


def bare() -> Flask:
    """Return a page of Dash with nothing but an empty graph."""
    app = Dash("bare", serve_locally=True)
    app.layout = html.Div([dcc.Graph(id="graph")])
    return app.server


@contextlib.contextmanager
def served(server: Flask) -> Iterator[str]:
    """Serve an app on a free port."""
    running = waitress.server.create_server(server, host="127.0.0.1", port=0, threads=8)
    threading.Thread(target=running.run, daemon=True).start()
    yield f"http://127.0.0.1:{running.effective_port}/"
    running.close()


def opened(browser: webdriver.Chrome, address: str, *, cold: bool) -> float:
    """Open a page and return when it was there, from the start of its way. [ms]."""
    browser.get("about:blank")
    if cold:
        browser.execute_cdp_cmd("Network.clearBrowserCache", {})
    browser.get(address)
    return float(browser.execute_async_script(THERE))


def main(browser: webdriver.Chrome, times: int) -> None:
    """Print how soon each page is there, as a multiple of the bare page's time."""
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    with served(create_app().server) as ours, served(bare()) as theirs:
        for cold in COLD:
            for path in PATHS:
                found: dict[str, list[float]] = {"page": [], "bare": []}
                for place in range(times + 1):  # the first fills caches, the browser's and the server's
                    for name, address in (("bare", f"{theirs}?bare"), ("page", f"{ours}{path}")):
                        taken = opened(browser, address, cold=cold)
                        found[name] += [taken] if place else []
                page, empty = (statistics.median(found[name]) for name in ("page", "bare"))
                print(
                    f"/{path} {'cold' if cold else 'warm'} cache: there after {page:.0f} ms "
                    f"({min(found['page']):.0f} to {max(found['page']):.0f}); a bare page {empty:.0f} ms "
                    f"({min(found['bare']):.0f} to {max(found['bare']):.0f}): {page / empty:.2f}x",
                    flush=True,
                )
