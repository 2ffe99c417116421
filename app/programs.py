"""The charts, tables and words of the page of one's own program."""

from __future__ import annotations

import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from flask import Response, jsonify, request

from fusesim import units
from fusesim.errors import FusesimError

from . import ids, palette, readout
from .answering import Shown, as_text
from .fields import sentence, stopped
from .figures import COLOURS, Figure, axis, decades, frame
from .page import items
from .plan_form import STRATEGY
from .program_view import FILE, ONNX, SAMPLE, SAMPLES, SIZES, look, program_of, written
from .tables import Cell, table
from .uploads import MAX_UPLOAD, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flask import Flask

    from fusesim.frontends.trace import Trace
    from fusesim.ranked import Fusion

    from .catalogue import Catalogue
    from .fields import Form, Values
    from .program_view import Bar, ProgramView

PATH: Final = "/program/"
TIMELINE: Final = "program-timeline"
ACHIEVED: Final = "achieved-chart"
RANKING: Final = "ranking-table"
LOSING: Final = "losing-table"
REACHED: Final = "achieved-table"
SAID: Final = "program-said"
NAME: Final = "program-name"
MEASURED: Final = "measured-time"
REMAINS: Final = "remains"
MOST_BARS: Final = 300
MOST_ROWS: Final = 60
AT_ONCE: Final = 2
"""Files that one process reads at the same time; the others wait for a moment."""

PATIENCE: Final = 10.0
"""How long a file waits for its turn. [s]"""

CHOOSE: Final = "Choose a file above: it is read in memory and forgotten once the answer is sent."


def show(values: Values, _: str, *, catalogue: Catalogue, traces: dict[str, Trace]) -> Shown:
    """Return what the page shows of one of the samples; a file of one's own is answered where it is handed in."""
    name = values[SAMPLE]
    held: Shown = {
        "widgets": values | {SIZES: written(values[SIZES])},
        "hidden": [] if name == FILE and ONNX else [ids.group(SIZES)],
    }
    if name == FILE:
        return held | {"texts": {NAME: CHOOSE}}
    return held | shown(look(traces[name], SAMPLES[name], values, catalogue), values)


def shown(view: ProgramView, values: Values) -> Shown:
    """Return what a program's view shows."""
    return {
        "charts": {TIMELINE: timeline(view), ACHIEVED: achieved(view)},
        "texts": texts(view, values),
        "verbatim": {ids.CALL: call(view, values)},
        "parts": {
            RANKING: ranking(view),
            LOSING: losing(view),
            REACHED: reached(view),
            SAID: items([sentence(line) for line in (*view.report.explain(), *view.report.notes)]),
            ids.SUMS: items(sums(view)),
        },
    }


def route(server: Flask, catalogue: Catalogue, form: Form) -> None:
    """Add the address at which a file is handed in: the body is the file, the query its name and the settings."""
    turns = threading.BoundedSemaphore(AT_ONCE)

    @server.post(f"{PATH}read")
    def read() -> tuple[Response, int]:
        request.max_content_length = MAX_UPLOAD
        body = request.get_data(cache=False)
        if not turns.acquire(timeout=PATIENCE):
            return jsonify(
                problem="Others are reading files just now; try again in a moment."
            ), HTTPStatus.SERVICE_UNAVAILABLE
        try:
            text = handed_in(request.args.get("name"), body, request.args.get("settings", ""), catalogue, form)
            return Response(text, mimetype="application/json"), HTTPStatus.OK
        except (FusesimError, ArithmeticError) as error:
            return jsonify(
                problem=stopped(str(error) or "This program cannot be priced")
            ), HTTPStatus.UNPROCESSABLE_ENTITY
        finally:
            turns.release()


def handed_in(name: Any, body: bytes, query: str, catalogue: Catalogue, form: Form) -> str:
    """Answer a file.

    Raises
    ------
    FusesimError
        If it is refused, or cannot be priced; the sentence says why.
    """
    values = form.from_query(query)[0] | {SAMPLE: FILE}
    upload = checked(name, body)
    view = look(program_of(upload, values[SIZES]), upload.name, values, catalogue)
    return as_text(shown(view, values) | {"hidden": [] if ONNX else [ids.group(SIZES)]})


