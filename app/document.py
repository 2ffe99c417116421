"""The HTML document of a page: what stands still on it, and the places of what moves."""

from __future__ import annotations

import json
from html import escape
from typing import Final, NamedTuple

from . import figures, ids, palette
from .page import navigation, share
from .typeset import typeset

_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    f"%3Crect x='1' y='2' width='14' height='5' rx='1' fill='%23{palette.UNFUSED[1:]}'/%3E"
    f"%3Crect x='1' y='9' width='6' height='5' rx='1' fill='%23{palette.FUSED[1:]}'/%3E%3C/svg%3E"
)


class Parts(NamedTuple):
    """What a document gets from where it is made: by default the marks between which Dash sets its own parts."""

    title: str = "{%title%}"
    head: str = "{%metas%}{%css%}"
    entry: str = "{%app_entry%}"
    end: str = "{%config%}{%scripts%}{%renderer%}"


def document(
    title: str,
    lead: str,
    *,
    path: str = "/",
    look: str = "",
    bench: str = "",
    below: str = "",
    parts: Parts | None = None,
) -> str:
    """Return the document.

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
        HTML of the page's controls, figures and charts.
    below : str
        HTML that follows.
    parts : Parts
        Head, scripts, and what is laid out later; Dash's own unless given.

    Examples
    --------
    >>> "{%app_entry%}" in document("A page", "What it shows.")
    True
    """
    parts = parts or Parts()
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="What fusing GPU kernels saves: time, launches and bytes.">
<title>{parts.title}</title>
<link rel="icon" href="{_ICON}">
{parts.head}
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
<div class="intro"><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>{share()}</div>
<noscript><p class="problem">The controls and charts need JavaScript, which is switched off here.</p></noscript>
<p id="{ids.problem(ids.URL)}" class="problem note" role="alert"></p>
<div class="bench {look}">
{typeset(bench)}
{parts.entry}
</div>
{typeset(below)}
</main>
<footer class="end"><p>Textbook: datasheet figures, nothing measured. Calibrated: measured on one H200, and for
other devices transferred from it. Ranges are made to hold 90 % of new measurements; the page Accuracy counts how many
they do.</p></footer>
{parts.end}
</body>
</html>
"""
