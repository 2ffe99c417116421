"""The lesson of the page of devices; its figures are those of the device files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim import units

from .device_view import ridge
from .guide import Step

if TYPE_CHECKING:
    from .catalogue import Catalogue

TITLE: Final = "Devices"
LEAD: Final = (
    "What each device is, figure by figure, and who says so. Nothing here is measured by us unless it says so; a "
    "figure "
    "that nobody sourced is left out."
)
WORDS: Final = ("Ceiling", "Ridge point", "Dense peak", "Memory-bound", "Tensor cores", "Special functions")


def steps(catalogue: Catalogue) -> tuple[Step, ...]:
    """Return the steps of the lesson."""
    return (_decode(catalogue), _ridges(catalogue), _cache(catalogue), _copy(catalogue))


def _rate(value: float) -> str:
    return units.format_quantity(value, units.BANDWIDTH)


def _decode(catalogue: Catalogue) -> Step:
    old, new = catalogue.find("h100-sxm"), catalogue.find("h200-sxm")
    ratio = units.format_ratio(new.dram_bandwidth / old.dram_bandwidth)
    return Step(
        title="Two GPUs for decoding",
        text="H100 and H200 have the same processor. Decoding a language model token by token reads all weights for "
        "each "
        "token and does about 2 FLOP with each byte.",
        query="?",
        ask="How much faster can an H200 decode at most?",
        options=("not at all: the peaks are the same", f"about {ratio}", "about 2x"),
        right=1,
        answer=f"By its bandwidth: {_rate(new.dram_bandwidth)} to {_rate(old.dram_bandwidth)}, {ratio}. At 2 FLOP/B "
        "both are "
        "far to the left of the [ridge point]. For reading a long prompt, whose products are to the right of it, "
        "they are "
        "alike.",
    )


def _ridges(catalogue: Catalogue) -> Step:
    names = ("v100-sxm", "a100-sxm-80gb", "h100-sxm")
    found = [(catalogue.find(name).name, ridge(catalogue.find(name), "fp16 tensor")) for name in names]
    told = ", ".join(f"{point:.0f} FLOP/B on {name}" for name, point in found)
    return Step(
        title="Ridge points wander to the right",
        text="From one generation to the next, arithmetic grows faster than bandwidth. Three generations side by side.",
        query="?first=v100-sxm&second=a100-sxm-80gb&third=h100-sxm",
        ask="What follows for fusion?",
        options=("it matters less", "it matters more", "nothing"),
        right=1,
        answer=f"The [ridge point] of the matrix units in fp16: {told}. More and more kernels wait for memory, so "
        "there is "
        "more and more to be saved by moving fewer bytes.",
    )


def _cache(catalogue: Catalogue) -> Step:
    card = catalogue.find("rtx-4090")
    size = units.format_capacity(card.cache.l2.si if card.cache.l2 else 0.0)
    return Step(
        title="Caches",
        text="A tensor that was just written can still be in the L2 cache when the next kernel reads it. Beside a data "
        "centre's A100 stands a card for games.",
        query="?first=a100-sxm-80gb&second=rtx-4090",
        ask="On which of them does fusing small tensors save less time?",
        options=("the A100", "the RTX 4090", "the same on both"),
        right=1,
        answer=f"The RTX 4090 has {size} of L2, and about half of the A100's bandwidth. What fits in the cache "
        "never goes "
        "to memory, fused or not, so there is less to save there; what does not fit pays more.",
    )


def _copy(catalogue: Catalogue) -> Step:
    base = catalogue.find("l4")
    double = 2 * base.dram_bandwidth
    return Step(
        title="A device that does not exist",
        text="Below the table is a copy of the first device. Write another bandwidth into it.",
        query="?first=l4&second=none",
        ask=f"An L4 with twice its {_rate(base.dram_bandwidth)}: where does its ridge point go?",
        options=("to twice the intensity", "to half of it", "it stays"),
        right=1,
        answer=f"To half: peak over bandwidth, and the bandwidth is now {_rate(double)}. The copy may be refused: "
        "where a "
        "file states bus width and pin rate, their product has to agree. Change one of them too, or leave it out. The "
        "file that you download is taken by `fusesim chain --device-file` and by `fusesim.load_device`.",
    )