def texts(view: ProgramView, values: Values) -> dict[str, str]:
    """Return the texts of the page by the id of their place."""
    report = view.report
    step, fused = report.eager[report.launch], report.fused[report.launch]
    on = f", recorded on {view.recorded_on}" if view.recorded_on else ""
    measured = readout.time(report.measured.span) if report.measured else "not in the file"
    return {
        NAME: f"{view.name}{on}; priced for {report.device.name}.",
        ids.UNFUSED_TIME: readout.time(step.time),
        ids.UNFUSED_RANGE: readout.between(step.interval),
        ids.UNFUSED_KERNELS: f"{float(step.kernels):.0f}",
        MEASURED: measured,
        ids.FUSED_TIME: readout.time(fused.time),
        ids.FUSED_RANGE: readout.between(fused.interval),
        ids.FUSED_KERNELS: f"{float(fused.kernels):.0f}",
        REMAINS: readout.time(report.left),
        ids.SPEEDUP: units.format_ratio(float(step.time) / float(fused.time)),
        ids.SAVING: readout.time(abs(report.fusing_saves)),
        ids.SENTENCE: f"{sentence(report.explain()[0])} {gained(view, values)}",
    }


def gained(view: ProgramView, values: Values) -> str:
    """Say what the chosen strategy makes of a step."""
    saved, fused = view.report.fusing_saves, view.report.fused[view.report.launch]
    who = "torch.compile" if values[STRATEGY] == "inductor" else values[STRATEGY]
    if saved == 0:
        return f"Fused by {who} it takes the same time."
    change = f"{readout.time(abs(saved))} {'less' if saved > 0 else 'more'}"
    return f"Fused by {who} it takes {readout.time(fused.time)}: {change}."


def call(view: ProgramView, values: Values) -> str:
    """Return the library call that makes the same report."""
    side = f'("{values[STRATEGY]}", "{"torch" if values[STRATEGY] in {"eager", "cuda-graph"} else "inductor"}")'
    onnx = view.name.lower().endswith(".onnx")
    load = "from fusesim.frontends.onnx import from_onnx" if onnx else "from fusesim.frontends.trace import read_trace"
    name = view.name if values[SAMPLE] == FILE else "trace.json.gz"
    sizes = f", sizes={dict(values[SIZES])!r}" if onnx and values[SIZES] else ""
    return "\n".join(
        (
            load,
            "from fusesim.ranking import rank",
            "",
            f'program = {"from_onnx" if onnx else "read_trace"}("{name}"{sizes})',
            f'report = rank(program, device="{values[ids.DEVICE]}", launch="{values[ids.LAUNCH]}", fused={side})',
            'print("\\n".join(report.explain()))',
        )
    )


def timeline(view: ProgramView) -> Figure:
    """Kernels over time: as measured, as predicted for the program as it is, and fused."""
    rows = (
        ("fused", view.fused, COLOURS["fused"]),
        ("unfused", view.unfused, COLOURS["unfused"]),
        ("measured", view.measured, palette.INK),
    )
    drawn = [(name, bars[:MOST_BARS], colour) for name, bars, colour in rows if bars]
    layout = frame("Kernels over time")
    most = max(bars[-1].end for _, bars, _ in drawn)
    layout["xaxis"] = {
        "title": {"text": "time from the first kernel", "standoff": 8},
        "range": [0, most * 1.03],
        "tickformat": "~s",
        "ticksuffix": "s",
        "nticks": 6,
        "gridcolor": palette.GRID,
        "zeroline": False,
        "fixedrange": True,
    }
    layout["yaxis"] = {"fixedrange": True, "showgrid": False, "tickfont": {"size": 14}}
    layout |= {"barmode": "overlay", "bargap": 0.35, "showlegend": False, "hovermode": "closest"}
    layout["margin"] = layout["margin"] | {"l": 84}
    return {"data": [_bars(name, bars, colour) for name, bars, colour in drawn], "layout": layout}


def _bars(name: str, bars: tuple[Bar, ...], colour: str) -> Figure:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [name] * len(bars),
        "base": [float(f"{bar.start:.5g}") for bar in bars],
        "x": [float(f"{bar.end - bar.start:.4g}") for bar in bars],
        "text": [f"{bar.name[:60]}<br>{readout.time(bar.end - bar.start)}" for bar in bars],
        "textposition": "none",
        "hovertemplate": f"{name}: %{{text}}<extra></extra>",
        "marker": {"color": colour, "opacity": [(1.0, 0.68)[place % 2] for place in range(len(bars))]},
    }


