"""What forward ATen ops make, from what goes in: shapes, strides and types, as PyTorch's GPU kernels lay them out.

A trace records operands and no results. One rule per op that is not element-wise; a result is (shape, strides, type).
Rules for backward passes stand in `aten_results_backward`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from fusesim.builder import common_strides, common_strides_like, promoted
from fusesim.errors import GraphError
from fusesim.frontends.aten_call import dims_of, flat
from fusesim.frontends.aten_tables import COPIES, FILLS, IOTAS, POINTWISE, RANDOM, REDUCTIONS
from fusesim.kinds import KINDS
from fusesim.tensor import INTEGERS, Tensor, broadcast_shape, channels_last, permuted_dense, row_major

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.tensor import Shape

Look = tuple[tuple[int, ...], tuple[int, ...], str]
Rule = Callable[[dict[str, Any]], list[Look]] | Callable[[dict[str, Any]], list[Look | None]]
RESULTS: Final[dict[str, Rule]] = {}
"""Rules by the op's name."""

CODES: Final = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "fp16",
    6: "fp32",
    7: "fp64",
    11: "bool",
    15: "bf16",
    **dict.fromkeys((23, 24, 25, 26), "fp8"),
}
"""Element types by PyTorch's number."""

OTHERS: Final = frozenset({"pow", "rsub", "clamp", "hardtanh", "clip", "gelu", "lerp", "masked_fill"})
"""Element-wise ops that have a rule of their own."""


