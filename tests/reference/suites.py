"""The programs that were measured with PyTorch: one op at a time for the kernel classes, patterns, random programs.

Sizes are this project's own; the committed patterns of other measurements are not among them.
"""

from __future__ import annotations

import random

import programs


def single(probe, op, inputs, operands=None, sides=("eager",), **kw):
    """Return a program of one step."""
    names = [entry[0] for entry in inputs]
    return {
        "probe": probe,
        "inputs": inputs,
        "steps": [["y", op, operands or names, kw]],
        "outputs": ["y"],
        "sides": list(sides),
    }


SIZES = (9000, 260000, 3000000, 20000000, 70000000)


def pointwise():
    """Return vectorised, broadcast, mixed, strided ops, eager."""
    rows = []
    for dtype in ("bf16", "fp32"):
        for size in SIZES:
            for op in ("neg", "relu", "exp", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "rsqrt", "sqrt", "sin", "log1p", "square"):
                rows.append(single("unary", op, [["x", [size], dtype]]))
            for op in ("add", "mul", "div", "maximum"):
                rows.append(single("binary", op, [["x", [size], dtype], ["z", [size], dtype]]))
            for op in ("add", "sub", "mul", "div"):
                rows.append(single("scalar", op, [["x", [size], dtype]], scalar=1.25))
            rows.append(single("scalar", "div", [["x", [size], dtype]], scalar=1.25, reverse=True))
            rows.append(single("pow", "pow", [["x", [size], dtype]], scalar=2))
            other = "fp32" if dtype == "bf16" else "bf16"
            rows.append(single("cast", "cast", [["x", [size], dtype]], dtype=other))
            rows.append(single("mixed", "mul", [["x", [size], dtype], ["z", [size], other]]))
            rows.append(single("dropout", "dropout", [["x", [size], dtype]], p=0.1))
        for r, c in ((48, 3000), (700, 1000), (3000, 1024), (1500, 4096), (5000, 4100), (9000, 2560), (2500, 14336), (16000, 4096)):
            for op in ("add", "mul", "div"):
                rows.append(single("row", op, [["x", [r, c], dtype], ["z", [c], dtype]]))
                rows.append(single("column", op, [["x", [r, c], dtype], ["z", [r, 1], dtype]]))
            rows.append(single("column_mixed", "mul", [["x", [r, c], "fp32"], ["z", [r, 1], "fp32"]]))
            rows.append(single("row_mixed", "mul", [["x", [r, c], "bf16"], ["z", [c], "fp32"]]))
            rows.append(single("middle", "mul", [["x", [r, max(c // 128, 1), 128], dtype], ["z", [r, 1, 128], dtype]]))
            rows.append(single("outer", "add", [["x", [r, 1], dtype], ["z", [c], dtype]]))
            half = c // 2
            x = [["x", [r, c], dtype]]
            for op in ("neg", "copy", "mul"):
                steps = [["s", "slice", ["x"], {"dim": 1, "start": half, "stop": c}]]
                last = ["y", op, ["s"], {"scalar": 1.25} if op == "mul" else {}]
                rows.append({"probe": "sliced", "inputs": x, "steps": [*steps, last], "outputs": ["y"], "sides": ["eager"]})
            steps = [["s", "permute", ["x"], {"order": [1, 0]}], ["y", "copy", ["s"], {}]]
            rows.append({"probe": "transpose", "inputs": x, "steps": steps, "outputs": ["y"], "sides": ["eager"]})
            heads = max(c // 128, 1)
            x4 = [["x", [4, r // 4, heads, 128], dtype]]
            steps = [["s", "permute", ["x"], {"order": [0, 2, 1, 3]}], ["y", "copy", ["s"], {}]]
            rows.append({"probe": "heads", "inputs": x4, "steps": steps, "outputs": ["y"], "sides": ["eager"]})
            rows.append(single("copy", "copy", [["x", [r, c], dtype]]))
            rows.append(single("concat", "concat", [["x", [r, c], dtype], ["z", [r, c], dtype]], dim=-1))
            rows.append(single("concat", "concat", [["x", [r, c], dtype], ["z", [r, 64], dtype]], dim=-1))
            rows.append(single("concat0", "concat", [["x", [r, c], dtype], ["z", [r, c], dtype]], dim=0))
            rows.append(single("bool", "gt", [["x", [r, c], dtype], ["z", [r, c], dtype]]))
            rows.append(
                {
                    "probe": "where",
                    "inputs": [["x", [r, c], dtype], ["z", [r, c], dtype]],
                    "steps": [["m", "gt", ["x", "z"], {}], ["y", "where", ["m", "x", "z"], {}]],
                    "outputs": ["y"],
                    "sides": ["eager"],
                }
            )
    return rows


ROW_SHAPES = (
    (1, 700), (1, 4096), (1, 14336), (20, 300), (24, 4096), (40, 10000), (130, 2048), (200, 14336), (256, 1024), (500, 6000),
    (900, 4096), (1000, 513), (2000, 2048), (3000, 768), (4000, 8192), (4096, 1023), (6000, 1024), (7000, 5120), (8000, 12000),
    (12000, 256), (15000, 3000), (16384, 4096), (20000, 2000), (64, 50304), (3000, 32000),
)  # fmt: skip


def rows_suite():
    """Return reductions and composites over rows, eager."""
    rows = []
    for dtype in ("bf16", "fp32"):
        for r, c in ROW_SHAPES:
            x, w = ["x", [r, c], dtype], ["w", [c], dtype]
            for op in ("sum", "mean", "amax", "var"):
                rows.append(single("reduce_row", op, [x]))
            rows.append(single("softmax", "softmax", [x]))
            rows.append(single("log_softmax", "log_softmax", [x]))
            rows.append(single("layer_norm", "layer_norm", [x, w, ["b", [c], dtype]]))
            rows.append(single("rms_norm", "rms_norm", [x, w]))
        for r, c in ((64, 4096), (500, 6000), (2000, 2048), (8192, 1024), (16384, 4096), (20000, 512), (128, 256), (4096, 11008)):
            rows.append(single("reduce_column", "sum", [["x", [r, c], dtype]], dims=[0]))
            rows.append(single("reduce_all", "sum", [["x", [r, c], dtype]], dims=[0, 1], keepdim=False))
            rows.append(single("reduce_middle", "mean", [["x", [8, r // 8, c], dtype]], dims=[1]))
            rows.append(single("cumsum", "cumsum", [["x", [r, c], dtype]]))
    for tokens, width, count in ((64, 4096, 32000), (2048, 4096, 32000), (8192, 1024, 50000), (300, 768, 30000), (16384, 4096, 128000), (1024, 64, 10000), (20000, 64, 100000), (4096, 8192, 32000)):
        for dtype in ("bf16", "fp32"):
            case = single("embedding", "embedding", [["x", [count, width], dtype], ["i", [tokens], "int64"]])
            rows.append(case | {"highest": count})
            case = single("embedding_bag", "embedding_bag", [["x", [count, width], dtype], ["i", [tokens, 1], "int64"]])
            rows.append(case | {"highest": count})
            case = single("index_row", "index_row", [["x", [count, width], dtype], ["i", [tokens], "int64"]])
            rows.append(case | {"highest": count})
            case = single("gather", "gather", [["x", [tokens, width], dtype], ["i", [tokens, max(width // 4, 1)], "int64"]], dim=1)
            rows.append(case | {"highest": width})
    for r, c in ((256, 1000), (2048, 32000), (8192, 50304), (4096, 5000), (100, 128000), (1024, 30522), (16384, 10000), (512, 512)):
        for dtype in ("bf16", "fp32"):
            case = single("nll_loss", "nll_loss", [["x", [r, c], dtype], ["i", [r], "int64"]])
            rows.append(case | {"highest": c})
    return rows


MATMULS = (
    (1, 4096, 4096), (1, 8192, 28672), (4, 4096, 14336), (8, 2048, 8192), (16, 4096, 4096), (32, 5120, 5120), (48, 4096, 12288),
    (64, 8192, 8192), (96, 1024, 4096), (128, 4096, 14336), (128, 512, 512), (200, 3000, 1000), (256, 1024, 1024), (256, 4096, 4096),
    (384, 768, 3072), (512, 2048, 2048), (512, 8192, 1024), (600, 600, 600), (768, 4096, 12288), (1000, 1000, 1000), (1024, 768, 768),
    (1024, 768, 3072), (1024, 3072, 768), (1024, 4096, 4096), (1024, 16384, 256), (1536, 1536, 6144), (2048, 1024, 1024),
    (2048, 2048, 5632), (2048, 5632, 2048), (2048, 2048, 2048), (3000, 4000, 5000), (4096, 1024, 1024), (4096, 4096, 4096),
    (4096, 4096, 11008), (4096, 11008, 4096), (4097, 2049, 1025), (6272, 768, 768), (6272, 768, 3072), (8192, 1024, 3072),
    (8192, 1024, 4096), (8192, 4096, 1024), (8192, 8192, 8192), (16384, 64, 16384), (16384, 512, 512), (16384, 4096, 4096),
    (32, 64, 4096), (2048, 4096, 32000), (8192, 2048, 2048), (100, 100, 100), (5000, 128, 5000),
)  # fmt: skip


def products():
    """Return matmuls, convolutions and attention, eager."""
    rows = []
    for m, k, n in MATMULS:
        rows.append(single("matmul", "matmul", [["x", [m, k], "bf16"], ["w", [k, n], "bf16"]]))
        rows.append(single("linear", "linear", [["x", [m, k], "bf16"], ["w", [n, k], "bf16"]]))
        rows.append(single("linear_bias", "linear", [["x", [m, k], "bf16"], ["w", [n, k], "bf16"], ["b", [n], "bf16"]]))
    for m, k, n in MATMULS[::3]:
        rows.append(single("matmul", "matmul", [["x", [m, k], "fp32"], ["w", [k, n], "fp32"]]))
        rows.append(single("linear_bias", "linear", [["x", [m, k], "fp32"], ["w", [n, k], "fp32"], ["b", [n], "fp32"]]))
    for batch, m, k, n in ((12, 128, 64, 128), (128, 512, 64, 512), (32, 1024, 128, 1024), (64, 256, 256, 256), (16, 2048, 64, 2048), (256, 27, 64, 27), (2048, 27, 64, 27), (8, 1024, 1024, 1024), (96, 197, 64, 197), (32, 1, 128, 4096)):
        rows.append(single("bmm", "matmul", [["x", [batch, m, k], "bf16"], ["w", [batch, k, n], "bf16"]]))
        rows.append(single("bmm", "matmul", [["x", [batch, m, n], "bf16"], ["w", [batch, n, k], "bf16"]]))
        rows.append(single("bmm", "matmul", [["x", [batch, m, k], "fp32"], ["w", [batch, k, n], "fp32"]]))
    for n, ci, co, hw, k, s in (
        (32, 3, 64, 224, 7, 2), (32, 64, 64, 56, 1, 1), (32, 64, 256, 56, 1, 1), (32, 256, 64, 56, 1, 1), (32, 256, 128, 56, 1, 1),
        (32, 128, 128, 56, 3, 2), (32, 128, 512, 28, 1, 1), (32, 256, 512, 56, 1, 2), (32, 512, 128, 28, 1, 1), (32, 128, 128, 28, 3, 1),
        (32, 256, 256, 28, 3, 2), (32, 256, 256, 14, 3, 1), (32, 1024, 256, 14, 1, 1), (32, 256, 1024, 14, 1, 1), (32, 512, 512, 7, 3, 1),
        (32, 2048, 512, 7, 1, 1), (32, 512, 2048, 7, 1, 1), (8, 64, 64, 56, 3, 1), (8, 256, 256, 14, 3, 1), (64, 3, 768, 224, 16, 16),
        (16, 64, 128, 128, 3, 1), (4, 320, 320, 64, 3, 1), (1, 128, 128, 256, 3, 1), (128, 512, 512, 14, 3, 1),
    ):  # fmt: skip
        for layout, dtype in (("channels_last", "bf16"), ("nchw", "bf16"), ("nchw", "fp32")):
            x, w = ["x", [n, ci, hw, hw], dtype, layout], ["w", [co, ci, k, k], dtype, layout]
            rows.append(single("conv", "conv", [x, w], stride=s, padding=k // 2 if k < 16 else 0))
        x = ["x", [n, ci, hw, hw], "bf16", "channels_last"]
        rows.append(single("batch_norm", "batch_norm", [x, *([key, [ci], "bf16"] for key in ("m", "var", "w", "b"))]))
        rows.append(single("batch_norm", "batch_norm", [x, *([key, [ci], "fp32"] for key in ("m", "var", "w", "b"))]))
        x = ["x", [n, ci, hw, hw], "fp32"]
        rows.append(single("batch_norm", "batch_norm", [x, *([key, [ci], "fp32"] for key in ("m", "var", "w", "b"))]))
    for n, c, hw in ((32, 64, 112), (8, 64, 112), (16, 128, 56), (32, 256, 28)):
        rows.append(single("max_pool", "max_pool", [["x", [n, c, hw, hw], "bf16", "channels_last"]], window=3, stride=2, padding=1))
        rows.append(single("max_pool", "max_pool", [["x", [n, c, hw, hw], "fp32"]], window=2, stride=2))
    for n, c, hw, k in ((32, 144, 56, 3), (32, 384, 14, 3), (16, 96, 56, 7), (8, 576, 14, 5)):
        for layout in ("channels_last", "nchw"):
            x, w = ["x", [n, c, hw, hw], "bf16", layout], ["w", [c, 1, k, k], "bf16", layout]
            rows.append(single("depthwise", "conv", [x, w], padding=k // 2, groups=c))
    for b, h, s, d in ((1, 16, 128, 64), (8, 12, 128, 64), (8, 16, 1024, 64), (4, 12, 197, 64), (64, 12, 197, 64), (1, 32, 1024, 128), (1, 16, 2048, 128), (2, 32, 4096, 128), (1, 32, 8192, 128), (16, 16, 512, 64), (4, 8, 2000, 96), (2, 40, 512, 128), (32, 8, 256, 32), (1, 8, 16384, 64)):
        for causal in (False, True):
            for dtype in ("bf16", "fp32") if s <= 2048 and not causal else ("bf16",):
                q = [[key, [b, h, s, d], dtype] for key in "qkv"]
                rows.append(single("attention", "attention", q, causal=causal))
    for b, h, s, d in ((1, 32, 1024, 128), (8, 32, 2048, 128), (32, 32, 4096, 128), (64, 16, 512, 64)):
        q = [["q", [b, h, 1, d], "bf16"], ["k", [b, h, s, d], "bf16"], ["v", [b, h, s, d], "bf16"]]
        rows.append(single("decode", "attention", q))
    return rows


def chained(probe, inputs, lines, outputs=("y",), sides=("compiled",), **more):
    """Return a program of several steps: ``result op operand ...``, ``key=number`` for settings."""
    steps = []
    for line in lines:
        result, op, *rest = line.split()
        kw = {}
        for word in [word for word in rest if "=" in word]:
            key, _, value = word.partition("=")
            kw[key] = value if key == "dtype" else ([int(v) for v in value.split(",")] if key in {"dims", "order", "shape"} else (float(value) if "." in value else int(value)))
        steps.append([result, op, [word for word in rest if "=" not in word], kw])
    return {"probe": probe, "inputs": inputs, "steps": steps, "outputs": list(outputs), "sides": list(sides)} | more


def generated():
    """Return single kernels as torch.compile generates them."""
    rows = []
    heavy = ("neg", "exp", "tanh", "silu", "gelu", "gelu_tanh", "sin", "rsqrt", "sigmoid", "log1p")
    for dtype in ("bf16", "fp32"):
        for size in (9000, 260000, 3000000, 20000000, 70000000):
            for op in heavy:
                if size in {260000, 20000000} or op in {"neg", "gelu", "silu"}:
                    rows.append(single("g_unary", op, [["x", [size], dtype]], sides=["compiled"]))
            x, z, u = (["xzu"[i], [size], dtype] for i in range(3))
            rows.append(single("g_binary", "add", [x, z], sides=["compiled"]))
            rows.append(single("g_binary", "div", [x, z], sides=["compiled"]))
            rows.append(chained("g_ternary", [x, z, u], ["a mul x z", "y add a u"]))
            rows.append(chained("g_two_out", [x, z], ["a mul x z", "b add x z"], outputs=["a", "b"]))
            rows.append(chained("g_chain", [x], ["a tanh x", "b mul a scalar=1.25", "c add b scalar=0.5", "d exp c", "y relu d"]))
            other = "fp32" if dtype == "bf16" else "bf16"
            rows.append(single("g_cast", "cast", [x], sides=["compiled"], dtype=other))
        for r, c in ((48, 3000), (700, 1000), (1500, 4096), (5000, 4100), (9000, 2560), (2500, 14336), (16000, 4096), (3, 8000)):
            x, w, v = ["x", [r, c], dtype], ["w", [c], dtype], ["v", [r, 1], dtype]
            rows.append(chained("g_row", [x, w], ["y mul x w"]))
            rows.append(chained("g_column", [x, v], ["y mul x v"]))
            rows.append(chained("g_both", [x, w, v], ["a mul x v", "y add a w"]))
            rows.append(chained("g_transpose", [x], ["s permute x order=1,0", "y copy s"]))
            rows.append(chained("g_transpose_add", [x, ["z", [c, r], dtype]], ["s permute x order=1,0", "y add s z"]))
            rows.append(chained("g_concat", [x, v], [f"a slice x dim=1 start=0 stop={c // 2}", f"b slice x dim=1 start={c // 2} stop={c}", "n neg b", "y concat n a dim=-1"]))
        for r, c in ROW_SHAPES:
            x, w, b = ["x", [r, c], dtype], ["w", [c], dtype], ["b", [c], dtype]
            rows.append(single("g_sum", "sum", [x], sides=["compiled"]))
            rows.append(single("g_softmax", "softmax", [x], sides=["compiled"]))
            rows.append(single("g_layer_norm", "layer_norm", [x, w, b], sides=["compiled"]))
            rows.append(chained("g_rmsnorm", [x, w], ["s mul x x", "m mean s", "e add m scalar=0.001", "r rsqrt e", "n mul x r", "y mul n w"]))
            if r >= 100:
                rows.append(chained("g_gelu_sum", [x], ["g gelu x", "m sum g", "y div g m"]))
                rows.append(chained("g_two_sums", [x, ["z", [r, c], dtype]], ["a mul x z", "y amax a", "u add x z", "v sum u"], outputs=["y", "v"]))
        for r, c in ((64, 4096), (500, 6000), (2000, 2048), (8192, 1024), (16384, 4096), (20000, 512), (128, 256), (4096, 11008)):
            rows.append(single("g_reduce_column", "sum", [["x", [r, c], dtype]], sides=["compiled"], dims=[0]))
            rows.append(single("g_reduce_all", "sum", [["x", [r, c], dtype]], sides=["compiled"], dims=[0, 1], keepdim=False))
    return rows


def generated_more():
    """Return generated kernels in which arithmetic binds: ops in a row, and rows with costly ops around them."""
    rows = []
    ops = ("exp", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "rsqrt", "sqrt", "sin", "log1p", "square", "abs")
    for dtype in ("bf16", "fp32"):
        for op in ops:
            for size, times in ((20000000, 6), (3614985, 2), (9000, 4), (400000, 6)):
                x, last, lines = [["x", [size], dtype]], "x", []
                for place in range(times):
                    lines += [f"a{place} {op} {last}", f"b{place} add a{place} scalar=0.25"]
                    last = f"b{place}"
                rows.append(chained("g_heavy", x, [*lines, f"y mul {last} scalar=1.25"]))
        for size in (3614985, 20000001, 70001, 1000003):
            x, z = ["x", [size], dtype], ["z", [size], dtype]
            rows.append(single("g_odd", "neg", [x], sides=["compiled"]))
            rows.append(single("g_odd", "add", [x, z], sides=["compiled"]))
            rows.append(chained("g_odd", [x, z], ["a div x z", "b maximum a x", "y tanh b"]))
        for r, c in ((300, 200), (760, 320), (523, 256), (1475, 312), (2000, 640), (12845, 704), (5000, 1000), (64, 900), (981, 3685), (3262, 1312), (400, 5000), (2852, 11617), (9000, 2560), (130, 8000), (40, 2000), (6000, 1500)):
            x, w = ["x", [r, c], dtype], ["w", [c], dtype]
            for op in ("tanh", "gelu", "sin", "exp"):
                rows.append(chained("g_heavy_rows", [x], [f"a {op} x", "m mean a", "b sub a m", f"y {op} b"]))
            rows.append(chained("g_heavy_rows", [x, w], ["a silu x", "b mul a w", "n layer_norm b w w", "t tanh n", "s softmax a", "q amax s"], outputs=["t", "q"]))
            rows.append(chained("g_heavy_rows", [x, w], ["n layer_norm x w w", "l layer_norm n w w", "v var n"], outputs=["l", "v"]))
            rows.append(chained("g_heavy_rows", [x], ["a abs x", "m amax a", "b div a m", "y sqrt b"]))
    return rows


def more():
    """Return more points of classes that had few, eager."""
    rows = []
    for dtype in ("bf16", "fp32"):
        for r, c in ((1, 1001), (20, 301), (74, 4591), (130, 10357), (300, 2049), (396, 7022), (767, 8191), (2000, 999), (5000, 3001), (9000, 1025), (12000, 257)):
            x, w = ["x", [r, c], dtype], ["w", [c], dtype]
            rows.append(single("layer_norm", "layer_norm", [x, w, ["b", [c], dtype]]))
            rows.append(single("rms_norm", "rms_norm", [x, w]))
        for r, c in ((8, 10240), (100, 12288), (500, 20000), (1000, 11000), (3000, 16000), (128, 128000), (16, 65536), (2000, 50257), (600, 40000), (4, 30000), (5000, 10240)):
            x = ["x", [r, c], dtype]
            rows.append(single("softmax", "softmax", [x]))
            rows.append(single("log_softmax", "log_softmax", [x]))
            for op in ("sum", "amax", "var"):
                rows.append(single("reduce_row", op, [x]))
        for r, c in ((300, 1000), (1000, 300), (3000, 3000), (700, 20000), (30000, 100), (10, 10000), (12000, 1024)):
            x = ["x", [r, c], dtype]
            rows.append(single("reduce_column", "sum", [x], dims=[0]))
            rows.append(single("reduce_all", "sum", [x], dims=[0, 1], keepdim=False))
            rows.append(single("reduce_middle", "sum", [["x", [16, max(r // 16, 1), c], dtype]], dims=[1]))
            rows.append(single("cumsum", "cumsum", [x]))
        for width in (64, 128, 256, 512, 2048):
            for tokens in (128, 1000, 30000):
                case = single("embedding", "embedding", [["x", [50000, width], dtype], ["i", [tokens], "int64"]])
                rows.append(case | {"highest": 50000})
        for r, c in ((64, 512), (1000, 1000), (3000, 50257), (20000, 100), (500, 128000)):
            rows.append(single("nll_loss", "nll_loss", [["x", [r, c], dtype], ["i", [r], "int64"]]) | {"highest": c})
        for size in (50000, 700000, 8000000, 40000000):
            other = "fp32" if dtype == "bf16" else "bf16"
            rows.append(single("cast", "cast", [["x", [size], dtype]], dtype=other))
            rows.append(single("mixed", "mul", [["x", [size], dtype], ["z", [size], other]]))
            rows.append(single("dropout", "dropout", [["x", [size], dtype]], p=0.1))
        for b, h, s, d in ((2, 12, 512, 64), (1, 8, 300, 64), (16, 12, 256, 64), (4, 16, 1024, 128), (1, 24, 4096, 64), (2, 8, 700, 128)):
            rows.append(single("attention", "attention", [[key, [b, h, s, d], dtype] for key in "qkv"]))
        for m, k, n in ((33, 1000, 1000), (300, 784, 256), (2048, 512, 256), (4096, 13, 512), (64, 415, 512), (2048, 415, 512), (512, 4096, 512), (5000, 300, 700)):
            inputs = [["x", [m, k], dtype], ["w", [n, k], dtype], ["b", [n], dtype]]
            rows.append(single("linear_bias", "linear", inputs))
            rows.append(single("linear", "linear", inputs[:2]))
    for n, ci, co, hw, k, s in ((16, 3, 32, 112, 3, 2), (1, 3, 64, 224, 7, 2), (8, 3, 96, 224, 4, 4), (64, 3, 64, 32, 3, 1), (32, 64, 128, 32, 3, 2), (16, 96, 24, 56, 1, 1), (16, 24, 144, 56, 1, 1), (64, 64, 64, 32, 3, 1), (64, 256, 256, 8, 3, 1), (8, 512, 512, 28, 3, 1), (2, 64, 64, 256, 3, 1), (2, 128, 64, 128, 1, 1), (128, 128, 128, 16, 3, 1), (4, 1024, 512, 16, 3, 1), (8, 192, 384, 28, 2, 2), (32, 512, 1024, 14, 1, 2), (1, 256, 256, 56, 3, 1), (16, 32, 32, 112, 3, 1), (64, 512, 128, 14, 1, 1), (8, 2048, 512, 7, 1, 1), (128, 64, 256, 28, 1, 1)):
        for layout, dtype in (("channels_last", "bf16"), ("nchw", "bf16"), ("nchw", "fp32")):
            x, w = ["x", [n, ci, hw, hw], dtype, layout], ["w", [co, ci, k, k], dtype, layout]
            rows.append(single("conv", "conv", [x, w], stride=s, padding=0 if k in {2, 4} else k // 2))
        for layout, dtype in (("channels_last", "bf16"), ("nchw", "bf16"), ("nchw", "fp32")):
            x = ["x", [n, co, hw // s, hw // s], dtype, layout]
            for stat in {dtype, "fp32"}:
                rows.append(single("batch_norm", "batch_norm", [x, *([key, [co], stat] for key in ("m", "var", "w", "b"))]))
    for n, c, hw in ((64, 64, 32), (1, 64, 112), (32, 192, 28), (8, 480, 14), (128, 32, 32), (16, 16, 224)):
        for layout, dtype in (("channels_last", "bf16"), ("nchw", "bf16"), ("nchw", "fp32")):
            x = ["x", [n, c, hw, hw], dtype, layout]
            rows.append(single("max_pool", "max_pool", [x], window=3, stride=2, padding=1))
            rows.append(single("mean_space", "mean", [x], dims=[2, 3]))
    for n, c, hw, k in ((32, 32, 112, 3), (32, 96, 56, 3), (32, 192, 28, 3), (32, 576, 14, 3), (8, 240, 28, 5), (64, 960, 7, 3)):
        for layout in ("channels_last", "nchw"):
            x, w = ["x", [n, c, hw, hw], "bf16", layout], ["w", [c, 1, k, k], "bf16", layout]
            rows.append(single("depthwise", "conv", [x, w], padding=k // 2, groups=c))
    return rows


def random_fit():
    """Return random programs of other seeds, to fit to."""
    return [programs.random_program(seed) | {"sides": ["eager", "compiled"]} for seed in range(5000, 5140)]


def random_suite():
    """Return random programs that nothing is fitted to."""
    return [programs.random_program(seed) | {"sides": ["eager", "compiled"]} for seed in range(1000, 1130)]


OWN_PATTERNS = {
    "bias_relu": [{"B": 128, "N": 512}, {"B": 2000, "N": 3000}, {"B": 6000, "N": 8192}],
    "rmsnorm_ops": [{"T": 1, "H": 5120}, {"T": 300, "H": 2048}, {"T": 3000, "H": 5120}, {"T": 12000, "H": 2560}],
    "rmsnorm_fp32_ops": [{"T": 64, "H": 4096}, {"T": 1500, "H": 3072}, {"T": 8192, "H": 4096}],
    "add_rmsnorm": [{"T": 16, "H": 8192}, {"T": 1000, "H": 4096}, {"T": 10000, "H": 3584}],
    "layernorm": [{"T": 100, "H": 768}, {"T": 2048, "H": 1600}, {"T": 12000, "H": 5120}],
    "layernorm_ops": [{"T": 200, "H": 1024}, {"T": 5000, "H": 2048}],
    "softmax": [{"T": 512, "H": 512}, {"T": 2000, "H": 3000}, {"T": 1000, "H": 32000}, {"T": 8192, "H": 2048}],
    "softmax_ops": [{"T": 1024, "H": 1024}, {"T": 2048, "H": 10000}],
    "gelu": [{"T": 128, "H": 3072}, {"T": 4096, "H": 6144}],
    "gelu_ops": [{"T": 128, "H": 4096}, {"T": 5000, "H": 4096}],
    "swiglu": [{"T": 1, "H": 14336}, {"T": 700, "H": 11008}, {"T": 5000, "H": 8192}],
    "five_cheap": [{"S": 100000}, {"S": 10000000}, {"S": 100000000}],
    "dropout_residual_layernorm": [{"T": 512, "H": 1024}, {"T": 4000, "H": 4096}, {"T": 10000, "H": 2048}],
    "rope": [{"T": 100}, {"T": 1000}, {"T": 6000}],
    "matmul": [{"M": 300, "K": 2048, "N": 6000}, {"M": 3000, "K": 5120, "N": 5120}, {"M": 12, "K": 4096, "N": 4096}],
    "matmul_bias_relu": [{"M": 256, "K": 1024, "N": 4096}, {"M": 5000, "K": 2048, "N": 3072}],
    "matmul_bias_gelu": [{"M": 512, "K": 768, "N": 3072}, {"M": 6000, "K": 1024, "N": 4096}],
    "attention_ops": [{"B": 2, "heads": 12, "S": 512, "D": 64}, {"B": 4, "heads": 16, "S": 1024, "D": 128}],
    "attention_sdpa": [{"B": 2, "heads": 12, "S": 512, "D": 64}, {"B": 4, "heads": 16, "S": 1024, "D": 128}],
    "conv_bn_relu": [
        {"N": 8, "Cin": 128, "Cout": 128, "HW": 28, "k": 3},
        {"N": 32, "Cin": 256, "Cout": 64, "HW": 56, "k": 1},
        {"N": 64, "Cin": 32, "Cout": 64, "HW": 112, "k": 3},
    ],
    "fp8_rowwise_quant": [{"T": 128, "H": 4096}, {"T": 3000, "H": 5120}, {"T": 12000, "H": 4096}],
    "cross_entropy": [{"T": 512, "V": 32000}, {"T": 4000, "V": 50257}, {"T": 2048, "V": 128000}],
    "swiglu_mlp": [{"T": 64, "H": 2048, "I": 5632}, {"T": 3000, "H": 2048, "I": 8192}],
    "adam_step": [{"S": 200000}, {"S": 8000000}, {"S": 50000000}],
    "independent4": [{"S": 65536}, {"S": 3000000}, {"S": 40000000}],
}
"""Sizes of this project's own for the patterns of h200_patterns.json."""


def patterns_suite():
    """Return the patterns at sizes of our own."""
    return [
        {"pattern": name, "dims": dims, "sides": ["eager", "compiled"], "host": True}
        for name, every in OWN_PATTERNS.items()
        for dims in every
    ]


SUITES = {
    "patterns": patterns_suite,
    "pointwise": pointwise,
    "rows": rows_suite,
    "products": products,
    "generated": generated,
    "generated_more": generated_more,
    "more": more,
    "random_fit": random_fit,
    "random": random_suite,
}
