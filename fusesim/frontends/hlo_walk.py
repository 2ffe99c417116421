"""An HLO module while it is walked: values of instructions, and which ops each instruction of the entry ran."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fusesim.builder import Builder, viewed_strides
from fusesim.errors import GraphError, excerpt
from fusesim.frontends.hlo_loops import turns_of
from fusesim.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.frontends.hlo_text import Array, Computation, Instruction, Module

DEEPEST: Final = 100
"""Calls within calls."""

MOST_WALKED: Final = 200_000
"""Instructions after everything is written out."""

MOST_UNROLLED: Final = 20_000
"""Instructions up to which a loop is written out as often as it runs."""

MOST_READ: Final = 60
"""Tensors that an opaque op reads."""


NOTHING: Final = frozenset({"bitcast", "tuple", "get-tuple-element", "constant", "reshape"})
"""Opcodes that run nothing when they stand alone; other views are then copies."""


@dataclass(frozen=True, slots=True)
class Number:
    """The same number at every place of a shape: a constant that needs no memory, None where it is not known."""

    value: float | None
    array: Array


Value = Tensor | Number | tuple[Any, ...]
Rule = Callable[["Walk", "Instruction", list[Any]], Value | None]
RULES: Final[dict[str, Rule]] = {}
"""Rules by opcode: from the walk, the instruction and the values of its operands to its own."""


def hlo_rule(*opcodes: str) -> Callable[[Rule], Rule]:
    """Register a rule for opcodes."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(opcodes, function))
        return function

    return register


