"""Matrix products, convolutions with what stands around them, and attention, as PyTorch runs them eagerly."""

from __future__ import annotations

from suite_steps import single

MATMULS = (
    (1, 4096, 4096), (1, 8192, 28672), (4, 4096, 14336), (8, 2048, 8192), (16, 4096, 4096), (32, 5120, 5120),
    (48, 4096, 12288), (64, 8192, 8192), (96, 1024, 4096), (128, 4096, 14336), (128, 512, 512), (200, 3000, 1000),
    (256, 1024, 1024), (256, 4096, 4096), (384, 768, 3072), (512, 2048, 2048), (512, 8192, 1024), (600, 600, 600),
    (768, 4096, 12288), (1000, 1000, 1000), (1024, 768, 768), (1024, 768, 3072), (1024, 3072, 768), (1024, 4096, 4096),
    (1024, 16384, 256), (1536, 1536, 6144), (2048, 1024, 1024), (2048, 2048, 5632), (2048, 5632, 2048),
    (2048, 2048, 2048), (3000, 4000, 5000), (4096, 1024, 1024), (4096, 4096, 4096), (4096, 4096, 11008),
    (4096, 11008, 4096), (4097, 2049, 1025), (6272, 768, 768), (6272, 768, 3072), (8192, 1024, 3072),
    (8192, 1024, 4096), (8192, 4096, 1024), (8192, 8192, 8192), (16384, 64, 16384), (16384, 512, 512),
    (16384, 4096, 4096), (32, 64, 4096), (2048, 4096, 32000), (8192, 2048, 2048), (100, 100, 100), (5000, 128, 5000),
)  # fmt: skip

BATCHED = (
    (12, 128, 64, 128), (128, 512, 64, 512), (32, 1024, 128, 1024), (64, 256, 256, 256), (16, 2048, 64, 2048),
    (256, 27, 64, 27), (2048, 27, 64, 27), (8, 1024, 1024, 1024), (96, 197, 64, 197), (32, 1, 128, 4096),
)  # fmt: skip

CONVS = (
    (32, 3, 64, 224, 7, 2), (32, 64, 64, 56, 1, 1), (32, 64, 256, 56, 1, 1), (32, 256, 64, 56, 1, 1),
    (32, 256, 128, 56, 1, 1), (32, 128, 128, 56, 3, 2), (32, 128, 512, 28, 1, 1), (32, 256, 512, 56, 1, 2),
    (32, 512, 128, 28, 1, 1), (32, 128, 128, 28, 3, 1), (32, 256, 256, 28, 3, 2), (32, 256, 256, 14, 3, 1),
    (32, 1024, 256, 14, 1, 1), (32, 256, 1024, 14, 1, 1), (32, 512, 512, 7, 3, 1), (32, 2048, 512, 7, 1, 1),
    (32, 512, 2048, 7, 1, 1), (8, 64, 64, 56, 3, 1), (8, 256, 256, 14, 3, 1), (64, 3, 768, 224, 16, 16),
    (16, 64, 128, 128, 3, 1), (4, 320, 320, 64, 3, 1), (1, 128, 128, 256, 3, 1), (128, 512, 512, 14, 3, 1),
)  # fmt: skip

POOLS = (
    (32, 64, 112), (8, 64, 112), (16, 128, 56), (32, 256, 28),
)  # fmt: skip

DEPTHWISE = (
    (32, 144, 56, 3), (32, 384, 14, 3), (16, 96, 56, 7), (8, 576, 14, 5),
)  # fmt: skip

HEADS = (
    (1, 16, 128, 64), (8, 12, 128, 64), (8, 16, 1024, 64), (4, 12, 197, 64), (64, 12, 197, 64), (1, 32, 1024, 128),
    (1, 16, 2048, 128), (2, 32, 4096, 128), (1, 32, 8192, 128), (16, 16, 512, 64), (4, 8, 2000, 96), (2, 40, 512, 128),
    (32, 8, 256, 32), (1, 8, 16384, 64),
)  # fmt: skip

DECODES = (
    (1, 32, 1024, 128), (8, 32, 2048, 128), (32, 32, 4096, 128), (64, 16, 512, 64),
)  # fmt: skip


VECTORS = (
    (1, 1024, 1), (1, 8192, 1), (1, 100000, 1), (32, 1024, 1), (64, 16384, 1), (256, 256, 1), (512, 4096, 1),
    (2048, 128, 1), (2048, 1024, 1), (2048, 30000, 1), (4096, 4096, 1), (8192, 13, 1), (8192, 512, 1),
    (16384, 2048, 1), (50000, 64, 1), (100000, 256, 1), (100000, 1024, 1), (500000, 32, 1), (1, 256, 1000),
    (1, 768, 768), (1, 1024, 2048), (1, 2048, 8192), (1, 4096, 4096), (1, 4096, 32000), (1, 5120, 13824),
    (1, 11008, 4096), (1, 16384, 256), (1, 512, 100000), (1, 64, 64), (1, 3000, 1001),
)  # fmt: skip

