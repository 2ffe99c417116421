"""Rules for forward ATen ops whose operands or results are not simply in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fusesim.frontends.aten_call import dims_of, pointwise, rule
from fusesim.frontends.program import Region
from fusesim.tensor import Tensor

if TYPE_CHECKING:
    from fusesim.frontends.aten_call import Call

POWERS: Final = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
"""Powers that run as another op."""


@rule("pow")
def _power(call: Call) -> None:
    """Map a power; a few exponents have kernels of their own."""
    exponent = call["exponent"]
    kind = "" if isinstance(exponent, Tensor) or not isinstance(call["self"], Tensor) else POWERS.get(exponent, "")
    if kind:
        call.emit(kind, [call["self"]])
    elif exponent == 1 and not isinstance(exponent, Tensor):
        call.emit("copy", [call["self"]])
    else:
        pointwise(call, "pow")


@rule("rsub")
def _reversed_sub(call: Call) -> None:
    """Map the second minus the first."""
    alpha = call["alpha"] if call["alpha"] != 1 else None
    if isinstance(call["other"], Tensor):
        call.emit("sub", [call["other"], call["self"]], alpha=alpha)
    else:
        call.emit("sub", [call["self"]], scalar=call["other"], reverse=True, alpha=alpha)


@rule("clamp", "hardtanh", "clip")
def _clamp(call: Call) -> None:
    """Two limits, of which one may be missing."""
    low, high = call["min"], call["max"]
    if call.name == "hardtanh":
        low, high = call["min_val"], call["max_val"]
    plain = {key: v for key, v in (("min", low), ("max", high)) if v is not None and not isinstance(v, Tensor)}
    only = "max" if isinstance(high, Tensor) and low is None else None
    call.emit("clamp", call.tensors, limit=only, **plain)


@rule("gelu")
def _gelu(call: Call) -> None:
    """By erf or by tanh."""
    call.emit("gelu_tanh" if call["approximate"] == "tanh" else "gelu", [call["self"]])


@rule("lerp")
def _lerp(call: Call) -> None:
    """Between two tensors, by a number or a third."""
    weight = call["weight"]
    call.emit("lerp", call.tensors, scalar=None if isinstance(weight, Tensor) else weight)


@rule("masked_fill")
def _masked_fill(call: Call) -> None:
    """Map a value where a mask says so."""
    value = call["value"]
    if isinstance(value, Tensor):
        call.emit("where", [call["mask"], value, call["self"]])
    else:
        call.emit("where", [call["mask"], call["self"]], scalar=value, reverse=True)


@rule("glu", "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")
def _along(call: Call) -> None:
    """Ops along one dimension."""
    x = call["self"]
    outs = list(range(len(call.outs)))
    kind = "glu" if call.name == "glu" else "cumsum" if x.shape else "copy"
    call.emit(kind, [x], outs if x.shape else None, dims=dims_of(x, call["dim"]) or None)


@rule("mse_loss")
def _mse_loss(call: Call) -> None:
    """Map the squared differences, then their mean: two kernels."""
    x, target = call["self"], call["target"]
    if call["reduction"] == 0:
        call.emit("squared_difference", [x, target])
        return
    parts = Region(object(), x.shape, x.strides, 0, x.dtype)
    made = call.program.node("squared_difference", [x, target], [parts])
    call.emit("mean" if call["reduction"] == 1 else "sum", made, dims=dims_of(made[0], None))


@rule("_to_copy")
def _to_copy(call: Call) -> None:
    """Another element type, or the same values in another order."""
    x, made = call["self"], call.outs[0]
    call.emit("cast" if made is not None and made.dtype != x.dtype else "copy", [x])


@rule("copy")
def _copy(call: Call) -> None:
    """Values over another tensor's; into memory that nobody has written, a plain copy."""
    target, source, made = call["self"], call["src"], call.outs[0]
    if not isinstance(source, Tensor):
        call.emit("fill", [], scalar=source)
    elif made is not None and not isinstance(target, Tensor):
        call.emit("cast" if made.dtype != source.dtype and made.shape == source.shape else "copy", [source])
    else:
        call.emit("copy_into", [target, source])


@rule("mm", "bmm", "matmul", "_int_mm")
def _matmul(call: Call) -> None:
    """Matrix products."""
    second = call["mat2"] if call["mat2"] is not None else call["other"]
    call.emit("matmul", [call["self"], second])


@rule("_scaled_mm")
def _scaled_matmul(call: Call) -> None:
    """Map a product of 8-bit matrices; the scales are a value or a row."""
    call.emit("matmul", [call["self"], call["mat2"], *call.given("bias")], scaled=True)


@rule("addmm", "baddbmm", "_addmm_activation")
def _addmm(call: Call) -> None:
    """Map a product plus a row or a matrix, in one kernel."""
    first, second = ("batch1", "batch2") if call.name == "baddbmm" else ("mat1", "mat2")
    plus = call.given("self") if call["beta"] != 0 else []
    attrs = {key: call[key] for key in ("alpha", "beta") if call[key] not in {None, 1}}
    call.emit("matmul", [call[first], call[second], *plus], **attrs)


