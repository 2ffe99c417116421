"""What CuPy itself runs: a ufunc per op, one ElementwiseKernel for a chain, its matmul and its row sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fusesim.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.calibrate.cases import Case
    from fusesim.calibrate.pool import Pool

UFUNCS: Final[dict[str, Any]] = {
    "add": lambda cp, x, y, _: cp.add(x, x.dtype.type(0.5), out=y),
    "mul": lambda cp, x, y, _: cp.multiply(x, x.dtype.type(1.0009765625), out=y),
    "relu": lambda cp, x, y, _: cp.maximum(x, x.dtype.type(0), out=y),
    "neg": lambda cp, x, y, _: cp.negative(x, out=y),
    "abs": lambda cp, x, y, _: cp.absolute(x, out=y),
    "square": lambda cp, x, y, _: cp.multiply(x, x, out=y),
    "exp": lambda cp, x, y, _: cp.exp(x, out=y),
    "tanh": lambda cp, x, y, _: cp.tanh(x, out=y),
    "add_tensor": lambda cp, x, y, extra: cp.add(x, next(extra), out=y),
    "mul_tensor": lambda cp, x, y, extra: cp.multiply(x, next(extra), out=y),
}
"""CuPy's own ufunc for an op."""


class CupyPath:
    """CuPy's own kernels on tensors of the pool."""

    def __init__(self, cupy: Any, pool: Pool) -> None:
        self.cupy, self.pool = cupy, pool
        self.kinds = {"fp32": cupy.float32, "fp16": cupy.float16, "fp64": cupy.float64}
        self.fused: dict[tuple[Any, ...], Any] = {}

    def chains(self, case: Case, sets: int) -> list[Callable[[], None]]:
        """Return, per buffer set, a function that runs the case once."""
        if case.kind == "empty":
            x = self.cupy.zeros(1, self.cupy.float32)
            return [lambda: self.cupy.negative(x, out=x)] * sets
        kind = self.kinds[case.dtype]
        own, shared = self.pool.carve(case, sets)
        if case.kind == "chain":
            flat = (case.elements,)
            buffers = [self.pool.view(address, flat, kind) for address in shared[:2]]
            return [self._chain(case, [self.pool.view(a, flat, kind) for a in addresses], buffers) for addresses in own]
        shapes = _matmul_shapes(case) if case.kind == "matmul" else (case.shape, case.shape[:1])
        library = self._matmul if case.kind == "matmul" else self._row_sums
        return [
            library([self.pool.view(a, shape, kind) for a, shape in zip(addresses, shapes, strict=True)])
            for addresses in own
        ]

    def warm_up(self, case: Case) -> None:
        """Run the kernels of a chain once on one element, so that they are compiled."""
        if case.kind != "chain":
            return
        tensors = 2 + sum(OPS[name].tensors for name in case.ops)
        x = [self.cupy.zeros(1, self.kinds[case.dtype]) for _ in range(tensors + 2)]
        self._chain(case, x[:tensors], x[tensors:])()

    def _chain(self, case: Case, views: Sequence[Any], buffers: Sequence[Any]) -> Callable[[], None]:
        """Return a run of the chain on input, output and extra operands."""
        if case.fused:
            kernel = self._fused(case)
            return lambda: kernel(views[0], *views[2:], views[1])
        steps = [UFUNCS[name] for name in case.ops]
        cupy = self.cupy

        def run() -> None:
            extra = iter(views[2:])
            for index, step in enumerate(steps):
                source = views[0] if index == 0 else buffers[(index - 1) % 2]
                target = views[1] if index == len(steps) - 1 else buffers[index % 2]
                step(cupy, source, target, extra)

        return run

    def _fused(self, case: Case) -> Any:
        """Return one ElementwiseKernel that does the whole chain."""
        key = (case.dtype, *case.ops)
        if key not in self.fused:
            inputs, body = elementwise_source(case)
            self.fused[key] = self.cupy.ElementwiseKernel(inputs, "T y", body, "fusesim_chain")
        return self.fused[key]

    def _matmul(self, views: Sequence[Any]) -> Callable[[], None]:
        first, out, second = views
        return lambda: self.cupy.matmul(first, second, out=out)

    def _row_sums(self, views: Sequence[Any]) -> Callable[[], None]:
        matrix, out = views
        return lambda: self.cupy.sum(matrix, axis=1, out=out)


def elementwise_source(case: Case) -> tuple[str, str]:
    """Return the inputs and the body of an ElementwiseKernel for a chain.

    Examples
    --------
    >>> from fusesim.calibrate.cases import Case
    >>> elementwise_source(Case(kind="chain", probe="", ops=("add", "add_tensor"), elements=1, dtype="fp32"))
    ('T x, T t1', 'float v = x; v = v + 0.5f; { const float t = t1; v = v + t; } y = v;')
    """
    kind = "double" if case.dtype == "fp64" else "float"
    inputs, body = ["T x"], [f"{kind} v = x;"]
    for name in case.ops:
        op = OPS[name]
        if op.tensors:
            operand = f"t{len(inputs)}"
            inputs.append(f"T {operand}")
            body.append(f"{{ const {kind} t = {operand}; v = {op.cuda}; }}")
        else:
            body.append(f"v = {op.cuda};")
    return ", ".join(inputs), " ".join([*body, "y = v;"])


def _matmul_shapes(case: Case) -> tuple[tuple[int, int], ...]:
    """Return the shapes of first operand, output and second operand."""
    m, k, n = case.shape
    return (m, k), (m, n), (k, n)
