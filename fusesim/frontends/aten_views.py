"""How ATen's views look at a tensor's memory, from recorded arguments: shapes, strides, offsets; no framework."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fusesim.builder import viewed_strides
from fusesim.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.tensor import Shape, Tensor

View = tuple[tuple[int, ...], tuple[int, ...], int]
"""Shape, strides and offset from the tensor's own start, in elements."""


def views(stem: str, x: Tensor, args: dict[str, Any]) -> list[View]:
    """Return the looks that a view makes, none where it has to copy or is not known.

    Raises
    ------
    GraphError
        If recorded arguments do not fit.
    """
    try:
        return _views(stem, x, args)
    except (KeyError, TypeError, IndexError, ValueError, ZeroDivisionError) as error:
        raise GraphError(f"aten.{stem}: its recorded arguments do not fit it ({type(error).__name__})") from error


def _views(stem: str, x: Tensor, args: dict[str, Any]) -> list[View]:
    """Return the looks that a view makes."""
    rank = len(x.shape)
    if stem in {"view", "_unsafe_view", "reshape", "_reshape_alias", "flatten", "ravel", "unflatten", "view_as"}:
        shape = _reshaped(stem, x, args)
        strides = viewed_strides(x, shape)
        return [] if strides is None else [(shape, strides, 0)]
    if stem in {"t", "numpy_T", "transpose", "swapaxes", "permute", "movedim"}:
        order = _order(stem, rank, args)
        return [(tuple(x.shape[at] for at in order), tuple(x.strides[at] for at in order), 0)]
    if stem in {"expand", "expand_as", "unsqueeze", "squeeze"}:
        wide = stem.startswith("expand")
        return [
            _expanded(x, args["size"] if "size" in args else args["other"].shape)
            if wide
            else _squeezed(stem, x, args.get("dim"))
        ]
    if stem in {"detach", "alias"}:
        return [(x.shape, x.strides, 0)]
    if stem == "as_strided":
        return [
            (tuple(args["size"]), tuple(args["stride"]), max((args.get("storage_offset") or x.offset) - x.offset, 0))
        ]
    return [_part(x, *part) for part in _parts(stem, x, args)]


def _reshaped(stem: str, x: Tensor, args: dict[str, Any]) -> Shape:
    """Return the shape of a tensor seen in another one."""
    rank = len(x.shape)
    if stem == "ravel":
        return (x.elements,)
    if stem == "view_as":
        return tuple(args["other"].shape)
    if stem == "flatten":
        first, last = (args.get("start_dim") or 0) % max(rank, 1), args.get("end_dim", -1) % max(rank, 1)
        return (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :])
    if stem == "unflatten":
        dim = args["dim"] % rank
        return (*x.shape[:dim], *_filled(args["sizes"], x.shape[dim]), *x.shape[dim + 1 :])
    return _filled(args["size"] if "size" in args else args["shape"], x.elements)


def _filled(sizes: Iterable[int], elements: int) -> Shape:
    """Return sizes with -1 worked out."""
    known = tuple(sizes)
    rest = math.prod(size for size in known if size != -1)
    made = tuple(elements // max(rest, 1) if size == -1 else size for size in known)
    if math.prod(made) != elements:
        raise GraphError(f"a view of {elements} elements as {known} does not fit")
    return made


def _order(stem: str, rank: int, args: dict[str, Any]) -> list[int]:
    """Return the order of dimensions."""
    order = list(range(rank))
    if stem == "permute":
        return [dim % rank for dim in args["dims"]]
    if stem == "movedim":
        source, target = (
            value if isinstance(value, tuple) else (value,) for value in (args["source"], args["destination"])
        )
        kept = [dim for dim in order if dim not in {place % rank for place in source}]
        for place, dim in sorted((to % rank, start % rank) for to, start in zip(target, source, strict=True)):
            kept.insert(place, dim)
        return kept
    if stem in {"t", "numpy_T"}:
        return order[::-1]
    first, second = (args[name] % rank for name in (("dim0", "dim1") if stem == "transpose" else ("axis0", "axis1")))
    order[first], order[second] = order[second], order[first]
    return order


def _expanded(x: Tensor, size: Iterable[int]) -> View:
    """Return a tensor broadcast to a larger shape."""
    wanted = tuple(size)
    lead = len(wanted) - len(x.shape)
    old, strides = (1,) * lead + x.shape, (0,) * lead + x.strides
    shape = tuple(before if after == -1 else after for before, after in zip(old, wanted, strict=True))
    return shape, tuple(0 if a == 1 != b else s for a, b, s in zip(old, shape, strides, strict=True)), 0


def _squeezed(stem: str, x: Tensor, dim: Any) -> View:
    """Return a tensor with a dimension of one place more or less."""
    rank = len(x.shape)
    if stem == "unsqueeze":
        at = dim % (rank + 1)
        step = x.strides[at] * x.shape[at] if at < rank else 1
        return (*x.shape[:at], 1, *x.shape[at:]), (*x.strides[:at], step, *x.strides[at:]), 0
    dims = range(rank) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    gone = {at % rank for at in dims if x.shape[at % rank] == 1}
    kept = [at for at in range(rank) if at not in gone]
    return tuple(x.shape[at] for at in kept), tuple(x.strides[at] for at in kept), 0


def _parts(stem: str, x: Tensor, args: dict[str, Any]) -> list[tuple[int, int, int, int | None]]:
    """Return parts of a dimension: it, where each begins and ends, and its step, None where it vanishes."""
    rank = len(x.shape)
    if stem in {"select", "unbind"}:
        dim = (args.get("dim") or 0) % rank
        places = [args["index"] % x.shape[dim]] if stem == "select" else range(x.shape[dim])
        return [(dim, place, place + 1, None) for place in places]
    if stem == "slice":
        dim = (args.get("dim") or 0) % rank
        start, stop, step = slice(args.get("start"), args.get("end"), args.get("step")).indices(x.shape[dim])
        return [(dim, start, max(stop, start), step)]
    dim = (args.get("dim") or 0) % rank
    size = x.shape[dim]
    if stem == "narrow":
        return [(dim, args["start"] % (size + 1), args["start"] % (size + 1) + args["length"], 1)]
    sizes = args.get("split_sizes") or args.get("split_size")
    if stem == "chunk":
        sizes = -(-size // args["chunks"])
    if isinstance(sizes, int):
        sizes = [min(sizes, size - at) for at in range(0, size, max(sizes, 1))]
    found: list[tuple[int, int, int, int | None]] = []
    at = 0
    for part in sizes or ():
        found.append((dim, at, at + part, 1))
        at += part
    return found


def _part(x: Tensor, dim: int, start: int, stop: int, step: int | None) -> View:
    """Return a part of a dimension; one place without it where there is no step."""
    offset = start * x.strides[dim]
    if step is None:
        return x.shape[:dim] + x.shape[dim + 1 :], x.strides[:dim] + x.strides[dim + 1 :], offset
    shape, strides = list(x.shape), list(x.strides)
    shape[dim], strides[dim] = len(range(start, stop, step)), x.strides[dim] * step
    return tuple(shape), tuple(strides), offset
