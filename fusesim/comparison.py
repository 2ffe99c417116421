"""A graph priced in two ways: the saving with its interval, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fusesim.breakeven import break_even, compile_time
from fusesim.common_kernels import Side, common_of, identical, saving_deviation
from fusesim.flip import find_flip
from fusesim.plan_run import PlanRun
from fusesim.plan_sentences import comparison_sentences

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.flip import Flip
    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.hardware import HardwareProfile
    from fusesim.records import Price


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Two prices of one graph. `saving` = unfused - fused [s], may be negative; `speedup` = unfused / fused.

    `fused_path` is whose kernels the fused side's are. `larger` prices the graph so many times as large in the same
    way, and `dimension` is the name of the size that it scales with what it is now; without them nobody knows where
    the verdict flips.
    """

    graph: Graph
    unfused_plan: FusionPlan
    fused_plan: FusionPlan
    unfused: Price
    fused: Price
    device: HardwareProfile
    fused_path: str = "inductor"
    larger: Callable[[float], Comparison] | None = None
    dimension: tuple[str, float] | None = None

    @property
    def saving(self) -> float:
        """What the fused side saves. [s]."""
        return float(self.unfused.time - self.fused.time)

    @property
    def speedup(self) -> float:
        """Unfused over fused; 1 where nothing runs on either side, infinite where fusing leaves nothing to run."""
        before, after = float(self.unfused.time), float(self.fused.time)
        if after:
            return before / after
        return math.inf if before else 1.0

    @property
    def saving_interval(self) -> tuple[float, float]:
        """Ends of the 90 % interval of the saving; what both sides run alike cancels. [s]."""
        unfused, fused = self.unfused.parts, self.fused.parts
        if not (isinstance(unfused, PlanRun) and isinstance(fused, PlanRun)):
            return self.saving, self.saving
        if identical(unfused, fused):
            return 0.0, 0.0
        common = common_of(unfused, fused)
        before, after = (Side(max(run.time - common, 0.0), *run.interval_factors) for run in (unfused, fused))
        below, above = saving_deviation(before, after, common=common, shared=unfused.correlation)
        return self.saving - below, self.saving + above

    @cached_property
    def flip(self) -> Flip | None:
        """At which size the verdict flips; None where nothing says how the graph grows. Prices about 15 graphs."""
        if self.larger is None:
            return None
        larger = self.larger

        def gain(factor: float) -> float:
            return _gain(larger(factor))

        return find_flip(gain, _gain(self), self.dimension)

    def break_even_calls(self, compile_seconds: float | None = None) -> float:
        """Return after how many calls compiling the fused side has paid for itself; infinite where it never does.

        Parameters
        ----------
        compile_seconds : float, optional
            What compiling takes; what was measured of the path unless given (`fusesim.breakeven`). [s]

        Raises
        ------
        InputError
            If it is no time, or nothing was measured of the path.
        """
        if compile_seconds is None:
            compile_seconds = compile_time(self.fused_path, len(self.graph.paid_nodes)).seconds
        return break_even(compile_seconds, self.saving)

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


def _gain(compared: Comparison) -> float:
    """Return the saving over the longer of the two times."""
    longer = max(float(compared.unfused.time), float(compared.fused.time))
    return compared.saving / longer if longer else 0.0
