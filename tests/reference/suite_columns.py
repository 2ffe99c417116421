"""Group norms and sums over columns, as PyTorch runs them eagerly."""

from __future__ import annotations

from suite_steps import single

GROUPED = (
    (1, 64, 16, 8), (2, 32, 32, 8), (4, 256, 8, 32), (4, 128, 16, 32), (8, 64, 64, 32), (4, 256, 64, 32),
    (2, 512, 64, 32), (1, 128, 256, 32), (1, 32, 512, 8), (16, 128, 32, 32), (32, 64, 16, 16), (8, 192, 48, 24),
    (4, 96, 56, 32), (1, 320, 64, 32), (64, 64, 32, 32),
)  # fmt: skip

COLUMNS = (
    (1500, 1000), (2000, 3000), (3000, 768), (4000, 1024), (1024, 4096), (6000, 512), (8000, 2048), (500, 1024),
    (256, 768), (20000, 256), (1200, 12000), (4096, 128), (100, 5000), (2000, 1600), (12000, 4096), (700, 700),
)  # fmt: skip


def columns():
    """Return group norms and sums over columns, eager."""
    for at, (n, c, hw, groups) in enumerate(GROUPED):
        for form, dtype in (("nchw", "bf16"), ("nchw", "fp32"), ("channels_last", "bf16"))[: 3 if at % 3 == 0 else 2]:
            inputs = [["x", [n, c, hw, hw], dtype, form], ["w", [c], dtype], ["b", [c], dtype]]
            yield single("group_norm", "group_norm", inputs, groups=groups)
    for r, c in COLUMNS:
        for dtype in ("bf16", "fp32"):
            yield single("sum_columns", "sum", [["x", [r, c], dtype]], dims=[0], keepdim=False)
