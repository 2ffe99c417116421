"""The plumbing of measuring, on something that looks like CuPy and a driver: what is called, and in what order."""

from unittest.mock import MagicMock

import numpy as np
import pytest

from fusesim.calibrate import measure, pool
from fusesim.calibrate.cases import Case
from fusesim.calibrate.cupy_path import elementwise_source
from fusesim.errors import MeasurementError

GIB = 1 << 30


class CompileException(Exception):  # noqa: N818 - its name in CuPy
    pass


class Stream:
    """A stream that writes down what happens on it."""

    ptr = 7

    def __init__(self, log):
        self.log = log

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def synchronize(self):
        self.log.append("synchronize")

    def begin_capture(self):
        self.log.append("begin_capture")

    def end_capture(self):
        self.log.append("end_capture")
        graph = MagicMock()
        graph.launch.side_effect = lambda _: self.log.append("replay")
        return graph


class Driver:
    """A driver that writes down launches."""

    def __init__(self, log):
        self.log, self.status = log, 0

    def cuLaunchKernel(self, function, grid, *rest):  # noqa: N802 - the driver's name
        assert len(rest) == 9
        self.log.append(("launch", function.value, grid))
        return self.status

    def cuDriverGetVersion(self, *arguments):  # noqa: N802
        assert len(arguments) == 11  # as many as a launch
        return 0

    def cuStreamSynchronize(self, _):  # noqa: N802
        self.log.append("driver synchronize")
        return 0


def fake_cupy(log, free):
    cupy = MagicMock()
    cupy.__version__ = "14.2.0"
    cupy.cuda.compiler.CompileException = CompileException
    cupy.cuda.runtime.memGetInfo.return_value = (free, 2 * free)
    cupy.cuda.runtime.getDeviceProperties.return_value = {
        "name": b"NVIDIA H200",
        "multiProcessorCount": 132,
        "totalGlobalMem": 150_000_000_000,
        "l2CacheSize": 60 << 20,
        "major": 9,
        "minor": 0,
    }
    cupy.cuda.runtime.driverGetVersion.return_value = 13010
    cupy.cuda.runtime.runtimeGetVersion.return_value = 13000
    cupy.cuda.nvrtc.getVersion.return_value = (13, 0)
    cupy.cuda.Device.return_value.id = 0
    cupy.cuda.alloc.return_value.ptr = 1 << 40
    cupy.cuda.Stream.side_effect = lambda **_: Stream(log)
    cupy.cuda.get_elapsed_time.return_value = 0.5  # ms
    kernel = cupy.RawModule.return_value.get_function.return_value
    kernel.kernel.ptr, kernel.num_regs = 99, 32
    cupy.float32, cupy.float16, cupy.float64 = np.float32, np.float16, np.float64
    return cupy


@pytest.fixture
def log():
    return []


@pytest.fixture
def make(log, monkeypatch):
    def make(free=100 * GIB):
        cupy = fake_cupy(log, free)
        monkeypatch.setattr(measure, "_import_cupy", lambda: cupy)
        monkeypatch.setattr(measure, "_load_driver", lambda: Driver(log))
        return measure.Bench()

    return make


@pytest.fixture
def bench(make):
    return make()


def chain(**fields):
    return Case(**{"kind": "chain", "probe": "test", "ops": ("mul", "add"), "elements": 5000, "sets": 3, **fields})


def compiled(bench, *cases):
    bench.compile(cases, lambda *_: None)


def test_a_graph_holds_one_pass_over_the_sets(bench, log):
    case = chain(fused=False)
    compiled(bench, case)
    log.clear()
    sample = bench.measure(case)
    captured = log[log.index("begin_capture") : log.index("end_capture")]
    # 625 vectors of 8 bf16: 3 blocks of 256; 2 kernels on each of 3 sets
    assert captured[1:] == [("launch", 99, 3)] * 6
    assert sample.median == pytest.approx(0.5e-3 / 3)
    assert (sample.sets, sample.registers, sample.host) == (3, 32, None)
    assert log.count("replay") == 3 + sample.repeats


