"""The table of patterns: by name, by the names of the committed measurements, and what each takes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping  # noqa: TC003 - a dataclass needs it
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from fusesim.errors import InputError, excerpt, unknown_name
from fusesim.patterns import models, pointwise, products, rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.graph import Graph
    from fusesim.patterns.arguments import Pattern

PATTERNS: Final[dict[str, Pattern]] = {
    function.__name__: function
    for function in (
        pointwise.chain,
        pointwise.bias_relu,
        rows.rmsnorm,
        rows.add_rmsnorm,
        rows.layernorm,
        rows.softmax,
        pointwise.gelu,
        pointwise.swiglu,
        products.swiglu_mlp,
        rows.dropout_residual_layernorm,
        pointwise.rope,
        products.matmul,
        products.matmul_bias_relu,
        products.matmul_bias_gelu,
        products.conv_bn_relu,
        products.attention,
        rows.fp8_rowwise_quant,
        rows.cross_entropy,
        pointwise.adam_step,
        pointwise.independent4,
        models.transformer_block,
        models.dlrm,
    )
}
"""Every pattern by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A name in the committed measurements: the pattern, what its dimensions are called there, and what is fixed."""

    pattern: str
    dims: Mapping[str, str]
    fixed: Mapping[str, Any] = field(default_factory=dict)


_ROWS: Final = {"T": "rows", "H": "cols"}
_TOKENS: Final = {"T": "tokens", "H": "hidden"}
_PRODUCT: Final = {"M": "m", "K": "k", "N": "n"}
_HEADS: Final = {"B": "batch", "heads": "heads", "S": "seq", "D": "head_dim"}

ALIASES: Final = {
    "five_cheap": Alias(pattern="chain", dims={"S": "elements"}, fixed={"ops": ("add", "mul", "relu", "neg", "abs")}),
    "bias_relu": Alias(pattern="bias_relu", dims={"B": "rows", "N": "cols"}),
    "rmsnorm_ops": Alias(pattern="rmsnorm", dims=_TOKENS),
    "rmsnorm_fp32_ops": Alias(pattern="rmsnorm", dims=_TOKENS, fixed={"upcast": True}),
    "add_rmsnorm": Alias(pattern="add_rmsnorm", dims=_TOKENS),
    "layernorm": Alias(pattern="layernorm", dims=_ROWS),
    "layernorm_ops": Alias(pattern="layernorm", dims=_ROWS, fixed={"composite": False}),
    "softmax": Alias(pattern="softmax", dims=_ROWS),
    "softmax_ops": Alias(pattern="softmax", dims=_ROWS, fixed={"composite": False}),
    "gelu": Alias(pattern="gelu", dims=_ROWS),
    "gelu_ops": Alias(pattern="gelu", dims=_ROWS, fixed={"composite": False}),
    "swiglu": Alias(pattern="swiglu", dims=_TOKENS),
    "swiglu_mlp": Alias(pattern="swiglu_mlp", dims=_TOKENS | {"I": "inner"}),
    "dropout_residual_layernorm": Alias(pattern="dropout_residual_layernorm", dims=_TOKENS),
    "rope": Alias(pattern="rope", dims={"T": "tokens"}, fixed={"heads": 32, "head_dim": 128}),
    "matmul": Alias(pattern="matmul", dims=_PRODUCT),
    "matmul_bias_relu": Alias(pattern="matmul_bias_relu", dims=_PRODUCT),
    "matmul_bias_gelu": Alias(pattern="matmul_bias_gelu", dims=_PRODUCT),
    "conv_bn_relu": Alias(
        pattern="conv_bn_relu", dims={"N": "batch", "Cin": "cin", "Cout": "cout", "HW": "size", "k": "kernel"}
    ),
    "attention_sdpa": Alias(pattern="attention", dims=_HEADS),
    "attention_ops": Alias(pattern="attention", dims=_HEADS, fixed={"composite": False}),
    "fp8_rowwise_quant": Alias(pattern="fp8_rowwise_quant", dims=_TOKENS),
    "cross_entropy": Alias(pattern="cross_entropy", dims={"T": "tokens", "V": "vocab"}),
    "adam_step": Alias(pattern="adam_step", dims={"S": "elements"}),
    "independent4": Alias(pattern="independent4", dims={"S": "elements"}),
    "block": Alias(
        pattern="transformer_block",
        dims={"B": "batch", "T": "seq", "H": "hidden", "I": "inner", "heads": "heads"},
    ),
    "dlrm": Alias(pattern="dlrm", dims={"B": "batch"}),
}
"""The names of the committed measurements."""


def find(name: object) -> Pattern:
    """Return the pattern of that name, or of the name that the committed measurements use.

    Raises
    ------
    InputError
        If there is none, with the nearest name.

    Examples
    --------
    >>> len(find("softmax_ops")(rows=8, cols=16))
    5
    """
    key = str(name).strip().lower().replace("-", "_")
    if key in PATTERNS:
        return PATTERNS[key]
    if key in ALIASES:
        alias = ALIASES[key]
        return functools.partial(PATTERNS[alias.pattern], **alias.fixed)
    raise unknown_name("pattern", name, PATTERNS | ALIASES, "fusesim.patterns.PATTERNS")


def parameters(name: object) -> dict[str, Any]:
    """Return the arguments of a pattern with their defaults, in order.

    Examples
    --------
    >>> parameters("rmsnorm")
    {'tokens': 8192, 'hidden': 4096, 'dtype': 'bf16', 'upcast': False}
    """
    return {key: entry.default for key, entry in inspect.signature(find(name)).parameters.items()}


def summary(name: object) -> str:
    """Return the first sentence about a pattern."""
    function = find(name)
    function = function.func if isinstance(function, functools.partial) else function
    return (inspect.getdoc(function) or "").partition("\n")[0]


def from_measured(name: str, dims: Mapping[str, Any] | None = None) -> Graph:
    """Return the graph of a row of the committed measurements.

    Parameters
    ----------
    name : str
        The row's name; a model's has its sizes behind a colon, as in ``"block:1,2048,2048,5632,16"``.
    dims : mapping, optional
        The row's dimensions under their names there; `dtype` where it has one.

    Raises
    ------
    InputError
        If the name or a dimension is unknown, or one is missing.

    Examples
    --------
    >>> from_measured("rmsnorm_ops", {"T": 32, "H": 4096})
    <Graph rmsnorm: 6 ops, 2 inputs, 1 outputs>
    """
    stem, _, sizes = name.partition(":")
    if stem not in ALIASES:
        raise unknown_name("measured pattern", name, ALIASES, "fusesim.patterns.ALIASES")
    alias = ALIASES[stem]
    given = dict(dims or {})
    if sizes:
        given |= dict(zip(alias.dims, _whole(name, sizes.split(",")), strict=False))
    dtype = {"dtype": given.pop("dtype")} if "dtype" in given else {}
    if set(given) != set(alias.dims):
        raise InputError(
            f"{excerpt(name)} has dimensions {', '.join(given) or 'none'}; it takes {', '.join(alias.dims)}"
        )
    return PATTERNS[alias.pattern](**alias.fixed, **{alias.dims[key]: value for key, value in given.items()}, **dtype)


def _whole(name: str, sizes: Iterable[str]) -> list[int]:
    """Return sizes as numbers."""
    try:
        return [int(size) for size in sizes]
    except ValueError as error:
        raise InputError(f"{excerpt(name)}: behind the colon stand whole numbers with commas between") from error
