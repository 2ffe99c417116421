"""The calibrated price of a chain: launch modes, effects, intervals, calibrations."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fusesim
from fusesim.calibrated import BLOCK
from fusesim.calibration import Calibration
from fusesim.calibrations import find_calibration, load_calibration_file, shipped_calibrations
from fusesim.errors import CalibrationError
from fusesim.machine import EFFECTS, PARAMETERS

H200 = {"device": "h200-sxm", "model": "calibrated"}
LESSON = ["add", "mul", "relu", "neg", "abs"]


def test_with_every_effect_off_it_is_the_textbook():
    for launch in ("stream", "graph"):
        for ops in (5, LESSON, ["gelu", "add_tensor"]):
            off = fusesim.price_chain(ops, 10**7, effects=[], launch=launch, **H200)
            book = fusesim.price_chain(ops, 10**7, device="h200-sxm", launch=launch)
            assert off.unfused.time == pytest.approx(book.unfused.time, rel=1e-12)
            assert off.fused.time == pytest.approx(book.fused.time, rel=1e-12)


def test_logical_bytes_are_those_of_the_textbook():
    real = fusesim.price_chain(LESSON, 2**20, **H200)
    book = fusesim.price_chain(LESSON, 2**20, device="h200-sxm")
    assert real.unfused.bytes_moved == book.unfused.bytes_moved
    assert real.unfused.dram_bytes + real.unfused.l2_bytes == pytest.approx(real.unfused.bytes_moved)
    assert real.unfused.l2_bytes > 0.5 * real.unfused.bytes_moved  # 2 MB intermediates stay in 60 MB


def test_eight_gelus_do_not_give_eight():
    gelus = fusesim.price_chain(["gelu"] * 8, 8192 * 4096, launch="graph", **H200)
    assert 1.2 < gelus.speedup < 1.7  # measured 1.44 on an H200
    assert gelus.fused.bound == "issue"
    cheap = fusesim.price_chain(["mul"] * 8, 8192 * 4096, launch="graph", **H200)
    assert cheap.speedup > 6


def test_a_stream_takes_the_longer_of_host_and_device_and_not_their_sum():
    quick = fusesim.price_chain(5, 4096, host_interval=0, **H200).unfused.time
    slow = fusesim.price_chain(5, 4096, host_interval=20e-6, **H200).unfused
    assert slow.time == pytest.approx(5 * 20e-6)
    assert slow.bound == "host"
    assert quick < slow.time
    large = fusesim.price_chain(5, 10**9, host_interval=20e-6, **H200).unfused
    assert large.time == pytest.approx(fusesim.price_chain(5, 10**9, host_interval=0, **H200).unfused.time)


def test_one_chain_from_idle_waits_for_the_host_and_its_last_kernel():
    record = shipped_calibrations()["h200-sxm"]
    idle = record.parameters["idle"].value
    stream = fusesim.price_chain(1, 10**8, host_interval=0, **H200).fused.time
    assert fusesim.price_chain(1, 10**8, launch="latency", host_interval=0, **H200).fused.time == pytest.approx(
        stream + idle
    )


def test_a_graph_has_no_host_and_shares_its_replay():
    once, often = (fusesim.price_chain(5, 4096, launch="graph", graph_repeats=r, inputs=9, **H200) for r in (1, 1000))
    replay = shipped_calibrations()["h200-sxm"].parameters["replay"].value
    assert once.unfused.time - often.unfused.time == pytest.approx(replay * 0.999)


def test_warm_inputs_are_quicker_and_rotation_lies_between():
    times = [fusesim.price_chain(1, 2**20, launch="graph", inputs=i, **H200).fused.time for i in ("warm", 10, "cold")]
    assert times == sorted(times)
    assert times[0] < times[2]


def test_bandwidth_keeps_the_share_that_is_reached():
    whole, half = (
        fusesim.price_chain(1, 10**9, launch="graph", dram_bandwidth=b, **H200).fused.time for b in (4.8e12, 2.4e12)
    )
    assert half / whole == pytest.approx(1.9, rel=0.05)  # the path to the cache is as fast as before


def test_a_launch_overhead_replaces_the_measured_floor():
    base, more = (fusesim.price_chain(5, 10**8, launch_overhead=t, host_interval=0, **H200) for t in (1e-6, 3e-6))
    assert more.unfused.time - base.unfused.time == pytest.approx(5 * 2e-6)


@pytest.mark.parametrize("effect", EFFECTS)
def test_each_effect_changes_the_price_of_something(effect):
    def times(chosen):
        cases = [
            fusesim.price_chain(LESSON, 2**21, launch="graph", effects=chosen, **H200),
            fusesim.price_chain(["gelu"] * 8, 2**16, launch="graph", effects=chosen, path="cupy", **H200),
            fusesim.price_chain(5, 4096, launch="stream", effects=chosen, host_interval=2e-5, **H200),
        ]
        return [float(side.time) for case in cases for side in (case.unfused, case.fused)]

    assert times(EFFECTS) != times([name for name in EFFECTS if name != effect])


def test_every_field_has_the_common_shape():
    price = fusesim.price_chain(np.arange(1, 4)[:, None], np.array([100, 10**5, 10**8]), launch="latency", **H200)
    for side in (price.unfused, price.fused):
        for name in (
            "time",
            "kernels",
            "dram_bytes",
            "l2_bytes",
            "launch_time",
            "memory_time",
            "compute_time",
            "bound",
        ):
            assert np.shape(getattr(side, name)) == (3, 3), name
        assert np.shape(side.interval[0]) == (3, 3)
    assert np.shape(price.saving_interval[1]) == (3, 3)


def test_arrays_equal_scalars_to_the_last_bit():
    lengths, sizes = np.array([[1], [2], [7]]), np.array([1000, 10**6, 10**8])
    for launch in ("stream", "latency", "graph"):
        together = fusesim.price_chain(lengths, sizes, launch=launch, **H200)
        for i, k in enumerate(lengths[:, 0]):
            for j, n in enumerate(sizes):
                alone = fusesim.price_chain(int(k), int(n), launch=launch, **H200)
                assert together.unfused.time[i, j] == alone.unfused.time
                assert together.fused.time[i, j] == alone.fused.time
                assert together.unfused.bound[i, j] == alone.unfused.bound


@pytest.mark.parametrize("launch", ["stream", "latency", "graph"])
def test_what_is_priced_block_by_block_is_what_is_priced_at_once(launch):
    rows = BLOCK // 100  # three blocks of these and a rest
    lengths, sizes = np.arange(1, 3 * rows + 8)[:, None] % 17 + 1, np.geomspace(1, 1e9, 100).round()
    whole = fusesim.price_chain(lengths, sizes, launch=launch, inputs=lengths, dram_bandwidth=4e12 + lengths, **H200)
    part = slice(rows - 3, rows + 3)
    terms = {"inputs": lengths[part], "dram_bandwidth": 4e12 + lengths[part]}
    some = fusesim.price_chain(lengths[part], sizes, launch=launch, **terms, **H200)
    for side in ("unfused", "fused"):
        assert (getattr(whole, side).time[part] == getattr(some, side).time).all()
    assert whole.unfused.time[0, 0] == whole.unfused.parts.time[0, 0]


def test_intervals_hold_the_price_and_are_sharp_where_measured():
    own, lent = (
        fusesim.price_chain(5, 10**8, launch="graph", device=d, model="calibrated") for d in ("h200-sxm", "a100")
    )
    for price in (own, lent):
        low, high = price.fused.interval
        assert low < price.fused.time < high
        assert price.saving_interval[0] < price.saving < price.saving_interval[1]
    widths = [(p.fused.interval[1] - p.fused.interval[0]) / p.fused.time / 2 for p in (own, lent)]
    assert widths[0] < widths[1] <= 0.40


def test_fusing_one_op_saves_exactly_nothing():
    single = fusesim.price_chain(1, 2**20, **H200)
    assert single.saving == 0
    assert single.saving_interval == (0, 0)


def test_a_device_of_ones_own_is_transferred_to(tmp_path):
    text = (fusesim.store.specs_folder() / "h100-sxm.toml").read_text()
    file = tmp_path / "mine.toml"
    file.write_text(text.replace("3.35", "3.351"))
    price = fusesim.price_chain(5, 10**7, device=fusesim.load_device(file), model="calibrated")
    assert "transferred from h200-sxm" in price.fused.calibration


def test_a_transferred_calibration_says_so_and_scales_with_the_datasheet():
    record = find_calibration(fusesim.device("h100-sxm"))
    base = shipped_calibrations()["h200-sxm"]
    assert record.transferred_from == "h200-sxm"
    ratio = record.parameters["bandwidth"].value / base.parameters["bandwidth"].value
    assert 0.6 < ratio < 0.8  # 3.35 / 4.8 = 0.70, or a published share of it
    assert record.parameters["bandwidth"].sigma / record.parameters["bandwidth"].value > 0.1
    assert record.spreads["dram"].high > base.spreads["dram"].high


def test_a_calibration_is_taken_by_name_file_or_record(tmp_path):
    name = fusesim.price_chain(5, 10**6, calibration="h200-sxm", **H200)
    file = tmp_path / "mine.json"
    file.write_text(shipped_calibrations()["h200-sxm"].model_dump_json(by_alias=True))
    by_file = fusesim.price_chain(5, 10**6, calibration=file, **H200)
    by_record = fusesim.price_chain(5, 10**6, calibration=fusesim.load_calibration(file), **H200)
    assert name.unfused.time == by_file.unfused.time == by_record.unfused.time


def test_an_alias_is_priced_as_the_device_that_it_names():
    for launch in ("stream", "graph"):
        known, alias = (
            fusesim.price_chain(5, 10**6, device=name, model="calibrated", launch=launch)
            for name in ("h200-sxm", "h200")
        )
        assert known.unfused.interval == alias.unfused.interval
        assert known.unfused.calibration == alias.unfused.calibration == "h200-sxm"


OWN = """
import fusesim
from fusesim.calibrations import find_calibration
for name in ("h200-sxm", "h200"):
    price = fusesim.price_chain(5, 10**6, device=name, model="calibrated")
    print(price.fused.calibration, find_calibration(fusesim.device(name)).name)
