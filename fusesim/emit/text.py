"""What both languages write the same way: names, indices, the words above a kernel."""

from __future__ import annotations

import keyword
import math
import re
import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from fusesim.units import SIZE, format_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fusesim.emit.axes import Axis
    from fusesim.emit.nest import Nest
    from fusesim.graph import Graph

_WORDS: Final = """
alignas alignof asm auto bool break case catch char class const constexpr continue default delete do double else enum
explicit export extern false float for friend goto if inline int long mutable namespace new operator or private
protected public register return short signed sizeof static struct switch template this throw true try typedef typename
union unsigned using virtual void volatile while xor and not
i j k row column rows columns elements threads vector items start inside block tl triton torch libdevice load store
Vector kernel min max print range
"""

RESERVED: Final = frozenset({*keyword.kwlist, *_WORDS.split()})
"""Words that no tensor's variable may be called."""

MOST_KINDS: Final = 4
"""Ops that a kernel's name lists."""


WIDTH: Final = 112
"""Letters on a line of comment."""


class Names:
    """The variable of each tensor: its name as an identifier that the language and the kernel leave free."""

    def __init__(self, names: Iterable[str], axes: Sequence[Axis] = ()) -> None:
        taken = set(RESERVED) | {axis.name for axis in axes} | {size_name(axis) for axis in axes}
        self._found: dict[str, str] = {}
        for name in names:
            word = re.sub(r"\W", "_", name, flags=re.ASCII)
            word = word if re.match(r"[A-Za-z]", word) else f"t{word}"
            while word in taken or f"{word}_ptr" in taken:
                word += "_"
            taken |= {word, f"{word}_ptr", f"{word}_v"}
            self._found[name] = word

    def __getitem__(self, name: str) -> str:
        """Return a tensor's variable."""
        return self._found[name]


def kernel_name(part: Graph) -> str:
    """Return what a kernel is called: after its ops where they are few, else after its graph."""
    kinds = [node.name.partition(".")[0] for node in part.paid_nodes]
    words = list(dict.fromkeys(kinds))
    stem = "_".join(words) if len(words) <= MOST_KINDS else f"fused_{part.name}"
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', stem)}_kernel"


def size_name(axis: Axis) -> str:
    """Return what the number of steps of a loop is called.

    Examples
    --------
    >>> from fusesim.emit.axes import Axis
    >>> [size_name(Axis(name, 4)) for name in ("i", "row", "column1", "i2")]
    ['elements', 'rows', 'columns1', 'n2']
    """
    if axis.name == "i":
        return "elements"
    stem, digits = re.fullmatch(r"([a-z]+)(\d*)", axis.name).groups()  # type: ignore[union-attr]
    return f"n{digits}" if stem == "i" else f"{stem}s{digits}"


def index_lines(axes: Sequence[Axis], flat: str, divide: str) -> list[str]:
    """Return how the index of each loop follows from the place in the order of all of them.

    Examples
    --------
    >>> from fusesim.emit.axes import Axis
    >>> index_lines([Axis("row", 8), Axis("column", 4)], "i", "/")
    ['row = i / columns', 'column = i % columns']
    """
    if len(axes) == 1:
        return [] if axes[0].name == flat else [f"{axes[0].name} = {flat}"]
    found = []
    for place, axis in enumerate(axes):
        inner = [size_name(other) for other in axes[place + 1 :]]
        below = f"({' * '.join(inner)})" if len(inner) > 1 else "".join(inner)
        text = f"{flat} {divide} {below}" if inner else flat
        if place:
            text = f"{text} % {size_name(axis)}"
        found.append(f"{axis.name} = {text}")
    return found


