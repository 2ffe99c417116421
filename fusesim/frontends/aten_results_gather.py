"""What ATen ops make that join, choose, order, pool or resample values, and what backward passes make."""

from __future__ import annotations

from typing import Any

from fusesim.builder import common_strides_like
from fusesim.frontends.aten_call import flat
from fusesim.frontends.aten_results import CODES, Look, first_of, like, plain, pointwise, result_rule
from fusesim.tensor import Tensor, permuted_dense, row_major


@result_rule("cat", "concat")
def _concat(args: dict[str, Any]) -> list[Look]:
    """Tensors next to each other; channels last where all of them are."""
    parts = [part for part in flat(args["tensors"]) if part.elements] or list(flat(args["tensors"]))[:1]
    first, shape = parts[0], list(parts[0].shape)
    dim = (args.get("dim") or 0) % len(shape)
    shape[dim] = sum(part.shape[dim] for part in parts)
    strided = all(permuted_dense(part) and not part.contiguous for part in parts)
    return [(tuple(shape), common_strides_like(tuple(shape), first) if strided else row_major(shape), first.dtype)]


@result_rule("stack", "_stack")
def _stacked(args: dict[str, Any]) -> list[Look]:
    """Tensors next to each other along a dimension of their own."""
    parts = list(flat(args["tensors"]))
    shape = list(parts[0].shape)
    shape.insert((args.get("dim") or 0) % (len(shape) + 1), len(parts))
    return [plain(shape, parts[0].dtype)]


