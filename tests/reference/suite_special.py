"""Ops whose operands are zero or NaN half of the time, beside the same ops on what is neither: their slow paths."""

from __future__ import annotations

SHAPES = ((40, 512), (2000, 1024), (3000, 5000))
BEFORE = ("abs", "relu", "sqrt")
"""Of normal values: neither, half of them zero, half of them NaN."""

AFTER = (
    "silu", "sigmoid", "gelu", "gelu_tanh", "tanh", "exp", "sin", "rsqrt", "sqrt",
    "softmax", "layer_norm", "var", "amax", "sum",
)  # fmt: skip


def special():
    """Return each op after each of `BEFORE`, eager and compiled."""
    for dtype in ("bf16", "fp32"):
        for r, c in SHAPES:
            x, z = ["x", [r, c], dtype], ["z", [r, c], dtype]
            for before in BEFORE:
                for op in AFTER:
                    yield _program("special", [x], before, [op, ["p"]])
                for op in ("div", "maximum"):
                    yield _program("numerator", [x, z], before, [op, ["p", "z"]])
                yield _program("denominator", [x, z], before, ["div", ["z", "p"]])


def _program(probe, inputs, before, after):
    steps = [["p", before, ["x"], {}], ["y", *after, {}]]
    return {"probe": probe, "inputs": inputs, "steps": steps, "outputs": ["y"], "sides": ["eager", "compiled"]}
