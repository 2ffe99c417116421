"""Measures cases on a GPU. The only file that imports CuPy.

Protocol. Inputs hold pseudo-random normal numbers, never zeros. A pass runs the chain once on each of `sets`
buffer sets; inputs and outputs rotate over the sets, the intermediates of an unfused chain alternate between two
buffers, as a caching allocator would reuse them. ``graph``: one pass captured in a CUDA graph, events around a
replay, divided by the sets. ``stream``: passes issued while an earlier kernel still holds the stream, so that
the queue never runs empty; events around them. ``latency``: one chain on an idle device, host clock from the
first launch to the end of the synchronise. Every figure is a median with 10th and 90th percentile, after warm-up.
"""

from __future__ import annotations

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusesim.calibrate.cases import Case, set_count
from fusesim.calibrate.kernels import EMPTY_SOURCE, THREADS, blocks, chain_source
from fusesim.errors import MeasurementError
from fusesim.ops import DTYPES, OPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

WARMUPS, MIN_REPEATS, MAX_REPEATS = 3, 7, 25
ENOUGH: Final = 0.03
"""Repeats of one case stop after this long, once there are `MIN_REPEATS`. [s]"""
QUEUED_KERNELS: Final = 200
"""Kernels put behind a blocked stream; drivers queue about a thousand."""
POOL_BYTES: Final = 18 << 30
SETTLING_ROUNDS: Final = 8
"""Rounds of launches on the default stream and graph replays on another before anything is measured. A process that
has launched on one stream only starts each kernel of a graph 0.18 us sooner (H200, driver 580: 0.85 instead of
1.03 us for the smallest kernel; the third round of 1000 launches ends it). Ordinary programs use the default
stream too, so that is no state in which anybody's kernels run."""


