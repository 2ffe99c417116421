"""More points of classes that had few, eager."""

from __future__ import annotations

from suite_products import statistics
from suite_steps import single

LAYOUTS = (("channels_last", "bf16"), ("nchw", "bf16"), ("nchw", "fp32"))
ODD_ROWS = (
    (1, 1001), (20, 301), (74, 4591), (130, 10357), (300, 2049), (396, 7022), (767, 8191), (2000, 999), (5000, 3001),
    (9000, 1025), (12000, 257),
)  # fmt: skip

LONG_ROWS = (
    (8, 10240), (100, 12288), (500, 20000), (1000, 11000), (3000, 16000), (128, 128000), (16, 65536), (2000, 50257),
    (600, 40000), (4, 30000), (5000, 10240),
)  # fmt: skip

COLUMNS = (
    (300, 1000), (1000, 300), (3000, 3000), (700, 20000), (30000, 100), (10, 10000), (12000, 1024),
)  # fmt: skip

LOSSES = (
    (64, 512), (1000, 1000), (3000, 50257), (20000, 100), (500, 128000),
)  # fmt: skip

HEADS = (
    (2, 12, 512, 64), (1, 8, 300, 64), (16, 12, 256, 64), (4, 16, 1024, 128), (1, 24, 4096, 64), (2, 8, 700, 128),
)  # fmt: skip

LINEARS = (
    (33, 1000, 1000), (300, 784, 256), (2048, 512, 256), (4096, 13, 512), (64, 415, 512), (2048, 415, 512),
    (512, 4096, 512), (5000, 300, 700),
)  # fmt: skip

CONVS = (
    (16, 3, 32, 112, 3, 2), (1, 3, 64, 224, 7, 2), (8, 3, 96, 224, 4, 4), (64, 3, 64, 32, 3, 1),
    (32, 64, 128, 32, 3, 2), (16, 96, 24, 56, 1, 1), (16, 24, 144, 56, 1, 1), (64, 64, 64, 32, 3, 1),
    (64, 256, 256, 8, 3, 1), (8, 512, 512, 28, 3, 1), (2, 64, 64, 256, 3, 1), (2, 128, 64, 128, 1, 1),
    (128, 128, 128, 16, 3, 1), (4, 1024, 512, 16, 3, 1), (8, 192, 384, 28, 2, 2), (32, 512, 1024, 14, 1, 2),
    (1, 256, 256, 56, 3, 1), (16, 32, 32, 112, 3, 1), (64, 512, 128, 14, 1, 1), (8, 2048, 512, 7, 1, 1),
    (128, 64, 256, 28, 1, 1),
)  # fmt: skip

POOLS = (
    (64, 64, 32), (1, 64, 112), (32, 192, 28), (8, 480, 14), (128, 32, 32), (16, 16, 224),
)  # fmt: skip

DEPTHWISE = (
    (32, 32, 112, 3), (32, 96, 56, 3), (32, 192, 28, 3), (32, 576, 14, 3), (8, 240, 28, 5), (64, 960, 7, 3),
)  # fmt: skip


def more():
    """Return more points of classes that had few, eager."""
    for dtype in ("bf16", "fp32"):
        for r, c in ODD_ROWS:
            x, w = ["x", [r, c], dtype], ["w", [c], dtype]
            yield single("layer_norm", "layer_norm", [x, w, ["b", [c], dtype]])
            yield single("rms_norm", "rms_norm", [x, w])
        for r, c in LONG_ROWS:
            x = ["x", [r, c], dtype]
            yield single("softmax", "softmax", [x])
            yield single("log_softmax", "log_softmax", [x])
            for op in ("sum", "amax", "var"):
                yield single("reduce_row", op, [x])
        for r, c in COLUMNS:
            x = ["x", [r, c], dtype]
            yield single("reduce_column", "sum", [x], dims=[0])
            yield single("reduce_all", "sum", [x], dims=[0, 1], keepdim=False)
            yield single("reduce_middle", "sum", [["x", [16, max(r // 16, 1), c], dtype]], dims=[1])
            yield single("cumsum", "cumsum", [x])
        yield from _others(dtype)
    yield from _convolutions()


def _others(dtype):
    """Return gathers, losses, casts, attention and products."""
    for width in (64, 128, 256, 512, 2048):
        for tokens in (128, 1000, 30000):
            case = single("embedding", "embedding", [["x", [50000, width], dtype], ["i", [tokens], "int64"]])
            yield case | {"highest": 50000}
    for r, c in LOSSES:
        yield single("nll_loss", "nll_loss", [["x", [r, c], dtype], ["i", [r], "int64"]]) | {"highest": c}
    for size in (50000, 700000, 8000000, 40000000):
        other = "fp32" if dtype == "bf16" else "bf16"
        yield single("cast", "cast", [["x", [size], dtype]], dtype=other)
        yield single("mixed", "mul", [["x", [size], dtype], ["z", [size], other]])
        yield single("dropout", "dropout", [["x", [size], dtype]], p=0.1)
    for b, h, s, d in HEADS:
        yield single("attention", "attention", [[key, [b, h, s, d], dtype] for key in "qkv"])
    for m, k, n in LINEARS:
        inputs = [["x", [m, k], dtype], ["w", [n, k], dtype], ["b", [n], dtype]]
        yield single("linear_bias", "linear", inputs)
        yield single("linear", "linear", inputs[:2])


def _convolutions():
    """Return convolutions, batch norms and pooling in every layout."""
    for n, ci, co, hw, k, s in CONVS:
        for layout, dtype in LAYOUTS:
            x, w = ["x", [n, ci, hw, hw], dtype, layout], ["w", [co, ci, k, k], dtype, layout]
            yield single("conv", "conv", [x, w], stride=s, padding=0 if k in {2, 4} else k // 2)
        for layout, dtype in LAYOUTS:
            x = ["x", [n, co, hw // s, hw // s], dtype, layout]
            for stat in sorted({dtype, "fp32"}):
                yield single("batch_norm", "batch_norm", [x, *statistics(co, stat)])
    for n, c, hw in POOLS:
        for layout, dtype in LAYOUTS:
            x = ["x", [n, c, hw, hw], dtype, layout]
            yield single("max_pool", "max_pool", [x], window=3, stride=2, padding=1)
            yield single("mean_space", "mean", [x], dims=[2, 3])
    for n, c, hw, k in DEPTHWISE:
        for layout in ("channels_last", "nchw"):
            x, w = ["x", [n, c, hw, hw], "bf16", layout], ["w", [c, 1, k, k], "bf16", layout]
            yield single("depthwise", "conv", [x, w], padding=k // 2, groups=c)