@rule("mv", "dot", "vdot", "addmv")
def _vector_product(call: Call) -> None:
    """Products with a vector: matrices of one row or column."""
    left, right = {"mv": ("self", "vec"), "addmv": ("mat", "vec")}.get(call.name, ("self", "tensor"))
    a, x = call[left], call[right] if call[right] is not None else call["other"]
    b = call.program.builder
    row = a if len(a.shape) > 1 else b.view(a, (1, a.shape[0]))
    column = b.tensor((x.shape[0], 1), x.dtype, stem="view", strides=(*x.strides, 1), of=x, offset=x.offset)
    b.node("view", [x], [column])
    made = call.outs[0]
    if made is not None:
        whole = Region(made.memory, (row.shape[0], 1), (1, 1), made.offset, made.dtype)
        plus = call.given("self") if call.name == "addmv" else []
        plus = [b.view(vector, (vector.shape[0], 1)) for vector in plus]
        call.program.node("matmul", [row, column, *plus], [whole])
        call.program.view(whole, made, "view")


@rule("convolution", "cudnn_convolution", "_convolution", "conv_depthwise3d", "_conv_depthwise2d")
def _convolution(call: Call) -> None:
    """Map a convolution, or the transposed one."""
    inputs = [call["input"] if call["input"] is not None else call["self"], call["weight"], *call.given("bias")]
    attrs: dict[str, Any] = {key: tuple(call[key]) for key in ("stride", "padding", "dilation") if call[key]}
    call.emit("conv", inputs, groups=call["groups"] or 1, transposed=call["transposed"] or None, **attrs)


@rule("_softmax", "_log_softmax", "_safe_softmax")
def _softmax(call: Call) -> None:
    """Softmax and its logarithm along a dimension."""
    x = call["self"]
    call.emit("log_softmax" if "log" in call.name else "softmax", [x], dims=dims_of(x, call["dim"]))


@rule("native_layer_norm", "_fused_rms_norm")
def _layer_norm(call: Call) -> None:
    """Norms over the last dimensions; statistics are kept only for a backward pass."""
    x = call["input"]
    dims = tuple(range(len(x.shape) - len(call["normalized_shape"]), len(x.shape)))
    kind = "rms_norm" if "rms" in call.name else "layer_norm"
    outs = list(range(len(call.outs)))
    inputs = [x, *call.given("weight", "bias")]
    call.emit(kind, inputs, outs, optional=len(outs) - 1, dims=dims, eps=call["eps"])


@rule("native_group_norm")
def _group_norm(call: Call) -> None:
    """Map a norm over groups of channels."""
    call.emit(
        "group_norm",
        call.given("input", "weight", "bias"),
        [0, 1, 2],
        optional=2,
        groups=call["group"],
        eps=call["eps"],
    )


@rule(
    "native_batch_norm",
    "cudnn_batch_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training",
    "_batch_norm_with_update",
    "_batch_norm_no_update",
)
def _batch_norm(call: Call) -> None:
    """Inference has its statistics given; training makes and keeps them."""
    training = bool(call["training"]) or call.name == "_batch_norm_with_update"
    first = "running_mean", "running_var", "weight", "bias"
    names = first if not training else ("weight", "bias", "running_mean", "running_var")
    kind = "batch_norm_train" if training else "batch_norm"
    x = call["input"] if call["input"] is not None else call["self"]
    outs = [place for place, region in enumerate(call.outs) if region is not None and 0 not in region.shape][:3]
    eps = call["eps"] if call["eps"] is not None else call["epsilon"]
    call.emit(kind, [x, *call.given(*names)], outs, optional=len(outs) - 1, eps=eps)


@rule("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss(call: Call) -> None:
    """Map the mean of minus the log-probabilities of targets; class weights are gathered with them."""
    call.emit("nll_loss", [call["self"], call["target"]], [0, 1], optional=1)


@rule("native_dropout")
def _dropout(call: Call) -> None:
    """Dropout of training, with its mask."""
    call.emit("dropout", [call["input"]], [0, 1], p=call["p"])


@rule(
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
    "_scaled_dot_product_flash_attention_for_cpu",
)
def _attention(call: Call) -> None:
    """Tiled attention; the row sums are kept only for a backward pass."""
    mask = call.given("attn_bias") or call.given("attn_mask")
    attrs = {"causal": call["is_causal"] or None, "scale": call["scale"], "p": call["dropout_p"] or None}
    call.emit("attention", [call["query"], call["key"], call["value"], *mask], [0, 1], optional=1, **attrs)


@rule("cat", "stack", "concat", "_stack")
def _concat(call: Call) -> None:
    """Tensors next to each other."""
    made = call.outs[0]
    dim = (call["dim"] or 0) % max(len(made.shape), 1) if made is not None else 0
    parts = [tensor for tensor in call.tensors if tensor.elements] or call.tensors[:1]
    if call.name in {"stack", "_stack"}:
        parts = [_with_dim(call, part, dim) for part in parts]
    call.emit("concat", parts, dim=dim)


def _with_dim(call: Call, x: Tensor, dim: int) -> Tensor:
    """Look at a tensor with one more dimension, of one place."""
    b = call.program.builder
    step = x.strides[dim] * x.shape[dim] if dim < len(x.shape) else 1
    shape, strides = ((*values[:dim], one, *values[dim:]) for values, one in ((x.shape, 1), (x.strides, step)))
    made = b.tensor(shape, x.dtype, stem="view", strides=strides, of=x, offset=x.offset)
    b.node("view", [x], [made])
    return made


@rule("constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d")
@rule("slice_backward", "select_backward", "slice_scatter", "select_scatter")
def _pad(call: Call) -> None:
    """Values with others around them."""
    call.emit("pad", call.given("self", "grad_output", "src")[:1])
