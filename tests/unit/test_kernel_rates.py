"""Files of kernel rates: what they refuse, and which row stands in for a class that was not measured."""

import json

import pytest
from pydantic import ValidationError

import fusesim
from fusesim import calibrations, kernel_files
from fusesim.errors import CalibrationError
from fusesim.kernel_rates import FALLBACK, KernelRates, Row, Spread, rates_of
from fusesim.launches import PARAMETERS, Rates


def row(**rates):
    return {"rates": rates, "cases": 9, "median_error": 0.02, "error_90": 0.1}


def record(**rows):
    return {
        "schema": "fusesim-kernels/1",
        "name": "made up",
        "device": "h200-sxm",
        "date": "2026-01-01",
        "protocol": "none",
        "environment": {"gpu": "none"},
        "rows": {name: row(slots=value) for name, value in rows.items()},
        "spreads": {"inductor": {"low": 0.8, "high": 1.3, "cases": 9}},
        "correlation": 0.2,
    }


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("end", ["low", "high"])
def test_a_value_that_no_device_has_is_refused_in_a_sentence(name, end):
    unit, low, high = PARAMETERS[name]
    value = high * 1.01 if end == "high" else low - 1e-3 * max(low, 1e-6)
    with pytest.raises(ValidationError) as caught:
        Row.model_validate(row(**{name: value}))
    said = str(caught.value)
    assert f"rates.{name} is {value:g}, outside of {low:g} to {high:g} {unit}: unphysical" in said


@pytest.mark.parametrize("name", PARAMETERS)
def test_values_on_the_edge_of_what_is_physical_pass(name):
    _, low, high = PARAMETERS[name]
    assert Row.model_validate(row(**{name: low})).rates == {name: low}
    assert Row.model_validate(row(**{name: high})).rates == {name: high}


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValidationError, match="unphysical"):
        Row.model_validate(row(slots=float("nan")))
    with pytest.raises(ValidationError, match="median_error"):
        Row.model_validate(row() | {"median_error": float("inf")})


def test_an_unknown_rate_is_refused_with_the_known_ones():
    with pytest.raises(ValidationError, match="rates.speed is no rate; known: gap, "):
        Row.model_validate(row(speed=1.0))


def test_a_row_rests_on_at_least_one_case():
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        Row.model_validate(row() | {"cases": 0})


@pytest.mark.parametrize(("low", "high"), [(1.1, 1.2), (0.9, 0.95), (0.0, 1.1), (0.9, 1000.0)])
def test_an_interval_encloses_what_is_predicted(low, high):
    with pytest.raises(ValidationError):
        Spread.model_validate({"low": low, "high": high, "cases": 9})


def test_an_unknown_key_is_refused():
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        KernelRates.model_validate(record(cuda=1.0) | {"speed": 1})


def test_what_a_row_does_not_state_takes_nothing():
    found = rates_of({"gap": 1e-6})
    assert (found.gap, found.block, found.step, found.rounds, found.slots) == (1e-6, 0.0, 0.0, 0.0, 0.0)
    assert (found.share, found.cycles) == (1.0, 1.0)


def test_a_measured_class_has_its_own_row():
    made = KernelRates.model_validate(record(gen_loop16=3.0, gen_loop_odd16=4.0))
    assert made.find("gen_loop_odd16").slots == 4.0


@pytest.mark.parametrize(
    ("name", "slots"),
    [
        ("parts", 3.0),
        ("pool_last16", 5.0),  # strided
        ("upsample_last16", 5.0),
        ("concat_last", 5.0),
        ("conv_rare_odd32", 6.0),  # even sizes of the same type
        ("conv_odd32", 9.0),  # an odd window is rare
        ("gen_loop32", 3.0),  # the same class of other elements, by the first letters
        ("transposed_8", 7.0),
    ],
)
def test_a_row_stands_in_for_its_neighbours(name, slots):
    rows = {"gen_loop16": 3.0, "strided2_16": 5.0, "conv_rare16": 9.0, "conv_rare32": 6.0, "transposed_16": 7.0}
    made = KernelRates.model_validate(record(**rows))
    assert made.find(name).slots == slots


def test_without_a_neighbour_typical_rates_stand_in():
    assert KernelRates.model_validate(record(gen_loop16=3.0)).find("softmax_warp16") == Rates()


def test_an_unknown_path_has_the_generated_kernels_interval():
    made = KernelRates.model_validate(record(gen_loop16=3.0))
    assert made.spread("cuda", "dram") == made.spread("inductor", "dram") == (0.8, 1.3)


