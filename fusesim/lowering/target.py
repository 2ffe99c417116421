"""Where kernels are to run, as lowering needs it: the machine, and what its matrix units can do."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fusesim.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusesim.hardware import HardwareProfile
    from fusesim.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A machine, FLOP/s of its matrix units by element type, plain arithmetic where a type has none, and its limits."""

    machine: Machine
    matrix: Mapping[str, float] = field(default_factory=dict)
    vector: float = 0.0
    registers: int = 65536
    limits: Limits = field(default_factory=Limits)

    def peak(self, kind: str) -> float:
        """Return the rate of products of that type. [FLOP/s]."""
        return self.matrix.get(kind) or self.vector


def target_of(machine: Machine, profile: HardwareProfile) -> Target:
    """Join a machine and its datasheet's peaks."""
    matrix = {}
    for name in ("bf16", "fp16", "tf32", "fp8", "int8", "fp64"):
        rate = profile.tensor_rate(name)
        if not math.isnan(rate):
            matrix[name] = rate
    vector = profile.vector_rate("fp32")
    plain = 0.0 if math.isnan(vector) else vector
    return Target(machine=machine, matrix=matrix, vector=plain, limits=Limits.of(profile))
