"""Single ops on little data, eager: what their dependent instructions take, before throughput matters."""

from __future__ import annotations

from programs import BINARY, REDUCTIONS, UNARY
from suite_steps import single

SHAPES = ((3, 500), (40, 512), (100, 1000), (500, 400))
ROWS = (
    (3, 500), (40, 512), (100, 1000), (20, 3000), (6, 10000), (300, 300),
    (500, 3000), (1500, 1200), (1024, 2048), (60, 7000), (2, 11000), (4000, 320),
)  # fmt: skip


def small():
    """Return each pointwise op, alone and with each kind of operand, and reductions of few rows."""
    for dtype in ("bf16", "fp32"):
        for r, c in SHAPES:
            x = ["x", [r, c], dtype]
            for op in (*UNARY, "log1p"):
                yield single("unary", op, [x])
            for op in BINARY:
                yield single("binary", op, [x, ["z", [r, c], dtype]])
            for op in BINARY[:4]:
                yield single("scalar", op, [x], scalar=1.25)
                yield single("column", op, [x, ["z", [r, 1], dtype]])
            for op in ("add", "mul"):
                yield single("row", op, [x, ["z", [c], dtype]])
        for r, c in ROWS:
            x, w = ["x", [r, c], dtype], [[name, [c], dtype] for name in ("w", "b")]
            for op in (*REDUCTIONS, "softmax"):
                yield single("rows", op, [x])
            yield single("rows", "layer_norm", [x, *w])
