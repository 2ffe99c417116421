"""How figures are set on a page: figures and their units stay in one line, and a microsecond has its sign."""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = "\N{NO-BREAK SPACE}"
_MICRO: Final = re.compile(r"(?<=\d) us\b")
_UNIT: Final = re.compile(r"<[^<>]*>|(?<=\d) (?=\d{3}(?!\d)|(?:[kMGTPE]?i?B|[mnk]?s|[kMGTPE]?FLOP|%)(?![A-Za-z]))")
"""A space that belongs to a figure, or a tag: the numbers of a drawing stay as they are."""


def typeset(text: str) -> str:
    r"""Return a text, plain, HTML or JSON, with its figures as a page sets them.

    Examples
    --------
    >>> typeset("1 024 values in 2.5 us").replace("\N{NO-BREAK SPACE}", "_")
    '1_024 values in 2.5_\xb5s'
    >>> typeset('<path d="M10 200">3.35 TB/s, 9 % of 20 bananas').replace("\N{NO-BREAK SPACE}", "_")
    '<path d="M10 200">3.35_TB/s, 9_% of 20 bananas'
    """
    text = _MICRO.sub(f"{_SPACE}\N{MICRO SIGN}s", text)
    return _UNIT.sub(lambda found: found[0] if found[0] != " " else _SPACE, text)
