"""What PyTorch runs as one kernel on a GPU and takes apart elsewhere: dispatch on meta tensors as on CUDA.

While a program is recorded, composite ops on the meta device call the fused op that CUDA's build calls, for the
shapes and types for which it does; all others are left alone.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fusesim.frontends.torch_record import Recorder

HALF: Final = (torch.bfloat16, torch.float16)
MOST_HEAD: Final = 256
"""Largest head that the 16-bit attention kernels take."""

NO_AUTOCAST: Final = "torch.autocast has no effect here: convert the module, for example with .to(torch.bfloat16)"


@contextmanager
def as_on_cuda(recorder: Recorder) -> Iterator[None]:
    """Dispatch as on CUDA while the block runs."""
    functions: dict[str, Callable[..., Any]] = {
        "scaled_dot_product_attention": attention,
        "dropout": dropout,
        "rms_norm": lambda *args, **kwargs: rms_norm(recorder, *args, **kwargs),
        "gru_cell": lambda *args, **kwargs: gru_cell(recorder, *args, **kwargs),
        "lstm_cell": lambda *args, **kwargs: lstm_cell(recorder, *args, **kwargs),
    }
    library = torch.library.Library("aten", "IMPL")
    lazy = torch.cuda._lazy_init  # noqa: SLF001 - a program may name "cuda" where there is none
    enter = torch.autocast.__enter__

    def entered(context: Any) -> Any:
        recorder.program.gap(NO_AUTOCAST)
        return enter(context)

    if torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu"):
        recorder.program.gap(NO_AUTOCAST)
    try:
        for name, function in functions.items():
            library.impl(name, function, "AutogradMeta")
        torch.cuda._lazy_init = _no_device  # noqa: SLF001
        torch.autocast.__enter__ = entered
        recorder.overrides.update(functions)
        with _NamedDevices():
            yield
    finally:
        torch.autocast.__enter__ = enter
        torch.cuda._lazy_init = lazy  # noqa: SLF001
        library._destroy()  # noqa: SLF001 - PyTorch's own way to take a registration back


class _NamedDevices(TorchFunctionMode):  # type: ignore[misc]  # PyTorch may be missing
    """Makes devices that a program names the meta device: there need be no GPU to name one."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of PyTorch with the meta device for any CUDA device."""
        del types
        kwargs = {key: _device(value) for key, value in (kwargs or {}).items()}
        if func is torch.Tensor.cuda:
            return args[0]
        return func(*(_device(value) for value in args), **kwargs)


def _device(value: Any) -> Any:
    """Return the meta device for a CUDA device, anything else as it is."""
    cuda = isinstance(value, torch.device) and value.type == "cuda"
    return torch.device("meta") if cuda or (isinstance(value, str) and value.split(":")[0] == "cuda") else value


def _no_device() -> None:
    """Start no device: nothing runs on one."""


