"""The roofline as a plain dictionary: where a chain stands under its device's ceilings, before and after fusion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fusesim import units

from . import palette
from .figures import COLOURS, SIDES, SYMBOLS, axis, decade_ticks, decades, frame, one_side

if TYPE_CHECKING:
    from fusesim.records import Price

    from .figures import Figure
    from .view import View


LONG_NUMBERS: Final = 5
"""Power of ten from which the intensities of an axis are written with prefixes."""


def roofline_chart(view: View) -> Figure:
    """Show the chain under the device's roof before and after fusion.

    A chain stands at its arithmetic intensity and at the rate that it reaches; the dotted line leads to the roof.
    """
    intensities, rates = view.roof
    reached = [_reached(one_side(view.point, side)) for side in SIDES]
    layout = frame("On the device's roofline")
    x_low, x_high = _roof_span(view)
    shown = (intensities >= 10**x_low) & (intensities <= 10**x_high)
    low, high = decades([rates[shown], *(rate for _, rate in reached)])
    layout["xaxis"] = axis("arithmetic intensity [FLOP/B]", [x_low - 0.1, x_high])
    layout["xaxis"] |= decade_ticks([x_low, x_high], 4) | {"tickformat": "~r" if x_high < LONG_NUMBERS else "~s"}
    layout["yaxis"] = axis("arithmetic done [FLOP/s]", [low - 0.1, high + 0.15]) | {"tickformat": "~s"}
    layout["yaxis"] |= decade_ticks([low, high], 7)
    layout["annotations"] = _roof_names(view, x_low, x_high)
    layout["hovermode"] = "closest"
    drops = [_drop(view, side) for side in SIDES]
    return {"data": [_roof(view), *drops, *(_roof_mark(view, side) for side in SIDES)], "layout": layout}


def _reached(price: Price) -> tuple[float, float]:
    """Return where a chain stands: its arithmetic intensity, and FLOP over time."""
    return float(price.arithmetic_intensity), float(price.flops / price.time)


def _roof_span(view: View) -> tuple[float, float]:
    """Return the decades of intensity that show both chains and the ridge."""
    ridge = view.ridge
    shown = [one_side(view.point, side).arithmetic_intensity for side in SIDES]
    return decades([*shown, 10.0, *([] if math.isnan(ridge) else [ridge * 3])])


def _roof(view: View) -> Figure:
    intensities, rates = view.roof
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "roof",
        "x": intensities.tolist(),
        "y": rates.tolist(),
        "customdata": [units.format_quantity(float(rate), units.FLOP_RATE) for rate in rates],
        "hovertemplate": "roof at %{x:.3~g} FLOP/B: %{customdata}<extra></extra>",
        "line": {"color": palette.INK, "width": 2.5},
        "showlegend": False,
    }


def _drop(view: View, side: str) -> Figure:
    """Connect a chain with the roof; the textbook, in which arithmetic is free, knows the slope alone."""
    price = one_side(view.point, side)
    intensity, rate = _reached(price)
    ceiling = float(view.attainable(intensity) if view.calibrated else price.flops / price.memory_time)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [intensity, intensity],
        "y": [rate, ceiling],
        "line": {"color": COLOURS[side], "width": 2, "dash": "dot"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _roof_mark(view: View, side: str) -> Figure:
    intensity, rate = _reached(one_side(view.point, side))
    written = units.format_quantity(rate, units.FLOP_RATE)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": side,
        "x": [intensity],
        "y": [rate],
        "customdata": [written],
        "hovertemplate": f"{side} at %{{x:.3~g}} FLOP/B: %{{customdata}}<extra></extra>",
        "marker": {"color": COLOURS[side], "size": 14, "symbol": SYMBOLS[side], "line": {"width": 2, "color": "#fff"}},
    }


def _roof_names(view: View, low: float, high: float) -> list[Figure]:
    """Write the two ceilings beside their lines."""
    rate = units.format_quantity(view.bandwidth, units.BANDWIDTH)
    text = {"showarrow": False, "xref": "x", "yref": "y"}
    ridge = view.ridge
    middle = (low + high) / 2 if math.isnan(ridge) else math.log10(ridge) - max(0.3, 0.08 * (high - low))
    names = [
        text
        | {"text": f"memory {rate}", "x": middle, "y": middle + math.log10(view.bandwidth)}
        | {"xanchor": "right", "yanchor": "bottom"}
    ]
    if not math.isnan(view.peak):
        peak = units.format_quantity(view.peak, units.FLOP_RATE)
        names.append(
            text
            | {"text": f"{view.compute_type} {peak}", "x": high, "y": math.log10(view.peak)}
            | {"xanchor": "right", "yanchor": "bottom"}
        )
    return names
