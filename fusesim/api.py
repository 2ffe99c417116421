"""The front desk: names and plain values in, records out. Looks things up, checks them, calls the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from fusesim import store, units
from fusesim.errors import InputError
from fusesim.hardware import HardwareProfile
from fusesim.inputs import MAX_OPS, choice, common_shape, number
from fusesim.ops import DType, Op, find_dtype, find_ops
from fusesim.price import Textbook, price_textbook_chain
from fusesim.roofline import ridge_point
from fusesim.schedule import LAUNCH_MODES, TEXTBOOK_LAUNCH, TEXTBOOK_REPLAY
from fusesim.work import Chain

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from fusesim.arrays import Numbers
    from fusesim.records import ChainPrice

MODELS: Final = ("textbook",)
PATHS: Final = ("cuda", "cupy", "torch", "inductor")
INPUT_STATES: Final = ("cold", "warm")


def find_device(name: str | HardwareProfile) -> HardwareProfile:
    """Return a device by its id or an alias.

    Parameters
    ----------
    name : str or HardwareProfile
        For example ``"h100-sxm"``; an alias such as ``"h100"`` gives the common part, whose `requested_as` says so.
        A record is returned as it is.

    Raises
    ------
    InputError
        If there is no such device.
    HardwareSpecError
        If its file is damaged.

    Examples
    --------
    >>> find_device("h100").id, find_device("h100").dram_bandwidth
    ('h100-sxm', 3350000000000.0)
    """
    return name if isinstance(name, HardwareProfile) else store.load_known_device(name)


def list_devices() -> tuple[str, ...]:
    """Return the id of every device that is shipped."""
    return store.device_ids()


def load_device(path: str | Path) -> HardwareProfile:
    """Read and check a device file of your own; pass the record wherever a device name is accepted.

    Raises
    ------
    HardwareSpecError
        Names the file, the key and what is wrong.
    """
    return store.load_device_file(path)


class Ceiling(NamedTuple):
    """One limit on arithmetic: its name, its dense peak, and where the memory stops being the limit."""

    name: str
    flop_rate: float
    ridge_point: float


def ceilings(device: str | HardwareProfile) -> list[Ceiling]:
    """Return the arithmetic ceilings that a device's file states, plain units first. [FLOP/s, FLOP/B].

    Examples
    --------
    >>> [f"{c.name} {c.ridge_point:.0f}" for c in ceilings("h100-sxm") if c.name in {"fp32", "bf16 tensor"}]
    ['fp32 20', 'bf16 tensor 295']
    """
    profile = find_device(device)
    rates: dict[str, float] = {str(name): peak.rate.si for name, peak in profile.vector.items()}
    rates |= {f"{name} tensor": peak.rate.si for name, peak in profile.tensor.items()}
    bandwidth = profile.dram_bandwidth
    return [
        Ceiling(name, rate, float(ridge_point(flop_rate=rate, bandwidth=bandwidth))) for name, rate in rates.items()
    ]


def price_chain(
    ops: ArrayLike | str | list[str | Op],
    elements: ArrayLike,
    *,
    dtype: str = "bf16",
    device: str | HardwareProfile = "h100-sxm",
    model: str = "textbook",
    launch: str = "stream",
    path: str = "cuda",
    row: ArrayLike | None = None,
    inputs: str = "cold",
    graph_repeats: ArrayLike = 1,
    calibration: object = None,
    launch_overhead: ArrayLike | None = None,
    replay_overhead: ArrayLike | None = None,
    dram_bandwidth: ArrayLike | None = None,
    host_interval: ArrayLike | None = None,
) -> ChainPrice:
    """Price a chain of element-wise operations as separate kernels and as one.

    Parameters
    ----------
    ops : int, array of int, str or list of str
        How many identical operations (multiplications by a scalar), 1 to 10^6; or one name; or the names of one
        chain, see `fusesim.ops.OPS`.
    elements : int or array of int
        Elements of the tensor, 1 to 10^18.
    dtype : str
        Element type: fp64, fp32, tf32, bf16, fp16, fp8 or int8.
    device : str or HardwareProfile
        Where it runs.
    model : str
        ``"textbook"``.
    launch : str
        ``"stream"`` or ``"latency"`` (the same in the textbook), or ``"graph"``: one pass inside a captured CUDA
        graph and its share 1/`graph_repeats` of a replay.
    path : str
        Whose kernels: ``"cuda"``, ``"cupy"``, ``"torch"``, ``"inductor"``. Ignored by the textbook.
    row : int or array of int, optional
        Length of the row that add_row and mul_row broadcast; divides `elements`.
    inputs : str
        ``"cold"`` or ``"warm"``. Ignored by the textbook.
    graph_repeats : int or array of int
        Passes in one captured graph.
    calibration : optional
        Refused by the textbook, which has none.
    launch_overhead : float or array, optional
        Per kernel, or per graph node; 4 us and 1 us unless given. [s]
    replay_overhead : float or array, optional
        Per graph replay, 5 us unless given. [s]
    dram_bandwidth : float or array, optional
        In place of the datasheet's. [B/s]
    host_interval : optional
        Refused by the textbook, which does not overlap host and device.

    Returns
    -------
    ChainPrice
        All arguments broadcast; every field of both prices has the common shape.

    Raises
    ------
    InputError
        If an argument is wrong; the sentence says which, and what is accepted.

    Examples
    --------
    >>> price = price_chain(5, 8192 * 4096, dtype="bf16", device="h100-sxm")
    >>> f"{price.unfused.time:.4e} {price.fused.time:.4e} {price.speedup:.2f}"
    '2.2032e-04 4.4065e-05 5.00'
    """
    choice("model", model, MODELS)
    choice("path", path, PATHS)
    choice("input state", inputs, INPUT_STATES)
    for name, value in (("host_interval", host_interval), ("calibration", calibration)):
        if value is not None:
            raise InputError(f"the textbook takes no {name}: it neither measures nor overlaps; leave it out")
    mode = choice("launch mode", launch, LAUNCH_MODES)
    profile, element_type = find_device(device), find_dtype(dtype)
    chain = _chain(ops, elements, row, element_type.itemsize)
    textbook = _textbook(
        launch=mode,
        launch_overhead=launch_overhead,
        replay_overhead=replay_overhead,
        graph_repeats=graph_repeats,
        dram_bandwidth=dram_bandwidth,
        profile=profile,
        dtype=element_type,
    )
    shape = common_shape(
        ops=chain.ops,
        elements=chain.elements,
        row=chain.row,
        graph_repeats=textbook.graph_repeats,
        launch_overhead=textbook.launch_overhead,
        replay_overhead=textbook.replay_overhead,
        dram_bandwidth=textbook.bandwidth,
    )
    return price_textbook_chain(chain, textbook, device=profile, dtype=element_type.name, launch=mode, shape=shape)


def _chain(ops: Any, elements: Any, row: Any, itemsize: int) -> Chain:
    """Check the chain's arguments and count its operands."""
    size = number("elements", elements, low=1, high=units.MAX_ELEMENTS, whole=True)
    if isinstance(ops, str | Op):
        ops = [ops]
    named = find_ops(ops) if isinstance(ops, list | tuple) and any(isinstance(op, str | Op) for op in ops) else None
    if named is None:
        count = number("ops", ops, low=1, high=MAX_OPS, whole=True)
        flops, tensors, rows = count, 0, 0
    else:
        count = np.float64(len(named))
        flops = np.float64(sum(op.flops for op in named))
        tensors, rows = sum(op.tensors for op in named), sum(op.rows for op in named)
    return Chain(
        ops=count,
        flops=flops,
        tensors=tensors,
        rows=rows,
        elements=size,
        row=_row(row, size, needed=rows > 0),
        itemsize=itemsize,
    )


