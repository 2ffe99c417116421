"""Plans for a graph: one call that finds the device, the cost, and the strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusesim.api import find_device
from fusesim.errors import InputError, excerpt
from fusesim.graph import Graph
from fusesim.group_cost import group_cost
from fusesim.inputs import instance
from fusesim.legality import check_plan
from fusesim.limits import Limits
from fusesim.strategies import find_strategy
from fusesim.strategies.base import Context
from fusesim.textbook_cost import TextbookCost

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan
    from fusesim.hardware import HardwareProfile
    from fusesim.strategies.base import Cost


def plan(
    graph: Graph, strategy: str = "eager", device: str | HardwareProfile = "h200-sxm", *, cost: Cost | None = None
) -> FusionPlan:
    """Return which ops of a graph share a kernel under a strategy.

    Parameters
    ----------
    graph : Graph
        The graph; composite ops stay whole for `eager` and `cuda-graph` and are written out for the others.
    strategy : str
        One of `fusesim.strategies.STRATEGIES`.
    device : str or HardwareProfile
        The device: its limits decide what fits on chip, and its rates the textbook cost.
    cost : callable, optional
        The time of one kernel, `cost(graph, ops) -> seconds`. Unless given that of the calibrated model with
        generated kernels (`fusesim.group_cost`), and the textbook's where it can say nothing of the device.

    Returns
    -------
    FusionPlan
        A legal plan.

    Raises
    ------
    InputError
        If the graph is none, or the strategy or the device is unknown.
    PlanError
        If a strategy made a plan that is not legal.

    Notes
    -----
    A stack of transformer-like blocks of 204 ops is planned greedily in about 40 ms and priced in 10 ms more; where
    hundreds of ops fit into a single kernel, three times that, most of it for the calibrated cost of large groups:
    the textbook's takes half as long. Inductor's rules take 0.3 s for 2 000 ops none of which repeats and 5 s for
    15 000, greedy plans 1 s for 2 000; XLA's, which compute producers again one by one, 20 s for 2 000.
    """
    instance("a program", graph, Graph, "such as fusesim.patterns.rmsnorm() or what fusesim.from_torch returns")
    made = find_strategy(strategy)(graph, context_of(device, cost))
    check_plan(made)
    return made


def context_of(device: str | HardwareProfile, cost: Cost | None = None) -> Context:
    """Return what strategies are given: a cost, see `plan`, and the device's limits.

    Raises
    ------
    InputError
        If the device is unknown, or the cost cannot be called.
    """
    profile = find_device(device)
    if cost is not None and not callable(cost):
        raise InputError(f"cost is {excerpt(cost)}; give a function of a graph and ops that returns seconds")
    return Context(cost_of(profile) if cost is None else cost, Limits.of(profile))


def cost_of(device: str | HardwareProfile, path: str = "inductor", **as_price: Any) -> Cost:
    """Return what one kernel costs for planners, by the model that prices are asked of.

    Parameters
    ----------
    device : str or HardwareProfile
        The device.
    path : str
        Whose kernels.
    **as_price
        Arguments of `fusesim.price`; `model` and `calibration` count.

    Raises
    ------
    InputError, CalibrationError
        As `fusesim.group_cost.group_cost` does.
    """
    return group_cost(device, path, **as_price) or TextbookCost.of(find_device(device))
