"""What an op in a graph can be, as a table: its family decides how it fuses, its row what it computes.

A new op is a new row here (and, if it has a shape rule of its own, a new rule in `fusesim.shapes`), never a new branch
in the model. FLOP count as in `fusesim.ops`: additions, multiplications, divisions, comparisons and sign changes 1,
and one evaluation of an elementary function 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from fusesim.errors import unknown_name
from fusesim.ops import OPS

Family = Literal[
    "pointwise",  # one value out per place, from the values at that place
    "reduction",  # many values to one: sum, mean, max, ...
    "normalise",  # a composite over rows: reductions and pointwise ops that a framework runs as one kernel
    "matmul",  # a contraction on the matrix units
    "conv",  # likewise, with a window
    "attention",  # matmul, softmax, matmul, tiled or not
    "view",  # another look at the same memory: free
    "copy",  # the same values elsewhere
    "concat",  # several tensors next to each other
    "gather",  # rows or elements chosen by an index
    "random",  # pseudo-random numbers
]
FAMILIES: Final = get_args(Family)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of op.

    `least` to `most` tensors go in. For pointwise kinds `flops` are per value out, and `slots`, `special` and `serial`
    are instructions as in `fusesim.ops.Op`, a second operand's load not counted. `returns` is a type that the result
    has whatever goes in; `floats` says that whole numbers in give fp32 out.
    """

    name: str
    family: Family
    least: int = 1
    most: int = 1
    flops: float = 0
    slots: float = 1
    special: float = 0
    serial: float = 2
    returns: str | None = None
    floats: bool = False
    outputs: int = 1
    note: str = ""


def _unary(name: str, *, flops: float = 1, slots: float = 1, special: float = 0, floats: bool = False) -> Kind:
    """Return a pointwise kind of one operand; what `fusesim.ops` counted stands there."""
    known = OPS.get(name)
    if known is not None:
        flops, slots, special, serial = known.flops, known.slots, known.special, known.serial
    else:
        serial = 2.0 * slots
    return Kind(name=name, family="pointwise", flops=flops, slots=slots, special=special, serial=serial, floats=floats)


def _binary(name: str, *, flops: float = 1, slots: float = 1, special: float = 0, returns: str | None = None) -> Kind:
    """Return a pointwise kind of two operands, or of one and a scalar."""
    return Kind(
        name=name,
        family="pointwise",
        most=2,
        flops=flops,
        slots=slots,
        special=special,
        serial=2 * slots,
        returns=returns,
    )


def _rows(name: str, least: int, most: int, flops: float, note: str) -> Kind:
    """Return a composite over rows; `flops` per element of its first operand."""
    return Kind(name=name, family="normalise", least=least, most=most, flops=flops, note=note)


