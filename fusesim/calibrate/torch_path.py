"""What PyTorch itself runs: an eager kernel per op, a chain compiled by torch.compile, matmuls and row sums.

PyTorch is handed in, never imported at the top: it is optional. Tensors are PyTorch's own, so that its allocator
places them; outputs of all buffer sets are kept until a pass has ended.
"""

from __future__ import annotations

import importlib
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusesim.calibrate.cases import Case, Sample, memory_needed, set_count
from fusesim.calibrate.timing import ENOUGH, HOLD_CYCLES, MIN_QUEUED_CHAINS, MIN_REPEATS, QUEUED_KERNELS, WARMUPS
from fusesim.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fusesim.calibrate.environment import Environment, Gpu
    from fusesim.calibrate.session import Bench

PATHS: Final = ("torch", "inductor")

EXPRESSIONS: Final = {
    "add": "x + 0.5",
    "mul": "x * 1.0009765625",
    "relu": "torch.relu(x)",
    "neg": "-x",
    "abs": "torch.abs(x)",
    "gelu": "torch.nn.functional.gelu(x)",
    "add_tensor": "x + {operand}",
}
"""PyTorch's own form of an op."""


def needed(paths: Sequence[str]) -> bool:
    """Return whether one of these paths is PyTorch's."""
    return any(path in PATHS for path in paths)


