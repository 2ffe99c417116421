"""The HTML document of a page: what stands still on it, and the places of what moves."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Final

from . import figures, ids, palette
from .page import navigation, share
from .typeset import typeset

if TYPE_CHECKING:
    from .page import Page

_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    f"%3Crect x='1' y='2' width='14' height='5' rx='1' fill='%23{palette.UNFUSED[1:]}'/%3E"
    f"%3Crect x='1' y='9' width='6' height='5' rx='1' fill='%23{palette.FUSED[1:]}'/%3E%3C/svg%3E"
)


def document(page: Page, *, title: str, head: str) -> str:
    """Return the document.

    Parameters
    ----------
    page : Page
        The page.
    title : str
        What the browser calls it.
    head : str
        Links to its styles and scripts.
    """
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="What fusing GPU kernels saves: time, launches and bytes.">
<title>{escape(title)}</title>
<link rel="icon" href="{_ICON}">
{head}
<style>
{palette.style_sheet()}
</style>
<noscript><style>.figures {{ display: none; }}</style></noscript>
</head>
<body>
<a href="#main" class="skip">Skip to the page</a>
<header class="top">
<a href="/" class="brand">fusesim workshop</a>
{navigation(page.path)}
<p class="legend"><span class="key unfused">unfused</span><span class="key fused">fused</span></p>
</header>
<main id="main" tabindex="-1" data-charts="{escape(json.dumps(figures.CONFIG))}">
<div class="intro"><h1>{escape(page.title)}</h1><p class="lead">{escape(page.lead)}</p>{share()}</div>
<noscript><p class="problem">The controls and charts need JavaScript, which is switched off here.</p></noscript>
<p id="{ids.problem(ids.URL)}" class="problem note" role="alert"></p>
<div class="bench {page.look}">
{typeset(page.bench)}
</div>
{typeset(page.below)}
</main>
<footer class="end"><p>Textbook: datasheet figures, nothing measured. Calibrated: measured on one H200, and for
other devices transferred from it. Ranges are made to hold 90 % of new measurements; the page Accuracy counts how many
they do.</p></footer>
</body>
</html>
"""
