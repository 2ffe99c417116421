"""What one kernel of some ops costs by the calibrated model, for planners that ask about thousands of groups.

A group is priced alone and its inputs come from memory: what the cache keeps from kernel to kernel depends on the whole
plan, and is not additive. So a planner's total is not the price of its plan; `fusesim.plans.price` is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fusesim import calibrations, kernel_files
from fusesim.api import find_device
from fusesim.calibration import machine_of
from fusesim.errors import CalibrationError
from fusesim.fusion import FusionPlan, Group
from fusesim.inputs import choice
from fusesim.kernel import reused_share
from fusesim.launches import Served, launch_time
from fusesim.lowering import launches_of, lower
from fusesim.lowering.target import target_of
from fusesim.reuse import memories, served
from fusesim.schedule import LAUNCH_MODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.graph import Graph
    from fusesim.hardware import HardwareProfile
    from fusesim.kernel_rates import KernelRates
    from fusesim.launches import Launch, Rates
    from fusesim.lowering.target import Target
    from fusesim.machine import Machine


@dataclass(frozen=True, slots=True, eq=False)
class GroupCost:
    """A device and a path as planners see them; call it with a graph and ops for the seconds of their kernel.

    It remembers rates of classes and one empty plan of the last graph, so that a call costs tens of microseconds.
    """

    machine: Machine
    rates: KernelRates
    target: Target
    path: str
    _rows: dict[str, Rates] = field(default_factory=dict)
    _plans: dict[int, FusionPlan] = field(default_factory=dict)

    def __call__(self, graph: Graph, ops: Sequence[str]) -> float:
        """Return the time of one kernel of some ops. [s]."""
        launches = launches_of(self._plan(graph), Group(nodes=tuple(ops)), self.path, self.target)
        where = [self._cold(launches[0])] if len(launches) == 1 else self._served(launches)
        return sum(
            launch_time(launch, self._row(launch.row), self.machine, at, floor=self.machine.floor).time
            for launch, at in zip(launches, where, strict=True)
        )

    def whole(self, plan: FusionPlan) -> float:
        """Return the time of a plan's kernels one after the other, cold, caches between them included. [s]."""
        launches = [launch for _, launch in lower(plan, self.path, self.target)]
        rotating, held = memories(plan.graph)
        where = served(launches, rotating, self.machine, math.inf, held)
        return sum(
            self.rates.time(launch, self.machine, at, floor=self.machine.floor).time
            for launch, at in zip(launches, where, strict=True)
        )

    def _plan(self, graph: Graph) -> FusionPlan:
        """Return a plan of no groups: what lowering asks of a plan is its graph and who reads what."""
        found = self._plans.get(id(graph))
        if found is None or found.graph is not graph:
            self._plans.clear()
            found = self._plans[id(graph)] = FusionPlan(graph=graph, groups=(), strategy="one group")
        return found

    def _row(self, name: str) -> Rates:
        """Return what was measured of a class."""
        found = self._rows.get(name)
        if found is None:
            found = self._rows[name] = self.rates.find(name)
        return found

    def _cold(self, launch: Launch) -> Served:
        """Return where the bytes of a kernel come from that stands alone: all but second passes from memory. [B]."""
        again = launch.again * (1.0 - float(reused_share(launch.window, self.machine))) if launch.again else 0.0
        return Served(read=launch.bytes_read - launch.again + again, written=launch.bytes_written)

    def _served(self, launches: Sequence[Launch]) -> list[Served]:
        """Return where the bytes of several kernels come from: what one leaves for the next may be in the cache."""
        made = {access.storage for launch in launches for access in launch.writes}
        read = {access.storage for launch in launches for access in launch.reads}
        return served(launches, (read | made) - (read & made), self.machine, math.inf)


def group_cost(device: str | HardwareProfile, path: str = "inductor", **as_price: Any) -> GroupCost | None:
    """Return what one kernel of some ops costs on a device, for planners.

    Parameters
    ----------
    device : str or HardwareProfile
        The device.
    path : str
        Whose kernels, as for `fusesim.price`.
    **as_price
        Arguments of `fusesim.price`; `model`, `calibration`, `launch` and `profiled` count.

    Returns
    -------
    GroupCost or None
        None, so the textbook's cost, where that model is asked for or nothing can be said of the device.

    Raises
    ------
    InputError
        If the device is unknown.
    CalibrationError
        If the calibration that was asked for is wrong.
    """
    if as_price.get("model", "calibrated") == "textbook":
        return None
    profile, given = find_device(device), as_price.get("calibration")
    try:
        machine = machine_of(calibrations.find_calibration(profile, given), profile)
        rates = kernel_files.find_rates(profile)
    except CalibrationError:
        if given is not None:
            raise
        return None
    mode = choice("launch mode", as_price.get("launch", "graph"), LAUNCH_MODES)
    how = {"launch": mode, "profiled": as_price.get("profiled", True)}
    seen = replace(machine, floor=machine.floor + rates.watched(path, **how))
    return GroupCost(seen, rates, target_of(machine, profile), path)
