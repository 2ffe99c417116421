"""What a measured case is, in words: its file names it by what was run."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

from fusesim import units

_CHAIN: Final = re.compile(r"(\w+) (\w+) (?:un)?fused, (\d+) ops? \((.*)\), ([\d ]+) (\w+)")
_RANDOM: Final = re.compile(r"seed (\d+) \[(\[[\d, ]+\]), '(\w+)'\]")
_PATHS: Final = {"cuda": "by hand", "cupy": "by CuPy"}
_MODES: Final = {"graph": "in a graph", "stream": "on a stream", "latency": "from idle"}
_NAMES: Final = {
    "rmsnorm_ops": "RMSNorm, op by op", "rmsnorm_fp32_ops": "RMSNorm in fp32, op by op", "rmsnorm": "RMSNorm",
    "add_rmsnorm": "Residual add and RMSNorm", "layernorm": "Layer norm", "layernorm_ops": "Layer norm, op by op",
    "softmax": "Softmax", "softmax_ops": "Softmax, op by op", "gelu": "GELU", "gelu_ops": "GELU, op by op",
    "swiglu": "SwiGLU", "swiglu_mlp": "SwiGLU with its products", "rope": "Rotary embedding",
    "dropout_residual_layernorm": "Dropout, residual, layer norm", "matmul": "Matrix product",
    "matmul_bias_relu": "Product, bias, ReLU", "matmul_bias_gelu": "Product, bias, GELU",
    "conv_bn_relu": "Convolution, batch norm, ReLU", "attention_sdpa": "Attention",
    "attention_ops": "Attention, op by op", "bias_relu": "Bias and ReLU", "five_cheap": "Five cheap ops",
    "fp8_rowwise_quant": "Quantise rows to fp8", "cross_entropy": "Cross entropy", "adam_step": "Adam step",
    "independent4": "Four independent ops",
}  # fmt: skip
_SIZES: Final = {
    "T": "rows", "H": "columns", "I": "inner", "V": "classes", "S": "values", "B": "batch", "D": "per head",
    "heads": "heads", "M": "m", "K": "k", "N": "n", "Cin": "channels in", "Cout": "channels out",
    "HW": "pixels a side", "k": "kernel",
}  # fmt: skip
_OWN_SIZES: Final = {
    "bias_relu": {"B": "rows", "N": "columns"},
    "conv_bn_relu": {"N": "images"},
    "attention_sdpa": {"S": "positions"},
    "attention_ops": {"S": "positions"},
}
"""Letters that stand for something else in a pattern."""


def in_words(label: str) -> str:
    """Return what was measured, for people; the label itself where it is of no known form.

    Examples
    --------
    >>> in_words("cuda latency fused, 5 ops (add+mul+relu+...), 16 384 bf16")
    '5 ops (add, mul, relu, ...) on 16 384 bf16 values, by hand, from idle'
    >>> in_words("softmax {'T': 512, 'H': 512}")
    'Softmax, 512 rows, 512 columns'
    >>> in_words("seed 1039 [[760, 550], 'fp32']")
    'Random program 1 039 on 760 x 550 fp32 values'
    """
    chain, program = _CHAIN.fullmatch(label), _RANDOM.fullmatch(label)
    if chain is not None:
        path, mode, count, ops, elements, dtype = chain.groups()
        several = "1 op" if count == "1" else f"{count} ops"
        where = f"{_PATHS.get(path, path)}, {_MODES.get(mode, mode)}"
        return f"{several} ({ops.replace('+', ', ')}) on {elements} {dtype} values, {where}"
    if program is not None:
        shape = " x ".join(units.format_count(size) for size in ast.literal_eval(program[2]))
        return f"Random program {units.format_count(int(program[1]))} on {shape} {program[3]} values"
    name, _, held = label.partition(" ")
    return f"{_NAMES[name]}, {_sized(name, ast.literal_eval(held))}" if name in _NAMES and held.endswith("}") else label


def _sized(name: str, sizes: dict[str, Any]) -> str:
    """Return the sizes of a program."""
    words = _SIZES | _OWN_SIZES.get(name, {})
    return ", ".join(
        f"{units.format_count(size)} {words.get(letter, letter)}" if isinstance(size, int) else str(size)
        for letter, size in sizes.items()
    )
