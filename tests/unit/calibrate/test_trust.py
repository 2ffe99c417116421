"""Fits of what a fake bench measures: the truth is known, and so is the noise."""

import numpy as np
import pytest

from fusesim.calibrate import compare, session, trust
from fusesim.calibrate.fit import KERNEL_PARAMETERS, fit
from fusesim.calibrate.journal import Header, Journal
from fusesim.calibrate.plan import plan
from fusesim.calibrations import shipped_calibrations
from fusesim.errors import CalibrationError, MeasurementError
from fusesim.machine import PARAMETERS
from fusesim.store import load_known_device

PROFILE = load_known_device("h200-sxm")
HEADER = Header(device="h200-sxm", date="2026-01-01", protocol="as usual", paths=("cuda", "cupy"), environment={})
NOISE = 0.01


class Silence:
    def stage(self, name, done, total):
        pass

    def warn(self, sentence):
        raise AssertionError(sentence)


@pytest.fixture(scope="module")
def measure(tmp_path_factory, fake_bench):
    """Measure a thinned plan on a fake bench."""

    def measure(seed, noise=NOISE):
        cases = plan(HEADER.paths)
        cases = [case for index, case in enumerate(cases) if case.suite == "fit" or index % 3 == 0]
        journal = Journal.begin(tmp_path_factory.mktemp("run") / "journal", HEADER)
        return session.run(fake_bench(seed=seed, noise=noise), cases, journal, Silence(), force=False)

    return measure


@pytest.fixture(scope="module")
def measured(measure):
    return measure(seed=1)


@pytest.fixture(scope="module")
def fitted(measured):
    return trust.calibrate(measured, PROFILE, "fake")


def test_a_fit_finds_the_truth(fitted):
    truth = shipped_calibrations()["h200-sxm"].parameters
    off = {n: (fitted.parameters[n].value - truth[n].value) / fitted.parameters[n].sigma for n in KERNEL_PARAMETERS}
    assert max(map(abs, off.values())) < 4, off
    assert np.mean([abs(sigmas) < 2 for sigmas in off.values()]) >= 0.9
    for name in ("stream_gap", "idle", "dispatch"):
        assert fitted.parameters[name].value == pytest.approx(truth[name].value, rel=0.1)


def test_a_fit_says_how_far_held_out_cases_lie(fitted):
    assert all(0.003 < found.median_error < 0.015 for found in fitted.residuals.values())  # noise of 1 %
    assert trust.doubts(fitted, PROFILE) == []


def test_a_fit_keeps_where_it_comes_from(fitted, measured):
    assert (fitted.name, fitted.device, fitted.date) == ("fake", "h200-sxm", "2026-01-01")
    assert fitted.environment == measured.environment


def test_two_runs_agree(fitted, measure):
    again = trust.calibrate(measure(seed=2), PROFILE, "fake")
    rows = compare.drift(fitted, again)
    assert sum(row.agrees for row in rows) >= 0.9 * len(rows)
    assert not all(row.first == row.second for row in rows)


def test_the_same_measurements_give_the_same_fit(fitted, measured):
    assert trust.calibrate(measured, PROFILE, "fake") == fitted


def with_rows(measured, change):
    return measured.model_copy(update={"rows": tuple(change(row) for row in measured.rows)})


def scaled(factor):
    return lambda row: row.model_copy(update={n: getattr(row, n) * factor for n in ("median", "low", "high")})


@pytest.mark.parametrize("factor", [1e3, 1e6, 1e-3])
def test_times_in_other_units_are_refused(measured, factor):
    with pytest.raises(MeasurementError, match="is not possible, .* would be; the file is in other units, or damaged"):
        trust.calibrate(with_rows(measured, scaled(factor)), PROFILE, "fake")


