"""Small tensor programs as data: run by PyTorch where one is measured, built as a graph where one is priced.

A program is a list of inputs, each ``[name, shape, dtype]`` (a fourth entry says how it lies in memory), of steps, each
``[result, op, operands, settings]``, and of outputs. The same lists mean the same program on both sides:
`graph_of` here, `programs_torch` there. `random_programs` draws them; nothing was fitted to what it draws.
"""

from __future__ import annotations

from fusesim.builder import Builder, common_strides_like
from fusesim.patterns import from_measured
from fusesim.tensor import channels_last

UNARY = ("neg", "abs", "relu", "exp", "tanh", "sigmoid", "silu", "gelu", "gelu_tanh", "rsqrt", "sqrt", "sin", "square")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum")
REDUCTIONS = ("sum", "mean", "amax", "amin", "var")


def graph_of(program, name="program"):
    """Return a measured program as a graph: a named pattern, or steps."""
    if "pattern" in program:
        return from_measured(program["pattern"], program["dims"])
    b = Builder(name)
    values = {}
    for key, shape, dtype, *layout in program["inputs"]:
        strides = channels_last(shape) if layout and layout[0] == "channels_last" else None
        values[key] = b.input(*shape, dtype=dtype, name=key, strides=strides)
    for result, op, operands, kw in program["steps"]:
        values[result] = _built(b, op, [values[key] for key in operands], kw)
    found = [values[key] for key in program["outputs"]]
    b.output(*(t for one in found for t in (one if isinstance(one, list) else [one])))
    return b.graph()


def _built(b, op, at, kw):
    """Add one step to a graph."""
    make = STEPS.get(op)
    if make is not None:
        return make(b, at, kw)
    if op in REDUCTIONS:
        return b.reduce(op, at[0], kw.get("dims", [-1]), keepdim=kw.get("keepdim", True))
    if op in UNARY or op in BINARY or op in {"where", "log1p", "cos", "erf", "reciprocal", "log"}:
        return b.op(op, *at, scalar=kw.get("scalar"), reverse=kw.get("reverse"))
    return getattr(b, op)(*at)


def _pow(b, at, kw):
    return b.op("square" if kw["scalar"] == 2 else "pow", at[0])


def _conv(b, at, kw):
    stride, padding = kw.get("stride", 1), kw.get("padding", 0)
    return b.conv(*at, stride=(stride, stride), padding=(padding, padding), groups=kw.get("groups", 1))


def _max_pool(b, at, kw):
    n, c, *space = at[0].shape
    across = 2 * kw.get("padding", 0) - kw["window"]
    shape = (n, c, *((size + across) // kw["stride"] + 1 for size in space))
    return _made(b, "pool", at, shape, "max_pool", kernel_size=(kw["window"], kw["window"]), mode="max")


def _made(b, kind, at, shape, stem, **attrs):
    result = b.tensor(shape, at[0].dtype, stem=stem)
    b.node(kind, at, [result], dims=(len(at[0].shape) - 1,), **attrs)
    return result


def _group_norm(b, at, kw):
    result = b.tensor(at[0].shape, at[0].dtype, stem="group_norm")
    b.node("group_norm", at, [result], groups=kw["groups"])
    return result


def _upsample(b, at, kw):
    n, c, *space = at[0].shape
    shape = (n, c, *(size * kw["factor"] for size in space))
    result = b.tensor(shape, at[0].dtype, stem="upsample", strides=common_strides_like(shape, at[0]))
    b.node("upsample", at, [result], mode="nearest" if kw["mode"] == "nearest" else "linear")
    return result


def _attention_gradients(b, at, kw):
    """Attention and its backward pass, as one training step has them."""
    q, k, v, gradient = at
    out = b.attention(q, k, v, causal=kw["causal"])
    made = [b.tensor(t.shape, t.dtype, stem="gradient", strides=t.strides) for t in (q, k, v)]
    b.node("attention_backward", [q, k, v, gradient, out], made, causal=kw["causal"] or None)
    return made


def _batch_norm_train(b, at, _):
    result = b.tensor(at[0].shape, at[0].dtype, stem="batch_norm", strides=at[0].strides)
    b.node("batch_norm_train", at, [result])
    return result


def _batch_norm_backward(b, at, kw):
    _, x, *_, weight = at
    kept = [weight, weight] if kw.get("weights") else [x, weight, weight]
    made = [b.tensor(t.shape, t.dtype, stem="gradient", strides=t.strides) for t in kept]
    b.node("batch_norm_backward", at, made)
    return made


def _max_pool_backward(b, at, kw):
    *operands, x = at
    result = b.tensor(x.shape, x.dtype, stem="gradient", strides=x.strides)
    b.node("pool_backward", operands, [result], kernel_size=(kw["window"],) * 2)
    return result


STEPS = {
    "upsample": _upsample,
    "attention_gradients": _attention_gradients,
    "expand": lambda b, at, kw: b.expand(at[0], kw["shape"]),
    "group_norm": _group_norm,
    "pow": _pow,
    "square": lambda b, at, _: b.op("mul", at[0], at[0]),
    "cast": lambda b, at, kw: b.cast(at[0], kw["dtype"]),
    "softmax": lambda b, at, kw: b.softmax(at[0], kw.get("dim", -1), log=False),
    "log_softmax": lambda b, at, kw: b.softmax(at[0], kw.get("dim", -1), log=True),
    "conv": _conv,
    "attention": lambda b, at, kw: b.attention(*at, causal=kw.get("causal", False)),
    "index_row": lambda b, at, _: b.gather("index", at[0], [at[1]], (*at[1].shape, *at[0].shape[1:])),
    "gather": lambda b, at, kw: b.gather("gather", at[0], [at[1]], at[1].shape, dim=kw["dim"]),
    "permute": lambda b, at, kw: b.permute(at[0], kw["order"]),
    "view": lambda b, at, kw: b.view(at[0], kw["shape"]),
    "slice": lambda b, at, kw: b.slice(at[0], kw["dim"], kw["start"], kw["stop"]),
    "concat": lambda b, at, kw: b.concat(at, kw["dim"]),
    "dropout": lambda b, at, kw: b.dropout(at[0], kw["p"]),
    "gt": lambda b, at, _: b.op("gt", *at),
    "eq": lambda b, at, _: b.op("eq", *at),
    "cumsum": lambda b, at, _: _made(b, "cumsum", at, at[0].shape, "cumsum"),
    "max_pool": _max_pool,
    "batch_norm_train": _batch_norm_train,
    "batch_norm_backward": _batch_norm_backward,
    "max_pool_backward": _max_pool_backward,
}
"""Steps that are not simply an op of that name."""
