"""One view of the chain page as a record of plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fusesim.machine import EFFECTS

from .chain_text import broadcasts

STOPS: Final = ("textbook", *EFFECTS[:-1], "calibrated")
"""Where the model's stepper can stand, named after the effect that is switched on last."""

ROTATING: Final = "rotating"
"""Passes use as many buffer sets as the measurements that are laid over the curves did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One view of the chain page.

    `ops` is a number of identical operations or the names of a chain, empty while it is being built anew. `step` is
    how many effects are switched on. `row` counts only where an op broadcasts one. `None` follows: the launch
    mode or the device, the path, the way in which buffers are used.
    """

    ops: int | tuple[str, ...] = 5
    row: int = 4096
    elements: int = 8192 * 4096
    dtype: str = "bf16"
    device: str = "h100-sxm"
    launch: str = "stream"
    step: int = 0
    inputs: str = "cold"
    path: str = "cuda"
    repeats: int | None = None
    host_interval: float | None = None
    launch_overhead: float | None = None
    dram_bandwidth: float | None = None

    @property
    def named(self) -> tuple[str, ...] | None:
        """The names of the chain's ops, None where they are identical ones."""
        return None if isinstance(self.ops, int) else self.ops

    @property
    def length(self) -> int:
        """How many ops the chain has."""
        return self.ops if isinstance(self.ops, int) else len(self.ops)

    @property
    def effective_row(self) -> int | None:
        """Length of the row that ops of the chain read, None where none does."""
        return self.row if broadcasts(self.named or ()) else None

    @property
    def effects(self) -> tuple[str, ...]:
        """The effects that are switched on."""
        return EFFECTS[: self.step]

    @property
    def complete(self) -> bool:
        """Whether every effect is on, which is what intervals are known for."""
        return self.step == len(EFFECTS)
