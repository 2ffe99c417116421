"""A CUDA graph over what the framework launches: the kernels stay, only their launches become cheaper.

Operators are not fused: every intermediate still goes through memory. NVIDIA's programming guide describes graphs as a
way to define work once and launch it many times; nothing in them changes a kernel.

References
----------
.. [1] NVIDIA, "CUDA C++ Programming Guide", section CUDA Graphs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fusesim.strategies import eager

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.strategies.base import Context


def decide(graph: Graph, context: Context) -> FusionPlan:
    """Return eager's groups, with a note that only launches change."""
    note = "a CUDA graph merges launches, not kernels: price this plan in launch mode graph; bytes are eager's"
    return replace(eager.decide(graph, context), strategy="cuda-graph", notes=(note,))