SLIM = (
    (2048, 1024, 2), (2048, 1024, 4), (2048, 1024, 8), (2048, 1024, 16), (32, 4096, 2), (512, 512, 10),
    (8192, 256, 3), (16384, 4096, 4), (50000, 64, 8), (100000, 512, 2), (256, 8192, 5), (4096, 768, 6),
    (2, 1024, 4096), (2, 4096, 4096), (3, 768, 3072), (4, 2048, 2048), (6, 4096, 11008), (8, 5120, 5120),
)  # fmt: skip


def vectors():
    """Return products of a matrix and a vector, from either side, and of a matrix and few vectors, eager."""
    for m, k, n in (*VECTORS, *SLIM):
        for dtype in ("bf16", "fp32"):
            yield single("matmul", "matmul", [["x", [m, k], dtype], ["w", [k, n], dtype]])
            yield single("linear", "linear", [["x", [m, k], dtype], ["w", [n, k], dtype]])
            yield single("linear_bias", "linear", [["x", [m, k], dtype], ["w", [n, k], dtype], ["b", [n], dtype]])


def products():
    """Return matmuls, convolutions and attention, eager."""
    for m, k, n in MATMULS:
        yield single("matmul", "matmul", [["x", [m, k], "bf16"], ["w", [k, n], "bf16"]])
        yield single("linear", "linear", [["x", [m, k], "bf16"], ["w", [n, k], "bf16"]])
        yield single("linear_bias", "linear", [["x", [m, k], "bf16"], ["w", [n, k], "bf16"], ["b", [n], "bf16"]])
    for m, k, n in MATMULS[::3]:
        yield single("matmul", "matmul", [["x", [m, k], "fp32"], ["w", [k, n], "fp32"]])
        yield single("linear_bias", "linear", [["x", [m, k], "fp32"], ["w", [n, k], "fp32"], ["b", [n], "fp32"]])
    for batch, m, k, n in BATCHED:
        yield single("bmm", "matmul", [["x", [batch, m, k], "bf16"], ["w", [batch, k, n], "bf16"]])
        yield single("bmm", "matmul", [["x", [batch, m, n], "bf16"], ["w", [batch, n, k], "bf16"]])
        yield single("bmm", "matmul", [["x", [batch, m, k], "fp32"], ["w", [batch, k, n], "fp32"]])
    yield from _convolutions()
    yield from _attention()


def statistics(channels, dtype):
    """Return the inputs of a batch norm beside x."""
    return [[key, [channels], dtype] for key in ("m", "var", "w", "b")]


def _convolutions():
    """Return convolutions, batch norms and pooling."""
    for n, ci, co, hw, k, s in CONVS:
        for layout, dtype in (("channels_last", "bf16"), ("nchw", "bf16"), ("nchw", "fp32")):
            x, w = ["x", [n, ci, hw, hw], dtype, layout], ["w", [co, ci, k, k], dtype, layout]
            yield single("conv", "conv", [x, w], stride=s, padding=k // 2 if k < 16 else 0)
        x = ["x", [n, ci, hw, hw], "bf16", "channels_last"]
        yield single("batch_norm", "batch_norm", [x, *statistics(ci, "bf16")])
        yield single("batch_norm", "batch_norm", [x, *statistics(ci, "fp32")])
        x = ["x", [n, ci, hw, hw], "fp32"]
        yield single("batch_norm", "batch_norm", [x, *statistics(ci, "fp32")])
    for n, c, hw in POOLS:
        x = ["x", [n, c, hw, hw], "bf16", "channels_last"]
        yield single("max_pool", "max_pool", [x], window=3, stride=2, padding=1)
        yield single("max_pool", "max_pool", [["x", [n, c, hw, hw], "fp32"]], window=2, stride=2)
    for n, c, hw, k in DEPTHWISE:
        for layout in ("channels_last", "nchw"):
            x, w = ["x", [n, c, hw, hw], "bf16", layout], ["w", [c, 1, k, k], "bf16", layout]
            yield single("depthwise", "conv", [x, w], padding=k // 2, groups=c)


def _attention():
    """Return attention over many queries, and over one."""
    for b, h, s, d in HEADS:
        for causal in (False, True):
            for dtype in ("bf16", "fp32") if s <= 2048 and not causal else ("bf16",):
                q = [[key, [b, h, s, d], dtype] for key in "qkv"]
                yield single("attention", "attention", q, causal=causal)
    for b, h, s, d in DECODES:
        q = [["q", [b, h, 1, d], "bf16"], ["k", [b, h, s, d], "bf16"], ["v", [b, h, s, d], "bf16"]]
        yield single("decode", "attention", q)
