"""PyTorch profiler traces as graphs and as timelines: `from_trace` and `read_trace`. No GPU, no PyTorch.

A Chrome trace holds ops of the host with the shapes of their operands, what ran on the device with its durations, and
what launched what. The graph is made from ops alone; times make the timeline.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from fusesim.errors import GraphError, InputError, excerpt
from fusesim.frontends.trace_file import Source, events_of
from fusesim.frontends.trace_graph import build
from fusesim.frontends.trace_records import Call, Launch, Op, Reader
from fusesim.frontends.trace_timeline import Timeline, timeline_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.graph import Graph

MOST_OPS: Final = 100_000
"""Ops that are kept; a graph of more is beyond planning."""

MOST_LAUNCHES: Final = 400_000
"""Kernels, copies and fills that are kept one by one."""

MOST_EVENTS: Final = 20_000_000
"""Events after which a file is not read on."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """A profiler's trace, read.

    `ops` and `launches` are as recorded; `graph` is the program, and `kernels_of` says what each of its ops launched.
    `timeline` has the measured times, None where the trace has no durations. `notes` says in sentences what is
    missing. `compiled` says that Inductor's kernels are in it, `graph_launches` how often a CUDA graph was replayed.
    """

    name: str
    ops: tuple[Op, ...]
    launches: tuple[Launch, ...]
    graph: Graph | None
    kernels_of: dict[str, tuple[Launch, ...]] = field(repr=False)
    timeline: Timeline | None
    device: str = ""
    compiled: bool = False
    graph_launches: int = 0
    events: int = 0
    notes: tuple[str, ...] = ()

    @property
    def kernels(self) -> int:
        """How many kernels, fills and copies ran on a device."""
        return len(self.launches)


@dataclass(slots=True)
class _Collected:
    """What has been read so far."""

    ops: list[Op] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    calls: dict[int, Call] = field(default_factory=dict)
    replays: int = 0
    notes: list[str] = field(default_factory=list)


def from_trace(file: str | os.PathLike[str] | BinaryIO, *, progress: Callable[[int, int], None] | None = None) -> Graph:
    """Return the graph of the program that a PyTorch profiler trace shows.

    Parameters
    ----------
    file : path or binary file
        A Chrome trace, .json or .json.gz, as `torch.profiler` exports it with `record_shapes=True`.
    progress : callable, optional
        Called with the bytes read and the size of the file, 0 where unknown. [B].

    Returns
    -------
    Graph
        One op per ATen op that launches kernels, composite ops as eager runs them; a kernel of Inductor is one op.
        What nobody made is an input, weights are parameters, what nobody reads is an output. `gaps` says what is
        missing. Times are not read: a trace without them gives the same graph.

    Raises
    ------
    InputError
        If the file cannot be read or is no trace.
    GraphError
        If no op in it has shapes.

    Notes
    -----
    Traces name no tensors: operands are matched to what was made by shape, strides, type and order (see
    `fusesim.frontends.trace_link`), results are worked out from operands. A wrong match moves an edge, not an op: what
    each op reads and writes in bytes is as recorded.
    """
    trace = read_trace(file, progress=progress)
    if trace.graph is None:
        raise GraphError(f"{trace.name}: {trace.notes[-1] if trace.notes else 'has no ops'}")
    return trace.graph


def read_trace(file: str | os.PathLike[str] | BinaryIO, *, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Return a profiler trace with its graph and its timeline.

    Parameters
    ----------
    file : path or binary file
        As in `from_trace`.
    progress : callable, optional
        As in `from_trace`.

    Returns
    -------
    Trace
        `graph` is None, and the last note says why, where the trace holds no ops with shapes.

    Raises
    ------
    InputError
        If the file cannot be read or is no trace.
    """
    name = PurePath(os.fspath(file)).name if isinstance(file, str | os.PathLike) else _name_of(file)
    source, reader, found = Source(excerpt(name)), Reader(), _Collected()
    for event in events_of(file, source, progress):
        _keep(reader.record(event), found)
        if reader.seen >= MOST_EVENTS:
            source.cut = f"only the first {MOST_EVENTS} events are read"
            break
    _check(source, reader, found)
    if source.cut:
        found.notes.append(f"the trace is not whole: {source.cut}; what stood behind is missing")
    return _trace(source, reader, found)


def _name_of(file: BinaryIO) -> str:
    """Return what an open file says that it is called; one in memory may say nothing, a descriptor is a number."""
    name = getattr(file, "name", None)
    return PurePath(name).name if isinstance(name, str) and name else "trace"


