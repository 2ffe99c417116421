"""ATen ops that map onto one kind, by name: tables, no code.

Names are without namespace, overload and the underscore of in-place forms.
"""

from __future__ import annotations

from typing import Final

from fusesim.kinds import KINDS


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


_SAME: Final = (
    "neg abs relu exp tanh rsqrt sin cos sqrt reciprocal log exp2 erf sign floor silu sigmoid log1p logical_not add "
    "sub mul maximum minimum div eq ne lt le gt ge logical_and logical_or bitwise_and bitwise_or bitwise_xor "
    "leaky_relu elu softplus hardswish tril triu remainder addcmul addcdiv where square gelu_backward silu_backward "
    "sigmoid_backward tanh_backward leaky_relu_backward elu_backward softplus_backward hardswish_backward"
)

POINTWISE: Final = {
    **{name: name for name in _words(_SAME)},
    "negative": "neg",
    "ceil": "floor",
    "round": "floor",
    "trunc": "floor",
    "expm1": "exp",
    "log2": "log",
    "log10": "log",
    "sgn": "sign",
    "fmod": "remainder",
    "floor_divide": "div",
    "true_divide": "div",
    "multiply": "mul",
    "subtract": "sub",
    "fmax": "maximum",
    "fmin": "minimum",
    "clamp_min": "maximum",
    "clamp_max": "minimum",
    "bitwise_not": "logical_not",
    "logical_xor": "logical_or",
    "bitwise_left_shift": "shift",
    "bitwise_right_shift": "shift",
    "__lshift__": "shift",
    "__rshift__": "shift",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "isnan": "ne",
    "hardsigmoid": "hardswish",
    "mish": "softplus",
    "threshold_backward": "relu_backward",
    "hardtanh_backward": "clamp_backward",
    "native_dropout_backward": "dropout_backward",
}
"""Element-wise ops to the kind of each."""

EXACT: Final = frozenset(
    _words(
        f"{_SAME} negative sgn true_divide multiply subtract clamp_min clamp_max __and__ __or__ __xor__ "
        "native_dropout_backward clone detach_copy alias_copy"
    )
)
"""Names that compute what their kind does."""


REDUCTIONS: Final = {
    **{name: name for name in ("sum", "mean", "amax", "amin", "prod", "any", "all", "argmax", "argmin", "var")},
    "var_mean": "var_mean",
    "max": "max",
    "min": "min",
    "std": "var",
    "std_mean": "var_mean",
    "linalg_vector_norm": "norm",
    "norm": "norm",
    "count_nonzero": "sum",
}
"""Reductions to the kind of each."""

COPIES: Final = frozenset(
    _words(
        "clone repeat roll flip rot90 pixel_shuffle pixel_unshuffle channel_shuffle expand_copy view_copy "
        "permute_copy transpose_copy slice_copy select_copy unsqueeze_copy squeeze_copy as_strided_copy alias_copy "
        "detach_copy"
    )
)
"""Ops that put the same values elsewhere."""

STAND_INS: Final = (frozenset(POINTWISE) | COPIES) - EXACT
"""Names for which a kind only stands, since it costs the same: it says which, and no source is written of it."""

FILLS: Final = frozenset(
    _words(
        "zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full scalar_tensor fill zero "
        "_efficientzerotensor"
    )
)
"""Ops that write one value everywhere."""

IOTAS: Final = frozenset(_words("arange linspace logspace eye tril_indices triu_indices range"))
"""Ops that write a sequence of numbers."""

RANDOM: Final = frozenset(
    _words(
        "rand randn randint randperm rand_like randn_like randint_like normal normal_functional uniform bernoulli "
        "exponential random cauchy geometric log_normal"
    )
)
"""Ops that write random numbers."""

ALLOCATIONS: Final = frozenset(_words("empty empty_like empty_strided new_empty new_empty_strided empty_permuted"))
"""Ops that only take memory."""

VIEWS: Final = {
    **dict.fromkeys(
        _words("view _unsafe_view reshape _reshape_alias unsqueeze squeeze flatten unflatten ravel view_as"), "view"
    ),
    **dict.fromkeys(_words("t transpose permute movedim swapaxes numpy_T"), "permute"),
    **dict.fromkeys(("expand", "expand_as"), "expand"),
    **dict.fromkeys(_words("slice narrow split unsafe_split split_with_sizes unsafe_split_with_sizes chunk"), "slice"),
    **dict.fromkeys(("select", "unbind"), "select"),
    **dict.fromkeys(("as_strided", "diagonal", "unfold", "detach", "alias", "view_as_real"), "as_strided"),
}
"""Ops that look at the same memory; any other that does is `as_strided`."""

IGNORED: Final = frozenset(
    _words(
        "lift_fresh lift sym_size sym_stride sym_numel sym_storage_offset device is_contiguous size stride "
        "is_pinned record_stream _assert_async _assert_tensor_metadata _has_compatible_shallow_copy_type "
        "_version retain_grad is_non_overlapping_and_dense is_strides_like_format dim layout set_data"
    )
)
"""Ops that ask or say something and launch nothing."""

assert set(POINTWISE.values()) <= set(KINDS)  # noqa: S101 - a table that names no kind must not import
