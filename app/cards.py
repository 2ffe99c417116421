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
    times = (_big(ids.UNFUSED_TIME, ids.UNFUSED_RANGE), _big(ids.FUSED_TIME, ids.FUSED_RANGE), _big(ids.SPEEDUP))
    return (
        '<section class="figures"><h2 class="unseen">What it costs</h2><div class="cards">'
        f"{_card('unfused', _counted('Unfused', ids.UNFUSED_KERNELS), times[0], unfused)}"
        f"{_card('fused', _counted('Fused', ids.FUSED_KERNELS), times[1], fused)}"
        f"{_card('gain', 'Speedup', times[2], gain, _range(ids.SAVING_RANGE))}"
        f'</div><p id="{ids.SENTENCE}" class="sentence" aria-live="polite"></p></section>'
    )


def _card(kind: str, title: str, big: str, facts: str, after: str = "") -> str:
    return f'<div class="card figure {kind}"><h3>{title}</h3>{big}<dl>{facts}</dl>{after}</div>'


def _big(place: str, interval: str = "") -> str:
    """Return the place of a figure, and below it the one of its interval where it has one."""
    return f'<p id="{place}" class="big"></p>{_range(interval) if interval else ""}'


def _range(place: str) -> str:
    return f'<p id="{place}" class="range" title="90 % interval"></p>'


def _counted(title: str, place: str) -> str:
    return f'{title}<span id="{place}" class="count"></span>'


def _fact(name: str, place: str) -> str:
    return f'<div><dt>{name}</dt><dd id="{place}"></dd></div>'
