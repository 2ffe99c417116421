"""Kernel classes that few programs had met: softmax, pictures, few queries, odd products; and more row kernels."""

from __future__ import annotations

from suite_products import statistics
from suite_steps import chained, single

SOFT_ROWS = (
    (3, 25000), (40, 26000), (300, 30000), (900, 40000), (2500, 28000), (64, 150000), (150, 100000), (4000, 32000),
    (30, 9500), (800, 10000), (5000, 11000), (12, 12200), (2000, 12000), (60, 12288), (20, 3000), (1200, 5000),
    (7000, 8000), (3000, 2500), (65536, 1000), (40000, 500), (150000, 120), (16384, 2048), (9000, 1536), (900, 256),
    (30000, 900), (700, 18000), (3500, 14000), (60, 22000),
)  # fmt: skip

DECODES = (
    (1, 8, 500, 64), (2, 32, 700, 128), (4, 16, 3000, 128), (16, 8, 1000, 128), (48, 12, 300, 64), (8, 64, 4000, 128),
    (128, 8, 1200, 128), (1, 16, 20000, 128), (24, 20, 1500, 64), (3, 40, 6000, 128),
)  # fmt: skip

PICTURES = (
    (2, 64, 32), (8, 32, 56), (1, 256, 48), (16, 128, 16), (4, 96, 28), (32, 16, 40), (2, 512, 24), (6, 8, 120),
    (64, 64, 14), (1, 1024, 20),
)  # fmt: skip

ODD = (
    (4, 30, 50, 40, 3, 1), (16, 33, 65, 28, 3, 1), (8, 100, 50, 32, 1, 1), (2, 130, 270, 24, 3, 1),
    (32, 18, 36, 56, 3, 2), (8, 250, 126, 14, 3, 1), (1, 70, 90, 96, 5, 1), (16, 42, 84, 20, 1, 1),
    (4, 514, 258, 16, 1, 1), (64, 22, 44, 28, 1, 1),
)  # fmt: skip

LOOPED = (
    (6, 3000), (20, 6000), (50, 2500), (90, 9000), (140, 4096), (300, 3500), (470, 7000), (700, 2100), (1500, 6144),
    (3000, 3072), (6000, 9000), (11000, 2304), (18000, 3500), (2500, 20000),
)  # fmt: skip
SHORT = (
    (5, 1500), (60, 1100), (250, 2000), (900, 1400), (2600, 1792), (7000, 1280), (16000, 1600), (15, 1901), (500, 1333),
    (4000, 1751),
)  # fmt: skip
KEPT = (
    (10, 900), (90, 400), (350, 700), (800, 300), (1400, 1000), (2500, 520), (6000, 260), (9000, 768), (18000, 400),
    (40, 333), (3000, 611), (14000, 901),
)  # fmt: skip
CUT = (
    (1, 20000), (2, 40000), (7, 9000), (16, 70000), (33, 12000), (70, 30000), (120, 17000), (210, 9216), (9, 131072),
    (50, 10001), (3, 33333), (128, 25001),
)  # fmt: skip
OPS = (
    ("norm", ["n layer_norm x w w", "y mul n w"]),
    ("mean", ["m mean x", "y sub x m"]),
    ("soft", ["y softmax x"]),
    ("spread", ["v var x", "a add v scalar=1.0", "d div x a", "y silu d"]),
)