def _keep(record: Op | Launch | Call | None, found: _Collected) -> None:
    """Keep a record while there is room."""
    if isinstance(record, Op):
        if len(found.ops) < MOST_OPS:
            found.ops.append(record)
        elif len(found.ops) == MOST_OPS:
            _once(found, f"only the first {MOST_OPS} ops are read; record fewer steps for the rest")
    elif isinstance(record, Launch):
        if len(found.launches) < MOST_LAUNCHES:
            found.launches.append(record)
        else:
            _once(found, f"only the first {MOST_LAUNCHES} kernels are read; record fewer steps for the rest")
    elif isinstance(record, Call):
        found.replays += "GraphLaunch" in record.name
        if record.correlation is not None and len(found.calls) < MOST_LAUNCHES:
            found.calls[record.correlation] = record


def _once(found: _Collected, note: str) -> None:
    """Note a sentence once."""
    if note not in found.notes:
        found.notes.append(note)


def _check(source: Source, reader: Reader, found: _Collected) -> None:
    """Refuse files without any event of a profiler."""
    if source.listed == "nodes":
        raise InputError(
            f"{source.name} is an execution trace (it lists nodes), which fusesim does not read; export a profiler "
            "trace with torch.profiler.profile(record_shapes=True) and export_chrome_trace"
        )
    if found.ops or found.launches:
        return
    if not source.listed:
        raise InputError(f"{source.name} is no profiler trace: it has no traceEvents; export it with torch.profiler")
    if not reader.seen:
        why = f"it holds no events{' (' + source.cut + ')' if source.cut else ''}"
    else:
        why = f"none of its {reader.seen} events is an op of PyTorch or a kernel"
    raise InputError(f"{source.name} has nothing to read: {why}; record with torch.profiler, with CUDA activities")


def _trace(source: Source, reader: Reader, found: _Collected) -> Trace:
    """Return the record of what was read."""
    ops = _in_order(found.ops)
    launches = tuple(_called(launch, found.calls) for launch in found.launches)
    launched: dict[int, list[Launch]] = {}
    for launch in launches:
        if launch.external is not None:
            launched.setdefault(launch.external, []).append(launch)
    if reader.shapes:
        graph, kernels_of = _graph(ops, launched, source, found)
    else:
        graph, kernels_of = None, {}
        found.notes.append(
            f"its {len(ops)} ops have no shapes, so there is no graph; record with "
            "torch.profiler.profile(record_shapes=True)"
        )
    return Trace(
        name=source.name,
        ops=tuple(ops),
        launches=launches,
        graph=graph,
        kernels_of=kernels_of,
        timeline=timeline_of(launches),
        device=_device(source.header),
        compiled=any(op.name.startswith("triton_") for op in ops)
        or any(k.name.startswith("triton_") for k in launches),
        graph_launches=found.replays,
        events=reader.seen,
        notes=tuple(found.notes),
    )


def _graph(
    ops: list[Op], launched: dict[int, list[Launch]], source: Source, found: _Collected
) -> tuple[Graph | None, dict[str, tuple[Launch, ...]]]:
    """Return the graph and what each of its ops launched; none, and a note, where no op can be read."""
    name = source.name.removesuffix(".gz").removesuffix(".json")
    try:
        built = build(ops, {} if source.cut else launched, name, tuple(found.notes))
    except GraphError as error:
        found.notes.append(str(error))
        return None, {}
    kernels_of = {
        node: tuple(k for op in mine for k in launched.get(-1 if op.external is None else op.external, ()))
        for node, mine in built.ops_of.items()
    }
    return built.graph, kernels_of


def _in_order(ops: list[Op]) -> list[Op]:
    """Return ops in the order in which they began.

    Notes
    -----
    By time. Where there is none by the profiler's own number of the event, which counts thread by thread: autograd's
    threads come last, as they do in one training step.
    """
    if all(op.start is not None for op in ops):
        return sorted(ops, key=lambda op: (op.start, op.place))
    backward = {op.thread for op in ops if op.name.startswith("autograd::engine::evaluate_function")}
    return sorted(ops, key=lambda op: (op.thread in backward, op.place))


def _called(launch: Launch, calls: dict[int, Call]) -> Launch:
    """Return a launch with the call on the host that made it."""
    call = calls.get(launch.correlation) if launch.correlation is not None else None
    if call is None:
        return launch
    end = None if call.start is None else call.start + (call.duration or 0.0)
    return replace(launch, call=call.name, called=end)


def _device(header: dict[str, Any]) -> str:
    """Return the name of the first device."""
    devices = header.get("deviceProperties")
    first = devices[0] if isinstance(devices, list) and devices else {}
    name = first.get("name") if isinstance(first, dict) else None
    return excerpt(name) if isinstance(name, str) else ""
