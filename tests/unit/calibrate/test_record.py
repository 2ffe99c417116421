import json

import pytest

from fusesim.calibrate.cases import Case, Sample
from fusesim.calibrate.record import Measurements, Row, load_measurements
from fusesim.errors import MeasurementError

HEAD = {"schema": "fusesim-measurements/1", "device": "h200-sxm", "date": "2026-01-01", "protocol": "as usual"}
ROW = {
    "suite": "fit",
    "kind": "chain",
    "probe": "size",
    "path": "cuda",
    "mode": "graph",
    "ops": ["mul"],
    "elements": 1024,
    "sets": 8,
    "median": 1.1e-6,
    "low": 1e-6,
    "high": 1.2e-6,
    "repeats": 7,
}
WHOLE = {**HEAD, "environment": {"gpu": "NVIDIA H200", "sms": 132}, "rows": [ROW]}


def saved(tmp_path, record):
    file = tmp_path / "raw.json"
    text = record if isinstance(record, str) else json.dumps(record)
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_comes_back_as_it_was_saved(tmp_path):
    measured = load_measurements(saved(tmp_path, WHOLE))
    assert load_measurements(saved(tmp_path, measured.to_json())) == measured
    assert measured.to_json() == load_measurements(tmp_path / "raw.json").to_json()


def test_a_row_a_line(tmp_path):
    measured = load_measurements(saved(tmp_path, {**WHOLE, "rows": [ROW, ROW]}))
    assert sum("median" in line for line in measured.to_json().splitlines()) == 2


def test_a_row_joins_a_case_and_its_sample():
    case = Case(kind="matmul", probe="matmul", suite="matmul", path="cupy", mode="stream", shape=(2, 3, 4))
    row = Row.of(case, Sample(median=2e-6, low=1e-6, high=3e-6, repeats=7, sets=5, host=4e-6))
    assert (row.median, row.sets, row.host, row.shape) == (2e-6, 5, 4e-6, (2, 3, 4))
    assert row.case.suite == "matmul"
    assert row.key.startswith("cupy/stream/matmul/bf16/2x3x4/")


def test_rows_are_found_by_what_they_are():
    measured = Measurements.model_validate({**WHOLE, "rows": [ROW, {**ROW, "suite": "mix"}]})
    assert [row.suite for row in measured.of(suite="mix", path="cuda")] == ["mix"]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"median": float("nan")}, "rows.0.median: Input should be"),
        ({"high": float("inf")}, "rows.0.high: Input should be"),
        ({"median": 0}, "rows.0.median: Input should be greater than 0"),
        ({"median": -1e-6}, "rows.0.median: Input should be greater than 0"),
        ({"median": "fast"}, "rows.0.median: Input should be a valid number"),
        ({"median": 1.3e-6}, "rows.0: low 1e-06, median 1.3e-06, high 1.2e-06 are not in order"),
        ({"median": 1100.0, "low": 1000.0, "high": 1200.0}, "1000 to 1200 s is no kernel's time; all times are in s"),
        ({"median": 1.1e-12, "low": 1e-12, "high": 1.2e-12}, "rows.0: 1e-12 to 1.2e-12 s is no kernel's time"),
        ({"ops": ["mull"]}, 'rows.0: unknown op "mull"'),
        ({"ops": []}, "rows.0: a chain needs ops and elements"),
        ({"elements": 0}, "rows.0: a chain needs ops and elements"),
        ({"dtype": "bf61"}, 'rows.0: unknown dtype "bf61"'),
        ({"path": "cud"}, "rows.0.path: Input should be 'cuda'"),
        ({"shape": [2, 2]}, "rows.0: shape (2, 2) is not one of a chain"),
        ({"kind": "matmul", "shape": [2, 0, 2]}, "rows.0: shape (2, 0, 2) is not one of a matmul"),
        ({"sets": 0}, "rows.0.sets: Input should be greater than or equal to 1"),
        ({"medain": 1e-6}, 'rows.0.medain: unknown key; did you mean "median"?'),
    ],
    ids=str,
)
def test_an_impossible_row_is_named(tmp_path, changed, sentence):
    with pytest.raises(MeasurementError) as caught:
        load_measurements(saved(tmp_path, {**WHOLE, "rows": [{**ROW, **changed}]}))
    assert str(caught.value).startswith("raw.json: ")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (json.dumps(WHOLE)[:-40], "raw.json: Invalid JSON: EOF"),
        (json.dumps({**WHOLE, "schema": "fusesim-measurements/2"}), "raw.json: schema: Input should be"),
        (json.dumps({**WHOLE, "rows": {}}), "raw.json: rows: Input should be a valid array"),
        (json.dumps({name: value for name, value in WHOLE.items() if name != "device"}), "raw.json: device: missing"),
        ("", "raw.json: Invalid JSON"),
        ("\x00\xff", "raw.json: Invalid JSON"),
        ("[]", "raw.json: Input should be an object"),
    ],
)
def test_what_is_not_a_file_of_measurements_is_refused(tmp_path, content, sentence):
    with pytest.raises(MeasurementError) as caught:
        load_measurements(saved(tmp_path, content))
    assert str(caught.value).startswith(sentence)


def test_bytes_folders_and_nothing_are_refused(tmp_path):
    (tmp_path / "raw.json").write_bytes(b"\xff\xfe\x00")
    for name, sentence in (("raw.json", "not recorded"), ("", "not a file"), ("absent.json", "cannot be read")):
        with pytest.raises(MeasurementError, match=sentence):
            load_measurements(tmp_path / name)
