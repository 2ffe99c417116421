"""Where PyTorch's kernels leave the quick path: zeros and NaNs that reach an IEEE division, a root or a variance.

A division whose numerator is zero, or either of whose operands is infinite or NaN, calls a subroutine, and a warp waits
for it (`fusesim.values` has the same of chains). Whether values are zero or NaN follows from the ops before: relu makes
zeros, a root of what may be negative NaNs, a quotient by zeros infinities. Inputs are taken to be normal. Generated
kernels divide approximately and have no such path (tests/reference/h200_special.json: at most 3 % by one).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.graph import Graph
    from fusesim.node import Node

    Rule = Callable[[Node, Sequence["Values"]], "Values"]


class Values(NamedTuple):
    """What values of a tensor may be, many of them: negative, zero, NaN or infinite."""

    negative: bool = True
    zero: bool = False
    nan: bool = False


class Slow(NamedTuple):
    """What a slow path costs one value: instructions, and clock cycles that its thread waits."""

    slots: float = 0.0
    cycles: float = 0.0


ZERO: Final = {"div": Slow(45.0, 270.0), "silu": Slow(45.0, 270.0), "sqrt": Slow(0.0, 120.0)}
NAN: Final = {
    "div": Slow(30.0, 180.0),
    "silu": Slow(30.0, 210.0),
    "sigmoid": Slow(30.0, 210.0),
    "sqrt": Slow(0.0, 120.0),
}
"""Of pointwise kernels: 1.1 and 0.7 us more for a quotient of 20 480 values with zeros or NaNs, 10 and 5 us of
15 million in bf16 (h200_special.json, as all here)."""

ZERO_IN_ROW: Final = {"var": Slow(4.0, 200.0), "var_mean": Slow(4.0, 200.0)}
NAN_IN_ROW: Final = {
    "softmax": Slow(25.0, 170.0),
    "var": Slow(28.0, 200.0),
    "var_mean": Slow(28.0, 200.0),
}
"""Of kernels over rows: a softmax divides each value, a running variance each deviation."""

POSITIVE: Final = frozenset({"exp", "exp2", "sigmoid", "softmax"})
LIKE_INPUT: Final = frozenset({"silu", "gelu", "gelu_tanh", "tanh", "cast", "copy"})
"""Ops whose values are positive, and those whose values are negative or zero where their operand's are."""

_KEY: Final = "_values"


def values_of(graph: Graph) -> dict[str, Values]:
    """Return what the values of each tensor may be, found on the first call and kept beside the graph's own tables."""
    kept = vars(graph)
    found = kept.get(_KEY)
    if not isinstance(found, dict):
        found = kept[_KEY] = _followed(graph)
    return found


def _followed(graph: Graph) -> dict[str, Values]:
    """Follow values through a graph's ops."""
    found: dict[str, Values] = {}
    for node in graph.nodes:
        made = _made(node, [found.get(name, Values()) for name in node.inputs])
        found.update(dict.fromkeys(node.outputs, made))
    return found


def _made(node: Node, at: Sequence[Values]) -> Values:
    """Return what an op makes of values; what is not a number stays so, but where it is compared."""
    if not at or node.kind in COMPARED:
        return Values(negative=not at, zero=bool(at))
    made = RULES.get(node.kind, _usual)(node, at)
    return made._replace(nan=made.nan or any(one.nan for one in at))


def _usual(node: Node, at: Sequence[Values]) -> Values:
    if node.kind in POSITIVE:
        return Values(negative=False)
    if node.kind in LIKE_INPUT or node.family == "view":
        return at[0]
    return Values()


def _operands(node: Node, at: Sequence[Values]) -> list[Values]:
    """Return an op's operands in order, a number among them."""
    number = node.attr("scalar")
    if number is None:
        return list(at)
    known = isinstance(number, (int, float))
    one = Values(negative=known and number < 0, zero=known and number == 0)
    return [one, *at] if node.attr("reverse") else [*at, one]


