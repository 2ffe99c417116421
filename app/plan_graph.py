"""A plan drawn: one box per kernel in the order in which they run, the ops inside, and every edge, paid or saved.

SVG as text: colours come from the page's style sheet, and ops and edges are buttons that the page's script reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from . import readout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.why import EdgeUse

    from .plan_view import PlanView, Side

WIDE: Final = 104
TALL: Final = 28
ROW: Final = 46
GAP: Final = 18
PAD: Final = 14
LABEL: Final = 28
LANE: Final = 9
MOST_ACROSS: Final = 3
LONGEST: Final = 13
"""Letters of an op's name that fit."""


@dataclass(frozen=True, slots=True)
class _Box:
    """A kernel's box: its first row and how many, from the top of the drawing."""

    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Where ops and kernels stand."""

    ops: dict[str, tuple[float, float]]
    boxes: list[_Box]
    left: float
    width: float
    height: float


def drawing(view: PlanView) -> str:
    """Return the fused side's plan as SVG."""
    plan = view.fused.plan
    edges = _between(view.edges)
    at = _place(view.fused, edges)
    chosen = set(view.values["ask"])
    boxes = "".join(_box(view.fused, place, box, at) for place, box in enumerate(at.boxes))
    lines = "".join(_line(pair, uses, at, pair[0] in chosen and pair[1] in chosen) for pair, uses in edges.items())
    stubs = "".join(_stubs(view.edges, at))
    kinds = {name: plan.graph.by_name[name].kind for name in at.ops}
    ops = "".join(_op(name, kinds[name], where, chosen=name in chosen) for name, where in at.ops.items())
    label = f"{len(plan.groups)} kernels, {len(at.ops)} ops; ops and edges can be picked"
    return (
        f'<svg class="plan" viewBox="0 0 {at.width:.0f} {at.height:.0f}" width="{at.width:.0f}" '
        f'height="{at.height:.0f}" role="group" aria-label="{label}">{boxes}{stubs}{lines}{ops}</svg>'
    )


def _between(edges: Iterable[EdgeUse]) -> dict[tuple[str, str], list[EdgeUse]]:
    """Return edges between ops, those between the same two together."""
    found: dict[tuple[str, str], list[EdgeUse]] = {}
    for use in edges:
        if use.producer is not None and use.consumer is not None:
            found.setdefault((use.producer, use.consumer), []).append(use)
    return found


def _place(side: Side, edges: dict[tuple[str, str], list[EdgeUse]]) -> _Drawn:
    """Place kernels below one another, and inside each its ops by how many steps they come after its first ones."""
    long = sum(1 for pair in edges if not _inside(side, pair))
    left = PAD + LANE * min(long, 6) + 6
    ops: dict[str, tuple[float, float]] = {}
    boxes, y, widest = [], float(PAD), 1
    for group in side.plan.groups:
        rows = _rows(group.nodes, edges)
        top = y
        y += LABEL
        for row in rows:
            for place, name in enumerate(row):
                ops[name] = (left + PAD + place * (WIDE + GAP), y)
            y += ROW
        widest = max(widest, *map(len, rows))
        y -= ROW - TALL - 10
        boxes.append(_Box(top, y))
        y += GAP
    width = max(left + 2 * PAD + widest * (WIDE + GAP) - GAP, left + 300) + PAD
    return _Drawn(ops, boxes, left, width, y)


def _inside(side: Side, pair: tuple[str, str]) -> bool:
    groups = side.plan.group_of
    return groups.get(pair[0]) == groups.get(pair[1])


def _rows(names: tuple[str, ...], edges: dict[tuple[str, str], list[EdgeUse]]) -> list[list[str]]:
    """Return a kernel's ops in rows: each below all that it reads; a row that is too long goes on in the next."""
    depth: dict[str, int] = {}
    own = set(names)
    for name in names:
        before = [depth[one] for one, other in edges if other == name and one in own and one in depth]
        depth[name] = max(before, default=-1) + 1
    rows: list[list[str]] = []
    for level in range(max(depth.values()) + 1):
        row = [name for name in names if depth[name] == level]
        rows += [row[start : start + MOST_ACROSS] for start in range(0, len(row), MOST_ACROSS)]
    return rows


