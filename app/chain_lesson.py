"""The guided lesson of the chain page. Figures in it are priced when the page is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim import units

from . import readout
from .address import from_query
from .guide import Step
from .view import look

if TYPE_CHECKING:
    from .catalogue import Catalogue
    from .view import View


def steps(catalogue: Catalogue) -> tuple[Step, ...]:
    """Return the steps of the lesson."""
    return tuple(make(catalogue) for make in (_bytes, _token, _graph, _single, _gelus))


def _view(query: str, catalogue: Catalogue) -> View:
    return look(from_query(query, catalogue)[0], catalogue)


def _ratio(view: View) -> str:
    return units.format_ratio(float(view.point.speedup))


def _bytes(catalogue: Catalogue) -> Step:
    view = _view("?ops=5", catalogue)
    unfused, fused = (readout.size(side.bytes_moved) for side in (view.point.unfused, view.point.fused))
    return Step(
        title="Five small operations on a large tensor",
        text="Each reads all 33 million values from memory, does one thing to each, and writes them back.",
        query="?ops=5",
        ask="How much faster is one kernel that does all five?",
        options=("hardly: the arithmetic is the same", "about twice", "about five times"),
        right=2,
        answer=f"{_ratio(view)}. Five kernels move {unfused}, the fused one {fused}: it keeps each value in a register "
        "between the five. The arithmetic is the same, and is not what takes time: the chain is [memory-bound].",
    )


def _token(catalogue: Catalogue) -> Step:
    view = _view("?ops=5&elements=4096", catalogue)
    launches = units.format_share(float(view.point.unfused.launch_share))
    return Step(
        title="The same on one token",
        text="4 096 values are moved in some nanoseconds.",
        query="?ops=5&elements=4096",
        ask="What is left of the speedup?",
        options=("nothing: there are hardly any bytes to save", "the same five times", "about half of it"),
        right=1,
        answer=f"{_ratio(view)} again, for another reason: {launches} of the time is [launch overhead], and fusing "
        "leaves one launch of five.",
    )


def _graph(catalogue: Catalogue) -> Step:
    view = _view("?ops=5&elements=4096&launch=graph", catalogue)
    return Step(
        title="The token in a CUDA graph",
        text="A graph launches all kernels at once, and each costs less.",
        query="?ops=5&elements=4096&launch=graph",
        ask="Does fusing still pay?",
        options=("yes, but less", "no, the graph has saved it all", "as much as before"),
        right=0,
        answer=f"{_ratio(view)}. The graph makes launches cheaper, so there is less to save. It saves no bytes: on a "
        "large tensor it hardly helps, and fusing does.",
    )


def _single(catalogue: Catalogue) -> Step:
    two = _view("?ops=2&elements=4096&launch=graph", catalogue)
    return Step(
        title="Where fusing stops paying",
        text="Take operations away, one at a time, down to a single one.",
        query="?ops=1&elements=4096&launch=graph",
        ask="What does fusing gain for a single operation?",
        options=("a little", "nothing"),
        right=1,
        answer=f"Nothing: there is no second kernel to be left out, and no tensor in between. Two operations gain "
        f"{_ratio(two)} here. What decides stands beside the charts, with where it stops paying.",
    )


def _gelus(catalogue: Catalogue) -> Step:
    query = "?ops=gelu*8&device=h200-sxm&model=calibrated"
    view = _view(query, catalogue)
    return Step(
        title="Eight GELUs, by what was measured",
        text="The textbook promises 8x. The [calibrated model] counts instructions too.",
        query=query,
        ask="How much faster is the fused kernel?",
        options=("about 8x", "about 4x", "less than 2x"),
        right=2,
        answer=f"{_ratio(view)}. The fused kernel moves an eighth of the bytes, but all instructions of eight error "
        "functions stay, and they take longer than the bytes. Step the model back to see where 8x comes from.",
    )
