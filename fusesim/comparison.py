"""A graph priced in two ways: the saving with its interval, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from fusesim.plan_sentences import comparison_sentences

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.hardware import HardwareProfile
    from fusesim.records import Price


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Two prices of one graph. `saving` = unfused - fused [s], may be negative; `speedup` = unfused / fused."""

    graph: Graph
    unfused_plan: FusionPlan
    fused_plan: FusionPlan
    unfused: Price
    fused: Price
    device: HardwareProfile

    @property
    def saving(self) -> float:
        """What the fused side saves. [s]."""
        return float(self.unfused.time - self.fused.time)

    @property
    def speedup(self) -> float:
        """Unfused over fused."""
        return float(self.unfused.time / self.fused.time)

    @property
    def saving_interval(self) -> tuple[float, float]:
        """Ends of the 90 % interval of the saving; what both sides' deviations share cancels. [s]."""
        shared = float(getattr(self.unfused.parts, "correlation", 1.0))
        below = _joined(self.unfused.time - self.unfused.interval[0], self.fused.interval[1] - self.fused.time, shared)
        above = _joined(self.unfused.interval[1] - self.unfused.time, self.fused.time - self.fused.interval[0], shared)
        return self.saving - below, self.saving + above

    def explain(self) -> list[str]:
        """Return what decides, in sentences."""
        return comparison_sentences(self)

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON. [s, B, FLOP]."""
        return {
            "graph": self.graph.name,
            "device": self.device.id,
            "unfused": self.unfused.to_dict() | {"strategy": self.unfused_plan.strategy},
            "fused": self.fused.to_dict() | {"strategy": self.fused_plan.strategy},
            "saving": self.saving,
            "saving_interval": list(self.saving_interval),
            "speedup": self.speedup,
            "explain": self.explain(),
        }

    def __repr__(self) -> str:
        """Return one line."""
        times = f"{self.unfused.time * 1e6:.4g} us -> {self.fused.time * 1e6:.4g} us"
        return f"<Comparison {self.graph.name} on {self.device.id}: {times}, {self.speedup:.2f}x>"


def _joined(first: Any, second: Any, shared: float) -> float:
    """Return the deviation of a difference of two times that share a part of theirs."""
    one, other = float(first), float(second)
    return cast("float", math.sqrt(max(one * one + other * other - 2.0 * shared * one * other, 0.0)))
