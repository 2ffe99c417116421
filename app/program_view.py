"""From a trace or a model to what fusing it would save: the one place where that page asks fusesim for numbers."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fusesim.errors import GraphError, InputError, excerpt
from fusesim.frontends.onnx import from_onnx
from fusesim.frontends.trace import Trace, read_trace
from fusesim.inputs import choice
from fusesim.ranking import rank
from fusesim.strategies import STRATEGIES

from . import ids
from .controls import short_text
from .fields import Field, Form, Values
from .forms import Part
from .layout import Entry, Menu, Switch
from .plan_form import STRATEGY
from .plan_view import path_of

if TYPE_CHECKING:
    from fusesim.graph import Graph
    from fusesim.plan_run import PlanRun
    from fusesim.ranking import Report

    from .catalogue import Catalogue
    from .uploads import Upload

SAMPLE: Final = "sample"
FILE: Final = "file"
FOLDER: Final = Path(__file__).parent / "data" / "samples"
SAMPLES: Final = {
    "block": "Sample: a transformer block",
    "decode": "Sample: decoding a token",
    "resnet50": "Sample: ResNet-50",
    "train": "Sample: a training step",
}
"""Traces that are shipped, recorded on one H200 with PyTorch's profiler."""

MOST_OPS: Final = 800
"""Ops of a program that the workshop plans; more take seconds, which others would wait for."""

ONNX: Final = find_spec("onnx") is not None
"""Whether models can be read here: without the package no page offers it."""

SIZES: Final = "sizes"
MAX_SIZE: Final = 10**7
MOST_SIZES: Final = 8
LAUNCHES: Final = ("stream", "graph")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A kernel on the timeline. [s]."""

    name: str
    start: float
    end: float


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramView:
    """A program's report, and its kernels over time: measured where a trace says so, and both plans."""

    name: str
    report: Report
    measured: tuple[Bar, ...]
    unfused: tuple[Bar, ...]
    fused: tuple[Bar, ...]
    recorded_on: str


def program_form(catalogue: Catalogue) -> Form:
    """Return the settings of the page."""
    return Form(
        Field(name=SAMPLE, default="block", read=lambda raw: choice("program", raw, (*SAMPLES, FILE))),
        Field(name=ids.DEVICE, default="h200-sxm", read=lambda raw: catalogue.find(short_text("device", raw)).id),
        Field(name=STRATEGY, default="inductor", read=lambda raw: choice("strategy", raw, tuple(STRATEGIES))),
        Field(name=ids.LAUNCH, default="stream", read=lambda raw: choice("launch mode", raw, LAUNCHES)),
        Field(name=SIZES, default=(), read=_sizes, write=written),
    )


def parts(catalogue: Catalogue) -> tuple[Part, ...]:
    """Return the controls of the panel."""
    devices = [(device.id, device.name) for device in catalogue.profiles]
    strategies = [(name, f"{name}: {told}") for name, told in STRATEGIES.items()]
    launches = (("stream", "on a stream"), ("graph", "in a graph"))
    return (
        Part(
            owner=SAMPLE, controls=(Menu(id=SAMPLE, label="Program", options=[*SAMPLES.items(), (FILE, "Your file")]),)
        ),
        Part(owner=ids.DEVICE, controls=(Menu(id=ids.DEVICE, label="Device to run on", options=devices),)),
        Part(owner=STRATEGY, controls=(Menu(id=STRATEGY, label="Who fuses", options=strategies),)),
        Part(owner=ids.LAUNCH, controls=(Switch(id=ids.LAUNCH, label="Launched", options=launches),)),
        Part(
            owner=SIZES,
            controls=(Entry(id=SIZES, label="Named dimensions of an ONNX model", placeholder="batch=8, seq=128"),),
        ),
    )


