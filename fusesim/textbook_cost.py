"""The textbook price of a group: one launch, and its bytes or its arithmetic, whichever take longer.

What planners use unless another cost is given. It knows no caches and no measured rates, so it says what fusing is
worth in principle; that a fused kernel can lose shows in the bytes that it reads again or spills, in rows too few to
fill the device, and in the library kernel that it displaces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusesim.group_work import work_of
from fusesim.limits import Limits
from fusesim.topology import bits, topology

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.graph import Graph
    from fusesim.group_work import Work
    from fusesim.hardware import HardwareProfile
    from fusesim.topology import Topology

GRAPH_LAUNCH: Final = 1e-6
"""A kernel's launch inside a CUDA graph, as in `fusesim.textbook`. [s]."""

LIBRARY_EPILOGUES: Final = frozenset({"add", "relu", "gelu", "gelu_tanh", "batch_norm", "cast"})
"""What libraries' own products can have behind them (cuBLASLt's and cuDNN's epilogues)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextbookCost:
    """A device as the textbook sees it; call it with a graph and ops for the seconds of their kernel.

    `launch` [s], `bandwidth` [B/s], `flop_rate` of plain and `tensor_rates` of matrix arithmetic by type [FLOP/s], NaN
    or missing where unknown. `generated_share` is the share of the library's rate that a generated product reaches
    when its epilogue is none that the library has: an assumption, not a measurement.
    """

    bandwidth: float
    limits: Limits
    flop_rate: float = math.nan
    tensor_rates: tuple[tuple[int, float], ...] = ()
    launch: float = GRAPH_LAUNCH
    generated_share: float = 0.85

    @classmethod
    def of(cls, profile: HardwareProfile, *, launch: float = GRAPH_LAUNCH) -> TextbookCost:
        """Return the textbook cost on a device."""
        rates = {8: "fp64", 4: "tf32", 2: "bf16", 1: "fp8"}
        return cls(
            bandwidth=profile.dram_bandwidth,
            limits=Limits.of(profile),
            flop_rate=profile.vector_rate("fp32"),
            tensor_rates=tuple((width, profile.tensor_rate(dtype)) for width, dtype in rates.items()),
            launch=launch,
        )

    def __call__(self, graph: Graph, nodes: Iterable[str]) -> float:
        """Return the time of one kernel of some ops. [s]."""
        topo = topology(graph)
        return self.of_mask(topo, topo.mask(nodes))

    def of_mask(self, topo: Topology, mask: int) -> float:
        """Return the time of one kernel of a set of ops. [s]."""
        return self.time(topo, mask, work_of(topo, mask, self.limits))

    def time(self, topo: Topology, mask: int, work: Work) -> float:
        """Return the time of a kernel whose work is known. [s].

        Notes
        -----
        launch + max(bytes / bandwidth, arithmetic / rate). Rows that are worked on as a whole, a block each, draw
        only as much bandwidth as their share of the multiprocessors. What moves no byte is not launched.
        """
        if not work.bytes:
            return 0.0
        memory = work.bytes / self.bandwidth / self._busy(work)
        plain = work.flops / self.flop_rate if self.flop_rate > 0 else 0.0
        matrix = 0.0
        if work.tensor_flops:
            matrix = work.tensor_flops / (self._tensor_rate(topo, mask) * self._share(topo, mask, work))
        return self.launch + max(memory, plain + matrix)

    def _busy(self, work: Work) -> float:
        """Return the share of the multiprocessors that have a row; reductions alone split their rows."""
        sms = self.limits.sms
        if work.template != "row" or sms is None or not work.resources.row_bytes:
            return 1.0
        return min(1.0, max(work.resources.blocks, 1) / sms)

    def _tensor_rate(self, topo: Topology, mask: int) -> float:
        """Return the rate of the matrix units for a group's product; infinite where nobody sourced it."""
        for place in bits(mask):
            item = topo.items[place]
            if item.role in {"matmul", "conv", "attention"}:
                rate = dict(self.tensor_rates).get(item.width, math.nan)
                return rate if rate > 0 else math.inf
        return math.inf

    def _share(self, topo: Topology, mask: int, work: Work) -> float:
        """Return which share of the library's rate a product's kernel reaches."""
        if work.template == "attention" or not mask & (mask - 1):
            return 1.0
        return self.generated_share if displaces_library(topo, mask) else 1.0


def displaces_library(topo: Topology, mask: int) -> bool:
    """Return whether a product stands with ops that no library's epilogue has."""
    items = [topo.items[place] for place in bits(mask)]
    products = sum(item.role in {"matmul", "conv"} for item in items)
    return bool(products) and any(
        item.role not in {"matmul", "conv"} and item.kind not in LIBRARY_EPILOGUES for item in items
    )
