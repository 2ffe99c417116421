"""CUDA C++ of one kernel: one thread per 16 bytes of a pointwise kernel, one block per row of a row kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusesim.emit import cuda_helpers as helpers
from fusesim.emit.nest import MOST_THREADS, Nest, Pass
from fusesim.emit.text import Names, bare, guard, index_lines, kernel_name, offset, power_of_two, size_name, summary
from fusesim.emit.values import (
    CUDA_TYPES,
    NARROW,
    REDUCTIONS,
    converted,
    expression,
    held_type,
    reduced_type,
    start_of,
)

if TYPE_CHECKING:
    from fusesim.graph import Node

THREADS: Final = 256
"""Threads per block of a pointwise kernel: eight warps, as PyTorch and the calibration's kernels have."""

VECTOR_BYTES: Final = 16
"""Bytes of the widest load that one thread issues."""

PER_THREAD: Final = 8
"""Values of a row that a thread has at least where the row is long enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel's source, and how to launch it: `parameters` are tensors in the order of its arguments.

    `includes` and `helpers` stand once above all kernels of a file.
    """

    name: str
    body: str
    includes: tuple[str, ...]
    helpers: tuple[str, ...]
    parameters: tuple[str, ...]
    grid: int
    threads: int

    @property
    def source(self) -> str:
        """The whole file of this kernel."""
        return file_of([self])


def file_of(kernels: list[Kernel]) -> str:
    """Return a file with several kernels, what they share above them once."""
    includes = sorted({line for kernel in kernels for line in kernel.includes})
    shared = list(dict.fromkeys(text for kernel in kernels for text in kernel.helpers))
    head = ["\n".join(includes)] if includes else []
    return "\n\n".join([*head, *shared, *(kernel.body for kernel in kernels)]) + "\n"


def cuda_kernel(nest: Nest, separate: int = 1, name: str = "") -> Kernel:
    """Return the kernel of a nest in CUDA C++; `separate` is how many kernels its ops would be by themselves."""
    return _Writer(nest, name or kernel_name(nest.part)).kernel(separate)