def _box(side: Side, place: int, box: _Box, at: _Drawn) -> str:
    """Draw a kernel: its number, its time and what binds it."""
    spans = [span for span in side.spans if span.group == place]
    time = sum(span.end - span.start for span in spans)
    longest = max(spans, key=lambda span: span.end - span.start, default=None)
    bound = f", by {readout.BINDS[longest.bound]}" if longest else ""
    fused = len(side.plan.groups[place].nodes) > 1
    said = f"kernel {place + 1}: {readout.time(time)}{bound}" if spans else f"kernel {place + 1}: no launch"
    size = f'width="{at.width - at.left - PAD:.0f}" height="{box.bottom - box.top:.0f}"'
    return (
        f'<rect class="box {"fused" if fused else "alone"}" x="{at.left:.0f}" y="{box.top:.0f}" {size} rx="8"/>'
        f'<text class="told" x="{at.width - 2 * PAD:.0f}" y="{box.top + 18:.0f}">{escape(said)}</text>'
    )


def _op(name: str, kind: str, where: tuple[float, float], *, chosen: bool) -> str:
    x, y = where
    short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
    pressed = "true" if chosen else "false"
    return (
        f'<g class="op{" chosen" if chosen else ""}" id="op-{escape(name)}" role="button" tabindex="0" '
        f'aria-pressed="{pressed}" aria-label="{escape(name)}" data-change="pick" data-value="{escape(name)}">'
        f"<title>{escape(name)}: {escape(kind)}</title>"
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDE}" height="{TALL}" rx="6"/>'
        f'<text x="{x + WIDE / 2:.0f}" y="{y + 18.5:.1f}">{escape(short)}</text></g>'
    )


def _line(pair: tuple[str, str], uses: list[EdgeUse], at: _Drawn, chosen: bool) -> str:  # noqa: FBT001 - drawn or not
    """Draw an edge: thick where bytes pass through memory, thin where they stay on the chip."""
    if any(name not in at.ops for name in pair):
        return ""
    state = max((use.state for use in uses), key=("saved", "re-read", "paid").index)
    moved = sum({use.tensor: use.bytes for use in uses}.values())
    path = _path(at.ops[pair[0]], at.ops[pair[1]])
    said = f"{pair[0]} to {pair[1]}, {readout.size(moved)}, {state}"
    sent = f'data-change="edge" data-value="{escape(pair[0])}~{escape(pair[1])}"'
    return (
        f'<g class="edge {state}{" chosen" if chosen else ""}" role="button" tabindex="0" aria-label="{escape(said)}" '
        f'id="edge-{escape(pair[0])}-{escape(pair[1])}" {sent}><title>{escape(said)}</title>'
        f'<path class="wide" d="{path}"/><path class="line" d="{path}"/></g>'
    )


def _path(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return an edge's way: straight down to the next row, else through a lane at the left."""
    x1, y1, x2, y2 = start[0] + WIDE / 2, start[1] + TALL, end[0] + WIDE / 2, end[1]
    if y2 - y1 <= ROW + LABEL + GAP and y2 > y1:
        middle = (y1 + y2) / 2
        return f"M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2:.0f}"
    lane = PAD + LANE * (int(y1 / ROW) % 6)
    x1, x2 = start[0] + 8, end[0] + 8
    return (
        f"M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + 12:.0f} {lane:.0f} {y1 + 4:.0f} {lane:.0f} {y1 + 20:.0f}"
        f"L{lane:.0f} {y2 - 20:.0f}C{lane:.0f} {y2 - 4:.0f} {x2:.0f} {y2 - 14:.0f} {x2:.0f} {y2:.0f}"
    )


def _stubs(edges: Iterable[EdgeUse], at: _Drawn) -> Iterable[str]:
    """Draw what comes from the graph's inputs and goes to its outputs as short marks above and below ops."""
    count: dict[str, int] = {}
    for use in edges:
        op = use.consumer if use.producer is None else use.producer if use.consumer is None else None
        if op is None or op not in at.ops or use.state == "saved":
            continue
        x, y = at.ops[op]
        place = count[op] = count.get(op, 0) + 1
        reads = use.producer is None
        x += WIDE - 6 - 9 * place
        y1, y2 = (y - 9, y) if reads else (y + TALL, y + TALL + 9)
        said = f"{op} {'reads' if reads else 'writes'} {use.tensor}, {readout.size(use.bytes)}"
        yield (
            f'<g class="stub {use.state}"><title>{escape(said)}</title>'
            f'<path class="line" d="M{x:.0f} {y1:.0f}V{y2:.0f}"/></g>'
        )
