"""A second full run on the same machine gives the same parameters, within what each run says of its own."""

from pathlib import Path

import pytest

from fusesim import store
from fusesim.calibrate.fit import fit
from fusesim.calibrate.record import load_measurements
from fusesim.calibrations import shipped_calibrations

HERE = Path(__file__).parent


@pytest.mark.slow
def test_two_runs_agree_within_two_combined_sigma():
    first = shipped_calibrations()["h200-sxm"].parameters
    second = fit(
        load_measurements(HERE / "h200_second_run.json"), store.load_known_device("h200-sxm"), "again"
    ).parameters
    apart = {
        name: abs(first[name].value - second[name].value) / (first[name].sigma ** 2 + second[name].sigma ** 2) ** 0.5
        for name in first
    }
    agree = [name for name, sigmas in apart.items() if sigmas <= 2]
    assert len(agree) >= 0.9 * len(apart), apart


def test_torch_measurements_are_there_with_their_environment():
    measured = load_measurements(HERE / "h200_torch.json")
    assert {row.path for row in measured.rows} == {"torch", "inductor"}
    assert {row.kind for row in measured.rows} == {"chain", "reduction", "matmul"}
    assert measured.environment["gpu"] == "NVIDIA H200"
