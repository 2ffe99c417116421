"""A measured chain, whatever file it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fusesim import units

NAMED_OPS: Final = 3
"""A label names so many distinct ops of a chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measured time of a chain. [s].

    `sets` is over how many buffer sets passes rotated, and in mode ``"graph"`` how many passes one graph held;
    `host_interval` is what the host needed per launch, None where it does not matter or nobody measured it.
    """

    source: str
    suite: str
    path: str
    mode: str
    ops: tuple[str, ...]
    elements: int
    dtype: str
    row: int | None
    sets: int
    fused: bool
    time: float
    host_interval: float | None = None

    @property
    def chain(self) -> tuple[Any, ...]:
        """What two measurements have in common if one is the other's fused form."""
        return (
            *(self.source, self.suite, self.path, self.mode, self.ops),
            *(self.elements, self.dtype, self.row, self.sets),
        )

    @property
    def label(self) -> str:
        """The case in words."""
        names = list(dict.fromkeys(self.ops))
        ops = "+".join(names[:NAMED_OPS]) + ("+..." if len(names) > NAMED_OPS else "")
        side = "fused" if self.fused else "unfused"
        size = units.format_count(self.elements)
        return f"{self.path} {self.mode} {side}, {len(self.ops)} ops ({ops}), {size} {self.dtype}"
