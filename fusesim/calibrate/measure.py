"""Measures cases on a GPU. The only file that imports CuPy.

Protocol. Inputs hold pseudo-random normal numbers, never zeros. A pass runs the chain once on each of `sets`
buffer sets; inputs and outputs rotate over the sets, the intermediates of an unfused chain alternate between two
buffers, as a caching allocator would reuse them. ``graph``: one pass captured in a CUDA graph, events around a
replay, divided by the sets. ``stream``: passes issued while an earlier kernel still holds the stream, so that
the queue never runs empty; events around them. ``latency``: one chain on an idle device, host clock from the
first launch to the end of the synchronise, less the measured cost of calling the driver through Python
(`call_overhead`). Host intervals are as measured, that cost included. Every figure is a median with 10th and 90th
percentile, after warm-up. Before anything, rounds of launches and graph replays bring the process into the state
that ordinary programs are in.
"""

from __future__ import annotations

import ctypes
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusesim.calibrate import torch_path
from fusesim.calibrate.cases import Case, Sample, memory_needed, set_count
from fusesim.calibrate.cupy_path import CupyPath
from fusesim.calibrate.environment import gpu_facts
from fusesim.calibrate.kernels import EMPTY_SOURCE, THREADS, blocks, chain_source
from fusesim.calibrate.pool import Pool
from fusesim.calibrate.timing import Timer, trivial_call
from fusesim.errors import MeasurementError, excerpt
from fusesim.ops import DTYPES, OPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from fusesim.calibrate import session

SETTLING_ROUNDS: Final = 8
"""Rounds of launches on the default stream and graph replays on another before anything is measured. A process that
has launched on one stream only starts each kernel of a graph 0.18 us sooner (H200, driver 580: 0.85 instead of
1.03 us for the smallest kernel; the third round of 1000 launches ends it). Ordinary programs use the default
stream too, so that is no state in which anybody's kernels run."""
SETTLING_LAUNCHES: Final = 1000
COMPILERS: Final = min(16, os.cpu_count() or 1)
"""Kernels compiled side by side."""
DRIVER: Final = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def open_bench(paths: Sequence[str]) -> session.Bench:
    """Return what measures these paths on the GPU in use.

    Raises
    ------
    MeasurementError
        If there is no GPU, no CuPy, no PyTorch where a path needs it, or too little memory is free.
    """
    library = torch_path.import_torch() if torch_path.needed(paths) else None
    bench = Bench()
    return torch_path.WithTorch(bench, library) if library else bench


