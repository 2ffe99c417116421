"""The one palette: what is unfused and what is fused has the same colour wherever it appears.

Vermillion and blue are from the palette of M. Okabe and K. Ito, "Color Universal Design" (2008), made to be told
apart with any colour vision. Both reach a contrast of 3:1 against the light and against the dark background, so
one figure serves both; text, which needs 4.5:1, takes a darker or a lighter shade by theme.
"""

from __future__ import annotations

from typing import Final

UNFUSED: Final = "#D55E00"
FUSED: Final = "#0072B2"
UNFUSED_BAND: Final = "rgba(213, 94, 0, 0.22)"
FUSED_BAND: Final = "rgba(0, 114, 178, 0.22)"
"""The two colours, pale: the interval around a line."""

DEVICES: Final = (
    ("#76808C", "circle"),
    ("#009E73", "diamond-open"),
    ("#B8578A", "triangle-up-open"),
    ("#8A7A00", "star-open"),
)
"""Devices side by side: colours apart from the two of unfused and fused, each with a shape of its own."""

INK: Final = "#76808C"
"""Axes and labels of a figure: a grey that reads on white and on near-black; the page's style sheet sharpens it."""

GRID: Final = "rgba(118, 128, 140, 0.22)"
SHADE: Final = "rgba(118, 128, 140, 0.12)"
FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif'

LIGHT: Final = {
    "paper": "#F6F7F8",
    "card": "#FFFFFF",
    "ink": "#1B222A",
    "soft": "#55606C",
    "line": "#DDE1E6",
    "track": "#C9D0D8",
    "unfused": UNFUSED,
    "fused": FUSED,
    "unfused-text": "#B04D00",
    "fused-text": "#00659E",
    "alert": "#FFF3E6",
}
DARK: Final = {
    "paper": "#0F1317",
    "card": "#171C22",
    "ink": "#E8ECF0",
    "soft": "#A3AEBA",
    "line": "#2B333C",
    "track": "#3D4753",
    "unfused": "#E8741E",
    "fused": "#3D9BD9",
    "unfused-text": "#F59A56",
    "fused-text": "#6DB6EA",
    "alert": "#33241A",
}


_CHARTS: Final = """
.js-plotly-plot .gtitle, .js-plotly-plot .xtick text, .js-plotly-plot .ytick text,
.js-plotly-plot .xtitle, .js-plotly-plot .ytitle, .js-plotly-plot .legendtext { fill: var(--ink) !important; }
.js-plotly-plot .gtitle { font-weight: 650 !important; }
.js-plotly-plot .annotation-text { fill: var(--soft) !important; }
.js-plotly-plot .hoverlayer .bg { fill: var(--card) !important; fill-opacity: 1 !important; }
.js-plotly-plot .hoverlayer .bg { stroke: var(--track) !important; }
.js-plotly-plot .hoverlayer text { fill: var(--ink) !important; }
.js-plotly-plot .modebar-btn path { fill: var(--soft) !important; }
"""
"""Text in charts, as sharp as the page's."""


def style_sheet() -> str:
    """Return the colours as CSS custom properties, light and dark.

    Examples
    --------
    >>> "--unfused: #D55E00;" in style_sheet(), "prefers-color-scheme: dark" in style_sheet()
    (True, True)
    """
    light, dark = ("".join(f"--{name}: {colour};" for name, colour in theme.items()) for theme in (LIGHT, DARK))
    marks = "\n".join(_by_theme(name, colour) for name, colour in (("unfused", UNFUSED), ("fused", FUSED)))
    return (
        f":root {{ color-scheme: light dark; --font: {FONT}; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{marks}{_CHARTS}"
    )


def _by_theme(name: str, colour: str) -> str:
    """Return rules by which what a chart draws in a colour follows the theme; Plotly itself takes no variables."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    drawn = f"rgb({red}, {green}, {blue})"
    return (
        f'.js-plotly-plot [style*="stroke: {drawn}"] {{ stroke: var(--{name}) !important; }}\n'
        f'.js-plotly-plot [style*="fill: {drawn}"] {{ fill: var(--{name}) !important; }}\n'
        f'.js-plotly-plot text[style*="fill: {drawn}"] {{ fill: var(--{name}-text) !important; }}'
    )
