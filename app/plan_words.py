"""The words and numbers around the charts of the page of patterns and plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fusesim import units
from fusesim.patterns import summary

from . import ids, readout
from .fields import sentence
from .plan_form import COMPILE, NAMES, PATTERN, STRATEGY, arguments

if TYPE_CHECKING:
    from fusesim.why import Why

    from .plan_view import PlanView, Side

UNFUSED_PEAK: Final = "unfused-peak"
FUSED_PEAK: Final = "fused-peak"
SUMMARY: Final = "summary"
BREAK_EVEN: Final = "break-even"
EDITED: Final = "edited"

MOST_SUMS: Final = 14
"""Kernels whose arithmetic is written out."""

_MANY_CALLS: Final = 100
"""From here calls are whole; below, a whole number would contradict the quotient that is written before it."""


def texts(view: PlanView) -> dict[str, str]:
    """Return the texts of the view by the id of their place."""
    unfused, fused = view.unfused, view.fused
    return {
        ids.UNFUSED_TIME: readout.time(unfused.price.time),
        ids.UNFUSED_RANGE: between(unfused),
        ids.UNFUSED_KERNELS: f"{float(unfused.price.kernels):.0f}",
        ids.UNFUSED_BYTES: readout.size(unfused.price.bytes_moved),
        UNFUSED_PEAK: readout.size(unfused.memory.peak),
        ids.FUSED_TIME: readout.time(fused.price.time),
        ids.FUSED_RANGE: between(fused),
        ids.FUSED_KERNELS: f"{float(fused.price.kernels):.0f}",
        ids.FUSED_BYTES: readout.size(fused.price.bytes_moved),
        FUSED_PEAK: readout.size(fused.memory.peak),
        ids.SPEEDUP: units.format_ratio(view.speedup),
        ids.SAVING: signed(view.saving),
        ids.SENTENCE: whole(view),
        SUMMARY: described(view.values[PATTERN]),
        BREAK_EVEN: break_even(view),
        EDITED: edited(view),
        ids.reading(COMPILE): f"{view.values[COMPILE]:g} s",
        ids.reading("ops-slider"): ops_reading(view),
    }


def described(pattern: str) -> str:
    """Say what a pattern is: what its function says that it returns.

    Examples
    --------
    >>> described("bias_relu")[:1].isupper()
    True
    """
    told = summary(pattern).removeprefix("Return ")
    return sentence(told)


def between(side: Side) -> str:
    """Write a price's 90 % interval, and that there is none in the textbook."""
    low, high = side.price.interval
    return "no interval" if float(low) == float(high) else readout.between((low, high))


def signed(seconds: float) -> str:
    """Write a time that may be lost."""
    return readout.time(seconds) if seconds >= 0 else f"-{readout.time(-seconds)}"


def ops_reading(view: PlanView) -> str:
    """Say how long the chain is."""
    return str(len(view.graph.paid_nodes))


def whole(view: PlanView) -> str:
    """Say the whole view in one sentence."""
    unfused, fused = view.unfused.price, view.fused.price
    return (
        f"{NAMES[view.values[PATTERN]]} on {view.device.name}: {readout.time(unfused.time)} as "
        f"{readout.kernels(unfused)}, "
        f"{readout.time(fused.time)} as {readout.kernels(fused)} by {view.fused.plan.strategy}, "
        f"{units.format_ratio(view.speedup)}; {readout.size(unfused.bytes_moved)} become "
        f"{readout.size(fused.bytes_moved)}."
    )


def break_even(view: PlanView) -> str:
    """Say after how many calls compiling has paid for itself."""
    seconds = view.values[COMPILE]
    if view.values[STRATEGY] in {"eager", "cuda-graph"}:
        return "Nothing is compiled here: the kernels are the framework's own."
    if view.calls is None:
        return f"Compiling for {seconds:g} s never pays: this plan saves no time per call."
    calls = f"{view.calls:.3g}" if view.calls < _MANY_CALLS else units.format_count(round(view.calls))
    return (
        f"Compiling takes {seconds:g} s and saves {readout.time(view.saving)} per call, so it has paid after "
        f"{seconds:g} s / {readout.time(view.saving)} = {calls} calls, which is "
        f"{readout.time(view.calls * float(view.unfused.price.time))} of running unfused. "
        "Compiled ahead of time, the wait is before the first call; compiled just in time, it is in it."
    )


def edited(view: PlanView) -> str:
    """Say what was done to the plan by hand."""
    if view.refused:
        return f"Your change is not possible: {sentence(view.refused)} The plan stays as it was."
    count = len(view.values["edits"])
    if not count:
        return ""
    return f"{count} {'edge' if count == 1 else 'edges'} changed by hand; the figures are those of your plan."


def asked(view: PlanView) -> list[str]:
    """Answer what was asked of one or two ops, in sentences."""
    picked = view.values["ask"]
    if not picked:
        return []
    if len(picked) == 1:
        return [f"{picked[0]} is picked. Pick a second op to ask what sharing a kernel would buy."]
    if view.why is None:
        return [f"{' and '.join(picked)} are not both ops of this plan; pick two of them."]
    return _why(view.why)


