"""Guided lessons: short steps that set the controls and ask for a prediction before they show the answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from .lesson import GLOSSARY

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a lesson.

    `query` is the view that the step is about, `ask` a question about it with its `options`, `right` the place of the
    right one, and `answer` what is shown after a guess. Words between backticks are code, between brackets terms.
    """

    title: str
    text: str
    query: str
    ask: str
    options: tuple[str, ...]
    right: int
    answer: str


def guide(steps: Sequence[Step]) -> str:
    """Return a lesson as HTML; without a script all of it is in sight."""
    inside = "".join(_step(step, place, len(steps)) for place, step in enumerate(steps, start=1))
    return (
        '<details class="card guide"><summary><span class="label">Guided lesson</span> '
        f'<span class="reading">{len(steps)} steps: predict, then look</span></summary>'
        f"<ol>{inside}</ol></details>"
    )


def _step(step: Step, place: int, count: int) -> str:
    options = "".join(
        f'<button type="button" class="quiet" data-guess="{"right" if each == step.right else "wrong"}">'
        f"{escape(option)}</button>"
        for each, option in enumerate(step.options)
    )
    before = '<button type="button" class="quiet" data-step="-1">Back</button>' if place > 1 else ""
    after = '<button type="button" class="quiet" data-step="1">Next step</button>' if place < count else ""
    return (
        f'<li class="step" data-query="{escape(step.query)}"><h2>{place} of {count}: {escape(step.title)}</h2>'
        f"<p>{rich(step.text)}</p>"
        f'<p><a href="{escape(step.query)}" class="quiet set">Set the controls</a></p>'
        f'<p class="ask">{rich(step.ask)}</p><div class="presets guesses" role="group" '
        f'aria-label="Your prediction">{options}</div>'
        f'<div class="answer" aria-live="polite"><p class="told-answer"><strong class="verdict"></strong> '
        f'{rich(step.answer)}</p></div><div class="turn">{before}{after}</div></li>'
    )


def rich(text: str) -> str:
    """Escape a text; words between backticks become code, terms between brackets say what they mean on hover.

    Examples
    --------
    >>> rich("a `b` < c")
    'a <code>b</code> &lt; c'
    >>> "tooltip" in rich("left of the [ridge point]"), rich("no [such] term")
    (True, 'no [such] term')
    """
    parts = (f"<code>{escape(part)}</code>" if odd % 2 else escape(part) for odd, part in enumerate(text.split("`")))
    return re.sub(r"\[([A-Za-z0-9 %-]+)\]", lambda found: term(found[1], found[0]), "".join(parts))


def term(name: str, otherwise: str = "") -> str:
    """Return a word of the glossary that says what it means on hover and on focus; another text where it is none."""
    meaning = next((meaning for word, meaning in GLOSSARY if word.lower() == name.lower()), None)
    if meaning is None:
        return otherwise or escape(name)
    tip = f'<span class="tip" role="tooltip">{escape(meaning)}</span>'
    return f'<span class="term" tabindex="0">{escape(name)}{tip}</span>'


def glossary(words: Sequence[str]) -> str:
    """Return the words of a page with their meaning, as a list."""
    known = dict(GLOSSARY)
    entries = "".join(f"<dt>{escape(word)}</dt><dd>{escape(known[word])}</dd>" for word in words)
    return f'<section><h2>Terms</h2><dl class="glossary">{entries}</dl></section>'
