"""Named graphs: what people fuse, each as one small function of its sizes.

Every pattern has one node per call that PyTorch makes for it, in the order of evaluation, with PyTorch's element types
and strides: `eager` is then one kernel per op. Parameters (weights) do not change from call to call. All arguments
have defaults; `parameters(name)` lists them.

    >>> from fusesim import patterns
    >>> patterns.bias_relu(rows=128, cols=512)
    <Graph bias_relu: 2 ops, 2 inputs, 1 outputs>
"""

from fusesim.patterns.models import dlrm, transformer_block
from fusesim.patterns.pointwise import adam_step, bias_relu, chain, gelu, independent4, rope, swiglu
from fusesim.patterns.products import (
    attention,
    conv_bn_relu,
    matmul,
    matmul_bias_gelu,
    matmul_bias_relu,
    swiglu_mlp,
)
from fusesim.patterns.registry import ALIASES, PATTERNS, find, from_measured, parameters, summary
from fusesim.patterns.rows import (
    add_rmsnorm,
    cross_entropy,
    dropout_residual_layernorm,
    fp8_rowwise_quant,
    layernorm,
    rmsnorm,
    softmax,
)

__all__ = [
    "ALIASES",
    "PATTERNS",
    "adam_step",
    "add_rmsnorm",
    "attention",
    "bias_relu",
    "chain",
    "conv_bn_relu",
    "cross_entropy",
    "dlrm",
    "dropout_residual_layernorm",
    "find",
    "fp8_rowwise_quant",
    "from_measured",
    "gelu",
    "independent4",
    "layernorm",
    "matmul",
    "matmul_bias_gelu",
    "matmul_bias_relu",
    "parameters",
    "rmsnorm",
    "rope",
    "softmax",
    "summary",
    "swiglu",
    "swiglu_mlp",
    "transformer_block",
]
