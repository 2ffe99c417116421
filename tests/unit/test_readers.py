"""Files of measured chains: three formats become one kind of row, and what is wrong is said in one sentence."""

import copy
import json

import pytest

from fusesim import readers
from fusesim.errors import InputError, MeasurementError

US = {"med": 2.0, "lo": 1.9, "hi": 2.2, "n": 15}
CHAIN = {"kind": "chain", "backend": "cuda", "ops": ["add", "mul"], "S": 4096, "dtype": "bf16", "variant": "fused"}
CHAIN |= {"mode": "graph", "sets": 256, "us": US, "name": "two"}


def empty(backend, med):
    return {"kind": "empty", "backend": backend, "mode": "eager", "sets": 200, "us": US | {"med": med, "hi": med}}


CHAINS = {"protocol": "p", "meta": {"name": "NVIDIA H200"}, "rows": [CHAIN]}
FIVE = {"kind": "five", "S": 1024, "variant": "unfused", "sets": 256, "stream": 16.8, "latency": 23.3, "graph": 5.1}
STREAMS = {"protocol": "launched on one H200 host", "rows": [{"kind": "empty", "host": 3.3, "stream": 3.31}, FIVE]}
OWN_ROW = {"suite": "judge", "kind": "chain", "probe": "p", "path": "cuda", "mode": "graph", "ops": ["add"]}
OWN_ROW |= {"elements": 4096, "sets": 256, "median": 2e-6, "low": 1.9e-6, "high": 2.1e-6, "repeats": 25}
OWN = {"schema": "fusesim-measurements/1", "device": "h200-sxm", "date": "2026-11-29T00:00:00Z", "protocol": "p"}
OWN |= {"environment": {}, "rows": [OWN_ROW]}


@pytest.fixture
def read(tmp_path):
    def read(table):
        file = tmp_path / "some.json"
        file.write_text(table if isinstance(table, str) else json.dumps(table), encoding="utf-8")
        return readers.read_measured(file)

    return read


def changed(table, row, **fields):
    table = copy.deepcopy(table)
    table["rows"][row] |= fields
    return table


def test_our_own_format(read):
    file = read(OWN)
    (row,) = file.rows
    assert (file.name, file.device) == ("some.json", "h200-sxm")
    assert (row.source, row.suite, row.path, row.mode, row.fused) == ("some.json", "judge", "cuda", "graph", True)
    assert (row.ops, row.elements, row.dtype, row.row, row.sets) == (("add",), 4096, "bf16", None, 256)
    assert (row.time, row.host_interval) == (2e-6, None)


def test_our_own_streams_are_held_so_no_host_is_in_them_but_it_is_in_latency(read):
    floor = OWN_ROW | {"kind": "empty", "mode": "stream", "ops": [], "elements": 0, "host": 5e-6}
    rows = [floor, OWN_ROW | {"mode": "stream"}, OWN_ROW | {"mode": "latency"}]
    assert [row.host_interval for row in read(OWN | {"rows": rows}).rows] == [0.0, 5e-6]
    assert read(OWN | {"rows": rows[2:]}).rows[0].host_interval is None


def test_a_table_of_chains(read):
    file = read(CHAINS)
    (row,) = file.rows
    assert file.device == "h200-sxm"
    assert (row.path, row.mode, row.fused, row.elements, row.sets) == ("cuda", "graph", True, 4096, 256)
    assert (row.time, row.host_interval, row.row) == (pytest.approx(2e-6), None, None)


@pytest.mark.parametrize(
    ("backend", "variant", "host"),
    [("cuda", "unfused", 20e-6), ("cuda", "fused", 20e-6), ("cupy", "unfused", 18e-6), ("cupy", "fused", 15e-6)],
)
@pytest.mark.parametrize(("mode", "ours"), [("eager", "stream"), ("latency", "latency")])
def test_a_table_of_chains_is_launched_as_fast_as_its_own_empty_kernels(read, backend, variant, host, mode, ours):
    floors = [empty("cupy-raw", 20.0), empty("cupy-add", 18.0), empty("cupy-elementwise", 15.0)]
    chain = CHAIN | {"backend": backend, "variant": variant, "mode": mode}
    (row,) = read(CHAINS | {"rows": [*floors, chain]}).rows
    assert (row.path, row.mode) == (backend, ours)
    assert row.host_interval == pytest.approx(host)


def test_without_an_empty_kernel_the_host_is_unknown(read):
    assert read(changed(CHAINS, 0, mode="eager")).rows[0].host_interval is None
    assert [row.host_interval for row in read(STREAMS | {"rows": [FIVE]}).rows] == [None, None, None]


def test_a_table_of_launch_modes(read):
    file = read(STREAMS)
    assert file.device == "h200-sxm"
    assert [row.mode for row in file.rows] == ["stream", "latency", "graph"]
    assert [row.time for row in file.rows] == pytest.approx([16.8e-6, 23.3e-6, 5.1e-6])
    assert [row.host_interval for row in file.rows] == [pytest.approx(3.3e-6), pytest.approx(3.3e-6), None]
    assert {(row.ops, row.dtype, row.fused) for row in file.rows} == {
        (("add", "mul", "relu", "neg", "abs"), "bf16", False)
    }