"""


def test_a_calibration_of_ones_own_holds_under_an_alias_too(tmp_path):
    # in a process of its own, since a calibration is looked up once a process
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    folder = subprocess.run(
        [sys.executable, "-c", "from fusesim import calibrations; print(calibrations.user_calibrations())"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    Path(folder).mkdir(parents=True)
    record = shipped_calibrations()["h200-sxm"].model_copy(update={"name": "mine"})
    (Path(folder) / "h200-sxm.json").write_text(record.model_dump_json(by_alias=True))
    done = subprocess.run([sys.executable, "-c", OWN], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["mine"] * 4


def broken(change):
    record = json.loads(shipped_calibrations()["h200-sxm"].model_dump_json(by_alias=True))
    change(record)
    return json.dumps(record)


FAULTS = {
    "not JSON": (lambda: "{", "Invalid JSON"),
    "unknown key": (lambda: broken(lambda r: r.update(colour="red")), "colour: unknown key; known keys: schema_, name"),
    "misspelt key": (
        lambda: broken(lambda r: r["parameters"]["floor"].update(vaule=1)),
        'parameters.floor.vaule: unknown key; did you mean "value"?',
    ),
    "a path that is none": (lambda: broken(lambda r: r["paths"].update(jax=r["paths"]["cuda"])), "paths.jax: Input"),
    "spread missing": (lambda: broken(lambda r: r["spreads"].pop("thread")), "spreads: thread missing"),
    "environment not a number": (
        lambda: broken(lambda r: r["environment"].update(clock_max=float("nan"))),
        "environment.clock_max: Input should be a finite number",
    ),
    "parameter missing": (lambda: broken(lambda r: r["parameters"].pop("floor")), "floor"),
    "unphysical": (lambda: broken(lambda r: r["parameters"]["floor"].update(value=1.0)), "unphysical"),
    "swapped unit": (lambda: broken(lambda r: r["parameters"]["floor"].update(unit="us")), "unit"),
    "not a number": (lambda: broken(lambda r: r["parameters"]["floor"].update(value=None)), "floor"),
    "another schema": (lambda: broken(lambda r: r.update(schema="fusesim-calibration/9")), "schema"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_calibration_is_refused_in_one_sentence(fault, tmp_path):
    make, word = FAULTS[fault]
    file = tmp_path / "bad.json"
    file.write_text(make())
    with pytest.raises(CalibrationError) as refusal:
        load_calibration_file(file)
    message = str(refusal.value)
    assert message.startswith("bad.json: ")
    assert word in message
    assert "\n" not in message


def test_more_bandwidth_than_the_memory_has_is_refused():
    record = shipped_calibrations()["h200-sxm"]
    values = dict(record.parameters)
    values["bandwidth"] = values["bandwidth"].model_copy(update={"value": 5e12})
    with pytest.raises(CalibrationError, match=r"more than the 4\.8e\+12 B/s"):
        fusesim.price_chain(5, 10**6, calibration=record.model_copy(update={"parameters": values}), **H200)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"calibration": "h20"}, 'unknown calibration "h20"'),
        ({"calibration": "nowhere/mine.json"}, "cannot be read"),
        ({"effects": ["magic"]}, 'unknown effect "magic"'),
        ({"inputs": 0}, "inputs is 0"),
        ({"inputs": "tepid"}, 'unknown input state "tepid"'),
        ({"host_interval": -1e-6}, "host_interval"),
        ({"host_interval": float("nan")}, "host_interval"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments, message):
    with pytest.raises(fusesim.FusesimError, match=message):
        fusesim.price_chain(5, 4096, **arguments, **H200)


def test_the_shipped_calibration_is_physical_and_knows_its_uncertainty():
    record = shipped_calibrations()["h200-sxm"]
    assert isinstance(record, Calibration)
    assert set(record.parameters) == set(PARAMETERS)
    for name, fitted in record.parameters.items():
        assert PARAMETERS[name].low <= fitted.value <= PARAMETERS[name].high
        assert fitted.sigma > 0, name
    assert record.parameters["bandwidth"].value < 4.8e12
    assert 0.3e-6 < record.parameters["floor"].value < 1.5e-6  # near a microsecond
    assert 0.5e-6 < record.parameters["dram_latency"].value < 1.6e-6  # published pointer chase: 0.43 us and upwards


def test_explanations_name_what_binds():
    gelu = " ".join(fusesim.price_chain(["gelu"] * 8, 2**25, **H200).explain())
    assert "instruction issue" in gelu
    assert "and not 8x" in gelu
    small = " ".join(fusesim.price_chain(5, 4096, **H200).explain())
    assert "a graph helps" in small
    mid = " ".join(fusesim.price_chain(5, 2**22, launch="graph", **H200).explain())
    assert "the cache serves" in mid
    assert "calibration h200-sxm" in mid
