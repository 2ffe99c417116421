"""The front desk: what `price_chain` accepts and refuses. What it computes is tested in test_price.py."""

import inspect
import math
import re

import pytest

import fusesim
from fusesim.api import ceilings


def test_defaults_are_those_of_the_documentation():
    parameters = inspect.signature(fusesim.price_chain).parameters
    defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
    fixed = {"dtype": "bf16", "device": "h100-sxm", "model": "textbook", "launch": "stream", "path": "cuda"}
    fixed |= {"row": None, "inputs": "cold", "graph_repeats": 1, "calibration": None, "launch_overhead": None}
    fixed |= {"replay_overhead": None, "dram_bandwidth": None, "host_interval": None}
    assert {name: defaults[name] for name in fixed} == fixed
    assert [name for name, p in parameters.items() if p.kind is not p.KEYWORD_ONLY] == ["ops", "elements"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ops": 0}, "ops is 0; give a whole number from 1 to 1e06"),
        ({"ops": -1}, "ops is -1; give a whole number from 1 to 1e06"),
        ({"ops": math.nan}, "ops is nan; give a whole number from 1 to 1e06"),
        ({"ops": math.inf}, "ops is inf; give a whole number from 1 to 1e06"),
        ({"ops": 10**30}, "ops is 1e30; give a whole number from 1 to 1e06"),
        ({"ops": 2.5}, "ops is 2.5; give a whole number from 1 to 1e06"),
        ({"ops": []}, "ops is empty; give at least one value"),
        ({"ops": None}, "ops must be a number or an array of numbers, not nothing (None)"),
        ({"ops": "mull"}, 'unknown op "mull"; did you mean "mul"?'),
        ({"ops": ["add", "mull"]}, 'unknown op "mull"; did you mean "mul"?'),
        ({"elements": 0}, "elements is 0; give a whole number from 1 to 1e18"),
        ({"elements": -1}, "elements is -1; give a whole number from 1 to 1e18"),
        ({"elements": math.nan}, "elements is nan; give a whole number from 1 to 1e18"),
        ({"elements": math.inf}, "elements is inf; give a whole number from 1 to 1e18"),
        ({"elements": 10**30}, "elements is 1e30; give a whole number from 1 to 1e18"),
        ({"elements": 1.5}, "elements is 1.5; give a whole number from 1 to 1e18"),
        ({"elements": []}, "elements is empty; give at least one value"),
        ({"elements": "4096"}, 'elements must be a number or an array of numbers, not the text "4096"'),
        ({"elements": [4096, 0]}, "elements is 0; give a whole number from 1 to 1e18"),
        ({"dtype": "bf61"}, 'unknown dtype "bf61"; did you mean "bf16"?'),
        ({"device": "h10-sxm"}, 'unknown device "h10-sxm"; did you mean "h100-sxm"?'),
        ({"model": "textbok"}, 'unknown model "textbok"; did you mean "textbook"?'),
        ({"launch": "grahp"}, 'unknown launch mode "grahp"; did you mean "graph"?'),
        ({"path": "cud"}, 'unknown path "cud"; did you mean "cuda"?'),
        ({"inputs": "hot"}, 'unknown input state "hot"; known: cold, warm'),
        ({"row": 3}, "row does not divide elements; give the length of the tensor's last dimension"),
        ({"row": 0}, "row is 0; give a whole number from 1 to 1e18"),
        ({"launch_overhead": "4 us"}, 'launch_overhead must be a number or an array of numbers, not the text "4 us"'),
        ({"launch_overhead": -1e-6}, "launch_overhead is -1e-06; give a number from 0 to 1 s"),
        ({"launch_overhead": 4}, "launch_overhead is 4; give a number from 0 to 1 s"),  # microseconds were meant
        ({"replay_overhead": math.nan}, "replay_overhead is nan; give a number from 0 to 1 s"),
        ({"dram_bandwidth": 0}, "dram_bandwidth is 0; give a number from 1e06 to 1e18 B/s"),
        ({"dram_bandwidth": 3.35}, "dram_bandwidth is 3.35; give a number from 1e06 to 1e18 B/s"),  # TB/s were meant
        ({"graph_repeats": 0}, "graph_repeats is 0; give a whole number from 1 to 1e09"),
        ({"ops": [1, 2], "elements": [1, 2, 3]}, "these shapes do not broadcast together: ops (2,), elements (3,)"),
    ],
    ids=lambda part: re.sub(r"\W+", "-", str(part))[:40],
)
def test_a_bad_argument_is_refused_in_one_sentence(changes, sentence):
    with pytest.raises(fusesim.InputError) as caught:
        fusesim.price_chain(**({"ops": 5, "elements": 4096} | changes))
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_a_list_of_names_is_as_long_as_a_number_may_be():
    assert fusesim.price_chain(["mul"] * 1000, 4096).unfused.kernels == 1000
    with pytest.raises(fusesim.InputError, match="^ops is 1000001; give a whole number from 1 to 1e06$"):
        fusesim.price_chain(["mul"] * (10**6 + 1), 4096)


def test_a_path_is_not_read_as_a_device():
    with pytest.raises(fusesim.InputError, match='^device "./h100-sxm.toml" is a path, not a name; load your own file'):
        fusesim.price_chain(5, 4096, device="./h100-sxm.toml")


def test_an_unknown_option_is_a_type_error():
    with pytest.raises(TypeError, match="lunch"):
        fusesim.price_chain(5, 4096, lunch="stream")


@pytest.mark.parametrize("name", ["host_interval", "calibration"])
def test_the_textbook_refuses_what_it_cannot_use(name):
    with pytest.raises(fusesim.InputError, match=f"^the textbook takes no {name}"):
        fusesim.price_chain(5, 4096, **{name: 1e-6})


@pytest.mark.parametrize("changes", [{"path": "torch"}, {"inputs": "warm"}])
def test_the_textbook_ignores_kernels_and_caches(changes):
    assert fusesim.price_chain(5, 4096, **changes).to_dict() == fusesim.price_chain(5, 4096).to_dict()


def test_a_row_is_needed_by_the_ops_that_broadcast_one():
    with pytest.raises(fusesim.InputError, match="^add_row and mul_row broadcast a row: give its length"):
        fusesim.price_chain(["mul", "add_row"], 4096)


def test_a_row_divides_every_size():
    with pytest.raises(fusesim.InputError, match="^row does not divide elements"):
        fusesim.price_chain(["add_row"], [4096, 4097], row=64)


def test_a_device_record_stands_for_itself():
    device = fusesim.device("a100-sxm-80gb")
    assert fusesim.device(device) is device


def test_devices_are_listed_and_each_can_be_priced():
    assert "h100-sxm" in fusesim.devices()
    for name in fusesim.devices():
        assert fusesim.price_chain(5, 4096, device=name).device.id == name


def test_ceilings_list_plain_units_before_matrix_units():
    listed = ceilings("h100-sxm")
    assert [c.name for c in listed[:2]] == ["fp64", "fp32"]
    assert {c.name: c.flop_rate for c in listed}["bf16 tensor"] == 989.4e12
    assert all(c.ridge_point == c.flop_rate / 3.35e12 for c in listed)


def test_load_device_reads_a_file_of_ones_own(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "Mine"\nvendor = "other"\narchitecture = "none"\n'
        '[memory]\nbandwidth = { value = 1, unit = "TB/s", source = "me" }\n'
        '[sources.me]\ntitle = "Measured"\nurl = "none"\n',
        encoding="utf-8",
    )
    assert fusesim.load_device(file).id == "mine"
    assert fusesim.load_device(str(file)).dram_bandwidth == 1e12
