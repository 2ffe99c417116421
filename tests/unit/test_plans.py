"""Prices of plans: what must hold of every one, and the cases in which fusing loses."""

from __future__ import annotations

import math
import time

import pytest

import fusesim
from fusesim import patterns
from fusesim.builder import Builder
from fusesim.errors import InputError
from fusesim.fusion import FusionPlan, Group
from fusesim.group_cost import GroupCost, group_cost
from fusesim.planning import context_of, cost_of
from fusesim.plans import price
from fusesim.records import BOUNDS, LATE
from fusesim.textbook_cost import TextbookCost

COST = group_cost("h200-sxm")


def planned(graph, strategy="eager", **kwargs):
    return fusesim.plan(graph, strategy, "h200-sxm", **kwargs)


def test_the_fixed_interface():
    plan = fusesim.plan(
        fusesim.patterns.rmsnorm(tokens=8192, hidden=4096, dtype="bf16"), strategy="eager", device="h200"
    )
    found = fusesim.price(
        plan,
        device="h200-sxm",
        model="calibrated",
        launch="graph",
        path="torch",
        inputs="cold",
        graph_repeats=1,
        calibration=None,
        host_interval=None,
    )
    assert isinstance(found, fusesim.Price)
    assert found.kernels == len(found.per_kernel) == 6
    assert found.bound in BOUNDS
    assert all(getattr(found, name) is not None for name in LATE)
    assert "h200-sxm" in found.calibration
    record = found.to_dict()
    assert record["time"] == found.time
    assert len(record["per_kernel"]) == 6


def test_every_pattern_has_a_price_under_every_default():
    for name in patterns.PATTERNS:
        graph = patterns.find(name)()
        for strategy, path in (("eager", "torch"), ("inductor", "inductor")):
            found = price(planned(graph, strategy), device="h200-sxm", path=path)
            low, high = found.interval
            assert 0 < low < found.time < high < math.inf, name


def test_fused_bytes_are_the_ends_of_the_graph():
    graph = patterns.bias_relu(128, 512)
    one = price(planned(graph, "vertical"), device="h200-sxm", path="inductor")
    assert one.bytes_read == 128 * 512 * 4 + 512 * 4  # x and the bias
    assert one.bytes_written == 128 * 512 * 4


def test_compare_is_its_two_sides():
    graph = patterns.rmsnorm(1024, 4096)
    found = fusesim.compare(graph, device="h200-sxm")
    assert found.unfused.time == price(planned(graph), device="h200-sxm").time
    assert found.saving == pytest.approx(found.unfused.time - found.fused.time)
    assert found.speedup == pytest.approx(found.unfused.time / found.fused.time)
    low, high = found.saving_interval
    assert low < found.saving < high
    assert found.to_dict()["explain"] == found.explain()


def test_a_side_is_a_strategy_and_a_path():
    with pytest.raises(InputError, match=r"unfused is eager; give a strategy and a path"):
        fusesim.compare(patterns.bias_relu(), device="h200-sxm", unfused="eager")


def test_break_even_of_a_comparison():
    found = fusesim.compare(patterns.rmsnorm(), device="h200-sxm")
    assert found.break_even_calls(2.0) == math.ceil(2.0 / found.saving)
    assert found.break_even_calls() == math.ceil(0.385 / found.saving)  # the default for few ops
    same = fusesim.compare(patterns.rmsnorm(), device="h200-sxm", fused=("eager", "torch"))
    assert same.saving == 0
    assert same.break_even_calls(1.0) == math.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device": "h20"}, "unknown device"),
        ({"launch": "grahp"}, 'did you mean "graph"'),
        ({"path": "jax"}, "unknown path"),
        ({"model": "textbok"}, 'did you mean "textbook"'),
        ({"graph_repeats": 0}, "graph_repeats"),
        ({"inputs": "hot"}, "unknown input state"),
        ({"model": "textbook", "host_interval": 1e-6}, "neither host_interval nor calibration"),
    ],
)
def test_wrong_arguments_are_told(arguments, message):
    with pytest.raises(InputError, match=message):
        price(planned(patterns.bias_relu()), **{"device": "h200-sxm"} | arguments)


@pytest.mark.parametrize("value", [3, "rmsnorm", [], {}])
def test_what_is_no_program_and_no_plan_is_told(value):
    for call in (fusesim.plan, fusesim.compare, fusesim.rank):
        with pytest.raises(InputError, match=f"a program is a Graph, such as .*; not {type(value).__name__}"):
            call(value)
    with pytest.raises(InputError, match=f"a plan is a FusionPlan, such as .*; not {type(value).__name__}"):
        price(value)


