"""From work to a price. The core: no file, no name to look up, no clock; numbers or arrays in, records out.

The textbook, as the lesson has it: every kernel costs one launch and its bytes over the bandwidth, one after the
other. Arithmetic is reported and left out, caches and overlap are ignored. It is the model with every real
effect switched off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fusesim import roofline, work
from fusesim.arrays import ONE, spread
from fusesim.records import BOUNDS, ChainPrice, Price
from fusesim.run import ChainRun
from fusesim.schedule import textbook_launch_time

if TYPE_CHECKING:
    from fusesim.arrays import Numbers
    from fusesim.hardware import HardwareProfile
    from fusesim.work import Chain

_LAUNCH, _DRAM = (np.uint8(BOUNDS.index(name)) for name in ("launch", "dram"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Textbook:
    """The parameters of the textbook: seconds, B/s and FLOP/s; all of them broadcast."""

    launch_overhead: Numbers
    replay_overhead: Numbers
    graph_repeats: Numbers
    bandwidth: Numbers
    flop_rate: Numbers


def price_textbook_chain(
    chain: Chain,
    textbook: Textbook,
    *,
    device: HardwareProfile,
    dtype: str,
    launch: str,
    shape: tuple[int, ...],
) -> ChainPrice:
    """Price a chain by the textbook, unfused and fused.

    Parameters
    ----------
    chain : Chain
        The chain in numbers that broadcast to `shape`.
    textbook : Textbook
        Launch costs, bandwidth and arithmetic rate.
    device, dtype, launch
        Named in the result.
    shape : tuple of int
        Common shape of all arguments; () for scalars.

    Returns
    -------
    ChainPrice
        Every field has the shape `shape`.
    """
    unfused, fused = (
        Price(time=spread(run.time, shape), parts=run, shape=shape)
        for run in (TextbookRun(chain, kernels, textbook) for kernels in (chain.ops, 1))
    )
    saving = unfused.time - fused.time
    ridge = roofline.ridge_point(flop_rate=textbook.flop_rate, bandwidth=textbook.bandwidth)
    return ChainPrice(
        unfused=unfused,
        fused=fused,
        saving=saving,
        correlation=1.0,
        speedup=unfused.time / fused.time,
        ridge_point=spread(ridge, shape),
        elements=spread(chain.elements, shape),
        dtype=dtype,
        device=device,
        model="textbook",
        launch=launch,
    )


@dataclass(frozen=True, slots=True)
class TextbookRun(ChainRun):
    """A chain run as `kernels` kernels, one after the other; the `Parts` of its price."""

    textbook: Textbook

    @property
    def time(self) -> Numbers:
        """Launches plus memory. [s]."""
        return self.launch_time + self.memory_time

    @property
    def launch_time(self) -> Numbers:
        """Launches alone. [s]."""
        return textbook_launch_time(
            kernels=self.kernels,
            launch_overhead=self.textbook.launch_overhead,
            replay_overhead=self.textbook.replay_overhead,
            graph_repeats=self.textbook.graph_repeats,
        )

    @property
    def memory_time(self) -> Numbers:
        """Every byte from device memory. [s]."""
        return roofline.memory_time(bytes_moved=self.dram_bytes, bandwidth=self.textbook.bandwidth)

    @property
    def compute_time(self) -> Numbers:
        """Arithmetic at the peak of the plain units; reported, not added. [s]."""
        return roofline.compute_time(flops=self.flops, flop_rate=self.textbook.flop_rate)

    @property
    def dram_bytes(self) -> Numbers:
        """All bytes: the textbook has no cache. [B]."""
        return work.bytes_moved(self.chain, self.kernels)

    @property
    def l2_bytes(self) -> Numbers:
        """None. [B]."""
        return np.float64(0)

    @property
    def interval_factors(self) -> tuple[Any, Any]:
        """The textbook states no uncertainty."""
        return ONE, ONE

    @property
    def bound_index(self) -> Any:
        """Launch where launches outweigh memory, else DRAM."""
        return np.where(self.launch_time > self.memory_time, _LAUNCH, _DRAM)