def fill():
    """Return eager programs of kernel classes that few others have."""
    for at, (r, c) in enumerate(SOFT_ROWS):
        for dtype in ("bf16", "fp32"):
            yield single("softmax", "softmax", [["x", [r, c], dtype]])
            if at % 2 or dtype == "fp32":
                yield single("log_softmax", "log_softmax", [["x", [r, c], dtype]])
    for b, h, s, d in DECODES:
        yield single(
            "decode", "attention", [["q", [b, h, 1, d], "bf16"], *([key, [b, h, s, d], "bf16"] for key in "kv")]
        )
    for n, c, hw in PICTURES:
        for layout, dtype in (("channels_last", "bf16"), ("nchw", "bf16"), ("nchw", "fp32")):
            x = ["x", [n, c, hw, hw], dtype, layout]
            yield single("nearest", "upsample", [x], mode="nearest", factor=2)
            yield single("bilinear", "upsample", [x], mode="bilinear", factor=2)
            yield single("max_pool", "max_pool", [x], window=3, stride=2, padding=1)
            yield single("concat", "concat", [x, ["z", [n, max(c // 2, 1), hw, hw], dtype, layout]], dim=1)
    for n, ci, co, hw, k, s in ODD:
        for layout, dtype in (("channels_last", "bf16"), ("nchw", "fp32")):
            x, w = ["x", [n, ci, hw, hw], dtype, layout], ["w", [co, ci, k, k], dtype, layout]
            yield single("conv", "conv", [x, w], stride=s, padding=k // 2)


BAGS = (
    (20000, 64, 500, 2), (20000, 64, 5000, 20), (50000, 128, 3000, 5), (100000, 16, 8192, 50), (8000, 256, 1000, 10),
    (300000, 32, 20000, 3), (40000, 64, 16384, 8), (10000, 512, 400, 30), (60000, 96, 2500, 100), (5000, 768, 256, 4),
    (100000, 128, 6000, 12), (30000, 64, 100, 200), (200000, 48, 12000, 1), (15000, 1024, 2048, 6),
)  # fmt: skip


def bags():
    """Return sums of several rows of a table, eager."""
    for rows, width, count, each in BAGS:
        for dtype in ("fp32", "bf16"):
            inputs = [["x", [rows, width], dtype], ["i", [count, each], "int64"]]
            yield single("embedding_bag", "embedding_bag", inputs) | {"highest": rows}


FEATURES = (
    (128, 512), (1000, 2048), (5000, 256), (8192, 128), (16384, 512), (30000, 64), (2048, 4096), (50000, 300),
    (300, 100), (100000, 1024),
)  # fmt: skip


def features():
    """Return batch norms of rows of features in fp32, eager."""
    for rows, width in FEATURES:
        yield single("batch_norm", "batch_norm", [["x", [rows, width], "fp32"], *statistics(width, "fp32")])


def odd_places():
    """Return convolutions of one place over pictures whose places fill no 16 bytes, eager."""
    for n, ci, co, hw in ((8, 64, 128, 7), (32, 256, 64, 7), (4, 96, 192, 15), (16, 128, 128, 13), (2, 512, 256, 9),
                          (64, 32, 64, 11), (1, 256, 512, 21), (8, 320, 80, 25)):  # fmt: skip
        yield single("conv", "conv", [["x", [n, ci, hw, hw], "bf16"], ["w", [co, ci, 1, 1], "bf16"]])


def places():
    """Return more of them: places that fill eight bytes, four, or two."""
    for n, ci, co, hw in ((16, 192, 384, 14), (2, 768, 256, 18), (8, 96, 96, 22), (1, 128, 512, 30), (32, 64, 256, 10),
                          (4, 256, 1024, 6), (64, 384, 64, 7), (3, 160, 320, 11), (16, 1024, 256, 7), (2, 64, 64, 55),
                          (12, 448, 192, 17), (4, 512, 512, 19), (8, 256, 768, 5), (1, 96, 576, 35)):  # fmt: skip
        yield single("conv", "conv", [["x", [n, ci, hw, hw], "bf16"], ["w", [co, ci, 1, 1], "bf16"]])


def generated_fill():
    """Return generated kernels over rows of sizes that fall between those of the other suites."""
    for dtype in ("bf16", "fp32"):
        for shapes in (LOOPED, SHORT, KEPT, CUT):
            for at, (r, c) in enumerate(shapes):
                x, w = ["x", [r, c], dtype], ["w", [c], dtype]
                for place, (name, lines) in enumerate(OPS):
                    if (at + place) % 2 == 0:
                        inputs = [x, w] if name == "norm" else [x]
                        yield chained(f"fill_{name}", inputs, lines)


PADDED = (
    (512, 256, 1000), (512, 256, 1004), (512, 256, 1100), (512, 256, 2048), (512, 512, 3000), (512, 1024, 30000),
    (64, 768, 30522), (2048, 768, 5001), (2048, 512, 10000), (128, 4096, 32001), (4096, 256, 1500), (1024, 1024, 2050),
)  # fmt: skip


def padded():
    """Return products with a bias whose results fill no whole lines and are used by another kernel, compiled."""
    for m, k, n in PADDED:
        inputs = [["x", [m, k], "bf16"], ["w", [n, k], "bf16"], ["b", [n], "bf16"]]
        yield chained("padded_softmax", inputs, ["h linear x w b", "y softmax h"])
        yield chained("padded_gelu", inputs, ["h linear x w b", "y gelu h"])


SHORTEST = (1, 2, 3, 4, 6, 7, 8, 12, 16, 24, 32)


def shortest():
    """Return generated kernels over rows that are shorter than a warp, compiled."""
    for at, c in enumerate(SHORTEST):
        for r in (4096, 300000)[at % 2 :]:
            for dtype in ("bf16", "fp32"):
                x, w = ["x", [r, c], dtype], ["w", [c], dtype]
                for name, lines in OPS[:3]:
                    yield chained(f"short_{name}", [x, w] if name == "norm" else [x], lines)
