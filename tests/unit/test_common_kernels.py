"""What two plans run alike cancels in the interval of their saving."""

from __future__ import annotations

import dataclasses

import pytest

import fusesim
from fusesim import patterns
from fusesim.common_kernels import RESIDUAL, Side, common_of, common_time, form, identical, saving_deviation
from fusesim.launches import Access, Launch
from fusesim.ranking import rank

ADD = Launch(name="add", row="vectorised16", nodes=("add",), reads=(Access("x", 64.0),), writes=(Access("y", 64.0),))


def test_names_make_no_other_kernel_and_work_does():
    renamed = dataclasses.replace(ADD, name="sum", nodes=("sum",), reads=(Access("a", 64.0),), arithmetic=7.0)
    assert form(renamed) == form(ADD)
    assert hash(form(renamed)) == hash(form(ADD))
    for change in ({"row": "strided2_16"}, {"blocks": 2.0}, {"reads": (Access("x", 32.0),)}, {"slots": 1.0}):
        assert form(dataclasses.replace(ADD, **change)) != form(ADD), change


def test_kernels_pair_by_form_and_the_shorter_time_is_common():
    one = [("product", 90.0), ("add", 10.0), ("add", 12.0), ("gelu", 20.0)]
    other = [("product", 88.0), ("add", 11.0), ("add gelu", 14.0)]
    assert common_time(one, other) == 88.0 + 11.0  # of two additions the longer pairs, with 11
    assert common_time(other, one) == 99.0
    assert common_time(one, one) == 132.0
    assert common_time(one, []) == 0.0


def test_a_saving_deviates_by_what_differs_and_a_residual_of_what_is_common():
    unfused, fused = Side(30.0, 0.9, 1.2), Side(20.0, 0.8, 1.2)
    below, above = saving_deviation(unfused, fused, common=0.0, shared=0.0)
    assert below == pytest.approx(5.0)  # 30 x 0.1 = 3 faster and 20 x 0.2 = 4 slower
    assert above == pytest.approx(52.0**0.5)  # 30 x 0.2 = 6 slower and 20 x 0.2 = 4 faster
    assert saving_deviation(unfused, fused, common=12.0 / RESIDUAL, shared=0.0)[0] == pytest.approx(13.0)
    assert saving_deviation(unfused, fused, common=0.0, shared=0.5)[1] == pytest.approx(28.0**0.5)  # 36 + 16 - 24
    assert saving_deviation(unfused, fused, common=0.0, shared=1.0)[0] == pytest.approx(1.0)


def test_a_product_on_both_sides_leaves_the_saving_of_its_epilogue_sure():
    found = fusesim.compare(patterns.matmul_bias_gelu(m=2048, k=4096, n=4096), device="h200-sxm")
    product = found.unfused.parts.kernels_run[0]
    assert product.launch.product is not None
    common = common_of(found.unfused.parts, found.fused.parts)
    assert common == pytest.approx(product.time.time + found.unfused.parts.settings.replay)
    low, high = found.saving_interval
    assert 0 < low < found.saving < high
    # far narrower than two products that deviate apart would have it
    assert high - low < 0.25 * product.time.time


@pytest.mark.parametrize("launch", ["stream", "graph"])
def test_the_same_plan_twice_saves_nothing_for_sure(launch):
    for graph in (patterns.matmul(), patterns.rmsnorm()):
        found = fusesim.compare(graph, device="h200-sxm", launch=launch, fused=("eager", "torch"))
        assert identical(found.unfused.parts, found.fused.parts)
        assert (found.saving, *found.saving_interval) == (0.0, 0.0, 0.0)


def test_the_same_kernels_in_two_programs_lie_apart_by_the_residual():
    found = fusesim.compare(patterns.matmul(), device="h200-sxm", launch="graph")
    assert not identical(found.unfused.parts, found.fused.parts)
    common = common_of(found.unfused.parts, found.fused.parts)
    low, high = found.saving_interval
    assert common > 0
    assert high - low >= 2 * RESIDUAL * common


def test_nothing_is_common_where_the_host_decides():
    graph = patterns.matmul(m=64, k=64, n=64)
    stream = fusesim.compare(graph, device="h200-sxm", launch="stream")
    graphs = fusesim.compare(graph, device="h200-sxm", launch="graph")
    assert common_of(stream.unfused.parts, stream.fused.parts) == 0.0
    assert common_of(graphs.unfused.parts, graphs.fused.parts) > 0.0


def test_a_ranked_fusion_rests_on_what_differs():
    # the convolution and what batch norm prepares stay; its last kernel takes the relu up
    report = rank(patterns.conv_bn_relu(), launch="graph", fused=("vertical", "torch"))
    (only,) = report.fusions
    eager, fused = (side["graph"].parts for side in (report.eager, report.fused))
    kept = [kernel.time.time for kernel in eager.kernels_run if kernel.launch.name not in {"batch_norm", "relu"}]
    assert len(kept) == 4
    assert sum(kept) > 0.4 * only.before
    before, after = (
        Side(time - sum(kept), *run.spread(bound))
        for time, run, bound in ((only.before, eager, only.bound_before), (only.after, fused, only.bound_after))
    )
    below, above = saving_deviation(before, after, common=sum(kept), shared=eager.correlation)
    assert only.interval == pytest.approx((only.saved - below, only.saved + above), rel=1e-3)