def _row(row: Any, elements: Numbers, *, needed: bool) -> Numbers:
    """Check the row length: given where an op needs it, and a divisor of the elements."""
    if row is None:
        if needed:
            raise InputError("add_row and mul_row broadcast a row: give its length, row=..., a divisor of elements")
        return np.float64(1)
    length = number("row", row, low=1, high=units.MAX_ELEMENTS, whole=True)
    common_shape(row=length, elements=elements)
    if np.any(np.remainder(elements, length)):
        raise InputError("row does not divide elements; give the length of the tensor's last dimension")
    return length


def _textbook(
    *,
    launch: str,
    launch_overhead: Any,
    replay_overhead: Any,
    graph_repeats: Any,
    dram_bandwidth: Any,
    profile: HardwareProfile,
    dtype: DType,
) -> Textbook:
    """Check the textbook's parameters and fill in its defaults."""
    overhead = TEXTBOOK_LAUNCH[launch] if launch_overhead is None else launch_overhead
    replay = TEXTBOOK_REPLAY if replay_overhead is None else replay_overhead
    bandwidth = profile.dram_bandwidth if dram_bandwidth is None else dram_bandwidth
    checked_replay = number("replay_overhead", replay, low=0, high=1, unit="s")
    return Textbook(
        launch_overhead=number("launch_overhead", overhead, low=0, high=1, unit="s"),
        replay_overhead=checked_replay * (launch == "graph"),  # keeps its shape on a stream too
        graph_repeats=number("graph_repeats", graph_repeats, low=1, high=10**9, whole=True),
        bandwidth=number("dram_bandwidth", bandwidth, low=10**6, high=10**18, unit="B/s"),
        flop_rate=np.float64(profile.vector_rate(dtype.compute)),
    )
