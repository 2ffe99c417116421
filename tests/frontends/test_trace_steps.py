"""Traces of several equal steps, reported as one of them."""

from __future__ import annotations

import copy
import gzip
import io
import json
from pathlib import Path

import pytest

import fusesim
from fusesim.frontends.trace_steps import equal_parts, one_step

TRACES = Path(__file__).parents[1] / "reference/traces"


def repeated(name, times):
    """Return a trace with its events so many times, 20 ms apart."""
    content = json.loads(gzip.decompress((TRACES / f"{name}.eager.json.gz").read_bytes()))
    events = []
    for step in range(times):
        for event in copy.deepcopy(content["traceEvents"]):
            given = event.get("args") or {}
            for key in ("External id", "correlation", "Ev Idx"):
                if isinstance(given.get(key), int):
                    given[key] += step * 1_000_000
            if isinstance(event.get("ts"), int | float):
                event["ts"] += step * 20_000
            events.append(event)
    return io.BytesIO(json.dumps(content | {"traceEvents": events}).encode())


@pytest.mark.parametrize("name", ["gpt_8-1024-1024-16", "vit_16", "resnet50_32", "block_1-512-4096-11008-32"])
def test_one_of_three_equal_steps_is_the_step(name):
    alone = fusesim.read_trace(TRACES / f"{name}.eager.json.gz")
    three = fusesim.read_trace(repeated(name, 3))
    assert equal_parts(alone.graph) == 1
    assert equal_parts(three.graph) == 3
    step = one_step(three, 3)
    assert [node.kind for node in step.graph.nodes] == [node.kind for node in alone.graph.nodes]
    assert step.kernels == alone.kernels
    assert step.timeline.kernel_time == pytest.approx(alone.timeline.kernel_time)
    assert fusesim.rank(step).step == pytest.approx(fusesim.rank(alone).step, rel=0.02)


def test_steps_that_are_not_there_are_refused():
    trace = fusesim.read_trace(TRACES / "vit_16.eager.json.gz")
    assert one_step(trace, 1) is trace
    with pytest.raises(fusesim.InputError, match="does not hold 2 equal steps; it does not repeat itself"):
        one_step(trace, 2)
    with pytest.raises(fusesim.InputError, match="it holds 3 equal parts"):
        one_step(fusesim.read_trace(repeated("vit_16", 3)), 2)


def test_the_command_takes_one_step(run, tmp_path):
    file = tmp_path / "three.json"
    file.write_bytes(repeated("vit_16", 3).getvalue())
    hinted = run("trace", str(file))
    assert "--steps 3 reports one" in hinted.out
    one, whole = (json.loads(run("trace", str(file), "--json", *more).out) for more in (["--steps", "3"], []))
    assert one["step"] == pytest.approx(whole["step"] / 3, rel=0.02)
    assert run("trace", str(file), "--steps", "2").code == 1
