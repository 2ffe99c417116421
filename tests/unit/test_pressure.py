"""Registers that do not fit: what they add to a kernel, and that nothing is added where they do."""

from __future__ import annotations

import pytest

from fusesim.api import find_device
from fusesim.builder import Builder
from fusesim.calibration import machine_of
from fusesim.calibrations import find_calibration
from fusesim.fusion import FusionPlan, Group
from fusesim.limits import Limits
from fusesim.lowering import launches_of
from fusesim.lowering.pressure import GENERATED_SHARE, pressed
from fusesim.lowering.target import Target, target_of
from fusesim.resources import resources

PROFILE = find_device("h200-sxm")
MACHINE = machine_of(find_calibration(PROFILE), PROFILE)
TARGET = target_of(MACHINE, PROFILE)


def sums(count):
    """A sum of tensors that are each read once."""
    b = Builder("sums")
    x = b.input(4096, 4096, dtype="fp32")
    for _ in range(count):
        x = b.op("add", x, b.input(4096, 4096, dtype="fp32"))
    b.output(x)
    return b.graph()


def kernels(graph, target=TARGET):
    group = Group(nodes=tuple(node.name for node in graph.nodes))
    return launches_of(FusionPlan(graph=graph, groups=(group,), strategy="one"), group, "inductor", target)


def test_spilled_registers_go_out_and_come_back():
    graph = sums(140)
    use = resources(graph, [node.name for node in graph.nodes], Limits.of(PROFILE))
    # 16 registers of its own, 2 for each of 142 addresses (141 inputs, 1 result), 4 values each of two operands and a
    # sum: 312 where 255 are
    assert use.registers == 16 + 2 * 142 + 3 * 4
    assert use.spilled == use.registers - 255
    (launch,) = kernels(graph)
    (plain,) = kernels(graph, Target(machine=MACHINE, matrix=TARGET.matrix, vector=TARGET.vector))  # without limits
    threads = 4096 * 4096 / 4  # 16 B of fp32 each
    assert plain.again == 0
    assert launch.again == pytest.approx(2 * 4 * use.spilled * threads)  # 4 B each, out and in
    assert launch.slots - plain.slots == pytest.approx(2 * use.spilled / 4)  # per value of four
    assert launch.resident == 65536 // (255 * launch.threads)
    assert launch.resident < plain.resident


def test_what_fits_is_left_alone():
    graph = sums(60)
    launches = kernels(graph)
    assert pressed(graph, graph.nodes, launches, TARGET) == launches
    assert launches[0].again == 0


@pytest.mark.parametrize(("kind", "share"), [("sin", GENERATED_SHARE), ("relu", 1.0)])
def test_only_an_epilogue_that_no_library_has_slows_a_product(kind, share):
    b = Builder("product")
    b.output(b.op(kind, b.matmul(b.input(4096, 4096), b.input(4096, 4096))))
    graph = b.graph()
    alone = Group(nodes=("matmul",))
    plan = FusionPlan(graph=graph, groups=(alone,), strategy="one")
    library = launches_of(plan, alone, "inductor", TARGET)[-1]
    assert kernels(graph)[-1].rate == pytest.approx(library.rate * share)
