"""Bytes in a time: verdicts, and what slices, clocks and caps change."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fusesim
from fusesim.checking import check


@pytest.mark.parametrize(
    ("size", "time", "terms", "verdict"),
    [
        (268e6, 63e-6, {}, "near the ceiling"),  # 4.25 of 4.8 TB/s
        (268e6, 70e-6, {}, "near the ceiling"),
        (268e6, 20e-6, {}, "impossible"),  # 13 TB/s: not even the cache
        (268e6, 50e-6, {}, "impossible"),  # 5.4 TB/s: more than memory, and 268 MB are in no cache
        (30e6, 5e-6, {}, "L2-resident"),  # 6 TB/s of 30 MB
        (268e6, 50e-6, {"working_set": 10e6}, "L2-resident"),  # the same 10 MB again and again
        (268e6, 200e-6, {}, "kernel problem"),
        (8192, 2e-6, {}, "launch-bound"),
        (8192, 12e-6, {"launch": "stream"}, "launch-bound"),
        (8192, 90e-6, {}, "kernel problem"),
        (8192, 1e-7, {}, "impossible"),  # no kernel is so short
        (268e6, 0.5e-3, {"mig": (1, 7)}, "near the ceiling"),  # an eighth of memory
    ],
)
def test_verdicts(size, time, terms, verdict):
    found = check(size, time, device="h200-sxm", **terms)
    assert found.verdict == verdict
    assert found.explain()[0].startswith(f"{verdict}: ")
    assert found.rate == pytest.approx(size / time)
    assert found.interval[0] < found.expected < found.interval[1]
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("device", fusesim.devices())
def test_every_device_has_its_own_scale(device):
    peak = fusesim.device(device).dram_bandwidth
    assert check(4e9, 4e9 / (0.85 * peak), device=device).verdict == "near the ceiling"
    assert check(4e9, 4e9 / (3.0 * peak), device=device).verdict in {"impossible", "L2-resident"}
    assert check(4e9, 4e9 / (0.2 * peak), device=device).verdict == "kernel problem"


def test_slower_is_never_better():
    order = ["impossible", "L2-resident", "near the ceiling", "kernel problem"]
    places = [order.index(check(200e6, time).verdict) for time in np.geomspace(1e-6, 1e-2, 60)]
    assert places == sorted(places)


def test_a_slower_clock_excuses_a_slower_cache_and_no_slower_memory():
    full, slow = check(268e6, 80e-6), check(268e6, 80e-6, clock=1e9)
    assert slow.cache_rate == pytest.approx(full.cache_rate * 1.0 / 1.98)  # 1 GHz of 1.98
    assert slow.ceiling == full.ceiling
    assert slow.expected > full.expected


def test_a_power_cap_lowers_the_clock_by_the_cube_root():
    full, capped = check(268e6, 80e-6), check(268e6, 80e-6, power_cap=350)
    assert capped.cache_rate == pytest.approx(full.cache_rate * 0.5 ** (1 / 3))  # 350 of 700 W
    assert check(268e6, 80e-6, power_cap=900).cache_rate == full.cache_rate


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"bytes": 0}, "bytes"),
        ({"time": 0.0}, "time"),
        ({"time": -1.0}, "time"),
        ({"mig": (5, 7)}, "mig is 5/7"),
        ({"mig": (1, 8)}, "mig is 1/8"),
        ({"launch": "now"}, "launch mode"),
        ({"working_set": 1e12}, "working_set"),
        ({"clock": 1.0}, "clock"),
    ],
)
def test_wrong_arguments(terms, message):
    given = {"bytes": 1e6, "time": 1e-6} | terms
    with pytest.raises(fusesim.InputError, match=message):
        check(given.pop("bytes"), given.pop("time"), **given)
