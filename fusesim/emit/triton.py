"""Triton of one kernel, with a launcher: a program per block of values, or per row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fusesim.emit.text import WIDTH, Names, bare, guard, index_lines, offset, power_of_two, size_name, summary
from fusesim.emit.values import (
    NARROW,
    REDUCTIONS,
    TRITON_TYPES,
    converted,
    expression,
    held_type,
    reduced_type,
    start_of,
)
from fusesim.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.emit.nest import Nest, Pass
    from fusesim.graph import Node

BLOCK: Final = 1024
"""Values per program of a pointwise kernel, and per step of a row that does not fit."""

LONG_BLOCK: Final = 4096
"""Values per step of a row that is gone through in passes."""

_JOINS: Final = {
    "sum": "tl.sum",
    "mean": "tl.sum",
    "amax": "tl.max",
    "amin": "tl.min",
    "any": "tl.max",
    "all": "tl.min",
}
_PLACES: Final = {"argmax": "tl.argmax", "max": "tl.argmax", "argmin": "tl.argmin", "min": "tl.argmin"}

_TORCH: Final = {
    "fp64": "float64",
    "fp32": "float32",
    "tf32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp8": "float8_e4m3fn",
    "bool": "bool",
}


def triton_file(nests: Sequence[Nest], names: Sequence[str], separate: int) -> str:
    """Return a Python module with a kernel and a launcher per nest.

    Raises
    ------
    PlanError
        If a reduction is one that Triton has no name for.
    """
    count = separate if len(nests) == 1 else 1
    bodies = [_Writer(nest, name).text(count) for nest, name in zip(nests, names, strict=True)]
    head = ["import torch", "import triton", "import triton.language as tl"]
    if any("libdevice." in body for body in bodies):
        head.append("from triton.language.extra import libdevice")
    return "\n".join(head) + "\n\n\n" + "\n\n\n".join(bodies) + "\n"


class _Writer:
    """Writes one kernel and its launcher."""

    def __init__(self, nest: Nest, name: str) -> None:
        self.nest, self.name = nest, name
        own = [name for name in nest.part.tensors if nest.source(name) == name]
        self.names = Names(own, nest.axes)
        self.lines: list[str] = []
        self.depth = 1
        self.loops = nest.is_row and len(nest.passes) >= 1 and not self._whole
        self.explained = False

    @property
    def _whole(self) -> bool:
        """Whether one block holds a whole row."""
        return self.nest.fits and power_of_two(self.nest.columns) <= 65536  # noqa: PLR2004 - 64 values per thread at most

    def write(self, text: str, comment: str = "") -> None:
        """Add a line."""
        self.lines.append(f"{'    ' * self.depth}{text}" + (f"  # {comment}" if comment else ""))

    def text(self, separate: int) -> str:
        """Return kernel and launcher."""
        nest, part = self.nest, self.nest.part
        (self._row_kernel if nest.is_row else self._pointwise)()
        pointers = [f"{self.names[name]}_ptr" for name in (*part.inputs, *part.outputs)]
        sizes = [f"{size_name(axis)}: tl.constexpr" for axis in nest.axes]
        comment = [f"# {line}" for line in summary(nest, separate)]
        listed = ", ".join([*pointers, *sizes, "BLOCK: tl.constexpr"])
        head = f"def {self.name}({listed}):"
        if len(head) > WIDTH:
            head = f"def {self.name}(\n    " + listed.replace(", ", ",\n    ") + ",\n):"
        return "\n".join([*comment, "@triton.jit", head, *self.lines, "", "", *self._launcher()])

    def _launcher(self) -> list[str]:
        """Return a function that makes the results and launches the kernel."""
        nest, part = self.nest, self.nest.part
        inputs = [self.names[name] for name in part.inputs]
        outputs = [self.names[name] for name in part.outputs]
        lines = [f"def {self.name.removesuffix('_kernel')}({', '.join(inputs)}):"]
        for name in part.outputs:
            tensor = part.tensors[name]
            kind = f"torch.{_TORCH.get(tensor.dtype, tensor.dtype)}"
            made = f'torch.empty_strided({tensor.shape}, {tensor.strides}, dtype={kind}, device="cuda")'
            lines.append(f"    {self.names[name]} = {made}")
        if nest.is_row:
            block = power_of_two(nest.columns) if not self.loops else min(power_of_two(nest.columns), LONG_BLOCK)
            grid = f"({nest.rows},)"
            warps = min(max(block // 512, 1), 16)
            extra = f", num_warps={power_of_two(warps)}"
        else:
            block, extra = BLOCK, ""
            grid = f"({-(-nest.rows // BLOCK)},)"
        sizes = [f"{size_name(axis)}={axis.size}" for axis in nest.axes]
        arguments = ", ".join([*inputs, *outputs, *sizes, f"BLOCK={block}"])
        lines.append(f"    {self.name}[{grid}]({arguments}{extra})")
        lines.append(f"    return {', '.join(outputs)}")
        return lines

    def _program(self) -> str:
        """Return which program this is, in 64 bits where offsets need them."""
        return "tl.program_id(0).to(tl.int64)" if self.nest.long else "tl.program_id(0)"

    def _pointwise(self) -> None:
        """Write a kernel without reductions."""
        axes = self.nest.axes
        self.write(f"i = {self._program()} * BLOCK + tl.arange(0, BLOCK)", "the places of this program")
        self.write(f"inside = i < {' * '.join(size_name(axis) for axis in axes)}", "the last may reach beyond the end")
        for line in index_lines(axes, "i", "//"):
            self.write(line)
        self._place(self.nest.passes[0])

    def _row_kernel(self) -> None:
        """Write a kernel of rows."""
        nest = self.nest
        self.write(f"row = {self._program()}", "one program per row")
        for line in index_lines([axis for axis in nest.axes if not axis.reduced], "row", "//"):
            self.write(line)
        if not self.loops:
            self.write("column = tl.arange(0, BLOCK)", "the whole row at once")
            self._columns()
        for place, one in enumerate(nest.passes):
            self._between(place)
            self._pass(one, place)
        self._between(len(nest.passes))
        for name in nest.row_stores:
            self._store(name, "")

    def _columns(self) -> None:
        """Write which places are inside the row, and their indices."""
        own = [axis for axis in self.nest.axes if axis.reduced]
        self.write(f"inside = column < {' * '.join(size_name(axis) for axis in own)}", "a block is a power of two")
        for line in index_lines(own, "column", "//"):
            self.write(line)

    def _between(self, place: int) -> None:
        """Write the values per row that are ready before a pass."""
        part = self.nest.part
        for name in self.nest.between[place] if place < len(self.nest.between) else ():
            node = part.producers.get(name)
            if node is None:
                self.write(f"{self.names[name]} = {self._loaded(name, '')}")
            elif node.family in {"pointwise", "copy"}:
                self.write(f"{self.names[name]} = {bare(expression(self.nest, self.names, node, {}, 'triton'))}")

    def _pass(self, one: Pass, place: int) -> None:
        """Write one way through the row."""
        if self.loops:
            for node in one.reductions:
                self._start(node)
            columns = " * ".join(size_name(axis) for axis in self.nest.axes if axis.reduced)
            self.write(f"for start in range(0, {columns}, BLOCK):", f"pass {place + 1} of {len(self.nest.passes)}")
            self.depth += 1
            self.write("column = start + tl.arange(0, BLOCK)")
            self._columns()
        self._place(one)
        for node in one.reductions:
            self._reduce(node)
        if self.loops:
            self.depth -= 1
        for node in one.reductions:
            self._finish(node)

    def _place(self, one: Pass) -> None:
        """Write the values of one pass, and its stores."""
        part = self.nest.part
        for name in one.values:
            node = part.producers.get(name)
            if node is None:
                self.write(f"{self.names[name]} = {self._loaded(name, 'inside')}")
                continue
            text = bare(expression(self.nest, self.names, node, {}, "triton"))
            inside = name not in part.outputs and not self.explained
            self.explained = self.explained or inside
            self.write(f"{self.names[name]} = {text}", "in registers, never in memory" if inside else "")
        for name in one.stores:
            self._store(name, "inside")

    def _offset(self, name: str) -> str:
        """Return where a tensor's values stand."""
        axes, steps = self.nest.axes, self.nest.loops.strides[name]
        flat = {False: "row" if self.nest.is_row else "i", True: "column"}
        whole = all(a == b * axis.size for a, b, axis in zip(steps, steps[1:], axes[1:], strict=False))
        if not self.nest.is_row and len(axes) > 1 and whole and steps[-1]:
            return "i" if steps[-1] == 1 else f"i * {steps[-1]}"
        return offset(axes, steps, flat)

    def _is_block(self, name: str) -> bool:
        """Return whether a program reads or writes a block of a tensor, and not one value."""
        steps = zip(self.nest.loops.strides[name], self.nest.axes, strict=True)
        return any(step for step, axis in steps if axis.reduced or not self.nest.is_row)

    def _loaded(self, name: str, mask: str) -> str:
        """Return the values of a tensor in memory as the type that is computed in."""
        tensor = self.nest.part.tensors[name]
        where = f", mask={mask}, other=0" if mask and self._is_block(name) else ""
        text = f"tl.load({self.names[name]}_ptr + {self._offset(name)}{where})"
        if tensor.dtype == "bool":  # a pointer to bool loads bytes
            return f"{text} != 0"
        return f"{text}.to(tl.float32)" if tensor.dtype in NARROW else text

    def _store(self, name: str, mask: str) -> None:
        """Write a result."""
        dtype = self.nest.part.tensors[name].dtype
        value = self.names[self.nest.source(name)]
        value = f"{value}.to({TRITON_TYPES[dtype]})" if dtype in NARROW else value
        tests = [mask] if mask and self._is_block(name) else []
        if tests or self.nest.is_row:
            tests += [f"({axis} == 0)" for axis in guard(self.nest, name)]
        where = f", mask={' & '.join(tests)}" if tests else ""
        self.write(f"tl.store({self.names[name]}_ptr + {self._offset(name)}, {value}{where})")

    def _total(self, node: Node) -> str:
        """Return the variable that a reduction collects in."""
        return f"{self.names[node.outputs[0]]}_all"

    def _start(self, node: Node) -> None:
        """Declare what a reduction collects."""
        self._check(node)
        computed = reduced_type(self.nest, node)
        start = start_of(node.kind, computed, "triton")
        kind = "tl.int32" if computed == "bool" else TRITON_TYPES[computed]
        self.write(f"{self._total(node)} = tl.full((BLOCK,), {start}, {kind})")
        if REDUCTIONS[node.kind].place:
            self.write(f"{self._total(node)}_place = tl.zeros((BLOCK,), tl.int64)")

    @staticmethod
    def _check(node: Node) -> None:
        """Refuse a reduction that Triton has no name for."""
        if node.kind not in _JOINS and not REDUCTIONS[node.kind].place:
            raise PlanError(f"op {node.name} ({node.kind}) has no reduction of Triton's; emit it with language cuda")

    def _operand(self, node: Node) -> str:
        """Return what a reduction takes in, its starting value where the row has ended."""
        source = self.nest.source(node.inputs[0])
        computed = reduced_type(self.nest, node)
        value = converted(self.names[source], held_type(self.nest, source), computed, "triton")
        start = start_of(node.kind, computed, "triton")
        if computed == "bool":
            value = f"({value}).to(tl.int32)"
        return f"tl.where(inside, {bare(value)}, {start})"

    def _reduce(self, node: Node) -> None:
        """Write how a reduction takes in the values of a block."""
        self._check(node)
        operand, total = self._operand(node), self._total(node)
        if not self.loops:
            self.write(f"{total} = {operand}")
            return
        if REDUCTIONS[node.kind].place:
            better = f"{operand} {REDUCTIONS[node.kind].join[2]} {total}"
            self.write(f"{total}_better = {better}")
            self.write(f"{total}_place = tl.where({total}_better, column, {total}_place)")
            self.write(f"{total} = tl.where({total}_better, {operand}, {total})")
        elif _JOINS[node.kind] == "tl.sum":
            self.write(f"{total} += {operand}")
        else:
            word = "tl.maximum" if _JOINS[node.kind] == "tl.max" else "tl.minimum"
            self.write(f"{total} = {word}({total}, {operand})")

    def _finish(self, node: Node) -> None:
        """Write how the values of a block become one."""
        total = self._total(node)
        names = [self.names[name] for name in node.outputs]
        if REDUCTIONS[node.kind].place:
            self._finish_place(node, total, names)
            return
        text = f"{_JOINS[node.kind]}({total}, axis=0)"
        if node.kind == "mean":
            count = node.attr("divisor", math.prod(axis.size for axis in self.nest.axes if axis.reduced))
            own = [size_name(axis) for axis in self.nest.axes if axis.reduced]
            text = f"{text} / {own[0] if len(own) == 1 and count == self.nest.columns else count}"
        if node.kind in {"any", "all"}:
            text = f"{text} != 0"
        self.write(f"{names[0]} = {text}")

    def _finish_place(self, node: Node, total: str, names: Sequence[str]) -> None:
        """Write how the best of a block is found, and its first place in the row."""
        best = "tl.max" if _PLACES[node.kind] == "tl.argmax" else "tl.min"
        if not self.loops:
            place = f"{_PLACES[node.kind]}({total}, axis=0)"
        else:
            found = f"tl.where({total} == {best}({total}, axis=0), {total}_place, 9223372036854775807)"
            place = f"tl.min({found}, axis=0)"
        if len(names) > 1:
            self.write(f"{names[0]} = {best}({total}, axis=0)")
        self.write(f"{names[-1]} = {place}")
