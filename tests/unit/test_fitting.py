"""What does not fit the device's memory is said, in one sentence, and priced all the same."""

import pytest

import fusesim
from fusesim import patterns
from fusesim.fitting import input_bytes, sides_too_large, too_large
from fusesim.plan_sentences import plan_sentences
from fusesim.plans import compare, price
from fusesim.ranking import rank

DEVICE = fusesim.device("h200-sxm")
SMALL = patterns.bias_relu(rows=1024, cols=1024)
ROOM = DEVICE.memory.capacity.si - input_bytes(SMALL)


def without_capacity():
    return DEVICE.model_copy(update={"memory": DEVICE.memory.model_copy(update={"capacity": None})})


def test_inputs_count_once_each():
    sizes = {SMALL.tensors[name].bytes for name in SMALL.inputs}
    assert input_bytes(SMALL) == sum(sizes)


@pytest.mark.parametrize(("peak", "said"), [(ROOM, 0), (ROOM + 1e9, 1)])
def test_one_plan_fits_or_does_not(peak, said):
    assert len(too_large(SMALL, DEVICE, peak)) == said
    assert not too_large(SMALL, without_capacity(), peak)


@pytest.mark.parametrize(
    ("unfused", "fused", "end"),
    [(2, 3, "neither will fit"), (2, 0.1, "only the fused plan will fit"), (0.1, 2, "only the unfused plan will fit")],
)
def test_two_plans_are_told_apart(unfused, fused, end):
    (said,) = sides_too_large(SMALL, DEVICE, unfused * ROOM, fused * ROOM)
    assert said.endswith(end)
    assert "more than the 141.0 GB of h200-sxm" in said
    assert not sides_too_large(SMALL, DEVICE, 0.1 * ROOM, 0.2 * ROOM)


def test_reports_say_it_and_keep_the_price():
    graph = patterns.bias_relu(rows=2**21, cols=2**17)
    found = compare(graph, device=DEVICE)
    assert sum("will fit" in line for line in found.explain()) == 1
    assert found.saving > 0
    plan = fusesim.plan(graph, "eager", DEVICE)
    assert sum("it will not fit" in line for line in plan_sentences(plan, price(plan, device=DEVICE), DEVICE)) == 1
    assert sum("neither will fit" in line for line in rank(graph, device=DEVICE).explain()) == 1
    assert not any("fit" in line for line in compare(SMALL, device=DEVICE).explain())
