"""What each pointwise op computes, as one expression, and how CUDA C++, Triton and numpy spell it.

One table for all three: an expression in `a`, `b`, `c` (the operands in order), settings of the op such as `slope`,
and functions that every language has under some name. A kind that is not in the table cannot be emitted.
"""

from __future__ import annotations

import ast
import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from fusesim.errors import PlanError
from fusesim.tensor import INTEGERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fusesim.graph import Node
    from fusesim.tensor import Tensor

_GELU_SLOPE: Final = "exp(-0.5 * b * b) * 0.3989422804"
_GELU_INNER: Final = "tanh(0.7978845608 * (b + 0.044715 * b * b * b))"

FORMULAS: Final = {
    "neg": "-a",
    "abs": "abs(a)",
    "relu": "where(a < 0, 0, a)",
    "square": "a * a",
    "exp": "exp(a)",
    "tanh": "tanh(a)",
    "rsqrt": "rsqrt(a)",
    "sin": "sin(a)",
    "cos": "cos(a)",
    "log": "log(a)",
    "log1p": "log1p(a)",
    "exp2": "exp2(a)",
    "erf": "erf(a)",
    "sqrt": "sqrt(a)",
    "floor": "floor(a)",
    "reciprocal": "1 / a",
    "sign": "where(a > 0, 1, where(a < 0, -1, a))",
    "sigmoid": "1 / (1 + exp(-a))",
    "silu": "a / (1 + exp(-a))",
    "gelu": "0.5 * a * (1 + erf(a * 0.7071067812))",
    "gelu_tanh": "0.5 * a * (1 + tanh(0.7978845608 * (a + 0.044715 * a * a * a)))",
    "leaky_relu": "where(a > 0, a, slope * a)",
    "elu": "where(a > 0, a, exp(a) - 1)",
    "softplus": "where(a > 20, a, log1p(exp(a)))",
    "hardswish": "a * where(a < -3, 0, where(a > 3, 6, a + 3)) / 6",
    "logical_not": "a == 0",
    "cast": "a",
    "copy": "a",
    "add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "div": "a / b",
    "pow": "pow(a, b)",
    "maximum": "where((a > b) | (a != a), a, b)",
    "minimum": "where((a < b) | (a != a), a, b)",
    "eq": "a == b",
    "ne": "a != b",
    "lt": "a < b",
    "le": "a <= b",
    "gt": "a > b",
    "ge": "a >= b",
    "logical_and": "(a != 0) & (b != 0)",
    "logical_or": "(a != 0) | (b != 0)",
    "bitwise_and": "a & b",
    "bitwise_or": "a | b",
    "bitwise_xor": "a ^ b",
    "where": "where(a, b, c)",
    "lerp": "a + c * (b - a)",
    "addcmul": "a + value * b * c",
    "addcdiv": "a + value * b / c",
    "squared_difference": "(a - b) * (a - b)",
    "relu_backward": "where(b > 0, a, 0)",
    "sigmoid_backward": "a * b * (1 - b)",
    "tanh_backward": "a * (1 - b * b)",
    "silu_backward": "a / (1 + exp(-b)) * (1 + b - b / (1 + exp(-b)))",
    "gelu_backward": f"a * (0.5 * (1 + erf(b * 0.7071067812)) + b * {_GELU_SLOPE})",
    "gelu_tanh_backward": (
        f"a * (0.5 * (1 + {_GELU_INNER}) + 0.5 * b * (1 - {_GELU_INNER} * {_GELU_INNER}) * 0.7978845608 "
        "* (1 + 0.134145 * b * b))"
    ),
}
"""Expressions by kind; NaN passes through `relu`, `maximum` and `minimum`, as it does in PyTorch."""

SETTINGS: Final = {"slope": 0.01, "value": 1.0}
"""Settings of an op that its formula names, where the graph does not say."""

CONDITIONS: Final = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not"})
"""Kinds whose operands are compared in their own type, not in the result's."""

COMPUTED: Final = {"fp64": "fp64", **{name: name for name in INTEGERS}}
"""Types that are computed in as they are; all others in fp32."""

_CUDA: Final = {"abs": "fabs", "pow": "pow"}
_LIBDEVICE: Final = frozenset({"tanh", "log1p", "pow"})
"""Functions that Triton takes from CUDA's device library."""


def supported(node: Node) -> bool:
    """Return whether an op is one whose value at a place follows from the values at that place by a formula."""
    return node.attr("like") is None and (node.kind in FORMULAS or node.kind in {"clamp", "fill"})


def formula(node: Node, operands: int) -> str:
    """Return an op's expression; operands behind the tensors are the number that the graph holds.

    Raises
    ------
    PlanError
        If the graph does not hold a number that the op needs.
    """
    if node.kind == "fill":
        return "a"
    if node.kind == "clamp":
        return _clamp(node, operands)
    text = FORMULAS[node.kind]
    if node.attr("alpha") is not None:
        text = {"add": "a + alpha * b", "sub": "a - alpha * b"}.get(node.kind, text)
    if node.kind == "where" and node.attr("other") is not None:
        text = "where(a, b, other)"
    needed = len({"a", "b", "c"} & names_in(text))
    if operands != needed:
        raise PlanError(
            f"op {node.name} ({node.kind}) has {operands} operands of {needed} in this graph, so its source cannot be "
            "written; give the op its number with scalar=..."
        )
    return text