def test_one_row_in_other_units_is_refused(measured):
    rows = list(measured.rows)
    index = next(i for i, row in enumerate(rows) if row.kind == "chain")
    rows[index] = scaled(1e3)(rows[index])
    with pytest.raises(MeasurementError, match="is not possible"):
        trust.calibrate(measured.model_copy(update={"rows": tuple(rows)}), PROFILE, "fake")


def test_constant_times_are_refused(measured):
    constant = with_rows(measured, lambda row: row.model_copy(update={"median": 1e-4, "low": 1e-4, "high": 1e-4}))
    small = constant.model_copy(update={"rows": tuple(row for row in constant.rows if row.elements < 1 << 20)})
    with pytest.raises(CalibrationError, match="all measured times are alike, whatever the size"):
        trust.calibrate(small, PROFILE, "fake")


@pytest.mark.parametrize(("suites", "sentence"), [({"fit", "mix"}, "to judge by"), ({"judge", "plain"}, "to fit")])
def test_too_few_rows_are_refused(measured, suites, sentence):
    part = measured.model_copy(update={"rows": tuple(row for row in measured.rows if row.suite in suites)})
    with pytest.raises(CalibrationError, match=f"only 0 measured kernels {sentence}"):
        trust.calibrate(part, PROFILE, "fake")


def test_another_device_is_refused(measured):
    with pytest.raises(MeasurementError, match="these are measurements of h200-sxm, not of h100-sxm"):
        trust.calibrate(measured, load_known_device("h100-sxm"), "fake")


def test_held_out_cases_that_are_nothing_like_predicted_are_doubted(measured):
    random = np.random.default_rng(0)

    def disturb(row):
        return scaled(float(random.uniform(1, 3)))(row) if row.suite in {"judge", "plain"} else row

    fitted = trust.calibrate(with_rows(measured, disturb), PROFILE, "fake")
    assert any("held-out" in doubt for doubt in trust.doubts(fitted, PROFILE))


def test_a_parameter_at_its_limit_is_not_trusted(fitted):
    def at(name, value):
        changed = fitted.parameters[name].model_copy(update={"value": value})
        return trust.doubts(fitted.model_copy(update={"parameters": fitted.parameters | {name: changed}}), PROFILE)

    assert at("floor", PARAMETERS["floor"].low) == ["floor stopped at its limit of 1e-07 s"]
    assert at("issue_share", 1.0) == ["issue_share stopped at its limit of 1"]
    assert at("bandwidth", 0.99 * 4.8e12) == ["bandwidth stopped at its limit of 4.752e+12 B/s"]
    assert at("row_latency", 0.0) == []  # none is possible


def test_residuals_that_are_large_are_not_trusted(fitted):
    def with_errors(**errors):
        residuals = {
            regime: found.model_copy(update={"median_error": errors.get(regime, 0.01), "cases": 100})
            for regime, found in fitted.residuals.items()
        }
        return trust.doubts(fitted.model_copy(update={"residuals": residuals}), PROFILE)

    assert with_errors(l2=0.09) == []
    assert with_errors(l2=0.12) == ["held-out l2-bound cases are off by 12 % in the median"]
    assert with_errors(l2=0.09, dram=0.09, launch=0.09) == ["held-out cases are off by 7 % in the median"]


@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        (lambda _: {"environment": {}}, "the environment is empty"),
        (lambda m: {"environment": m.environment | {"sms": 0}}, "of 0 SMs, and h200-sxm has 132"),
        (lambda m: {"rows": (*m.rows, m.rows[7])}, "is there 2 times"),
    ],
)
def test_measurements_that_cannot_be_as_saved_are_refused(measured, update, sentence):
    with pytest.raises(MeasurementError, match=sentence):
        trust.calibrate(measured.model_copy(update=update(measured)), PROFILE, "fake")


def test_one_size_tells_nothing(measured):
    one = with_rows(measured, lambda row: row.model_copy(update={"elements": 4096, "probe": row.key}))
    with pytest.raises(CalibrationError, match="only 1 sizes were measured, 10 are needed"):
        fit(one, PROFILE, "fake")
