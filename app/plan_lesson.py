"""The lesson of the page of patterns and plans. Figures in it are priced when the page is made, not typed in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fusesim import patterns, units
from fusesim.plans import compare

from . import readout
from .guide import Step

if TYPE_CHECKING:
    from fusesim.comparison import Comparison
    from fusesim.graph import Graph

TITLE: Final = "Patterns and plans"
LEAD: Final = (
    "Pick what people fuse, choose who fuses it, and see every kernel, every edge and every byte of the plan. "
    "Pick an edge or two ops to ask why."
)
WORDS: Final = (
    *("Kernel", "Intermediate tensor", "Fusion plan", "Epilogue", "Horizontal fusion", "Recompute"),
    *("Common subexpression", "Break-even", "90 % interval"),
)

COMPILERS: Final = (
    (
        "Eager (no compiler)",
        (
            "Each op of the program is a call, and each call launches the library's own kernels. Nothing is known "
            "of what "
            "comes next, so nothing can be left out."
        ),
    ),
    (
        "torch.compile (Inductor)",
        (
            "Records the program while it runs, sorts its ops into loops, and joins loops over the same range: "
            "those that "
            "share the most bytes first. What is joined becomes a Triton kernel. Matrix products stay with the "
            "library. "
            "It compiles just in time, on the first call with new shapes."
        ),
    ),
    (
        "XLA",
        (
            "Is given the whole program of JAX or TensorFlow. Each op that makes a value asks whether being copied "
            "into "
            "all of its readers saves time by a cost model; the best offer is taken first, so an op may be computed "
            "twice."
        ),
    ),
    (
        "TVM",
        (
            "Sorts ops into classes, such as element-wise, broadcast, reduction, product, and lets classes join by "
            "fixed "
            "rules: element-wise ops follow a product as its epilogue. The schedule of each group is then searched for."
        ),
    ),
    (
        "MLIR (linalg)",
        (
            "A tool box for compilers: ops are loops over indices, and passes merge a loop into the one that reads it. "
            "Only element-wise merging is on here; others are for the compiler's author to add."
        ),
    ),
    (
        "CUDA graph",
        (
            "Records launches and replays them at once. No byte is saved and no kernel is left out: it is fusion of "
            "the "
            "launches alone."
        ),
    ),
)

IDEAS: Final = (
    (
        "Loop fusion",
        (
            "Two loops over the same range become one, and a value is used while it is in a register. A kernel is a "
            "loop "
            "whose turns are spread over threads: joining two kernels is loop fusion on a GPU. Ranges must agree, "
            "which is "
            "why a reduction over rows ends one loop and begins another, unless the row fits on the chip."
        ),
    ),
    (
        "Common subexpressions",
        (
            "Where two ops compute the same from the same, one is enough. Inside one kernel the compiler sees it; "
            "between "
            "kernels nobody does. Fusion brings such pairs together, so a group may do less arithmetic than its parts."
        ),
    ),
    (
        "Recompute",
        (
            "The reverse can pay too. Attention in tiles never stores the matrix of scores: each tile of it is "
            "made, used "
            "and forgotten, and where it is needed again it is made again. More arithmetic, far fewer bytes."
        ),
    ),
    (
        "Allocation",
        (
            "Every tensor between two kernels has to be allocated, and is alive until its last reader is done. What "
            "stays "
            "inside a kernel is never allocated: the peak falls, and so does the allocator's work on the host."
        ),
    ),
    (
        "Ahead of time, or just in time",
        (
            "Compiled ahead of time, shapes are fixed and the first call is fast. Compiled just in time, shapes may "
            "change, "
            "and someone waits for the compiler. Either has paid after compile time / saving per call."
        ),
    ),
)


def steps() -> tuple[Step, ...]:
    """Return the steps of the lesson, priced."""
    return (_bias(), _norm(), _graph(), _reduction(), _attention(), _product(), _siblings(), _gelus(), _even())


def _two(graph: Graph, fused: tuple[str, str] = ("inductor", "inductor"), **terms: Any) -> Comparison:
    return compare(graph, device="h200-sxm", fused=fused, **terms)


def _told(found: Comparison) -> str:
    before, after = readout.time(found.unfused.time), readout.time(found.fused.time)
    return f"{before} become {after}, {units.format_ratio(found.speedup)}"


def _bias() -> Step:
    found = _two(patterns.bias_relu(rows=65536, cols=4096))
    return Step(
        title="Bias and ReLU",
        text="Adding a bias row and cutting off below zero: the classic first fusion. As two kernels, the sum is "
        "written to memory by the first and read back by the second.",
        query="?pattern=bias_relu&rows=65536&cols=4096",
        ask="Which share of the bytes goes when both become one kernel?",
        options=("a quarter", "a half", "three quarters"),
        right=1,
        answer=f"Of four trips of the tensor two remain: {readout.size(found.unfused.bytes_moved)} become "
        f"{readout.size(found.fused.bytes_moved)}. The time falls by more, {_told(found)}, since PyTorch's own kernel "
        "for a sum with a broadcast row does not reach the bandwidth that a plain copy does. Open the source at the "
        "end of "
        "the page: the sum is a variable, the row is found by the remainder of the index, and there is one store.",
    )


def _norm() -> Step:
    found = _two(patterns.rmsnorm())
    return Step(
        title="A norm, op by op",
        text="RMSNorm as it is written: square, mean, + eps, `rsqrt`, times x, times weight. Six kernels in the eager "
        "program. In the drawing a thick orange line is a tensor that passes through memory, a thin blue one stays on "
        "the chip.",
        query="?pattern=rmsnorm",
        ask="How many kernels does torch.compile make of the six?",
        options=("one", "two, the mean ends the first", "three"),
        right=0,
        answer=f"One: a row of 4 096 values fits on the chip, so the reduction and both sides of it can be one kernel. "
        f"{_told(found)}. That the gain is not far from six-fold is because all ops that touch a whole row are "
        "bound by memory.",
    )


def _graph() -> Step:
    found = _two(patterns.rmsnorm(), ("cuda-graph", "torch"))
    return Step(
        title="A CUDA graph is not fusion",
        text="The same norm, its six kernels recorded and replayed as a CUDA graph, beside the eager kernels that are "
        "launched the same way.",
        query="?pattern=rmsnorm&strategy=cuda-graph",
        ask="How many bytes does the recording save?",
        options=("none", "those between the kernels", "half"),
        right=0,
        answer=f"None: {readout.size(found.fused.bytes_moved)} on both sides. It makes launches cheaper and leaves the "
        "kernels alone. Switch `Launched` to a stream and choose fewer tokens to see the case in which that is all "
        "that counts.",
    )


def _reduction() -> Step:
    found = _two(patterns.rmsnorm(), ("tvm", "inductor"))
    return Step(
        title="Who fuses what",
        text="TVM's rules let a reduction take in what comes before it, but what follows a reduction is another group. "
        "The table of strategies shows all compilers side by side.",
        query="?pattern=rmsnorm&strategy=tvm&ask=mean,mul_1",
        ask="How much slower is the norm under these rules than as one kernel?",
        options=("not at all", "about a third slower", "three times slower"),
        right=1,
        answer=f"{float(found.fused.kernels):.0f} kernels: {_told(found)}. The tensor is read once more, for the "
        "second kernel, and that is about a third more than reading and writing it once. Below the drawing stands "
        "what one "
        "kernel would buy; the edge there can be saved by hand.",
    )


def _attention() -> Step:
    found = _two(patterns.attention(composite=False), ("optimal", "inductor"))
    long = _two(patterns.attention(seq=8192, composite=False), ("optimal", "inductor"))
    return Step(
        title="Attention in tiles",
        text="Two products with a softmax between them. The scores are a square: 2 048 x 2 048 for each of 32 heads. "
        "As one kernel they are made tile by tile and never stored; where the gradient needs them, they are made "
        "again.",
        query="?pattern=attention&composite=no&strategy=optimal",
        ask="The sequence gets four times as long. By how much do the bytes of the unfused program grow?",
        options=("4 times", "nearly 16 times", "they stay"),
        right=1,
        answer=f"The scores grow with the square: {readout.size(found.unfused.bytes_moved)} become "
        f"{readout.size(long.unfused.bytes_moved)}, and the peak of memory goes from "
        f"{readout.size(float(found.unfused.peak_memory))} to "
        f"{readout.size(float(long.unfused.peak_memory))}. In tiles it is four times: "
        f"{readout.size(found.fused.bytes_moved)} and {readout.size(long.fused.bytes_moved)}. The kernel has crossed "
        "the [ridge point]: it is bound by the matrix units.",
    )


def _product() -> Step:
    found = _two(patterns.matmul_bias_gelu(), ("tvm", "inductor"))
    return Step(
        title="An epilogue",
        text="A matrix product, then a bias and a GELU. The product is bound by the matrix units, what follows by "
        "memory.",
        query="?pattern=matmul_bias_gelu&strategy=tvm",
        ask="What becomes of the time of bias and GELU when they are the product's epilogue?",
        options=("it is added to the product", "next to nothing is left of it", "it doubles"),
        right=1,
        answer=f"{_told(found)}: they are done to the result before it leaves the chip, while the matrix units work "
        "on. The gain is small in proportion, because the product itself was never the problem. Pick `matmul` alone: "
        "there is nothing to gain.",
    )


def _siblings() -> Step:
    vertical, horizontal = (
        _two(patterns.independent4(elements=4096), (name, "inductor")) for name in ("vertical", "horizontal")
    )
    return Step(
        title="Neighbours",
        text="Four small ops that have nothing to do with one another. No edge runs between them, so along edges "
        "there is "
        "nothing to fuse.",
        query="?pattern=independent4&elements=4096&strategy=horizontal",
        ask="What can one kernel for all four save?",
        options=("bytes", "launches", "nothing"),
        right=1,
        answer=f"Launches only: {readout.size(horizontal.fused.bytes_moved)} either way, and "
        f"{readout.time(vertical.fused.time)} as {float(vertical.fused.kernels):.0f} kernels, "
        f"{readout.time(horizontal.fused.time)} as {float(horizontal.fused.kernels):.0f}. That is horizontal fusion, "
        "and it pays where tensors are small.",
    )


def _gelus() -> Step:
    found = _two(patterns.chain(ops=["gelu"] * 8))
    return Step(
        title="Where it stops paying",
        text="Eight GELUs in a row on 33 million values: one kernel moves an eighth of the bytes of eight.",
        query="?pattern=chain&ops=gelu*8",
        ask="How many times faster is the one kernel?",
        options=("about 8 times", "about 4 times", "less than twice"),
        right=2,
        answer=f"{_told(found)}. The bytes go, the instructions stay: with the bytes of one pass the kernel is "
        "bound by issuing "
        "instructions. It has moved from the left of the [ridge point] to its right. `Show the arithmetic` has both "
        "times.",
    )


def _even() -> Step:
    found = _two(patterns.transformer_block())
    calls = 30.0 / found.saving
    return Step(
        title="When compiling pays",
        text="A block of a transformer in its program's own order. Compiling it takes, say, 30 s.",
        query="?pattern=transformer_block",
        ask="After how many calls has that paid?",
        options=("about a hundred", "about ten thousand", "more than a hundred thousand"),
        right=2 if calls > 1e5 else 1,  # noqa: PLR2004 - as the option says
        answer=f"{_told(found)}: 30 s / {readout.time(found.saving)} = {units.format_count(round(calls))} calls. A "
        "model "
        "has dozens of such blocks, compiled once, so a training run is soon there; a script that runs once is not.",
    )
