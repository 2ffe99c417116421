"""XLA's HLO text as records: modules, computations, instructions; what an instruction means is not known here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fusesim.errors import GraphError, InputError, excerpt
from fusesim.tensor import Shape as Sizes
from fusesim.tensor import row_major

if TYPE_CHECKING:
    from collections.abc import Iterable

DTYPES: Final = {
    "pred": "bool",
    "s8": "int8",
    "u8": "uint8",
    "s16": "int16",
    "u16": "int16",
    "s32": "int32",
    "u32": "int32",
    "s64": "int64",
    "u64": "int64",
    "f16": "fp16",
    "bf16": "bf16",
    "f32": "fp32",
    "f64": "fp64",
    "c64": "fp64",
    "c128": "fp64",
    "s4": "int8",
    "u4": "uint8",
}
"""HLO's element types; unsigned and complex ones by their bytes."""

MOST_INSTRUCTIONS: Final = 200_000
"""Instructions of a module that is read."""

_COMMENT: Final = re.compile(r"/\*.*?\*/")
_HEADER: Final = re.compile(r"^\s*(ENTRY\s+)?%?([\w.\-~$]+)\s*(?:\(.*\)\s*->\s*.*)?\{\s*$")
_NAME: Final = re.compile(r"^\s*(ROOT\s+)?%?([\w.\-~$]+)\s*=\s*")
_ARRAY: Final = re.compile(r"([a-z][a-z0-9]*)\[([^\]]*)\](?:\{([\d,\s]*)[^}]*\})?")
_OPCODE: Final = re.compile(r"\s*([a-z][\w\-]*)\(")
_REFERENCE: Final = re.compile(r"%?([\w.\-~$]+)$")


@dataclass(frozen=True, slots=True)
class Array:
    """The shape, element type and strides of an array."""

    shape: Sizes
    dtype: str
    strides: Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction: what it makes (arrays; of a tuple, one each), its opcode, operands and attributes as text."""

    name: str
    opcode: str
    arrays: tuple[Array, ...]
    operands: tuple[str, ...]
    attrs: dict[str, str] = field(default_factory=dict)
    literal: str = ""
    root: bool = False
    is_tuple: bool = False

    def sizes(self, name: str) -> Sizes:
        """Return an attribute such as `dimensions={0,1}`."""
        return tuple(int(number) for number in re.findall(r"-?\d+", self.attrs.get(name, "")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Computation:
    """Instructions in order; `root` is the name of the one whose value it returns."""

    name: str
    instructions: tuple[Instruction, ...]
    root: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module: its computations by name, which one is entered, and whether XLA has decided what runs as one."""

    name: str
    computations: dict[str, Computation]
    entry: str
    compiled: bool


def parse_hlo(text: str) -> Module:
    """Return the module in HLO text.

    Raises
    ------
    InputError
        If it is no HLO text.
    GraphError
        If an instruction cannot be read.
    """
    head = re.search(r"^\s*HloModule\s+([^\s,]+)", text, re.MULTILINE)
    if head is None:
        raise InputError(_foreign(text))
    computations: dict[str, Computation] = {}
    entry, name, lines = "", "", list[Instruction]()
    count = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not name:
            found = _HEADER.match(_COMMENT.sub("", line))
            if found and not line.lstrip().startswith("HloModule"):
                name, lines = found[2], []
                entry = name if found[1] else entry
        elif line.strip().startswith("}"):
            computations[name] = _computation(name, lines)
            name = ""
        elif line.strip() and not line.strip().startswith("//"):
            count += 1
            if count > MOST_INSTRUCTIONS:
                raise InputError(f"the module has more than {MOST_INSTRUCTIONS} instructions; give a smaller one")
            lines.append(_instruction(line, number))
    if name:
        raise GraphError(f"computation {excerpt(name)} has no end; the text is cut off")
    if not computations:
        raise InputError("the module has no computations; give the whole text of XLA's dump")
    return Module(
        name=head[1],
        computations=computations,
        entry=entry or list(computations)[-1],
        compiled="is_scheduled=true" in text or _decided(computations.values()),
    )


def _decided(computations: Iterable[Computation]) -> bool:
    """Return whether fusions or library calls are among the instructions."""
    opcodes = {part.opcode for computation in computations for part in computation.instructions}
    return bool(opcodes & {"fusion", "bitcast", "copy-start", "async-start"})


