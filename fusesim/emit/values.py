"""One op as one statement: the value of its result from the values of its operands, in either language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fusesim.emit.formulas import COMPUTED, compute_type, formula, number, settings, spell, with_number
from fusesim.errors import PlanError
from fusesim.tensor import INTEGERS

if TYPE_CHECKING:
    from fusesim.emit.nest import Nest
    from fusesim.emit.text import Names
    from fusesim.graph import Node

CUDA_TYPES: Final = {
    "fp64": "double",
    "fp32": "float",
    "tf32": "float",
    "bf16": "__nv_bfloat16",
    "fp16": "__half",
    "fp8": "__nv_fp8_e4m3",
    "int64": "long long",
    "int32": "int",
    "int16": "short",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
}
"""How CUDA C++ spells each element type."""

TRITON_TYPES: Final = {
    "fp64": "tl.float64",
    "fp32": "tl.float32",
    "tf32": "tl.float32",
    "bf16": "tl.bfloat16",
    "fp16": "tl.float16",
    "fp8": "tl.float8e4nv",
    "int64": "tl.int64",
    "int32": "tl.int32",
    "int16": "tl.int16",
    "int8": "tl.int8",
    "uint8": "tl.uint8",
    "bool": "tl.int1",
}
"""How Triton spells each element type."""

NARROW: Final = frozenset({"bf16", "fp16", "fp8"})
"""Types that a value in a register is wider than."""


class Reduction(NamedTuple):
    """How a reduction starts, and joins two values a and b; `place` says that it also returns where one stands."""

    start: str
    join: str
    place: bool = False


REDUCTIONS: Final = {
    "sum": Reduction("0", "a + b"),
    "mean": Reduction("0", "a + b"),
    "prod": Reduction("1", "a * b"),
    "any": Reduction("0", "a | b"),
    "all": Reduction("1", "a & b"),
    "amax": Reduction("least", "where((a > b) | (a != a), a, b)"),
    "amin": Reduction("most", "where((a < b) | (a != a), a, b)"),
    "max": Reduction("least", "a > b", place=True),
    "min": Reduction("most", "a < b", place=True),
    "argmax": Reduction("least", "a > b", place=True),
    "argmin": Reduction("most", "a < b", place=True),
}
"""Reductions by kind."""

_RANGES: Final = {"int64": 64, "int32": 32, "int16": 16, "int8": 8}


def start_of(kind: str, computed: str, language: str) -> str:
    """Return the value that a reduction starts from.

    Examples
    --------
    >>> start_of("amax", "fp32", "cuda"), start_of("sum", "fp32", "triton")
    ('(-INFINITY)', '0.0')
    """
    start = REDUCTIONS[kind].start
    if start in {"0", "1"}:
        return number(float(start), language, computed)
    low = start == "least"
    if computed not in INTEGERS:
        return number(float("-inf") if low else float("inf"), language, computed)
    if computed not in _RANGES:
        return "0" if low else ("255" if computed == "uint8" else "1")
    most = 2 ** (_RANGES[computed] - 1) - 1
    wide = "LL" if language == "cuda" and computed == "int64" else ""
    return f"(-{most}{wide} - 1)" if low else f"{most}{wide}"


def held_type(nest: Nest, name: str) -> str:
    """Return the type of a tensor's value in a register: fp32 for all narrower floating-point types."""
    return COMPUTED.get(nest.part.tensors[nest.source(name)].dtype, "fp32")


def reduced_type(nest: Nest, node: Node) -> str:
    """Return the type that a reduction adds up in: its result's, for extremes its operand's."""
    if node.kind in {"any", "all"}:
        return "bool"
    which = node.inputs[0] if REDUCTIONS[node.kind].place else node.outputs[0]
    return held_type(nest, which)


def converted(text: str, have: str, want: str, language: str) -> str:
    """Return a value as another type; two names for one type in a register are one."""
    if have == want:
        return text
    if language == "cuda":
        return f"({text} != 0)" if want == "bool" else f"static_cast<{CUDA_TYPES[want]}>({text})"
    return f"({text} != 0)" if want == "bool" else f"{_tight(text)}.to({TRITON_TYPES[want]})"


def _tight(text: str) -> str:
    """Return source text that a method can be called on."""
    return text if text.isidentifier() else f"({text})"


def expression(nest: Nest, names: Names, node: Node, variables: dict[str, str], language: str) -> str:
    """Return the value of a pointwise op, as source text.

    Parameters
    ----------
    nest, names
        The kernel, and the variable of each tensor.
    node : Node
        The op.
    variables : dict of str to str
        What stands for a tensor's value here, where that is not its variable.
    language : str
        ``"cuda"`` or ``"triton"``.

    Raises
    ------
    PlanError
        If the graph does not hold a number that the op needs.
    """
    part = nest.part
    inputs = [part.tensors[name] for name in node.inputs]
    computed = compute_type(node, inputs, part.tensors[node.outputs[0]])
    texts = []
    for place, name in enumerate(node.inputs):
        source = nest.source(name)
        text = variables.get(source, names[source])
        want = "bool" if node.kind == "where" and not place else computed
        texts.append(converted(text, held_type(nest, name), want, language))
    scalar = node.attr("scalar")
    if scalar is not None:
        if isinstance(scalar, complex):
            raise PlanError(f"op {node.name} ({node.kind}) has a complex number {scalar}; only real ones are emitted")
        texts = with_number(node, texts, number(float(scalar), language, computed))
    if node.kind == "cast":
        return _cast(nest, node, texts[0], language)
    operands = dict(zip(("a", "b", "c"), texts, strict=False))
    text = spell(formula(node, len(texts)), language, computed, operands, settings(node))
    result = COMPUTED.get(part.tensors[node.outputs[0]].dtype, "fp32")
    have = "bool" if node.kind in _TESTS else computed
    return converted(f"({text})" if have != result else text, have, result, language)


_TESTS: Final = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not"})


def _cast(nest: Nest, node: Node, text: str, language: str) -> str:
    """Return a change of type: one to a narrow type rounds, and the value goes on in fp32."""
    target = nest.part.tensors[node.outputs[0]].dtype
    if target not in NARROW:
        return text
    if language == "cuda":
        return f"static_cast<float>(static_cast<{CUDA_TYPES[target]}>({text}))"
    return f"{_tight(text)}.to({TRITON_TYPES[target]}).to(tl.float32)"