KINDS: Final = {
    kind.name: kind
    for kind in (
        *(_unary(name) for name in ("neg", "abs", "relu", "square")),
        *(_unary(name, floats=True) for name in ("exp", "tanh", "rsqrt", "sin", "log1p", "sigmoid")),
        *(_unary(name) for name in ("silu", "gelu", "gelu_tanh")),
        _unary("sqrt", slots=27, special=1, floats=True),
        _unary("reciprocal", slots=8, special=1, floats=True),
        _unary("cos", slots=24, special=1, floats=True),
        _unary("log", slots=4, special=1, floats=True),
        _unary("exp2", slots=2, special=1, floats=True),
        _unary("erf", slots=24, special=1, floats=True),
        _unary("sign", slots=3),
        _unary("floor", slots=1),
        Kind(name="clamp", family="pointwise", most=3, flops=2, slots=2, serial=4, note="limits, or tensors of them"),
        _unary("leaky_relu", flops=2, slots=2),
        _unary("elu", flops=3, slots=12, special=1),
        _unary("softplus", flops=3, slots=30, special=2),
        _unary("hardswish", flops=4, slots=5),
        _unary("logical_not", slots=1),
        *(_unary(name, slots=4) for name in ("tril", "triu")),
        Kind(name="cast", family="pointwise", flops=0, slots=1, note="another element type"),
        Kind(name="fill", family="pointwise", least=0, most=0, flops=0, slots=0.5, note="one value everywhere"),
        Kind(name="iota", family="pointwise", least=0, most=0, flops=0, slots=1, note="0, 1, 2, ..."),
        *(_binary(name) for name in ("add", "sub", "mul", "maximum", "minimum")),
        _binary("div", slots=10, special=2),
        _binary("pow", slots=40, special=3),
        _binary("remainder", slots=20, special=1),
        *(_binary(name, returns="bool") for name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or")),
        *(_binary(name) for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "shift")),
        Kind(name="where", family="pointwise", least=1, most=3, flops=1, slots=1, note="condition, then, else"),
        Kind(name="lerp", family="pointwise", least=2, most=3, flops=3, slots=3),
        Kind(name="addcmul", family="pointwise", least=3, most=3, flops=3, slots=2),
        Kind(name="addcdiv", family="pointwise", least=3, most=3, flops=3, slots=11, special=2),
        _binary("squared_difference", flops=2, slots=2),
        Kind(name="elementwise", family="pointwise", least=0, most=9, slots=10, flops=1, note="one without a row here"),
        *(_binary(name, flops=2, slots=2) for name in ("relu_backward", "leaky_relu_backward", "clamp_backward")),
        *(_binary(name, flops=3, slots=3) for name in ("sigmoid_backward", "tanh_backward")),
        _binary("silu_backward", flops=8, slots=18, special=3),
        _binary("gelu_backward", flops=9, slots=34, special=2),
        _binary("gelu_tanh_backward", flops=18, slots=32, special=2),
        _binary("elu_backward", flops=4, slots=14, special=1),
        _binary("softplus_backward", flops=4, slots=20, special=2),
        _binary("hardswish_backward", flops=5, slots=6),
        _binary("dropout_backward", flops=2, slots=3),
        *(
            Kind(name=name, family="reduction", flops=1, slots=1)
            for name in ("sum", "mean", "amax", "amin", "prod", "any", "all")
        ),
        *(
            Kind(name=name, family="reduction", flops=1, slots=3, returns="int64", note="the place, not the value")
            for name in ("argmax", "argmin")
        ),
        *(
            Kind(name=name, family="reduction", flops=1, slots=3, outputs=2, note="values, then places")
            for name in ("max", "min")
        ),
        Kind(name="var", family="reduction", flops=4, slots=5, note="mean and squared deviations"),
        Kind(name="var_mean", family="reduction", flops=4, slots=5, outputs=2, note="variance, then mean"),
        Kind(name="norm", family="reduction", flops=2, slots=2, note="root of the sum of squares"),
        Kind(name="cumsum", family="normalise", flops=1, slots=2, note="a running sum"),
        Kind(name="sort", family="normalise", flops=20, outputs=2, note="values, then places"),
        Kind(name="topk", family="normalise", flops=5, outputs=2, note="values, then places"),
        _rows("softmax", 1, 1, 5, "amax, sub, exp, sum, div"),
        _rows("log_softmax", 1, 1, 5, "amax, sub, exp, sum, log, sub"),
        _rows("layer_norm", 1, 3, 8, "mean, variance, normalise, times weight, plus bias"),
        _rows("rms_norm", 1, 2, 4, "mean of squares, rsqrt, times x, times weight"),
        _rows("group_norm", 1, 3, 8, "layer_norm over groups of channels"),
        _rows("batch_norm", 3, 5, 4, "x, mean, variance, weight, bias: inference"),
        _rows("batch_norm_train", 1, 5, 10, "statistics over batch and space, then normalise"),
        _rows("nll_loss", 2, 2, 1, "log-probabilities and targets to one mean"),
        _rows("glu", 1, 1, 3, "the first half times the sigmoid of the second"),
        _rows("gru_cell", 3, 5, 6, "gates of the input, gates of the state, state"),
        _rows("lstm_cell", 3, 5, 6, "gates of the input, gates of the state, cell"),
        _rows("softmax_backward", 2, 2, 4, "gradient, output: mul, sum, sub, mul"),
        _rows("log_softmax_backward", 2, 2, 4, "gradient, output: sum, exp, mul, sub"),
        _rows("layer_norm_backward", 2, 6, 14, "gradient, x, mean, 1 / deviation, weight"),
        _rows("rms_norm_backward", 2, 6, 10, "gradient, x, 1 / root, weight"),
        _rows("group_norm_backward", 2, 6, 14, "gradient, x, mean, 1 / deviation, weight"),
        _rows("batch_norm_backward", 2, 7, 14, "gradient, x, weight, statistics"),
        _rows("nll_loss_backward", 2, 4, 0, "gradient, targets, weight: one value per row, the rest zero"),
        Kind(name="matmul", family="matmul", least=2, most=3, note="a [.., m, k] x b [.., k, n], plus a bias row"),
        Kind(name="conv", family="conv", least=2, most=3, note="x [n, c, h, w], w [o, c / groups, kh, kw], bias"),
        Kind(name="conv_input_grad", family="conv", least=2, most=2, note="gradient, w"),
        Kind(name="conv_weight_grad", family="conv", least=2, most=2, note="gradient, x"),
        Kind(
            name="attention_backward", family="attention", least=4, most=9, note="q, k, v, then gradient, output, ..."
        ),
        Kind(name="attention", family="attention", least=3, most=4, note="q, k, v [batch, heads, seq, dim], mask"),
        *(
            Kind(name=name, family="view", note=note)
            for name, note in (
                ("view", "another shape"),
                ("permute", "dimensions in another order"),
                ("expand", "broadcast"),
                ("slice", "a part of a dimension"),
                ("select", "one place of a dimension"),
                ("as_strided", "any strides"),
            )
        ),
        Kind(name="copy", family="copy", slots=0, note="the same values, in an order of their own"),
        Kind(name="copy_into", family="copy", least=2, most=2, slots=0, note="over a part of another tensor"),
        Kind(name="concat", family="concat", most=1024),
        Kind(name="pad", family="concat"),
        Kind(name="embedding", family="gather", least=2, most=2, note="table [rows, width], index"),
        Kind(name="embedding_bag", family="gather", least=2, most=3, note="sums of rows"),
        Kind(name="index", family="gather", least=2, most=9, note="x, then an index per indexed dimension"),
        Kind(name="gather", family="gather", least=2, most=2, note="x, index along one dimension"),
        Kind(name="scatter", family="gather", least=2, most=9, note="x, indices, values"),
        Kind(name="embedding_backward", family="gather", least=2, most=9, flops=1, note="gradient of rows, index"),
        Kind(name="dropout", family="random", flops=2, slots=12, outputs=2, note="x scaled or zero; the mask"),
        Kind(
            name="rand",
            family="random",
            least=0,
            most=0,
            slots=69,
            note="uniform numbers: ten rounds of Philox, 53 instructions (Triton 3.6), 16 of them high halves of "
            "products, which issue at half rate (64 per clock and SM, CUDA's programming guide)",
        ),
        Kind(name="pool", family="normalise", flops=1, note="the largest or the mean of a window"),
        Kind(name="pool_backward", family="normalise", most=3, flops=1, note="gradient, places"),
        Kind(name="upsample", family="normalise", flops=4, note="a larger picture by interpolation, or its gradient"),
        Kind(name="opaque", family="copy", least=0, most=64, note="an op that nobody described: read and written once"),
    )
}
"""Every kind of op that a graph may hold."""


def find_kind(name: object) -> Kind:
    """Return the kind of that name.

    Raises
    ------
    InputError
        If there is none, with the nearest name.

    Examples
    --------
    >>> find_kind("softmax").family
    'normalise'
    """
    if not isinstance(name, str) or name not in KINDS:
        raise unknown_name("op", name, KINDS, "fusesim.kinds.KINDS")
    return KINDS[name]
