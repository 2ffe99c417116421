"""A plan and its price as plain rows, for tables and for JSON: kernels, strategies side by side, memory, edges."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from fusesim.breakeven import break_even, compile_time
from fusesim.limits import Limits
from fusesim.liveness import liveness
from fusesim.plan_run import PlanRun
from fusesim.planning import cost_of, plan
from fusesim.plans import price
from fusesim.resources import resources_of
from fusesim.strategies import STRATEGIES
from fusesim.topology import topology
from fusesim.why import edges

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.hardware import HardwareProfile
    from fusesim.records import Price

EAGER: Final = ("eager", "cuda-graph")
"""Strategies whose kernels are the framework's own."""


def path_of(strategy: str) -> str:
    """Return whose kernels a strategy's plans are, unless another path is asked for."""
    return "torch" if strategy in EAGER else "inductor"


def planned(
    graph: Graph, strategy: str, path: str, device: HardwareProfile, as_price: dict[str, Any]
) -> tuple[FusionPlan, Price]:
    """Return a strategy's plan of a graph, and its price; the strategy cuda-graph always runs in a graph."""
    made = plan(graph, strategy, device, cost=cost_of(device, path, **as_price))
    launch = {"launch": "graph"} if strategy == "cuda-graph" else {}
    return made, price(made, device=device, path=path, **(as_price | launch))


def kernel_rows(plan: FusionPlan, price: Price, device: HardwareProfile) -> list[dict[str, Any]]:
    """Return a row for each kernel of a plan, in order. [s, B].

    Occupancy, its limit and spilled registers are told of generated kernels; what a library's or the framework's
    occupy is theirs to know.
    """
    run, limits = price.parts, Limits.of(device)
    if not isinstance(run, PlanRun):
        return _textbook_rows(plan, price, limits)
    rows = []
    for kernel, one in zip(run.kernels_run, price.per_kernel, strict=True):
        launch = kernel.launch
        generated = launch.row.startswith(("gen_", "cuda"))
        row = {
            "name": launch.name,
            "class": launch.row,
            "group": kernel.group,
            "ops": list(launch.nodes),
            "bytes_read": float(one.bytes_read),
            "bytes_written": float(one.bytes_written),
            "dram_bytes": float(one.dram_bytes),
            "l2_bytes": float(one.l2_bytes),
            "flops": float(one.flops),
            "time": float(one.time),
            "bound": kernel.bound,
        }
        rows.append(row | (_occupied(plan, kernel.group, limits) if generated else UNKNOWN))
    return rows


UNKNOWN: Final = {"occupancy": None, "limit": None, "registers": None, "spilled": 0}


def _occupied(plan: FusionPlan, group: int, limits: Limits) -> dict[str, Any]:
    """Return what a group's kernel occupies, and what limits it."""
    topo = topology(plan.graph)
    use = resources_of(topo, topo.mask(plan.groups[group].nodes), limits)
    return {"occupancy": use.occupancy, "limit": use.limit, "registers": use.registers, "spilled": use.spilled}


def _textbook_rows(plan: FusionPlan, price: Price, limits: Limits) -> list[dict[str, Any]]:
    """Return the same where a kernel is a launch and its bytes."""
    run, tensors = price.parts, plan.graph.tensors
    rows = []
    for place, group in enumerate(plan.groups):
        read = sum(tensors[name].bytes for name in plan.external_inputs(group))
        written = sum(tensors[name].bytes for name in plan.external_outputs(group))
        memory = (read + written) / run.bandwidth  # type: ignore[attr-defined]
        launch = run.overhead  # type: ignore[attr-defined]
        row = {
            "name": " ".join(sorted({node.kind for node in plan.nodes(group)})[:4]),
            "class": None,
            "group": place,
            "ops": list(group.nodes),
            "bytes_read": float(read),
            "bytes_written": float(written),
            "dram_bytes": float(read + written),
            "l2_bytes": 0.0,
            "flops": float(sum(plan.graph.flops(node) for node in plan.nodes(group))),
            "time": launch + memory,
            "bound": "launch" if launch > memory else "dram",
        }
        rows.append(row | (_occupied(plan, place, limits) if len(group.nodes) > 1 else UNKNOWN))
    return rows


def strategy_rows(
    graph: Graph, device: HardwareProfile, as_price: dict[str, Any], compile_seconds: float | None = None
) -> list[dict[str, Any]]:
    """Return every strategy's plan side by side; savings are against the first, `eager`. [s, B].

    Parameters
    ----------
    graph : Graph
        The program.
    device : HardwareProfile
        Where it runs.
    as_price : dict
        Further arguments of `fusesim.price`.
    compile_seconds : float, optional
        What compiling takes; unless given what was measured, which is of Inductor only. [s]
    """
    rows: list[dict[str, Any]] = []
    for strategy in STRATEGIES:
        path = path_of(strategy)
        made, found = planned(graph, strategy, path, device, as_price)
        time = float(found.time)
        first = rows[0]["time"] if rows else time
        seconds = seconds_of(strategy, len(graph.paid_nodes), compile_seconds)
        pays = None if seconds is None else break_even(seconds, first - time)
        row = {
            "strategy": strategy,
            "path": path,
            "kernels": float(found.kernels),
            "bytes_moved": float(found.bytes_moved),
            "time": time,
            "interval": [float(end) for end in found.interval],
            "saving": first - time,
            "speedup": first / time if time else 1.0,
            "peak_memory": float(found.peak_memory),
            "compile_seconds": seconds,
            "break_even_calls": None if pays is None or math.isinf(pays) else pays,
            "notes": list(made.notes),
        }
        rows.append(row)
    return rows


def seconds_of(strategy: str, ops: int, given: float | None) -> float | None:
    """Return what compiling takes: as given, as measured, or unknown. [s]."""
    if strategy in EAGER:
        return None
    if given is not None:
        return given
    return compile_time("inductor", ops).seconds if strategy == "inductor" else None


def edge_records(plan: FusionPlan) -> list[dict[str, Any]]:
    """Return the edges of a plan for JSON. [B]."""
    return [asdict(edge) for edge in edges(plan)]


def memory_records(unfused: FusionPlan, fused: FusionPlan) -> dict[str, Any]:
    """Return what is alive group by group, of both plans. [B]."""
    return {"unfused": liveness(unfused).to_dict(), "fused": liveness(fused).to_dict()}


def timeline_records(price: Price) -> list[dict[str, Any]]:
    """Return when each kernel runs; nothing in the textbook, which has no order. [s]."""
    run = price.parts
    return [span._asdict() for span in run.timeline()] if isinstance(run, PlanRun) else []
