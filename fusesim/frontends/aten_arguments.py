"""Names of the arguments of ATen ops, in order: traces record arguments by place, rules read them by name.

A line is a list of arguments and the ops that take it; an op of several lines is told apart by how many there are.
"""

from __future__ import annotations

from typing import Final

_TABLE: Final = """
self : abs alias alias_copy all any bitwise_not ceil cos detach detach_copy erf exp exp2 expm1 floor hardsigmoid
    hardswish isnan log log10 log1p log2 logical_not max median min mish neg negative numpy_T ravel reciprocal relu
    round rsqrt sgn sigmoid sign silu sin sqrt square squeeze squeeze_copy t tanh trunc view_as_real zero
grad_output output : sigmoid_backward tanh_backward
grad_output self : _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward hardswish_backward silu_backward
self approximate : gelu
self decimals : round
self diagonal : tril triu
self dim : count_nonzero cummax cummin glu logcumsumexp squeeze squeeze_copy unbind unsqueeze unsqueeze_copy
self dims : flip permute permute_copy
self downscale_factor : pixel_unshuffle
self dtype : mean prod sum
self exponent : pow
self generator : bernoulli random
self groups : channel_shuffle
self index : take
self indices : _unsafe_index index
self mat2 : _int_mm bmm mm
self max : clamp_max
self memory_format : clone
self min : clamp_min
self negative_slope : leaky_relu
self other : __and__ __lshift__ __or__ __rshift__ __xor__ bitwise_and bitwise_left_shift bitwise_or
    bitwise_right_shift bitwise_xor div eq expand_as floor_divide fmax fmin fmod ge gt le logical_and logical_or
    logical_xor lt matmul max maximum min minimum mul multiply ne remainder true_divide vdot view_as
self output_size : _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d
self p : norm
self padding : reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
self repeats : repeat
self shape : reshape
self size : _unsafe_view view view_copy
self tensor : dot
self unbiased : std std_mean var var_mean
self upscale_factor : pixel_shuffle
self value : fill
self vec : mv
tensors dim : _stack cat concat stack
condition self other : where
grad_output mask scale : native_dropout_backward
grad_output self approximate : gelu_backward
grad_output self indices : adaptive_max_pool2d_backward
grad_output self threshold : threshold_backward
input p train : native_dropout
mean std generator : normal
self axis0 axis1 : swapaxes
self beta threshold : softplus
self chunks dim : chunk
self dim descending : sort
self dim dtype : _safe_softmax cumprod cumsum
self dim half_to_float : _log_softmax _softmax
self dim index : index_select select select_copy
self dim keepdim : all amax amin any argmax argmin max median min mode
self dim sizes : unflatten
self dim0 dim1 : transpose transpose_copy
self end weight : lerp
self indices dim : take_along_dim
self k dims : rot90
self lambd generator : exponential
self mask source : masked_scatter
self mask value : masked_fill
self mat2 out_dtype : bmm mm
self min max : clamp clip
self min_val max_val : hardtanh
self other alpha : add rsub sub subtract
self other rounding_mode : div
self output_size scales : upsample_nearest1d
self p dtype : norm
self p generator : bernoulli geometric
self pad value : constant_pad_nd
self shifts dims : roll
self size implicit : expand expand_copy
self size stride : _reshape_alias
self source destination : movedim
self split_size dim : split unsafe_split
self split_sizes dim : split_with_sizes unsafe_split_with_sizes
self src non_blocking : copy
self start_dim end_dim : flatten
self target reduction : mse_loss
self to generator : random
grad_output input_sizes dim index : select_backward
grad_output output dim input_dtype : _log_softmax_backward_data _softmax_backward_data
grad_output output_size input_size scales : upsample_nearest1d_backward
grad_output self beta threshold : softplus_backward
grad_output self min_val max_val : hardtanh_backward
grad_output self negative_slope self_is_result : leaky_relu_backward
grad_output self target reduction : mse_loss_backward
input normalized_shape weight eps : _fused_rms_norm
self alpha scale input_scale : elu
self dim index source : index_copy
self dim index sparse_grad : gather
self dim index src : scatter scatter_add
self dim index value : index_fill
self dim keepdim dtype : mean prod sum
self dim start length : narrow
self dim unbiased keepdim : std std_mean var var_mean
self dimension size step : unfold
self from to generator : random uniform
self index source accumulate : put
self indices values accumulate : _unsafe_index_put index_put
self k dim keepdim : kthvalue
self kernel_size output_size random_samples : fractional_max_pool2d
self mean std generator : log_normal normal normal_functional
self median sigma generator : cauchy
self offset dim1 dim2 : diagonal
self output_size align_corners scales : upsample_linear1d
self output_size scales_h scales_w : _upsample_nearest_exact2d upsample_nearest2d
self p dim keepdim : norm
self size stride storage_offset : as_strided as_strided_copy
self src dim index : select_scatter
self stable dim descending : sort
self tensor1 tensor2 value : addcdiv addcmul
end dtype layout device pin_memory : arange
grad_output indices num_weights padding_idx scale_grad_by_freq : embedding_dense_backward
grad_output output_size input_size align_corners scales : upsample_linear1d_backward
grad_output output_size input_size scales_h scales_w : upsample_nearest2d_backward
grad_output self target reduction beta : smooth_l1_loss_backward
grad_output self target reduction delta : huber_loss_backward
grad_output self target weight reduction : binary_cross_entropy_backward
input normalized_shape weight bias eps : native_layer_norm
input_gates hidden_gates cx input_bias hidden_bias : _thnn_fused_lstm_cell
input_gates hidden_gates hx input_bias hidden_bias : _thnn_fused_gru_cell
n dtype layout device pin_memory : eye randperm
s dtype layout device pin_memory : scalar_tensor
self batch1 batch2 beta alpha : baddbmm
self dim index source alpha : index_add
self dim index src reduce : scatter
self dim start end step : slice slice_copy
self indices values accumulate unsafe : _index_put_impl
self k dim largest sorted : topk
self mat vec beta alpha : addmv
self mat1 mat2 beta alpha : addmm
self ord dim keepdim dtype : linalg_vector_norm
self output_size align_corners scales_h scales_w : _upsample_bicubic2d_aa _upsample_bilinear2d_aa upsample_bicubic2d
    upsample_bilinear2d
self output_size scales_d scales_h scales_w : upsample_nearest3d
self p dim keepdim dtype : norm
self target weight reduction ignore_index : nll_loss2d_forward nll_loss_forward
size dtype layout device pin_memory : _efficientzerotensor ones rand randn zeros
weight indices padding_idx scale_grad_by_freq sparse : embedding
grad indices num_weights padding_idx scale_grad_by_freq sparse : embedding_backward
grad_out input normalized_shape rstd weight output_mask : _fused_rms_norm_backward
grad_output alpha scale input_scale is_result self_or_result : elu_backward
grad_output input_sizes dim start end step : slice_backward
grad_output output_size input_size align_corners scales_h scales_w : upsample_bicubic2d_backward
    upsample_bilinear2d_backward
grad_output output_size input_size scales_d scales_h scales_w : upsample_nearest3d_backward
high size dtype layout device pin_memory : randint
input weight bias training momentum eps : _native_batch_norm_legit
n generator dtype layout device pin_memory : randperm
n m dtype layout device pin_memory : eye
self batch1 batch2 out_dtype beta alpha : baddbmm
self dim index src reduce include_self : scatter_reduce
self dtype layout device pin_memory memory_format : ones_like rand_like randn_like zeros_like
self kernel_size stride padding ceil_mode count_include_pad : avg_pool1d
self kernel_size stride padding dilation ceil_mode : max_pool2d_with_indices max_pool3d_with_indices
self mat1 mat2 beta alpha use_gelu : _addmm_activation
self mat1 mat2 out_dtype beta alpha : addmm
self output_size align_corners scales_d scales_h scales_w : upsample_trilinear3d
self size dtype layout device pin_memory : new_ones new_zeros
self src dim start end step : slice_scatter
size fill_value dtype layout device pin_memory : full
size generator dtype layout device pin_memory : rand randn
start end dtype layout device pin_memory : arange range
grad_output self target weight reduction ignore_index total_weight : nll_loss2d_backward nll_loss_backward
high size generator dtype layout device pin_memory : randint
input weight bias running_mean running_var momentum eps : _batch_norm_no_update _batch_norm_with_update
    _native_batch_norm_legit_no_training
query key value dropout_p is_causal attn_mask scale : _scaled_dot_product_flash_attention_for_cpu
query key value dropout_p is_causal return_debug_mask scale : _scaled_dot_product_flash_attention
row col offset dtype layout device pin_memory : tril_indices triu_indices
self dtype layout device pin_memory non_blocking memory_format : _to_copy
self fill_value dtype layout device pin_memory memory_format : full_like
self generator dtype layout device pin_memory memory_format : rand_like randn_like
self high dtype layout device pin_memory memory_format : randint_like
self kernel_size stride padding ceil_mode count_include_pad divisor_override : avg_pool2d avg_pool3d
self size fill_value dtype layout device pin_memory : new_full
self weight kernel_size bias stride padding dilation : _conv_depthwise2d conv_depthwise3d
start end step dtype layout device pin_memory : arange range
start end steps dtype layout device pin_memory : linspace
grad_out input normalized_shape mean rstd weight bias output_mask : native_layer_norm_backward
grad_output self kernel_size stride padding ceil_mode count_include_pad divisor_override : avg_pool2d_backward
    avg_pool3d_backward
grad_output self kernel_size stride padding dilation ceil_mode indices : max_pool2d_with_indices_backward
    max_pool3d_with_indices_backward
input weight bias N C HxW group eps : native_group_norm
input weight bias running_mean running_var training exponential_average_factor epsilon : cudnn_batch_norm
input weight bias running_mean running_var training momentum eps : _native_batch_norm_legit native_batch_norm
low high size generator dtype layout device pin_memory : randint
mean std size generator dtype layout device pin_memory : normal
query key value attn_bias compute_log_sumexp dropout_p is_causal scale : _scaled_dot_product_efficient_attention
query key value attn_bias dropout_p is_causal return_debug_mask scale :
    _scaled_dot_product_fused_attention_overrideable
self low high dtype layout device pin_memory memory_format : randint_like
self mat2 scale_a scale_b bias scale_result out_dtype use_fast_accum : _scaled_mm
start end steps base dtype layout device pin_memory : logspace
input grad_output weight running_mean running_var save_mean save_var epsilon reserveSpace : cudnn_batch_norm_backward
input weight bias stride padding dilation transposed output_padding groups : convolution
query key value attn_bias compute_log_sumexp dropout_p is_causal return_debug_mask scale :
    _scaled_dot_product_cudnn_attention
self low high generator dtype layout device pin_memory memory_format : randint_like
self weight padding stride dilation groups benchmark deterministic allow_tf32 : cudnn_convolution
weight indices offsets scale_grad_by_freq mode sparse per_sample_weights include_last_offset padding_idx :
    _embedding_bag _embedding_bag_forward_only
grad indices offset2bag bag_size maximum_indices num_weights scale_grad_by_freq mode per_sample_weights padding_idx :
    _embedding_bag_dense_backward
grad_out input mean rstd weight N C HxW group output_mask : native_group_norm_backward
grad_out input weight running_mean running_var save_mean save_invstd train eps output_mask :
    native_batch_norm_backward
grad_out query key value out logsumexp dropout_p is_causal attn_mask scale :
    _scaled_dot_product_flash_attention_for_cpu_backward
query key value q_descale k_descale v_descale dropout_p is_causal return_debug_mask scale :
    _scaled_dot_product_flash_attention
grad_out input weight running_mean running_var save_mean save_var update eps output_mask reserve : batch_norm_backward
grad_output input weight bias_sizes stride padding dilation transposed output_padding groups output_mask :
    convolution_backward
grad indices offsets offset2bag bag_size maximum_indices num_weights scale_grad_by_freq mode sparse per_sample_weights
    padding_idx : _embedding_bag_backward
input weight bias stride padding dilation transposed output_padding groups benchmark deterministic cudnn_enabled :
    _convolution
grad_out_ query key value attn_bias out logsumexp philox_seed philox_offset dropout_p grad_input_mask is_causal scale
    : _scaled_dot_product_efficient_attention_backward
input weight bias stride padding dilation transposed output_padding groups benchmark deterministic cudnn_enabled
    allow_tf32 : _convolution
grad_out query key value out logsumexp cum_seq_q cum_seq_k max_q max_k dropout_p is_causal philox_seed philox_offset
    scale : _scaled_dot_product_flash_attention_backward
grad_out query key value out logsumexp philox_seed philox_offset attn_bias cum_seq_q cum_seq_k max_q max_k dropout_p
    is_causal scale : _scaled_dot_product_cudnn_attention_backward
grad_out query key value attn_bias grad_input_mask out logsumexp cum_seq_q cum_seq_k max_q max_k dropout_p is_causal
    philox_seed philox_offset scale : _scaled_dot_product_fused_attention_overrideable_backward
"""


def _table() -> dict[str, dict[int, tuple[str, ...]]]:
    """Return the arguments of every op by how many there are."""
    found: dict[str, dict[int, tuple[str, ...]]] = {}
    for line in _TABLE.replace("\n    ", " ").strip().splitlines():
        arguments, _, ops = line.partition(" : ")
        names = tuple(arguments.split())
        for op in ops.split():
            found.setdefault(op, {})[len(names)] = names
    return found


ARGUMENTS: Final = _table()
"""Names of arguments by the op's name, without the underscore of in-place forms, and by their number."""


def names_of_arguments(stem: str, count: int) -> tuple[str, ...]:
    """Return a name for each argument of an op; where the number is unknown, `out` and placeholders fill up.

    Examples
    --------
    >>> names_of_arguments("addmm", 5)
    ('self', 'mat1', 'mat2', 'beta', 'alpha')
    >>> names_of_arguments("silu", 2)
    ('self', 'out')
    """
    known = ARGUMENTS.get(stem, {})
    if count in known:
        return known[count]
    if count - 1 in known:
        return (*known[count - 1], "out")
    longest = max(known.values(), key=len, default=())
    return (*longest, *(f"argument_{place}" for place in range(len(longest), count)))[:count]