def achieved(view: ProgramView) -> Figure:
    """Draw what ops took against what the device's roof allows; empty where the file has no times."""
    ops = [
        op for op in (view.report.measured.ops if view.report.measured else ()) if op.attainable > 0 and op.measured > 0
    ]
    layout = frame("Achieved against attainable")
    layout["hovermode"], layout["showlegend"] = "closest", False
    if not ops:
        layout |= {"xaxis": {"visible": False}, "yaxis": {"visible": False}}
        layout["annotations"] = [
            {"text": "The file holds no times.", "showarrow": False, "xref": "paper", "yref": "paper"}
        ]
        return {"data": [], "layout": layout}
    low, high = decades([[op.attainable for op in ops], [op.measured for op in ops]])
    ticks = {"dtick": 1, "tickformat": "~s", "ticksuffix": "s"}
    layout["xaxis"] = axis("attainable on this device", [low, high]) | ticks
    layout["yaxis"] = axis("measured", [low, high]) | ticks
    ends = [10.0**low, 10.0**high]
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": ends,
        "y": ends,
        "hoverinfo": "skip",
        "line": {"color": palette.INK},
    }
    marks = {
        "type": "scatter",
        "mode": "markers",
        "name": "ops",
        "x": [float(f"{op.attainable:.4g}") for op in ops[:MOST_BARS]],
        "y": [float(f"{op.measured:.4g}") for op in ops[:MOST_BARS]],
        "text": [f"{op.op} x{op.count}: {units.format_share(op.share)} of what it should" for op in ops[:MOST_BARS]],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": COLOURS["unfused"], "size": 10, "opacity": 0.7},
    }
    return {"data": [line, marks], "layout": layout}


def ranking(view: ProgramView) -> str:
    """Return the fusions that are worth making, the best first."""
    worth = [fusion for fusion in view.report.fusions if fusion.saved > 0]
    return _fusions(worth, "Nothing in this program is worth fusing.")


def losing(view: ProgramView) -> str:
    """Return the fusions that the strategy makes although a step loses by them, the worst first."""
    lost = [fusion for fusion in reversed(view.report.fusions) if fusion.saved <= 0]
    return _fusions(lost, "No fusion of this plan loses time.")


def _fusions(found: Sequence[Fusion], empty: str) -> str:
    rows = [
        [
            Cell(text=fusion.what),
            Cell(text=str(fusion.count), look="number"),
            Cell(text=f"{fusion.kernels} to {fusion.own}", look="number"),
            Cell(text=readout.time(fusion.before), look="number", exact=fusion.before),
            Cell(text=readout.time(fusion.after), look="number", exact=fusion.after),
            Cell(text=readout.time(abs(fusion.saved)), look="number", exact=fusion.saved),
            Cell(text=units.format_share(abs(fusion.share)), look="number", exact=fusion.share),
        ]
        for fusion in found[:MOST_ROWS]
    ]
    saved = "Lost" if found and found[0].saved <= 0 else "Saved"
    heads = ("Fusion", "Times", "Kernels", "Unfused", "Fused", saved, "Of the step")
    return table(heads, rows, empty=empty)


def _signed(seconds: float) -> str:
    return readout.time(seconds) if seconds >= 0 else f"-{readout.time(-seconds)}"


def reached(view: ProgramView) -> str:
    """Return what ops reached of what is attainable, those with most to win first."""
    ops = view.report.measured.ops if view.report.measured else ()
    rows = [
        [
            Cell(text=op.op),
            Cell(text=str(op.count), look="number"),
            Cell(text=readout.time(op.measured), look="number", exact=op.measured),
            Cell(text=readout.time(op.expected), look="number", exact=op.expected),
            Cell(text=readout.time(op.attainable), look="number", exact=op.attainable),
            Cell(text=units.format_share(op.share), look="number", exact=op.share),
            Cell(text=op.reason, look="words"),
        ]
        for op in ops[:MOST_ROWS]
    ]
    heads = ("Op", "Times", "Measured", "Expected", "Attainable", "Reached", "Why")
    return table(heads, rows, empty="The file holds no times, so nothing can be compared.")


def sums(view: ProgramView) -> list[str]:
    """Write out how the figures came about."""
    report = view.report
    step, fused = report.eager[report.launch], report.fused[report.launch]
    host = "the host's launches and the device's kernels overlap, and the longer of the two sums counts"
    told = [
        f"As it is: {float(step.kernels):.0f} kernels, {readout.time(step.time)}"
        + (f"; on a stream {host}." if report.launch == "stream" else " in a graph."),
        f"Fused: {float(fused.kernels):.0f} kernels, {readout.time(fused.time)}.",
        f"Fusing saves {readout.time(step.time)} - {readout.time(fused.time)} = {_signed(report.fusing_saves)}.",
        f"CUDA graphs alone save {_signed(report.graphs_save)}; after both {readout.time(report.left)} remain.",
    ]
    return [*told, *(sentence("; ".join(fusion.explain()[:3])) for fusion in report.fusions[:8])]
