"""Kernels added up in a launch mode: the device's time, the host's, and when each kernel runs."""

from __future__ import annotations

from itertools import pairwise

import pytest

import fusesim
from fusesim import patterns
from fusesim.records import BOUNDS

GRAPH = patterns.rmsnorm(1024, 4096)  # 6 ops: square or multiply, mean, add, rsqrt, and two products


def run(strategy="eager", path="torch", **as_price):
    plan = fusesim.plan(GRAPH, strategy, "h200-sxm")
    return fusesim.price(plan, device="h200-sxm", path=path, **as_price)


def test_a_graph_is_its_kernels_and_the_replay():
    price = run(launch="graph")
    parts = sum(one.time for one in price.per_kernel)
    assert price.time == pytest.approx(parts + price.parts.settings.replay)
    assert len(price.per_kernel) == price.kernels == 6


def test_repeats_share_a_replay():
    one, many = run(launch="graph"), run(launch="graph", graph_repeats=10, inputs="cold")
    assert many.parts.settings.replay == pytest.approx(one.parts.settings.replay / 10)


def test_a_stream_takes_the_longer_of_device_and_host():
    price = run(launch="stream")
    parts = price.parts
    assert price.time == max(parts.device_time, parts.host_time)
    assert parts.host_time == pytest.approx(6 * parts.settings.interval)  # eager mode issues each of the 6 kernels


def test_a_slow_host_binds_a_stream_and_not_a_graph():
    slow = run(launch="stream", host_interval=100e-6)
    assert slow.time == pytest.approx(6 * 100e-6)
    assert slow.bound == "host"
    assert run(launch="graph", host_interval=100e-6).time == run(launch="graph").time


def test_a_compiled_call_costs_the_host_once():
    parts = run("inductor", "inductor", launch="stream").parts
    assert parts.settings.per_call
    assert parts.host_time == parts.settings.interval


@pytest.mark.parametrize("launch", ["graph", "stream", "latency"])
def test_kernels_follow_one_another(launch):
    price = run(launch=launch)
    spans = price.parts.timeline()
    assert [span.ops for span in spans] == [(node.name,) for node in GRAPH.paid_nodes]
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert all(span.issued <= span.start < span.end for span in spans)
    assert all(span.bound in BOUNDS for span in spans)


def test_from_idle_no_kernel_starts_before_it_is_issued():
    spans = run(launch="latency", host_interval=50e-6).parts.timeline()
    assert [span.issued for span in spans] == pytest.approx([place * 50e-6 for place in range(6)])
    assert spans[-1].start >= 5 * 50e-6


def test_bytes_are_served_by_memory_or_the_cache():
    parts = run().parts
    moved = sum(k.launch.bytes_read + k.launch.bytes_written for k in parts.kernels_run)
    assert parts.dram_bytes + parts.l2_bytes == pytest.approx(moved)
    assert parts.l2_bytes > 0  # 8 MB tensors stay in 50 MB of cache from kernel to kernel


def test_the_interval_holds_the_time():
    for launch in ("graph", "stream", "latency"):
        low, high = run(launch=launch).interval
        assert low < run(launch=launch).time < high


def test_the_textbook_adds_launches_and_bytes():
    price = run(model="textbook", launch="stream", launch_overhead=4e-6, dram_bandwidth=1e12)
    value, row = 1024 * 4096 * 2, 1024 * 2  # bf16
    # multiply x x, mean, add, rsqrt, multiply by the row's factor, multiply by the weight
    moved = 2 * value + (value + row) + 2 * row + 2 * row + (2 * value + row) + (2 * value + 4096 * 2)
    assert price.bytes_moved == moved
    assert price.time == pytest.approx(6 * 4e-6 + moved / 1e12)
