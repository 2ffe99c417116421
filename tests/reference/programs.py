"""Small tensor programs as data: run by PyTorch where one is measured, built as a graph where one is priced.

A program is a list of inputs, each ``[name, shape, dtype]`` (a fourth entry says how it lies in memory), a list of steps,
each ``[result, op, operands, settings]``, and a list of outputs. The same list means the same program on both sides.
`random_program` draws them; nothing was fitted to what it draws.
"""

from __future__ import annotations

import math
import random

from fusesim.builder import Builder

UNARY = ("neg", "abs", "relu", "exp", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "rsqrt", "sqrt", "sin", "square")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")
REDUCTIONS = ("sum", "mean", "amax", "amin", "var")


def torch_types(torch):
    return {
        "bf16": torch.bfloat16,
        "fp16": torch.float16,
        "fp32": torch.float32,
        "int64": torch.int64,
        "bool": torch.bool,
        "fp8": torch.float8_e4m3fn,
    }


def torch_call(torch, op, at, kw):
    """Return one step's result in PyTorch."""
    functional, types = torch.nn.functional, torch_types(torch)
    scalar = kw.get("scalar")
    if op in BINARY:
        call = getattr(torch, op)
        if scalar is not None:
            left, right = (scalar, at[0]) if kw.get("reverse") else (at[0], scalar)
            return {"add": lambda: left + right, "sub": lambda: left - right, "mul": lambda: left * right, "div": lambda: left / right}[op]()
        return call(*at)
    simple = {
        "relu": torch.relu,
        "silu": functional.silu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "square": lambda x: x * x,
        "where": torch.where,
        "linear": functional.linear,
        "matmul": torch.matmul,
        "embedding": lambda table, index: functional.embedding(index, table),
        "batch_norm": lambda x, m, v, w, b: functional.batch_norm(x, m, v, w, b, False),
        "nll_loss": functional.nll_loss,
        "cross_entropy": functional.cross_entropy,
        "flatten_all": lambda x: x.reshape(-1),
        "copy": lambda x: x.clone(memory_format=torch.contiguous_format),
        "cumsum": lambda x: torch.cumsum(x, -1),
    }
    if op in simple:
        return simple[op](*at)
    if op == "pow":
        return at[0].pow(scalar)
    if op == "cast":
        return at[0].to(types[kw["dtype"]])
    if op in REDUCTIONS:
        dims = kw.get("dims", [-1])
        if op in {"amax", "amin", "mean", "sum"}:
            return getattr(torch, op)(at[0], dim=dims, keepdim=kw.get("keepdim", True))
        return torch.var(at[0], dim=dims, keepdim=kw.get("keepdim", True))
    if op in {"softmax", "log_softmax"}:
        return getattr(functional, op)(at[0], dim=kw.get("dim", -1))
    if op in {"layer_norm", "rms_norm"}:
        return getattr(functional, op)(at[0], (at[0].shape[-1],), *at[1:])
    if op == "permute":
        return at[0].permute(kw["order"])
    if op == "view":
        return at[0].view(kw["shape"])
    if op == "slice":
        return at[0].narrow(kw["dim"], kw["start"], kw["stop"] - kw["start"])
    if op == "concat":
        return torch.cat(at, kw["dim"])
    if op == "dropout":
        return functional.dropout(at[0], kw["p"])
    if op == "conv":
        bias = at[2] if len(at) > 2 else None
        return functional.conv2d(at[0], at[1], bias, kw.get("stride", 1), kw.get("padding", 0), 1, kw.get("groups", 1))
    if op == "attention":
        return functional.scaled_dot_product_attention(*at, is_causal=kw.get("causal", False))
    if op == "max_pool":
        return functional.max_pool2d(at[0], kw["window"], kw["stride"], kw.get("padding", 0))
    if op == "index_row":
        return at[0][at[1]]
    if op == "gather":
        return torch.gather(at[0], kw["dim"], at[1])
    if op == "embedding_bag":
        return functional.embedding_bag(at[1], at[0], mode="sum")
    return getattr(torch, op)(*at)


def torch_function(torch, program):
    """Return the program as a function of its inputs; torch.compile can trace it."""
    names = [entry[0] for entry in program["inputs"]]
    steps, outputs = program["steps"], program["outputs"]

    def run(*tensors):
        values = dict(zip(names, tensors, strict=True))
        for result, op, operands, kw in steps:
            values[result] = torch_call(torch, op, [values[name] for name in operands], kw)
        return tuple(values[name] for name in outputs)

    return run


def torch_inputs(torch, program, device="cuda"):
    """Return random inputs; whole numbers point into the first input's first dimension."""
    made, types = [], torch_types(torch)
    for name, shape, dtype, *layout in program["inputs"]:
        if dtype == "int64":
            tensor = torch.randint(0, program.get("highest", 2), shape, device=device)
        else:
            tensor = torch.randn(shape, device=device).to(types[dtype])
            if name.startswith("var"):
                tensor = tensor.abs() + 0.5
        if layout and layout[0] == "channels_last":
            tensor = tensor.to(memory_format=torch.channels_last)
        made.append(tensor)
    return made


def graph_of(program, name="program"):
    """Return the program as a graph."""
    b = Builder(name)
    values = {}
    for key, shape, dtype, *layout in program["inputs"]:
        strides = None
        if layout and layout[0] == "channels_last":
            from fusesim.tensor import channels_last

            strides = channels_last(shape)
        values[key] = b.input(*shape, dtype=dtype, name=key, strides=strides)
    for result, op, operands, kw in program["steps"]:
        values[result] = _built(b, op, [values[key] for key in operands], kw)
    b.output(*(values[key] for key in program["outputs"]))
    return b.graph()


