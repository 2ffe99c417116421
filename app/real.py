"""The part of the lesson that corrects the textbook: each effect in words, with figures of the H200.

Figures come from the shipped calibration, by pricing: nothing that a new measurement would change is typed in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import fusesim
from fusesim import units
from fusesim.machine import EFFECTS
from fusesim.ops import OPS
from fusesim.schedule import TEXTBOOK_REPLAY

from . import effects, readout
from .chain_text import FIVE, parse_chain
from .lesson import Section

if TYPE_CHECKING:
    from fusesim.records import ChainPrice

DEVICE: Final = "h200-sxm"
TITLE: Final = "Where the textbook is wrong"
ANCHOR: Final = "textbook-wrong"
LEAD: Final = (
    "The steps of the model above, one at a time, on an H200: what each is, what was measured, and what it makes of "
    "three chains of bf16 values. Times are unfused, then fused, on a stream."
)


class Case(NamedTuple):
    """A chain that the table follows through the steps."""

    heading: str
    ops: tuple[str, ...]
    elements: int


CASES: Final = (
    Case("The lesson's five ops, 4 096 values", parse_chain(FIVE), 4096),
    Case("The same on 33 million values", parse_chain(FIVE), 8192 * 4096),
    Case("Eight GELUs on 33 million values", ("gelu",) * 8, 8192 * 4096),
)
HEADINGS: Final = tuple(case.heading for case in CASES)


class Row(NamedTuple):
    """A step of the model: its name, what it is, and each case's times."""

    name: str
    text: str
    times: tuple[str, ...]


def rows() -> list[Row]:
    """Return the table of effects, the textbook first.

    Examples
    --------
    >>> [row.name for row in rows()][:2], len(rows()[0].times)
    (['textbook', 'achieved bandwidth'], 3)
    """
    told = explanations()
    first = Row(effects.TEXTBOOK.title, effects.TEXTBOOK.meaning, _times(0))
    return [
        first,
        *(
            Row(effects.of(effect).title, told.get(effect, effects.of(effect).meaning), _times(step))
            for step, effect in enumerate(EFFECTS, start=1)
        ),
    ]


def price(ops: tuple[str, ...], elements: int, step: int = len(EFFECTS), **terms: Any) -> ChainPrice:
    """Price a chain on the device of the lesson with the first so many effects on."""
    if step == 0:
        return fusesim.price_chain(list(ops), elements, device=DEVICE, **terms)
    counted = None if step == len(EFFECTS) else EFFECTS[:step]
    return fusesim.price_chain(list(ops), elements, device=DEVICE, model="calibrated", effects=counted, **terms)


def explanations() -> dict[str, str]:
    """Explain each effect with the device's figures."""
    small, graph = price(CASES[0].ops, CASES[0].elements), price(CASES[0].ops, CASES[0].elements, launch="graph")
    run: Any = small.unfused.parts
    node: Any = graph.unfused.parts
    machine, shape = run.machine, run.pieces[0][0].shape
    reached, peak = machine.bandwidth, machine.peak_bandwidth
    kept = units.format_quantity(machine.cache_reach * machine.cache, units.SIZE)
    return {
        "bandwidth": f"A kernel that only streams reaches {_rate(reached)} of the datasheet's {_rate(peak)}, "
        f"{units.format_share(reached / peak)} of it. Refreshes, row changes and turns between reading and writing "
        "take the rest.",
        "floor": f"To start and end a kernel takes {_time(node.situation.floor)} inside a graph and "
        f"{_time(run.situation.floor)} on a stream, where the textbook has 1 and 4 us. A launch and a kernel's floor "
        "are two things: the floor is the device's.",
        "replay": f"To replay a captured graph costs {_time(node.situation.replay)} once, not "
        f"{_time(TEXTBOOK_REPLAY)}, however many kernels it holds. On a stream there is none.",
        "latency": f"The first bytes need {_time(machine.dram_latency)} from memory and about "
        f"{_time(machine.cache_latency)} from the cache. Five kernels wait five times, a fused one once.",
        "cache": f"A tensor that was just written is still in the L2 cache as long as the two kernels together touch "
        f"less than about {kept}. So small intermediates never go to memory, and fusing them saves less. The path "
        f"from the cache to the SMs is no free one either: {_rate(machine.cache_bandwidth)} for every byte.",
        "arithmetic": f"An SM issues 128 instructions a clock and {machine.special_per_clock:.0f} special functions "
        f"(exp, rsqrt, the start of a division). A multiplication is one instruction, an erf-GELU {OPS['gelu'].slots}, "
        f"a SiLU {OPS['silu'].slots} with {OPS['silu'].special} special ones. Beside two bytes in and two out that "
        "is no longer nothing.",
        "blocks": f"4 096 bf16 values are {int(shape.blocks)} blocks of {shape.threads} threads, so "
        f"{int(machine.sms - shape.blocks)} of {int(machine.sms)} SMs have nothing to do.",
        "pipelining": f"A C++ host issues a launch every {_time(run.situation.host_interval)}, PyTorch takes longer. "
        "While the device runs one kernel the host issues the next, so on a stream the longer of the two sums counts "
        "and never both. Short kernels wait for the host, long ones hide it.",
    }


