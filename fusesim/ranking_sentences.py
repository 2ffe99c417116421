"""What a report says, in sentences: the step, what graphs and fusing save, what is left, what was measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fusesim import units
from fusesim.explain import BOUND_IN_WORDS
from fusesim.fitting import sides_too_large
from fusesim.plan_sentences import call_costs, counted, host_alone, lacking

if TYPE_CHECKING:
    from fusesim.ranking import Measured, Report

WORTH_SAYING: Final = 0.02
"""Shares below this are not worth a sentence."""

FEW: Final = 3


def report_sentences(report: Report) -> list[str]:
    """Return what a report says, the most important first; no full stops."""
    if not report.eager[report.launch].kernels:
        return ["no kernel runs: the program looks at memory and makes no value, so there is nothing to fuse"]
    return [
        _step(report),
        *_host(report),
        *lacking(report.eager[report.launch]),
        _graphs(report),
        _fusing(report),
        _left(report),
        *_memory(report),
        *_pays(report),
        *([] if report.measured is None else measured_sentences(report.measured)),
        *_sure(report),
    ]


def _time(value: float) -> str:
    return units.format_quantity(value, units.TIME)


def _share(value: float) -> str:
    return units.format_share(value)


def _step(report: Report) -> str:
    """Say what a step takes now."""
    price = report.eager[report.launch]
    low, high = (_time(float(end)) for end in price.interval)
    how = "on a stream" if report.launch == "stream" else "in a CUDA graph"
    kernels = counted(float(price.kernels), "kernel")
    who = "Inductor" if report.compiled else "eager"
    return f"a step takes {_time(report.step)} {how} as {who} runs it, {low} to {high} with 90 % confidence: {kernels}"


def _host(report: Report) -> list[str]:
    """Say whether the host or the device is waited for on a stream."""
    if report.launch != "stream":
        return []
    run = report.eager["stream"].parts
    issue, device = float(run.host_time), float(run.device_time)  # type: ignore[attr-defined]
    if issue > device:
        return [f"it is host-bound: issuing takes {_time(issue)}, the kernels {_time(device)}"]
    return [f"it is device-bound: the kernels take {_time(device)}, issuing {_time(issue)} is hidden behind them"]


def _graphs(report: Report) -> str:
    """Say what CUDA graphs alone save."""
    saved, stream = report.graphs_save, float(report.eager["stream"].time)
    if saved <= WORTH_SAYING * stream:
        return "CUDA graphs alone would save next to nothing: launches are hidden behind the kernels"
    return f"CUDA graphs alone would save {_time(saved)} of a step on a stream, {_share(saved / stream)}"


def _fusing(report: Report) -> str:
    """Say what fusing saves now, and under graphs."""
    graph = float(report.eager["graph"].time - report.fused["graph"].time)
    now = report.fusing_saves
    if report.launch == "graph":
        return f"fusing {_verb(now)} {_time(abs(now))}, {_share(abs(now) / report.step)} of the step"
    sides = report.eager["stream"], report.fused["stream"]
    if host_alone(*sides):
        return f"on a stream {call_costs(*sides)}; under CUDA graphs fusing {_verb(graph)} {_time(abs(graph))}"
    share = _share(abs(now) / report.step)
    return f"fusing {_verb(now)} {_time(abs(now))} on a stream, {share} of the step; under CUDA graphs {_signed(graph)}"


def _verb(value: float) -> str:
    return "saves" if value >= 0 else "loses"


def _signed(value: float) -> str:
    return f"it {_verb(value)} {_time(abs(value))}"


def _left(report: Report) -> str:
    """Say what is left after both, and what binds it."""
    parts = [
        f"{BOUND_IN_WORDS[name]} {_time(time)}"
        for name, time in list(report.remaining.items())[:FEW]
        if time > WORTH_SAYING * report.left
    ]
    return f"after both {_time(report.left)} remain, bound by {', '.join(parts)}" if parts else "nothing remains"


def _memory(report: Report) -> list[str]:
    """Say what fusing does to the peak of memory."""
    before, after = (units.format_quantity(size, units.SIZE) for size in report.peak_memory)
    room = sides_too_large(report.eager_plan.graph, report.device, *report.peak_memory)
    return [f"peak memory above the inputs is {before} before and {after} after fusing", *room]


def _pays(report: Report) -> list[str]:
    """Say after how many calls compiling pays."""
    calls, seconds = report.break_even_calls, report.compile_seconds
    if calls is None or seconds is None:
        return []
    cost = f"compiling takes about {_time(seconds)}"
    if report.compiled:
        return []
    if math.isinf(calls):
        return [f"{cost} and never pays: a call saves nothing"]
    return [f"{cost} and pays after {units.format_count(float(f'{calls:.3g}'))} calls"]


def measured_sentences(found: Measured) -> list[str]:
    """Say what a trace shows: the device's time, gaps, the host, and how far from the model it is."""
    kernels = f"{counted(found.kernels, 'kernel')}, {_time(found.kernel_time)} in {_time(found.span)}"
    idle = f"{_time(found.idle)}, {_share(found.idle / found.span if found.span else 0.0)}"
    said = [f"measured: {kernels}; the device idles {idle}"]
    if found.host_bound > WORTH_SAYING * found.span:
        places = counted(found.stretches, "stretch")
        said.append(
            f"it waits for the host {_time(found.host_bound)} in {places}, the longest {_time(found.longest_stretch)}: "
            "CUDA graphs or fewer launches remove that (profiling slows the host)"
        )
    if found.expected:
        ratio = units.format_ratio(found.ratio)
        said.append(f"measured kernels take {_time(found.known)}, expected {_time(found.expected)}: {ratio}")
    poor = [one for one in found.ops if one.reason and one.total > WORTH_SAYING * found.kernel_time]
    return [*said, *(one.sentence() for one in poor[:FEW])]


def _sure(report: Report) -> list[str]:
    """Say what the figures rest on, and what is missing."""
    name = report.eager["graph"].calibration
    return [f"by calibration {name}", *(f"note: {note}" for note in report.notes)]
