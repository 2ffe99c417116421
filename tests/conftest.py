"""What all tests share: how hypothesis draws, and the command line run in this process."""

import os
import zlib
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import settings

import fusesim.cli
from fusesim.calibrate.cases import Sample, set_count
from fusesim.calibrate.environment import Gpu
from fusesim.calibrate.fit import predict
from fusesim.calibrate.record import Row
from fusesim.calibration import machine_of
from fusesim.calibrations import shipped_calibrations
from fusesim.store import load_known_device

collect_ignore_glob = ["benchmarks/*"]

settings.register_profile("ci", derandomize=True, deadline=None, database=None, print_blob=False)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for examples in docstrings of the packages only.

    A test module that fails to import would be skipped as one without examples, and then count as imported: its tests
    would vanish without an error.
    """
    return [each for each in (yield) if type(each).__name__ != "DoctestModule"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Keep browser tests on one worker: two Chromiums at once on two cores wait for each other."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group("browser"))


class Outcome(NamedTuple):
    """What a command line left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Run a command line in this process, which is much faster than starting another one."""

    def run(*arguments):
        code = fusesim.cli.main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return run


class FakeBench:
    """What stands for a GPU: it measures what the model predicts, with seeded noise.

    `noise` is relative; `interrupt_at` and `unsteady_from` count measured cases, probes and settling included.
    """

    gap = 1e-7

    def __init__(self, *, seed=0, noise=0.0, interrupt_at=None, unsteady_from=None, **facts):
        profile = load_known_device("h200-sxm")
        self.machine = machine_of(shipped_calibrations()["h200-sxm"], profile)
        self.seed, self.noise, self.interrupt_at, self.unsteady_from = seed, noise, interrupt_at, unsteady_from
        self.facts = {"gpu": "NVIDIA H200", "sms": 132, "driver": "580.1", "cupy": "14.2.0"} | facts
        memory, cache = 150_754_820_096, int(self.machine.cache)
        self.gpu = Gpu(name="NVIDIA H200", sms=132, memory=memory, cache=cache, capability="9.0", bus="", versions={})
        self.pool = 1 << 40
        self.measured = []

    def environment(self):
        return dict(self.facts)

    def fits(self, case):
        return case.elements <= self.pool

    def compile(self, cases, progress):
        progress(len(list(cases)), len(list(cases)))

    def settle(self, progress):
        progress(1, 1)

    def measure(self, case):
        self.measured.append(case)
        if len(self.measured) == self.interrupt_at:
            raise KeyboardInterrupt
        time = self.time(case) * float(np.exp(self.noise * self.normal(case)))
        if self.unsteady_from is not None and len(self.measured) >= self.unsteady_from:
            time *= 1.2
        sets = set_count(case, self.gpu.cache)
        host = 5e-6 * case.kernels if case.mode == "stream" else None
        return Sample(median=time, low=0.99 * time, high=1.01 * time, repeats=9, sets=sets, host=host)

    def normal(self, case):
        return np.random.default_rng([self.seed, zlib.crc32(case.identity.encode())]).normal()

    def time(self, case):
        sets = set_count(case, self.gpu.cache)
        if case.kind == "empty":
            machine = self.machine
            more = {"graph": machine.replay / sets, "stream": machine.stream_gap, "latency": machine.idle}
            return machine.floor + more[case.mode]
        if case.kind != "chain":
            return 1e-6 + float(np.prod(case.shape)) / 1e14
        row = Row.of(case, Sample(median=1e-6, low=1e-6, high=1e-6, repeats=1, sets=sets))
        gap = self.gap if case.path == "cupy" else 0.0
        return float(predict(row, self.machine, gap=gap).time)


@pytest.fixture(scope="session")
def fake_bench():
    """The class of benches that need no GPU."""
    return FakeBench
