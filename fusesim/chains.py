"""The front desk for chains: plain values in, a price out. Checks arguments, looks names up, calls the core."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusesim import calibrations, store, units
from fusesim.api import find_device
from fusesim.arrays import ONE, ZERO, bare
from fusesim.calibrated import price_calibrated_chain
from fusesim.calibration import machine_of
from fusesim.chain_kernels import Situation
from fusesim.errors import InputError, excerpt, unknown_name
from fusesim.inputs import (
    MAX_BANDWIDTH,
    MAX_OPS,
    MAX_REPEATS,
    MAX_TIME,
    MIN_BANDWIDTH,
    choice,
    common_shape,
    number,
)
from fusesim.machine import ALL_EFFECTS, EFFECTS
from fusesim.ops import DType, Op, find_dtype, find_ops
from fusesim.paths import STYLES
from fusesim.schedule import LAUNCH_MODES, TEXTBOOK_LAUNCH, TEXTBOOK_REPLAY
from fusesim.textbook import Textbook, price_textbook_chain
from fusesim.uncertainty import uncertainty_of
from fusesim.work import Chain, bare_chain

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from fusesim.arrays import Numbers
    from fusesim.calibration import Calibration
    from fusesim.hardware import HardwareProfile
    from fusesim.machine import Machine
    from fusesim.records import ChainPrice
    from fusesim.uncertainty import Uncertainty

MODELS: Final = ("textbook", "calibrated")
INPUT_STATES: Final = ("cold", "warm")
COLD: Final = np.float64(np.inf)
"""Buffer sets of inputs that no earlier call has touched."""


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
    inputs: str | ArrayLike = "cold",
    graph_repeats: ArrayLike = 1,
    calibration: Calibration | str | Path | None = None,
    launch_overhead: ArrayLike | None = None,
    replay_overhead: ArrayLike | None = None,
    dram_bandwidth: ArrayLike | None = None,
    host_interval: ArrayLike | None = None,
    effects: Iterable[str] | None = None,
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
        ``"textbook"``, or ``"calibrated"``: what was measured on the device, or on a relative of it.
    launch : str
        ``"stream"``, the period of a chain while the queue is full; ``"latency"``, one chain from idle to the end
        of the synchronise (the same in the textbook); or ``"graph"``, one pass inside a captured CUDA graph and its
        share 1/`graph_repeats` of a replay.
    path : str
        Whose kernels: ``"cuda"``, ``"cupy"``, ``"torch"``, ``"inductor"``. Ignored by the textbook.
    row : int or array of int, optional
        Length of the row that add_row and mul_row broadcast; divides `elements`.
    inputs : str or int or array of int
        ``"cold"``, first read from memory; ``"warm"``, the same call repeated on the same buffers; or over how many
        sets of buffers repeated calls rotate. In a graph of several passes cold means buffers of its own for each
        pass: the next replay finds in the cache what the others have left there. Ignored by the textbook.
    graph_repeats : int or array of int
        Passes in one captured graph.
    calibration : Calibration, str or path, optional
        A record, the name of a shipped one, or a file; else the user's own for the device, else the shipped one,
        else one transferred from a relative. Refused by the textbook, which has none.
    launch_overhead : float or array, optional
        Per kernel, or per graph node. Textbook: 4 us and 1 us unless given; calibrated: in place of the measured
        floor. [s]
    replay_overhead : float or array, optional
        Per graph replay. Textbook: 5 us unless given; calibrated: in place of the measured cost. [s]
    dram_bandwidth : float or array, optional
        In place of the datasheet's; the share of it that is reached still applies. [B/s]
    host_interval : float or array, optional
        What the host needs per launch, in place of the path's own. Refused by the textbook, which does not overlap
        host and device. [s]
    effects : iterable of str, optional
        Which of `fusesim.machine.EFFECTS` to count; all unless given, and none is the textbook. Refused by the
        textbook.

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
    kind, mode = choice("model", model, MODELS), choice("launch mode", launch, LAUNCH_MODES)
    owner: Any = choice("path", path, tuple(STYLES))
    sets = _buffer_sets(inputs, graph_repeats if mode == "graph" else 1)
    profile, element_type = find_device(device), find_dtype(dtype)
    named = _names(ops)
    chain = _chain(ops, named, elements, row, element_type.itemsize)
    overhead = {"launch_overhead": launch_overhead, "replay_overhead": replay_overhead}
    textbook = _textbook(mode, graph_repeats, dram_bandwidth, profile, element_type, **overhead)
    if kind == "textbook":
        _refuse(host_interval=host_interval, calibration=calibration, effects=effects)
        shape = _shape(chain, textbook)
        return price_textbook_chain(chain, textbook, device=profile, dtype=element_type.name, launch=mode, shape=shape)
    record, measured, uncertainty = _calibrated(profile, calibration)
    if replay_overhead is not None:
        uncertainty = uncertainty._replace(replay=0.0)  # the caller knows it
    counted = _effects(effects)
    machine = _machine(measured, textbook, overridden=dram_bandwidth is not None)
    measured_floor = "floor" in counted and launch_overhead is None
    measured_replay = "replay" in counted and replay_overhead is None
    situation = Situation(
        dtype=element_type,
        style=STYLES[owner],
        launch=mode,
        buffer_sets=bare(sets),
        effects=counted,
        floor=machine.floor + record.paths[owner].gap if measured_floor else bare(textbook.launch_overhead),
        stream_gap=machine.stream_gap if measured_floor and mode != "graph" else ZERO,
        replay=machine.replay if measured_replay else bare(textbook.replay_overhead),
        graph_repeats=bare(textbook.graph_repeats),
        host_interval=bare(_host_interval(record, owner, host_interval)),
        host_factors=_host_factors(record, owner) if host_interval is None else (1.0, 1.0),
    )
    return price_calibrated_chain(
        bare_chain(chain),
        named,
        situation=situation,
        machine=machine,
        uncertainty=uncertainty,
        calibration=record.name,
        device=profile,
        shape=_shape(chain, textbook, host_interval=situation.host_interval, inputs=sets),
    )


def _refuse(**arguments: Any) -> None:
    """Refuse arguments that have no meaning in the textbook."""
    for name, value in arguments.items():
        if value is not None:
            raise InputError(f"the textbook takes no {name}: it neither measures nor overlaps; leave it out")


def _shape(chain: Chain, textbook: Textbook, **more: Any) -> tuple[int, ...]:
    """Return the common shape of all arguments."""
    return common_shape(
        ops=chain.ops,
        elements=chain.elements,
        row=chain.row,
        graph_repeats=textbook.graph_repeats,
        launch_overhead=textbook.launch_overhead,
        replay_overhead=textbook.replay_overhead,
        dram_bandwidth=textbook.bandwidth,
        **more,
    )


def _buffer_sets(inputs: Any, passes: Any) -> Numbers:
    """Return over how many buffer sets repeated calls rotate.

    Infinitely many where inputs are cold, but a graph of several passes, each on its own buffers, is replayed on them.
    """
    if isinstance(inputs, str):
        if choice("input state", inputs, INPUT_STATES) != "cold":
            return ONE
        own = number("graph_repeats", passes, low=1, high=10**9, whole=True)
        return np.where(own > 1, own, COLD) if np.ndim(own) else (own if own > 1 else COLD)
    return number("inputs", inputs, low=1, high=10**9, whole=True)


def _effects(effects: Iterable[str] | None) -> frozenset[str]:
    """Return the effects to count."""
    if effects is None:
        return ALL_EFFECTS
    if not isinstance(effects, Iterable):
        raise InputError(f"effects is {excerpt(effects)}; give a list of names, from {', '.join(EFFECTS)}")
    chosen = [effects] if isinstance(effects, str) else list(effects)
    for effect in chosen:
        if effect not in EFFECTS:
            raise unknown_name("effect", effect, EFFECTS)
    return frozenset(chosen)


def _machine(machine: Machine, textbook: Textbook, *, overridden: bool) -> Machine:
    """Put the caller's bandwidth in place of the datasheet's, keeping the share that is reached."""
    if not overridden:
        return machine
    peak: Any = textbook.bandwidth  # may be an array: a machine's bandwidths broadcast like all else
    return dataclasses.replace(
        machine, peak_bandwidth=peak, bandwidth=machine.bandwidth / machine.peak_bandwidth * peak
    )


def _host_interval(record: Calibration, path: Any, host_interval: Any) -> Numbers:
    """Return what the host needs per launch."""
    if host_interval is not None:
        return number("host_interval", host_interval, low=0, high=MAX_TIME, unit="s")
    return np.float64(record.paths[path].interval)


def _host_factors(record: Calibration, path: Any) -> tuple[float, float]:
    """Return the range of a path's host interval over it."""
    cost = record.paths[path]
    return cost.low / cost.interval, cost.high / cost.interval


