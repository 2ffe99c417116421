"""Verification on a bench whose GPU is the host: memory is this process's, kernels are compiled by a C++ compiler."""

import contextlib
import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from fusesim import patterns
from fusesim.builder import Builder
from fusesim.calibrate import measure
from fusesim.calibrate.timing import Timer
from fusesim.emit.api import kernels_of
from fusesim.emit.verify import Verified, deviation, verify
from fusesim.errors import MeasurementError

KIB = 1024


class Stream:
    """A stream that does nothing but count."""

    ptr = 5

    def __init__(self, log):
        self.log = log

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def synchronize(self):
        self.log.append("synchronize")

    def begin_capture(self):
        self.log.append("begin")

    def end_capture(self):
        self.log.append("end")
        return SimpleNamespace(launch=lambda _: self.log.append("replay"))


class Driver:
    """A driver that hands launches to functions on the host."""

    def __init__(self, bench):
        self.bench, self.status = bench, 0

    def cuLaunchKernel(self, function, *rest):  # noqa: N802 - the driver's name
        assert len(rest) == 10
        kernel = self.bench.loaded[function.value]
        assert (rest[0], rest[3]) == (kernel.grid, kernel.threads)
        self.bench.log.append(kernel.name)
        pointers = [ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))[0] for address in rest[8]]
        self.bench.launched.append((kernel, pointers))
        self.bench.run(kernel, pointers)
        return self.status


class Bench:
    """A bench with memory of this process; `run` is what a launch does."""

    def __init__(self, kernels, pool=1 << 20):
        self.log, self.launched = [], []
        self.kernels = {kernel.source: kernel for kernel in kernels}
        self.loaded = {}
        self.memory_itself = np.zeros(pool + 512, np.uint8)
        start = self.memory_itself.ctypes.data
        self.pool = SimpleNamespace(size=pool, memory=SimpleNamespace(ptr=start - start % -512))
        self.gpu = SimpleNamespace(cache=8 * KIB)
        self.stream = Stream(self.log)
        self.driver = Driver(self)
        runtime = SimpleNamespace(memcpy=lambda to, source, size, _: ctypes.memmove(to, source, size))
        events = [SimpleNamespace(record=lambda _: None, synchronize=lambda: None) for _ in range(2)]
        cuda = SimpleNamespace(
            runtime=runtime,
            Event=lambda: events.pop() if events else SimpleNamespace(),
            get_elapsed_time=lambda *_: 0.8,  # ms per replay
            compiler=SimpleNamespace(CompileException=OSError),
        )
        self.cupy = SimpleNamespace(RawModule=self.module, cuda=cuda)
        self.timer = Timer(self.cupy, self.driver, self.stream)
        self.run = lambda *_: None

    def module(self, code, options=()):
        del options
        kernel = self.kernels.get(code)

        def get_function(name):
            if kernel is None:
                return SimpleNamespace(kernel=SimpleNamespace(ptr=1))
            assert name == kernel.name
            handle = 100 + len(self.loaded)
            self.loaded[handle] = kernel
            return SimpleNamespace(kernel=SimpleNamespace(ptr=handle))

        return SimpleNamespace(get_function=get_function)


@pytest.fixture
def bench_of(emit_tools, tmp_path):
    """Return a bench that runs the kernels of a plan on the host."""

    def bench_of(plan, **keywords):
        kernels = [kernel for fused in (True, False) for kernel in kernels_of(plan, fused=fused)]
        bench = Bench(kernels, **keywords)
        library = emit_tools.single_library(kernels, tmp_path)

        def run(kernel, pointers):
            number = kernels.index(kernel)
            getattr(library, f"run_k{number}")((ctypes.c_void_p * len(pointers))(*pointers))

        bench.run = run
        return bench

    return bench_of


def test_both_forms_are_checked_and_timed(emit_tools, bench_of):
    plan = emit_tools.one_group(patterns.add_rmsnorm(4, 64, "fp32"))
    bench = bench_of(plan)
    fused, separate = verify(plan, predicted={"fused": 40e-6, "separate": 200e-6}, bench=bench)
    assert (fused.form, fused.kernels, separate.form, separate.kernels) == ("fused", 1, "separate", 7)
    # x, residual, sum and result, 1 KiB each: 3 x 8 KiB of cache / 4 KiB are 6 sets, at least 8
    assert fused.sets == separate.sets == 8
    assert fused.median == pytest.approx(0.8e-3 / 8)
    assert fused.low <= fused.median <= fused.high
    assert fused.ratio == pytest.approx(0.4)
    assert max(fused.largest_error, separate.largest_error) < 1e-5
    captured = bench.log[bench.log.index("begin") : bench.log.index("end")]
    assert captured[1:] == ["fused_add_rmsnorm_kernel"] * 8


