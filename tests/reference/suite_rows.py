"""Reductions, composites over rows, gathers and losses, as PyTorch runs them eagerly."""

from __future__ import annotations

from suite_steps import single

ROW_SHAPES = (
    (1, 700), (1, 4096), (1, 14336), (20, 300), (24, 4096), (40, 10000), (130, 2048), (200, 14336), (256, 1024),
    (500, 6000), (900, 4096), (1000, 513), (2000, 2048), (3000, 768), (4000, 8192), (4096, 1023), (6000, 1024),
    (7000, 5120), (8000, 12000), (12000, 256), (15000, 3000), (16384, 4096), (20000, 2000), (64, 50304), (3000, 32000),
)  # fmt: skip

COLUMN_SHAPES = (
    (64, 4096), (500, 6000), (2000, 2048), (8192, 1024), (16384, 4096), (20000, 512), (128, 256), (4096, 11008),
)  # fmt: skip

TABLES = (
    (64, 4096, 32000), (2048, 4096, 32000), (8192, 1024, 50000), (300, 768, 30000), (16384, 4096, 128000),
    (1024, 64, 10000), (20000, 64, 100000), (4096, 8192, 32000),
)  # fmt: skip

LOSSES = (
    (256, 1000), (2048, 32000), (8192, 50304), (4096, 5000), (100, 128000), (1024, 30522), (16384, 10000), (512, 512),
)  # fmt: skip


def rows():
    """Return reductions and composites over rows, eager."""
    for dtype in ("bf16", "fp32"):
        for r, c in ROW_SHAPES:
            x, w = ["x", [r, c], dtype], ["w", [c], dtype]
            for op in ("sum", "mean", "amax", "var"):
                yield single("reduce_row", op, [x])
            yield single("softmax", "softmax", [x])
            yield single("log_softmax", "log_softmax", [x])
            yield single("layer_norm", "layer_norm", [x, w, ["b", [c], dtype]])
            yield single("rms_norm", "rms_norm", [x, w])
        for r, c in COLUMN_SHAPES:
            yield single("reduce_column", "sum", [["x", [r, c], dtype]], dims=[0])
            yield single("reduce_all", "sum", [["x", [r, c], dtype]], dims=[0, 1], keepdim=False)
            yield single("reduce_middle", "mean", [["x", [8, r // 8, c], dtype]], dims=[1])
            yield single("cumsum", "cumsum", [["x", [r, c], dtype]])
    yield from _gathers()
    for r, c in LOSSES:
        for dtype in ("bf16", "fp32"):
            yield single("nll_loss", "nll_loss", [["x", [r, c], dtype], ["i", [r], "int64"]]) | {"highest": c}


def _gathers():
    """Return rows and elements of tables, chosen by an index."""
    for tokens, width, count in TABLES:
        for dtype in ("bf16", "fp32"):
            x, i = ["x", [count, width], dtype], ["i", [tokens], "int64"]
            yield single("embedding", "embedding", [x, i]) | {"highest": count}
            yield single("embedding_bag", "embedding_bag", [x, ["i", [tokens, 1], "int64"]]) | {"highest": count}
            yield single("index_row", "index_row", [x, i]) | {"highest": count}
            x, i = ["x", [tokens, width], dtype], ["i", [tokens, max(width // 4, 1)], "int64"]
            yield single("gather", "gather", [x, i], dim=1) | {"highest": width}
