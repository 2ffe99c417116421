"""The fusions of a program that are worth making, by what they save, and what CUDA graphs and fusing leave.

A program is priced four times: as eager runs it and as a compiler would, each on a stream and in a graph. What a kernel
of the compiler's plan saves is the time of the eager kernels that it replaces less its own.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from fusesim.achieved import achieved
from fusesim.api import find_device
from fusesim.breakeven import break_even, compile_time
from fusesim.errors import GraphError, InputError, excerpt
from fusesim.inputs import strategy_and_path
from fusesim.planning import cost_of
from fusesim.planning import plan as plan_graph
from fusesim.plans import price
from fusesim.ranked import by_bound, ranked, run_of
from fusesim.ranking_sentences import report_sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.achieved import Achieved
    from fusesim.frontends.trace import Trace
    from fusesim.frontends.trace_records import Launch
    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.hardware import HardwareProfile
    from fusesim.ranked import Fusion
    from fusesim.records import Price

MODES: Final = ("stream", "graph")
MOST_SPANS: Final = 5000
"""Measured kernels that are kept for a picture."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a trace shows, and how it compares. [s].

    `kernel_time` adds up all kernels, `expected` is the model's sum for those that it knows, which took `known`; `idle`
    is the part of `span` in which nothing ran, `host_bound` that in which the device waited for the host. `spans` are
    names, starts and ends of the first kernels, for a picture.
    """

    span: float
    busy: float
    idle: float
    host_bound: float
    stretches: int
    longest_stretch: float
    kernel_time: float
    kernels: int
    known: float
    expected: float
    ops: tuple[Achieved, ...]
    spans: tuple[tuple[str, float, float], ...] = ()

    @property
    def ratio(self) -> float:
        """Measured over expected, of what is known."""
        return self.known / self.expected if self.expected else 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """What a program costs, which fusions are worth making, and what is left. [s, B].

    `eager` and `fused` are prices by launch mode. `elsewhere` is what the plan saves beyond the ranked fusions: single
    ops that are other kernels there. `remaining` is the fused time in a graph by what binds its kernels. `compiled`
    says that the program's kernels are Inductor's already.
    """

    name: str
    device: HardwareProfile
    launch: str
    eager_plan: FusionPlan
    fused_plan: FusionPlan
    eager: dict[str, Price]
    fused: dict[str, Price]
    fusions: tuple[Fusion, ...]
    elsewhere: float
    remaining: dict[str, float]
    compile_seconds: float | None
    measured: Measured | None = None
    compiled: bool = False
    notes: tuple[str, ...] = ()

    @property
    def step(self) -> float:
        """What a step takes as it is, in the launch mode asked for. [s]."""
        return float(self.eager[self.launch].time)

    @property
    def graphs_save(self) -> float:
        """What CUDA graphs alone save over a stream. [s]."""
        return float(self.eager["stream"].time - self.eager["graph"].time)

    @property
    def fusing_saves(self) -> float:
        """What fusing alone saves in the launch mode asked for. [s]."""
        return self.step - float(self.fused[self.launch].time)

    @property
    def left(self) -> float:
        """What remains after both. [s]."""
        return float(self.fused["graph"].time)

    @property
    def peak_memory(self) -> tuple[float, float]:
        """Bytes above the inputs at the peak, eager and fused. [B]."""
        return float(self.eager["graph"].peak_memory), float(self.fused["graph"].peak_memory)

    @property
    def break_even_calls(self) -> float | None:
        """After how many calls compiling pays, infinite if never, None where no compile time is known."""
        if self.compile_seconds is None:
            return None
        return break_even(self.compile_seconds, self.fusing_saves)

    def explain(self) -> list[str]:
        """Return what decides, in sentences, the most important first."""
        return report_sentences(self)

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON. [s, B, FLOP]."""
        calls, before_after = self.break_even_calls, self.peak_memory
        return {
            "name": self.name,
            "device": self.device.id,
            "requested_as": self.device.requested_as,
            "launch": self.launch,
            "strategy": self.fused_plan.strategy,
            "calibration": self.eager["graph"].calibration,
            "step": self.step,
            "eager": {mode: _brief(one) for mode, one in self.eager.items()},
            "fused": {mode: _brief(one) for mode, one in self.fused.items()},
            "graphs_save": self.graphs_save,
            "fusing_saves": self.fusing_saves,
            "left_after_both": self.left,
            "remaining_by_bound": self.remaining,
            "saved_elsewhere": self.elsewhere,
            "peak_memory": {"eager": before_after[0], "fused": before_after[1]},
            "compile_seconds": self.compile_seconds,
            "break_even_calls": None if calls is None or math.isinf(calls) else calls,
            "fusions": [asdict(one) | {"explain": one.explain()} for one in self.fusions],
            "measured": None if self.measured is None else _measured_record(self.measured),
            "explain": self.explain(),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        """Return one line."""
        return f"<Report {self.name} on {self.device.id}: {self.step * 1e6:.4g} us, {len(self.fusions)} fusions>"


def rank(
    program: Graph | Trace,
    *,
    device: str | HardwareProfile = "h200-sxm",
    launch: str = "stream",
    fused: tuple[str, str] = ("inductor", "inductor"),
    compile_seconds: float | None = None,
    recorded: str | HardwareProfile | None = None,
    **as_price: Any,
) -> Report:
    """Return the fusions of a program that are worth making, and what is left after them and CUDA graphs.

    Parameters
    ----------
    program : Graph or Trace
        What `from_torch`, `from_trace`, `from_onnx` or `from_hlo` give, or a pattern; a trace from `read_trace` also
        tells what was measured.
    device : str or HardwareProfile
        Where it is to run, another than it was recorded on too.
    launch : str
        How it is launched now: ``"stream"`` or ``"graph"``.
    fused : tuple of str
        Strategy and path of the fused side.
    compile_seconds : float, optional
        What compiling takes; what was measured of the path unless given. [s]
    recorded : str or HardwareProfile, optional
        Where a trace was recorded, which its times are compared with; `device` unless given.
    **as_price
        Further arguments of `fusesim.price`.

    Returns
    -------
    Report
        `explain()` says what decides; `fusions` are ranked by what they save.

    Raises
    ------
    InputError
        If an argument is wrong.
    GraphError
        If a trace holds no graph.
    PlanError, CalibrationError
        As `fusesim.plan` and `fusesim.price` do.

    Notes
    -----
    An eager op whose parts lie in several fused kernels counts for each by its number of parts there. On a stream a
    fusion saves what it takes from the longer of device and host. Ops of the same kinds and shapes are one row.
    """
    if not isinstance(launch, str) or launch not in MODES:
        raise InputError(f'launch is "{excerpt(launch)}"; a report compares stream and graph: give one of them')
    if as_price.get("model", "calibrated") != "calibrated":
        raise InputError("a report tells what binds each kernel, which the textbook does not know; leave model out")
    graph, fused = graph_of(program), strategy_and_path("fused", fused)
    own = "inductor" if getattr(program, "compiled", False) else "torch"
    cost = cost_of(device, fused[1], **as_price)
    plans = plan_graph(graph, "eager", device), plan_graph(graph, fused[0], device, cost=cost)
    eager, compiled = (
        {mode: price(made, device=device, path=path, launch=mode, **as_price) for mode in MODES}
        for made, path in zip(plans, (own, fused[1]), strict=True)
    )
    fusions, elsewhere = ranked(graph, run_of(eager[launch]), run_of(compiled[launch]))
    if compile_seconds is None and fused[1] == "inductor":
        compile_seconds = compile_time("inductor", len(graph.paid_nodes)).seconds
    return Report(
        name=graph.name,
        device=find_device(device),
        launch=launch,
        eager_plan=plans[0],
        fused_plan=plans[1],
        eager=eager,
        fused=compiled,
        fusions=fusions,
        elsewhere=elsewhere,
        remaining=by_bound(run_of(compiled["graph"])),
        compile_seconds=compile_seconds,
        measured=_measured(program, device if recorded is None else recorded, (plans[0], own), as_price),
        compiled=own == "inductor",
        notes=tuple(dict.fromkeys((*graph.gaps, *getattr(program, "notes", ())))),
    )


def graph_of(program: Any) -> Graph:
    """Return the graph of a program.

    Raises
    ------
    GraphError
        If a trace holds none.
    """
    graph = program.graph if hasattr(program, "graph") else program
    if graph is None:
        notes = getattr(program, "notes", ())
        raise GraphError(f"{getattr(program, 'name', 'trace')}: {notes[-1] if notes else 'has no graph'}")
    return graph  # type: ignore[no-any-return]


def _measured(
    program: Any, device: str | HardwareProfile, eager: tuple[FusionPlan, str], as_price: dict[str, Any]
) -> Measured | None:
    """Return what a trace with times shows, against what its device should take."""
    timeline = getattr(program, "timeline", None)
    if timeline is None:
        return None
    launched = program.kernels_of
    run = run_of(price(eager[0], device=device, path=eager[1], launch="graph", **as_price))
    times = {op: [(k.name, k.duration or 0.0) for k in kernels] for op, kernels in launched.items()}
    ops = achieved(run, times)
    return Measured(
        span=timeline.span,
        busy=timeline.busy,
        idle=timeline.idle,
        host_bound=timeline.host_bound,
        stretches=len(timeline.stretches),
        longest_stretch=max((one.idle for one in timeline.stretches), default=0.0),
        kernel_time=timeline.kernel_time,
        kernels=timeline.launches,
        known=sum(one.total for one in ops),
        expected=sum(one.expected * one.count for one in ops),
        ops=ops,
        spans=_spans(program.launches),
    )


def _spans(launches: Sequence[Launch]) -> tuple[tuple[str, float, float], ...]:
    """Return names, starts and ends of the first kernels from the first start on. [s]."""
    timed = [(one.name, one.start, one.duration) for one in launches if None not in {one.start, one.duration}]
    first = min((start for _, start, _ in timed if start is not None), default=0.0)
    ends = [(name, (start or 0.0) - first, (start or 0.0) - first + (took or 0.0)) for name, start, took in timed]
    return tuple(sorted(ends, key=lambda span: span[1])[:MOST_SPANS])


def _measured_record(found: Measured) -> dict[str, Any]:
    """Return what was measured ready for JSON. [s]."""
    plain = {name: value for name, value in vars(found).items() if name not in {"ops", "spans"}}
    return plain | {"ratio": found.ratio, "ops": [one.to_dict() for one in found.ops]}


def _brief(one: Price) -> dict[str, Any]:
    """Return a price without its kernels, ready for JSON."""
    return {key: value for key, value in one.to_dict().items() if key != "per_kernel"}
