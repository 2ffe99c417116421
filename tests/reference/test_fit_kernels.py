"""The shipped rates of kernel classes come from the committed measurements, and rest on enough of them."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from fusesim import kernel_files
from fusesim.launches import PARAMETERS

HERE = Path(__file__).parent
_SPEC = importlib.util.spec_from_file_location("fit_kernels", HERE / "fit_kernels.py")
fit = importlib.util.module_from_spec(_SPEC)
sys.modules["fit_kernels"] = fit
_SPEC.loader.exec_module(fit)

SHIPPED = json.loads(fit.OUT.read_text(encoding="utf-8"))
LEAST = 8

FEW = {"memset": 1, "pool_back32": 6}


def test_every_class_rests_on_enough_cases_or_is_named():
    few = {name: row["cases"] for name, row in SHIPPED["rows"].items() if row["cases"] < LEAST}
    assert few == FEW


def test_no_rate_is_unphysical():
    for name, row in SHIPPED["rows"].items():
        for rate, value in row["rates"].items():
            _, low, high = PARAMETERS[rate]
            assert low <= value <= high, (name, rate)


def test_every_bound_of_the_fit_is_physical():
    for name, (scale, low, high, start) in fit.SCALED.items():
        _, least, most = PARAMETERS[name]
        assert least <= low * scale < high * scale <= most * (1 + 1e-9), name
        assert low <= start <= high


def test_the_file_says_what_it_rests_on():
    record = kernel_files.shipped_rates()["h200-sxm"]
    assert "H200" in record.environment["gpu"]
    assert str(record.environment["torch"]).startswith("2.11")
    assert record.protocol.count("tests/reference/") == 2


@pytest.mark.slow
def test_fitting_again_gives_the_shipped_rates():
    rows, here, target = fit.fit(verbose=False)
    assert set(rows) == set(SHIPPED["rows"])
    for name, row in rows.items():
        shipped = SHIPPED["rows"][name]
        assert row["cases"] == shipped["cases"]
        for rate, value in row["rates"].items():
            scale = fit.SCALED[rate][0]
            # below a millionth of its scale a rate is nothing
            assert value == pytest.approx(shipped["rates"][rate], rel=1e-5, abs=1e-6 * scale), (name, rate)
    profiled = fit.watched(rows, here, target)
    spreads = fit.held_out(rows, here, target, profiled)
    made = json.loads(fit.record(rows, *spreads, profiled).model_dump_json(by_alias=True))
    for key in ("spreads", "correlation", "profiled", "replay", "following"):
        assert made[key] == SHIPPED[key], key
