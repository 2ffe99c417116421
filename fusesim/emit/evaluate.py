"""What a graph computes, with numpy: the values that any kernel of it must come to.

Every op is done in fp32 (fp64 and whole numbers in their own type) and rounded to its result's type, as kernels of
their own do; a fused kernel keeps more digits in between.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import special

from fusesim.decompose import decompose
from fusesim.emit.formulas import compute_type, formula, settings, supported, with_number
from fusesim.emit.memory import VALUES, extent, laid_out, read_back, rounded
from fusesim.emit.statistics import with_statistics
from fusesim.errors import GraphError, InputError
from fusesim.graph import Graph
from fusesim.inputs import instance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.graph import Node
    from fusesim.tensor import Tensor

Array = Any  # an array of numpy's, whatever its type

FUNCTIONS: Final[dict[str, Callable[..., Array]]] = {
    "abs": np.abs,
    "where": np.where,
    "exp": np.exp,
    "exp2": np.exp2,
    "tanh": np.tanh,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "log": np.log,
    "log1p": np.log1p,
    "erf": special.erf,
    "floor": np.floor,
    "pow": np.power,
}
"""What the functions of formulas are in numpy."""

_OPERATIONS: Final[dict[type, Callable[..., Array]]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.BitAnd: np.bitwise_and,
    ast.BitOr: np.bitwise_or,
    ast.BitXor: np.bitwise_xor,
    ast.USub: np.negative,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}

_REDUCTIONS: Final[dict[str, Callable[..., Array]]] = {
    "sum": np.sum,
    "prod": np.prod,
    "amax": np.max,
    "amin": np.min,
    "any": np.any,
    "all": np.all,
}


def evaluate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the value of every tensor of a graph.

    Parameters
    ----------
    graph : Graph
        Pointwise ops, reductions, views, copies, concatenations, matrix products, and composites of those.
    inputs : mapping of str to array
        The values of the graph's inputs, by name; they are rounded to their types.

    Returns
    -------
    dict of str to ndarray
        Narrow floating-point types as float32.

    Raises
    ------
    InputError
        If an input is missing or has another shape.
    GraphError
        If an op is none of these.

    Examples
    --------
    >>> from fusesim import patterns
    >>> graph = patterns.bias_relu(1, 2)
    >>> evaluate(graph, {"x": np.float32([[1, -3]]), "bias": np.float32([1, 1])})["relu"].tolist()
    [[2.0, 0.0]]
    """
    instance("a program", graph, Graph, "such as fusesim.patterns.rmsnorm()")
    instance("what comes in", inputs, Mapping, "an array by the name of each input")
    for node in graph.nodes:
        scaled = node.family == "matmul" and (node.attr("alpha") is not None or node.attr("beta") is not None)
        if scaled or node.attr("like") is not None:
            what = node.attr("like", "a scaled product")
            raise GraphError(f"op {node.name} ({node.kind}) stands for {what}, which has no values here")
    form = with_statistics(decompose(graph))
    values: dict[str, Array] = {}
    for name in form.inputs:
        if name not in inputs:
            raise InputError(f"{graph.name}: no values for input {name}; give one array per input")
        tensor = form.tensors[name]
        if np.shape(inputs[name]) != tensor.shape:
            raise InputError(f"{graph.name}: input {name} has shape {np.shape(inputs[name])}; it is {tensor.shape}")
        values[name] = rounded(inputs[name], tensor.dtype)
    with np.errstate(all="ignore"):
        for node in form.nodes:
            given = [values[name] for name in node.inputs]
            outs = [form.tensors[name] for name in node.outputs]
            made = _computed(node, given, [form.tensors[name] for name in node.inputs], outs)
            for tensor, value in zip(outs, made, strict=True):
                values[tensor.name] = rounded(np.asarray(value).reshape(tensor.shape), tensor.dtype)
    return values