class _Writer:
    """Writes one kernel, line by line."""

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

    def kernel(self, separate: int) -> Kernel:
        """Return the kernel."""
        nest, part = self.nest, self.nest.part
        (self._row_kernel if nest.is_row else self._pointwise)()
        parameters = (*part.inputs, *part.outputs)
        body = "\n".join(self.lines)
        comment = "\n".join(f"// {line}" for line in [*summary(nest, separate), self._launch_words()])
        listed = ",\n    ".join(self._parameter(name) for name in parameters)
        head = f'extern "C" __global__ void __launch_bounds__({self.threads}) {self.name}(\n    {listed}) {{'
        text = f"{comment}\n{head}\n{body}\n}}"
        if self.vector > 1:
            self.helpers = {helpers.VECTOR: None, **self.helpers}
        if "INFINITY" in text or any("INFINITY" in helper for helper in self.helpers):
            self.helpers = {helpers.INFINITY: None, **self.helpers}
        if "NAN" in text:
            self.helpers = {helpers.NAN: None, **self.helpers}
        used = {tensor.dtype for tensor in part.tensors.values()}
        includes = tuple(f"#include <{header}>" for dtype, header in helpers.HEADERS.items() if dtype in used)
        count = nest.rows if nest.is_row else -(-nest.rows // (THREADS * self.vector))
        return Kernel(
            name=self.name,
            body=text,
            includes=includes,
            helpers=tuple(self.helpers),
            parameters=parameters,
            grid=count,
            threads=self.threads,
        )

    def _launch_words(self) -> str:
        """Say how the kernel is launched."""
        if self.nest.is_row:
            return f"Launch: one block of {self.threads} threads per row, {self.nest.rows} blocks."
        blocks = -(-self.nest.rows // (THREADS * self.vector))
        return f"Launch: {blocks} blocks of {THREADS} threads."

    def _parameter(self, name: str) -> str:
        """Return a parameter; a tensor that is written over aliases another, so nothing may be promised about it."""
        part = self.nest.part
        kind = CUDA_TYPES[part.tensors[name].dtype]
        aliased = any(node.attr("over") is not None and node.family != "view" for node in part.nodes)
        promise = "" if aliased else "__restrict__ "
        const = "const " if name in part.inputs else ""
        return f"{const}{kind}* {promise}{self.names[name]}_ptr"

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

    def _sizes(self) -> None:
        """Write the sizes that the plan is for."""
        axes = self.nest.axes
        for axis in axes:
            self.write(f"constexpr {self.index} {size_name(axis)} = {axis.size};")
        for flag, word in ((False, "rows" if self.nest.is_row else "elements"), (True, "columns")):
            own = [size_name(axis) for axis in axes if axis.reduced == flag]
            if len(own) > 1:
                self.write(f"constexpr {self.index} {word} = {' * '.join(own)};")
        if self.vector > 1:
            self.write(f"constexpr int vector = {self.vector};", "values that one load or store moves")

    def _pointwise(self) -> None:
        """Write a kernel without reductions."""
        self._sizes()
        place = f"blockIdx.x * {THREADS}LL + threadIdx.x"
        if self.nest.long:
            whole = f"({place}) * vector" if self.vector > 1 else place
            self.write(f"const long long i = {whole};")
        else:
            place = f"blockIdx.x * {THREADS} + threadIdx.x"
            whole = f"({place}) * vector" if self.vector > 1 else place
            self.write(f"const int i = {whole};")
        self.write("if (i >= elements) return;", "the last block may reach beyond the end")
        for line in index_lines(self.nest.axes, "i", "/"):
            self.write(f"const {self.index} {line};")
        self._values_before(0)
        self._place(self.nest.passes[0])

    def _row_kernel(self) -> None:
        """Write a kernel of rows."""
        nest = self.nest
        self._sizes()
        self.write(f"constexpr int threads = {self.threads};")
        if self.unrolled:
            values = [str(self.trips)] * (self.trips > 1 or self.vector == 1) + ["vector"] * (self.vector > 1)
            self.write(f"constexpr int items = {' * '.join(values)};", "values of the row that each thread has")
        self.write(f"const {self.index} row = blockIdx.x;", "one block per row")
        for line in self._axis_lines(reduced=False, flat="row"):
            self.write(line)
        for name in nest.held:
            note = "stays in registers until the row's reduction is known"
            self.write(f"{CUDA_TYPES[held_type(nest, name)]} {self.names[name]}[items];", note)
        if self._once:
            self.write(f"const {self.index} column = threadIdx.x{' * vector' if self.vector > 1 else ''};")
        for place, one in enumerate(nest.passes):
            self._values_before(place)
            self._pass(one, place)
        self._values_before(len(nest.passes))
        self._row_stores()

    def _axis_lines(self, *, reduced: bool, flat: str) -> list[str]:
        """Return the indices of the loops of a row kernel that reduce, or do not."""
        own = [axis for axis in self.nest.axes if axis.reduced == reduced]
        return [f"const {self.index} {line};" for line in index_lines(own, flat, "/")]

    def _values_before(self, place: int) -> None:
        """Write the values per row that are ready before a pass."""
        part = self.nest.part
        made = self.nest.between[place] if place < len(self.nest.between) else ()
        for name in made:
            node = part.producers.get(name)
            if node is None:
                self.write(f"{self._declare(name)} = {self._loaded(name, '0')};")
            elif node.family in {"pointwise", "copy"}:
                self.write(f"{self._declare(name)} = {bare(expression(self.nest, self.names, node, {}, 'cuda'))};")

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

    def _pass(self, one: Pass, place: int) -> None:
        """Write one way through the row."""
        for node in one.reductions:
            self._start(node)
        step = "threads * vector" if self.vector > 1 else "threads"
        if self._once:
            self.open("if (column < columns)", "threads beyond the row's end wait")
        elif self.unrolled:
            self.write("#pragma unroll")
            self.open(f"for (int k = 0; k < {self.trips}; ++k)")
            first = "(k * threads + threadIdx.x) * vector" if self.vector > 1 else "k * threads + threadIdx.x"
            self.write(f"const {self.index} column = {first};")
            self.open("if (column < columns)")
        else:
            first = "threadIdx.x * vector" if self.vector > 1 else "threadIdx.x"
            again = f"pass {place + 1} of {len(self.nest.passes)}" if len(self.nest.passes) > 1 else ""
            self.open(f"for ({self.index} column = {first}; column < columns; column += {step})", again)
        for line in self._axis_lines(reduced=True, flat="column"):
            self.write(line)
        self._place(one)
        self.close()
        if self.unrolled and not self._once:
            self.close()
        for node in one.reductions:
            self._finish(node)

    @property
    def _once(self) -> bool:
        """Whether a thread has one vector of the row, so that nothing loops over vectors."""
        return self.unrolled and self.trips == 1

    def _place(self, one: Pass) -> None:
        """Write what happens at one place, or at the places of one vector."""
        loads = [name for name in one.values if name not in self.nest.part.producers]
        for name in loads:
            if self._is_vector(name):
                dtype = CUDA_TYPES[self.nest.part.tensors[name].dtype]
                self.write(f"const auto {self.names[name]}_v = load<{dtype}, vector>({self._pointer(name)});")
        stores = [name for name in one.stores if self._is_vector(name)]
        for name in stores:
            self.write(f"Vector<{CUDA_TYPES[self.nest.part.tensors[name].dtype]}, vector> {self.names[name]}_v;")
        if self.vector > 1:
            self.write("#pragma unroll")
            self.open("for (int j = 0; j < vector; ++j)")
        for name in one.values:
            self._value(name)
        for name in one.stores:
            self._store(name)
        for node in one.reductions:
            self._accumulate(node)
        if self.vector > 1:
            self.close()
        for name in stores:
            self.write(f"store({self._pointer(name)}, {self.names[name]}_v);")

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

    def _value(self, name: str) -> None:
        """Write the value of a tensor at this place."""
        nest = self.nest
        node = nest.part.producers.get(name)
        if node is None:
            step = nest.loops.strides[name][-1]
            if self._is_vector(name):
                text = self._widened(name, f"{self.names[name]}_v.value[j]")
            else:
                text = self._loaded(
                    name, "0" if self.vector == 1 or not step else ("j" if step == 1 else f"j * {step}")
                )
        else:
            text = expression(nest, self.names, node, {held: self._slot(held) for held in self.arrays}, "cuda")
        target = self._slot(name) if name in self.arrays else self._declare(name)
        inside = node is not None and name not in nest.part.outputs and not self.explained
        self.explained = self.explained or inside
        self.write(f"{target} = {bare(text)};", "in a register, never in memory" if inside else "")

    def _store(self, name: str) -> None:
        """Write a result at this place."""
        value = self._narrowed(name, self._slot(name))
        if self._is_vector(name):
            self.write(f"{self.names[name]}_v.value[j] = {value};")
            return
        tests = [f"{axis} == 0" for axis in guard(self.nest, name)]
        step = self.nest.loops.strides[name][-1]
        at = self._offset(name)
        if self.vector > 1:
            if step:
                at = f"{at} + j" if step == 1 else f"{at} + j * {step}"
            else:
                tests.append("j == 0")
        test = f"if ({' && '.join(tests)}) " if tests else ""
        self.write(f"{test}{self.names[name]}_ptr[{at}] = {value};")

    def _narrowed(self, name: str, text: str) -> str:
        """Return a value as the type that is stored."""
        dtype = self.nest.part.tensors[name].dtype
        return f"static_cast<{CUDA_TYPES[dtype]}>({text})" if dtype in NARROW else text

    def _row_stores(self) -> None:
        """Write the results per row, by one thread."""
        if not self.nest.row_stores:
            return
        self.open("if (threadIdx.x == 0)")
        for name in self.nest.row_stores:
            tests = [f"{axis} == 0" for axis in guard(self.nest, name)]
            test = f"if ({' && '.join(tests)}) " if tests else ""
            source = self.names[self.nest.source(name)]
            self.write(f"{test}{self.names[name]}_ptr[{self._offset(name)}] = {self._narrowed(name, source)};")
        self.close()

    def _start(self, node: Node) -> None:
        """Declare what a reduction collects."""
        kind = CUDA_TYPES[reduced_type(self.nest, node)]
        name = self._total(node)
        self.write(f"{kind} {name} = {bare(start_of(node.kind, reduced_type(self.nest, node), 'cuda'))};")
        if REDUCTIONS[node.kind].place:
            self.write(f"long long {name}_place = columns;")

    def _total(self, node: Node) -> str:
        """Return the variable that a reduction collects in."""
        return f"{self.names[node.outputs[0]]}_all"

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
