"""From a plan to the kernels that a software path launches for it.

``torch``: an op by itself is what PyTorch's eager mode launches; a group of several is a generated kernel. The other
paths generate every kernel; library ops stay library calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim.lowering.eager import eager_launches
from fusesim.lowering.generated import group_launches

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan, Group
    from fusesim.launches import Launch
    from fusesim.lowering.target import Target

__all__ = ["launches_of", "lower"]


def lower(plan: FusionPlan, path: str, target: Target) -> list[tuple[int, Launch]]:
    """Return the kernels of a plan, each with the place of its group.

    Parameters
    ----------
    plan : FusionPlan
        What is to be run.
    path : str
        Whose kernels: ``"torch"``, ``"inductor"``, ``"cuda"`` or ``"cupy"``.
    target : Target
        Where.
    """
    return [
        (place, launch) for place, group in enumerate(plan.groups) for launch in launches_of(plan, group, path, target)
    ]


def launches_of(plan: FusionPlan, group: Group, path: str, target: Target) -> list[Launch]:
    """Return the kernels of one group of a plan's graph, as `lower` does: none for a group that makes no value."""
    if path == "torch" and len(group.nodes) == 1:
        return list(eager_launches(plan.graph, plan.graph.by_name[group.nodes[0]], target))
    return group_launches(plan, group, path, target)
