"""Rules for forward ATen ops that choose, order, pool or resample values, and for recurrent cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusesim.frontends.aten_call import dims_of, rule

if TYPE_CHECKING:
    from fusesim.frontends.aten_call import Call


@rule("embedding")
def _embedding(call: Call) -> None:
    """Rows of a table."""
    call.emit("embedding", [call["weight"], call["indices"]])


@rule("_embedding_bag_forward_only", "_embedding_bag")
def _embedding_bag(call: Call) -> None:
    """Map sums of rows; places are kept only for a backward pass."""
    inputs = [call["weight"], call["indices"], call["offsets"]]
    outs = [place for place, region in enumerate(call.outs) if region is not None and 0 not in region.shape]
    call.emit("embedding_bag", inputs, outs, optional=len(outs) - 1)


@rule("index", "_unsafe_index", "index_select", "take", "take_along_dim")
def _index(call: Call) -> None:
    """Elements or rows by indices."""
    indexed = call["indices"] if isinstance(call["indices"], list | tuple) else None
    places = tuple(at for at, value in enumerate(indexed) if value is not None) if indexed else (call["dim"],)
    call.emit("index", call.tensors, dims=places if places != (None,) else None)


@rule("gather")
def _gather(call: Call) -> None:
    """Elements along a dimension."""
    call.emit("gather", [call["self"], call["index"]], dim=call["dim"])


@rule("scatter", "scatter_add", "scatter_reduce", "index_put", "_unsafe_index_put", "_index_put_impl", "index_add")
@rule("index_copy", "index_fill", "put", "masked_scatter")
def _scatter(call: Call) -> None:
    """Values to places, written or added."""
    adds = call["accumulate"] or call.name in {"scatter_add", "scatter_reduce", "index_add"}
    call.emit("scatter", call.tensors, accumulate=adds or None)


@rule("topk", "sort", "kthvalue", "mode", "median")
def _sorted(call: Call) -> None:
    """Values and their places."""
    x = call["self"]
    outs = [place for place, region in enumerate(call.outs) if region is not None]
    dim = call["dim"] if call["dim"] is not None else -1
    call.emit("topk" if call.name != "sort" else "sort", [x], outs, dims=dims_of(x, dim))


@rule("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d")
@rule("_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d", "avg_pool1d")
def _pool(call: Call) -> None:
    """Map the largest or the mean of windows; the largest's places are written whether read or not."""
    window: dict[str, Any] = {key: tuple(call[key]) for key in ("kernel_size", "stride", "padding") if call[key]}
    mode = "max" if "max" in call.name else "mean"
    call.emit("pool", call.given("self"), list(range(len(call.outs))), mode=mode, **window)


@rule("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact2d")
@rule("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d")
@rule("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")
@rule("upsample_nearest2d_backward", "upsample_bilinear2d_backward", "upsample_bicubic2d_backward")
@rule("upsample_nearest1d_backward", "upsample_linear1d_backward", "upsample_nearest3d_backward")
def _upsample(call: Call) -> None:
    """Map a larger picture, or the gradient of one."""
    call.emit("upsample", call.tensors[:1], mode="nearest" if "nearest" in call.name else "linear")


@rule("_thnn_fused_gru_cell", "_thnn_fused_lstm_cell")
def _cell(call: Call) -> None:
    """Map the element-wise part of a recurrent cell, one kernel."""
    outs = list(range(len(call.outs)))
    kind = "gru_cell" if "gru" in call.name else "lstm_cell"
    names = ("input_gates", "hidden_gates", "hx", "cx", "input_bias", "hidden_bias")
    call.emit(kind, call.given(*names), outs)
