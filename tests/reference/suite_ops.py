"""Single ops as PyTorch runs them eagerly: pointwise in every form, layouts, concatenations."""

from __future__ import annotations

from suite_steps import single

SIZES = (9000, 260000, 3000000, 20000000, 70000000)
SHAPES = (
    (48, 3000), (700, 1000), (3000, 1024), (1500, 4096), (5000, 4100), (9000, 2560), (2500, 14336), (16000, 4096),
)  # fmt: skip

UNARY = (
    "neg", "relu", "exp", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "rsqrt", "sqrt", "sin", "log1p", "square",
)  # fmt: skip


def pointwise():
    """Return vectorised, broadcast, mixed, strided ops, eager."""
    for dtype in ("bf16", "fp32"):
        for size in SIZES:
            for op in UNARY:
                yield single("unary", op, [["x", [size], dtype]])
            for op in ("add", "mul", "div", "maximum"):
                yield single("binary", op, [["x", [size], dtype], ["z", [size], dtype]])
            for op in ("add", "sub", "mul", "div"):
                yield single("scalar", op, [["x", [size], dtype]], scalar=1.25)
            yield single("scalar", "div", [["x", [size], dtype]], scalar=1.25, reverse=True)
            yield single("pow", "pow", [["x", [size], dtype]], scalar=2)
            other = "fp32" if dtype == "bf16" else "bf16"
            yield single("cast", "cast", [["x", [size], dtype]], dtype=other)
            yield single("mixed", "mul", [["x", [size], dtype], ["z", [size], other]])
            yield single("dropout", "dropout", [["x", [size], dtype]], p=0.1)
        for r, c in SHAPES:
            yield from _broadcast(r, c, dtype)
            yield from _laid_out(r, c, dtype)
            yield from _joined(r, c, dtype)


def _broadcast(r, c, dtype):
    """Return ops whose operands differ in shape or type."""
    for op in ("add", "mul", "div"):
        yield single("row", op, [["x", [r, c], dtype], ["z", [c], dtype]])
        yield single("column", op, [["x", [r, c], dtype], ["z", [r, 1], dtype]])
    yield single("column_mixed", "mul", [["x", [r, c], "fp32"], ["z", [r, 1], "fp32"]])
    yield single("row_mixed", "mul", [["x", [r, c], "bf16"], ["z", [c], "fp32"]])
    yield single("middle", "mul", [["x", [r, max(c // 128, 1), 128], dtype], ["z", [r, 1, 128], dtype]])
    yield single("outer", "add", [["x", [r, 1], dtype], ["z", [c], dtype]])


def _laid_out(r, c, dtype):
    """Return ops on parts of rows, and copies into another order."""
    half = c // 2
    x = [["x", [r, c], dtype]]
    for op in ("neg", "copy", "mul"):
        steps = [["s", "slice", ["x"], {"dim": 1, "start": half, "stop": c}]]
        last = ["y", op, ["s"], {"scalar": 1.25} if op == "mul" else {}]
        yield {"probe": "sliced", "inputs": x, "steps": [*steps, last], "outputs": ["y"], "sides": ["eager"]}
    steps = [["s", "permute", ["x"], {"order": [1, 0]}], ["y", "copy", ["s"], {}]]
    yield {"probe": "transpose", "inputs": x, "steps": steps, "outputs": ["y"], "sides": ["eager"]}
    heads = max(c // 128, 1)
    x4 = [["x", [4, r // 4, heads, 128], dtype]]
    steps = [["s", "permute", ["x"], {"order": [0, 2, 1, 3]}], ["y", "copy", ["s"], {}]]
    yield {"probe": "heads", "inputs": x4, "steps": steps, "outputs": ["y"], "sides": ["eager"]}


def _joined(r, c, dtype):
    """Return copies, concatenations, comparisons and choices."""
    yield single("copy", "copy", [["x", [r, c], dtype]])
    yield single("concat", "concat", [["x", [r, c], dtype], ["z", [r, c], dtype]], dim=-1)
    yield single("concat", "concat", [["x", [r, c], dtype], ["z", [r, 64], dtype]], dim=-1)
    yield single("concat0", "concat", [["x", [r, c], dtype], ["z", [r, c], dtype]], dim=0)
    yield single("bool", "gt", [["x", [r, c], dtype], ["z", [r, c], dtype]])
    yield {
        "probe": "where",
        "inputs": [["x", [r, c], dtype], ["z", [r, c], dtype]],
        "steps": [["m", "gt", ["x", "z"], {}], ["y", "where", ["m", "x", "z"], {}]],
        "outputs": ["y"],
        "sides": ["eager"],
    }