@pytest.mark.parametrize("name", [[], {}])
def test_a_name_that_is_no_text_is_told(name):
    with pytest.raises(InputError, match="unknown strategy"):
        fusesim.plan(patterns.bias_relu(), strategy=name)
    with pytest.raises(InputError, match="bias_relu has no op"):
        patterns.bias_relu().node(name)


@pytest.mark.parametrize("launch", ["graph", "stream", "latency"])
@pytest.mark.parametrize("kind", ["fill", "rand"])
def test_a_program_without_inputs_has_a_price(kind, launch):
    b = Builder("made")
    made = b.tensor((1000, 1000), "fp32", stem="made")
    b.node(kind, [], [made])
    b.output(made)
    result = fusesim.compare(b.graph(), launch=launch)
    for side in (result.unfused, result.fused):
        assert 0 < side.interval[0] <= side.time <= side.interval[1] < 1e-3
        assert side.bytes_written == pytest.approx(4e6, abs=8)  # fp32; a compiler's rand also writes its seed


@pytest.mark.parametrize("strategy", ["eager", "vertical", "inductor", "xla", "optimal"])
def test_what_makes_no_value_launches_nothing_and_takes_no_time(strategy):
    b = Builder()
    b.output(b.softmax(b.input(4, 0)), b.op("relu", b.layer_norm(b.input(0, 8))))
    made = planned(b.graph(), strategy)
    for model, launch in (("textbook", "graph"), ("calibrated", "graph"), ("calibrated", "latency")):
        found = price(made, model=model, launch=launch, path="inductor")
        assert (found.kernels, found.time, found.launch_time, found.bytes_moved) == (0, 0, 0, 0)
        assert (found.launch_share, found.arithmetic_intensity) == (0, 0)
    result = fusesim.compare(b.graph(), fused=(strategy, "inductor"))
    assert (result.saving, result.speedup) == (0, 1)
    assert result.explain()


def test_a_sum_of_nothing_is_a_kernel_that_writes_zeros():
    b = Builder()
    b.output(b.reduce("sum", b.input(4, 0)))
    for strategy, path in (("eager", "torch"), ("inductor", "inductor")):
        assert price(planned(b.graph(), strategy), path=path).kernels == 1


def test_a_group_alone_costs_what_its_plan_does_with_cold_inputs():
    graph = patterns.add_rmsnorm(4096, 4096)
    names = tuple(node.name for node in graph.paid_nodes)
    alone = FusionPlan(graph=graph, groups=(Group(nodes=names),), strategy="one")
    whole = price(alone, device="h200-sxm", path="inductor")
    assert COST(graph, names) == pytest.approx(whole.time - whole.parts.settings.replay, rel=0.15)


def test_planners_ask_the_calibrated_model_unless_told_otherwise():
    assert isinstance(context_of("h200-sxm").cost, GroupCost)
    assert isinstance(cost_of("h200-sxm", model="textbook"), TextbookCost)
    assert group_cost("h200-sxm", model="textbook") is None


def long_chain(count, kind="where"):
    """A chain in which each op reads two tensors of its own: twice as many pointers as ops."""
    b = Builder("long")
    x = b.input(4096, 4096, dtype="fp32")
    for _ in range(count):
        x = b.op(kind, x, *(b.input(4096, 4096, dtype="fp32") for _ in range(2)))
    b.output(x)
    return b.graph()


def test_a_chain_that_spills_costs_more_than_its_halves():
    graph = long_chain(90)  # 180 operands: their addresses alone need 360 of 255 registers
    names = [node.name for node in graph.nodes]
    whole = COST(graph, names)
    halves = min(COST(graph, names[:cut]) + COST(graph, names[cut:]) for cut in range(30, 61, 5))
    assert halves < whole


def test_the_best_split_of_a_short_chain_is_none():
    graph = long_chain(20)  # 40 operands fit
    assert len(planned(graph, "optimal").groups) == 1


@pytest.mark.slow
def test_the_best_split_of_a_long_chain_is_found():
    graph = long_chain(80)
    plan = planned(graph, "optimal")
    assert len(plan.groups) > 1
    total = sum(COST(plan.graph, group.nodes) for group in plan.groups)
    assert total < COST(graph, [node.name for node in graph.nodes])


