"""The effects that the model's stepper switches on, in words, and what each changes at the chosen size, in figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fusesim import units
from fusesim.machine import EFFECTS
from fusesim.schedule import TEXTBOOK_LAUNCH, TEXTBOOK_REPLAY

from .settings import STOPS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .view import View


class Effect(NamedTuple):
    """An effect: what it is in a few words, and in a sentence."""

    title: str
    meaning: str


TEXTBOOK: Final = Effect(
    "textbook",
    "Launches and bytes over the datasheet's bandwidth, added up. Nothing is measured and nothing overlaps.",
)
WORDS: Final[Mapping[str, Effect]] = {
    "bandwidth": Effect(
        "achieved bandwidth", "No kernel gets all of the datasheet's bandwidth; memory reaches a share of it."
    ),
    "floor": Effect("kernel floor", "To start and end a kernel costs what was measured, not a round 4 us."),
    "replay": Effect("graph replay", "To replay a CUDA graph costs what was measured, shared by the passes inside it."),
    "latency": Effect("first bytes", "Before its bytes flow, each kernel waits for the first of them to arrive."),
    "cache": Effect(
        "cache",
        "What one kernel wrote, the next finds in the L2 cache as far as it fits; but all bytes pass the cache's path.",
    ),
    "arithmetic": Effect(
        "arithmetic", "Instructions are issued at a finite rate, and special functions have a narrow unit of their own."
    ),
    "blocks": Effect("whole blocks", "A tensor of few blocks leaves SMs idle, and blocks start one after another."),
    "pipelining": Effect(
        "overlap", "On a stream the host issues the next kernel while the device runs this one: the longer time counts."
    ),
}


def title(step: int) -> str:
    """Say where the stepper stands.

    Examples
    --------
    >>> title(0), title(2), title(8)
    ('textbook', '2 of 8: + kernel floor', 'calibrated: + overlap')
    """
    if step == 0:
        return TEXTBOOK.title
    name = of(EFFECTS[step - 1]).title
    return f"{STOPS[-1]}: + {name}" if step == len(EFFECTS) else f"{step} of {len(EFFECTS)}: + {name}"


def of(effect: str) -> Effect:
    """Return an effect's words; its own name where none were written for it."""
    return WORDS.get(effect, Effect(effect, ""))


def meaning(step: int) -> str:
    """Say in a sentence what was switched on last."""
    return (of(EFFECTS[step - 1]) if step else TEXTBOOK).meaning


def finding(view: View, step: int) -> str:
    """Say with figures what the effect that was switched on last changed at the chosen size.

    Parameters
    ----------
    view : View
        With the price before.
    step : int
        How many effects are on.
    """
    if view.before is None or step == 0:
        return "Move the slider: each step switches on one thing that the textbook leaves out."
    effect = EFFECTS[step - 1]
    fact = _FACTS[effect](view) if effect in _FACTS else ""
    changes = [_change(view, side) for side in ("unfused", "fused")]
    if not any(changes):
        return f"{fact}: no change here." if fact else "No change here."
    told = ", ".join(change or f"{side} unchanged" for change, side in zip(changes, ("unfused", "fused"), strict=True))
    return f"{fact}: {told}." if fact else f"{told[0].upper()}{told[1:]}."


def source(view: View) -> str:
    """Say where the parameters come from and what is known of the error."""
    if not view.calibrated:
        return "Parameters from the datasheet, and what the lesson takes for a launch."
    name = str(view.point.unfused.calibration)
    record = name[name.find("(") + 1 : -1] if name.endswith(")") else f"measured on {name}"
    wide = "; intervals are wider for it" if "transferred" in record else ""
    known = "" if view.has_interval else " Only the whole model was held against measurements: no interval until then."
    return f"Parameters {record}{wide}.{known}"


def _change(view: View, side: str) -> str:
    """Say how one way's time has changed, in figures that show it; nothing where they show none."""
    before, after = (float(getattr(price, side).time) for price in (view.before, view.point))
    was, now = (units.format_quantity(value, units.TIME, like=max(before, after)) for value in (before, after))
    return "" if was == now else f"{side} {now} instead of {was}"


def _time(value: object) -> str:
    return units.format_quantity(float(value), units.TIME)  # type: ignore[arg-type]


def _bandwidth(view: View) -> str:
    reached, peak = (units.format_quantity(rate, units.BANDWIDTH) for rate in (view.bandwidth, view.peak_bandwidth))
    return f"Memory reaches {reached} of {peak}"


def _floor(view: View) -> str:
    kind = "node of a graph" if view.point.launch == "graph" else "kernel"
    usual = TEXTBOOK_LAUNCH[view.point.launch]
    return f"A {kind} costs {_time(view.overhead)}, the textbook says {_time(usual)}"


def _replay(view: View) -> str:
    if view.point.launch != "graph":
        return "There is no graph to replay"
    shared = f", shared by {units.format_count(view.repeats)} passes" if view.repeats > 1 else ""
    return f"A replay costs {_time(view.replay)}{shared}, the textbook says {_time(TEXTBOOK_REPLAY)}"


def _latency(view: View) -> str:
    return f"The first bytes take {_time(view.run.machine.dram_latency)} to arrive from memory"


def _cache(view: View) -> str:
    """Say which share the cache serves: of the intermediates, or of everything where inputs may be in it too."""
    unfused = view.point.unfused
    total, served = float(unfused.bytes_moved), float(unfused.l2_bytes)
    if float(unfused.kernels) == 1:
        return "A single kernel leaves nothing for the next"
    if float(view.point.fused.l2_bytes) > 0:
        return f"The cache serves {units.format_share(served / total)} of the unfused bytes"
    chain = view.run.chain
    between = 2.0 * (float(chain.ops) - 1.0) * float(chain.elements) * chain.itemsize
    return f"The cache keeps {units.format_share(min(served / between, 1.0))} of the intermediates"


def _arithmetic(view: View) -> str:
    fused = view.point.fused
    return (
        f"The fused kernel's instructions alone take {_time(fused.compute_time)}, its bytes {_time(fused.memory_time)}"
    )


def _blocks(view: View) -> str:
    shape = view.run.pieces[0][0].shape
    blocks, sms = int(shape.blocks), int(view.run.machine.sms)
    return f"There {'is 1 block' if blocks == 1 else f'are {units.format_count(blocks)} blocks'} for {sms} SMs"


def _pipelining(view: View) -> str:
    launch, run = view.point.launch, view.run
    if launch == "graph":
        return "In a graph the host launches only once"
    if launch == "latency":
        return f"One chain from idle waits {_time(run.machine.idle)} for its first launch and for the last word"
    issue, device = _time(run.host_time), _time(run.device_time)
    return f"The host issues the unfused kernels in {issue}, the device runs them in {device}"


_FACTS: Final[Mapping[str, Callable[[View], str]]] = {
    "bandwidth": _bandwidth,
    "floor": _floor,
    "replay": _replay,
    "latency": _latency,
    "cache": _cache,
    "arithmetic": _arithmetic,
    "blocks": _blocks,
    "pipelining": _pipelining,
}