class Walk:
    """Walks a module; `builder` gets its graph, `groups` the ops of each kernel."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.builder = Builder(module.name)
        self.groups: list[tuple[str, ...]] = []
        self.where = "the module"
        self._count = 0
        self._depth = 0

    def run(self) -> None:
        """Walk the entry computation."""
        entry = self.module.computations[self.module.entry]
        result = self._entry(entry)
        for tensor in _tensors(result):
            self.builder.output(tensor)
        if not self.builder.outputs:
            raise GraphError("its result is a constant; there is nothing to run")

    def _entry(self, entry: Computation) -> Value:
        """Walk a computation whose instructions are kernels of their own."""
        values: dict[str, Value] = {}
        for instruction in entry.instructions:
            values[instruction.name] = self._kernel(instruction, values)
        return values[entry.root]

    def _kernel(self, instruction: Instruction, values: dict[str, Value]) -> Value:
        """Walk one instruction of the entry computation; what it runs is a group."""
        if instruction.opcode == "parameter":
            array = instruction.arrays[0] if len(instruction.arrays) == 1 else None
            if array is not None:
                return self._input(array, instruction.name)
            return tuple(self._input(part, instruction.name) for part in instruction.arrays)
        before = len(self.builder.nodes)
        self.builder.scope = instruction.name
        if instruction.opcode in {"call", "while", "async-start"}:
            return self._called(instruction, values)
        value = self.value(instruction, values)
        if self.module.compiled and instruction.opcode not in NOTHING:
            value = self._written(value, before)
        names = tuple(node.name for node in self.builder.nodes[before:] if node.family != "view")
        if names:
            self.groups.append(names)
        return value

    def _called(self, instruction: Instruction, values: dict[str, Value]) -> Value:
        """Walk a computation that the entry calls: its instructions are kernels too."""
        operands = [values[name] for name in instruction.operands]
        name = self.callee(instruction, "body" if instruction.opcode == "while" else "to_apply", "calls")
        for _ in range(self.turns(instruction, operands)):
            operands = [self._walked(self._computation(name), operands)]
        return operands[0]

    def _walked(self, computation: Computation, operands: Sequence[Value]) -> Value:
        """Return the value of a computation whose instructions are kernels."""
        values: dict[str, Value] = {}
        self._deeper()
        for part in computation.instructions:
            if part.opcode == "parameter":
                values[part.name] = operands[int(part.literal)]
            else:
                values[part.name] = self._kernel(part, values)
        self._depth -= 1
        return values[computation.root]

    def turns(self, instruction: Instruction, operands: Sequence[Value]) -> int:
        """Return how often what an instruction calls is written out: a loop as often as it runs, once if that is long.

        Raises
        ------
        GraphError
            If its body is not there.
        """
        if instruction.opcode != "while":
            return 1
        known = turns_of(self.module, instruction, operands[0])
        size = len(self._computation(self.callee(instruction, "body")).instructions)
        if known is not None and self._count + known * size <= MOST_UNROLLED:
            return known
        times = "the module does not say how often it runs" if known is None else f"it runs {known} times"
        self.gap(f"the body of a while loop is written out once, and {times}: multiply what it costs")
        return 1

    def _computation(self, name: str) -> Computation:
        """Return a computation of the module."""
        if name not in self.module.computations:
            raise GraphError(f"{self.where} calls {excerpt(name)}, which the module does not have")
        return self.module.computations[name]

    def inlined(self, name: str, operands: Sequence[Value]) -> Value:
        """Return the value of a computation written out in place, as part of the same kernel."""
        computation = self._computation(name)
        values: dict[str, Value] = {}
        self._deeper()
        for instruction in computation.instructions:
            if instruction.opcode == "parameter":
                values[instruction.name] = operands[int(instruction.literal)]
            else:
                values[instruction.name] = self.value(instruction, values)
        self._depth -= 1
        return values[computation.root]

    def value(self, instruction: Instruction, values: dict[str, Value]) -> Value:
        """Return the value of an instruction."""
        self._count += 1
        if self._count > MOST_WALKED:
            raise GraphError(f"it has more than {MOST_WALKED} instructions with all calls written out")
        self.where = f"instruction {excerpt(instruction.name)} ({excerpt(instruction.opcode)})"
        missing = next((name for name in instruction.operands if name not in values), None)
        if missing is not None:
            raise GraphError(f"{self.where} reads {excerpt(missing)}, which nothing before it makes")
        operands = [values[name] for name in instruction.operands]
        rule = RULES.get(instruction.opcode)
        made = rule(self, instruction, operands) if rule is not None else None
        return made if made is not None else self.opaque(instruction, operands, instruction.opcode)

    def callee(self, instruction: Instruction, *attributes: str) -> str:
        """Return the name of the computation that an instruction calls."""
        for attribute in attributes:
            if attribute in instruction.attrs:
                return instruction.attrs[attribute].strip("{} ").lstrip("%")
        raise GraphError(f"instruction {excerpt(instruction.name)} names no computation to call")

    def gap(self, sentence: str) -> None:
        """Note, once, what the graph does not say rightly."""
        if sentence not in self.builder.gaps:
            self.builder.gaps.append(sentence)

    def tensor(self, value: Any) -> Tensor:
        """Return a value as a tensor; a number everywhere is written out."""
        if isinstance(value, Number):
            made = self.empty(value.array, "fill")
            self.builder.node("fill", [], [made], scalar=value.value)
            return made
        if not isinstance(value, Tensor):
            raise GraphError(f"{self.where} reads a tuple as one array")
        return value

    def empty(self, array: Array, stem: str, of: Tensor | None = None) -> Tensor:
        """Add a tensor of an array's look."""
        return self.builder.tensor(array.shape, array.dtype, stem=stem.replace("-", "_"), strides=array.strides, of=of)

    def look(self, x: Tensor, array: Array, kind: str = "as_strided") -> Tensor:
        """Look at a tensor in another shape with given strides."""
        made = self.builder.tensor(array.shape, x.dtype, stem="view", strides=array.strides, of=x, offset=x.offset)
        self.builder.node(kind, [x], [made])
        return made

    def reshaped(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Look at a tensor in another shape, copied first only where no strides do."""
        if tuple(shape) == x.shape:
            return x
        strides = viewed_strides(x, tuple(shape))
        return self.builder.view(x if strides is not None else self.builder.copy(x), shape)

    def opaque(self, instruction: Instruction, operands: Sequence[Any], name: str) -> Value:
        """Add an instruction without a rule, and say so."""
        self.gap(
            f"{excerpt(name)} has no rule: priced as one kernel that reads its operands and writes its results once"
        )
        inputs = [tensor for value in operands for tensor in _tensors(value)][:MOST_READ]
        made = [self.empty(array, "opaque") for array in instruction.arrays]
        if made:
            self.builder.node("opaque", inputs, made, op=name)
        return tuple(made) if instruction.is_tuple else made[0] if made else ()

    def _input(self, array: Array, name: str) -> Tensor:
        """Add an input."""
        return self.builder.input(*array.shape, dtype=array.dtype, name=name, strides=array.strides)

    def _written(self, value: Value, before: int) -> Value:
        """Return what a kernel leaves in memory: views and numbers at its end are written out."""
        if isinstance(value, tuple):
            return tuple(self._written(part, before) for part in value)
        if isinstance(value, Number):
            return self.tensor(value)
        own = {name for node in self.builder.nodes[before:] if node.family != "view" for name in node.outputs}
        if value.name in own:
            return value
        over = {node.outputs[0] for node in self.builder.nodes[before:] if node.attr("over_part")}
        if value.name in over or value.storage in own:  # written in place, or laid out as it is seen
            return value
        made = self.builder.tensor(value.shape, value.dtype, stem="copy")
        self.builder.node("copy", [value], [made])
        return made

    def _deeper(self) -> None:
        """Count a call within a call."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise GraphError("computations call each other without end")


def _tensors(value: Any) -> list[Tensor]:
    """Return the tensors in a value."""
    if isinstance(value, Tensor):
        return [value]
    return [tensor for part in value for tensor in _tensors(part)] if isinstance(value, tuple) else []
