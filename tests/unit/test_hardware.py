"""What a device record says of itself. The shipped files are tested in tests/specs."""

import math

import pytest
from pydantic import ValidationError

import fusesim
from fusesim.hardware import HardwareProfile
from fusesim.store import parse_device

SOURCES = {"sheet": {"title": "Example datasheet", "url": "https://example.com/"}}


def figure(value, unit="", **more):
    return {"value": value, "unit": unit, "source": "sheet", **more}


def profile(**parts):
    table = {
        "name": "Example",
        "vendor": "other",
        "architecture": "Example",
        "memory": {"bandwidth": figure(2, "TB/s")},
        "sources": SOURCES,
    }
    return parse_device(table | parts, "example", "example.toml")


def test_figures_are_in_base_units():
    device = profile(
        chip={"sms": figure(10), "boost_clock": figure(1500, "MHz"), "board_power": figure(0.7, "kW")},
        cache={"l2": figure(50, "MiB")},
    )
    assert device.dram_bandwidth == 2e12
    assert device.chip.boost_clock.si == 1.5e9
    assert device.chip.board_power.si == 700
    assert device.cache.l2.si == 50 * 1024**2


def test_what_nobody_sourced_is_unknown():
    device = profile()
    assert math.isnan(device.cache_capacity)
    assert math.isnan(device.vector_rate("fp32"))
    assert math.isnan(device.tensor_rate("bf16"))


def test_the_last_level_cache_holds_intermediates():
    l2, last = figure(4, "MiB"), figure(256, "MiB")
    assert profile(cache={"l2": l2}).cache_capacity == 4 * 1024**2
    assert profile(cache={"l2": l2, "last_level": last}).cache_capacity == 256 * 1024**2


def test_figures_are_listed_with_their_path():
    device = profile(vector={"fp32": {"rate": figure(60, "TFLOP/s")}})
    assert [path for path, _ in device.figures()] == ["memory.bandwidth", "vector.fp32.rate"]


def test_a_record_cannot_be_changed():
    device = profile()
    with pytest.raises(ValidationError, match="frozen"):
        device.memory = None
    with pytest.raises(ValidationError, match="frozen"):
        device.memory.bandwidth.value = 3


def peak(teraflops):
    chip = {"sms": figure(100), "boost_clock": figure(1, "GHz")}
    return profile(chip=chip, tensor={"fp16": {"rate": figure(teraflops, "TFLOP/s"), "flop_per_clock": figure(1000)}})


@pytest.mark.parametrize("teraflops", [98.1, 100, 101.9])
def test_a_peak_within_two_percent_of_its_factors_loads(teraflops):
    # 100 SMs x 1 GHz x 1000 FLOP per clock = 100 TFLOP/s
    assert peak(teraflops).tensor_rate("fp16") == pytest.approx(teraflops * 1e12)


@pytest.mark.parametrize(
    ("teraflops", "hint"),
    [
        (97, "gives 100.0 TFLOP/s$"),
        (103, "gives 100.0 TFLOP/s$"),
        (200, "it looks like a sparse peak, give the dense one$"),
        (199, "it looks like a sparse peak, give the dense one$"),
    ],
)
def test_a_peak_that_its_factors_contradict_does_not(teraflops, hint):
    with pytest.raises(fusesim.HardwareSpecError, match=f"^example.toml: tensor.fp16.rate: .*{hint}"):
        peak(teraflops)


def test_a_peak_may_go_with_a_clock_of_its_own():
    chip = {"sms": figure(100), "boost_clock": figure(2, "GHz")}
    factors = {"flop_per_clock": figure(1000), "clock": figure(1, "GHz")}
    device = profile(chip=chip, tensor={"fp16": {"rate": figure(100, "TFLOP/s"), **factors}})
    assert device.tensor_rate("fp16") == 100e12


def test_a_peak_is_not_checked_where_a_factor_is_unsourced():
    device = profile(tensor={"fp16": {"rate": figure(100, "TFLOP/s"), "flop_per_clock": figure(1)}})
    assert device.tensor_rate("fp16") == 100e12


def test_the_bandwidth_agrees_with_the_bus():
    bus = {"bus_width": figure(1024, "bit"), "pin_rate": figure(16, "Gb/s")}  # 1024 x 16 Gb/s / 8 = 2.048 TB/s
    assert profile(memory={"bandwidth": figure(2.04, "TB/s"), **bus}).dram_bandwidth == 2.04e12
    with pytest.raises(fusesim.HardwareSpecError, match="bus width x pin rate gives 2.05 TB/s"):
        profile(memory={"bandwidth": figure(3, "TB/s"), **bus})


def test_what_another_source_says_has_a_unit_and_a_source_too():
    other = {"value": 1.9, "unit": "TB", "source": "sheet"}
    with pytest.raises(fusesim.HardwareSpecError, match='unit "TB" is not a bandwidth'):
        profile(memory={"bandwidth": figure(2, "TB/s", alternatives=[other])})
    other = {"value": 1.9, "unit": "TB/s", "source": "page"}
    with pytest.raises(fusesim.HardwareSpecError, match='source "page" is not in'):
        profile(memory={"bandwidth": figure(2, "TB/s", alternatives=[other])})


def test_a_file_does_not_name_itself():
    with pytest.raises(fusesim.HardwareSpecError, match="^example.toml: requested_as: set by fusesim, not by the file"):
        profile(requested_as="h100")


def test_a_record_prices_a_chain():
    device = profile()
    assert isinstance(device, HardwareProfile)
    price = fusesim.price_chain(1, 10**6, device=device, launch_overhead=0)
    assert price.fused.time == pytest.approx(2e-6)  # 1 read + 1 write of 2 MB at 2 TB/s
    assert price.device is device
