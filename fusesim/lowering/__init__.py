"""From a plan to the kernels that a software path launches for it.

``torch``: an op by itself is what PyTorch's eager mode launches; a group of several is a generated kernel. The other
paths generate every kernel; library ops stay library calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim.lowering.eager import eager_launches
from fusesim.lowering.generated import group_launches

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan
    from fusesim.launches import Launch
    from fusesim.lowering.target import Target

__all__ = ["lower"]


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
    found = []
    for place, group in enumerate(plan.groups):
        nodes = plan.nodes(group)
        if path == "torch" and len(nodes) == 1:
            launches = eager_launches(plan.graph, nodes[0], target)
        else:
            launches = group_launches(plan, group, path, target)
        found.extend((place, launch) for launch in launches)
    return found
