"""Names of everything on a page that is wired to something else. A control's id is also the name of its change."""

from __future__ import annotations

from typing import Final

KIND: Final = "kind"
OPS: Final = "ops"
NAMES: Final = "names"
ROW: Final = "row"
SIZE: Final = "size"
ELEMENTS: Final = "elements"
DTYPE: Final = "dtype"
DEVICE: Final = "device"
LAUNCH: Final = "launch"
REPEATS: Final = "repeats"
INPUTS: Final = "inputs"
PATH: Final = "path"
HOST: Final = "host-interval"
OVERHEAD: Final = "launch-overhead"
RATE: Final = "rate"
BANDWIDTH: Final = "bandwidth"
STEP: Final = "step"
WIDGETS: Final = (
    *(STEP, KIND, OPS, NAMES, ROW, SIZE, ELEMENTS, DEVICE, DTYPE, LAUNCH),
    *(REPEATS, INPUTS, PATH, HOST, OVERHEAD, RATE, BANDWIDTH),
)
"""Controls that hold a value, in the order of the page."""

PRESET: Final = "preset"
CHAIN: Final = "chain"
EDIT: Final = "edit"
MODEL: Final = "model"
FOLLOW: Final = "follow"
RESET: Final = "reset"
URL: Final = "url"
MORE: Final = "more"
"""Changes that buttons and addresses make; `more` asks, once the page stands still, for what takes longer."""

REMOVE: Final = "-"
CLEAR: Final = ""
"""Edits of a chain besides the op that is to be appended."""

REQUEST: Final = "request"
ANSWER: Final = "answer"

TIME_CHART: Final = "time-chart"
BYTES_CHART: Final = "bytes-chart"
ROOFLINE_CHART: Final = "roofline-chart"

UNFUSED_TIME: Final = "unfused-time"
UNFUSED_RANGE: Final = "unfused-range"
UNFUSED_KERNELS: Final = "unfused-kernels"
UNFUSED_SHARE: Final = "unfused-share"
UNFUSED_BYTES: Final = "unfused-bytes"
FUSED_TIME: Final = "fused-time"
FUSED_RANGE: Final = "fused-range"
FUSED_KERNELS: Final = "fused-kernels"
FUSED_SHARE: Final = "fused-share"
FUSED_BYTES: Final = "fused-bytes"
SPEEDUP: Final = "speedup"
SAVING: Final = "saving"
SAVING_RANGE: Final = "saving-range"
SENTENCE: Final = "sentence"
REASONS: Final = "reasons"
MEANING: Final = "meaning"
FINDING: Final = "finding"
SOURCE: Final = "source"
MEASURED: Final = "measured"
ROOF_GAP: Final = "roof-gap"
ABOVE_ROOF: Final = "above-roof"

PROBLEMS: Final = (KIND, ROW, SIZE, DEVICE, DTYPE, LAUNCH, REPEATS, INPUTS, PATH, HOST, OVERHEAD, RATE, STEP, URL)
"""Places where a sentence about bad input can appear: one for each group of controls, and one for the address."""


CALL: Final = "call"
"""The library call that makes the view."""

SUMS: Final = "sums"
"""How the figures of the view were worked out."""


def reading(control: str) -> str:
    """Return the id of the text that says what a slider stands at."""
    return f"{control}-reading"


def problem(control: str) -> str:
    """Return the id of the alert beside a control."""
    return f"{control}-problem"


def label(control: str) -> str:
    """Return the id of a control's label."""
    return f"{control}-label"


def group(control: str) -> str:
    """Return the id of what is hidden while a control has no meaning."""
    return f"{control}-group"


def follow(control: str) -> str:
    """Return the id of the button that lets a control follow again."""
    return f"{control}-follow"
