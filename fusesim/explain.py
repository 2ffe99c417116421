"""What decides a price, in sentences with figures. Reads records, computes no price.

One function per statement; each returns the sentences it has to say, none where it has nothing to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fusesim import units

if TYPE_CHECKING:
    from fusesim.records import ChainPrice, Price

BOUND_IN_WORDS: Final = {
    "launch": "launches and the latency behind them",
    "host": "the host, which cannot issue kernels as fast as the device runs them",
    "dram": "device memory",
    "l2": "the path to the cache",
    "issue": "instruction issue",
    "sfu": "special functions (exp, division, rsqrt)",
    "tensor": "tensor cores",
    "fma": "plain arithmetic units (not tensor cores)",
}


def chain_sentences(price: ChainPrice) -> list[str]:
    """Return what decides the price of one chain, the most important first."""
    if price.model == "textbook":
        return [verdict(price), *crossover(price), *intensity(price), *left_out(price), *capacity(price)]
    return [
        verdict(price),
        *binds(price),
        *served(price),
        *launches(price),
        *short_of(price),
        *capacity(price),
        *provenance(price),
    ]


def verdict(price: ChainPrice) -> str:
    """Say in one line what fusing is worth and why."""
    unfused, fused = price.unfused, price.fused
    share = units.format_share(float(unfused.launch_share))
    before, after = (units.format_quantity(float(p.bytes_moved), units.SIZE) for p in (unfused, fused))
    if unfused.kernels == 1:
        return f"one op is one kernel either way: nothing to fuse, {after} moved, launches are {share} of the time"
    moved = f"fused moves {after} instead of {before}"
    if unfused.bound in {"launch", "host"}:
        saved = f"fusing leaves 1 of {unfused.kernels:.0f} launches"
        kind = f"{unfused.bound}-bound"
        return f"{kind}: launches are {share} of the unfused time, and {saved}; {moved}"
    kind = "memory-bound" if unfused.bound in {"dram", "l2"} else "arithmetic-bound"
    return f"{kind}: {moved}; launches are {share} of the unfused time"


def crossover(price: ChainPrice) -> list[str]:
    """Say at which size launches and memory weigh the same (textbook)."""
    per_element = float(price.unfused.memory_time) / float(price.elements)
    size = float(price.unfused.launch_time) / per_element
    if size < 1:
        return []
    about = units.format_count(float(f"{size:.2g}"))
    return [f"launches and memory weigh the same at about {about} elements; below, launches decide"]


def intensity(price: ChainPrice) -> list[str]:
    """Place the chain under the roofline."""
    ridge = float(price.ridge_point)
    if np.isnan(ridge):
        return []
    before, after = (float(side.arithmetic_intensity) for side in (price.unfused, price.fused))
    side = "below" if after < ridge else "above"
    moved = f"arithmetic intensity is {before:.3g} FLOP/B unfused and {after:.3g} fused"
    return [f"{moved}, {side} the ridge point of {ridge:.3g} FLOP/B; the textbook leaves arithmetic out"]


def left_out(price: ChainPrice) -> list[str]:
    """Warn where the arithmetic that the textbook leaves out takes longer than the whole price."""
    alone = float(price.fused.compute_time)
    sides = {"unfused": float(price.unfused.time), "fused": float(price.fused.time)}
    if price.unfused.kernels == 1:
        sides.pop("unfused")
    shorter = [f"the {name} {units.format_quantity(time, units.TIME)}" for name, time in sides.items() if alone > time]
    if not shorter:
        return []
    takes = f"arithmetic alone takes {units.format_quantity(alone, units.TIME)} at the peak rate"
    return [
        f"{takes}, longer than {' and '.join(shorter)}: the textbook leaves it out, so no real kernel is that quick"
    ]


def binds(price: ChainPrice) -> list[str]:
    """Say which ceiling binds each side."""
    unfused, fused = (BOUND_IN_WORDS[side.bound] for side in (price.unfused, price.fused))
    if price.unfused.kernels == 1 or unfused == fused:
        return [f"what binds is {fused}"]
    return [f"unfused is bound by {unfused}, fused by {fused}"]


def served(price: ChainPrice) -> list[str]:
    """Say how much of the unfused traffic the cache served, where it served any."""
    total = float(price.unfused.bytes_moved)
    kept = float(price.unfused.l2_bytes)
    if kept < WORTH_SAYING * total:
        return []
    cached, memory = (units.format_quantity(size, units.SIZE) for size in (kept, float(price.unfused.dram_bytes)))
    return [f"the cache serves {cached} of the unfused bytes, so only {memory} go to device memory and back"]


def launches(price: ChainPrice) -> list[str]:
    """Say what launches cost, and whether they are hidden behind the device."""
    if price.launch == "graph" or price.unfused.kernels == 1:
        return []
    host, device = (float(getattr(price.unfused.parts, name)) for name in ("host_time", "device_time"))
    issue, run = (units.format_quantity(time, units.TIME) for time in (host, device))
    if host > device:
        return [f"the host needs {issue} to issue the unfused kernels, longer than the {run} they run: a graph helps"]
    return [f"the host issues the unfused kernels in {issue}, hidden behind the {run} that they run"]


def short_of(price: ChainPrice) -> list[str]:
    """Say why the speedup is less than the number of kernels saved, where it clearly is."""
    count, speedup = float(price.unfused.kernels), float(price.speedup)
    if count == 1 or speedup > SHORT * count:
        return []
    reason = {
        "issue": "the fused kernel still has to issue every op's instructions",
        "sfu": "the fused kernel still has to do every special function",
        "launch": "what one kernel costs to start, end and wait for its first bytes stays",
        "dram": "the cache already spared the unfused kernels much of the traffic",
        "l2": "the cache already spared the unfused kernels much of the traffic",
        "host": "the host's launch of one kernel stays",
    }.get(price.fused.bound, "")
    return [f"{units.format_ratio(speedup)} and not {count:.0f}x: {reason}"]


def capacity(price: ChainPrice) -> list[str]:
    """Say so where the chain does not fit the device's memory."""
    memory = price.device.memory.capacity
    least = float(price.fused.peak_memory) * 2  # the chain's input is as large as its output
    if memory is None or least <= memory.si:
        return []
    need, have = (units.format_quantity(size, units.SIZE) for size in (least, memory.si))
    return [f"input and output take {need}, more than the {have} of {price.device.id}: it will not fit"]


def provenance(price: ChainPrice) -> list[str]:
    """Say what the price rests on and how sure it is."""
    like = price.unfused.parts.situation.style.like  # type: ignore[attr-defined]
    own = [f"nothing was fitted to this path: its kernels are taken to be those of path {like}"] if like else []
    if price.unfused.kernels == 1:
        return [f"priced by calibration {price.unfused.calibration}", *own]
    low, high = (units.format_quantity(float(end), units.TIME) for end in price.saving_interval)
    sure = "if that holds" if like else "with 90 % confidence"
    return [*own, f"the saving is {low} to {high} {sure}, by calibration {price.unfused.calibration}"]


def one_side(price: Price) -> str:
    """Return what binds one price, in words."""
    return BOUND_IN_WORDS[str(price.bound)]


WORTH_SAYING: Final = 0.1
"""Shares below this are not worth a sentence."""

SHORT: Final = 0.85
"""A speedup below this share of the kernels saved wants a reason."""
