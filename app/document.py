"""The HTML document around Dash's layout: what stands still on a page, and so need not be a component."""

from __future__ import annotations

import json
from html import escape
from typing import Final

from . import figures, ids, palette
from .page import navigation

_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    f"%3Crect x='1' y='2' width='14' height='5' rx='1' fill='%23{palette.UNFUSED[1:]}'/%3E"
    f"%3Crect x='1' y='9' width='6' height='5' rx='1' fill='%23{palette.FUSED[1:]}'/%3E%3C/svg%3E"
)


def document(title: str, lead: str, *, path: str = "/", look: str = "", bench: str = "", below: str = "") -> str:
    """Return the document, with the marks between which Dash sets its own parts.

    Parameters
    ----------
    title : str
        The page's heading.
    lead : str
        What stands under it.
    path : str
        Where the page stands, for the navigation.
    look : str
        A class for the part that changes.
    bench : str
        HTML that stands beside what Dash draws.
    below : str
        HTML that follows.

    Examples
    --------
    >>> "{%app_entry%}" in document("A page", "What it shows.")
    True
    """
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
{{%metas%}}
<title>{{%title%}}</title>
<link rel="icon" href="{_ICON}">
{{%css%}}
<style>
{palette.style_sheet()}
</style>
<noscript><style>._dash-loading, .figures {{ display: none; }}</style></noscript>
</head>
<body>
<a href="#main" class="skip">Skip to the page</a>
<header class="top">
<a href="/" class="brand">fusesim workshop</a>
{navigation(path)}
<p class="legend"><span class="key unfused">unfused</span><span class="key fused">fused</span></p>
</header>
<main id="main" tabindex="-1" data-charts="{escape(json.dumps(figures.CONFIG))}">
<div class="intro"><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p></div>
<noscript><p class="problem">The controls and charts need JavaScript, which is switched off here.</p></noscript>
<p id="{ids.problem(ids.URL)}" class="problem note" role="alert"></p>
<div class="bench {look}">
{bench}
{{%app_entry%}}
</div>
{below}
</main>
<footer class="end"><p>Textbook: datasheet figures, nothing measured. Calibrated: measured on one H200, and for
other devices transferred from it. Ranges are made to hold 90 % of new measurements; the page Accuracy counts how many
they do.</p></footer>
{{%config%}}
{{%scripts%}}
{{%renderer%}}
</body>
</html>
"""
