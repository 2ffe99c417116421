"""Which recorded ops launch kernels and which only stand around them, from names and arguments alone.

An op calls others: `linear` a transpose and a product, `_to_copy` an allocation and a copy. The outermost op that a
rule knows is one call; what it calls itself belongs to it. No time is read, so that a trace without any gives the
same calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fusesim.frontends.aten import known
from fusesim.frontends.aten_tables import ALLOCATIONS, FILLS, IGNORED, RANDOM, VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fusesim.frontends.trace_records import Launch, Op

_MANY: Final = 1 << 30


def _levels(text: str) -> dict[str, int]:
    """Return how often an op may call each of others: `copy_:2` twice, `slice:*` any number of times."""
    found = {}
    for word in text.split():
        name, _, count = word.partition(":")
        found[name] = _MANY if count == "*" else int(count or 1)
    return found


_CONVOLUTIONS: Final = (
    "cudnn_convolution cudnn_convolution_transpose cudnn_convolution_relu miopen_convolution "
    "miopen_depthwise_convolution conv_depthwise3d _conv_depthwise2d thnn_conv2d _slow_conv2d_forward "
    "slow_conv_dilated2d slow_conv_transpose2d mkldnn_convolution unsqueeze:3 squeeze:2 view clone:2"
)
_PADS: Final = "fill_ zero_ zeros zeros_like new_zeros narrow:* slice:* select copy_ clone"
_ATTENTION: Final = "transpose:4 pad:3 constant_pad_nd:3 clone:3 expand"
_ATTENTION_BACKWARD: Final = "transpose:8 pad:4 constant_pad_nd:4 clone:4 expand zeros:4 sum:2 mul:2"
_SORTS: Final = "arange copy_:2 sort fill_ zero_ zeros cumsum sum index_select to clone view:2 reshape:2 empty"

CALLS: Final = {
    name: _levels(text)
    for names, text in (
        ("_to_copy to clone", "copy_"),
        ("copy_", "_to_copy expand"),
        ("relu_ relu6_", "clamp_min_ hardtanh_ clamp_"),
        ("relu relu6", "clamp_min hardtanh clamp"),
        ("hardtanh_", "clamp_ clamp_min_ hardtanh"),
        ("hardtanh", "clamp"),
        ("mean", "sum"),
        ("upsample_nearest2d upsample_bilinear2d upsample_bicubic2d", "clone:2 copy_"),
        ("dropout_", "native_dropout"),
        ("convolution", "_convolution convolution_overrideable clone:2 copy_:2"),
        ("_convolution", _CONVOLUTIONS),
        ("thnn_conv2d", "_slow_conv2d_forward"),
        ("native_batch_norm cudnn_batch_norm miopen_batch_norm", "copy_:4 clone zeros"),
        ("native_batch_norm_backward", "zeros"),
        ("_native_batch_norm_legit _native_batch_norm_legit_no_training _batch_norm_with_update", "native_batch_norm"),
        ("_batch_norm_no_update", "native_batch_norm _native_batch_norm_legit_no_training"),
        ("native_layer_norm _fused_rms_norm", "view:2 clone"),
        ("native_group_norm", "view:4 native_batch_norm clone mul add addcmul copy_"),
        ("pow", "square copy_"),
        ("embedding", "index_select reshape view:2"),
        ("stack", "cat unsqueeze:*"),
        ("cat", "narrow:*"),
        ("addmm baddbmm addmv", "expand copy_ mv"),
        ("_addmm_activation", "addmm gelu relu"),
        ("mse_loss", "mean sum sub pow"),
        ("norm", "linalg_vector_norm"),
        ("std var std_mean var_mean", "sqrt"),
        ("index_put_ index_put _unsafe_index_put", "_index_put_impl_ clone expand:* view:*"),
        ("_index_put_impl_", _SORTS + " expand:* view:* mul:* add:* sum:*"),
        ("index _unsafe_index", "view:* expand:* slice:* permute"),
        ("masked_fill", "clone masked_fill_ expand:2"),
        ("masked_fill_", "expand"),
        (
            "scatter scatter_add scatter_reduce index_add index_copy",
            "clone scatter_ scatter_add_ scatter_reduce_ copy_",
        ),
        ("repeat", "expand unfold:* alias expand_as copy_ view"),
        ("constant_pad_nd", _PADS),
        ("slice_backward select_backward", _PADS),
        ("topk sort median kthvalue mode", _SORTS),
        ("embedding_dense_backward _embedding_bag_dense_backward embedding_backward", _SORTS),
        ("nll_loss_backward nll_loss2d_backward", "zero_ fill_ zeros_like zeros"),
        ("max_pool2d_with_indices_backward", "zero_ clone"),
        ("_adaptive_avg_pool2d_backward avg_pool2d_backward upsample_nearest2d_backward", "zero_ fill_ zeros_like"),
        ("convolution_backward", "sum view:2 clone:2 copy_:2 zeros:2 fill_"),
        ("threshold_backward", "threshold"),
        ("_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention", _ATTENTION),
        ("_scaled_dot_product_flash_attention_backward", _ATTENTION_BACKWARD),
        ("_scaled_dot_product_efficient_attention_backward", _ATTENTION_BACKWARD),
        ("_scaled_dot_product_cudnn_attention_backward _scaled_dot_product_cudnn_attention", "zeros fill_ zero_"),
        ("zero_ ones full scalar_tensor full_like ones_like new_full new_ones", "fill_"),
        ("zeros zeros_like new_zeros _efficientzerotensor", "zero_"),
        ("arange linspace", "arange"),
        ("rand rand_like", "uniform_"),
        ("randn randn_like normal", "normal_"),
        ("randint randint_like randperm", "random_ sort"),
        ("reshape", "view _reshape_alias"),
        ("flatten", "reshape view"),
        ("t swapaxes", "transpose"),
        ("numpy_T movedim", "permute"),
        ("transpose permute select slice expand unsqueeze squeeze diagonal unfold", "as_strided"),
        ("expand_as", "expand"),
        ("view_as unflatten", "view"),
        ("narrow", "slice"),
        ("unbind", "select:*"),
        ("split split_with_sizes unsafe_split unsafe_split_with_sizes", "narrow:* slice:* as_strided:*"),
        ("chunk", "split split_with_sizes narrow:*"),
        ("detach", "detach"),
    )
    for name in names.split()
}
"""What ops call that would be a call or a view of its own elsewhere, and how often."""

MEAN: Final = _levels("fill_ as_strided:2 div_ div:2 _to_copy:2 copy_:2")
"""What a mean calls after its sum, on a CPU."""

_INSIDE: Final = (
    "result_type to contiguous as_strided_ resolve_conj resolve_neg resize_ resize_as_ set_ item "
    "_local_scalar_dense is_nonzero _fused_sdp_choice _flash_attention_forward _efficient_attention_forward "
    "_cudnn_attention_forward _flash_attention_backward _efficient_attention_backward _cudnn_attention_backward "
    "_to_cpu can_cast broadcast_tensors output_nr is_floating_point is_complex promote_types data_ptr _nnz"
)

NEUTRAL: Final = ALLOCATIONS | IGNORED | frozenset(_INSIDE.split())
"""Ops that launch nothing of their own and stand inside others."""

MANY: Final = ("_foreach_", "_fused_adam", "_fused_sgd", "_amp_foreach")
"""Beginnings of ops over lists of tensors."""

ON_HOST: Final = ("HtoD", "DtoH", "HostToDevice", "DeviceToHost")
"""Words in the names of copies between host and device."""

PRODUCTS: Final = frozenset({"mm", "bmm", "mv", "dot", "addmm", "baddbmm", "linear", "_scaled_mm"})
AROUND_PRODUCTS: Final = frozenset(VIEWS) | NEUTRAL | {"clone", "copy_"}


@dataclass(slots=True)
class Group:
    """A call: the op that rules know, and the ops that it called. `kind`: call, view, triton, linear or unknown."""

    op: Op
    kind: str
    stem: str
    over: bool = False
    parts: list[Op] = field(default_factory=list)

    @property
    def ops(self) -> list[Op]:
        """The op and those that it called."""
        return [self.op, *self.parts]


@dataclass(slots=True)
class _Thread:
    """What a thread is in the middle of: for each open op, what it may still call."""

    levels: list[dict[str, int]] = field(default_factory=list)
    group: Group | None = None


def base_name(name: str) -> str:
    """Return an op's name without namespace and overload."""
    return name.rpartition("::")[2].partition(".")[0]