def attention(  # noqa: PLR0917 - PyTorch's signature
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,  # noqa: FBT001, FBT002 - PyTorch's signature
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Attention as CUDA dispatches it: tiled, but for ranks and types that no tiled kernel takes."""
    aten = torch.ops.aten
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        lowest = torch.scalar_tensor(float("-inf"), dtype=query.dtype, device=query.device)
        attn_mask = torch.where(attn_mask, 0.0, lowest)
    if query.dim() != 4 or query.dtype not in {*HALF, torch.float32}:  # noqa: PLR2004
        return aten._scaled_dot_product_attention_math(  # noqa: SLF001
            query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]
    saves = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
    if query.dtype in HALF and max(query.shape[-1], value.shape[-1]) <= MOST_HEAD:
        return aten._scaled_dot_product_cudnn_attention(  # noqa: SLF001
            query, key, value, attn_mask, saves, dropout_p, is_causal, False, scale=scale
        )[0]
    if enable_gqa:
        repeats = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    return aten._scaled_dot_product_efficient_attention(  # noqa: SLF001
        query, key, value, attn_mask, saves, dropout_p, is_causal, scale=scale
    )[0]


def dropout(input: Any, p: float, train: bool) -> Any:  # noqa: A002, FBT001 - PyTorch's signature
    """Dropout: one kernel that writes its mask too."""
    if not train or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return input * torch.zeros_like(input)
    return torch.native_dropout(input, p, train)[0]


def rms_norm(recorder: Recorder, input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:  # noqa: A002
    """RMSNorm: one kernel where weight and input have one type."""
    shape = list(normalized_shape)
    if (weight is not None and weight.dtype != input.dtype) or input.is_complex():
        wide = input.float() if input.dtype in HALF else input
        dims = tuple(range(-len(shape), 0))
        made = wide * torch.rsqrt(wide.pow(2).mean(dims, keepdim=True).add_(eps or 1e-6))
        return (made if weight is None else made * weight).to(input.dtype)
    wide = torch.float32 if input.dtype in HALF else input.dtype
    return _RmsNorm.apply(input, weight, (shape, torch.finfo(wide).eps if eps is None else eps), recorder)


class _RmsNorm(torch.autograd.Function):  # type: ignore[misc]  # PyTorch may be missing
    """The fused norm, forward and backward, recorded by hand: the meta device would take it apart."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, form: tuple[list[int], float], recorder: Recorder) -> Any:
        """Record the norm over the last dimensions, with what keeps it from a division by zero."""
        shape, eps = form
        rows = (*x.shape[: x.dim() - len(shape)], *(1,) * len(shape))
        made = torch.empty_like(x, memory_format=torch.contiguous_format)
        root = torch.empty(rows, dtype=torch.float32 if x.dtype in HALF else x.dtype, device=x.device)
        bound = {"input": x, "normalized_shape": shape, "weight": weight, "eps": eps}
        recorder.record("_fused_rms_norm", bound, [made, root])
        ctx.save_for_backward(x, weight, root)
        ctx.shape, ctx.recorder = shape, recorder
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Record its gradient."""
        x, weight, root = ctx.saved_tensors
        results = [torch.empty_like(x), None if weight is None else torch.empty_like(weight)]
        bound = {"grad_out": gradients[0], "input": x, "rstd": root, "weight": weight}
        ctx.recorder.record("_fused_rms_norm_backward", bound, results)
        return results[0], results[1], None, None


def gru_cell(  # noqa: PLR0917 - PyTorch's signature
    recorder: Recorder,
    input: Any,  # noqa: A002
    hx: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any = None,
    b_hh: Any = None,
) -> Any:
    """Run a GRU's step: two products, then one kernel; with gradients, taken apart."""
    bound = {"hx": hx, "input_bias": b_ih, "hidden_bias": b_hh}
    gates = {"input_gates": input @ w_ih.t(), "hidden_gates": hx @ w_hh.t()}
    if torch.is_grad_enabled() and any(t.requires_grad for t in gates.values()):
        recorder.program.gap("a GRU cell's gradient is priced op by op; a GPU runs one kernel")
        ri, ui, ni = (gates["input_gates"] + (0 if b_ih is None else b_ih)).chunk(3, 1)
        rh, uh, nh = (gates["hidden_gates"] + (0 if b_hh is None else b_hh)).chunk(3, 1)
        new = torch.tanh(ni + torch.sigmoid(ri + rh) * nh)
        return (hx - new) * torch.sigmoid(ui + uh) + new
    made, workspace = torch.empty_like(hx), hx.new_empty((hx.shape[0], 5 * hx.shape[1]))
    recorder.record("_thnn_fused_gru_cell", gates | bound, [made, workspace])
    return made


def lstm_cell(  # noqa: PLR0917 - PyTorch's signature
    recorder: Recorder,
    input: Any,  # noqa: A002
    hx: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any = None,
    b_hh: Any = None,
) -> Any:
    """Run an LSTM's step: two products, then one kernel; with gradients, taken apart."""
    h, c = hx
    bound = {"cx": c, "input_bias": b_ih, "hidden_bias": b_hh}
    gates = {"input_gates": input @ w_ih.t(), "hidden_gates": h @ w_hh.t()}
    if torch.is_grad_enabled() and any(t.requires_grad for t in gates.values()):
        recorder.program.gap("an LSTM cell's gradient is priced op by op; a GPU runs one kernel")
        whole = gates["input_gates"] + (0 if b_ih is None else b_ih)
        i, f, g, o = (whole + gates["hidden_gates"] + (0 if b_hh is None else b_hh)).chunk(4, 1)
        cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(cell), cell
    state, cell = torch.empty_like(h), torch.empty_like(c)
    recorder.record("_thnn_fused_lstm_cell", gates | bound, [state, cell, torch.empty_like(gates["input_gates"])])
    return state, cell
