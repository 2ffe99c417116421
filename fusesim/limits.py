"""What one multiprocessor of a device allows a kernel: threads, registers, shared memory. Unknown stays unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusesim.hardware import Figure, HardwareProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits per multiprocessor and per block; None where nobody sourced the figure. [B] for shared memory."""

    sms: float | None = None
    threads: float | None = None
    blocks: float | None = None
    registers: float | None = None
    registers_per_thread: float | None = None
    shared_memory: float | None = None
    shared_memory_per_block: float | None = None

    @classmethod
    def of(cls, profile: HardwareProfile) -> Limits:
        """Return the limits that a device's profile states."""
        sm = profile.sm
        return cls(
            sms=_si(profile.chip.sms),
            threads=_si(sm.threads),
            blocks=_si(sm.blocks),
            registers=_si(sm.registers),
            registers_per_thread=_si(sm.registers_per_thread),
            shared_memory=_si(sm.shared_memory),
            shared_memory_per_block=_si(sm.shared_memory_per_block),
        )


def _si(figure: Figure | None) -> float | None:
    """Return a figure in base units, None where there is none."""
    return figure.si if figure is not None else None
