"""Chains that stay in the cache, and products, convolutions, norms and attention of random shapes."""

from __future__ import annotations

import random

from suite_steps import chained, single

BOTH = ("eager", "compiled")
RESIDENT = (4096, 65536, 262144, 1048576, 2097152, 4194304, 8388608)
CHAINS = {
    "unary": ["a neg x", "b abs a", "c relu b", "d neg c", "y abs d"],
    "same": ["a mul x x", "b add a a", "c mul b b", "d add c c", "y maximum d d"],
    "binary": ["a mul x z", "b add a z", "c sub b z", "d maximum c z", "y add d z"],
    "tanh": ["a tanh x", "b tanh a", "y tanh b"],
}
ROWS = ["a mul x w", "m mean a", "b sub a m", "v mul b b", "s sum v", "q div b s", "n layer_norm q w w", "y softmax n"]
ROW_SHAPES = ((64, 4096), (500, 2048), (2000, 1024), (1000, 4096), (4096, 2048))
GROUPED = (
    (4, 128, 64), (4, 256, 32), (8, 320, 64), (2, 512, 32), (16, 64, 32), (1, 640, 32), (32, 128, 16), (2, 128, 256),
)  # fmt: skip
HEADS = (
    (1, 8, 77, 64), (2, 16, 2048, 64), (8, 32, 512, 128), (1, 32, 4096, 128), (32, 16, 128, 64), (16, 12, 384, 64),
    (3, 20, 1500, 64), (1, 64, 2048, 128),
)  # fmt: skip
LAYOUTS = (("channels_last", "bf16"), ("nchw", "bf16"), ("nchw", "fp32"))


def resident():
    """Return chains whose intermediates stay in the cache: what a kernel costs that memory does not hold up."""
    for dtype in ("bf16", "fp32"):
        for size in RESIDENT:
            x, z = ["x", [size], dtype], ["z", [size], dtype]
            for name, lines in CHAINS.items():
                yield chained(f"resident_{name}", [x, z] if name == "binary" else [x], lines, sides=BOTH)
        for r, c in ROW_SHAPES:
            yield chained("resident_rows", [["x", [r, c], dtype], ["w", [c], dtype]], ROWS, sides=BOTH)


def shapes():
    """Return products and convolutions of random shapes, eager; half are powers of two."""
    draw = random.Random(7)

    def size(low, high, step):
        if draw.random() < 0.5:
            return 2 ** draw.randint(low.bit_length() - 1, high.bit_length() - 1)
        return max(round(2 ** draw.uniform(low.bit_length() - 1, high.bit_length() - 1) / step) * step, step)

    yield from _products(size)
    yield from _batches(size)
    yield from _convolutions(draw, size)
    for n, c, hw in GROUPED:
        for dtype in ("bf16", "fp32"):
            inputs = [["x", [n, c, hw, hw], dtype], ["w", [c], dtype], ["b", [c], dtype]]
            yield single("group_norm", "group_norm", inputs, groups=32)
    for b, h, s, d in HEADS:
        for causal in (False, True):
            yield single("attention", "attention", [[key, [b, h, s, d], "bf16"] for key in "qkv"], causal=causal)


def _products(size):
    """Return matrix products with and without a bias."""
    for _ in range(60):
        m, k, n = size(1, 8192, 1), size(64, 8192, 8), size(64, 16384, 8)
        if m * k * n <= 2e11:
            yield _linear(m, k, n, "bf16")
            yield single("matmul", "matmul", [["x", [m, k], "bf16"], ["w", [k, n], "bf16"]])
    for _ in range(40):
        m, k, n = size(1, 4096, 1), size(16, 4096, 4), size(16, 4096, 4)
        if m * k * n <= 3e10:
            yield _linear(m, k, n, "fp32")


def _linear(m, k, n, dtype):
    """Return a linear layer with a bias."""
    return single("linear_bias", "linear", [["x", [m, k], dtype], ["w", [n, k], dtype], ["b", [n], dtype]])


def _batches(size):
    """Return batches of products."""
    for _ in range(30):
        b, m, k, n = size(4, 512, 1), size(16, 1024, 8), size(16, 512, 8), size(16, 1024, 8)
        if b * m * k * n <= 1e11:
            for dtype in ("bf16", "fp32"):
                yield single("bmm", "matmul", [["x", [b, m, k], dtype], ["w", [b, k, n], dtype]])


def _convolutions(draw, size):
    """Return convolutions in every layout."""
    for _ in range(40):
        n, hw = draw.choice([1, 4, 8, 16, 32, 64]), draw.choice([7, 14, 16, 28, 32, 56, 64, 112])
        k, s = draw.choice([1, 1, 3, 3, 3, 5]), draw.choice([1, 1, 1, 2])
        ci, co = size(16, 1024, 8), size(16, 1024, 8)
        if n * hw * hw * ci * co * k * k <= 2e11 and n * hw * hw * max(ci, co) < 1e8:
            for layout, dtype in LAYOUTS:
                x, w = ["x", [n, ci, hw, hw], dtype, layout], ["w", [co, ci, k, k], dtype, layout]
                yield single("conv", "conv", [x, w], stride=s, padding=k // 2)