def _computed(node: Node, given: Sequence[Array], tensors: Sequence[Tensor], outs: Sequence[Tensor]) -> list[Array]:
    """Return what an op makes."""
    if supported(node):
        return [_pointwise(node, given, tensors, outs[0])]
    if node.family == "view":
        return [_looked(node, given[0], tensors[0], outs[0])]
    if node.family == "reduction":
        return _reduced(node, given[0], outs)
    if node.kind == "concat":
        return [np.concatenate(given, axis=node.attr("dim", -1))]
    if node.kind == "matmul":
        made = np.matmul(*given[:2])
        return [made + given[2] if len(given) > 2 else made]  # noqa: PLR2004 - a, b, bias
    raise GraphError(f"op {node.name} ({node.kind}) has no values here; evaluate covers pointwise ops, row reductions")


def _pointwise(node: Node, given: Sequence[Array], tensors: Sequence[Tensor], out: Tensor) -> Array:
    """Return what a pointwise op makes."""
    computed = compute_type(node, tensors, out)
    kind = VALUES[computed]
    operands = [
        array if node.kind in {"where", "cast"} and not place else array.astype(kind)
        for place, array in enumerate(given)
    ]
    scalar = node.attr("scalar")
    if scalar is not None:
        operands = with_number(node, operands, np.asarray(scalar).astype(kind))
    names = dict(zip(("a", "b", "c"), operands, strict=False))
    numbers = {name: kind(value) for name, value in settings(node).items()}
    tree = ast.parse(formula(node, len(operands)), mode="eval").body
    return np.broadcast_to(_value(tree, numbers | names, kind), out.shape)


def _value(tree: ast.expr, names: Mapping[str, Array], kind: Callable[[float], Array]) -> Array:
    """Return the value of an expression."""
    if isinstance(tree, ast.Name):
        return names[tree.id]
    if isinstance(tree, ast.Constant):
        return kind(float(str(tree.value)))
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        return FUNCTIONS[tree.func.id](*(_value(argument, names, kind) for argument in tree.args))
    if isinstance(tree, ast.UnaryOp):
        return _OPERATIONS[type(tree.op)](_value(tree.operand, names, kind))
    if isinstance(tree, ast.BinOp):
        return _OPERATIONS[type(tree.op)](_value(tree.left, names, kind), _value(tree.right, names, kind))
    if isinstance(tree, ast.Compare):
        return _OPERATIONS[type(tree.ops[0])](_value(tree.left, names, kind), _value(tree.comparators[0], names, kind))
    raise GraphError(f"formula part {ast.unparse(tree)} has no value")


def _looked(node: Node, value: Array, source: Tensor, out: Tensor) -> Array:
    """Return a view's values."""
    if node.kind == "permute":
        return np.transpose(value, node.attr("order"))
    if node.kind == "expand":
        return np.broadcast_to(value, out.shape)
    if node.kind == "view":
        return np.reshape(value, out.shape)
    memory = laid_out(value, source)[out.offset - source.offset :]
    if out.offset < source.offset or extent(out) > len(memory):
        raise GraphError(f"op {node.name} ({node.kind}) looks at memory that {source.name} does not hold")
    return read_back(memory, out)


def _reduced(node: Node, value: Array, outs: Sequence[Tensor]) -> list[Array]:
    """Return what a reduction makes."""
    dims = node.attr("dims", tuple(range(value.ndim)))
    if node.kind in {"argmax", "argmin", "max", "min"}:
        rows = np.moveaxis(value, dims, range(value.ndim - len(dims), value.ndim))
        rows = rows.reshape((*rows.shape[: value.ndim - len(dims)], -1))
        places = (np.argmax if node.kind in {"argmax", "max"} else np.argmin)(rows, axis=-1)
        if len(outs) == 1:
            return [places]
        return [np.take_along_axis(rows, places[..., None], -1), places]
    wide = value.astype(np.float64) if value.dtype.kind == "f" else value
    if node.kind == "mean":
        return [np.sum(wide, axis=dims) / node.attr("divisor", math.prod(value.shape[dim] for dim in dims))]
    if node.kind in _REDUCTIONS:
        return [_REDUCTIONS[node.kind](wide, axis=dims)]
    raise GraphError(f"op {node.name} ({node.kind}) has no values here; evaluate covers pointwise ops, row reductions")
