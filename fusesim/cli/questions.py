"""Ten questions that are asked again and again, and for each the one command and the one call that answers it."""

from __future__ import annotations

from typing import Final, NamedTuple


class Question(NamedTuple):
    """A question, the command line behind `fusesim` and the Python expression that answer it."""

    text: str
    command: str
    call: str


QUESTIONS: Final = (
    Question(
        "How much is launch overhead, and do graphs or fusion remove it?",
        "trace trace.json.gz",
        'fusesim.rank(fusesim.read_trace("trace.json.gz")).explain()',
    ),
    Question(
        "Why is my fused kernel slower?",
        "plan gelu rows=8192 cols=4096 --strategy inductor --explain",
        "fusesim.compare(fusesim.patterns.gelu(rows=8192, cols=4096)).explain()",
    ),
    Question(
        "Is N GB/s good, or impossible?",
        'check "268 MB" "4.2 TB/s" --device h200-sxm',
        'fusesim.check(268e6, 268e6 / 4.2e12, device="h200-sxm").explain()',
    ),
    Question(
        "When is a fusion too big?",
        "plan rmsnorm tokens=2048 hidden=65536 --strategy vertical --explain",
        "fusesim.compare(fusesim.patterns.rmsnorm(tokens=2048, hidden=65536), "
        'fused=("vertical", "inductor")).explain()',
    ),
    Question(
        "Why did the compiler not fuse these two, and what would it buy?",
        "why matmul_bias_gelu matmul gelu m=2048",
        'fusesim.why.why(fusesim.patterns.matmul_bias_gelu(m=2048), "matmul", "gelu")',
    ),
    Question(
        "Is my benchmark lying: warm cache, launch included?",
        'check "8 MB" "12 us" --launch latency',
        'fusesim.check(8e6, 12e-6, launch="latency").explain()',
    ),
    Question(
        "Why is torch.compile slower than eager on small tensors?",
        "plan bias_relu rows=128 cols=512 --strategy inductor --launch stream --explain",
        'fusesim.compare(fusesim.patterns.bias_relu(rows=128, cols=512), launch="stream").explain()',
    ),
    Question(
        "What does a fusion buy end to end?",
        "trace trace.json.gz --explain 1",
        'fusesim.rank(fusesim.read_trace("trace.json.gz")).fusions[0].explain()',
    ),
    Question(
        "Why are reductions of short rows slow?",
        "plan layernorm rows=1048576 cols=32 --strategy inductor --explain",
        "fusesim.compare(fusesim.patterns.layernorm(rows=1048576, cols=32)).explain()",
    ),
    Question(
        "Can many tiny independent kernels be merged?",
        "plan independent4 elements=4096 --strategy horizontal --explain",
        'fusesim.compare(fusesim.patterns.independent4(elements=4096), fused=("horizontal", "inductor")).explain()',
    ),
)
"""In the order of how often they are asked."""

BLOCK: Final = "\b\n"
"""click's mark for lines that keep their breaks."""


def epilogue() -> str:
    """Return the questions for the end of ``fusesim --help``."""
    lines = [f"{one.text}\n  fusesim {one.command}" for one in QUESTIONS]
    return BLOCK + "Ten questions:\n" + "\n".join(lines)


def markdown() -> str:
    """Return the questions as a table."""
    rows = [f"| {one.text} | `fusesim {one.command}` | `{one.call}` |" for one in QUESTIONS]
    return "\n".join(["| question | command | call |", "|---|---|---|", *rows])
