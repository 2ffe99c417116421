"""Where PyTorch's kernels leave the quick path: zeros and NaNs that reach an IEEE division, a root or a variance.

A division whose numerator is zero, or either of whose operands is infinite or NaN, calls a subroutine, and a warp waits
for it (`fusesim.values` has the same of chains). Whether values are zero or NaN follows from the ops before: relu makes
zeros, a root of what may be negative NaNs, a quotient by zeros infinities. Inputs are taken to be normal. Generated
kernels divide approximately and have no such path (tests/reference/h200_special.json: at most 3 % by one).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.graph import Graph
    from fusesim.node import Node


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

POSITIVE: Final = frozenset({"exp", "exp2", "sigmoid", "softmax", "rsqrt"})
LIKE_INPUT: Final = frozenset({"silu", "gelu", "gelu_tanh", "tanh", "sum", "mean", "amax", "cast", "copy"})
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
    """Return what an op makes of values."""
    if not at:
        return Values()
    nan = any(one.nan for one in at)
    first = at[0]
    if node.kind in RULES:
        return RULES[node.kind](node, at, nan)
    if node.kind in POSITIVE:
        return Values(negative=False, nan=nan or (node.kind == "rsqrt" and (first.negative or first.zero)))
    if node.kind in LIKE_INPUT or node.family == "layout":
        return Values(first.negative, first.zero and node.family != "reduction", nan)
    return Values(nan=nan)


def _quotient(node: Node, at: Sequence[Values], nan: bool) -> Values:  # noqa: FBT001
    by = at[-1] if len(at) > 1 or node.attr("reverse") else Values(negative=False)
    over = at[0] if not node.attr("reverse") else Values(negative=False)
    return Values(over.negative or by.negative, over.zero, nan or by.zero)


def _sum(node: Node, at: Sequence[Values], nan: bool) -> Values:  # noqa: FBT001
    number = node.attr("scalar")
    down = isinstance(number, (int, float)) and number < 0
    return Values(any(one.negative for one in at) or down, number is None and all(one.zero for one in at), nan)


RULES: Final = {
    "relu": lambda node, at, nan: Values(False, at[0].negative or at[0].zero, nan),  # noqa: ARG005
    "abs": lambda node, at, nan: Values(False, at[0].zero, nan),  # noqa: ARG005
    "square": lambda node, at, nan: Values(False, at[0].zero, nan),  # noqa: ARG005
    "sqrt": lambda node, at, nan: Values(False, at[0].zero, nan or at[0].negative),  # noqa: ARG005
    "log": lambda node, at, nan: Values(True, False, nan or at[0].negative or at[0].zero),  # noqa: ARG005
    "log1p": lambda node, at, nan: Values(True, at[0].zero, nan or at[0].negative),  # noqa: ARG005
    "var": lambda node, at, nan: Values(False, False, nan),  # noqa: ARG005
    "amin": lambda node, at, nan: Values(at[0].negative, at[0].zero and not at[0].negative, nan),  # noqa: ARG005
    "neg": lambda node, at, nan: Values(True, at[0].zero, nan),  # noqa: ARG005
    "sin": lambda node, at, nan: Values(True, at[0].zero, nan),  # noqa: ARG005
    "mul": lambda node, at, nan: Values(any(v.negative for v in at), any(v.zero for v in at), nan),  # noqa: ARG005
    "sub": lambda node, at, nan: Values(True, len(set(node.inputs)) < len(at), nan),
    "dropout": lambda node, at, nan: Values(at[0].negative, True, nan),  # noqa: ARG005
    "add": _sum,
    "div": _quotient,
}
"""What ops make of values, where that is more than a rule for many."""


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
