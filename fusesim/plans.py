"""What a plan costs: its kernels on a software path, one after the other, in a launch mode.

The front desk of programs, as `fusesim.chains` is that of chains: names and plain values in, records out. A plan is
lowered to kernels (`fusesim.lowering`), the cache is followed through them (`fusesim.reuse`), each is timed
(`fusesim.launches`), and the launch mode adds them up.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, Final

from fusesim import calibrations, kernel_files
from fusesim.api import find_device
from fusesim.calibration import machine_of
from fusesim.comparison import Comparison
from fusesim.errors import InputError, excerpt
from fusesim.fusion import FusionPlan
from fusesim.group_cost import group_cost
from fusesim.inputs import (
    MAX_BANDWIDTH,
    MAX_REPEATS,
    MAX_TIME,
    MIN_BANDWIDTH,
    choice,
    instance,
    single,
    strategy_and_path,
)
from fusesim.liveness import peak_memory
from fusesim.lowering import lower
from fusesim.lowering.target import target_of
from fusesim.plan_run import Kernel, PlanRun, Settings, TextbookRun
from fusesim.planning import cost_of
from fusesim.planning import plan as plan_graph
from fusesim.records import Price
from fusesim.reuse import memories, served
from fusesim.schedule import LAUNCH_MODES, TEXTBOOK_LAUNCH, TEXTBOOK_REPLAY

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.calibration import Calibration
    from fusesim.graph import Graph
    from fusesim.hardware import HardwareProfile
    from fusesim.launches import Launch
    from fusesim.lowering.target import Target

PATHS: Final = ("torch", "inductor", "cuda", "cupy")
MODELS: Final = ("textbook", "calibrated")

__all__ = ["MODELS", "PATHS", "compare", "group_cost", "price"]


def price(
    plan: FusionPlan,
    *,
    device: str | HardwareProfile = "h200-sxm",
    model: str = "calibrated",
    launch: str = "graph",
    path: str = "torch",
    inputs: Any = "cold",
    outputs: str = "dropped",
    graph_repeats: int = 1,
    calibration: Any = None,
    launch_overhead: float | None = None,
    replay_overhead: float | None = None,
    dram_bandwidth: float | None = None,
    host_interval: float | None = None,
    profiled: bool = True,
) -> Price:
    """Price a plan.

    Parameters
    ----------
    plan : FusionPlan
        Which ops share a kernel, see `fusesim.plan`.
    device : str or HardwareProfile
        Where it runs.
    model : str
        ``"calibrated"``, or ``"textbook"``: a launch and bytes over bandwidth for each group, nothing overlapped.
    launch : str
        ``"stream"``, ``"latency"`` or ``"graph"``, as for chains.
    path : str
        Whose kernels: ``"torch"`` (an op alone is PyTorch's own kernel, several are one generated kernel),
        ``"inductor"`` (all generated, library calls aside), ``"cuda"`` (vectorised by hand), ``"cupy"``.
    inputs : str or int
        ``"cold"``, ``"warm"``, or over how many sets of buffers repeated calls rotate, as for chains.
    outputs : str
        ``"dropped"``: the memory of a pass's outputs is handed out again in the next, as a framework does with what
        nobody holds; or ``"kept"``: each of the sets of buffers has outputs of its own.
    graph_repeats : int
        Passes in one captured graph.
    calibration : Calibration, str or path, optional
        As for chains.
    launch_overhead, replay_overhead, dram_bandwidth, host_interval : float, optional
        In place of what was measured; the textbook refuses `host_interval`. [s, s, B/s, s]
    profiled : bool
        Whether a profiler has run in the process, as in most that measure: until it ends, each kernel of a PyTorch
        graph takes some 0.4 us longer.

    Returns
    -------
    Price
        Of the whole; `per_kernel` has one for each kernel, in order.

    Raises
    ------
    InputError
        If an argument is wrong.
    CalibrationError
        If the device cannot be priced by the calibrated model.
    """
    instance("a plan", plan, FusionPlan, "such as fusesim.plan(graph) returns")
    kind, mode = choice("model", model, MODELS), choice("launch mode", launch, LAUNCH_MODES)
    owner, fate = choice("path", path, PATHS), choice("outputs", outputs, ("dropped", "kept"))
    profile = find_device(device)
    repeats = single("graph_repeats", graph_repeats, low=1, high=MAX_REPEATS, whole=True)
    instance("profiled", profiled, bool, "True or False")
    own = {
        "launch_overhead": _optional("launch_overhead", launch_overhead, 0, MAX_TIME, "s"),
        "replay_overhead": _optional("replay_overhead", replay_overhead, 0, MAX_TIME, "s"),
        "dram_bandwidth": _optional("dram_bandwidth", dram_bandwidth, MIN_BANDWIDTH, MAX_BANDWIDTH, "B/s"),
        "host_interval": _optional("host_interval", host_interval, 0, MAX_TIME, "s"),
    }
    if kind == "textbook":
        if host_interval is not None or calibration is not None:
            raise InputError("the textbook has neither host_interval nor calibration; use model='calibrated'")
        return _textbook(plan, profile, mode, repeats, own)
    sets = _sets(inputs, repeats if mode == "graph" else 1.0)
    return _calibrated(
        plan,
        profile,
        mode=mode,
        path=owner,
        sets=sets,
        repeats=repeats,
        calibration=calibration,
        own=own,
        outputs=fate,
        profiled=profiled,
    )


def _optional(name: str, value: float | None, low: float, high: float, unit: str) -> float | None:
    """Check a number that may be left out."""
    return None if value is None else single(name, value, low=low, high=high, unit=unit)


def _sets(inputs: Any, passes: float) -> float:
    """Return over how many sets of buffers passes rotate."""
    if isinstance(inputs, str):
        if choice("input state", inputs, ("cold", "warm")) == "warm":
            return 1.0
        return passes if passes > 1 else math.inf
    return single("inputs", inputs, low=1, high=MAX_REPEATS, whole=True)


def _textbook(
    plan: FusionPlan, profile: HardwareProfile, mode: str, repeats: float, own: dict[str, float | None]
) -> Price:
    """Return the textbook's price: for each group a launch, and its external bytes over the bandwidth."""
    overhead, replay = own["launch_overhead"], own["replay_overhead"]
    run = TextbookRun(
        plan=plan,
        overhead=TEXTBOOK_LAUNCH[mode] if overhead is None else overhead,
        once=(TEXTBOOK_REPLAY if replay is None else replay) / repeats if mode == "graph" else 0.0,
        bandwidth=own["dram_bandwidth"] or profile.dram_bandwidth,
        flop_rate=profile.vector_rate("fp32"),
        peak_memory=float(peak_memory(plan)),
    )
    return Price(time=run.time, parts=run)


def _calibrated(
    plan: FusionPlan,
    profile: HardwareProfile,
    *,
    mode: str,
    path: str,
    sets: float,
    repeats: float,
    calibration: Any,
    own: dict[str, float | None],
    outputs: str,
    profiled: bool,
) -> Price:
    """Return the calibrated price."""
    record: Calibration = calibrations.find_calibration(profile, calibration)
    machine = machine_of(record, profile)
    bandwidth = own["dram_bandwidth"]
    if bandwidth is not None:
        reached = machine.bandwidth / machine.peak_bandwidth * bandwidth
        machine = dataclasses.replace(machine, peak_bandwidth=bandwidth, bandwidth=reached)
    rates = kernel_files.find_rates(profile)
    watched = rates.watched(path, launch=mode, profiled=profiled)
    target = target_of(machine, profile)
    placed = lower(plan, path, target)
    launches = [launch for _, launch in placed]
    rotating, held = memories(plan.graph, outputs)
    where = served(launches, rotating, machine, sets, held)
    overhead, replay, host = own["launch_overhead"], own["replay_overhead"], own["host_interval"]
    cost = record.paths[path]  # type: ignore[index]
    once = rates.replaying(path, machine.replay) if replay is None else replay
    settings = Settings(
        mode=mode,
        path=path,
        floor=machine.floor + watched + (cost.gap if path != "cupy" else 0.0) if overhead is None else overhead,
        gap=machine.stream_gap if mode != "graph" and overhead is None else 0.0,
        replay=once / repeats if mode == "graph" else 0.0,
        idle=machine.idle if mode == "latency" else 0.0,
        interval=cost.interval if host is None else host,
        per_call=path == "inductor",
        host_range=(cost.low / cost.interval, cost.high / cost.interval) if host is None else (1.0, 1.0),
    )
    kernels = []
    for (group, launch), at in zip(placed, where, strict=True):
        time = rates.time(launch, machine, at, floor=settings.floor)
        plain = _plain_type(launch, plan.graph, target)
        kernels.append(Kernel(launch=launch, group=group, time=time, served=at, plain=plain))
    run = PlanRun(
        plan=plan,
        kernels_run=tuple(kernels),
        settings=settings,
        spread=lambda bound: rates.spread(path, bound),
        widening=kernel_files.widening(record),
        correlation=rates.correlation,
        peak_memory=float(peak_memory(plan)),
        limits=target.limits,
        matrix_types=frozenset(target.matrix),
    )
    name = f"{record.name}; kernels {rates.name}"
    parts = tuple(Price(time=one.time, parts=one, calibration=name) for one in run.each())
    return Price(time=run.time, parts=run, calibration=name, per_kernel=parts)


def _plain_type(launch: Launch, graph: Graph, target: Target) -> str:
    """Return the element type of a product that plain arithmetic units run, empty for any other kernel.

    Notes
    -----
    Such a product has the rate of plain arithmetic. Where matrix units have a type at that very rate, as H200's have
    fp64 at that of plain fp32, it is theirs.
    """
    if not launch.rate or not math.isclose(launch.rate * target.machine.sms, target.vector):
        return ""
    inputs = [name for node in launch.nodes if node in graph.by_name for name in graph.by_name[node].inputs[:1]]
    kind = graph.tensors[inputs[0]].dtype if inputs else "fp32"
    return "" if target.matrix.get(kind) == target.vector else str(kind)


def compare(
    graph: Graph,
    *,
    device: str | HardwareProfile = "h200-sxm",
    unfused: tuple[str, str] = ("eager", "torch"),
    fused: tuple[str, str] = ("inductor", "inductor"),
    rebuild: Callable[[float], Graph] | None = None,
    dimension: tuple[str, float] | None = None,
    **as_price: Any,
) -> Comparison:
    """Price a graph in two ways.

    Parameters
    ----------
    graph : Graph
        The program.
    device : str or HardwareProfile
        Where it runs.
    unfused, fused : tuple of str
        Strategy and path of each side.
    rebuild : callable, optional
        Makes the same graph so many times as large, for the size at which the verdict flips.
    dimension : tuple of str and float, optional
        The name of the size that `rebuild` scales, and what it is now.
    **as_price
        As for `price`.

    Returns
    -------
    Comparison
        Both prices, the saving with its 90 % interval, the speedup; `explain()` says why.

    Raises
    ------
    InputError, PlanError, CalibrationError
        As `fusesim.plan` and `price` do.
    """
    if rebuild is not None and not callable(rebuild):
        raise InputError(f"rebuild is {excerpt(rebuild)}; give a function that makes the graph so many times as large")
    sides = []
    for name, pair in (("unfused", unfused), ("fused", fused)):
        strategy, path = strategy_and_path(name, pair)
        made = plan_graph(graph, strategy=strategy, device=device, cost=cost_of(device, path, **as_price))
        sides.append((made, price(made, device=device, path=path, **as_price)))
    (plan_a, price_a), (plan_b, price_b) = sides

    def larger(factor: float) -> Comparison:
        made = rebuild(factor) if rebuild is not None else graph
        return compare(made, device=device, unfused=unfused, fused=fused, **as_price)

    return Comparison(
        graph=graph,
        unfused_plan=plan_a,
        fused_plan=plan_b,
        unfused=price_a,
        fused=price_b,
        device=find_device(device),
        fused_path=fused[1],
        larger=None if rebuild is None else larger,
        dimension=dimension,
    )
