"""An H200 to lower to, and the launches of the last op of a small graph."""

import pytest

import fusesim
from fusesim import calibrations
from fusesim.builder import Builder
from fusesim.calibration import machine_of
from fusesim.fusion import FusionPlan, Group
from fusesim.lowering.eager import eager_launches
from fusesim.lowering.generated import group_launches
from fusesim.lowering.target import target_of


@pytest.fixture(scope="session")
def target():
    """132 SMs of 2048 threads."""
    profile = fusesim.device("h200-sxm")
    return target_of(machine_of(calibrations.find_calibration(profile, None), profile), profile)


@pytest.fixture(scope="session")
def launched(target):
    """The kernels that PyTorch launches for the last op that a function adds to a builder."""

    def launches(build):
        b = Builder("one")
        build(b)
        graph = b.graph()
        return eager_launches(graph, graph.paid_nodes[-1], target)

    return launches


@pytest.fixture(scope="session")
def generated(target):
    """The kernels that a compiler makes of all ops that a function adds to a builder."""

    def launches(build, path="inductor"):
        b = Builder("one")
        made = build(b)
        b.output(*(made if isinstance(made, tuple) else (made,)))
        graph = b.graph()
        group = Group(nodes=tuple(node.name for node in graph.paid_nodes))
        return group_launches(FusionPlan(graph=graph, groups=(group,), strategy="test"), group, path, target)

    return launches
