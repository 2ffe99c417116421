import pytest

from fusesim.calibrate import session
from fusesim.calibrate.cases import Case, memory_needed
from fusesim.calibrate.journal import Header, Journal
from fusesim.calibrate.pool import SMALLEST
from fusesim.errors import MeasurementError

HEADER = Header(device="h200-sxm", date="2026-01-01", protocol="as usual", paths=("cuda",), environment={"gpu": "A"})
CASES = [
    Case(kind="chain", probe="size", suite=suite, ops=("mul",), elements=1 << power)
    for suite in ("fit", "judge")
    for power in range(10, 20)
]


class Watcher:
    def __init__(self):
        self.stages, self.warnings = [], []

    def stage(self, name, done, total):
        self.stages.append((name, done, total))

    def warn(self, sentence):
        self.warnings.append(sentence)


@pytest.fixture
def watcher():
    return Watcher()


@pytest.fixture
def journal(tmp_path):
    return Journal.begin(tmp_path / "journal", HEADER)


def test_everything_is_measured_in_order(fake_bench, journal, watcher):
    measured = session.run(fake_bench(), CASES, journal, watcher, force=False)
    assert [row.suite for row in measured.rows] == ["fit"] * 10 + ["judge"] * 10
    assert [row.elements for row in measured.rows] == [case.elements for case in CASES]
    assert measured.environment["cases_left_out"] == 0
    assert measured.environment["spread_median"] == pytest.approx(0.02)  # 0.99 to 1.01
    assert measured.environment["probe_copy_spread"] == 0
    assert measured.environment["driver"] == "580.1"


def test_stages_are_told(fake_bench, journal, watcher):
    session.run(fake_bench(), CASES, journal, watcher, force=False)
    assert list(dict.fromkeys(name for name, _, _ in watcher.stages)) == ["compile", "settle", "fit", "judge"]
    assert watcher.stages[-1] == ("judge", 10, 10)
    assert [done for name, done, _ in watcher.stages if name == "fit"] == list(range(11))
    assert not watcher.warnings


def test_an_interrupted_run_goes_on_where_it_stopped(fake_bench, tmp_path, watcher):
    whole = session.run(fake_bench(noise=0.01), CASES, Journal.begin(tmp_path / "a", HEADER), watcher, force=False)
    begun, interrupted = Journal.begin(tmp_path / "b", HEADER), fake_bench(noise=0.01, interrupt_at=15)
    with pytest.raises(KeyboardInterrupt):
        session.run(interrupted, CASES, begun, watcher, force=False)
    kept = Journal.reopen(tmp_path / "b")
    assert len(kept.rows) == 10  # 15 measurements, less 2 probes twice, less the interrupted one
    bench = fake_bench(noise=0.01)
    resumed = session.run(bench, CASES, kept, watcher, force=False)
    assert len([case for case in bench.measured if case.suite]) == 10
    assert resumed == whole


def test_a_case_that_does_not_fit_is_left_out_and_counted(fake_bench, journal, watcher):
    bench = fake_bench()
    bench.pool = 1 << 17
    measured = session.run(bench, CASES, journal, watcher, force=False)
    assert len(measured.rows) == 16
    assert measured.environment["cases_left_out"] == 4
    assert watcher.warnings == ["4 of 20 cases need more memory than is free; left out"]


def test_an_unsteady_gpu_is_refused(fake_bench, journal, watcher):
    with pytest.raises(MeasurementError, match=r"^the GPU is unsteady: the smallest kernel took 1\..* us at first and"):
        session.run(fake_bench(unsteady_from=8), CASES, journal, watcher, force=False)
    assert not journal.path.exists()


def test_an_unsteady_gpu_is_accepted_by_force(fake_bench, journal, watcher):
    measured = session.run(fake_bench(unsteady_from=8), CASES, journal, watcher, force=True)
    assert len(measured.rows) == 20
    assert len(watcher.warnings) == 4  # two probes after each of two suites
    assert measured.environment["probe_kernel_spread"] == pytest.approx(0.2)


def test_a_short_disturbance_is_measured_again(fake_bench, journal, watcher):
    bench = fake_bench()
    measure, readings = bench.measure, []

    def disturbed(case):
        sample = measure(case)
        if case.suite == "":
            readings.append(case)
        factor = 2 if len(readings) == 3 else 1  # the first probe after the first suite, once
        return type(sample)(
            median=sample.median * factor, low=sample.low * factor, high=sample.high * factor, repeats=1, sets=1
        )

    bench.measure = disturbed
    session.run(bench, CASES, journal, watcher, force=False)
    assert len(readings) == 7  # two probes three times, and one again


def test_a_clock_that_stands_still_is_an_error(fake_bench, journal, watcher):
    bench = fake_bench()
    bench.time = lambda _: 0.0
    with pytest.raises(MeasurementError, match="the GPU's clock cannot be right: median: Input should be greater"):
        session.run(bench, CASES, journal, watcher, force=False)


def test_probes_fit_the_smallest_pool():
    assert all(memory_needed(case, 1 << 28) <= SMALLEST for case in session.PROBES.values())
