"""What decides the price of a plan, and of two plans of one graph, in sentences with figures.

One function per statement, as in `fusesim.explain`; each returns the sentences it has to say, none where it has nothing
to say. Reads records, computes no price.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim import units
from fusesim.decompose import RULES
from fusesim.explain import BOUND_IN_WORDS
from fusesim.fitting import sides_too_large, too_large
from fusesim.plan_losses import losing_kernels, short_blocks, spilled
from fusesim.plan_run import PlanRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fusesim.comparison import Comparison
    from fusesim.fusion import FusionPlan
    from fusesim.hardware import HardwareProfile
    from fusesim.plan_run import Kernel
    from fusesim.records import Price

WORTH_SAYING: Final = 0.02
"""Shares below this are not worth a sentence."""

UNSEEN: Final = 1e-3
"""Bytes below this share of all are none: what a small cache keeps of large tensors."""

EVEN: Final = 0.01
"""Two times that differ by less than this share of the longer are the same."""


def plan_sentences(plan: FusionPlan, price: Price, device: HardwareProfile | None = None) -> list[str]:
    """Return what decides the price of one plan, the most important first.

    Parameters
    ----------
    plan : FusionPlan
        The plan.
    price : Price
        Its price, of either model.
    device : HardwareProfile, optional
        Where it runs, so that what does not fit its memory is said.

    Returns
    -------
    list of str
        Sentences without a full stop.
    """
    return [
        *([] if device is None else too_large(plan.graph, device, float(price.peak_memory))),
        *binds(price),
        *lacking(price),
        *short(price),
        *served(price),
        *launches(price),
        *spills(plan, price),
        *again(price),
        *casts(plan, price),
        *composites(plan),
        *plan.notes,
        *certainty(price),
    ]


def comparison_sentences(comparison: Comparison) -> list[str]:
    """Return what decides between two plans of a graph, the most important first."""
    unfused, fused = comparison.unfused, comparison.fused
    return [
        verdict(comparison),
        *sides_too_large(comparison.graph, comparison.device, float(unfused.peak_memory), float(fused.peak_memory)),
        *moved(comparison),
        *(f"unfused: {sentence}" for sentence in binds(unfused)),
        *(f"fused: {sentence}" for sentence in binds(fused)),
        *lacking(unfused, fused),
        *(f"unfused: {sentence}" for sentence in short(unfused)),
        *(f"fused: {sentence}" for sentence in short(fused)),
        *fewer_launches(comparison),
        *(f"unfused: {sentence}" for sentence in host(unfused)),
        *(f"fused: {sentence}" for sentence in host(fused)),
        *losing_kernels(comparison),
        *short_of(comparison),
        *(f"fused: {sentence}" for sentence in (*spills(comparison.fused_plan, fused), *again(fused))),
        *(f"unfused: {sentence}" for sentence in casts(comparison.unfused_plan, unfused)),
        *composites(comparison.fused_plan),
        *flips(comparison),
        *sure(comparison),
    ]


def _time(value: float) -> str:
    """Write a time."""
    return units.format_quantity(value, units.TIME)


def _size(value: float) -> str:
    """Write a number of bytes."""
    return units.format_quantity(value, units.SIZE)


def counted(number: float, what: str) -> str:
    """Write a number of things.

    Examples
    --------
    >>> counted(1, "kernel"), counted(3, "kernel"), counted(2, "launch")
    ('1 kernel', '3 kernels', '2 launches')
    """
    ending = "" if number == 1 else "es" if what.endswith("ch") else "s"
    return f"{units.format_count(number)} {what}{ending}"


def verdict(comparison: Comparison) -> str:
    """Say what fusing is worth, in time and in kernels."""
    before, after = (_kernels(price) for price in (comparison.unfused, comparison.fused))
    kernels = f"{counted(before, 'kernel')} to {units.format_count(after)}"
    saving, times = comparison.saving, units.format_ratio(comparison.speedup)
    if abs(saving) <= EVEN * max(float(comparison.unfused.time), float(comparison.fused.time)):
        return f"both take the same time, {_time(float(comparison.fused.time))}: {kernels}"
    if saving < 0 and host_alone(comparison.unfused, comparison.fused):
        return f"{call_costs(comparison.unfused, comparison.fused)}: {times}, {kernels}"
    if saving < 0:
        return f"fusing loses {_time(-saving)}: {times}, {kernels}"
    return f"fusing saves {_time(saving)}: {times}, {kernels}"


def host_alone(unfused: Price, fused: Price) -> bool:
    """Return whether nothing is fused, and a compiled call costs the host more than launches of as many kernels."""
    before, after = unfused.parts, fused.parts
    if not (isinstance(before, PlanRun) and isinstance(after, PlanRun)):
        return False
    waits = after.settings.per_call and fused.bound == "host" and float(fused.time) > float(unfused.time)
    return waits and before.kernels == after.kernels and after.device_time <= before.device_time * (1.0 + EVEN)


def call_costs(unfused: Price, fused: Price) -> str:
    """Say what a compiled call costs the host where that alone makes the fused side longer."""
    before, after = unfused.parts, fused.parts
    issued = f"{_time(after.host_time)} of the host against {_time(before.host_time)} to launch "  # type: ignore[attr-defined]
    whose = f"{issued}{counted(_kernels(unfused), 'kernel')}"
    longer = _time(float(fused.time) - float(unfused.time))
    alike = "the kernels take no longer" if _kernels(unfused) > 1 else "the kernel takes no longer"
    return f"a compiled call costs {whose}, which makes it {longer} longer; {alike}"


def _kernels(price: Price) -> float:
    return float(price.kernels)


def moved(comparison: Comparison) -> list[str]:
    """Say how many bytes fusing saves, from memory and from the cache."""
    total, found = float(comparison.unfused.bytes_moved), []
    for name, where in (("dram_bytes", "from memory"), ("l2_bytes", "in the cache")):
        before, after = (float(getattr(side, name)) for side in (comparison.unfused, comparison.fused))
        if abs(before - after) > max(WORTH_SAYING * max(before, after), UNSEEN * total):
            found.append(f"{_size(abs(before - after))} {'fewer' if before > after else 'more'} {where}")
    if not found:
        return ["both move the same bytes"]
    return [f"bytes: {' and '.join(found)}; the unfused kernels touch {_size(total)}"]


def binds(price: Price) -> list[str]:
    """Say what binds the kernels, grouped by what does."""
    run = price.parts
    if not isinstance(run, PlanRun):
        return [f"launches take {_time(float(price.launch_time))}, memory {_time(float(price.memory_time))}"]
    by: dict[str, list[float]] = {}
    for kernel in run.kernels_run:
        by.setdefault(kernel.bound, []).append(kernel.total(run.settings))
    order = sorted(by.items(), key=lambda entry: -sum(entry[1]))
    if len(order) == 1:
        name, times = order[0]
        every = {1: "the kernel is", 2: "both kernels are"}.get(len(times), f"all {len(times)} kernels are")
        return [f"{every} bound by {BOUND_IN_WORDS[name]}, {_time(sum(times))}"]
    listed = (f"{len(times)} by {BOUND_IN_WORDS[name]} ({_time(sum(times))})" for name, times in order)
    return [f"{counted(_kernels(price), 'kernel')}, bound {', '.join(listed)}"] if order else []


def lacking(*prices: Price) -> list[str]:
    """Say which types of products the matrix units lack, and which of the same width would use them.

    fp32 is left out: its products are plain arithmetic on every device unless less precise ones are asked for.
    """
    plain = sorted({kernel.plain for price in prices for kernel in _run(price) if kernel.plain} - {"fp32"})
    found = []
    for kind in plain:
        runs = [price.parts for price in prices if isinstance(price.parts, PlanRun)]
        spare = "; fp16 would use them" if kind == "bf16" and "fp16" in runs[0].matrix_types else ""
        found.append(f"this GPU has no {kind} matrix units, so {kind} products run on plain arithmetic units{spare}")
    return found


def short(price: Price) -> list[str]:
    """Say which kernels have too little to do per block."""
    return short_blocks(price.parts) if isinstance(price.parts, PlanRun) else []


def served(price: Price) -> list[str]:
    """Say how much of the traffic the cache serves, where it serves any."""
    cached, memory = float(price.l2_bytes), float(price.dram_bytes)
    if cached <= WORTH_SAYING * (cached + memory):
        return []
    return [f"the cache serves {_size(cached)}, memory {_size(memory)}"]


def launches(price: Price) -> list[str]:
    """Say what share launches have, and whether the device waits for the host."""
    share = float(price.launch_share)
    said = [f"launches are {units.format_share(share)} of the time"] if share > WORTH_SAYING else []
    return [*said, *host(price)]


def host(price: Price) -> list[str]:
    """Say whether the host keeps up with the device, on a stream."""
    run = price.parts
    if not isinstance(run, PlanRun) or run.settings.mode == "graph":
        return []
    issue, device = run.host_time, run.device_time
    per = "call" if run.settings.per_call else "launch"
    if issue > device:
        spared = _time(issue - device)
        waits = f"the host needs {_time(issue)}, the device {_time(device)}"
        return [f"{waits} ({_time(run.settings.interval)} per {per}): a CUDA graph would spare up to {spared}"]
    return [f"the host issues in {_time(issue)}, hidden behind the device's {_time(device)}"]


def fewer_launches(comparison: Comparison) -> list[str]:
    """Say how much of the saving is launches, and whether a graph or the device hides them anyway."""
    unfused, fused = comparison.unfused, comparison.fused
    spared = float(unfused.launch_time) - float(fused.launch_time)
    fewer = _kernels(unfused) - _kernels(fused)
    if fewer <= 0 or comparison.saving <= 0:
        return []
    share = units.format_share(min(spared / comparison.saving, 1.0))
    return [
        f"{counted(fewer, 'launch').replace('launchs', 'launches')} fewer are {_time(spared)}, {share} of the saving"
    ]


def spills(plan: FusionPlan, price: Price) -> list[str]:
    """Say which kernels need more registers than there are."""
    run = price.parts
    if not isinstance(run, PlanRun):
        return []
    found = spilled(plan, run.limits)
    return [
        f"{name} keeps {use.live} values at once and needs {use.registers} registers per thread: {use.spilled} spill"
        for name, use in found
    ]


def again(price: Price) -> list[str]:
    """Say what is read again within a kernel: rows that do not stay on chip, and spilled registers."""
    found = [kernel.launch for kernel in _run(price) if kernel.launch.again > 0]
    if not found:
        return []
    size = sum(launch.again for launch in found)
    who = "1 kernel reads" if len(found) == 1 else f"{len(found)} kernels read"
    return [f"{who} {_size(size)} again: what is needed twice does not stay on chip"]


def casts(plan: FusionPlan, price: Price) -> list[str]:
    """Say what changes of type cost as kernels of their own."""
    kinds = plan.graph.by_name
    alone = [k for k in _run(price) if k.launch.nodes and all(kinds[n].kind == "cast" for n in k.launch.nodes)]
    if not alone:
        return []
    time = sum(kernel.time.time for kernel in alone)
    return [f"changes of type take {counted(len(alone), 'kernel')} of their own, {_time(time)}"]


def _run(price: Price) -> Sequence[Kernel]:
    """Return the kernels of a price of the calibrated model."""
    run = price.parts
    return run.kernels_run if isinstance(run, PlanRun) else ()


def composites(plan: FusionPlan) -> list[str]:
    """Say which composite ops stay whole, and which are written out."""
    source = plan.source if plan.source is not None else plan.graph
    now = plan.graph.by_name
    every = [node for node in source.paid_nodes if node.kind in RULES]
    kept = sorted({node.kind for node in every if node.name in now})
    out = sorted({node.kind for node in every if node.name not in now})
    found = [f"kept whole, a kernel of the framework's each: {_listed(kept)}"] if kept else []
    return [*found, f"written out so that its parts can be fused: {_listed(out)}"] if out else found


def _listed(names: Iterable[str]) -> str:
    """Write names with commas."""
    return ", ".join(names)


def short_of(comparison: Comparison) -> list[str]:
    """Say why a saving is less than the bytes and kernels saved would have it."""
    unfused, fused = comparison.unfused, comparison.fused
    expected = min(_kernels(unfused) / max(_kernels(fused), 1), _ratio(unfused.bytes_moved, fused.bytes_moved))
    reason = {
        "issue": "the fused kernels still issue every op's instructions",
        "sfu": "the fused kernels still compute every special function",
        "tensor": "the matrix products take as long as before",
        "fma": "the matrix products take as long as before",
    }.get(str(fused.bound))
    if not isinstance(fused.parts, PlanRun) or reason is None or comparison.speedup > expected * (1.0 - EVEN):
        return []
    return [f"{units.format_ratio(comparison.speedup)} is less than the bytes would have it: {reason}"]


def _ratio(before: object, after: object) -> float:
    """Return how many times fewer, 1 where there are none."""
    return float(before) / float(after) if float(after) else 1.0  # type: ignore[arg-type]


def flips(comparison: Comparison) -> list[str]:
    """Say at which size the verdict changes, or what decides where nothing says how the graph grows."""
    if comparison.flip is not None:
        return [comparison.flip.sentence()]
    if not isinstance(comparison.unfused.parts, PlanRun):
        return []
    before, after = (BOUND_IN_WORDS[str(side.bound)] for side in (comparison.unfused, comparison.fused))
    return [f"what decides is {before}" + ("" if before == after else f" unfused, {after} fused")]


def certainty(price: Price) -> list[str]:
    """Say how sure a price is and what it rests on."""
    if not price.calibration:
        return ["the textbook: peak bandwidth, no cache, no arithmetic, and no interval"]
    low, high = (_time(float(end)) for end in price.interval)
    return [f"{low} to {high} with 90 % confidence, by calibration {price.calibration}", *_elsewhere(price)]


def sure(comparison: Comparison) -> list[str]:
    """Say how sure a saving is and what it rests on."""
    name = comparison.fused.calibration
    if not name:
        return ["the textbook: peak bandwidth, no cache, no arithmetic, and no interval"]
    low, high = (_time(end) for end in comparison.saving_interval)
    return [f"the saving is {low} to {high} with 90 % confidence, by calibration {name}", *_elsewhere(comparison.fused)]


def _elsewhere(price: Price) -> list[str]:
    """Say so where kernels were measured on another device."""
    run = price.parts
    if not isinstance(run, PlanRun) or run.widening == (1.0, 1.0):
        return []
    return ["transferred: nothing was measured on this device, so the interval is wider"]
