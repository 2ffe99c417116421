"""Plans for a graph: one call that finds the device, the cost, and the strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim.api import find_device
from fusesim.legality import check_plan
from fusesim.limits import Limits
from fusesim.strategies import find_strategy
from fusesim.strategies.base import Context
from fusesim.textbook_cost import TextbookCost

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
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
        The time of one kernel, `cost(graph, ops) -> seconds`; the textbook's unless given.

    Returns
    -------
    FusionPlan
        A legal plan.

    Raises
    ------
    InputError
        If the strategy or the device is unknown.
    PlanError
        If a strategy made a plan that is not legal.
    """
    made = find_strategy(strategy)(graph, context_of(device, cost))
    check_plan(made)
    return made


def context_of(device: str | HardwareProfile, cost: Cost | None = None) -> Context:
    """Return what strategies are given: a cost, the textbook's unless another is, and the device's limits.

    Raises
    ------
    InputError
        If the device is unknown.
    """
    profile = find_device(device) if isinstance(device, str) else device
    return Context(cost if cost is not None else TextbookCost.of(profile), Limits.of(profile))