_FILL = r"""
extern "C" __global__ void fill(unsigned short* out, const long long n, const int kind) {
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += 256LL * gridDim.x) {
        unsigned long long z = (i + 1) * 0x9E3779B97F4A7C15ULL;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL; z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL; z ^= z >> 31;
        const float u = ((unsigned)(z >> 32) + 1.0f) * 2.3283064e-10f, w = (unsigned)z * 2.3283064e-10f;
        const float g = sqrtf(-2.0f * logf(fminf(u, 1.0f))) * cospif(2.0f * w);
        if (kind == 2) { ((double*)out)[i] = g; }
        else if (kind == 1) { ((float*)out)[i] = g; }
        else if (kind == 0) { out[i] = (unsigned short)(__float_as_uint(g) >> 16); }
        else {
            unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(g)); out[i] = h;
        }
    }
}
extern "C" __global__ void spin(const long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) { }
}
"""
_FILL_KINDS = {"bf16": 0, "fp32": 1, "fp64": 2, "fp16": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The outcome of one case: seconds per chain, median with 10th and 90th percentile, and the buffer sets."""

    median: float
    low: float
    high: float
    repeats: int
    sets: int
    host: float | None = None
    registers: int = 0


class Bench:
    """A GPU with its compiled kernels and one pool of memory."""

    def __init__(self) -> None:
        import cupy  # noqa: PLC0415 - optional, and only here

        self.cupy = cupy
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.stream = cupy.cuda.Stream(non_blocking=True)
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        self.cache = float(properties["l2CacheSize"])
        self.modules: dict[tuple[str, ...], Any] = {}
        self.handles: dict[Any, Any] = {}
        self.registers: dict[tuple[str, ...], int] = {}
        free, _ = cupy.cuda.runtime.memGetInfo()
        if free < POOL_BYTES * 1.2:
            raise MeasurementError(
                f"the GPU has {free / 1e9:.1f} GB free, measuring needs {POOL_BYTES * 1.2 / 1e9:.1f}"
            )
        self.pool = cupy.cuda.alloc(POOL_BYTES)
        tools = cupy.RawModule(code=_FILL, options=("--std=c++17",))
        self.fill, self.spin = tools.get_function("fill"), tools.get_function("spin")
        self.empty = cupy.RawModule(code=EMPTY_SOURCE).get_function("empty")
        self._settle()

    def _settle(self) -> None:
        """Bring the process into the state that ordinary programs are in, see `SETTLING_ROUNDS`."""
        smallest = Case(kind="empty", probe="settle", sets=64)
        for _ in range(SETTLING_ROUNDS):
            for _ in range(1000):
                self.empty((1,), (1,), ())
            self.cupy.cuda.Device().synchronize()
            self.measure(smallest)

    def compile(self, cases: Iterable[Case], progress: Callable[[], None] = lambda: None) -> None:
        """Compile every kernel that the cases need, side by side."""
        wanted = dict.fromkeys(key for case in cases for key in _kernel_keys(case))
        with ThreadPoolExecutor(8) as threads:
            for key, module in zip(wanted, threads.map(self._module, wanted), strict=True):
                self.modules[key] = module
                progress()
        for key in wanted:
            self._handle(key)

    def _module(self, key: tuple[str, ...]) -> Any:
        dtype, *names = key
        code = chain_source([OPS[name] for name in names], dtype, DTYPES[dtype].itemsize)
        module = self.cupy.RawModule(code=code, options=("--std=c++17",))
        module.compile()
        return module

    def _handle(self, key: tuple[str, ...]) -> Any:
        """Return the driver's handle of a kernel."""
        if key not in self.handles:
            if key not in self.modules:
                self.modules[key] = self._module(key)
            kernel = self.modules[key].get_function("chain")
            self.handles[key] = ctypes.c_void_p(kernel.kernel.ptr)
            self.registers[key] = int(kernel.num_regs)
        return self.handles[key]

    def launch(self, handle: Any, grid: int, arguments: Any) -> None:
        """Launch through the driver itself, so that the cost is the driver's and not CuPy's."""
        status = self.driver.cuLaunchKernel(
            handle, grid, 1, 1, THREADS, 1, 1, 0, ctypes.c_void_p(self.stream.ptr), arguments, None
        )
        if status:
            raise MeasurementError(f"the driver refused a kernel launch with error {status}")

    def _fill_pool(self, case: Case, size: int) -> None:
        """Write normal numbers over all the memory of a case; the one before it left its results there."""
        count = -(-size // DTYPES[case.dtype].itemsize)
        with self.stream:
            arguments = (np.uintp(self.pool.ptr), np.int64(count), np.int32(_FILL_KINDS[case.dtype]))
            self.fill((4096,), (256,), arguments)
        self.stream.synchronize()

    def measure(self, case: Case) -> Sample:
        """Measure one case."""
        self.stream.synchronize()
        if case.kind == "empty":
            sets = case.sets or MAX_EMPTY
            chains = [self._empty(case)] * sets
        else:
            sets = set_count(case, self.cache)
            chains = self._cupy_chains(case, sets) if case.path == "cupy" else self._cuda_chains(case, sets)
        run = {"graph": self._graph, "stream": self._stream, "latency": self._latency}[case.mode]
        kernels = 1 if case.fused or case.kind == "empty" else len(case.ops)
        times, host = run(chains, kernels)
        low, median, high = np.quantile(times, [0.1, 0.5, 0.9])
        return Sample(median=float(median), low=float(low), high=float(high), repeats=len(times), sets=sets, host=host)

    def _empty(self, case: Case) -> Callable[[], None]:
        if case.path == "cupy":
            x = self.cupy.zeros(1, self.cupy.float32)
            return lambda: self.cupy.negative(x, out=x)
        handle = ctypes.c_void_p(self.empty.kernel.ptr)
        return lambda: self.launch(handle, 1, None)

    def _carve(self, case: Case, sets: int) -> tuple[list[list[int]], list[int]]:
        """Return the addresses of the tensors of each set, and of two intermediates and of the rows."""
        size = -(-case.elements * DTYPES[case.dtype].itemsize // 512) * 512
        tensors = 2 + sum(OPS[name].tensors for name in case.ops)
        shared = 2 + sum(OPS[name].rows for name in case.ops)
        if (sets * tensors + shared) * size > POOL_BYTES:
            raise MeasurementError(f"{case.key} needs more memory than the pool of {POOL_BYTES / 1e9:.1f} GB")
        self._fill_pool(case, (sets * tensors + shared) * size)
        base = self.pool.ptr
        common = [base + index * size for index in range(shared)]
        start = base + shared * size
        # all inputs, then all outputs, as separately allocated arrays would lie
        return [[start + (t * sets + s) * size for t in range(tensors)] for s in range(sets)], common

    def _cuda_chains(self, case: Case, sets: int) -> list[Callable[[], None]]:
        """Return, per buffer set, a function that launches the chain once."""
        addresses, common = self._carve(case, sets)
        grid = blocks(case.elements, DTYPES[case.dtype].itemsize)
        groups = [case.ops] if case.fused else [(name,) for name in case.ops]
        handles = [self._handle((case.dtype, *group)) for group in groups]

        def prepare(tensors: list[int]) -> list[Any]:
            extra, rows = iter(tensors[2:]), iter(common[2:])
            packed = []
            for index, group in enumerate(groups):
                source = tensors[0] if index == 0 else common[(index - 1) % 2]
                target = tensors[1] if index == len(groups) - 1 else common[index % 2]
                t = [next(extra) for name in group if OPS[name].tensors]
                r = [next(rows) for name in group if OPS[name].rows]
                values: list[Any] = [ctypes.c_void_p(address) for address in (source, target, *t, *r)]
                values += [ctypes.c_longlong(case.elements), ctypes.c_int(case.row or 1)]
                array = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
                packed.append((array, values))  # the array points at the values, so they must live as long
            return packed

        plans = [list(zip(handles, prepare(tensors), strict=True)) for tensors in addresses]

        def runner(plan: list[Any]) -> Callable[[], None]:
            def run() -> None:
                for handle, (arguments, _) in plan:
                    self.launch(handle, grid, arguments)

            return run

        return [runner(plan) for plan in plans]

    def _cupy_chains(self, case: Case, sets: int) -> list[Callable[[], None]]:
        """Return, per buffer set, a function that runs the chain as CuPy would."""
        cupy = self.cupy
        addresses, common = self._carve(case, sets)
        kind = {"fp32": cupy.float32, "fp16": cupy.float16, "fp64": cupy.float64}[case.dtype]

        def view(address: int) -> Any:
            memory = cupy.cuda.MemoryPointer(self.pool.mem, address - self.pool.ptr)
            return cupy.ndarray((case.elements,), kind, memory)

        buffers = [view(address) for address in common[:2]]
        if case.fused:
            kernel = _cupy_fused(cupy, case)
            return [_bind(kernel, [view(address) for address in tensors]) for tensors in addresses]
        steps = [_CUPY_OPS[name] for name in case.ops]

        def runner(tensors: list[int]) -> Callable[[], None]:
            views = [view(address) for address in tensors]

            def run() -> None:
                extra = iter(views[2:])
                for index, step in enumerate(steps):
                    source = views[0] if index == 0 else buffers[(index - 1) % 2]
                    target = views[1] if index == len(steps) - 1 else buffers[index % 2]
                    step(cupy, source, target, extra)

            return run

        return [runner(tensors) for tensors in addresses]

    def _graph(self, chains: Sequence[Callable[[], None]], _: int) -> tuple[list[float], None]:
        with self.stream:
            for chain in chains[:2]:
                chain()
            self.stream.synchronize()
            self.stream.begin_capture()
            for chain in chains:
                chain()
            graph = self.stream.end_capture()
            replay = lambda: graph.launch(self.stream)  # noqa: E731
            return [t / len(chains) for t in self._events(replay)], None

    def _events(self, run: Callable[[], None]) -> list[float]:
        """Time a run by events around it, several times."""
        start, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        for _ in range(WARMUPS):
            run()
        self.stream.synchronize()
        times: list[float] = []
        began = time.perf_counter()
        while len(times) < MIN_REPEATS or (len(times) < MAX_REPEATS and time.perf_counter() - began < ENOUGH):
            start.record(self.stream)
            run()
            end.record(self.stream)
            end.synchronize()
            times.append(self.cupy.cuda.get_elapsed_time(start, end) * 1e-3)
        return times

    def _stream(self, chains: Sequence[Callable[[], None]], kernels: int) -> tuple[list[float], float]:
        """Queue chains behind a kernel that holds the stream, so that they run back to back."""
        passes = max(QUEUED_KERNELS // kernels, 1)
        queue = [chains[index % len(chains)] for index in range(passes)]
        start, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        times, hosts = [], []
        with self.stream:
            for repeat in range(WARMUPS + MIN_REPEATS):
                self.spin((1,), (1,), (np.int64(2e7),))
                start.record(self.stream)
                began = time.perf_counter()
                for chain in queue:
                    chain()
                host = time.perf_counter() - began
                end.record(self.stream)
                end.synchronize()
                if repeat >= WARMUPS:
                    times.append(self.cupy.cuda.get_elapsed_time(start, end) * 1e-3 / passes)
                    hosts.append(host / passes)
        return times, float(np.median(hosts))

    def _latency(self, chains: Sequence[Callable[[], None]], _: int) -> tuple[list[float], None]:
        times = []
        with self.stream:
            for repeat in range(WARMUPS + MAX_REPEATS):
                self.stream.synchronize()
                began = time.perf_counter()
                chains[repeat % len(chains)]()
                self.driver.cuStreamSynchronize(ctypes.c_void_p(self.stream.ptr))
                if repeat >= WARMUPS:
                    times.append(time.perf_counter() - began)
        return times, None


MAX_EMPTY: Final = 256


def _kernel_keys(case: Case) -> list[tuple[str, ...]]:
    """Return the kernels of a case: element type and ops."""
    if case.kind != "chain" or case.path != "cuda":
        return []
    groups = [case.ops] if case.fused else [(name,) for name in case.ops]
    return [(case.dtype, *group) for group in groups]


_CUPY_OPS: Final[dict[str, Any]] = {
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


def _bind(kernel: Any, views: list[Any]) -> Callable[[], None]:
    """Return a call of a fused kernel on the tensors of one buffer set: input, output, extra operands."""
    return lambda: kernel(views[0], *views[2:], views[1])


def _cupy_fused(cupy: Any, case: Case) -> Any:
    """Return one ElementwiseKernel that does the whole chain."""
    inputs, body = ["T x"], ["T v = x;"]
    for name in case.ops:
        op = OPS[name]
        if op.tensors:
            inputs.append(f"T t{len(inputs)}")
            body.append(f"{{ const T t = {inputs[-1].removeprefix('T ')}; v = {op.cuda}; }}")
        else:
            body.append(f"v = {op.cuda};")
    return cupy.ElementwiseKernel(", ".join(inputs), "T y", " ".join(body) + " y = v;", "fusesim_chain")