def _calibrated(profile: HardwareProfile, given: Any) -> tuple[Calibration, Machine, Uncertainty]:
    """Return the calibration of a device in the forms that pricing needs."""
    if given is None and store.is_shipped(profile):
        return _shipped_device(profile.id)
    record = calibrations.find_calibration(profile, given)
    return record, machine_of(record, profile), uncertainty_of(record)


@cache
def _shipped_device(name: str) -> tuple[Calibration, Machine, Uncertainty]:
    """Prepare a shipped device once a process."""
    profile = store.load_known_device(name)
    record = calibrations.find_calibration(profile)
    return record, machine_of(record, profile), uncertainty_of(record)


def _names(ops: Any) -> tuple[Op, ...] | None:
    """Return the ops of a chain that names them, None for one that is given by its length."""
    if isinstance(ops, str | Op):
        ops = [ops]
    if not (isinstance(ops, list | tuple) and any(isinstance(op, str | Op) for op in ops)):
        return None
    number("ops", len(ops), low=1, high=MAX_OPS, whole=True)
    return find_ops(ops)


def _chain(ops: Any, named: tuple[Op, ...] | None, elements: Any, row: Any, itemsize: int) -> Chain:
    """Check the chain's arguments and count its operands."""
    size = number("elements", elements, low=1, high=units.MAX_ELEMENTS, whole=True)
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
    launch: str,
    graph_repeats: Any,
    dram_bandwidth: Any,
    profile: HardwareProfile,
    dtype: DType,
    *,
    launch_overhead: Any,
    replay_overhead: Any,
) -> Textbook:
    """Check the textbook's parameters and fill in its defaults."""
    overhead = TEXTBOOK_LAUNCH[launch] if launch_overhead is None else launch_overhead
    replay = TEXTBOOK_REPLAY if replay_overhead is None else replay_overhead
    bandwidth = profile.dram_bandwidth if dram_bandwidth is None else dram_bandwidth
    checked_replay = number("replay_overhead", replay, low=0, high=MAX_TIME, unit="s")
    return Textbook(
        launch_overhead=number("launch_overhead", overhead, low=0, high=MAX_TIME, unit="s"),
        replay_overhead=checked_replay * (launch == "graph"),  # keeps its shape on a stream too
        graph_repeats=number("graph_repeats", graph_repeats, low=1, high=MAX_REPEATS, whole=True),
        bandwidth=number("dram_bandwidth", bandwidth, low=MIN_BANDWIDTH, high=MAX_BANDWIDTH, unit="B/s"),
        flop_rate=np.float64(profile.vector_rate(dtype.compute)),
    )
