"""Deviations of parts, carried through to a time and its interval."""

import numpy as np
import pytest

import fusesim
from fusesim.calibration import SOURCES
from fusesim.calibrations import shipped_calibrations
from fusesim.chain_kernels import fused_pieces
from fusesim.kernel import kernel_time, layout_times, shape_times
from fusesim.uncertainty import NINE_IN_TEN, SHARED, chain_sensitivities, deviation, sensitivities, uncertainty_of

from .test_chain_kernels import chain, ops, situation
from .test_kernel import ALL, MACHINE

H200 = {"device": "h200-sxm", "model": "calibrated"}


def one_kernel(elements, *names):
    (piece,) = fused_pieces(chain(elements, *names), ops(*names), situation(), MACHINE)
    times = shape_times(piece.shape, layout_times(piece.shape, MACHINE, ALL), MACHINE, ALL)

    def timed(factor=1.0, source=None):
        changed = times
        if source == "arithmetic":
            changed = times._replace(issue=times.issue * factor, issue_4=times.issue_4 * factor**4)
        load = piece.dram_load * (factor if source == "dram" else 1.0)
        rest = {"cold": piece.cold, "evicted": piece.evicted, "floor": 1e-6, "effects": ALL}
        return kernel_time(changed, MACHINE, dram_load=load, **rest)

    return piece, timed


@pytest.mark.parametrize("source", ["dram", "arithmetic"])
@pytest.mark.parametrize("names", [("mul",), ("gelu",), ("add",) * 12])
def test_a_sensitivity_is_how_far_the_time_follows(source, names):
    piece, timed = one_kernel(10**7, *names)
    found = sensitivities(piece, timed(), MACHINE)[source]
    step = 1e-4
    follows = (timed(1 + step, source).body - timed(1 - step, source).body) / (2 * step)
    assert found == pytest.approx(follows, rel=0.1, abs=1e-3 * timed().body)  # the first wave's part is left out


def test_kernels_that_are_alike_deviate_together_and_others_apart():
    piece, timed = one_kernel(10**7, "gelu")
    alone, both = (chain_sensitivities([(piece, timed())] * n, MACHINE, n * timed().time) for n in (1, 2))
    for source in SOURCES:
        times = 2.0 if source in SHARED or source == "all" else 2**0.5
        assert both[source] == pytest.approx(times * alone[source]), source


def test_deviations_add_like_independent_ones():
    assert deviation({"dram": 3.0, "l2": 4.0}, {"dram": 0.1, "l2": 0.1}, 5.0) == pytest.approx(0.1)


def test_what_drifts_from_run_to_run_drifts_twice():
    record = shipped_calibrations()["h200-sxm"]
    idle = record.parameters["idle"]
    assert uncertainty_of(record).idle == pytest.approx(NINE_IN_TEN * 2**0.5 * idle.sigma / idle.value)


def half_width(*arguments, **more):
    low, high = (price := fusesim.price_chain(*arguments, **H200 | more)).fused.interval
    return float((high - low) / 2 / price.fused.time)


def test_intervals_are_narrow_where_memory_decides_and_wide_where_a_compiler_does():
    graph = {"launch": "graph", "graph_repeats": 100}
    assert half_width(["mul"], 10**9, **graph) < 0.025
    assert 0.02 < half_width(["mul"], 10**5, **graph) < 0.05
    assert half_width(["silu", "gelu", "sin"], 10**9, **graph) > 0.08
    assert half_width(["silu", "gelu", "sin"] * 3, 10**4, **graph) > 0.15


def test_a_host_that_nobody_measured_is_far_less_certain_than_one_that_is_given():
    given = fusesim.price_chain(5, 1000, host_interval=5e-6, **H200).unfused
    own = fusesim.price_chain(5, 1000, **H200).unfused
    assert given.interval[1] / given.time == pytest.approx(np.exp(0.05))
    assert own.interval[1] / own.time > 2
    assert own.interval[0] / own.time < 0.8
    for launch in ("stream", "latency"):
        side = fusesim.price_chain(5, 10**9, launch=launch, **H200).unfused  # the device hides the host
        assert side.interval[1] / side.time < 1.03


def test_one_replay_and_one_wait_from_idle_are_less_certain_than_many():
    once, often = (half_width(5, 4096, launch="graph", graph_repeats=n) for n in (1, 1000))
    assert once > 2 * often
    assert half_width(5, 4096, launch="graph", replay_overhead=3e-6) < once  # the caller knows it
    assert half_width(1, 4096, launch="latency", host_interval=0) > 0.2


def test_ends_of_an_interval_are_positive_and_around_the_time():
    elements = np.geomspace(1, 1e12, 25).round()
    for launch in ("stream", "latency", "graph"):
        for device in ("h200-sxm", "v100-sxm"):
            price = fusesim.price_chain(
                ["gelu", "add_tensor"], elements, launch=launch, device=device, model="calibrated"
            )
            for side in (price.unfused, price.fused):
                low, high = side.interval
                assert (low > 0).all()
                assert (low < side.time).all()
                assert (side.time < high).all()
