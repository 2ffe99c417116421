import dataclasses

import numpy as np
import pytest

import fusesim
from fusesim import validate
from fusesim.errors import InputError, MeasurementError
from fusesim.machine import EFFECTS
from fusesim.measured import Measured
from fusesim.validate import Comparison
from fusesim.validation_tables import percent

ROW = Measured(
    source="tiny.json",
    suite="judge",
    path="cuda",
    mode="graph",
    ops=("add", "mul"),
    elements=4096,
    dtype="bf16",
    row=None,
    sets=256,
    fused=True,
    time=2e-6,
)


def compared(predicted, measured=1.0, low=0.0, high=2.0, **more):
    terms = {"row": ROW, "regime": "dram", "scale": measured} | more
    return Comparison(measured=measured, predicted=predicted, low=low, high=high, **terms)


def priced(row, **more):
    return fusesim.price_chain(
        list(row.ops),
        row.elements,
        dtype=row.dtype,
        device="h200-sxm",
        model="calibrated",
        launch=row.mode,
        path=row.path,
        inputs=row.sets,
        graph_repeats=row.sets if row.mode == "graph" else 1,
        **more,
    )


def compare(*rows, **more):
    return validate.compare(rows, device="h200-sxm", **more)


def test_a_comparison_is_relative_to_its_scale():
    found = compared(1.2, measured=1.0, low=0.9, high=1.3)
    assert found.deviation == pytest.approx(0.2)
    assert found.error == pytest.approx(0.2)
    assert found.half_width == pytest.approx(0.2)  # (1.3 - 0.9) / 2
    assert found.covered
    assert compared(0.8).deviation == pytest.approx(-0.2)
    assert compared(1.2, scale=4.0).error == pytest.approx(0.05)  # 0.2 / 4


@pytest.mark.parametrize(("low", "high", "covered"), [(1.0, 1.0, True), (1.01, 2.0, False), (0.5, 0.99, False)])
def test_an_interval_holds_its_ends(low, high, covered):
    assert compared(1.0, low=low, high=high).covered is covered


def test_a_grade_by_hand():
    # errors 0, 10, 20, 30, 40 %: median 20; 90th percentile lies 0.6 of the way from 30 to 40
    found = validate.grade([compared(1 + step / 10, high=1.35 if step > 2 else 0.5) for step in range(5)])
    assert found.cases == 5
    assert found.median == pytest.approx(0.20)
    assert found.p90 == pytest.approx(0.36)
    assert found.worst == pytest.approx(0.40)
    assert found.coverage == pytest.approx(2 / 5)
    assert found.half_width == pytest.approx(0.25)  # of 0.25, 0.25, 0.25, 0.675, 0.675


def test_bias_has_a_sign_and_errors_have_none():
    found = validate.grade([compared(0.9), compared(0.8), compared(1.5)])
    assert found.bias == pytest.approx(-0.1)
    assert found.median == pytest.approx(0.2)


def test_grades_are_by_path_mode_and_regime_and_the_host_is_apart():
    stream = dataclasses.replace(ROW, mode="stream")
    members = [
        compared(1.1),
        compared(1.3, regime="l2"),
        compared(1.2, regime="dram", row=stream),
        compared(9.0, regime="host", row=stream),
    ]
    found = {(each.mode, each.regime): each for each in validate.grades(members)}
    assert list(found) == [
        ("graph", "dram"),
        ("graph", "l2"),
        ("graph", "device-bound"),
        ("stream", "dram"),
        ("stream", "device-bound"),
        ("stream", "host"),
    ]
    assert found["graph", "device-bound"].median == pytest.approx(0.2)
    assert found["stream", "device-bound"].worst == pytest.approx(0.2)
    assert found["stream", "host"].worst == pytest.approx(8.0)


def test_the_worst_come_first_and_none_is_the_hosts():
    members = [compared(1.1), compared(0.5), compared(9.0, regime="host"), compared(1.3)]
    assert [each.predicted for each in validate.worst(members, 2)] == [0.5, 1.3]


def test_a_time_is_what_price_chain_says():
    found = compare(ROW)
    price = priced(ROW).fused
    (time,) = found.times
    assert (time.predicted, time.low, time.high) == (price.time, *price.interval)
    assert (time.measured, time.scale) == (2e-6, 2e-6)
    assert time.regime == "launch"
    assert found.calibration == price.calibration
    assert found.savings == []


def test_a_side_is_priced_as_that_side():
    unfused = dataclasses.replace(ROW, fused=False)
    assert compare(unfused).times[0].predicted == priced(ROW).unfused.time


def test_a_saving_needs_both_sides_and_more_than_one_op():
    both = (ROW, dataclasses.replace(ROW, fused=False, time=4e-6))
    assert len(compare(*both).savings) == 1
    assert not compare(*(dataclasses.replace(row, ops=("add",)) for row in both)).savings
    assert not compare(both[0], dataclasses.replace(both[1], suite="other")).savings