def _quotient(node: Node, at: Sequence[Values]) -> Values:
    operands = _operands(node, at)
    over, by = operands[0], operands[-1]
    return Values(over.negative or by.negative, over.zero, by.zero)


def _sum(node: Node, at: Sequence[Values]) -> Values:
    operands = _operands(node, at)
    return Values(any(one.negative for one in operands), all(one.zero for one in operands))


def _product(node: Node, at: Sequence[Values]) -> Values:
    operands = _operands(node, at)
    squared = len(operands) == len(node.inputs) and len(set(node.inputs)) == 1
    return Values(any(one.negative for one in operands) and not squared, any(one.zero for one in operands))


def _largest(node: Node, at: Sequence[Values]) -> Values:
    operands = _operands(node, at)
    return Values(all(one.negative for one in operands), any(one.zero for one in operands))


def _power(node: Node, at: Sequence[Values]) -> Values:
    return Values(at[0].negative and node.attr("scalar") not in EVEN, at[0].zero)


def _dropped(node: Node, at: Sequence[Values]) -> Values:
    return Values(at[0].negative, at[0].zero or node.attr("p", 1.0) != 0.0)


COMPARED: Final = frozenset({"gt", "ge", "lt", "le", "eq", "ne"})
"""Ops whose values are 0 and 1."""

EVEN: Final = (2, 4, 6)
"""Exponents whose powers are not negative."""

RULES: Final[dict[str, Rule]] = {
    "relu": lambda _, at: Values(negative=False, zero=at[0].negative or at[0].zero),
    "abs": lambda _, at: Values(negative=False, zero=at[0].zero),
    "square": lambda _, at: Values(negative=False, zero=at[0].zero),
    "sqrt": lambda _, at: Values(negative=False, zero=at[0].zero, nan=at[0].negative),
    "rsqrt": lambda _, at: Values(negative=False, nan=at[0].negative or at[0].zero),
    "log": lambda _, at: Values(nan=at[0].negative or at[0].zero),
    "log1p": lambda _, at: Values(zero=at[0].zero, nan=at[0].negative),
    "neg": lambda _, at: Values(zero=at[0].zero),
    "sin": lambda _, at: Values(zero=at[0].zero),
    "var": lambda *_: Values(negative=False),
    "var_mean": lambda *_: Values(negative=False),
    "sum": lambda _, at: Values(negative=at[0].negative),
    "mean": lambda _, at: Values(negative=at[0].negative),
    "amax": lambda _, at: Values(negative=at[0].negative),
    "amin": lambda _, at: Values(negative=at[0].negative, zero=at[0].zero and not at[0].negative),
    "sub": lambda node, at: Values(zero=len(set(node.inputs)) < len(at)),
    "maximum": _largest,
    "clamp": _largest,
    "dropout": _dropped,
    "mul": _product,
    "add": _sum,
    "div": _quotient,
    "pow": _power,
}
"""What ops make of values, where that is more than a rule for many. A mean that comes with a variance is taken to be
as positive as that."""


def slow_path(graph: Graph, node: Node, zero: dict[str, Slow] = ZERO, nan: dict[str, Slow] = NAN) -> Slow:
    """Return what an op's slow path costs each value; nothing where none takes it."""
    if node.kind not in nan or (node.kind == "div" and by_number(node)):
        return Slow()
    known = values_of(graph)
    at = [known.get(name, Values()) for name in node.inputs]
    if any(one.nan for one in at) or (node.kind == "sqrt" and at[0].negative and not node.attr("positive")):
        return nan[node.kind]
    return zero.get(node.kind, Slow()) if any(one.zero for one in at) else Slow()


def slow_row(graph: Graph, node: Node) -> Slow:
    """Return the same of a kernel over rows."""
    return slow_path(graph, node, ZERO_IN_ROW, NAN_IN_ROW)


def by_number(node: Node) -> bool:
    """Return whether a tensor is divided by a number: PyTorch multiplies by its inverse."""
    return node.attr("scalar") is not None and not node.attr("reverse")
