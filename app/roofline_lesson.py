"""The lesson of the roofline page. Figures in it are priced when the page is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim import units

from . import readout
from .guide import Step
from .roofline_view import look, ridge

if TYPE_CHECKING:
    from .catalogue import Catalogue
    from .fields import Form
    from .roofline_view import RooflineView

TITLE: Final = "Roofline"
LEAD: Final = (
    "How fast a kernel can be at all: every ceiling of a device, and each kernel of a program below them, before and "
    "after fusion."
)
WORDS: Final = (
    *("Roof", "Ceiling", "Arithmetic intensity", "Ridge point", "Memory-bound", "Dense peak", "Special functions"),
    "Tensor cores",
)


def steps(catalogue: Catalogue, form: Form) -> tuple[Step, ...]:
    """Return the steps of the lesson."""
    return tuple(make(catalogue, form) for make in (_left, _right, _cache, _gelu, _product, _devices))


def _view(query: str, catalogue: Catalogue, form: Form) -> RooflineView:
    return look(form.from_query(query)[0], catalogue)


def _left(catalogue: Catalogue, form: Form) -> Step:
    query = "?pattern=chain&ops=1&device=h100-sxm"
    view = _view(query, catalogue, form)
    return Step(
        title="One multiplication",
        text="A kernel that multiplies each bf16 value by a number: one FLOP, two bytes in and two out.",
        query=query,
        ask="At which [arithmetic intensity] does it stand?",
        options=("0.25 FLOP/B", "1 FLOP/B", "4 FLOP/B"),
        right=0,
        answer=f"1 FLOP / 4 B = 0.25 FLOP/B. The first [ridge point] of the device is at "
        f"{min(ridge(view.ceilings, each) for each in view.ceilings if not each.slope):.3g} FLOP/B, so the units stand "
        "idle nearly all the time, waiting for memory.",
    )


def _right(catalogue: Catalogue, form: Form) -> Step:
    query = "?pattern=rmsnorm"
    before, after = _view(query, catalogue, form).totals
    return Step(
        title="Fusion moves to the right",
        text="RMSNorm, op by op and as one kernel. The dotted line goes from the program before to the program after.",
        query=query,
        ask="In which direction does the point move?",
        options=("straight up: faster", "straight right: fewer bytes", "right and up, along the slope"),
        right=2,
        answer=f"The same arithmetic on fewer bytes is further right, {before.intensity:.3g} to "
        f"{after.intensity:.3g} FLOP/B, "
        "and a program that was bound by memory can climb as far as the slope does: from "
        f"{units.format_quantity(before.rate, units.FLOP_RATE)} to "
        f"{units.format_quantity(after.rate, units.FLOP_RATE)}.",
    )


def _cache(catalogue: Catalogue, form: Form) -> Step:
    query = "?pattern=chain&ops=5&elements=4194304&device=rtx-4090"
    view = _view(query, catalogue, form)
    served = float(view.plan.unfused.price.l2_bytes) / float(view.plan.unfused.price.bytes_moved)
    return Step(
        title="Above the memory's slope",
        text="Five multiplications on 4 million values: 8 MB, which the 72 MiB cache of an RTX 4090 can hold.",
        query=query,
        ask="Where do the unfused kernels stand?",
        options=("under the memory's slope, all of them", "some of them above it", "on the ridge point"),
        right=1,
        answer=f"The cache serves {units.format_share(served)} of the unfused bytes: a kernel finds there what the "
        "one before "
        "has written. The memory's slope is no limit for it, the dashed slope of the cache is. Fusion saves less "
        "here than "
        "the bytes suggest.",
    )


def _gelu(catalogue: Catalogue, form: Form) -> Step:
    query = "?pattern=chain&ops=gelu*8"
    view = _view(query, catalogue, form)
    return Step(
        title="A ceiling that is not drawn in FLOP",
        text="Eight GELUs. The FLOP that are counted are those of the formula; the instructions that compute an error "
        "function are many more.",
        query=query,
        ask="Does the fused kernel reach the roof?",
        options=("yes, the memory's slope", "yes, the fp32 ceiling", "no, it stays below both"),
        right=2,
        answer=f"It is bound by {readout.BINDS[view.totals[1].bound]}, and gains "
        f"{units.format_ratio(view.plan.speedup)} only. A "
        "roofline says what cannot be exceeded. It does not promise that it is reached.",
    )


def _product(catalogue: Catalogue, form: Form) -> Step:
    query = "?pattern=matmul_bias_gelu&strategy=tvm"
    view = _view(query, catalogue, form)
    point = next(each for each in view.kernels if each.side == "unfused" and each.bound == "tensor")
    return Step(
        title="Right of the ridge",
        text="A matrix product of 4 096, with a bias and a GELU behind it.",
        query=query,
        ask="What does fusing do to the product's own point?",
        options=("it moves far to the right", "next to nothing", "it falls"),
        right=1,
        answer=f"The product stands at {point.intensity:.0f} FLOP/B, far right of every [ridge point], and is bound "
        "by the "
        "matrix units. Only the small kernels behind it disappear. Fusion helps what is left of the ridge.",
    )


def _devices(catalogue: Catalogue, form: Form) -> Step:
    view = _view("?pattern=rmsnorm&device=h100-sxm&second=h200-sxm&third=rtx-4090", catalogue, form)
    rates = [units.format_quantity(ceilings[0].rate, units.BANDWIDTH) for _, ceilings in view.others]
    return Step(
        title="Three roofs",
        text="An H100, an H200 and an RTX 4090 over one another.",
        query="?pattern=rmsnorm&device=h100-sxm&second=h200-sxm&third=rtx-4090",
        ask="Which part of the roof differs between H100 and H200?",
        options=("the slope", "the level", "both"),
        right=0,
        answer=f"The slope: the memory is faster, {rates[0]}, and the processor is the same. The RTX 4090's slope, "
        f"{rates[1]}, "
        "is lower, while its plain fp32 level is higher: it is the better device for arithmetic that fits on the chip, "
        "and the worse one for everything that waits for memory.",
    )
