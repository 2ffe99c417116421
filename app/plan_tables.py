"""Tables and lists of the page of patterns and plans, as HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from fusesim import units
from fusesim.strategies import STRATEGIES

from . import readout
from .forms import button
from .plan_form import EDITS, STRATEGY, TOGGLE
from .plan_words import asked, signed
from .tables import Cell, table

if TYPE_CHECKING:
    from .plan_view import PlanView, Row

STRATEGIES_TABLE: Final = "strategies-table"
EDGES_TABLE: Final = "edges-table"
SOURCE: Final = "source-code"
ASKED: Final = "asked"
EDGES_NOTE: Final = "edges-note"
MOST_EDGES: Final = 40

_HEADS: Final = ("Who fuses", "What it does", "Kernels", "Time", "90 % range", "Speedup", "Moved", "Peak memory")


def strategies(view: PlanView) -> str:
    """Return the strategies side by side; a click on a name chooses it."""
    return table(_HEADS, [_strategy(view, row) for row in view.rows])


def _strategy(view: PlanView, row: Row) -> list[Cell | str]:
    name = Cell(text=row.name, html=button(row.name, STRATEGY, row.name), mark=row.name == view.values[STRATEGY])
    meaning = Cell(text=STRATEGIES[row.name], look="words")
    if row.price is None:
        return [name, Cell(text=row.problem, look="words"), *([Cell(text="")] * 6)]
    price, number = row.price, "number"
    low, high = (float(end) for end in price.interval)
    speedup = float(view.unfused.price.time) / float(price.time)
    return [
        name,
        meaning,
        Cell(text=f"{float(price.kernels):.0f}", look=number),
        Cell(text=readout.time(price.time), look=number, exact=float(price.time)),
        Cell(text="" if low == high else readout.between((low, high)), look=number),
        Cell(text=units.format_ratio(speedup), look=number, exact=speedup),
        Cell(text=readout.size(price.bytes_moved), look=number, exact=float(price.bytes_moved)),
        Cell(text=readout.size(row.peak), look=number, exact=float(row.peak)),
    ]


def edges(view: PlanView) -> str:
    """Return every edge with its bytes and whether the fused plan pays for them, the largest first."""
    ordered = sorted(view.edges, key=lambda use: -use.bytes)[:MOST_EDGES]
    rows = [
        [
            Cell(text=use.tensor),
            Cell(text=use.producer or "input"),
            Cell(text=use.consumer or "output"),
            Cell(text=readout.size(use.bytes), look="number", exact=float(use.bytes)),
            Cell(text=use.state, look=f"state {use.state}"),
        ]
        for use in ordered
    ]
    return table(("Tensor", "From", "To", "Bytes", "Fused plan"), rows, empty="The graph has no edges.")


def question(view: PlanView) -> str:
    """Return the answer about the picked ops, and what can be done with the edge between them."""
    told = asked(view)
    if not told:
        return '<p class="empty">Pick an edge, or two ops, to ask why they share a kernel or why not.</p>'
    lines = "".join(f"<p>{escape(line)}</p>" for line in told)
    return f'{lines}<div class="presets">{_deeds(view)}</div>'


def _deeds(view: PlanView) -> str:
    """Return the buttons that pay or save the picked edge, and that take changes back."""
    made = []
    picked, groups = view.values["ask"], view.fused.plan.group_of
    if len(picked) == 2 and all(name in groups for name in picked):  # noqa: PLR2004 - two ops
        together = groups[picked[0]] == groups[picked[1]]
        pair = "~".join(sorted(picked, key=list(groups).index))
        made.append(
            button("Pay this edge: cut the kernel here" if together else "Save this edge: one kernel", TOGGLE, pair)
        )
    if view.values[EDITS]:
        made.append(button("Take all changes back", TOGGLE, ""))
    if picked:
        made.append(button("Pick nothing", "ask", ""))
    return "".join(made)


def source(view: PlanView) -> str:
    """Return the source of the largest kernel that there is source for."""
    found = view.source
    if found is None:
        return '<p class="empty">Every kernel here is one op alone: there is no fused source to read.</p>'
    if found.problem:
        return f'<p class="empty">No source is written for this plan: {escape(found.problem)}.</p>'
    names = ", ".join(view.fused.plan.groups[found.group].nodes)
    return (
        f"<p>Kernel {found.group + 1}: {escape(names)}. What is stored to a tensor and loaded again between two ops "
        f"of the unfused program is a variable here.{_other_kernel(view, found.group)}</p>"
        f'<details open><summary>CUDA C++</summary><pre tabindex="0"><code>{escape(found.cuda)}</code></pre></details>'
        f'<details><summary>Triton</summary><pre tabindex="0"><code>{escape(found.triton)}</code></pre></details>'
    )


def _other_kernel(view: PlanView, group: int) -> str:
    """Say that the source is another kernel than the priced one, where that one alone reads values again."""
    again, path = view.fused.again(group), view.fused.path
    if not again or path != "inductor":
        return ""
    return (
        f" The kernel that is priced is another one, that which Inductor generates: it reads {readout.size(again)} "
        "again, within the kernel and mostly from the cache. This source says itself how often it reads a row."
    )


def saved(view: PlanView) -> str:
    """Return what a table's caption says of the edges."""
    paid = sum(use.bytes for use in view.edges if use.state != "saved")
    kept = sum(use.bytes for use in view.edges if use.state == "saved")
    told = f"{readout.size(paid)} paid, {readout.size(kept)} saved; fusing saves {signed(view.saving)} per call."
    again = view.fused.again()
    # A saved edge makes no tensor in memory, but the kernel may fetch what it has read once more.
    return f"{told} On top, kernels read {readout.size(again)} again within themselves." if again else told