def offset(axes: Sequence[Axis], steps: Sequence[int], flat: dict[bool, str]) -> str:
    """Return where a tensor's value stands, as text; "0" where it has one only.

    Parameters
    ----------
    axes, steps
        Loops, and the tensor's stride in each. [elements]
    flat : dict
        What the place among all loops that reduce (True), or do not (False), is called.
    """
    terms = []
    for reduced in (False, True):
        own = [(axis, step) for axis, step in zip(axes, steps, strict=True) if axis.reduced == reduced]
        merged = all(a[1] == b[1] * b[0].size for a, b in pairwise(own))
        if len(own) > 1 and merged:
            terms.append(_term(flat[reduced], own[-1][1], []))
            continue
        for axis, step in own:
            name = flat[reduced] if len(own) == 1 else axis.name
            terms.append(_term(name, step, [other for other, _ in zip(axes, steps, strict=True)]))
    return " + ".join(term for term in terms if term) or "0"


def _term(name: str, step: int, axes: Sequence[Axis]) -> str:
    """Return one loop's share of an offset, a row's length by its name."""
    if step in {0, 1}:
        return name * step
    inner = axes[-1:] if axes else []
    if inner and step == inner[0].size and inner[0].name != name:
        return f"{name} * {size_name(inner[0])}"
    return f"{name} * {step}"


def guard(nest: Nest, name: str) -> list[str]:
    """Return the loops whose first step alone writes a tensor that has no dimension there."""
    flags = nest.loops.spans[nest.source(name)]
    return [
        axis.name for axis, own in zip(nest.axes, flags, strict=True) if not own and not axis.reduced and axis.size > 1
    ]


def summary(nest: Nest, separate: int) -> list[str]:
    """Return what the kernel does and what fusing saves, in words for its head."""
    part = nest.part
    ops = " -> ".join(node.name for node in part.paid_nodes)
    lines = [f"{ops}: one kernel instead of {separate}." if separate > 1 else f"{ops}: one kernel."]
    reads, writes = (", ".join(_described(part, name) for name in names) for names in (part.inputs, part.outputs))
    lines.append(f"Reads {reads or 'nothing'}; writes {writes}. A pointer is to a tensor's first value.")
    inside = [name for node in part.paid_nodes for name in node.outputs if name not in part.outputs]
    if inside and separate > 1:
        moved = format_quantity(2.0 * sum(part.tensors[name].bytes for name in inside), SIZE)
        words = ", ".join(inside[:6]) + (", ..." if len(inside) > 6 else "")  # noqa: PLR2004 - room on a line
        lines.append(f"Never in memory: {words}. As kernels of their own, writing and reading them moves {moved}.")
    if nest.is_row:
        lines.append(_row_words(nest))
    return [part for line in lines for part in textwrap.wrap(line, WIDTH, break_long_words=False)]


def _row_words(nest: Nest) -> str:
    """Say how a row is gone through."""
    if len(nest.passes) == 1:
        return "One pass over each row."
    if nest.fits:
        return f"A row of {nest.columns} values stays on chip between {len(nest.passes)} steps: memory is read once."
    passes = f"{len(nest.passes)} passes, each reads again what it needs."
    return f"A row of {nest.columns} values does not fit in registers: {passes}"


def _described(part: Graph, name: str) -> str:
    """Name a tensor with its shape and type."""
    tensor = part.tensors[name]
    shape = "x".join(map(str, tensor.shape)) or "1"
    strides = "" if tensor.contiguous else f", strides {tensor.strides}"
    return f"{name} [{shape} {tensor.dtype}{strides}]"


def bare(text: str) -> str:
    """Return an expression without the brackets around all of it.

    Examples
    --------
    >>> bare("(a + b)"), bare("(a) * (b)")
    ('a + b', '(a) * (b)')
    """
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth and place < len(text) - 1:
            return text
    return text[1:-1]


def power_of_two(value: int) -> int:
    """Return the smallest power of two from a value upwards.

    Examples
    --------
    >>> power_of_two(1), power_of_two(5), power_of_two(8)
    (1, 8, 8)
    """
    return 1 << max(math.ceil(value) - 1, 0).bit_length()