def _clamp(node: Node, operands: int) -> str:
    """Return limits as numbers, or as the second and third operand."""
    tensors = ["b", "c"][: operands - 1]
    low = "low" if node.attr("min") is not None else ""
    high = "high" if node.attr("max") is not None else ""
    low = low or (tensors.pop(0) if tensors and (high or len(tensors) > 1 or node.attr("limit") != "max") else "")
    high = high or (tensors.pop(0) if tensors else "")
    text = f"where(a < {low}, {low}, a)" if low else "a"
    return f"where(a > {high}, {high}, {text})" if high else text


def settings(node: Node) -> dict[str, float]:
    """Return the numbers besides its operands that an op's formula may name."""
    found = {name: node.attr(name, value) for name, value in SETTINGS.items()}
    for name, key in (("alpha", "alpha"), ("other", "other"), ("low", "min"), ("high", "max")):
        if node.attr(key) is not None:
            found[name] = node.attr(key)
    return found


def with_number(node: Node, operands: list[Any], value: Any) -> list[Any]:
    """Return an op's operands in the order of its formula: the graph's number last, or first where it says so.

    Of `where` the first is the condition, and the number is one of the two values behind it.
    """
    if not node.attr("reverse"):
        return [*operands, value]
    place = 1 if node.kind == "where" else 0
    return [*operands[:place], value, *operands[place:]]


@cache
def names_in(text: str) -> frozenset[str]:
    """Return the names in an expression, functions among them."""
    return frozenset(part.id for part in ast.walk(ast.parse(text, mode="eval")) if isinstance(part, ast.Name))


def compute_type(node: Node, inputs: Sequence[Tensor], output: Tensor) -> str:
    """Return the type that an op is computed in: fp32 for every narrower floating-point type."""
    if node.kind in CONDITIONS:
        types = {COMPUTED.get(tensor.dtype, "fp32") for tensor in inputs}
        scalar = node.attr("scalar")
        if isinstance(scalar, float) and not scalar.is_integer() and types <= set(INTEGERS):
            return "fp32"
        return next((name for name in ("fp64", "fp32", *INTEGERS) if name in types), "fp32")
    return COMPUTED.get(output.dtype, "fp32")


def spell(text: str, language: str, computed: str, operands: Mapping[str, str], numbers: Mapping[str, float]) -> str:
    """Return an expression in a language.

    Parameters
    ----------
    text : str
        An expression of `FORMULAS`.
    language : str
        ``"cuda"`` or ``"triton"``.
    computed : str
        The type that it is computed in.
    operands : mapping of str to str
        What stands for a, b and c: source text that binds tightly, such as a name.
    numbers : mapping of str to float
        Settings that it names.

    Examples
    --------
    >>> spell("a / (1 + exp(-a))", "cuda", "fp32", {"a": "gate"}, {})
    'gate / (1.0f + expf(-gate))'
    >>> spell("where(a < 0, 0, a)", "triton", "fp32", {"a": "x"}, {})
    'tl.where(x < 0.0, 0.0, x)'
    """
    tree = ast.parse(text, mode="eval")
    return ast.unparse(_Speller(language, computed, operands, numbers).visit(tree))


class _Speller(ast.NodeTransformer):
    """Puts a language's names, numbers and conditionals into an expression."""

    def __init__(self, language: str, computed: str, operands: Mapping[str, str], numbers: Mapping[str, float]) -> None:
        self.language, self.computed, self.operands, self.numbers = language, computed, operands, numbers

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Put in an operand, or a setting's number."""
        if node.id in self.numbers and node.id not in self.operands:
            return ast.Name(id=number(self.numbers[node.id], self.language, self.computed))
        return ast.Name(id=self.operands.get(node.id, node.id))

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Write a number as the type that is computed in has it."""
        return ast.Name(id=number(float(str(node.value)), self.language, self.computed))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Write a function as the language calls it."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        args = [self.visit(argument) for argument in node.args]
        if name == "where" and self.language == "cuda":
            test, then, other = (ast.unparse(argument) for argument in args)
            return ast.Name(id=f"({test} ? {then} : {other})")
        return ast.Call(func=ast.Name(id=function(name, self.language, self.computed)), args=args, keywords=[])


def function(name: str, language: str, computed: str) -> str:
    """Return what a language calls a function."""
    if language == "triton":
        return f"libdevice.{name}" if name in _LIBDEVICE else f"tl.{name}"
    if name == "abs" and computed in INTEGERS:
        return "llabs"
    base = _CUDA.get(name, name)
    return f"::{base}" if computed == "fp64" else f"{base}f"


def number(value: float, language: str, computed: str) -> str:
    """Return a number as source text.

    Examples
    --------
    >>> number(1.5, "cuda", "fp32"), number(2, "cuda", "int64"), number(-2, "triton", "fp32")
    ('1.5f', '2', '(-2.0)')
    """
    if computed in INTEGERS:
        text = str(int(value))
    elif math.isinf(value) or math.isnan(value):
        return _extreme(value, language)
    else:
        text = repr(float(value)) + ("f" if language == "cuda" and computed != "fp64" else "")
    return f"({text})" if value < 0 else text


def _extreme(value: float, language: str) -> str:
    """Return infinity or what is no number."""
    if language == "triton":
        return f'float("{value}")'
    if math.isnan(value):
        return "NAN"
    return "INFINITY" if value > 0 else "(-INFINITY)"