def test_a_fused_chain_is_one_kernel(bench, log):
    compiled(bench, chain())
    log.clear()
    bench.measure(chain())
    assert log[log.index("begin_capture") : log.index("end_capture")][1:] == [("launch", 99, 3)] * 3


def test_a_stream_is_held_while_it_is_filled(bench, log):
    case = chain(mode="stream", fused=False)
    compiled(bench, case)
    bench.timer.spin = lambda *_: log.append("spin")
    log.clear()
    sample = bench.measure(case)
    first = log.index("spin")
    second = log.index("spin", first + 1)
    launches = [entry for entry in log[first:second] if entry[0] == "launch"]
    assert len(launches) == 2 * 60  # a chain takes 0.5 ms here: 30 ms of them
    assert sample.median == pytest.approx(0.5e-3 / 60)
    assert 0 < sample.host < 1e-3


def test_latency_is_from_idle_to_the_end_of_a_synchronise(bench, log):
    case = chain(mode="latency")
    compiled(bench, case)
    log.clear()
    bench.timer.call_overhead = 0.0
    sample = bench.measure(case)
    assert log[-3:] == ["synchronize", ("launch", 99, 3), "driver synchronize"]
    assert 0 < sample.median < 1e-2
    bench.timer.call_overhead = 1.0
    assert bench.measure(case).median == 0  # all of it taken off


