"""From a request of a page to its answer; what a view shows is worked out once, and kept as the text that is sent.

An answer is a pure function of what is asked for, so that a class that looks at the same views costs little more than
one learner. What is kept is bounded, and no answer depends on whether it was kept.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from plotly.utils import PlotlyJSONEncoder  # type: ignore[import-untyped, unused-ignore]

from fusesim.errors import FusesimError

from . import ids
from .fields import sentence, stopped
from .typeset import typeset

if TYPE_CHECKING:
    from collections.abc import Callable

    from .fields import Asked, Form, Values

KEPT: Final = 600
"""Views of a page that one process keeps, of 5 to 25 kB each."""

STILL: Final = "still"
DRAGGED: Final = "dragged"
MORE: Final = "more"
"""How a view is asked for: at once, by a slider on its way, or, once the page stands still, for what takes longer."""

VERBATIM: Final = "verbatim"
"""Texts of a view in which nothing is set otherwise, since they are there to be copied: code and files."""

Shown = dict[str, Any]
"""What a view shows: `charts` by id, `texts` by the id of their place, `parts` of HTML, `verbatim` texts, what
`widgets` have to hold, what is `hidden`, and whether there is `more` to ask for; any of them may be missing."""


def as_text(shown: Shown) -> str:
    """Return what a view shows as the text that is sent.

    Examples
    --------
    >>> as_text({"texts": {"saving": "176.3 ms"}, "verbatim": {"call": "5 ms"}}).replace("\N{NO-BREAK SPACE}", "_")
    '{"texts":{"saving":"176.3_ms"},"verbatim":{"call":"5 ms"}}'
    """
    told = typeset(_json({name: held for name, held in shown.items() if name != VERBATIM}))
    return f'{told[:-1]},"{VERBATIM}":{_json(shown[VERBATIM])}}}' if VERBATIM in shown else told


def _json(value: Any) -> str:
    """Return JSON without spaces; Plotly's encoder writes what is no number as null."""
    return json.dumps(value, cls=PlotlyJSONEncoder, separators=(",", ":"))


class Answers:
    """What answers the requests of one page.

    Parameters
    ----------
    form : Form
        The page's settings.
    show : callable
        Returns what a view shows, from its settings and how it is asked for, or raises a `FusesimError`.
    blame : str
        The field whose alert speaks for settings that do not go together; the one that moved last unless given.

    Notes
    -----
    An address that cannot be shown gives the defaults and a note; a control whose value does not go with the others
    gives a sentence beside it, the settings of before, and no view, so that what is on screen stays.
    """

    def __init__(self, form: Form, show: Callable[[Values, str], Shown], blame: str = "") -> None:
        self.form, self.blame = form, blame

        @lru_cache(maxsize=KEPT)
        def view(held: tuple[tuple[str, Any], ...], pace: str) -> str:
            return as_text(show(dict(held), pace))

        self._view = view

    def __call__(self, request: Any) -> dict[str, Any]:
        """Answer a request, which is unchecked: anyone can send one.

        Returns
        -------
        dict
            The `query` of the settings, `alerts` by the id of their place, and the `view` as `as_text` writes it, or
            None where what is on screen has to stay.
        """
        asked = self.form.ask(request)
        values, problems, view = asked.values, dict(asked.problems), None
        if asked.usable:
            try:
                view = self._of(values, asked)
            except (FusesimError, ArithmeticError) as error:
                said = str(error) or "this cannot be worked out"
                if asked.fresh:
                    values = self.form.defaults
                    view = self._of(values, asked)
                    problems[ids.URL] = stopped(f"The address was not understood, so the defaults are shown: {said}")
                else:
                    problems[self._spoken_by(asked)] = sentence(said)
                    values = self.form.from_query(request.get("settings"))[0]
        return {
            "query": self.form.to_query(values),
            "alerts": {ids.problem(name): typeset(problems.get(name, "")) for name in (*self.form.fields, ids.URL)},
            "view": view,
        }

    def _of(self, values: Values, asked: Asked) -> str:
        """Return the view of settings."""
        return self._view(tuple(values.items()), MORE if asked.more else DRAGGED if asked.dragged else STILL)

    def _spoken_by(self, asked: Asked) -> str:
        """Return the field whose alert speaks for settings that do not go together."""
        return self.blame or (self.form.owner(asked.moved[-1]) if asked.moved else ids.URL)
