"""Names of everything on a page that is wired to something else. A control's id is also the name of its change."""

from __future__ import annotations

from typing import Final

OPS: Final = "ops"
SIZE: Final = "size"
ELEMENTS: Final = "elements"
DTYPE: Final = "dtype"
DEVICE: Final = "device"
LAUNCH: Final = "launch"
OVERHEAD: Final = "launch-overhead"
RATE: Final = "rate"
BANDWIDTH: Final = "bandwidth"
WIDGETS: Final = (OPS, SIZE, ELEMENTS, DEVICE, DTYPE, LAUNCH, OVERHEAD, RATE, BANDWIDTH)
"""Controls that hold a value, in the order of the page."""

PRESET: Final = "preset"
FOLLOW: Final = "follow"
RESET: Final = "reset"
URL: Final = "url"

REQUEST: Final = "request"
ANSWER: Final = "answer"

TIME_CHART: Final = "time-chart"
BYTES_CHART: Final = "bytes-chart"
ROOFLINE_CHART: Final = "roofline-chart"
CHARTS: Final = (TIME_CHART, BYTES_CHART, ROOFLINE_CHART)

UNFUSED_TIME: Final = "unfused-time"
UNFUSED_KERNELS: Final = "unfused-kernels"
UNFUSED_SHARE: Final = "unfused-share"
UNFUSED_BYTES: Final = "unfused-bytes"
FUSED_TIME: Final = "fused-time"
FUSED_KERNELS: Final = "fused-kernels"
FUSED_SHARE: Final = "fused-share"
FUSED_BYTES: Final = "fused-bytes"
SPEEDUP: Final = "speedup"
SAVING: Final = "saving"
SENTENCE: Final = "sentence"
REASONS: Final = "reasons"

PROBLEMS: Final = (OPS, SIZE, DEVICE, DTYPE, LAUNCH, OVERHEAD, RATE, URL)
"""Places where a sentence about bad input can appear: one for each group of controls, and one for the address."""


def reading(control: str) -> str:
    """Return the id of the text that says what a slider stands at."""
    return f"{control}-reading"


def problem(control: str) -> str:
    """Return the id of the alert beside a control."""
    return f"{control}-problem"


def label(control: str) -> str:
    """Return the id of a control's label."""
    return f"{control}-label"