def test_tensors_lie_as_separate_arrays_would(bench):
    case = chain(ops=("add_tensor", "add_row"), row=5, elements=5000)
    own, shared = bench.pool.carve(case, 3)
    size = 10_240  # 5000 bf16, padded to a multiple of 512
    base = bench.pool.memory.ptr
    assert shared == [base, base + size, base + 2 * size]  # two intermediates and a row
    start = base + 3 * size
    inputs, outputs, operands = zip(*own, strict=True)
    assert inputs == (start, start + size, start + 2 * size)
    assert outputs == tuple(address + 3 * size for address in inputs)
    assert operands == tuple(address + 6 * size for address in inputs)
    (_, _, arguments), _ = bench.pool.kernel.call_args
    assert (int(arguments[0]), int(arguments[1])) == (base, 12 * size // 2)  # all of it is filled anew


def test_arguments_of_each_kernel():
    case = chain(ops=("add_tensor", "mul_row", "add"), fused=False, row=5)
    packed = measure._pack(case, [10, 20, 30], [1, 2, 3])  # noqa: SLF001
    pointers = [[value.value for value in values] for _, values in packed]
    assert pointers == [[10, 1, 30, 5000, 5], [1, 2, 3, 5000, 5], [2, 20, 5000, 5]]


def test_settling_launches_on_both_kinds_of_stream(bench, log):
    told = []
    bench.settle(lambda done, total: told.append((done, total)))
    assert bench.empty.call_count == 8 * 1000
    assert log.count("begin_capture") == 8
    assert told[-1] == (8, 8)
    assert 0 < bench.environment()["call_overhead"] < 1e-3


def test_the_environment_names_everything(bench):
    facts = bench.environment()
    assert facts["gpu"] == "NVIDIA H200"
    assert (facts["cuda_driver"], facts["cuda_runtime"], facts["nvrtc"]) == ("13.1", "13.0", "13.0")
    assert facts["pool_bytes"] == 18 * GIB


def test_every_kernel_is_compiled_once(bench):
    told = []
    cases = [chain(), chain(elements=7), chain(fused=False), chain(path="cupy", dtype="fp32")]
    bench.compile(cases, lambda done, total: told.append((done, total)))
    assert set(bench.handles) == {("bf16", "mul", "add"), ("bf16", "mul"), ("bf16", "add")}
    assert told == [(done, 4) for done in range(5)]


@pytest.mark.parametrize(
    ("free", "size"), [(100 * GIB, 18 * GIB), (10 * GIB, 8 * GIB), (5 * GIB // 2, 2 * GIB), (2 * GIB, None), (0, None)]
)
def test_the_pool_adapts_to_what_is_free(free, size):
    if size is None:
        with pytest.raises(MeasurementError, match=r"GB of memory free and measuring needs 2\.7 GB"):
            pool.pool_size(free)
    else:
        assert pool.pool_size(free) == size


def test_what_does_not_fit_is_said(make):
    small = make(free=3 * GIB)
    assert small.fits(chain())
    assert not small.fits(chain(elements=1 << 29))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected"), "this machine has no CUDA GPU"),
        (RuntimeError("cudaErrorInsufficientDriver: CUDA driver version"), "the GPU's driver and CuPy's CUDA do not"),
        (MemoryError("Out of memory allocating 18 bytes"), "the GPU ran out of memory; end what else runs on it"),
        (CompileException("chain.cu(3): error: no"), "CUDA's run-time compiler does not work"),
        (ImportError("\n=====\nCuPy failed to load libnvrtc.so.13: OSError\n====="), "CUDA's run-time compiler"),
        (RuntimeError("cudaErrorLaunchFailure: unspecified"), "CUDA failed (cudaErrorLaunchFailure: unspecified)"),
    ],
)
def test_what_cuda_raises_becomes_a_sentence(bench, error, sentence):
    bench.stream.synchronize = MagicMock(side_effect=error)
    with pytest.raises(MeasurementError) as caught:
        bench.measure(chain())
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_a_launch_that_the_driver_refuses(bench):
    compiled(bench, chain())
    bench.driver.status = 701
    with pytest.raises(MeasurementError, match="the driver refused a kernel launch with error 701"):
        bench.measure(chain())


@pytest.mark.parametrize(
    ("case", "function"),
    [
        (chain(path="cupy", dtype="fp32", ops=("exp",), fused=False), "exp"),
        (chain(path="cupy", dtype="fp16", ops=("add_tensor",), fused=False), "add"),
        (chain(path="cupy", dtype="fp32"), "ElementwiseKernel"),
        (Case(kind="matmul", probe="t", path="cupy", mode="stream", dtype="fp16", shape=(4, 5, 6), sets=2), "matmul"),
        (Case(kind="reduction", probe="t", path="cupy", mode="stream", dtype="fp32", shape=(4, 5), sets=2), "sum"),
        (Case(kind="empty", probe="t", path="cupy", sets=2), "negative"),
    ],
)
def test_cupy_runs_its_own_kernels(bench, case, function):
    compiled(bench, case)
    bench.measure(case)
    assert getattr(bench.cupy, function).called


def test_operands_of_a_matmul_have_their_shapes(bench):
    case = Case(kind="matmul", probe="t", path="cupy", mode="stream", dtype="fp16", shape=(4, 5, 6), sets=2)
    bench.measure(case)
    assert [call.args[0] for call in bench.cupy.ndarray.call_args_list[:3]] == [(4, 5), (4, 6), (5, 6)]


def test_half_precision_chains_compute_in_single():
    inputs, body = elementwise_source(chain(path="cupy", dtype="fp64", ops=("add_tensor", "mul_tensor")))
    assert inputs == "T x, T t1, T t2"
    assert body.startswith("double v = x; { const double t = t1; v = v + t; }")


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(MeasurementError, match=r'measuring needs CuPy; install it with: pip install "fusesim\[gpu\]"'):
        measure.open_bench(["cuda"])


def test_without_a_driver(monkeypatch):
    monkeypatch.setattr(measure, "DRIVER", "libabsent.so.1")
    with pytest.raises(MeasurementError, match=r"no NVIDIA driver \(libabsent\.so\.1\) is installed here; .*--from"):
        measure._load_driver()  # noqa: SLF001


def test_without_pytorch(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MeasurementError, match="paths torch and inductor need PyTorch"):
        measure.open_bench(["cuda", "torch"])