def _why(found: Why) -> list[str]:
    one, other = found.pair
    told = []
    if found.reason is not None:
        told.append(f"{one} and {other} cannot share a kernel. {sentence(found.reason)}")
    elif one != other:
        verb = "saves" if not found.loses else "loses"
        told.append(
            f"{one} and {other} can share a kernel: {readout.time(found.together)} together, "
            f"{readout.time(found.apart)} apart, which {verb} {readout.time(abs(found.saving or 0.0))}."
        )
    if found.edge_bytes:
        told.append(f"{readout.size(found.edge_bytes)} go from the one to the other.")
    if found.saved_bytes > 0:
        told.append(f"In one kernel {readout.size(found.saved_bytes)} fewer are moved.")
    if found.along:
        told.append(f"What lies between must come along: {', '.join(found.along)}.")
    return [*told, *(f"It costs something: {sentence(loss)}" for loss in found.losses)]


def reasons(view: PlanView) -> list[str]:
    """Say in words with figures where the saving comes from: the library's own reasons, and what it does to memory."""
    told = [sentence(line) for line in view.compared.explain()]
    peak = view.unfused.memory.peak - view.fused.memory.peak
    if peak > 0:
        told.append(f"The peak of memory falls by {readout.size(peak)}, since tensors inside kernels have none.")
    return told


def sums(view: PlanView) -> list[str]:
    """Write out how the times came about."""
    return [*_sums(view.unfused, "Unfused"), *_sums(view.fused, "Fused"), _last(view)]


def _sums(side: Side, name: str) -> list[str]:
    run: Any = side.price.parts
    if not hasattr(run, "kernels_run"):
        overhead, memory = readout.time(run.launch_time), readout.time(run.memory_time)
        rate = units.format_quantity(run.bandwidth, units.BANDWIDTH)
        return [
            (
                f"{name}: {readout.kernels(side.price)} x {readout.time(run.overhead)} to launch = {overhead}; "
                f"{readout.size(side.price.bytes_moved)} / {rate} = {memory}; together {readout.time(side.price.time)}."
            )
        ]
    lines = [f"{name}, {_kernel(kernel, run)}" for kernel in run.kernels_run[:MOST_SUMS]]
    if len(run.kernels_run) > MOST_SUMS:
        lines.append(f"{name}: and {len(run.kernels_run) - MOST_SUMS} more kernels.")
    extra = f" + {readout.time(run.settings.replay)} for the replay" if run.settings.replay else ""
    host = f"; the host needs {readout.time(run.host_time)} to issue them" if run.host_time else ""
    return [
        *lines,
        f"{name}: the kernels add up to {readout.time(run.device_time)}{extra}{host}: {readout.time(run.time)}.",
    ]


def _kernel(kernel: Any, run: Any) -> str:
    """Write out one kernel: its floor, and what each resource takes; the longest decides."""
    time, launch = kernel.time, kernel.launch
    parts = [
        f"{label} {readout.time(value)}"
        for label, value in (
            ("memory", time.dram),
            ("cache", time.cache),
            ("instructions", time.issue),
            ("special functions", time.special),
            ("matrix units", time.tensor),
        )
        if value > 0
    ]
    moved = f"reads {readout.size(launch.bytes_read)}, writes {readout.size(launch.bytes_written)}"
    return (
        f"{launch.name}: {moved}; floor {readout.time(time.floor)} + first bytes {readout.time(time.latency)} + "
        f"the longest of {', '.join(parts) or 'nothing'}, overlapping: {readout.time(kernel.total(run.settings))}."
    )


def _last(view: PlanView) -> str:
    unfused, fused = readout.time(view.unfused.price.time), readout.time(view.fused.price.time)
    return (
        f"Saved: {unfused} - {fused} = {signed(view.saving)}; {unfused} / {fused} = {units.format_ratio(view.speedup)}."
    )


def call(view: PlanView) -> str:
    """Return the library call that makes the view."""
    values, side = view.values, view.fused
    given = ", ".join(f"{name}={value!r}" for name, value in arguments(values).items())
    lines = [
        "import fusesim",
        "from fusesim import patterns",
        "",
        f"graph = patterns.{values[PATTERN]}({given})",
    ]
    terms = f'device="{values[ids.DEVICE]}", model="{values[ids.MODEL]}", launch="{values[ids.LAUNCH]}"'
    strategy = f'("{values[STRATEGY]}", "{side.path}")'
    lines += [f"found = fusesim.compare(graph, {terms}, fused={strategy})", "print(found)"]
    if side.plan.strategy == "yours":
        groups = ",\n    ".join(f"Group(nodes={group.nodes!r})" for group in side.plan.groups)
        lines += [
            "",
            "from fusesim.fusion import FusionPlan, Group",
            "",
            f"groups = (\n    {groups},\n)",
            'yours = FusionPlan(graph=found.fused_plan.graph, groups=groups, strategy="yours")',
            f'print(fusesim.price(yours, path="{side.path}", {terms}))',
        ]
    return "\n".join(lines)