class Bench:
    """A GPU with its compiled kernels and one pool of memory."""

    def __init__(self) -> None:
        self.cupy = _import_cupy()
        self.driver = _load_driver()
        with cuda_errors(self.cupy):
            self.gpu = gpu_facts(self.cupy)
            self.stream = self.cupy.cuda.Stream(non_blocking=True)
            self.pool = Pool(self.cupy, self.stream)
            self.timer = Timer(self.cupy, self.driver, self.stream)
            self.empty = self.cupy.RawModule(code=EMPTY_SOURCE).get_function("empty")
        self.cupy_path = CupyPath(self.cupy, self.pool)
        self.modules: dict[tuple[str, ...], Any] = {}
        self.handles: dict[tuple[str, ...], Any] = {}
        self.registers: dict[tuple[str, ...], int] = {}

    def environment(self) -> dict[str, str | float | int]:
        """Return what the measurements depend on and this object knows."""
        facts = {"pool_bytes": self.pool.size, "call_overhead": self.timer.call_overhead}
        return self.gpu.environment() | facts

    def fits(self, case: Case) -> bool:
        """Return whether the pool holds the tensors of a case."""
        return memory_needed(case, self.gpu.cache) <= self.pool.size

    def settle(self, progress: Callable[[int, int], None]) -> None:
        """Bring the process into the state that ordinary programs are in, see `SETTLING_ROUNDS`."""
        smallest = Case(kind="empty", probe="settle", sets=64)
        with cuda_errors(self.cupy):
            for done in range(SETTLING_ROUNDS):
                progress(done, SETTLING_ROUNDS)
                for _ in range(SETTLING_LAUNCHES):
                    self.empty((1,), (1,), ())
                self.cupy.cuda.Device().synchronize()
                self.measure(smallest)
        self.timer.call_overhead = self._call_overhead()
        progress(SETTLING_ROUNDS, SETTLING_ROUNDS)

    def _call_overhead(self) -> float:
        """Return what calling the driver through ctypes costs: a call that does nothing, with a launch's arguments.

        The arguments beyond the first are ignored by the callee, as C calls allow; converting them is what costs.
        """
        version = ctypes.byref(ctypes.c_int())
        return trivial_call(lambda: self._call(self.driver.cuDriverGetVersion, version, 1, None))

    def compile(self, cases: Iterable[Case], progress: Callable[[int, int], None]) -> None:
        """Compile every kernel that the cases need, side by side."""
        cases = list(cases)
        wanted = dict.fromkeys((c.dtype, *group) for c in cases if _is_raw(c) for group in c.groups)
        keys = [key for key in wanted if key not in self.handles]
        warm = {(c.dtype, c.fused, c.ops): c for c in cases if c.path == "cupy" and c.kind == "chain"}
        jobs = [partial(self._module, key) for key in keys]
        jobs += [partial(self.cupy_path.warm_up, case) for case in warm.values()]
        progress(0, len(jobs))
        threads = ThreadPoolExecutor(COMPILERS)
        try:
            with cuda_errors(self.cupy):
                for done, outcome in enumerate(threads.map(partial.__call__, jobs), start=1):
                    if done <= len(keys):
                        self._keep(keys[done - 1], outcome)
                    progress(done, len(jobs))
                self.cupy.cuda.Device().synchronize()
        finally:
            threads.shutdown(cancel_futures=True)  # an interrupt does not wait for kernels that nobody needs now

    def _module(self, key: tuple[str, ...]) -> Any:
        dtype, *names = key
        code = chain_source([OPS[name] for name in names], dtype, DTYPES[dtype].itemsize)
        module = self.cupy.RawModule(code=code, options=("--std=c++17",))
        module.compile()
        return module

    def _keep(self, key: tuple[str, ...], module: Any) -> None:
        """Keep the driver's handle of a compiled kernel."""
        kernel = module.get_function("chain")
        self.handles[key] = ctypes.c_void_p(kernel.kernel.ptr)
        self.registers[key] = int(kernel.num_regs)
        self.modules[key] = module

    def measure(self, case: Case) -> Sample:
        """Measure one case.

        Raises
        ------
        MeasurementError
            If the GPU or its driver fails.
        """
        with cuda_errors(self.cupy):
            self.stream.synchronize()
            sets = set_count(case, self.gpu.cache)
            chains = self.cupy_path.chains(case, sets) if case.path == "cupy" else self._chains(case, sets)
            times, host = self._time(case, chains)
        low, median, high = (float(value) for value in np.quantile(times, [0.1, 0.5, 0.9]))
        registers = (
            max((self.registers[case.dtype, *group] for group in case.groups), default=0) if _is_raw(case) else 0
        )
        return Sample(median=median, low=low, high=high, repeats=len(times), sets=sets, host=host, registers=registers)

    def _time(self, case: Case, chains: Sequence[Callable[[], None]]) -> tuple[list[float], float | None]:
        """Time the chains in the case's mode, and the host where it is what a launch waits for."""
        if case.mode == "stream":
            return self.timer.queue(chains, case.kernels)
        return (self.timer.graph if case.mode == "graph" else self.timer.latency)(chains), None

    def _chains(self, case: Case, sets: int) -> list[Callable[[], None]]:
        """Return, per buffer set, a function that launches the case once through the driver."""
        if case.kind == "empty":
            empty = ctypes.c_void_p(self.empty.kernel.ptr)
            return [lambda: self._call(self.driver.cuLaunchKernel, empty, 1, None)] * sets
        own, shared = self.pool.carve(case, sets)
        handles = [self.handles[case.dtype, *group] for group in case.groups]
        grid = blocks(case.elements, DTYPES[case.dtype].itemsize)

        launch = self.driver.cuLaunchKernel

        def runner(arguments: Sequence[Any]) -> Callable[[], None]:
            launches = list(zip(handles, arguments, strict=True))

            def run() -> None:
                for handle, (packed, _) in launches:
                    self._call(launch, handle, grid, packed)

            return run

        return [runner(_pack(case, tensors, shared)) for tensors in own]

    def _call(self, function: Any, first: Any, grid: int, arguments: Any) -> None:
        """Call the driver itself with the arguments of a launch, so that the cost is the driver's and not CuPy's."""
        stream = ctypes.c_void_p(self.stream.ptr)
        status = function(first, grid, 1, 1, THREADS, 1, 1, 0, stream, arguments, None)
        if status:
            raise MeasurementError(f"the driver refused a kernel launch with error {status}")