def import_torch() -> Any:
    """Return PyTorch.

    Raises
    ------
    MeasurementError
        If it is missing, or sees no GPU.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise MeasurementError(
            "paths torch and inductor need PyTorch, which cannot be imported here; leave them out of --paths"
        ) from error
    if not torch.cuda.is_available():
        raise MeasurementError("PyTorch sees no CUDA GPU here; leave torch and inductor out of --paths")
    return torch


class WithTorch:
    """A bench that also measures PyTorch's paths."""

    def __init__(self, bench: Bench, torch: Any) -> None:
        self.bench, self.torch = bench, torch
        self.compiled: dict[tuple[Any, ...], Any] = {}
        self.types = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
        torch.manual_seed(0)

    @property
    def gpu(self) -> Gpu:
        """What the GPU is."""
        return self.bench.gpu

    def environment(self) -> Environment:
        """Return what the measurements depend on."""
        return self.bench.environment() | {"torch": str(self.torch.__version__)}

    def fits(self, case: Case) -> bool:
        """Return whether there is memory for the case."""
        if case.path not in PATHS:
            return self.bench.fits(case)
        free, _ = self.torch.cuda.mem_get_info()
        return 2 * memory_needed(case, self.gpu.cache) <= int(free)

    def compile(self, cases: Iterable[Case], progress: Callable[[int, int], None]) -> None:
        """Compile what the cases need."""
        cases = list(cases)
        self.bench.compile([case for case in cases if case.path not in PATHS], progress)
        chains = [case for case in cases if case.path == "inductor"]
        for done, case in enumerate(chains, start=1):
            self._chain(case)(self._inputs(case))
            progress(done, len(chains))

    def settle(self, progress: Callable[[int, int], None]) -> None:
        """Bring the process into the state to measure in."""
        self.bench.settle(progress)

    def measure(self, case: Case) -> Sample:
        """Measure one case."""
        if case.path not in PATHS:
            return self.bench.measure(case)
        try:
            return self._measure(case)
        except RuntimeError as error:
            raise MeasurementError(f"{case.key}: PyTorch failed: {str(error).partition(chr(10))[0]}") from error

    def _measure(self, case: Case) -> Sample:
        sets = set_count(case, self.gpu.cache)
        chain, inputs = self._chain(case), [self._inputs(case) for _ in range(sets)]
        times, host = self._graph(chain, inputs) if case.mode == "graph" else self._queue(chain, inputs, case.kernels)
        low, median, high = (float(value) for value in np.quantile(times, [0.1, 0.5, 0.9]))
        return Sample(median=median, low=low, high=high, repeats=len(times), sets=sets, host=host)

    def _inputs(self, case: Case) -> list[Any]:
        """Return the inputs of one buffer set: normal numbers."""
        shapes: list[tuple[int, ...]]
        if case.kind == "matmul":
            m, k, n = case.shape
            shapes = [(m, k), (k, n)]
        else:
            extra = sum(name == "add_tensor" for name in case.ops)
            shapes = [case.shape or (case.elements,)] * (1 + extra)
        return [self.torch.randn(shape, dtype=self.types[case.dtype], device="cuda") for shape in shapes]

    def _chain(self, case: Case) -> Callable[[Sequence[Any]], Any]:
        """Return a function of the inputs that runs the case and returns its output."""
        torch = self.torch
        if case.kind == "matmul":
            return lambda tensors: torch.matmul(*tensors)
        if case.kind == "reduction":
            return lambda tensors: torch.sum(tensors[0], dim=1)

        if case.path == "torch":
            eager = chain_function(torch, case.ops)
            return lambda tensors: eager(*tensors)
        key = (case.ops, case.dtype, case.elements)
        if key not in self.compiled:  # a function of its own, so that its guards hold at the first look
            self.compiled[key] = torch.compile(chain_function(torch, case.ops), dynamic=False)
        compiled = self.compiled[key]
        return lambda tensors: compiled(*tensors)

    def _graph(self, chain: Callable[[Sequence[Any]], Any], inputs: Sequence[Any]) -> tuple[list[float], None]:
        """Time a pass over the buffer sets that is captured in a graph, per chain."""
        torch, graph = self.torch, self.torch.cuda.CUDAGraph()
        for _ in range(WARMUPS):
            chain(inputs[0])
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            kept = [chain(tensors) for tensors in inputs]
        times = [self._between_events(graph.replay) / len(kept) for _ in range(WARMUPS + MIN_REPEATS)]
        return times[WARMUPS:], None

    def _queue(
        self, chain: Callable[[Sequence[Any]], Any], inputs: Sequence[Any], kernels: int
    ) -> tuple[list[float], float]:
        """Queue chains behind a kernel that holds the stream; return device times and the host's, per chain."""
        torch = self.torch
        for _ in range(WARMUPS):
            chain(inputs[0])
        torch.cuda.synchronize()
        once = self._between_events(lambda: chain(inputs[0]))
        passes = min(max(QUEUED_KERNELS // kernels, 1), max(int(ENOUGH / once), MIN_QUEUED_CHAINS))
        queued = [inputs[index % len(inputs)] for index in range(passes)]
        times, hosts = [], []

        def issue() -> None:
            began = time.perf_counter()
            for tensors in queued:
                chain(tensors)
            hosts.append((time.perf_counter() - began) / passes)

        for _ in range(WARMUPS + MIN_REPEATS):
            torch.cuda._sleep(int(HOLD_CYCLES))  # noqa: SLF001 - PyTorch's own tests hold a stream so
            times.append(self._between_events(issue) / passes)
        return times[WARMUPS:], float(np.median(hosts[WARMUPS:]))

    def _between_events(self, run: Callable[[], object]) -> float:
        """Return the device's time between an event before and one after a run. [s]."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e-3


def chain_source(ops: Sequence[str]) -> str:
    """Return a chain as a user of PyTorch would write it.

    Examples
    --------
    >>> print(chain_source(["add", "add_tensor"]))
    def chain(x, t0):
        x = x + 0.5
        x = x + t0
        return x
    """
    operands = iter(extra := [f"t{index}" for index in range(sum(name == "add_tensor" for name in ops))])
    lines = [EXPRESSIONS[name].format(operand=next(operands) if name == "add_tensor" else "") for name in ops]
    body = [f"    x = {line}" for line in lines]
    return "\n".join([f"def chain({', '.join(['x', *extra])}):", *body, "    return x"])


def chain_function(torch: Any, ops: Sequence[str]) -> Any:
    """Return a chain as a function with code of its own: PyTorch keeps what it compiled with the code."""
    names = {"torch": torch}
    exec(chain_source(ops), names)  # noqa: S102 - our own table's expressions
    return names["chain"]