@result_rule("constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d")
def _pad(args: dict[str, Any]) -> list[Look]:
    """Values with others around them; pairs count from the last dimension."""
    x, pad = args["self"], first_of(args, "pad", "padding")
    shape = list(x.shape)
    for place in range(len(pad) // 2):
        shape[-1 - place] += pad[2 * place] + pad[2 * place + 1]
    return [plain(shape, x.dtype)]


@result_rule("slice_backward", "select_backward")
def _within(args: dict[str, Any]) -> list[Look]:
    """Gradients put back into zeros."""
    return [plain(args["input_sizes"], args["grad_output"].dtype)]


@result_rule("embedding")
def _embedding(args: dict[str, Any]) -> list[Look]:
    """Rows of a table."""
    table, index = args["weight"], args["indices"]
    return [plain((*index.shape, table.shape[-1]), table.dtype)]


@result_rule("_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag(args: dict[str, Any]) -> list[Look]:
    """Map sums of rows; places of rows are kept for means and maxima only."""
    table, offsets = args["weight"], args["offsets"]
    bags = offsets.shape[0] - (1 if args.get("include_last_offset") else 0)
    return [plain((bags, table.shape[-1]), table.dtype), *[plain((0,), "int64")] * 3]


@result_rule("index", "_unsafe_index")
def _index(args: dict[str, Any]) -> list[Look]:
    """Elements by indices of the first dimensions, as many as there are."""
    x, index = args["self"], list(flat(args["indices"]))
    return [plain((*index[0].shape, *x.shape[len(index) :]), x.dtype)]


@result_rule("index_select")
def _index_select(args: dict[str, Any]) -> list[Look]:
    """Rows by indices."""
    x, dim = args["self"], args["dim"] % len(args["self"].shape)
    return [plain((*x.shape[:dim], *args["index"].shape, *x.shape[dim + 1 :]), x.dtype)]


@result_rule("gather", "take", "take_along_dim")
def _gather(args: dict[str, Any]) -> list[Look]:
    """Elements at the places of an index."""
    return [plain(first_of(args, "index", "indices").shape, args["self"].dtype)]


@result_rule("scatter", "scatter_add", "scatter_reduce", "index_put", "_unsafe_index_put", "index_add", "index_copy")
@result_rule("index_fill", "put", "masked_scatter", "slice_scatter", "select_scatter", "_index_put_impl")
def _scatter(args: dict[str, Any]) -> list[Look]:
    """Values put to places of a copy."""
    return [like(args["self"])]


@result_rule("topk", "sort", "kthvalue", "mode", "median", "cummax", "cummin")
def _sorted(args: dict[str, Any]) -> list[Look]:
    """Values in order, and where they stood."""
    x = args["self"]
    shape = list(x.shape)
    if "largest" in args:
        shape[args.get("dim", -1)] = args["k"]
    return [plain(shape, x.dtype), plain(shape, "int64")]


@result_rule("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d", "avg_pool1d")
def _pool(args: dict[str, Any]) -> list[Look]:
    """Windows: the largest with their places, or the mean."""
    x, kernel = args["self"], args["kernel_size"]
    rank = len(kernel) if len(kernel) > 1 else max(len(x.shape) - 2, 1)
    kernel = (tuple(kernel) * rank)[:rank]
    step = (tuple(args.get("stride") or kernel) * rank)[:rank]
    pad = (tuple(args.get("padding") or (0,)) * rank)[:rank]
    dilation = (tuple(args.get("dilation") or (1,)) * rank)[:rank]
    up = 1 if args.get("ceil_mode") else 0
    space = tuple(
        (size + 2 * pad[d] - dilation[d] * (kernel[d] - 1) - 1 + up * (step[d] - 1)) // step[d] + 1
        for d, size in enumerate(x.shape[-rank:])
    )
    shape = (*x.shape[:-rank], *space)
    strides = common_strides_like(shape, x)
    return [(shape, strides, x.dtype), *[(shape, strides, "int64")] * ("dilation" in args)]


@result_rule("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def _adaptive(args: dict[str, Any]) -> list[Look]:
    """Windows that fit a size."""
    x, size = args["self"], args["output_size"]
    shape = (*x.shape[: -len(size)], *size)
    return [(shape, common_strides_like(shape, x), x.dtype), (shape, row_major(shape), "int64")]


@result_rule("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact2d")
@result_rule("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d")
@result_rule("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")
def _upsample(args: dict[str, Any]) -> list[Look]:
    """Map a picture of another size."""
    x = args["self"]
    shape = (*x.shape[:2], *args["output_size"])
    return [(shape, common_strides_like(shape, x), x.dtype)]


@result_rule("upsample_nearest2d_backward", "upsample_bilinear2d_backward", "upsample_bicubic2d_backward")
@result_rule("upsample_nearest1d_backward", "upsample_linear1d_backward", "upsample_nearest3d_backward")
def _upsample_backward(args: dict[str, Any]) -> list[Look]:
    """Map the gradient of a picture of another size."""
    return [plain(args["input_size"], args["grad_output"].dtype)]


@result_rule("mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward", "binary_cross_entropy_backward")
@result_rule("nll_loss_backward", "nll_loss2d_backward")
def _loss_backward(args: dict[str, Any]) -> list[Look]:
    """Gradients of losses: of the shape of what was judged."""
    return [like(args["self"])]


@result_rule("_softmax_backward_data", "_log_softmax_backward_data")
def _softmax_backward(args: dict[str, Any]) -> list[Look]:
    """Gradients along a dimension, in the type that went in."""
    return [like(args["grad_output"], CODES.get(args.get("input_dtype") or -1))]


@result_rule("native_layer_norm_backward", "_fused_rms_norm_backward", "native_group_norm_backward")
@result_rule("native_batch_norm_backward", "cudnn_batch_norm_backward", "batch_norm_backward")
def _norm_backward(args: dict[str, Any]) -> list[Look | None]:
    """Gradients of the input, of the weight and of the bias, those that were asked for."""
    x, weight = args["input"], args.get("weight")
    parts = [like(x)]
    if isinstance(weight, Tensor):
        parts += [like(weight)] * (1 if "normalized_shape" in args and "mean" not in args else 2)
    mask = args.get("output_mask") or [True] * len(parts)
    return [part if asked else None for part, asked in zip(parts, mask, strict=False)]


@result_rule("embedding_dense_backward", "_embedding_bag_dense_backward", "embedding_backward")
def _embedding_backward(args: dict[str, Any]) -> list[Look]:
    """Map the gradient of a whole table."""
    gradient = first_of(args, "grad_output", "grad")
    return [plain((args["num_weights"], gradient.shape[-1]), gradient.dtype)]


@result_rule("convolution_backward")
def _convolution_backward(args: dict[str, Any]) -> list[Look | None]:
    """Gradients of the input, the weight and the bias, those that were asked for."""
    mask = (*(args.get("output_mask") or (True, True, bool(args.get("bias_sizes")))), False)
    bias = plain((args["grad_output"].shape[1],), args["grad_output"].dtype)
    wanted = (like(args["input"]), like(args["weight"]), bias)
    return [part if asked else None for part, asked in zip(wanted, mask, strict=False)]


@result_rule("_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention_backward")
@result_rule("_scaled_dot_product_cudnn_attention_backward")
@result_rule("_scaled_dot_product_fused_attention_overrideable_backward")
def _attention_backward(args: dict[str, Any]) -> list[Look]:
    """Gradients of queries, keys and values."""
    return [like(args[name]) for name in ("query", "key", "value")]


@result_rule("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward", "avg_pool2d_backward")
@result_rule("avg_pool3d_backward", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
@result_rule("adaptive_max_pool2d_backward")
def _pool_backward(args: dict[str, Any]) -> list[Look]:
    """Gradients of what the windows went over."""
    return [like(args["self"])]


@result_rule("gelu_backward")
def _gelu_backward(args: dict[str, Any]) -> list[Look]:
    """By erf or by tanh."""
    return [pointwise("add", {"grad_output": args["grad_output"], "self": args["self"]})]