def _pack(case: Case, tensors: Sequence[int], shared: Sequence[int]) -> list[Any]:
    """Return the arguments of each kernel of a chain: an array for the driver, and the values it points at."""
    extra, rows = iter(tensors[2:]), iter(shared[2:])
    packed = []
    for index, group in enumerate(case.groups):
        source = tensors[0] if index == 0 else shared[(index - 1) % 2]
        target = tensors[1] if index == len(case.groups) - 1 else shared[index % 2]
        own = [next(extra) for name in group if OPS[name].tensors]
        common = [next(rows) for name in group if OPS[name].rows]
        values: list[Any] = [ctypes.c_void_p(address) for address in (source, target, *own, *common)]
        values += [ctypes.c_longlong(case.elements), ctypes.c_int(case.row or 1)]
        packed.append(((ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values)), values))
    return packed


def _is_raw(case: Case) -> bool:
    """Return whether the case runs kernels of our own source."""
    return case.kind == "chain" and case.path == "cuda"


def _import_cupy() -> Any:
    try:
        import cupy  # noqa: PLC0415 - optional, and only here
    except ImportError as error:
        if error.name == "cupy":
            raise MeasurementError('measuring needs CuPy; install it with: pip install "fusesim[gpu]"') from error
        raise MeasurementError(f"CuPy cannot be imported: {_first_line(error)}") from error
    return cupy


def _load_driver() -> Any:
    try:
        return ctypes.CDLL(DRIVER)
    except OSError as error:
        raise MeasurementError(
            f"no NVIDIA driver ({DRIVER}) is installed here; run this where the GPU is, or give --from RAW.json"
        ) from error


@contextmanager
def cuda_errors(cupy: Any) -> Iterator[None]:
    """Turn what CUDA and its compiler raise into one sentence."""
    try:
        yield
    except (RuntimeError, MemoryError, ImportError, cupy.cuda.compiler.CompileException) as error:
        raise MeasurementError(_explain(error)) from error


def _explain(error: BaseException) -> str:
    """Say what an error of CUDA means."""
    text = _first_line(error)
    meanings = (
        (("NoDevice", "no CUDA-capable device"), "this machine has no CUDA GPU; run this where one is"),
        (
            ("InsufficientDriver", "UnsupportedPtx", "NoKernelImage", "invalid device function"),
            "the GPU's driver and CuPy's CUDA do not match; update the driver, or install the CuPy for its CUDA",
        ),
        (("libnvrtc", "NVRTC", "nvrtc", "CompileException"), "CUDA's run-time compiler does not work"),
        (("MemoryAllocation", "out of memory", "Out of memory"), "the GPU ran out of memory; end what else runs on it"),
    )
    said = f"{type(error).__name__} {text}"
    meaning = next((meaning for marks, meaning in meanings if any(mark in said for mark in marks)), "CUDA failed")
    return f"{meaning} ({text})"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" =")]
    return excerpt(lines[0] if lines else type(error).__name__, 160)
