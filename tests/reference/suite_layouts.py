"""Copies into other orders, concatenations of strided inputs, gathers and larger pictures, as PyTorch runs them."""

from __future__ import annotations

from suite_steps import chained, single

HEADS = (
    (1, 300, 8, 64), (1, 1000, 32, 128), (2, 2000, 16, 128), (4, 1024, 12, 64), (1, 6000, 32, 128), (8, 500, 16, 64),
    (16, 100, 8, 96),
)  # fmt: skip

CACHES = (
    (8, 16, 1000, 128), (32, 8, 1500, 128), (4, 32, 4000, 128), (64, 16, 300, 64), (2, 8, 500, 64),
)  # fmt: skip

PICTURES = (
    (4, 64, 64, 32), (2, 256, 128, 64), (8, 128, 128, 56), (16, 32, 96, 112), (1, 512, 512, 32), (32, 24, 40, 28),
)  # fmt: skip

ORDERS = (
    (16, 3, 224), (4, 3, 512), (32, 3, 112), (8, 4, 64), (4, 8, 128), (8, 16, 64), (4, 48, 56), (4, 128, 64),
    (8, 256, 32), (2, 320, 64), (4, 400, 64), (16, 512, 28), (32, 64, 112), (1, 1280, 32), (64, 1024, 14),
)  # fmt: skip

REPEATS = (
    (4, 8, 4, 500, 128), (1, 8, 4, 3000, 128), (8, 4, 8, 1000, 64), (16, 8, 4, 1500, 128), (2, 2, 16, 300, 64),
)  # fmt: skip

LARGER = (
    (4, 256, 32), (2, 128, 64), (8, 64, 56), (1, 512, 64), (16, 32, 28), (1, 3, 500), (4, 320, 32), (16, 96, 56),
)  # fmt: skip

TABLES = (
    (1000, 512, 300), (20000, 64, 5000), (8000, 4096, 1000), (300, 8192, 100), (100000, 32, 40000), (2000, 1024, 2000),
)  # fmt: skip

FORMS = (("channels_last", "bf16"), ("nchw", "bf16"), ("nchw", "fp32"))


def layouts():
    """Return copies, concatenations, gathers and larger pictures, eager."""
    for at, (b, s, h, d) in enumerate(HEADS):
        for dtype in ("bf16", "fp32") if at % 2 else ("bf16",):
            yield from _turned_halves(b, s, h, d, dtype)
            yield from _heads(b, s, h, d, dtype)
    for b, h, s, d in CACHES:
        cache, new = ["x", [b, h, s, d], "bf16"], ["z", [b, h, 1, d], "bf16"]
        yield single("concat_cache", "concat", [cache, new], dim=2)
        yield single("concat_cache", "concat", [["x", [b, s, h, d], "bf16"], ["z", [b, 1, h, d], "bf16"]], dim=1)
        turned = ["s permute z order=0,2,1,3", "y concat x s dim=2"]
        yield _steps("concat_cache", [cache, ["z", [b, 1, h, d], "bf16"]], turned)
    for at, shape in enumerate(PICTURES):
        yield from _pictures(*shape, FORMS if at % 2 else FORMS[:2])
    yield from _orders()
    for b, h, g, s, d in REPEATS:
        lines = [f"e expand x shape={b},{h},{g},{s},{d}", "y copy e"]
        yield _steps("repeat_heads", [["x", [b, h, 1, s, d], "bf16"]], lines)
    yield from _others()


def _steps(probe, inputs, lines):
    """Return an eager program of several steps."""
    return chained(probe, inputs, lines, sides=("eager",))


def _turned_halves(b, s, h, d, dtype):
    """Return halves of rows put together the other way round, as rotary embeddings do, and parts that are strided."""
    half = d // 2
    halves = [f"l slice t dim=3 start=0 stop={half}", f"u slice t dim=3 start={half} stop={d}", "y concat u l dim=3"]
    turned = ["t permute x order=0,2,1,3", *halves]
    yield _steps("concat_halves", [["x", [b, s, h, d], dtype]], turned)
    yield _steps("concat_halves", [["t", [b, h, s, d], dtype]], halves)
    parts = [[key, [b, h, s, d], dtype] for key in "xzw"]
    lines = ["p permute x order=0,2,1,3", "q permute z order=0,2,1,3", "r permute w order=0,2,1,3"]
    yield _steps("concat_heads", parts, [*lines, "y concat p q r dim=2"])
    yield _steps("concat_heads", parts, [*lines, "y concat p q r dim=0"])
    yield _steps("concat_turned", [[key, [d, b * s * h // 4], dtype] for key in "xz"], [
        "p permute x order=1,0", "q permute z order=1,0", "y concat p q dim=1",
    ])  # fmt: skip


def _heads(b, s, h, d, dtype):
    """Return copies of heads into other orders, of three to five dimensions."""
    yield _steps("heads", [["x", [b, s, h, d], dtype]], ["p permute x order=0,2,1,3", "y copy p"])
    yield _steps("heads_last", [["x", [b, s, h, d], dtype]], ["p permute x order=0,2,3,1", "y copy p"])
    yield _steps("heads_three", [["x", [b, s, 3, h, d], dtype]], ["p permute x order=2,0,3,1,4", "y copy p"])
    yield _steps("transposes", [["x", [b * h, s, d], dtype]], ["p permute x order=0,2,1", "y copy p"])


def _pictures(n, c, other, hw, forms):
    """Return concatenations of channels."""
    for form, dtype in forms:
        inputs = [["x", [n, c, hw, hw], dtype, form], ["z", [n, other, hw, hw], dtype, form]]
        yield single("concat_channels", "concat", inputs, dim=1)
    mixed = [["x", [n, c, hw, hw], "bf16", "channels_last"], ["z", [n, other, hw, hw], "bf16"]]
    yield single("concat_mixed", "concat", mixed, dim=1)


def _orders():
    """Return copies of pictures, channels last and back."""
    for at, (n, c, hw) in enumerate(ORDERS):
        for dtype in ("bf16", "fp32") if at % 2 else ("bf16",):
            yield _steps("to_last", [["x", [n, c, hw, hw], dtype]], ["p permute x order=0,2,3,1", "y copy p"])
            yield single("to_first", "copy", [["x", [n, c, hw, hw], dtype, "channels_last"]])


def _others():
    """Return larger pictures and gathers."""
    for at, (n, c, hw) in enumerate(LARGER):
        for form, dtype in FORMS if at % 2 else FORMS[:2]:
            x = ["x", [n, c, hw, hw], dtype, form]
            yield single("nearest", "upsample", [x], mode="nearest", factor=2)
            yield single("bilinear", "upsample", [x], mode="bilinear", factor=2)
    for r, c, count in TABLES:
        for dtype in ("bf16", "fp32"):
            x = ["x", [r, c], dtype]
            for dim, index in ((0, [count, c]), (1, [r, max(c // 8, 1)])):
                case = single("gather", "gather", [x, ["i", index, "int64"]], dim=dim)
                yield case | {"highest": [r, c][dim]}
            rows = [["x", [r, c], dtype], ["i", [count, 1], "int64"]]
            yield _steps("gather_rows", rows, [f"e expand i shape={count},{c}", "y gather x e dim=0"]) | {"highest": r}