def test_inputs_rotate_and_weights_do_not(emit_tools, bench_of):
    plan = emit_tools.one_group(patterns.bias_relu(4, 64))
    bench = bench_of(plan)
    verify(plan, bench=bench)
    fused = [pointers for kernel, pointers in bench.launched if kernel.name == "add_relu_kernel"]
    x, bias, out = (len({pointers[place] for pointers in fused}) for place in range(3))
    assert (x, bias, out) == (12, 1, 12)  # 3 x 8 KiB of cache / 2 KiB of x and result


def test_intermediates_lie_where_earlier_ones_lay(emit_tools, bench_of):
    plan = emit_tools.one_group(patterns.chain(["add", "mul", "relu", "neg", "abs"], 256, "fp32"))
    bench = bench_of(plan)
    verify(plan, bench=bench)
    written = {pointers[-1] for kernel, pointers in bench.launched if kernel.name in {"add_kernel", "relu_kernel"}}
    assert len(written) == 1  # two buffers take turns: add and relu write the first, mul and neg the second


def test_views_and_tensors_written_over_are_found(emit_tools, bench_of):
    b = Builder("looks")
    x = b.input(4, 16, dtype="fp32")
    y = b.op("exp", b.view(b.op("relu", x, over=True), (8, 8)))
    b.output(b.op("mul", y, scalar=2.0))
    plan = emit_tools.one_group(b.graph())
    fused, separate = verify(plan, bench=bench_of(plan), predicted=lambda form: None if form == "fused" else 1e-6)
    assert (fused.predicted, fused.ratio, separate.predicted) == (None, None, 1e-6)


def test_a_wrong_kernel_is_refused(emit_tools, bench_of):
    plan = emit_tools.one_group(patterns.bias_relu(4, 64))
    bench = bench_of(plan)
    bench.run = lambda *_: None  # nothing is computed
    with pytest.raises(MeasurementError, match="fused: relu differs from numpy's by"):
        verify(plan, bench=bench)


def test_a_refused_launch_and_too_little_memory_are_told(emit_tools, bench_of):
    plan = emit_tools.one_group(patterns.bias_relu(4, 64))
    bench = bench_of(plan, pool=4 * KIB)
    with pytest.raises(MeasurementError, match="verify a smaller size"):
        verify(plan, bench=bench)
    bench = bench_of(plan)
    bench.driver.status = 700
    with pytest.raises(MeasurementError, match="refused to launch add_relu_kernel with error 700"):
        verify(plan, bench=bench)


def test_what_numpy_could_not_check_is_refused_before_anything(emit_tools):
    plan = emit_tools.one_group(patterns.bias_relu(2**14, 2**13))
    with pytest.raises(MeasurementError, match="numpy checks up to 67108864"):  # 2^26
        verify(plan, bench=None)


def test_without_cupy_one_sentence_says_what_to_install(emit_tools, monkeypatch):
    def missing():
        raise MeasurementError('measuring needs CuPy; install it with: pip install "fusesim[gpu]"')

    monkeypatch.setattr(measure, "_import_cupy", missing)
    with pytest.raises(MeasurementError, match="needs CuPy"):
        verify(emit_tools.one_group(patterns.bias_relu(4, 4)))


def test_a_bench_of_its_own_is_settled_first(emit_tools, bench_of, monkeypatch):
    plan = emit_tools.one_group(patterns.bias_relu(4, 64))
    bench = bench_of(plan)
    bench.settle = lambda _: bench.log.append("settled")
    monkeypatch.setattr(measure, "Bench", lambda: bench)
    monkeypatch.setattr(measure, "cuda_errors", lambda _: contextlib.nullcontext())
    verify(plan)
    assert bench.log[0] == "settled"


def test_deviation():
    assert deviation(np.float32([np.inf, 2]), np.float32([np.inf, 2])) == 0
    assert deviation(np.float32([3]), np.float32([1])) == 1.0  # 2 over 1 + 1
    assert deviation(np.float32([np.nan]), np.float32([1])) > 1e300


def test_a_record_says_how_far_off_a_prediction_was():
    row = Verified(
        form="fused",
        kernels=1,
        median=2e-6,
        low=1.9e-6,
        high=2.2e-6,
        repeats=9,
        sets=8,
        largest_error=0,
        predicted=3e-6,
    )
    assert row.ratio == pytest.approx(1.5)
