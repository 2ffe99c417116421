"""CUDA C++ of one kernel: one thread per 16 bytes of a pointwise kernel, one block per row of a row kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusesim.emit import cuda_helpers as helpers
from fusesim.emit.cuda_lines import THREADS, Lines
from fusesim.emit.text import bare, guard, index_lines, kernel_name, size_name, summary
from fusesim.emit.values import (
    CUDA_TYPES,
    expression,
    held_type,
)

if TYPE_CHECKING:
    from fusesim.emit.nest import Nest, Pass


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


class _Writer(Lines):
    """Writes one kernel, line by line."""

    def kernel(self, separate: int) -> Kernel:
        """Return the kernel."""
        nest, part = self.nest, self.nest.part
        (self._row_kernel if nest.is_row else self._pointwise)()
        parameters = (*part.inputs, *part.outputs)
        body = "\n".join(line for line in self.lines if self._wanted(line))
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

    def _wanted(self, line: str) -> bool:
        """Return whether a line is needed: a size that nothing speaks of is not."""
        found = re.match(r"\s*constexpr [a-z ]+ (\w+) =", line)
        return found is None or sum(bool(re.search(rf"\b{found[1]}\b", other)) for other in self.lines) > 1

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
