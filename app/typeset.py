"""How figures are set on a page: figures and their units stay in one line, and a microsecond has its sign."""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = "\N{NO-BREAK SPACE}"
_MICRO: Final = re.compile(r" us(?<=\d us)\b")
_UNIT: Final = re.compile(r" (?<=\d )(?=\d{3}(?!\d)|(?:[kMGTPE]?i?B|[mnk]?s|%)(?![A-Za-z]))(?![^<>]{0,400}>)")
"""A space inside a figure, but for the numbers of a drawing, which stand inside a tag."""


def typeset(text: str) -> str:
    r"""Return a text, plain, HTML or JSON, with its figures as a page sets them.

    Examples
    --------
    >>> typeset("1 024 values in 2.5 us").replace("\N{NO-BREAK SPACE}", "_")
    '1_024 values in 2.5_\xb5s'
    >>> typeset('<path d="M10 200">3.35 TB/s, 9 % of 20 bananas').replace("\N{NO-BREAK SPACE}", "_")
    '<path d="M10 200">3.35_TB/s, 9_% of 20 bananas'
    """
    return _UNIT.sub(_SPACE, _MICRO.sub(f"{_SPACE}\N{MICRO SIGN}s", text))