def _foreign(text: str) -> str:
    """Return why a text is no HLO."""
    if re.search(r"stablehlo\.|mhlo\.|^module\s*[@{]", text, re.MULTILINE):
        what = "is StableHLO (MLIR), which is not compiled yet"
    elif "\n" not in text.strip() and len(text) < 400:  # noqa: PLR2004 - a path, most likely
        what = f'"{excerpt(text)}" is no HLO text; give the text itself, or a pathlib.Path'
    else:
        what = "is no HLO text: it has no line HloModule"
    return f"the module {what}; dump with XLA_FLAGS=--xla_dump_to=DIR and give *after_optimizations.txt"


def _computation(name: str, lines: list[Instruction]) -> Computation:
    """Return a computation; without a ROOT the last instruction is it."""
    if not lines:
        raise GraphError(f"computation {excerpt(name)} has no instructions")
    root = next((line.name for line in lines if line.root), lines[-1].name)
    return Computation(name=name, instructions=tuple(lines), root=root)


def _instruction(line: str, number: int) -> Instruction:
    """Return the instruction on a line."""
    text = _COMMENT.sub("", line)
    found = _NAME.match(text)
    if found is None:
        raise GraphError(f"line {number}: {excerpt(line.strip(), 80)} is no instruction")
    at = found.end()
    is_tuple = text.startswith("(", at)
    end = _closing(text, at, number) + 1 if is_tuple else at
    opcode = _OPCODE.search(text, end)
    if opcode is None:
        raise GraphError(f"line {number}: {excerpt(found[2])} has no opcode")
    stop = _closing(text, opcode.end() - 1, number)
    inner = text[opcode.end() : stop]
    attrs = dict(_attributes(text[stop + 1 :]))
    literal = inner.strip() if opcode[1] in {"constant", "parameter"} else ""
    return Instruction(
        name=found[2],
        opcode=opcode[1],
        arrays=tuple(arrays_in(text[at : opcode.start()])),
        operands=() if literal or opcode[1] == "parameter" else tuple(_operands(inner)),
        attrs=attrs,
        literal=literal,
        root=bool(found[1]),
        is_tuple=is_tuple,
    )


def arrays_in(text: str) -> list[Array]:
    """Return the arrays in the text of a shape; tokens are none.

    Examples
    --------
    >>> arrays_in("(f32[2,3]{0,1}, s8[16]{0})")[0]
    Array(shape=(2, 3), dtype='fp32', strides=(1, 2))
    """
    found = []
    for kind, sizes, layout in _ARRAY.findall(text):
        dtype = DTYPES.get(kind, "fp8" if kind.startswith("f8") else "")
        if not dtype:
            continue
        shape = tuple(int(size.strip().lstrip("<=")) for size in sizes.split(",") if size.strip())
        order = [int(dim) for dim in layout.split(",") if dim.strip()]
        found.append(Array(shape, dtype, _strides(shape, order)))
    return found


def _strides(shape: Sizes, minor_to_major: list[int]) -> Sizes:
    """Return the strides of a layout: its dimensions from the fastest to the slowest."""
    if sorted(minor_to_major) != list(range(len(shape))):
        return row_major(shape)
    strides, step = [0] * len(shape), 1
    for dim in minor_to_major:
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def _closing(text: str, at: int, number: int) -> int:
    """Return where the bracket that opens at a place closes; strings are stepped over."""
    depth, quoted = 0, False
    place = at
    while place < len(text):
        letter = text[place]
        if letter == "\\" and quoted:
            place += 1
        elif letter == '"':
            quoted = not quoted
        elif not quoted and letter in "({[":
            depth += 1
        elif not quoted and letter in ")}]":
            depth -= 1
            if not depth:
                return place
        place += 1
    raise GraphError(f"line {number}: a bracket does not close; the text is cut off")


def _split(text: str) -> list[str]:
    """Return the parts between commas that stand in no bracket or string."""
    parts, depth, quoted, start, place = [], 0, False, 0, 0
    while place < len(text):
        letter = text[place]
        if letter == "\\" and quoted:
            place += 1
        elif letter == '"':
            quoted = not quoted
        elif not quoted and letter in "({[":
            depth += 1
        elif not quoted and letter in ")}]":
            depth -= 1
        elif not quoted and letter == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
        place += 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _operands(text: str) -> list[str]:
    """Return the names of operands, with or without their shapes before them."""
    found = []
    for part in _split(text):
        match = _REFERENCE.search(part)
        if match is not None:
            found.append(match[1])
    return found


def _attributes(text: str) -> list[tuple[str, str]]:
    """Return attributes by name, their values as text."""
    found = []
    for part in _split(text):
        name, equals, value = part.partition("=")
        if equals:
            found.append((name.strip(), value.strip()))
    return found