def test_an_interval_is_that_of_what_binds_where_it_was_measured():
    spreads = {"torch": (0.9, 1.1), "torch/issue": (0.7, 1.4), "inductor": (0.8, 1.3)}
    stated = {name: {"low": low, "high": high, "cases": 9} for name, (low, high) in spreads.items()}
    made = KernelRates.model_validate(record(gen_loop16=3.0) | {"spreads": stated})
    assert made.spread("torch", "issue") == (0.7, 1.4)
    assert made.spread("torch", "dram") == (0.9, 1.1)


def test_what_stands_in_was_measured():
    assert set(FALLBACK.values()) <= set(kernel_files.shipped_rates()["h200-sxm"].rows)


def test_a_damaged_file_is_refused_with_its_name_and_the_place(tmp_path):
    file = tmp_path / "rates.json"
    file.write_text(json.dumps(record(gen_loop16=-1.0)), encoding="utf-8")
    with pytest.raises(
        CalibrationError, match=r"rates\.json: rows\.gen_loop16: .*unphysical.*; measure again or fetch"
    ):
        kernel_files.load_rates(file)
    file.write_text("[]", encoding="utf-8")
    with pytest.raises(CalibrationError, match="rates.json"):
        kernel_files.load_rates(file)


def test_a_device_that_was_not_measured_has_the_nearest_ones_rates_and_wider_intervals():
    own, other = (fusesim.device(name) for name in ("h200-sxm", "a100-sxm-80gb"))
    assert kernel_files.find_rates(own).device == "h200-sxm"
    assert kernel_files.find_rates(other).device == "h200-sxm"
    assert kernel_files.widening(calibrations.find_calibration(own, None)) == (1.0, 1.0)
    assert min(kernel_files.widening(calibrations.find_calibration(other, None))) > 1.0


def test_a_share_of_the_bandwidth_grows_where_sms_are_fed_less():
    own, other = (fusesim.device(name) for name in ("h200-sxm", "a100-sxm-80gb"))
    # 4.8 TB/s for 132 SMs at 1.98 GHz are 18.4 bytes a clock, 2.039 TB/s for 108 at 1.41 are 13.4
    factor = (4.8e12 / (132 * 1.98e9)) / (2.039e12 / (108 * 1.41e9))
    assert kernel_files.fed(own) / kernel_files.fed(other) == pytest.approx(factor)
    measured, carried = kernel_files.find_rates(own), kernel_files.find_rates(other)
    for name, row in measured.rows.items():
        share = row.rates.get("share", 1.0)
        assert carried.rows[name].rates["share"] == pytest.approx(min(share * factor, 1.0))
        assert carried.find(name).gap == measured.find(name).gap


def test_a_share_never_falls_where_sms_are_fed_more():
    measured = kernel_files.find_rates(fusesim.device("h200-sxm"))
    carried = kernel_files.carried("h200-sxm", 0.5)
    assert [row.rates.get("share", 1.0) for row in measured.rows.values()] == [
        row.rates["share"] for row in carried.rows.values()
    ]


def test_an_installation_without_rates_says_so(monkeypatch):
    monkeypatch.setattr(kernel_files, "shipped_rates", dict)
    with pytest.raises(CalibrationError, match="no kernel rates are shipped with this installation"):
        kernel_files.find_rates(fusesim.device("h200-sxm"))


@pytest.mark.parametrize(
    ("path", "launch", "profiled", "longer"),
    [
        ("torch", "graph", True, 4e-7),
        ("inductor", "graph", True, 4e-7),
        ("torch", "graph", False, 0.0),
        ("torch", "stream", True, 0.0),  # measured in graphs alone
        ("cuda", "graph", True, 0.0),  # no framework, no profiler of it
    ],
)
def test_a_profiler_costs_a_framework_s_graphs(path, launch, profiled, longer):
    rates = KernelRates.model_validate(record(a=1.0) | {"profiled": 4e-7})
    assert rates.watched(path, launch=launch, profiled=profiled) == longer


def test_a_framework_s_replay_is_its_own():
    rates = KernelRates.model_validate(record(a=1.0) | {"replay": 6e-6})
    assert rates.replaying("torch", 3e-6) == 6e-6
    assert rates.replaying("cupy", 3e-6) == 3e-6
    assert KernelRates.model_validate(record(a=1.0)).replaying("torch", 3e-6) == 3e-6


@pytest.mark.parametrize("key", ["profiled", "replay", "following"])
@pytest.mark.parametrize("value", [-1e-9, 1.0])
def test_what_kernels_take_besides_is_physical(key, value):
    with pytest.raises(ValidationError, match=key):
        KernelRates.model_validate(record(a=1.0) | {key: value})