def stem_of(name: str) -> tuple[str, bool]:
    """Return a name without the underscore of its in-place form, and whether it had one."""
    over = name.endswith("_") and not name.endswith("__")
    return (name[:-1] if over else name), over


def groups_of(ops: list[Op], launching: frozenset[int]) -> Iterator[Group]:
    """Iterate over the calls of a trace in order; `launching` holds the external ids of ops known to launch."""
    threads: dict[str, _Thread] = {}
    done: list[Group] = []
    for at, op in enumerate(ops):
        thread = threads.setdefault(op.thread, _Thread())
        if not _belongs(op, thread):
            made = _group(op, at, ops, launching)
            if made is not None:
                thread.group = made
                thread.levels = [_may_call(made)]
                done.append(made)
    yield from done


def _belongs(op: Op, thread: _Thread) -> bool:
    """Say whether an op was called by the one that its thread is in; what is no part of it ends that."""
    name = base_name(op.name)
    while thread.levels:
        level = thread.levels[-1]
        if level.get(name, 0) > 0 and _of_group(op, name, thread.group):
            level[name] -= 1
            if name == "sum":
                level |= MEAN
            thread.levels.append(dict(CALLS.get(name, {})))
            if thread.group is not None:
                thread.group.parts.append(op)
            return True
        if name in NEUTRAL and op.name.startswith("aten::"):
            if thread.group is not None:
                thread.group.parts.append(op)
            return True
        thread.levels.pop()
    return False


