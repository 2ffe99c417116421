"""Inductor's kernels by their names: what kind of loop they are and which ops they fuse."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

LOOPS: Final = {
    "poi": "pointwise",
    "red": "reduction",
    "per": "persistent reduction",
    "for": "foreach",
    "tem": "template",
}
"""What stands behind `triton_` in a name."""

_NAME: Final = re.compile(r"^triton_(poi|red|per|for|tem)_fused_(.*?)(?:_(\d+))?$")

_TEXT: Final = (
    "_scaled_dot_product_cudnn_attention _scaled_dot_product_flash_attention "
    "_scaled_dot_product_efficient_attention _native_batch_norm_legit_no_training "
    "_native_batch_norm_legit_functional _native_batch_norm_legit native_batch_norm native_batch_norm_backward "
    "native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward native_dropout "
    "native_dropout_backward _fused_rms_norm _to_copy _unsafe_view _softmax _log_softmax _softmax_backward_data "
    "_log_softmax_backward_data nll_loss_forward nll_loss_backward max_pool2d_with_indices "
    "max_pool2d_with_indices_backward avg_pool2d avg_pool2d_backward _adaptive_avg_pool2d threshold_backward "
    "gelu_backward silu_backward sigmoid_backward tanh_backward embedding_dense_backward embedding constant_pad_nd "
    "convolution convolution_backward index_put index_select index scatter_add scatter gather slice_scatter "
    "select_scatter slice_backward select_backward masked_fill zeros_like ones_like full_like new_zeros new_ones "
    "split_with_sizes split logical_not logical_and logical_or bitwise_and bitwise_or bitwise_not scalar_tensor "
    "upsample_nearest2d upsample_bilinear2d _unsafe_index leaky_relu hardtanh hardswish hardsigmoid log_sigmoid "
    "log1p expm1 rsqrt sqrt square exp2 exp log erf sigmoid tanh relu gelu silu elu softplus mish clamp_min "
    "clamp_max clamp minimum maximum add sub rsub mul div pow neg abs sign sin cos floor ceil round trunc "
    "reciprocal remainder fmod eq ne lt le gt ge where mean sum amax amin argmax argmin prod any all var_mean var "
    "std cumsum cumprod sort topk cat stack view reshape permute transpose t expand unsqueeze squeeze slice select "
    "clone copy detach alias as_strided full zeros ones arange iota lift_fresh rand randn repeat roll flip tril "
    "triu addmm mm bmm baddbmm linalg_vector_norm norm unbind mse_loss smooth_l1_loss dot "
    "prims_convert_element_type fill convert_element_type"
)

OPS: Final = frozenset(_TEXT.split())
"""Names of ops that Inductor joins by underscores."""

_MOST_WORDS: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class InductorKernel:
    """A kernel that Inductor generated: its loop and the ops that it fuses, in the order of their names."""

    loop: str
    ops: tuple[str, ...]


def inductor_kernel(name: str) -> InductorKernel | None:
    """Return what a kernel's name says, None where Inductor did not give it.

    Examples
    --------
    >>> inductor_kernel("triton_per_fused_add_native_layer_norm_view_0")
    InductorKernel(loop='persistent reduction', ops=('add', 'native_layer_norm', 'view'))
    """
    found = _NAME.match(name)
    if found is None:
        return None
    return InductorKernel(loop=LOOPS[found[1]], ops=_split(found[2].split("_")))


def fused_ops(name: str) -> tuple[str, ...]:
    """Return the ops that a kernel fuses, none where its name does not say."""
    kernel = inductor_kernel(name)
    return kernel.ops if kernel is not None else ()


def _split(words: list[str]) -> tuple[str, ...]:
    """Return the ops in a name: the longest known one at each place."""
    found, at = [], 0
    while at < len(words):
        if not words[at] and at + 1 < len(words):
            best = next((n for n in range(_MOST_WORDS + 1, 1, -1) if "_".join(words[at : at + n]) in OPS), 0)
            best = best if at + best <= len(words) else 0
        else:
            best = next((n for n in range(_MOST_WORDS, 0, -1) if "_".join(words[at : at + n]) in OPS), 0)
            best = min(best, len(words) - at)
        if best:
            found.append("_".join(words[at : at + best]))
        elif words[at]:
            found.append(words[at])
        at += best or 1
    return tuple(found)
