"""Single kernels as torch.compile generates them: loops, rows, and what arithmetic binds."""

from __future__ import annotations

from suite_ops import SIZES
from suite_rows import COLUMN_SHAPES, ROW_SHAPES
from suite_steps import chained, single

HEAVY = ("neg", "exp", "tanh", "silu", "gelu", "gelu_tanh", "sin", "rsqrt", "sigmoid", "log1p")
COSTLY = ("exp", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "rsqrt", "sqrt", "sin", "log1p", "square", "abs")
LOOP_SHAPES = (
    (48, 3000), (700, 1000), (1500, 4096), (5000, 4100), (9000, 2560), (2500, 14336), (16000, 4096), (3, 8000),
)  # fmt: skip

HEAVY_SHAPES = (
    (300, 200), (760, 320), (523, 256), (1475, 312), (2000, 640), (12845, 704), (5000, 1000), (64, 900), (981, 3685),
    (3262, 1312), (400, 5000), (2852, 11617), (9000, 2560), (130, 8000), (40, 2000), (6000, 1500),
)  # fmt: skip


def generated():
    """Return single kernels as torch.compile generates them."""
    for dtype in ("bf16", "fp32"):
        for size in SIZES:
            for op in HEAVY:
                if size in {260000, 20000000} or op in {"neg", "gelu", "silu"}:
                    yield single("g_unary", op, [["x", [size], dtype]], sides=["compiled"])
            x, z, u = (["xzu"[i], [size], dtype] for i in range(3))
            yield single("g_binary", "add", [x, z], sides=["compiled"])
            yield single("g_binary", "div", [x, z], sides=["compiled"])
            yield chained("g_ternary", [x, z, u], ["a mul x z", "y add a u"])
            yield chained("g_two_out", [x, z], ["a mul x z", "b add x z"], outputs=["a", "b"])
            lines = ["a tanh x", "b mul a scalar=1.25", "c add b scalar=0.5", "d exp c", "y relu d"]
            yield chained("g_chain", [x], lines)
            other = "fp32" if dtype == "bf16" else "bf16"
            yield single("g_cast", "cast", [x], sides=["compiled"], dtype=other)
        yield from _loops(dtype)
        yield from _rows(dtype)


def _loops(dtype):
    """Return loops over rows and columns, turned and concatenated."""
    for r, c in LOOP_SHAPES:
        x, w, v = ["x", [r, c], dtype], ["w", [c], dtype], ["v", [r, 1], dtype]
        yield chained("g_row", [x, w], ["y mul x w"])
        yield chained("g_column", [x, v], ["y mul x v"])
        yield chained("g_both", [x, w, v], ["a mul x v", "y add a w"])
        yield chained("g_transpose", [x], ["s permute x order=1,0", "y copy s"])
        yield chained("g_transpose_add", [x, ["z", [c, r], dtype]], ["s permute x order=1,0", "y add s z"])
        halves = [f"a slice x dim=1 start=0 stop={c // 2}", f"b slice x dim=1 start={c // 2} stop={c}"]
        yield chained("g_concat", [x, v], [*halves, "n neg b", "y concat n a dim=-1"])


def _rows(dtype):
    """Return reductions and composites over rows, and over first dimensions."""
    for r, c in ROW_SHAPES:
        x, w, b = ["x", [r, c], dtype], ["w", [c], dtype], ["b", [c], dtype]
        yield single("g_sum", "sum", [x], sides=["compiled"])
        yield single("g_softmax", "softmax", [x], sides=["compiled"])
        yield single("g_layer_norm", "layer_norm", [x, w, b], sides=["compiled"])
        lines = ["s mul x x", "m mean s", "e add m scalar=0.001", "r rsqrt e", "n mul x r", "y mul n w"]
        yield chained("g_rmsnorm", [x, w], lines)
        if r >= 100:
            yield chained("g_gelu_sum", [x], ["g gelu x", "m sum g", "y div g m"])
            lines = ["a mul x z", "y amax a", "u add x z", "v sum u"]
            yield chained("g_two_sums", [x, ["z", [r, c], dtype]], lines, outputs=["y", "v"])
    for r, c in COLUMN_SHAPES:
        yield single("g_reduce_column", "sum", [["x", [r, c], dtype]], sides=["compiled"], dims=[0])
        x = ["x", [r, c], dtype]
        yield single("g_reduce_all", "sum", [x], sides=["compiled"], dims=[0, 1], keepdim=False)


def generated_more():
    """Return generated kernels in which arithmetic binds: ops in a row, and rows with costly ops around them."""
    for dtype in ("bf16", "fp32"):
        for op in COSTLY:
            for size, times in ((20000000, 6), (3614985, 2), (9000, 4), (400000, 6)):
                x, last, lines = [["x", [size], dtype]], "x", []
                for place in range(times):
                    lines += [f"a{place} {op} {last}", f"b{place} add a{place} scalar=0.25"]
                    last = f"b{place}"
                yield chained("g_heavy", x, [*lines, f"y mul {last} scalar=1.25"])
        for size in (3614985, 20000001, 70001, 1000003):
            x, z = ["x", [size], dtype], ["z", [size], dtype]
            yield single("g_odd", "neg", [x], sides=["compiled"])
            yield single("g_odd", "add", [x, z], sides=["compiled"])
            yield chained("g_odd", [x, z], ["a div x z", "b maximum a x", "y tanh b"])
        for r, c in HEAVY_SHAPES:
            x, w = ["x", [r, c], dtype], ["w", [c], dtype]
            for op in ("tanh", "gelu", "sin", "exp"):
                yield chained("g_heavy_rows", [x], [f"a {op} x", "m mean a", "b sub a m", f"y {op} b"])
            lines = ["a silu x", "b mul a w", "n layer_norm b w w", "t tanh n", "s softmax a", "q amax s"]
            yield chained("g_heavy_rows", [x, w], lines, outputs=["t", "q"])
            lines = ["n layer_norm x w w", "l layer_norm n w w", "v var n"]
            yield chained("g_heavy_rows", [x, w], lines, outputs=["l", "v"])
            yield chained("g_heavy_rows", [x], ["a abs x", "m amax a", "b div a m", "y sqrt b"])