def test_an_epilogue_that_no_library_has_displaces_its_product_and_loses():
    b = Builder("sin of a product")
    b.output(b.op("sin", b.matmul(b.input(8192, 8192), b.input(8192, 8192))))
    graph = b.graph()
    assert COST(graph, ("matmul", "sin")) > COST(graph, ("matmul",)) + COST(graph, ("sin",))
    assert len(planned(graph, "vertical").groups) == 2


def test_few_long_rows_whose_sum_is_used_again_do_not_fill_the_device():
    b = Builder("normalised rows")
    x = b.input(8, 1 << 20)
    b.output(b.op("div", x, b.reduce("sum", x)))
    graph = b.graph()
    assert COST(graph, ("sum", "div")) > COST(graph, ("sum",)) + COST(graph, ("div",))


def test_dropout_and_layer_norm_lose_when_compiled_at_length():
    # Measured (h200_own_patterns.json): 95.6 us eager, 117 us compiled at 4000 x 4096; 11.4 and 7.6 us at 512 x 1024.
    large, small = (patterns.dropout_residual_layernorm(*size) for size in ((4000, 4096), (512, 1024)))
    assert fusesim.compare(large, device="h200-sxm").speedup < 1.05
    assert fusesim.compare(small, device="h200-sxm").speedup > 1.2


def test_softmax_of_many_rows_gains_nothing_when_compiled():
    # Measured (h200_own_patterns.json): 44.5 us eager, 45.5 us compiled.
    assert fusesim.compare(patterns.softmax(8192, 2048), device="h200-sxm").speedup < 1.15


def test_erf_gelu_gains_nothing_when_compiled():
    # Measured (h200_patterns.json): 7.45 us eager, 10.4 us compiled.
    assert fusesim.compare(patterns.gelu(1024, 4096), device="h200-sxm").speedup < 1.1


def test_inductor_is_never_better_than_the_optimum():
    for name in ("rmsnorm", "dropout_residual_layernorm", "cross_entropy", "adam_step"):
        graph = patterns.find(name)()
        best, other = (planned(graph, strategy) for strategy in ("optimal", "inductor"))
        totals = [sum(COST(plan.graph, group.nodes) for group in plan.groups) for plan in (best, other)]
        assert totals[0] <= totals[1] * (1 + 1e-9)


def test_planning_and_pricing_a_block_is_quick():
    graph = patterns.transformer_block()
    planned(graph, "vertical")
    start = time.perf_counter()
    price(planned(graph, "vertical"), device="h200-sxm", path="inductor")
    assert time.perf_counter() - start < 0.5  # about 12 ms; ten times that on a busy machine


def test_a_profiler_that_has_run_costs_each_kernel_of_a_graph():
    graph = patterns.rmsnorm(tokens=32, hidden=4096, dtype="bf16")
    plan = planned(graph)
    bare, seen = (price(plan, launch="graph", profiled=profiled) for profiled in (False, True))
    each = (seen.time - bare.time) / seen.kernels
    assert 2e-7 < each < 6e-7  # four H200s: 0.23 to 0.53 us
    both = fusesim.compare(graph, profiled=False)
    assert both.unfused.time == pytest.approx(bare.time)
    stream = [price(plan, launch="stream", profiled=profiled).time for profiled in (False, True)]
    assert stream[0] == stream[1]


@pytest.mark.parametrize("value", [1, "yes", None])
def test_whether_a_profiler_has_run_is_true_or_false(value):
    with pytest.raises(InputError, match="profiled is a bool"):
        price(planned(patterns.gelu(rows=4, cols=1024)), profiled=value)


@pytest.mark.parametrize("profiled", [True, False])
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("dropout_residual_layernorm", {"tokens": 785, "hidden": 4096}),  # what its norm reads is still in the cache
        ("softmax", {"rows": 4, "cols": 16384, "composite": False}),
        ("rmsnorm", {"tokens": 300, "hidden": 2048}),
    ],
)
@pytest.mark.parametrize("path", ["inductor", "cupy"])
def test_the_best_plan_is_no_slower_than_a_greedy_one_with_caches_counted(name, sizes, path, profiled):
    graph = patterns.find(name)(**sizes)
    cost = cost_of("h100-sxm", path, profiled=profiled)
    optimal, vertical, eager = (
        price(
            fusesim.plan(graph, strategy, "h100-sxm", cost=cost), device="h100-sxm", path=path, profiled=profiled
        ).time
        for strategy in ("optimal", "vertical", "eager")
    )
    assert optimal <= vertical * (1 + 1e-9)
    assert vertical <= eager * (1 + 1e-9)
