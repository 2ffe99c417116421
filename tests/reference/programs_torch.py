"""Programs as PyTorch runs them; see `programs` for what a program is. Needs PyTorch, measures nothing."""

from __future__ import annotations

import torch
from programs import BINARY, REDUCTIONS
from torch.nn import functional

TYPES = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
    "int64": torch.int64,
    "bool": torch.bool,
    "fp8": torch.float8_e4m3fn,
}


def call(op, at, kw):
    """Return one step's result."""
    if op in CALLS:
        return CALLS[op](*at)
    if op in SET:
        return SET[op](at, kw)
    if op in BINARY and kw.get("scalar") is not None:
        return _with_scalar(op, at[0], kw["scalar"], reverse=kw.get("reverse"))
    if op in REDUCTIONS:
        return getattr(torch, op)(at[0], dim=kw.get("dims", [-1]), keepdim=kw.get("keepdim", True))
    return getattr(torch, op)(*at)


def _with_scalar(op, x, scalar, *, reverse):
    left, right = (scalar, x) if reverse else (x, scalar)
    calls = {
        "add": lambda: left + right,
        "sub": lambda: left - right,
        "mul": lambda: left * right,
        "div": lambda: left / right,
    }
    return calls[op]()


CALLS = {
    "relu": torch.relu,
    "silu": functional.silu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "square": lambda x: x * x,
    "where": torch.where,
    "linear": functional.linear,
    "matmul": torch.matmul,
    "embedding": lambda table, index: functional.embedding(index, table),
    "embedding_bag": lambda table, index: functional.embedding_bag(index, table, mode="sum"),
    "index_row": lambda x, index: x[index],
    "batch_norm_train": lambda x, w, b, m, v: functional.batch_norm(x, m, v, w, b, training=True),
    "batch_norm": lambda x, m, v, w, b: functional.batch_norm(x, m, v, w, b, training=False),
    "nll_loss": functional.nll_loss,
    "cross_entropy": functional.cross_entropy,
    "flatten_all": lambda x: x.reshape(-1),
    "copy": lambda x: x.clone(memory_format=torch.contiguous_format),
    "cumsum": lambda x: torch.cumsum(x, -1),
    "layer_norm": lambda x, *rest: functional.layer_norm(x, (x.shape[-1],), *rest),
    "rms_norm": lambda x, *rest: functional.rms_norm(x, (x.shape[-1],), *rest),
}
"""Steps without settings."""


def _conv(at, kw):
    bias = at[2] if len(at) > 2 else None
    return functional.conv2d(at[0], at[1], bias, kw.get("stride", 1), kw.get("padding", 0), 1, kw.get("groups", 1))


def _attention_gradients(at, kw):
    """Attention and its backward pass."""
    *leaves, gradient = at
    with torch.enable_grad():
        leaves = [leaf.detach().requires_grad_() for leaf in leaves]
        out = functional.scaled_dot_product_attention(*leaves, is_causal=kw["causal"])
        return torch.autograd.grad(out, leaves, gradient)


def _batch_norm_backward(at, kw):
    """Gradients of a training batch norm alone, by the library that its forward pass would have run in."""
    g, x, mean, deviation, w = at
    if x.dtype == torch.float32:
        kept = torch.empty(0, dtype=torch.uint8, device=x.device)
        return torch.ops.aten.cudnn_batch_norm_backward(x, g, w, None, None, mean, deviation, 1e-5, kept)
    mask = [not kw.get("weights"), True, True]
    made = torch.ops.aten.native_batch_norm_backward(g, x, w, None, None, mean, deviation, True, 1e-5, mask)
    return tuple(one for one in made if one is not None)


def _max_pool_backward(at, kw):
    g, places, x = at
    return torch.ops.aten.max_pool2d_with_indices_backward(g, x, *_window(kw), [1, 1], False, places)


def _window(kw):
    """Return a window's size, stride and padding, both ways."""
    return [[kw[name]] * 2 for name in ("window", "stride", "padding")]


SET = {
    "pow": lambda at, kw: at[0].pow(kw.get("scalar")),
    "cast": lambda at, kw: at[0].to(TYPES[kw["dtype"]]),
    "softmax": lambda at, kw: functional.softmax(at[0], dim=kw.get("dim", -1)),
    "log_softmax": lambda at, kw: functional.log_softmax(at[0], dim=kw.get("dim", -1)),
    "permute": lambda at, kw: at[0].permute(kw["order"]),
    "view": lambda at, kw: at[0].view(kw["shape"]),
    "slice": lambda at, kw: at[0].narrow(kw["dim"], kw["start"], kw["stop"] - kw["start"]),
    "concat": lambda at, kw: torch.cat(at, kw["dim"]),
    "group_norm": lambda at, kw: functional.group_norm(at[0], kw["groups"], *at[1:]),
    "dropout": lambda at, kw: functional.dropout(at[0], kw["p"]),
    "conv": _conv,
    "attention": lambda at, kw: functional.scaled_dot_product_attention(*at, is_causal=kw.get("causal", False)),
    "max_pool": lambda at, kw: functional.max_pool2d(at[0], kw["window"], kw["stride"], kw.get("padding", 0)),
    "upsample": lambda at, kw: functional.interpolate(at[0], scale_factor=kw["factor"], mode=kw["mode"]),
    "attention_gradients": _attention_gradients,
    "expand": lambda at, kw: at[0].expand(kw["shape"]),
    "gather": lambda at, kw: torch.gather(at[0], kw["dim"], at[1]),
    "batch_norm_backward": _batch_norm_backward,
    "max_pool_backward": _max_pool_backward,
}
"""Steps with settings."""


def function(program):
    """Return the program as a function of its inputs; torch.compile can trace it."""
    names = [entry[0] for entry in program["inputs"]]
    steps, outputs = program["steps"], program["outputs"]

    def run(*tensors):
        values = dict(zip(names, tensors, strict=True))
        for result, op, operands, kw in steps:
            values[result] = call(op, [values[name] for name in operands], kw)
        return tuple(values[name] for name in outputs)

    return run


def _places(program, device):
    """Return where each window of a random picture, which has the last input's shape, has its largest value."""
    picture = torch.randn(program["inputs"][-1][1], device=device)
    return functional.max_pool2d(picture, *_window(program["steps"][-1][3]), return_indices=True)[1]


def inputs(program, device="cuda"):
    """Return random inputs; whole numbers point into the first input's first dimension, places into windows."""
    made = []
    for name, shape, dtype, *layout in program["inputs"]:
        if name == "places":
            tensor = _places(program, device)
        elif dtype == "int64":
            tensor = torch.randint(0, program.get("highest", 2), shape, device=device)
        else:
            tensor = torch.randn(shape, device=device).to(TYPES[dtype])
            if name.startswith("var"):
                tensor = tensor.abs() + 0.5
        if layout and layout[0] == "channels_last":
            tensor = tensor.to(memory_format=torch.channels_last)
        made.append(tensor)
    return made
