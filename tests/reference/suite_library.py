"""Convolutions with few channels and others, long products in one round, gradients of attention, eager."""

from __future__ import annotations

from suite_steps import single

FEW_CHANNELS = (
    (8, 3, 768, 224, 16, 16), (4, 3, 512, 256, 16, 16), (8, 3, 1024, 224, 14, 14), (32, 3, 192, 96, 8, 8),
    (2, 3, 96, 384, 4, 4), (16, 3, 32, 224, 3, 2), (4, 3, 64, 512, 7, 2), (8, 1, 32, 128, 3, 1), (16, 1, 64, 64, 5, 1),
    (4, 4, 128, 64, 3, 1), (8, 4, 320, 64, 3, 1), (16, 6, 64, 56, 3, 1), (8, 8, 64, 112, 3, 1), (8, 12, 64, 56, 3, 1),
    (8, 320, 4, 32, 3, 1), (4, 128, 4, 64, 3, 1), (8, 64, 3, 128, 3, 1),
)  # fmt: skip

CONVS = (
    (4, 384, 128, 64, 3, 1), (2, 512, 256, 64, 3, 1), (8, 128, 256, 64, 3, 2), (16, 64, 32, 112, 3, 1),
    (16, 32, 64, 112, 3, 1), (4, 640, 320, 32, 3, 1), (4, 1024, 256, 32, 3, 1), (1, 256, 256, 128, 3, 1),
    (8, 96, 96, 96, 3, 1), (64, 128, 128, 28, 3, 1), (64, 64, 256, 28, 1, 1), (2, 960, 640, 32, 3, 1),
    (8, 320, 320, 64, 3, 1), (32, 48, 64, 56, 3, 1), (2, 256, 256, 32, 3, 1), (4, 128, 128, 48, 3, 1),
    (4, 256, 512, 32, 3, 2), (16, 512, 512, 14, 3, 1), (16, 256, 256, 28, 3, 1), (16, 128, 512, 28, 1, 1),
)  # fmt: skip

LONG = (
    (512, 2048, 4096), (512, 6144, 4096), (512, 8192, 4096), (512, 14336, 4096), (1024, 8192, 2048),
    (1024, 4096, 2048), (1024, 16384, 2048), (2048, 3072, 1024), (2048, 8192, 1024), (2048, 8192, 2048),
    (2048, 3072, 2048), (768, 4096, 3072), (384, 8192, 4096), (256, 8192, 4096), (256, 16384, 8192), (640, 5120, 5120),
    (1000, 4096, 4000), (4096, 4096, 1024), (4096, 12288, 1024), (128, 8192, 8192), (64, 12288, 4096),
    (8192, 1536, 6144), (16384, 1024, 4096), (6144, 1024, 4096), (12288, 768, 3072),
)  # fmt: skip

GRADIENTS = (
    (2, 8, 128, 64), (4, 16, 512, 64), (2, 12, 1000, 64), (8, 16, 256, 64), (1, 16, 2048, 128), (4, 32, 1024, 128),
    (16, 12, 384, 64), (1, 8, 4096, 64), (32, 16, 512, 64), (3, 20, 768, 128),
)  # fmt: skip

SMALL = (20000, 100000, 400000, 800000, 1500000, 2000000)


def library():
    """Return what runs in a vendor's library, eager."""
    for n, ci, co, hw, k, s in FEW_CHANNELS:
        padding = k // 2 if s < k else 0
        for layout, dtype in (("channels_last", "bf16"), ("nchw", "bf16"), ("nchw", "fp32")):
            x, w = ["x", [n, ci, hw, hw], dtype, layout], ["w", [co, ci, k, k], dtype, layout]
            yield single("conv_few", "conv", [x, w], stride=s, padding=padding)
    for at, (n, ci, co, hw, k, s) in enumerate(CONVS):
        weight = [co, ci, k, k]
        for layout, dtype in (("channels_last", "bf16"), ("nchw", "bf16" if at % 2 else "fp32")):
            x, w = ["x", [n, ci, hw, hw], dtype, layout], ["w", weight, dtype, layout]
            yield single("conv", "conv", [x, w], stride=s, padding=k // 2)
        if at % 3 == 0:
            x, w = ["x", [n, ci, hw, hw], "bf16"], ["w", weight, "bf16", "channels_last"]
            yield single("conv_bias", "conv", [x, w, ["b", [co], "bf16"]], stride=s, padding=k // 2)
    for m, k, n in LONG:
        yield single("matmul", "matmul", [["x", [m, k], "bf16"], ["w", [k, n], "bf16"]])
        yield single("linear_bias", "linear", [["x", [m, k], "bf16"], ["w", [n, k], "bf16"], ["b", [n], "bf16"]])
    for b, h, s, d in GRADIENTS:
        for causal in (False, True):
            inputs = [[key, [b, h, s, d], "bf16"] for key in "qkvg"]
            yield single("attention_gradients", "attention_gradients", inputs, causal=causal)
    for size in SMALL:
        yield single("small", "add", [["x", [size], "bf16"], ["z", [size], "bf16"]])
        yield single("small", "gelu", [["x", [size], "bf16"]])
