"""From work to a price. The core: no file, no name to look up, no clock; numbers or arrays in, records out.

The textbook, as the lesson has it: every kernel costs one launch and its bytes over the bandwidth, one after the
other. Arithmetic is reported and left out, caches and overlap are ignored. It is the model with every real
effect switched off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fusesim.arrays import spread
from fusesim.memory import allocation, chain_peak_memory
from fusesim.records import BOUNDS, ChainPrice, Price
from fusesim.roofline import compute_time, memory_time, ridge_point
from fusesim.schedule import textbook_launch_time
from fusesim.work import Chain, Work, chain_work

if TYPE_CHECKING:
    from fusesim.arrays import Numbers
    from fusesim.hardware import HardwareProfile

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
    tensor = allocation(chain.elements * chain.itemsize)
    unfused, fused = (_price_work(work, tensor, textbook, shape) for work in chain_work(chain))
    saving = unfused.time - fused.time
    ridge = ridge_point(flop_rate=textbook.flop_rate, bandwidth=textbook.bandwidth)
    return ChainPrice(
        unfused=unfused,
        fused=fused,
        saving=saving,
        saving_interval=(saving, saving),
        speedup=unfused.time / fused.time,
        ridge_point=spread(ridge, shape),
        elements=spread(chain.elements, shape),
        dtype=dtype,
        device=device,
        model="textbook",
        launch=launch,
    )


def _price_work(work: Work, tensor: Numbers, textbook: Textbook, shape: tuple[int, ...]) -> Price:
    """Price kernels that run one after the other."""
    launches = textbook_launch_time(
        kernels=work.kernels,
        launch_overhead=textbook.launch_overhead,
        replay_overhead=textbook.replay_overhead,
        graph_repeats=textbook.graph_repeats,
    )
    moved = work.bytes_read + work.bytes_written
    memory = memory_time(bytes_moved=moved, bandwidth=textbook.bandwidth)
    time = spread(launches + memory, shape)
    fields: dict[str, Any] = {
        "kernels": work.kernels,
        "bytes_read": work.bytes_read,
        "bytes_written": work.bytes_written,
        "dram_bytes": moved,
        "l2_bytes": 0.0,
        "flops": work.flops,
        "launch_time": launches,
        "memory_time": memory,
        "compute_time": compute_time(flops=work.flops, flop_rate=textbook.flop_rate),
        "peak_memory": chain_peak_memory(tensor=tensor, kernels=work.kernels),
        "bound_index": np.where(launches > memory, _LAUNCH, _DRAM),
    }
    return Price(time=time, interval=(time, time), **{key: spread(value, shape) for key, value in fields.items()})
