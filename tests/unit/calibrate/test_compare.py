import pytest

from fusesim.calibrate.compare import drift
from fusesim.calibrations import shipped_calibrations
from fusesim.errors import InputError
from fusesim.machine import PARAMETERS

RECORD = shipped_calibrations()["h200-sxm"]


def changed(**parameters):
    """Return the record with other values (value, sigma)."""
    fitted = {
        name: RECORD.parameters[name].model_copy(update={"value": value, "sigma": sigma})
        for name, (value, sigma) in parameters.items()
    }
    return RECORD.model_copy(update={"parameters": RECORD.parameters | fitted})


def test_a_calibration_agrees_with_itself():
    rows = drift(RECORD, RECORD)
    assert [row.parameter for row in rows] == list(PARAMETERS)
    assert all(row.agrees for row in rows)


@pytest.mark.parametrize(
    ("second", "sigmas", "agrees"), [(1.9e-6, 1.8, True), (1.1e-6 - 1e-7, 0.0, True), (2.1e-6, 2.2, False)]
)
def test_difference_in_combined_sigma(second, sigmas, agrees):
    # sigma 0.3 and 0.4 us combine to 0.5 us
    rows = drift(changed(floor=(1e-6, 3e-7)), changed(floor=(second, 4e-7)))
    row = next(row for row in rows if row.parameter == "floor")
    assert row.sigmas == pytest.approx(sigmas)
    assert row.sigma == pytest.approx(5e-7)
    assert row.agrees is agrees
    assert row.to_dict()["agrees"] is agrees


def test_without_an_uncertainty_only_equal_values_agree():
    same, other = changed(floor=(1e-6, 0.0)), changed(floor=(1.1e-6, 0.0))
    for second, agrees in ((same, True), (other, False)):
        row = next(row for row in drift(same, second) if row.parameter == "floor")
        assert row.sigmas is None
        assert row.agrees is agrees


def test_two_devices_are_not_compared():
    with pytest.raises(InputError, match="a calibration of h200-sxm and one of h100-sxm differ as the devices do"):
        drift(RECORD, RECORD.model_copy(update={"device": "h100-sxm"}))