def _sizes(raw: Any) -> tuple[tuple[str, int], ...]:
    """Read sizes of named dimensions: ``batch=8, seq=128``."""
    found: dict[str, int] = {}
    for part in filter(None, (piece.strip() for piece in short_text("sizes", raw, 200).split(","))):
        pair = re.fullmatch(r"([\w.:/-]{1,60})\s*[=:]\s*(\d{1,8})", part, re.ASCII)
        if pair is None or not 1 <= int(pair[2]) <= MAX_SIZE or len(found) == MOST_SIZES:
            raise InputError(f'"{excerpt(part)}" is not the size of a dimension; write for example batch=8, seq=128')
        found[pair[1]] = int(pair[2])
    return tuple(found.items())


def written(sizes: tuple[tuple[str, int], ...]) -> str:
    """Write sizes of named dimensions."""
    return ",".join(f"{name}:{size}" for name, size in sizes)


def samples() -> dict[str, Trace]:
    """Read the traces that are shipped."""
    return {name: read_trace(FOLDER / f"{name}.json.gz") for name in SAMPLES}


def program_of(upload: Upload, sizes: tuple[tuple[str, int], ...] = ()) -> Trace | Graph:
    """Read what was handed in.

    Raises
    ------
    InputError, GraphError
        If it is none that can be read, or has more ops than the workshop plans.
    """
    try:
        if upload.kind == "onnx":
            found: Trace | Graph = from_onnx(upload.content, sizes=dict(sizes))
        else:
            stream = io.BytesIO(upload.content)
            stream.name = upload.name
            found = read_trace(stream)
    except (InputError, GraphError) as error:
        said = _by_name(upload, str(error))
        raise type(error)(re.sub("give sizes=.*", "write it as a named dimension, such as batch=8", said)) from error
    except (RecursionError, MemoryError) as error:
        raise InputError(f"{upload.name} is nested or listed too deeply to be read") from error
    graph = found.graph if isinstance(found, Trace) else found
    if graph is None:
        raise InputError(f"{upload.name}: {found.notes[-1] if found.notes else 'it has no ops'}")  # type: ignore[union-attr]
    if len(graph.paid_nodes) > MOST_OPS:
        raise InputError(
            f"{upload.name} has {len(graph.paid_nodes)} ops, and the workshop plans at most {MOST_OPS}; record "
            "fewer steps "
            "or layers, or read it on your own machine"
        )
    return found


def _by_name(upload: Upload, said: str) -> str:
    """Let a sentence about a model begin with the file's name: the reader is given bytes alone."""
    return f"{upload.name}{said.removeprefix('model')}" if said.startswith(("model ", "model:")) else said


def look(program: Trace | Graph, name: str, values: Values, catalogue: Catalogue) -> ProgramView:
    """Rank what fusing a program would save.

    Raises
    ------
    GraphError, PlanError, CalibrationError
        As `fusesim.ranking.rank` does.
    """
    device, strategy = catalogue.find(values[ids.DEVICE]), values[STRATEGY]
    report = rank(program, device=device, launch=values[ids.LAUNCH], fused=(strategy, path_of(strategy)))
    return ProgramView(
        name=name,
        report=report,
        measured=_measured(program),
        unfused=_bars(report.eager[report.launch].parts),
        fused=_bars(report.fused[report.launch].parts),
        recorded_on=program.device if isinstance(program, Trace) else "",
    )


def _bars(run: PlanRun | Any) -> tuple[Bar, ...]:
    return tuple(Bar(name=span.name, start=span.start, end=span.end) for span in run.timeline())


def _measured(program: Trace | Graph) -> tuple[Bar, ...]:
    """Return the kernels of a trace with their times, from the first one on."""
    launches = program.launches if isinstance(program, Trace) else ()
    timed = sorted(
        (launch.start, launch.start + launch.duration, launch.name)
        for launch in launches
        if launch.start is not None and launch.duration is not None
    )
    if not timed:
        return ()
    first = timed[0][0]
    return tuple(Bar(name=name[:80], start=start - first, end=end - first) for start, end, name in timed)
