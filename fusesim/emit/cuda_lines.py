"""Lines of a CUDA kernel: where values stand and are held, vectors, and how reductions collect and join them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from fusesim.emit import cuda_helpers as helpers
from fusesim.emit.nest import MOST_THREADS, Nest
from fusesim.emit.text import Names, bare, index_lines, offset, power_of_two
from fusesim.emit.values import CUDA_TYPES, NARROW, REDUCTIONS, converted, held_type, reduced_type, start_of

if TYPE_CHECKING:
    from fusesim.graph import Node

THREADS: Final = 256
"""Threads per block of a pointwise kernel: eight warps, as PyTorch and the calibration's kernels have."""

VECTOR_BYTES: Final = 16
"""Bytes of the widest load that one thread issues."""

PER_THREAD: Final = 8
"""Values of a row that a thread has at least where the row is long enough."""


class Lines:
    """The lines of one kernel, and what they speak of: variables, offsets, registers."""

    def __init__(self, nest: Nest, name: str) -> None:
        self.nest, self.name = nest, name
        self.names = Names([name for name, t in nest.part.tensors.items() if not _is_look(nest, name)], nest.axes)
        self.index = "long long" if nest.long else "int"
        self.vector = vector_of(nest)
        self.lines: list[str] = []
        self.depth = 1
        self.helpers: dict[str, None] = {}
        self.arrays = set(nest.held)
        self.explained = False
        per_thread = max(self.vector, PER_THREAD)
        needed = power_of_two(-(-nest.columns // per_thread))
        self.threads = min(max(needed, 32), MOST_THREADS) if nest.is_row else THREADS
        self.unrolled = bool(nest.held)
        self.trips = -(-nest.columns // (self.threads * self.vector))

    def write(self, text: str, comment: str = "") -> None:
        """Add a line."""
        note = f"  // {comment}" if comment else ""
        self.lines.append(f"{'    ' * self.depth}{text}{note}" if text else "")

    def open(self, text: str, comment: str = "") -> None:
        """Add a line that opens a block."""
        self.write(f"{text} {{", comment)
        self.depth += 1

    def close(self) -> None:
        """End a block."""
        self.depth -= 1
        self.write("}")

    def _axis_lines(self, *, reduced: bool, flat: str) -> list[str]:
        """Return the indices of the loops of a row kernel that reduce, or do not."""
        own = [axis for axis in self.nest.axes if axis.reduced == reduced]
        return [f"const {self.index} {line};" for line in index_lines(own, flat, "/")]

    def _declare(self, name: str) -> str:
        """Return the declaration of a value."""
        return f"const {CUDA_TYPES[held_type(self.nest, name)]} {self.names[name]}"

    def _loaded(self, name: str, step: str) -> str:
        """Return one value of a tensor in memory as the type that is computed in."""
        at = self._offset(name)
        at = at if step == "0" else f"{at} + {step}"
        return self._widened(name, f"{self.names[name]}_ptr[{at}]")

    def _widened(self, name: str, text: str) -> str:
        """Return what was loaded as the type that is computed in."""
        dtype = self.nest.part.tensors[name].dtype
        have = "narrow" if dtype in NARROW else held_type(self.nest, name)
        return text if have == held_type(self.nest, name) else f"static_cast<float>({text})"

    def _offset(self, name: str) -> str:
        """Return where a tensor's value stands."""
        flat = {False: "row" if self.nest.is_row else "i", True: "column"}
        axes = self.nest.axes
        if not self.nest.is_row and len(axes) > 1:
            steps = self.nest.loops.strides[name]
            whole = all(a == b * axis.size for a, b, axis in zip(steps, steps[1:], axes[1:], strict=False))
            return ("i" if steps[-1] == 1 else f"i * {steps[-1]}") if whole and steps[-1] else offset(axes, steps, flat)
        return offset(axes, self.nest.loops.strides[name], flat)

    def _pointer(self, name: str) -> str:
        """Return the address of a tensor's first value of a vector."""
        return f"{self.names[name]}_ptr + {self._offset(name)}"

    def _is_vector(self, name: str) -> bool:
        """Return whether a tensor is moved a vector at a time."""
        return self.vector > 1 and self.nest.loops.strides[name][-1] == 1

    def _slot(self, name: str) -> str:
        """Return the variable of a value at this place."""
        if name not in self.arrays:
            return self.names[name]
        steps = ["0" if self.vector == 1 else ""] if self._once else ["k" if self.vector == 1 else "k * vector"]
        return f"{self.names[name]}[{' + '.join([*filter(None, steps), *['j'] * (self.vector > 1)])}]"

    def _narrowed(self, name: str, text: str) -> str:
        """Return a value as the type that is stored."""
        dtype = self.nest.part.tensors[name].dtype
        return f"static_cast<{CUDA_TYPES[dtype]}>({text})" if dtype in NARROW else text

    @property
    def _once(self) -> bool:
        """Whether a thread has one vector of the row, so that nothing loops over vectors."""
        return self.unrolled and self.trips == 1

    def _total(self, node: Node) -> str:
        """Return the variable that a reduction collects in."""
        return f"{self.names[node.outputs[0]]}_all"

    def _start(self, node: Node) -> None:
        """Declare what a reduction collects."""
        kind = CUDA_TYPES[reduced_type(self.nest, node)]
        name = self._total(node)
        self.write(f"{kind} {name} = {bare(start_of(node.kind, reduced_type(self.nest, node), 'cuda'))};")
        if REDUCTIONS[node.kind].place:
            self.write(f"long long {name}_place = columns;")

    def _accumulate(self, node: Node) -> None:
        """Write how a reduction takes in the value at this place."""
        total, row = self._total(node), REDUCTIONS[node.kind]
        source = self.nest.source(node.inputs[0])
        here = self._slot(source) if self.nest.in_row(source) else self.names[source]
        value = converted(here, held_type(self.nest, source), reduced_type(self.nest, node), "cuda")
        if row.place:
            at = "column + j" if self.vector > 1 else "column"
            better = f"{value} {row.join[2]} {total} || ({value} == {total} && {at} < {total}_place)"
            self.write(f"if ({better}) {{ {total} = {value}; {total}_place = {at}; }}")
        elif node.kind in {"sum", "mean"}:
            self.write(f"{total} += {value};")
        else:
            text = helpers.joined(node.kind, total, value)
            self.write(f"{total} = {bare(text)};")

    def _finish(self, node: Node) -> None:
        """Write how the threads of a block put their shares together."""
        total, row = self._total(node), REDUCTIONS[node.kind]
        names = [self.names[name] for name in node.outputs]
        kinds = [CUDA_TYPES[held_type(self.nest, name)] for name in node.outputs]
        if row.place:
            self.helpers[helpers.block_place(node.kind)] = None
            word = helpers.place_name(node.kind)
            self.write(f"{word}({total}, {total}_place);", "every thread has the block's")
            results = [f"{total}_place"] if len(names) == 1 else [total, f"{total}_place"]
            for kind, name, text in zip(kinds, names, results, strict=True):
                self.write(f"const {kind} {name} = {text};")
            return
        self.helpers[helpers.block_reduction(node.kind)] = None
        text = f"{helpers.reduction_name(node.kind)}({total})"
        if node.kind == "mean":
            divisor = node.attr("divisor", math.prod(a.size for a in self.nest.axes if a.reduced))
            text = f"{text} / {'columns' if divisor == self.nest.columns else divisor}"
        self.write(f"const {kinds[0]} {names[0]} = {text};", "every thread has the block's")


def _is_look(nest: Nest, name: str) -> bool:
    """Return whether a tensor is a view of another in the kernel."""
    return nest.source(name) != name


def vector_of(nest: Nest) -> int:
    """Return how many values one thread moves at once: 16 bytes where every tensor's strides and offset allow it.

    Notes
    -----
    A vector must not cross the end of the innermost loop, and must begin at a multiple of its own size; a tensor whose
    innermost stride is not 1 is read value by value. Whoever calls the kernel gives pointers to multiples of 16 bytes,
    as allocators return them; a view that begins elsewhere is known by its offset.
    """
    inner = nest.axes[-1].size
    tensors = [(nest.part.tensors[name], steps) for name, steps in nest.loops.strides.items()]
    flat = [(tensor, steps) for tensor, steps in tensors if steps[-1] == 1]
    if not flat or not any(steps[-1] == 1 for name, steps in nest.loops.strides.items() if _full(nest, name)):
        return 1
    vector = max(VECTOR_BYTES // min(tensor.itemsize for tensor, _ in flat), 1)
    while vector > 1 and not all(
        size % vector == 0 for tensor, steps in flat for size in (inner, tensor.offset, *steps[:-1])
    ):
        vector //= 2
    return vector


def _full(nest: Nest, name: str) -> bool:
    """Return whether a tensor has a value at every place."""
    steps = nest.loops.strides[name]
    return all(step or axis.size == 1 for step, axis in zip(steps, nest.axes, strict=True))
