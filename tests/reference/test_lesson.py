"""The lesson's own numbers: five element-wise ops on an H100, 3.35 TB/s, 4 us per launch, bf16.

Each is checked through the library and through the command line's --json. The tolerance is the precision with
which the lesson prints its figures; the same sums in full precision are in tests/unit/test_price.py.
"""

import json

import pytest

import fusesim

LARGE = 8192 * 4096
ONE_TOKEN = 4096


def from_library(ops, elements, launch):
    return fusesim.price_chain(ops, elements, dtype="bf16", device="h100-sxm", launch=launch).to_dict()


@pytest.fixture
def from_command_line(run):
    def priced(ops, elements, launch):
        line = ("chain", "--ops", ops, "--elements", elements, "--dtype", "bf16", "--device", "h100-sxm")
        outcome = run(*line, "--launch", launch, "--json")
        assert (outcome.code, outcome.err) == (0, "")
        return json.loads(outcome.out)

    return priced


@pytest.fixture(params=["library", "command line"])
def priced(request, from_command_line):
    return from_library if request.param == "library" else from_command_line


@pytest.mark.parametrize(
    ("ops", "elements", "launch", "unfused", "fused", "speedup"),
    [
        (5, LARGE, "stream", "220.3", "44.1", "5.00"),  # memory decides: 200.3 of 220.3 us
        (5, ONE_TOKEN, "stream", "20.0", "4.0", "5.00"),  # launches decide: five against one
        (5, ONE_TOKEN, "graph", "10.0", "6.0", "1.67"),  # a replay costs 5 us either way, so fusing gains less
    ],
)
def test_times_and_speedup(priced, ops, elements, launch, unfused, fused, speedup):
    price = priced(ops, elements, launch)
    assert f"{price['unfused']['time'] * 1e6:.1f}" == unfused
    assert f"{price['fused']['time'] * 1e6:.1f}" == fused
    assert f"{price['speedup']:.2f}" == speedup


def test_bytes_of_the_large_chain(priced):
    price = priced(5, LARGE, "stream")
    assert f"{price['unfused']['bytes_moved'] / 1e6:.1f}" == "671.1"
    assert f"{price['fused']['bytes_moved'] / 1e6:.1f}" == "134.2"


def test_one_token_is_all_launches(priced):
    price = priced(5, ONE_TOKEN, "stream")
    assert f"{100 * price['unfused']['launch_share']:.1f}" == "99.9"
    assert price["unfused"]["bound"] == "launch"


@pytest.mark.parametrize("elements", [1, ONE_TOKEN, LARGE, 10**18])
@pytest.mark.parametrize("launch", ["stream", "graph"])
def test_one_op_has_nothing_to_fuse(priced, elements, launch):
    price = priced(1, elements, launch)
    assert price["speedup"] == 1
    assert price["saving"] == 0


@pytest.mark.parametrize(("before", "saved"), [(5, 0.80), (20, 0.95)])
def test_share_of_launches_that_fusing_saves(before, saved):
    price = fusesim.price_chain(before, ONE_TOKEN)
    assert 1 - price.fused.launch_time / price.unfused.launch_time == pytest.approx(saved, rel=1e-15)


def test_ridge_point_of_the_plain_units():
    # 66.9 TFLOP/s over 3.35 TB/s; five ops fused do 5 FLOP per 4 bytes, so memory decides by a factor of 16
    price = fusesim.price_chain(5, LARGE)
    assert price.ridge_point == pytest.approx(66.9 / 3.35)
    assert price.fused.arithmetic_intensity == 1.25
