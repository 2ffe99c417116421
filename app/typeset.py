"""How text is set on a page: figures and their units in one line, microseconds with their sign, sentences begun."""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = "\N{NO-BREAK SPACE}"
_MICRO: Final = re.compile(r" us(?<=\d us)\b")
_UNIT: Final = re.compile(r" (?<=\d )(?=\d{3}(?!\d)|(?:[kMGTPE]?i?B|[mnk]?s|%)(?![A-Za-z]))(?![^<>]{0,400}>)")
"""A space inside a figure, but for the numbers of a drawing, which stand inside a tag."""
_CODE: Final = re.compile(r"[\w-]*[\w](?:_|[.](?=\w)|-?\d)")
"""A first word that is a name in code, of a file or of a device: such as mul_1, sm.blocks, a.json or h200-sxm."""


def begun(text: str) -> str:
    """Begin a text like a sentence; a name in code stays as it is written.

    Examples
    --------
    >>> begun("fusing saves"), begun("sm.fp64_per_clock: no unit"), begun("mul_1 is")
    ('Fusing saves', 'sm.fp64_per_clock: no unit', 'mul_1 is')
    """
    return text if _CODE.match(text) else f"{text[:1].upper()}{text[1:]}"


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