def _of_group(op: Op, name: str, group: Group | None) -> bool:
    """Return whether a sum is that of the mean that calls it on a CPU: of the same operand."""
    return name != "sum" or group is None or group.stem != "mean" or op.dims[:1] == group.op.dims[:1]


def _may_call(group: Group) -> dict[str, int]:
    """Return what an op may call; adding the bias of a convolution only where it has one."""
    name = base_name(group.op.name)
    level = dict(CALLS.get(name, {}))
    if name in {"convolution", "_convolution"} and len(group.op.dims) > 2 and group.op.dims[2]:  # noqa: PLR2004
        level |= {"add_": 1, "reshape": 1, "view": 1}
    if group.stem in RANDOM | FILLS and group.over:
        level.pop(name, None)
    return level


def _group(op: Op, at: int, ops: list[Op], launching: frozenset[int]) -> Group | None:
    """Return the call that an op begins, None where it only stands around others."""
    name = op.name
    if name.startswith("triton_"):
        return Group(op, "triton", name)
    if "::" not in name or name.startswith(("autograd::", "torch::", "record_", "c10d::", "nccl:")):
        return None
    base = base_name(name)
    if base in NEUTRAL or (base.startswith("upsample") and len(op.values) > 1 and op.values[1] is None):
        return None
    stem, over = stem_of(base)
    if not name.startswith("aten::"):
        kind = "unknown"
    elif base == "linear" or (base == "matmul" and _takes_apart(op, at, ops)):
        kind = "linear"
    elif stem in VIEWS:
        kind = "view"
    else:
        kind = "call" if known(stem) or stem.startswith(MANY) else "unknown"
    launches = op.external is not None and op.external in launching
    return Group(op, kind, stem, over) if kind != "unknown" or launches else None


def _takes_apart(op: Op, at: int, ops: list[Op]) -> bool:
    """Return whether a `matmul` is followed by the product that it calls."""
    for later in ops[at + 1 : at + 40]:
        if later.thread != op.thread:
            continue
        name = base_name(later.name)
        if name in PRODUCTS:
            return True
        if name not in AROUND_PRODUCTS:
            return False
    return False


def on_device(groups: list[Group], launched: Mapping[int, Sequence[Launch]]) -> tuple[list[Group], list[str]]:
    """Return the calls that ran on a device, where the trace says which did, and what is left out; views stay."""
    calls = [group for group in groups if group.kind in {"call", "unknown", "triton"}]
    ran = {id(group) for group in calls if any(op.external in launched for op in group.ops)}
    if 2 * len(ran) < len(calls) or not ran:
        return groups, []
    kept, host, moved = [], 0, 0
    for group in groups:
        kernels = [
            kernel for op in group.ops for kernel in launched.get(op.external if op.external is not None else -1, ())
        ]
        if group.kind in {"view", "linear"}:
            kept.append(group)
        elif not kernels:
            host += 1
        elif all(kernel.kind == "memcpy" and any(way in kernel.name for way in ON_HOST) for kernel in kernels):
            moved += 1
        else:
            kept.append(group)
    gaps = []
    if host:
        gaps.append(f"{host} recorded ops launched nothing and are left out: they ran on the host or on no elements")
    if moved:
        gaps.append("copies between host and device are not priced")
    return kept, gaps
