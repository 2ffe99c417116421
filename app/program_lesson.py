"""The lesson of the page of one's own program. Figures in it are worked out when the page is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim import units

from . import readout
from .guide import Step
from .program_view import ONNX, SAMPLES, look

if TYPE_CHECKING:
    from fusesim.frontends.trace import Trace

    from .catalogue import Catalogue
    from .fields import Form
    from .program_view import ProgramView

TITLE: Final = "Your program"
LEAD: Final = (
    f"Hand in a PyTorch profiler trace{' or an ONNX model' if ONNX else ''}, and see which fusions are worth making, "
    "what they save, and what each op reaches of what the device allows."
)
WORDS: Final = ("Kernel", "Host interval", "Epilogue", "Break-even", "Roof", "90 % interval")


def steps(catalogue: Catalogue, form: Form, traces: dict[str, Trace]) -> tuple[Step, ...]:
    """Return the steps of the lesson."""

    def view(query: str) -> ProgramView:
        values = form.from_query(query)[0]
        return look(traces[values["sample"]], SAMPLES[values["sample"]], values, catalogue)

    return (_best(view("?")), _idle(view("?sample=decode")), _graph(view("?sample=decode&launch=graph")))


def _best(view: ProgramView) -> Step:
    best = view.report.fusions[0]
    return Step(
        title="Where to begin",
        text="A transformer block, recorded as PyTorch ran it. Three large matrix products take most of its time.",
        query="?",
        ask="Which fusion saves most?",
        options=("a product with what follows it", "small ops between the products", "all products together"),
        right=1,
        answer=f"The first line of the ranking: {best.what}, {best.kernels} kernels become {best.own}, and "
        f"{units.format_share(best.share)} of the step is saved. The products are bound by the matrix units and "
        "stay as they "
        "are.",
    )


def _idle(view: ProgramView) -> Step:
    found = view.report.measured
    idle = "an unknown share" if found is None else units.format_share(found.idle / found.span)
    return Step(
        title="Who waits for whom",
        text="One decoded token: many kernels of a few microseconds. The grey row of the timeline is what was "
        "measured.",
        query="?sample=decode",
        ask="Which share of the recorded time did the device do nothing?",
        options=("next to none", "about a fifth", "most of it"),
        right=2,
        answer=f"{idle}: the device waits for the host to launch. The profiler slows the host down as well, so "
        "without it "
        "the share is smaller. Neither faster arithmetic nor fewer bytes would help here, fewer launches would.",
    )


def _graph(view: ProgramView) -> Step:
    saves, graphs = view.report.fusing_saves, view.report.graphs_save
    return Step(
        title="Graphs, fusion, or both",
        text="The same token, launched as a CUDA graph: the host is out of the way.",
        query="?sample=decode&launch=graph",
        ask="Does fusing still save anything?",
        options=("yes", "no, the graph has taken all"),
        right=0 if saves > 0 else 1,
        answer=f"The graph alone saves {readout.time(max(graphs, 0.0))}, and inside the graph fusing saves "
        f"{readout.time(max(saves, 0.0))} more: each kernel that is not there need not start and end on the device "
        "either.",
    )
