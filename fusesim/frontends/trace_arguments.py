"""Recorded arguments of an op: by name, as operands to link or as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fusesim.frontends.aten_arguments import names_of_arguments
from fusesim.frontends.program import Region
from fusesim.frontends.trace_link import Operand
from fusesim.frontends.trace_records import DTYPES
from fusesim.tensor import ITEMSIZES, row_major

if TYPE_CHECKING:
    from fusesim.frontends.trace_records import Op

UNKNOWN_NUMBER: Final = 0.5
"""Stands for a number that the trace does not record: one that is no whole number and no neutral element."""

WEIGHTS: Final = frozenset({"weight", "bias", "running_mean", "running_var", "w_ih", "w_hh"})
STATES: Final = frozenset({"key", "value", "batch2", "tensors"})
PRODUCTS: Final = frozenset({"mm", "addmm", "_scaled_mm", "_int_mm", "mv", "addmv"})
LISTS: Final = frozenset({"TensorList", "GenericList"})
NUMBERS: Final = {"double": UNKNOWN_NUMBER, "long int": 3, "long": 3}
SECONDS: Final = frozenset({"other", "exponent", "value", "min", "max", "scalar", "alpha", "end"})


def named_arguments(op: Op, stem: str) -> dict[str, Any]:
    """Return an op's arguments by name: operands, lists of them, and plain values."""
    count = max(len(op.types), len(op.dims))
    names = names_of_arguments(stem.removeprefix("_foreach_"), count)
    return {name: argument(op, place, name, stem) for place, name in enumerate(names)}


def argument(op: Op, place: int, name: str, stem: str) -> Any:
    """Return one argument as recorded."""
    kind = op.types[place] if place < len(op.types) else ""
    dims = op.dims[place] if place < len(op.dims) and isinstance(op.dims[place], tuple) else ()
    steps = op.strides[place] if place < len(op.strides) else None
    value = op.values[place] if place < len(op.values) else None
    role = _role(stem, name)
    if kind in LISTS or (dims and isinstance(dims[0], tuple)):
        strides = steps if steps and len(steps) == len(dims) else [None] * len(dims)
        return [_operand(part, step, "", role) for part, step in zip(dims, strides, strict=True)]
    dtype = DTYPES.get(kind, "fp8" if "Float8" in kind else "")
    if dtype and (value is None or dims):
        number = not dims and kind in NUMBERS and (name in SECONDS or stem == "where")
        return NUMBERS[kind] if number else _operand(dims, steps, dtype, role)
    if not kind and dims:
        return _operand(dims, steps, "", role)
    return value


def _operand(dims: Any, steps: Any, dtype: str, role: str) -> Operand:
    """Return an operand."""
    shape = tuple(size for size in dims if isinstance(size, int))
    strides = tuple(steps) if isinstance(steps, tuple) and len(steps) == len(shape) else None
    if strides is not None and any(not isinstance(step, int) for step in strides):
        strides = None
    if dtype and dtype not in ITEMSIZES:
        dtype = "fp32"
    return Operand(shape, strides, dtype, role)


def _role(stem: str, name: str) -> str:
    """Return how an operand is looked for."""
    if "backward" in stem:
        return ""
    if name in WEIGHTS or (stem == "linear" and name != "input"):
        return "weight"
    if stem in PRODUCTS and (name in {"mat2", "vec"} or (name == "self" and "add" in stem)):
        return "weight"
    if name in STATES or (stem == "bmm" and name == "mat2"):
        return "state"
    return ""


def blank(operand: Operand) -> Region:
    """Return memory of its own for an operand's look."""
    strides = operand.strides if operand.strides is not None else row_major(operand.shape)
    return Region(object(), operand.shape, strides, 0, operand.dtype or "fp32")


def elements(operand: Operand) -> int:
    """Return how many values an operand has."""
    count = 1
    for size in operand.shape:
        count *= size
    return count
