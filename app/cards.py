"""The places for the figures to read off, as plain HTML; each answer writes its texts into them."""

from __future__ import annotations

from . import ids


def cards() -> str:
    """Return the cards, and the sentence that says the whole view.

    Examples
    --------
    >>> 'id="speedup"' in cards()
    True
    """
    unfused = _fact("moved", ids.UNFUSED_BYTES) + _fact("launch share", ids.UNFUSED_SHARE)
    fused = _fact("moved", ids.FUSED_BYTES) + _fact("launch share", ids.FUSED_SHARE)
    gain = _fact("time saved", ids.SAVING)
    return (
        '<section class="figures"><h2 class="unseen">What it costs</h2><div class="cards">'
        f"{_card('unfused', _counted('Unfused', ids.UNFUSED_KERNELS), ids.UNFUSED_TIME, unfused)}"
        f"{_card('fused', _counted('Fused', ids.FUSED_KERNELS), ids.FUSED_TIME, fused)}"
        f"{_card('gain', 'Speedup', ids.SPEEDUP, gain)}"
        f'</div><p id="{ids.SENTENCE}" class="sentence" aria-live="polite"></p></section>'
    )


def _card(kind: str, title: str, place: str, facts: str) -> str:
    return f'<div class="card figure {kind}"><h3>{title}</h3><p id="{place}" class="big"></p><dl>{facts}</dl></div>'


def _counted(title: str, place: str) -> str:
    return f'{title}<span id="{place}" class="count"></span>'


def _fact(name: str, place: str) -> str:
    return f'<div><dt>{name}</dt><dd id="{place}"></dd></div>'
