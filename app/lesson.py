"""The text of the chain page: why fusion helps, what it is not, and the words for it.

Plain data, set by `article`. A word between backticks is code. Figures in the text follow from the textbook model
and the H100's datasheet; the tests price them again. What is wrong with the textbook is in `real`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, its paragraphs, and a list where there is something to list."""

    anchor: str
    title: str
    paragraphs: tuple[str, ...]
    points: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One of the words that are easily taken for each other."""

    name: str
    meaning: str
    bytes_saved: str
    launches_saved: str


LEAD: Final = (
    "A chain of small operations can run as one kernel each, or as a single kernel that does them all. "
    "See what that is worth."
)

SECTIONS: Final = (
    Section(
        anchor="memory-bound",
        title="Why element-wise kernels wait for memory",
        paragraphs=(
            (
                "An element-wise operation touches every value and does next to nothing with it. Multiplying a bf16 "
                "tensor by a number takes 2 bytes in and 2 bytes out for one multiplication: 0.25 FLOP per byte. An "
                "H100 does about 20 fp32 operations in the time its memory needs for one byte, so on such a kernel its "
                "arithmetic units stand idle 99 % of the time. Faster arithmetic would change nothing. Fewer bytes do."
            ),
            (
                "The roofline above shows it: left of the ridge, a kernel can only climb along the slope. Fusion moves "
                "the chain to the right, because the same arithmetic is done on fewer bytes, and so it climbs."
            ),
        ),
    ),
    Section(
        anchor="traffic",
        title="Count the bytes",
        paragraphs=(
            (
                "Take k operations on S values of b bytes. As k kernels, each one reads the whole tensor and writes "
                "the whole tensor: k x 2bS bytes. All but the last of these results are written for one purpose, to be "
                "read again by the next kernel."
            ),
            (
                "Fused, a thread loads its values once, carries them through all k steps in registers and stores the "
                "end result: 2bS bytes, however long the chain. For 8 192 x 4 096 values in bf16 and five operations "
                "that is 134.2 MB in place of 671.1 MB. The four tensors in between need no memory at all."
            ),
        ),
    ),
    Section(
        anchor="launches",
        title="Count the launches",
        paragraphs=(
            (
                "Starting a kernel costs a few microseconds, whatever the size of the tensor. Going from five launches "
                "to one saves 80 % of that cost, from twenty to one 95 %."
            ),
            (
                "How much it matters depends on the size. One decoded token of 4 096 values is moved in 5 nanoseconds, "
                "a launch takes 4 microseconds: launches are all there is, and the chain costs what its launches cost. "
                "At 33 million values a kernel moves bytes for 40 microseconds, and launches are a footnote. Both "
                "regimes end at a speedup of k, for different reasons; the shaded part of the chart is the first one."
            ),
            (
                "The textbook adds launches and memory. Real queues issue the next launch while the previous kernel "
                "still runs, and small tensors are found in the L2 cache by the kernel that follows. Both make "
                "separate kernels look better than the textbook has them; the steps of the model, further up, "
                "switch such effects on one at a time."
            ),
        ),
    ),
    Section(
        anchor="commonly-fused",
        title="What is commonly fused",
        paragraphs=(
            (
                "Almost everything that is cheap per byte and stands next to something else. Where a matrix "
                "multiplication comes first, they are done to its result before that leaves the chip: an epilogue."
            ),
        ),
        points=(
            "Chains of element-wise steps: scalings, sigmoid, GELU, dropout, residual additions.",
            "Bias and activation, as the epilogue of a matrix multiplication.",
            (
                "RMSNorm and layer norm: a reduction over a row with the steps around it, often with the residual "
                "addition in front."
            ),
            "SwiGLU's gate (SiLU of one half times the other half) and rotary embeddings.",
            "Convolution, batch norm and ReLU.",
            (
                "Attention: both matrix multiplications and the softmax between them, tile by tile, so that the score "
                "matrix never exists in memory."
            ),
            "Optimiser steps: all of Adam's updates in one pass over the parameters.",
        ),
    ),
    Section(
        anchor="no-gain",
        title="What gains little",
        paragraphs=(
            (
                "A single operation has nothing to be fused with: set k to 1 and the speedup is 1.00x. A large matrix "
                "multiplication does hundreds of FLOP per byte and sits right of the ridge, where bytes are not the "
                "limit. And a kernel can be made too big: when its values no longer fit in registers they spill to "
                "memory, and the traffic that fusion removed comes back."
            ),
        ),
    ),
    Section(
        anchor="compiler",
        title="Why the compiler does not fuse two `__global__` functions",
        paragraphs=(
            (
                "A CUDA compiler sees each `__global__` function alone. Which kernel runs after which, on what "
                "pointers and with how many threads, is decided by host code at run time, long after the compiler."
            ),
            (
                "Even if it knew, it would not be allowed to. A kernel that has ended promises that all it wrote is in "
                "memory, where a copy, another stream or the host may be looking; leaving the write out would change "
                "the program. And the second kernel may read what any thread of the first one wrote, so the boundary "
                "also acts as a barrier across the whole GPU, which the inside of one kernel does not have for free."
            ),
            (
                "So fusion happens one level up, where the flow of data is known: by hand, or in a compiler that is "
                "given the graph of operations, such as `torch.compile`, XLA or TVM."
            ),
        ),
    ),
)

TERMS_TITLE: Final = "Fusion, fusion and graphs"
TERMS_ASK: Final = ("Saves bytes?", "Saves launches?")
TERMS_LEAD: Final = "Five terms that are taken for each other, and what each of them can save."
TERMS: Final = (
    Term(
        name="Operator fusion",
        meaning="A decision on the graph of operations: these nodes are to become one.",
        bytes_saved="decides it",
        launches_saved="decides it",
    ),
    Term(
        name="Loop fusion",
        meaning="Loops over the same range become one loop, so a value is used while it is at hand.",
        bytes_saved="yes",
        launches_saved="only if the loops were kernels",
    ),
    Term(
        name="Kernel fusion",
        meaning="What runs in the end: one kernel that does the work of several.",
        bytes_saved="yes",
        launches_saved="yes",
    ),
    Term(
        name="Graph fusion",
        meaning="The search over a whole graph for groups worth fusing: vertically along a chain, or horizontally "
        "across independent neighbours.",
        bytes_saved="finds where",
        launches_saved="finds where",
    ),
    Term(
        name="CUDA graph",
        meaning="A recorded sequence of launches, replayed at once. The kernels stay as they are.",
        bytes_saved="no",
        launches_saved="makes them cheaper",
    ),
)
TERMS_NOTE: Final = (
    "A CUDA graph and fusion are not rivals. At 4 096 values, five kernels take 20.0 us on a stream and 10.0 us in a "
    "graph; fused they take 4.0 us on a stream, and 6.0 us in a graph that is replayed for them alone. At 33 million "
    "values the graph barely helps: it moves every byte that the stream moved."
)

GLOSSARY: Final = (
    ("Kernel", "A function that runs on the GPU, started by one launch."),
    ("Launch overhead", "The fixed cost of starting a kernel, paid for each one whatever its size."),
    ("Intermediate tensor", "A result that only the next operation reads. Fusion keeps it on the chip."),
    ("Arithmetic intensity", "Arithmetic done per byte moved, in FLOP/B."),
    ("Ridge point", "The arithmetic intensity at which memory and arithmetic take equally long on a device."),
    ("Memory-bound", "Left of the ridge point: the time is the bytes over the bandwidth."),
    ("Epilogue", "Operations done to a matrix multiplication's result before it is written."),
    ("Textbook model", "Launches plus bytes over peak bandwidth. No caches, no overlap, arithmetic for free."),
    ("Calibrated model", "The same with what was measured on a device, or on a relative of it, effect by effect."),
    ("Kernel floor", "What it costs the device to start and end a kernel that does nothing."),
    ("Host interval", "The time between two launches of a host that does nothing else; it belongs to the software."),
    ("90 % interval", "A range made to hold nine in ten new measurements; the page Accuracy counts them."),
    ("Roof", "The lowest of a device's ceilings at an arithmetic intensity: no kernel there can be faster."),
    ("Ceiling", "One limit of a device: a bandwidth, or a peak rate of arithmetic."),
    ("Fusion plan", "Which ops of a program share a kernel: a partition of them into groups."),
    ("Horizontal fusion", "One kernel for ops that do not read one another, such as siblings of one size."),
    ("Recompute", "To make a value again where it is needed, in place of storing and loading it."),
    ("Common subexpression", "The same value computed in two places; one computation is enough."),
    ("Break-even", "The number of calls after which compiling has saved as much time as it took."),
    ("Special functions", "exp, sin, rsqrt and the like, done by a narrow unit of their own."),
    ("Tensor cores", "Units that multiply small matrices; their peaks are many times those of plain arithmetic."),
    ("Dense peak", "The peak rate without counting on zeros in the operands; sparse peaks are twice as high."),
    ("Residual", "What is left between a prediction and its measurement."),
    ("Ablation", "A model with one of its effects left out, to see what the effect is worth."),
    ("Regime", "What binds a kernel's time: launches, memory, the cache, arithmetic, or the host."),
)

CHAIN_TERMS: Final = 12
"""How many of these, the first ones, the chain page explains; the others are of other pages."""

TRY_LEAD: Final = "Each link sets the controls."
TRIES: Final = (
    ("A long chain on a large tensor: the speedup is nearly k.", "?ops=20&elements=33554432"),
    ("The same chain on one token: almost the same speedup, all of it from launches.", "?ops=20&elements=4096"),
    ("One token in a CUDA graph: cheaper launches, the same bytes.", "?ops=5&elements=4096&launch=graph"),
    ("A GPU with a tenth of the bandwidth: launches matter less.", "?ops=5&elements=4194304&device=t4"),
    (
        "Eight GELUs on an H200, calibrated: step the model back to see where 8x comes from.",
        "?ops=gelu*8&elements=33554432&device=h200-sxm&model=calibrated",
    ),
    (
        "The lesson's five ops on an H200, with what was measured there.",
        "?ops=add,mul,relu,neg,abs&elements=1048576&device=h200-sxm&model=calibrated",
    ),
    (
        "The same in a CUDA graph, replayed as it was for the measurement.",
        "?ops=add,mul,relu,neg,abs&elements=1048576&device=h200-sxm&launch=graph&model=calibrated&inputs=rotating",
    ),
    ("Launches for free: what is left is memory, at every size.", "?ops=5&elements=4096&launch_overhead=0us"),
)
