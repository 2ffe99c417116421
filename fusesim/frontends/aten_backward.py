"""Rules for the ATen ops of backward passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusesim.frontends.aten_call import dims_of, rule

if TYPE_CHECKING:
    from fusesim.frontends.aten_call import Call


@rule("gelu_backward")
def _gelu(call: Call) -> None:
    """By erf or by tanh."""
    kind = "gelu_tanh_backward" if call["approximate"] == "tanh" else "gelu_backward"
    call.emit(kind, call.given("grad_output", "self"))


@rule("mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward", "binary_cross_entropy_backward")
def _loss(call: Call) -> None:
    """Gradients of losses: element by element."""
    call.emit("addcmul" if len(call.tensors) > 2 else "squared_difference", call.tensors[:3])  # noqa: PLR2004


@rule("_softmax_backward_data", "_log_softmax_backward_data")
def _softmax(call: Call) -> None:
    """Gradients along a dimension."""
    kind = "log_softmax_backward" if "log" in call.name else "softmax_backward"
    inputs = call.given("grad_output", "output")
    call.emit(kind, inputs, dims=dims_of(inputs[0], call["dim"]))


@rule("native_layer_norm_backward", "_fused_rms_norm_backward", "native_group_norm_backward")
@rule("native_batch_norm_backward", "cudnn_batch_norm_backward", "batch_norm_backward")
def _norm(call: Call) -> None:
    """Gradients of the input and of weights."""
    stems = {"layer": "layer_norm", "rms": "rms_norm", "group": "group_norm", "batch": "batch_norm"}
    kind = next(value for key, value in stems.items() if key in call.name) + "_backward"
    names = ("grad_out", "grad_output", "input", "mean", "rstd", "save_mean", "save_invstd", "save_var", "weight")
    outs = [place for place, region in enumerate(call.outs) if region is not None]
    call.emit(kind, call.given(*names), outs)


@rule("nll_loss_backward", "nll_loss2d_backward")
def _nll_loss(call: Call) -> None:
    """One value per row, the rest zero."""
    call.emit("nll_loss_backward", call.given("grad_output", "target", "total_weight"))


@rule("embedding_dense_backward", "_embedding_bag_dense_backward", "_embedding_bag_backward", "embedding_backward")
def _embedding(call: Call) -> None:
    """Gradients of rows, added at their places of a table of zeros."""
    inputs = call.given("grad_output", "grad", "indices", "offsets", "offset2bag")
    call.emit("embedding_backward", inputs)


@rule("convolution_backward")
def _convolution(call: Call) -> None:
    """Two convolutions, and a sum for the bias."""
    gradient, attrs = call["grad_output"], {"groups": call["groups"], "stride": tuple(call["stride"])}
    if call.outs[0] is not None:
        call.emit("conv_input_grad", [gradient, call["weight"]], [0], **attrs)
    if call.outs[1] is not None:
        call.emit("conv_weight_grad", [gradient, call["input"]], [1], **attrs)
    if call.outs[2] is not None:
        dims = tuple(dim for dim in range(len(gradient.shape)) if dim != 1)
        call.emit("sum", [gradient], [2], dims=dims)


@rule(
    "_scaled_dot_product_flash_attention_backward",
    "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_cudnn_attention_backward",
    "_scaled_dot_product_fused_attention_overrideable_backward",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
)
def _attention(call: Call) -> None:
    """Map the gradients of queries, keys and values, the scores computed again."""
    names = ("query", "key", "value", "grad_out", "grad_out_", "out", "logsumexp", "attn_bias")
    outs = [place for place, region in enumerate(call.outs) if region is not None]
    call.emit("attention_backward", call.given(*names), outs, causal=call["is_causal"] or None)


@rule("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward", "avg_pool2d_backward")
@rule("avg_pool3d_backward", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
@rule("adaptive_max_pool2d_backward")
def _pool(call: Call) -> None:
    """Gradients to the places of the largest, or to the whole window."""
    size: dict[str, Any] = {"kernel_size": tuple(call["kernel_size"])} if call["kernel_size"] else {}
    call.emit("pool_backward", call.given("grad_output", "indices"), **size)