def sections() -> tuple[Section, ...]:
    """Return what follows from the effects, with figures."""
    return (_gelus(), _overlap())


def _gelus() -> Section:
    """Explain why fusing saves little where arithmetic decides."""
    gelus, silus = (price((name,) * count, 8192 * 4096) for name, count in (("gelu", 8), ("silu", 4)))
    one: Any = price(("gelu",), 8192 * 4096).unfused
    book, fused = price(CASES[2].ops, CASES[2].elements, 0), gelus.fused
    return Section(
        anchor="eight-gelus",
        title="Why eight GELUs are not eight times as fast",
        paragraphs=(
            (
                f"The textbook promises {_ratio(book)}, since one kernel moves an eighth of the bytes. It forgets that "
                f"the instructions stay. A single GELU on 33 million values needs {_time(one.memory_time)} for its "
                f"bytes and {_time(one.compute_time)} for its instructions. The two run side by side, so most of the "
                f"shorter one is hidden and the kernel takes {_time(one.time)}, not their sum. Fused, the bytes of all "
                f"eight still take {_time(fused.memory_time)}, but the instructions of all eight take "
                f"{_time(fused.compute_time)}, and nothing is left to hide them behind."
            ),
            (
                f"So the chain goes from {_time(gelus.unfused.time)} to {_time(fused.time)}: {_ratio(gelus)}, the "
                f"saving being {readout.between(gelus.saving_interval)} with 90 % confidence. Four SiLUs give "
                f"{_ratio(silus)} in place of 4x, by the division in each of them. Fusion removes bytes and launches. "
                "Where neither is the limit it removes little."
            ),
        ),
    )


def _overlap() -> Section:
    """Explain what overlapping launches leave of the launch overhead."""
    small, large = (price(CASES[0].ops, elements) for elements in (4096, 8192 * 4096))
    graph = price(CASES[0].ops, 4096, launch="graph", graph_repeats=100)
    host, device = (getattr(small.unfused.parts, name) for name in ("host_time", "device_time"))
    hidden: Any = large.unfused.parts
    return Section(
        anchor="overlap",
        title="Why launches on a stream overlap",
        paragraphs=(
            (
                "A launch is a message. The host puts it into a queue and goes on, the device takes it out when the "
                "kernel before has ended. At 33 million values the host is done with five launches after "
                f"{_time(hidden.host_time)}, while the device works for {_time(hidden.device_time)}: nobody waits for "
                "a launch, and what is left of it is the floor of each kernel."
            ),
            (
                f"At 4 096 values it is the other way round. The device would need {_time(device)}, but the host takes "
                f"{_time(host)} to issue five kernels, and that is the time. Fusing wins {_ratio(small)} here, all of "
                "it from the host. A graph takes the host out: with a hundred passes in one replay the same chain "
                f"takes {_time(graph.unfused.time)} unfused and {_time(graph.fused.time)} fused."
            ),
        ),
    )


def _times(step: int) -> tuple[str, ...]:
    return tuple(_pair(price(case.ops, case.elements, step)) for case in CASES)


def _pair(found: ChainPrice) -> str:
    return f"{_time(found.unfused.time)}, {_time(found.fused.time)} ({_ratio(found)})"


def _ratio(found: ChainPrice) -> str:
    return units.format_ratio(float(found.speedup))


def _time(value: Any) -> str:
    return readout.time(value)


def _rate(value: float) -> str:
    return units.format_quantity(value, units.BANDWIDTH)
