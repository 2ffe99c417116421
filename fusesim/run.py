"""What a run of a chain moves and computes, by counting alone: the same in every model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusesim import work
from fusesim.memory import allocation, chain_peak_memory

if TYPE_CHECKING:
    from fusesim.arrays import Numbers
    from fusesim.work import Chain


@dataclass(frozen=True, slots=True)
class ChainRun:
    """A chain run as `kernels` kernels, one after the other."""

    chain: Chain
    kernels: Numbers

    @property
    def bytes_read(self) -> Numbers:
        """Bytes read. [B]."""
        return work.bytes_read(self.chain, self.kernels)

    @property
    def bytes_written(self) -> Numbers:
        """Bytes written. [B]."""
        return work.bytes_written(self.chain, self.kernels)

    @property
    def flops(self) -> Numbers:
        """Arithmetic of the chain, the same however it is run. [FLOP]."""
        return self.chain.elements * self.chain.flops

    @property
    def peak_memory(self) -> Numbers:
        """Peak of live tensors above the input. [B]."""
        return chain_peak_memory(tensor=allocation(work.tensor_bytes(self.chain)), kernels=self.kernels)