def _built(b, op, at, kw):
    if op == "pow":
        return b.op("square" if kw["scalar"] == 2 else "pow", at[0])
    if op == "square":
        return b.op("mul", at[0], at[0])
    if op in UNARY or op in BINARY or op in {"where", "log1p", "cos", "erf", "reciprocal", "log"}:
        return b.op(op, *at, scalar=kw.get("scalar"), reverse=kw.get("reverse"))
    if op == "cast":
        return b.cast(at[0], kw["dtype"])
    if op in REDUCTIONS:
        return b.reduce(op, at[0], kw.get("dims", [-1]), keepdim=kw.get("keepdim", True))
    if op in {"softmax", "log_softmax"}:
        return b.softmax(at[0], kw.get("dim", -1), log=op == "log_softmax")
    if op == "conv":
        stride, padding = kw.get("stride", 1), kw.get("padding", 0)
        return b.conv(*at, stride=(stride, stride), padding=(padding, padding), groups=kw.get("groups", 1))
    if op == "attention":
        return b.attention(*at, causal=kw.get("causal", False))
    if op == "index_row":
        return b.gather("index", at[0], [at[1]], (*at[1].shape, *at[0].shape[1:]))
    if op == "gather":
        return b.gather("gather", at[0], [at[1]], at[1].shape, dim=kw["dim"])
    if op == "permute":
        return b.permute(at[0], kw["order"])
    if op == "view":
        return b.view(at[0], kw["shape"])
    if op == "slice":
        return b.slice(at[0], kw["dim"], kw["start"], kw["stop"])
    if op == "concat":
        return b.concat(at, kw["dim"])
    if op == "dropout":
        return b.dropout(at[0], kw["p"])
    if op in {"gt", "eq"}:
        return b.op(op, *at)
    if op in {"cumsum", "max_pool"}:
        made = b.tensor(_pooled(at[0].shape, kw) if op == "max_pool" else at[0].shape, at[0].dtype, stem=op)
        b.node("pool" if op == "max_pool" else op, at, [made], dims=(len(at[0].shape) - 1,))
        return made
    return getattr(b, op)(*at)


def _pooled(shape, kw):
    n, c, *space = shape
    return (n, c, *((size + 2 * kw.get("padding", 0) - kw["window"]) // kw["stride"] + 1 for size in space))


def random_program(seed):
    """Return a random program of that seed, for the same seed the same.

    Full tensors [rows, cols], rows [cols] and columns [rows, 1]; three to twelve steps.
    """
    draw = random.Random(seed)
    dtype = draw.choice(["bf16", "bf16", "fp32"])
    while True:
        rows = max(1, round(math.exp(draw.uniform(0, math.log(20000)))))
        cols = round(math.exp(draw.uniform(math.log(256), math.log(14336))))
        multiple = draw.choice([1, 8, 64, 256])
        cols = min(max(cols // multiple * multiple, 256), 14336)
        if rows * cols <= 1.2e8:
            break
    inputs = [[f"x{place}", [rows, cols], dtype] for place in range(draw.randint(1, 3))]
    full, columns = [entry[0] for entry in inputs], []
    steps, used = [], set()

    def add(op, operands, **kw):
        result = f"t{len(steps)}"
        steps.append([result, op, operands, kw])
        used.update(operands)
        return result

    def row():
        rows_so_far = [entry[0] for entry in inputs if entry[0].startswith("r")]
        if rows_so_far and draw.random() < 0.3:
            return draw.choice(rows_so_far)
        inputs.append([f"r{len(inputs)}", [cols], dtype])
        return inputs[-1][0]

    def recent():
        return full[-1] if draw.random() < 0.7 else draw.choice(full)

    for _ in range(draw.randint(3, 12)):
        what = draw.choices(
            ["unary", "scalar", "binary", "row", "reduce", "column", "softmax", "layer_norm"], [30, 14, 16, 14, 10, 14, 4, 5]
        )[0]
        if what == "unary":
            full.append(add(draw.choice(UNARY), [recent()]))
        elif what == "scalar":
            full.append(add(draw.choice(BINARY[:4]), [recent()], scalar=draw.choice([0.5, 1.25, 3.0])))
        elif what == "binary":
            full.append(add(draw.choice(BINARY), [recent(), draw.choice(full)]))
        elif what == "row":
            full.append(add(draw.choice(["add", "mul"]), [recent(), row()]))
        elif what == "reduce":
            columns.append(add(draw.choice(REDUCTIONS), [recent()]))
        elif what == "column" and columns:
            full.append(add(draw.choice(BINARY[:4]), [recent(), draw.choice(columns)]))
        elif what == "softmax":
            full.append(add("softmax", [recent()]))
        elif what == "layer_norm":
            full.append(add("layer_norm", [recent(), row(), row()]))
    if not steps:
        full.append(add("relu", [full[-1]]))
    outputs = [step[0] for step in steps if step[0] not in used]
    if draw.random() < 0.25:
        extra = draw.choice(steps)[0]
        if extra not in outputs:
            outputs.append(extra)
    inputs = [entry for entry in inputs if entry[0] in used]
    return {"seed": seed, "inputs": inputs, "steps": steps, "outputs": outputs}
