"""The lesson as plain HTML; it also reads without JavaScript."""

from __future__ import annotations

from html import escape

from . import lesson, real


def article() -> str:
    """Return the lesson as an HTML article.

    Examples
    --------
    >>> article().startswith('<article class="lesson">')
    True
    """
    parts = [
        '<h2 id="lesson">The lesson</h2>',
        f'<div class="columns">{"".join(_section(section) for section in lesson.SECTIONS)}</div>',
        _real(),
        (
            f"<section><h3>{escape(lesson.TERMS_TITLE)}</h3><p>{escape(lesson.TERMS_LEAD)}</p>{_terms()}"
            f"<p>{escape(lesson.TERMS_NOTE)}</p></section>"
        ),
        f'<div class="columns">{_tries()}{_glossary()}</div>',
    ]
    return f'<article class="lesson">{"".join(parts)}</article>'


def _section(section: lesson.Section) -> str:
    paragraphs = "".join(f"<p>{inline(text)}</p>" for text in section.paragraphs)
    points = "".join(f"<li>{inline(point)}</li>" for point in section.points)
    return (
        f'<section><h3 id="{section.anchor}">{inline(section.title)}</h3>{paragraphs}'
        f"{f'<ul>{points}</ul>' if points else ''}</section>"
    )


def _terms() -> str:
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Term", "What it is", *lesson.TERMS_ASK))
    rows = "".join(_term(term) for term in lesson.TERMS)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _term(term: lesson.Term) -> str:
    answers = zip(lesson.TERMS_ASK, (term.bytes_saved, term.launches_saved), strict=True)
    cells = "".join(f'<td data-label="{escape(question)}">{escape(answer)}</td>' for question, answer in answers)
    return f'<tr><th scope="row">{escape(term.name)}</th><td>{escape(term.meaning)}</td>{cells}</tr>'


def _real() -> str:
    """Set the effects as a table, and what follows from them."""
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in ("Step", "On an H200", *real.HEADINGS))
    body = "".join(
        f'<tr><th scope="row">{escape(row.name)}</th><td>{escape(row.text)}</td>'
        + "".join(
            f'<td class="times" data-label="{escape(head)}:">{escape(times)}</td>'
            for head, times in zip(real.HEADINGS, row.times, strict=True)
        )
        + "</tr>"
        for row in real.rows()
    )
    table = f'<table class="steps"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    follows = "".join(_section(section) for section in real.sections())
    lead = f'<h3 id="{real.ANCHOR}">{escape(real.TITLE)}</h3><p>{escape(real.LEAD)}</p>'
    return f'<section>{lead}{table}</section><div class="columns">{follows}</div>'


def _tries() -> str:
    links = "".join(f'<li><a href="{escape(query)}">{escape(text)}</a></li>' for text, query in lesson.TRIES)
    return f"<section><h3>Try it</h3><p>{escape(lesson.TRY_LEAD)}</p><ul>{links}</ul></section>"


def _glossary() -> str:
    entries = "".join(
        f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in lesson.GLOSSARY[: lesson.CHAIN_TERMS]
    )
    return f'<section><h3>Terms</h3><dl class="glossary">{entries}</dl></section>'


def inline(text: str) -> str:
    """Escape a text, and set words between backticks as code.

    Examples
    --------
    >>> inline("a `b` < c")
    'a <code>b</code> &lt; c'
    """
    parts = (f"<code>{escape(part)}</code>" if odd % 2 else escape(part) for odd, part in enumerate(text.split("`")))
    return "".join(parts)
