"""The element type of a result, from those of its operands, as PyTorch has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.tensor import INTEGERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.tensor import Tensor

RANKS: Final = {name: rank for rank, name in enumerate(("bool", "uint8", "int8", "int16", "int32", "int64"))}
"""Whole-number types in the order in which they promote; every floating-point type stands above them."""


def promoted(inputs: Sequence[Tensor], scalar: float | None) -> str:
    """Return the type that PyTorch gives to a result.

    Notes
    -----
    Tensors of some dimension decide over those of none, floating point over whole numbers; two different 16-bit
    floating-point types meet in fp32; a fractional number lifts whole-number tensors to fp32.

    Examples
    --------
    >>> from fusesim.builder import Builder
    >>> b = Builder()
    >>> promoted([b.input(4, dtype="bf16"), b.input(4, dtype="fp32")], None)
    'fp32'
    >>> promoted([b.input(4, dtype="bf16"), b.input(dtype="fp32")], None)
    'bf16'
    """
    best = ""
    for ranked in (True, False):
        types = {tensor.dtype for tensor in inputs if bool(tensor.shape) == ranked}
        here = _joined(types)
        if here and (not best or (best in INTEGERS and here not in INTEGERS)):
            best = here
    if isinstance(scalar, float) and not float(scalar).is_integer() and (not best or best in INTEGERS):
        return "fp32"
    return best or "fp32"


def _joined(types: set[str]) -> str:
    """Return the type in which types meet."""
    floats = {name for name in types if name not in RANKS and name not in INTEGERS}
    if not floats:
        return max(types, key=lambda name: RANKS.get(name, 0), default="")
    if len(floats) == 1:
        return floats.pop()
    return "fp64" if "fp64" in floats else "fp32"
