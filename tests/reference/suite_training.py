"""Batch norms by statistics of their own batch, their gradients and those of max pooling, as PyTorch runs them."""

from __future__ import annotations

from suite_steps import single

BATCHES = (
    (2, 16, 16), (1, 64, 24), (8, 32, 28), (4, 512, 7), (8, 384, 20), (16, 64, 40), (32, 128, 28), (24, 256, 14),
    (48, 512, 14), (96, 192, 28), (64, 96, 48), (48, 48, 80), (96, 256, 36), (32, 32, 112), (200, 64, 56),
    (20, 144, 96), (256, 160, 18), (160, 384, 20),
)  # fmt: skip

POOLED = (
    (4, 16, 24, 2, 2, 0), (16, 32, 56, 2, 2, 0), (32, 512, 14, 2, 2, 0), (24, 128, 40, 3, 2, 1), (64, 96, 48, 2, 2, 0),
    (96, 48, 60, 3, 2, 1), (16, 64, 112, 3, 2, 1), (160, 256, 20, 2, 2, 0), (8, 192, 28, 3, 1, 1),
    (48, 80, 96, 2, 2, 0),
)  # fmt: skip

LARGE = (
    (24, 64, 72), (40, 40, 120), (64, 32, 64), (300, 96, 28), (12, 72, 160), (150, 128, 44), (80, 24, 90),
    (64, 224, 26), (512, 80, 16), (36, 320, 30),
)  # fmt: skip

LARGE_POOLED = (
    (64, 64, 28, 2, 2, 0), (8, 24, 36, 2, 2, 0), (120, 320, 18, 2, 2, 0), (40, 160, 22, 2, 2, 0), (12, 96, 30, 3, 1, 1),
    (128, 40, 52, 3, 2, 1), (2, 128, 20, 2, 2, 0), (80, 448, 12, 2, 2, 0), (32, 56, 104, 2, 2, 0),
)  # fmt: skip

FORMS = (("channels_last", "bf16"), ("nchw", "bf16"), ("nchw", "fp32"))


def training():
    """Return kernels of training steps over pictures, eager."""
    for at, shape in enumerate(BATCHES):
        for form in FORMS[:1] if at % 3 == 1 else FORMS:
            yield from _norms(*shape, *form)
        if at % 2:
            yield _weights(*shape)
    for at, shape in enumerate(POOLED):
        for form in FORMS if at % 2 else FORMS[:2]:
            yield _pooled(*shape, *form)


def training_more():
    """Return more of them, of few channels and many places above all."""
    for at, shape in enumerate(LARGE):
        for form in FORMS:
            yield from _norms(*shape, *form)
        if at % 2:
            yield _weights(*shape)
    for shape in LARGE_POOLED:
        for form in FORMS[:2]:
            yield _pooled(*shape, *form)


def _norms(n, c, hw, form, dtype):
    """Return a batch norm in training, and its gradients."""
    x, g = ([key, [n, c, hw, hw], dtype, form] for key in "xg")
    weights = [[key, [c], dtype] for key in ("w", "b", "mean", "var")]
    yield single("batch_norm_train", "batch_norm_train", [x, *weights])
    yield single("batch_norm_backward", "batch_norm_backward", [g, x, *_statistics(c), weights[0]])


def _weights(n, c, hw):
    """Return the gradients of a batch norm's weights alone."""
    x, g = ([key, [n, c, hw, hw], "bf16", "channels_last"] for key in "xg")
    inputs = [g, x, *_statistics(c), ["w", [c], "bf16"]]
    return single("batch_norm_weights", "batch_norm_backward", inputs, weights=True)


def _statistics(c):
    """Return what a batch norm keeps of each channel."""
    return [[key, [c], "fp32"] for key in ("mean", "var")]


def _pooled(n, c, hw, k, s, p, form, dtype):
    """Return the gradient of pooled windows."""
    out = (hw + 2 * p - k) // s + 1
    small = [n, c, out, out]
    inputs = [["g", small, dtype, form], ["places", small, "int64", form], ["x", [n, c, hw, hw], dtype, form]]
    return single("pool_backward", "max_pool_backward", inputs, window=k, stride=s, padding=p)