@pytest.mark.parametrize(
    ("unfused", "fused", "scale"),
    [
        (4e-6, 1e-6, 3e-6),  # 3 of 4 us saved: over the saving
        (4e-6, 3.7e-6, 4e-6),  # 0.3 of 4 us: over the unfused time
        (4e-6, 4.5e-6, 4e-6),  # a loss: over the unfused time
    ],
)
def test_a_savings_error(unfused, fused, scale):
    (saving,) = compare(
        dataclasses.replace(ROW, time=fused), dataclasses.replace(ROW, fused=False, time=unfused)
    ).savings
    price = priced(ROW)
    assert saving.measured == pytest.approx(unfused - fused)
    assert saving.predicted == price.saving
    assert (saving.low, saving.high) == price.saving_interval
    assert saving.scale == pytest.approx(scale)
    assert saving.error == pytest.approx(abs(price.saving - (unfused - fused)) / scale)


def test_each_side_of_a_saving_has_the_host_interval_it_was_launched_with():
    stream = dataclasses.replace(ROW, mode="stream", time=30e-6, host_interval=30e-6)
    found = compare(stream, dataclasses.replace(stream, fused=False, time=80e-6, host_interval=40e-6))
    (saving,) = found.savings
    assert saving.predicted == pytest.approx(50e-6)  # two launches at 40 us, one at 30 us
    assert [time.regime for time in found.times] == ["host", "host"]
    assert saving.low < 50e-6 < saving.high


def test_arithmetic_is_one_regime():
    heavy = dataclasses.replace(ROW, ops=("gelu",) * 12, elements=2**25, time=1e-3)
    special = dataclasses.replace(ROW, ops=("exp",) * 12, elements=2**25, time=3e-4)
    assert [time.regime for time in compare(heavy, special).times] == ["arithmetic", "arithmetic"]


def test_effects_and_calibration_reach_the_library():
    times = {effects: compare(ROW, effects=effects).times[0].predicted for effects in ((), ("floor",), EFFECTS)}
    assert len(set(times.values())) == 3
    with pytest.raises(InputError, match="unknown calibration"):
        compare(ROW, calibration="nobody")


def test_a_row_operand_reaches_the_library():
    found = compare(dataclasses.replace(ROW, ops=("add_row",), row=64))
    assert found.times[0].predicted > 0


@pytest.mark.parametrize("factor", [1e6, 1e3, 1e-3, 1e-6])
def test_times_in_another_unit_are_refused(factor):
    right = float(priced(ROW).fused.time)
    with pytest.raises(MeasurementError, match=r"^tiny\.json: cuda graph fused, 2 ops .*another unit\?$"):
        compare(dataclasses.replace(ROW, time=right * factor))


def test_nothing_to_compare_is_refused():
    with pytest.raises(MeasurementError, match="nothing to compare"):
        compare()


def test_ablation_starts_at_the_textbook_and_leaves_each_effect_out():
    right = float(priced(ROW).fused.time)
    steps = validate.ablate([dataclasses.replace(ROW, time=right)], device="h200-sxm")
    assert [step.step for step in steps[:3]] == ["textbook", "+ bandwidth", "+ floor"]
    assert len(steps) == 1 + 2 * len(EFFECTS)
    assert steps[0].effects == ()
    assert steps[len(EFFECTS)].effects == EFFECTS
    assert steps[len(EFFECTS)].times.worst == pytest.approx(0, abs=1e-12)
    assert set(EFFECTS) - set(steps[-1].effects) == {EFFECTS[-1]}
    assert all(step.savings is None for step in steps)
    textbook = 1e-6 + 5e-6 / 256 + 4 * 4096 / 4.8e12  # node, share of a replay, 1 read + 1 write of 2 bytes
    assert steps[0].times.worst == pytest.approx(abs(textbook / right - 1), rel=1e-6)


def test_records_are_plain():
    record = compare(ROW).times[0].to_dict()
    assert record["ops"] == ("add", "mul")
    assert record["error"] == pytest.approx(abs(record["predicted"] / record["measured"] - 1))
    assert isinstance(record["covered"], bool | np.bool_)


@pytest.mark.parametrize(
    ("ops", "label"),
    [
        (("add", "add"), "cuda graph fused, 2 ops (add), 4 096 bf16"),
        (("add", "mul", "relu", "neg"), "cuda graph fused, 4 ops (add+mul+relu+...), 4 096 bf16"),
    ],
)
def test_a_case_has_a_name(ops, label):
    assert dataclasses.replace(ROW, ops=ops).label == label


@pytest.mark.parametrize("share", [-0.0, -1e-9, -0.0004])
def test_a_share_that_rounds_to_zero_has_no_sign(share):
    assert percent(share) == "0.0 %"