def test_a_mode_that_was_not_measured_is_left_out(read):
    assert [row.mode for row in read(changed(STREAMS, 1, graph=None)).rows] == ["stream", "latency"]


@pytest.mark.parametrize(
    ("name", "device"),
    [("NVIDIA H200", "h200-sxm"), ("Radeon RX 9999", None), ("", None), (None, None), ("GH200 480GB", "gh200")],
)
def test_a_device_is_known_by_a_word_of_its_name(read, name, device):
    assert read(CHAINS | {"meta": {"name": name}}).device == device


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("", "some.json: not valid JSON: "),
        ("{", "some.json: not valid JSON: "),
        ("[" * 100_000, "some.json: not valid JSON: "),
        ("[]", "some.json: not measured chains in a format that fusesim reads"),
        ("{}", "some.json: not measured chains in a format that fusesim reads"),
        ({"rows": "many"}, "some.json: not measured chains in a format that fusesim reads"),
        ({"rows": []}, "some.json: not measured chains in a format that fusesim reads"),
        ({"rows": [1, None]}, "some.json: not measured chains in a format that fusesim reads"),
        ({"schema": "fusesim-calibration/1"}, "some.json: not measured chains in a format that fusesim reads"),
        ({"rows": [{"pattern": "rmsnorm", "us": US}]}, "some.json: not measured chains in a format that fusesim reads"),
        (OWN | {"rows": []}, "some.json: holds no measured chain"),
        (changed(OWN, 0, median=float("nan")), "some.json: rows.0.median: "),
        (changed(OWN, 0, median=2.0), "some.json: rows.0: "),  # us for s: above its own high
        (changed(OWN, 0, median=2e-9), "some.json: rows.0: "),
        (changed(OWN, 0, ops=["ad"]), 'some.json: rows.0: unknown op "ad"'),
        (changed(CHAINS, 0, us=US | {"med": float("nan")}), "some.json: rows.0.chain.us.med: "),
        (changed(CHAINS, 0, us=US | {"med": float("inf")}), "some.json: rows.0.chain.us.med: "),
        (changed(CHAINS, 0, us=US | {"med": -2.0}), "some.json: rows.0.chain.us.med: "),
        (changed(CHAINS, 0, us={"med": 2e-6, "lo": 2e-6, "hi": 2e-6, "n": 1}), "some.json: rows.0.chain.us.med: "),
        (changed(CHAINS, 0, us=US | {"lo": 2.1}), "some.json: rows.0.chain.us: lo 2.1, med 2, hi 2.2 are not in order"),
        (changed(CHAINS, 0, us=US | {"n": 0}), "some.json: rows.0.chain.us.n: "),
        (changed(CHAINS, 0, ops=[]), "some.json: rows.0.chain.ops: "),
        (changed(CHAINS, 0, ops=["ad"]), 'some.json: rows.0.chain: unknown op "ad"; did you mean "add"?'),
        (changed(CHAINS, 0, dtype="bf61"), 'some.json: rows.0.chain: unknown dtype "bf61"'),
        (changed(CHAINS, 0, backend="opencl"), 'some.json: rows.0.chain: unknown backend "opencl"'),
        (changed(CHAINS, 0, S=0), "some.json: rows.0.chain.S: "),
        (changed(CHAINS, 0, S=2.5), "some.json: rows.0.chain.S: "),
        (changed(CHAINS, 0, sets=0), "some.json: rows.0.chain.sets: "),
        (changed(CHAINS, 0, variant="half"), "some.json: rows.0.chain.variant: "),
        (changed(CHAINS, 0, mode="warp"), "some.json: rows.0.chain.mode: "),
        (changed(CHAINS, 0, kind="pattern"), "some.json: rows.0: "),
        (changed(STREAMS, 0, host=float("nan")), "some.json: rows.0.empty.host: "),
        (changed(STREAMS, 1, stream=3.3e-6), "some.json: rows.1.five.stream: "),
        (changed(STREAMS, 1, latency="slow"), "some.json: rows.1.five.latency: "),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(read, table, sentence):
    with pytest.raises(MeasurementError) as caught:
        read(table)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(MeasurementError, match="absent.json: cannot be read: No such file"):
        readers.read_measured(tmp_path / "absent.json")
    with pytest.raises(MeasurementError, match="not a file"):
        readers.read_measured(tmp_path)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(MeasurementError, match=r"^bytes\.json: not text in UTF-8, so not measured chains$"):
        readers.read_measured(tmp_path / "bytes.json")


def test_suites_that_were_fitted_are_left_out_unless_asked_for(read):
    rows = read(OWN | {"rows": [OWN_ROW, OWN_ROW | {"suite": "fit"}, OWN_ROW | {"suite": "plain"}]}).rows

    def suites(named):
        return [row.suite for row in readers.choose_suites(rows, named)]

    assert suites(None) == ["judge", "plain"]
    assert suites("fit, plain") == ["fit", "plain"]
    assert suites("all") == ["judge", "fit", "plain"]
    with pytest.raises(InputError, match='^no suite "mix" in there; give --suite all, or some of judge, fit, plain$'):
        suites("plain,mix")
    with pytest.raises(InputError, match="^parameters are fitted on all of these rows; give --suite all"):
        readers.choose_suites(rows[1:2], None)
