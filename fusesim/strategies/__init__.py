"""Who decides what shares a kernel: the framework, this library's planners, or a compiler's rules.

Each strategy is a module with `decide(graph, context) -> FusionPlan`; its rules and their source stand at its top.
A new strategy is a new file and a row here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final, cast

from fusesim.errors import unknown_name

if TYPE_CHECKING:
    from fusesim.strategies.base import Decide

STRATEGIES: Final = {
    "eager": "what the framework launches: a kernel per op",
    "vertical": "greedy: the merge along an edge that saves most, until none saves",
    "horizontal": "vertical, then siblings",
    "optimal": "the cheapest partition, by integer programming",
    "inductor": "what torch.compile does",
    "xla": "what XLA's priority fusion does",
    "tvm": "what TVM's operator fusion does",
    "mlir": "what MLIR's fusion of element-wise linalg ops does",
    "cuda-graph": "a kernel per op, launched as one graph",
}
"""Every strategy, and what it is in a line."""


def find_strategy(name: str) -> Decide:
    """Return a strategy's function; its module is loaded on the first call.

    Raises
    ------
    InputError
        If there is no such strategy, with the nearest name.
    """
    if not isinstance(name, str) or name not in STRATEGIES:
        raise unknown_name("strategy", name, STRATEGIES)
    module = importlib.import_module(f"fusesim.strategies.{name.replace('-', '_')}")
    return cast("Decide", module.decide)
