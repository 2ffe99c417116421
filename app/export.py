"""The lesson's two charts as one HTML file that needs no network: for `fusesim chain --plot out.html`."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from . import figures, palette, readout, time_figure
from .html_parts import drawn
from .view import look_at

if TYPE_CHECKING:
    from .view import View

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{palette}
body {{ margin: 0 auto; max-width: 80rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 16px/1.6 var(--font); }}
.charts {{ display: grid; grid-template-columns: minmax(0, 7fr) minmax(0, 4fr); gap: 1rem; }}
.charts > div {{ height: 28rem; background: var(--card); border-radius: 10px; padding: .75rem; contain: strict; }}
@media (max-width: 50rem) {{ .charts {{ grid-template-columns: minmax(0, 1fr); }} }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{sentence}</p>
<div class="charts">
<div>{time}</div>
<div>{bytes}</div>
</div>
</body>
</html>
"""


def chain_html(ops: int | str | list[str], elements: int, **terms: Any) -> str:
    """Draw a chain's time against tensor size, and the bytes it moves.

    Parameters
    ----------
    ops : int, str or list of str
        As `fusesim.price_chain` takes them, for one chain.
    elements : int
        The size that is marked.
    **terms
        Further arguments of `fusesim.price_chain`.

    Returns
    -------
    str
        A whole HTML document with Plotly inside, about 5 MB; it asks nothing of any host.

    Raises
    ------
    InputError
        If `fusesim.price_chain` refuses an argument.

    Examples
    --------
    >>> "220.3 us as 5 kernels" in chain_html(5, 8192 * 4096)
    True
    """
    view = look_at(ops, elements, **terms)
    return _PAGE.format(
        title=html.escape(f"A chain of {_chain(view)} on {view.point.device.name}"),
        palette=palette.style_sheet(),
        sentence=html.escape(readout.sentence(view)),
        time=drawn(time_figure.time_chart(view), library=True),
        bytes=drawn(figures.bytes_chart(view), library=False),
    )


def _chain(view: View) -> str:
    """Say how long the chain is."""
    count = int(view.point.unfused.kernels)
    return "1 operation" if count == 1 else f"{count} operations"