def results(stem: str, args: dict[str, Any]) -> Sequence[Look | None] | None:
    """Return what an op makes; None where no rule says.

    Raises
    ------
    GraphError
        If operands do not fit.
    """
    try:
        if stem in RESULTS:
            return RESULTS[stem](args)
        if stem in POINTWISE or stem in OTHERS:
            return [pointwise(stem, args)]
        if stem in REDUCTIONS:
            return _reduced(stem, args)
        if stem in FILLS or stem in IOTAS or stem in RANDOM:
            return [_made(args)]
        if stem in COPIES:
            return [like(args["self"])]
    except (KeyError, TypeError, IndexError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise GraphError(f"aten.{stem}: its recorded arguments do not fit it ({type(error).__name__})") from error
    return None


def result_rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for ops."""

    def register(function: Rule) -> Rule:
        RESULTS.update(dict.fromkeys(names, function))
        return function

    return register


def plain(shape: Any, dtype: str) -> Look:
    """Return a row-major result."""
    return tuple(shape), row_major(tuple(shape)), dtype


def like(x: Tensor, dtype: str | None = None) -> Look:
    """Return a result of an operand's shape, laid out as it where it has no gaps."""
    return x.shape, x.strides if permuted_dense(x) else common_strides_like(x.shape, x), dtype or x.dtype


def first_of(args: dict[str, Any], *names: str) -> Any:
    """Return the first argument that was given."""
    return next((args[name] for name in names if args.get(name) is not None), None)


def pointwise(stem: str, args: dict[str, Any]) -> Look:
    """Return the result of an element-wise op."""
    tensors = [tensor for key, value in args.items() if key != "out" for tensor in flat(value)]
    shape = broadcast_shape([tensor.shape for tensor in tensors])
    row = KINDS[POINTWISE.get(stem, "add")]
    number = next((value for value in args.values() if isinstance(value, float)), None)
    chosen = tensors[1:] if stem in {"where", "masked_fill"} and len(tensors) > 1 else tensors
    dtype = row.returns or promoted(chosen if stem != "masked_fill" else tensors[:1], number)
    if stem in {"isnan", "logical_not"}:
        dtype = "bool"
    if dtype in INTEGERS and (row.floats or (row.name == "div" and args.get("rounding_mode") is None)):
        dtype = "fp32"
    return shape, common_strides(shape, tensors) or row_major(shape), dtype


def _reduced(stem: str, args: dict[str, Any]) -> list[Look]:
    """Return the results of a reduction."""
    x = args["self"]
    if isinstance(args.get("other"), Tensor):
        return [pointwise(stem, args)]
    dims = set(dims_of(x, args.get("dim")))
    if args.get("keepdim"):
        shape = tuple(1 if place in dims else size for place, size in enumerate(x.shape))
    else:
        shape = tuple(size for place, size in enumerate(x.shape) if place not in dims)
    row = KINDS[REDUCTIONS[stem]]
    counts = x.dtype in INTEGERS and stem in {"sum", "prod", "count_nonzero"}
    dtype = CODES.get(args.get("dtype") or -1) or row.returns or ("int64" if counts else x.dtype)
    dtype = "bool" if stem in {"any", "all"} else dtype
    two = stem in {"var_mean", "std_mean"} or (stem in {"max", "min"} and args.get("dim") is not None)
    second = [plain(shape, "int64" if stem in {"max", "min"} else dtype)] if two else []
    return [plain(shape, dtype), *second]


def _made(args: dict[str, Any]) -> Look:
    """Return the result of an op that writes values of its own."""
    x, size = args.get("self"), args.get("size")
    dtype = CODES.get(args["dtype"]) if args.get("dtype") is not None else None
    if isinstance(x, Tensor) and size is None:
        return like(x, dtype)
    if size is None:
        count = first_of(args, "steps", "n")
        if count is None:
            step = args.get("step") or 1
            count = math.ceil(((args.get("end") or 0) - (args.get("start") or 0)) / step) if "end" in args else None
        size = (int(count),) if count is not None else ()
        dtype = dtype or "int64"
    return plain(size, dtype or (x.dtype if isinstance(x, Tensor) else "fp32"))


@result_rule("_to_copy", "to")
def _to_copy(args: dict[str, Any]) -> list[Look]:
    """Another type, or another order of dimensions."""
    return [_in_format(args, CODES.get(args["dtype"]) if args.get("dtype") is not None else None)]


@result_rule("clone")
def _clone(args: dict[str, Any]) -> list[Look]:
    """Copy, in an order that may be given."""
    return [_in_format(args, None)]


def _in_format(args: dict[str, Any], dtype: str | None) -> Look:
    """Return a copy's look by PyTorch's number of a memory format: 0 row-major, 2 channels last, else as it was."""
    x = args["self"]
    if args.get("memory_format") == 0:
        return plain(x.shape, dtype or x.dtype)
    if args.get("memory_format") == 2 and len(x.shape) == 4:  # noqa: PLR2004
        return x.shape, channels_last(x.shape), dtype or x.dtype
    return like(x, dtype)


@result_rule("repeat")
def _repeat(args: dict[str, Any]) -> list[Look]:
    """Repeat along dimensions."""
    x, repeats = args["self"], args["repeats"]
    padded = (1,) * (len(repeats) - len(x.shape)) + x.shape
    return [plain((size * times for size, times in zip(padded, repeats, strict=True)), x.dtype)]


@result_rule("mm", "bmm", "matmul", "_int_mm", "addmm", "baddbmm", "_addmm_activation", "_scaled_mm")
def _product(args: dict[str, Any]) -> list[Look]:
    """Matrix products."""
    a, b = first_of(args, "mat1", "batch1"), first_of(args, "mat2", "batch2", "other")
    a = args["self"] if a is None else a
    batch = broadcast_shape([a.shape[:-2], b.shape[:-2]])
    wide = {"int8": "int32", "fp8": "bf16"}.get(a.dtype, a.dtype)
    return [plain((*batch, a.shape[-2], b.shape[-1]), CODES.get(args.get("out_dtype") or -1, wide))]


@result_rule("mv", "addmv", "dot", "vdot")
def _vector_product(args: dict[str, Any]) -> list[Look]:
    """Products with a vector."""
    a = first_of(args, "mat")
    a = args["self"] if a is None else a
    return [plain(a.shape[:-1], a.dtype)]


@result_rule("convolution", "_convolution", "cudnn_convolution", "conv_depthwise3d", "_conv_depthwise2d")
def _convolution(args: dict[str, Any]) -> list[Look]:
    """Convolutions; channels last where either operand is."""
    x, w = first_of(args, "input", "self"), args["weight"]
    rank = len(x.shape) - 2
    step, pad, dilation = (_each(args.get(name), rank, one) for name, one in zip(_WINDOW, (1, 0, 1), strict=True))
    if args.get("transposed"):
        extra = _each(args.get("output_padding"), rank, 0)
        space = tuple(
            (size - 1) * step[d] - 2 * pad[d] + dilation[d] * (w.shape[2 + d] - 1) + extra[d] + 1
            for d, size in enumerate(x.shape[2:])
        )
        channels = w.shape[1] * (args.get("groups") or 1)
    else:
        space = tuple(
            (size + 2 * pad[d] - dilation[d] * (w.shape[2 + d] - 1) - 1) // step[d] + 1
            for d, size in enumerate(x.shape[2:])
        )
        channels = w.shape[0]
    shape = (x.shape[0], channels, *space)
    return [(shape, _layout(shape, x, w), x.dtype)]


_WINDOW: Final = ("stride", "padding", "dilation")


def _each(value: Any, rank: int, default: int) -> tuple[int, ...]:
    """Return a setting for every dimension of a window."""
    if isinstance(value, int):
        return (value,) * rank
    given = tuple(value or ())
    return (given * rank)[:rank] if given else (default,) * rank


def _layout(shape: Shape, *operands: Tensor) -> Shape:
    """Return channels-last strides where an operand has them, row-major ones otherwise."""
    last = [x for x in operands if len(x.shape) == 4 and not x.contiguous and x.strides == channels_last(x.shape)]  # noqa: PLR2004
    return channels_last(shape) if last else row_major(shape)


@result_rule("glu")
def _glu(args: dict[str, Any]) -> list[Look]:
    """Halves: the first times a gate of the second."""
    x = args["self"]
    dim = args.get("dim", -1) % len(x.shape)
    return [plain((size // 2 if place == dim else size for place, size in enumerate(x.shape)), x.dtype)]


@result_rule("_softmax", "_log_softmax", "_safe_softmax", "cumsum", "cumprod", "logcumsumexp")
def _along(args: dict[str, Any]) -> list[Look]:
    """Ops along one dimension."""
    x = args["self"]
    dtype = "fp32" if args.get("half_to_float") else CODES.get(args.get("dtype") or -1)
    return [like(x, dtype)]


@result_rule("native_layer_norm", "_fused_rms_norm")
def _layer_norm(args: dict[str, Any]) -> list[Look]:
    """Norms over the last dimensions, and their statistics in fp32."""
    x, rank = args["input"], len(args["normalized_shape"])
    rows = (*x.shape[: len(x.shape) - rank], *(1,) * rank)
    wide = "fp32" if x.dtype in {"bf16", "fp16"} else x.dtype
    return [plain(x.shape, x.dtype), *[plain(rows, wide)] * (2 if "bias" in args else 1)]


@result_rule("native_group_norm")
def _group_norm(args: dict[str, Any]) -> list[Look]:
    """Norms over groups of channels, and their statistics."""
    x = args["input"]
    return [like(x), *[plain((x.shape[0], args["group"]), x.dtype)] * 2]


@result_rule("native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")
@result_rule("_native_batch_norm_legit_no_training", "_batch_norm_no_update")
def _batch_norm(args: dict[str, Any]) -> list[Look]:
    """Batch norms; statistics are kept in training only."""
    x = first_of(args, "input", "self")
    kept = x.shape[1] if args.get("training") else 0
    return [like(x), *[plain((kept,), "fp32")] * 2]


@result_rule("nll_loss_forward", "nll_loss2d_forward", "mse_loss")
def _loss(args: dict[str, Any]) -> list[Look]:
    """Losses: one value, or one each where nothing is reduced; `nll_loss` returns its weight too."""
    x, each = args["self"], args.get("reduction") == 0
    shape = broadcast_shape([x.shape, args["target"].shape]) if "ignore_index" not in args else args["target"].shape
    return [plain(shape if each else (), x.dtype), *[plain((), x.dtype)] * ("ignore_index" in args)]


@result_rule("native_dropout")
def _dropout(args: dict[str, Any]) -> list[Look]:
    """Map a dropout and its mask."""
    return [like(args["input"]), like(args["input"], "bool")]


@result_rule("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention")
@result_rule("_scaled_dot_product_fused_attention_overrideable", "_scaled_dot_product_flash_attention_for_cpu")
def _attention(args: dict[str, Any]) -> list[Look]:
    """Tiled attention, the heads of a token next to each other, and the sums of its rows."""
    q, v = args["query"], args["value"]
    batch, heads, tokens = (int(size) for size in q.shape[:-1])
    dim = int(v.shape[-1])
    strides = (tokens * heads * dim, dim, heads * dim, 1)
    return [((batch, heads, tokens, dim), strides, q.dtype), plain(q.shape[:-1], "fp32")]


@result_rule("_scaled_dot_product_cudnn_attention")
def _cudnn_attention(args: dict[str, Any]) -> list[Look]:
    """Tiled attention, laid out in the order of its queries, and the sums of its rows."""
    q, v = args["query"], args["value"]
    shape = (*q.shape[:-1], v.shape[-1])
    return [(shape, common_strides_like(shape, q), q.dtype), plain(q.shape[:-1], "fp32")]


@result_rule("_thnn_fused_gru_cell", "_thnn_fused_lstm_cell")
def _cell(args: dict[str, Any]) -> list[Look]:
    """Cells of recurrent networks: the state, and what a backward pass needs."""
    state = first_of(args, "hx", "cx")
    if "cx" in args:
        return [like(state), like(state), like(args["input_gates"])]
    return [like(state), plain((state.shape[0], 5 * state.shape[1]), state.dtype)]
