"""No argument of whatever kind ends in a traceback: each is taken, or refused in one sentence of the library's own.

Every argument of every public method gets every value of a list of wrong ones, the others staying right.
"""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import fusesim
from fusesim import patterns
from fusesim.builder import Builder
from fusesim.emit import emit, evaluate
from fusesim.errors import FusesimError
from fusesim.graph import Graph, Node
from fusesim.tensor import Tensor

BAD = (
    None, "a", "", "x\ny", "9" * 300, 0, 3, -1, 1.5, math.nan, math.inf, True, 10**19, 10**400, 1j, b"x",
    [], (), {}, [1, 2], ("a", 2), [None], {"a": 1}, np.int64(4), np.float32(2), np.array([1, 2]), object(), ...,
)  # fmt: skip


def told(call, *args, **kwargs):
    """Call, and check that what is raised is one printable sentence of ours."""
    try:
        call(*args, **kwargs)
    except FusesimError as error:
        text = str(error)
        assert text.isprintable()
        assert 10 < len(text) < 500
        return True
    return False


def right(b):
    """Right arguments for every method of a builder."""
    x, picture, heads = b.input(4, 8), b.input(1, 3, 8, 8), [b.input(1, 1, 4, 8) for _ in range(3)]
    index, rows = b.input(3, 2, dtype="int64"), b.input(8)
    return {
        "tensor": {"shape": (4,), "dtype": "fp32", "stem": "s", "strides": (1,), "of": x, "offset": 0},
        "input": {"dtype": "fp32", "name": "x", "strides": ()},
        "parameter": {"dtype": "fp32", "name": "x", "strides": ()},
        "node": {"kind": "relu", "inputs": [x], "outputs": [b.tensor((4, 8), "bf16", stem="y")]},
        "op": {"kind": "fill", "scalar": 1.0, "dtype": "fp32", "shape": (4,)},
        "cast": {"x": x, "dtype": "fp32"},
        "reduce": {"kind": "sum", "x": x, "dims": (0,), "keepdim": True, "dtype": "fp32"},
        "reduce_all": {"kind": "max", "x": x, "dims": (0,), "keepdim": True, "dtype": "fp32"},
        "softmax": {"x": x, "dim": 0, "log": False, "dtype": "fp32"},
        "layer_norm": {"x": x, "weight": rows, "bias": rows, "rank": 1},
        "rms_norm": {"x": x, "weight": rows, "rank": 1},
        "batch_norm": {"x": x, "mean": rows, "var": rows, "weight": rows, "bias": rows},
        "nll_loss": {"log_probabilities": x, "target": index},
        "cross_entropy": {"logits": x, "target": index},
        "matmul": {"a": x, "b": b.input(8, 4), "bias": b.input(4), "dtype": "fp32"},
        "linear": {"x": x, "weight": b.input(4, 8), "bias": b.input(4)},
        "conv": {"x": picture, "weight": b.input(4, 3, 3, 3), "bias": b.input(4), "stride": (1, 1), "padding": (0, 0),
                 "groups": 1, "dilation": (1, 1)},
        "attention": {"q": heads[0], "k": heads[1], "v": heads[2], "mask": b.input(4, 4), "causal": True},
        "dropout": {"x": x, "p": 0.1},
        "view": {"x": x, "shape": (32,)},
        "permute": {"x": x, "order": (1, 0)},
        "transpose": {"x": x, "first": 0, "second": 1},
        "expand": {"x": x, "shape": (2, 4, 8)},
        "slice": {"x": x, "dim": 0, "start": 0, "stop": 2, "step": 1},
        "select": {"x": x, "dim": 0, "place": 0},
        "copy": {"x": x, "strides": (1, 4)},
        "contiguous": {"x": x},
        "concat": {"tensors": [x, x], "dim": 0},
        "embedding": {"table": x, "index": index},
        "embedding_bag": {"table": x, "index": index},
        "gather": {"kind": "gather", "x": x, "index": [x], "shape": (4, 8)},
    }  # fmt: skip


STARRED = ("output", "hold", "release", "graph")
"""Methods that take tensors behind a star, or nothing."""


def test_the_right_arguments_of_every_method_are_known():
    methods = {name for name, _ in inspect.getmembers(Builder, inspect.isfunction) if not name.startswith("_")}
    assert methods == {*right(Builder()), *STARRED}
    for name, arguments in right(b := Builder()).items():
        assert not told(getattr(b, name), **arguments), name


@pytest.mark.parametrize("name", right(Builder()))
def test_methods_of_a_builder(name):
    refused = 0
    for argument in right(Builder())[name]:
        for value in BAD:
            b = Builder()
            refused += told(getattr(b, name), **right(b)[name] | {argument: value})
            told(b.graph)
    assert refused > len(BAD) // 2  # most of them are


@pytest.mark.parametrize("name", STARRED[:3])
def test_what_is_no_tensor_of_this_builder_is_refused(name):
    for value in (*BAD, Builder().input(4)):
        assert told(getattr(Builder(), name), value)


def graph_of(**changed):
    x, y = (Tensor(name=name, shape=(4,), dtype="fp32", strides=(1,), storage=name) for name in "xy")
    node = {"name": "n", "kind": "relu", "inputs": ("x",), "outputs": ("y",), "attrs": (), "scope": ""}
    node |= {key: value for key, value in changed.items() if key in node and key != "name"}
    form = {"tensors": {"x": x, "y": y}, "inputs": ("x",), "outputs": ("y",), "parameters": frozenset(), "gaps": ()}
    given = {key: value for key, value in changed.items() if key in {*form, "nodes", "held", "name"}}
    return Graph(**{"nodes": (Node(**node),), **form, **given})


@pytest.mark.parametrize(
    "name", ["tensors", "nodes", "inputs", "outputs", "parameters", "gaps", "held", "name", "kind", "attrs"]
)
def test_graphs_and_ops(name):
    for value in BAD:
        told(lambda value=value: fusesim.price(fusesim.plan(graph_of(**{name: value}), "inductor")))


@pytest.mark.parametrize("name", ["name", "shape", "dtype", "strides", "storage", "offset"])
def test_tensors(name):
    right_ones = {"name": "x", "shape": (4,), "dtype": "fp32", "strides": (1,), "storage": "x", "offset": 0}
    for value in BAD:
        told(Tensor, **right_ones | {name: value})


def parameters(function, *without):
    return [name for name, one in inspect.signature(function).parameters.items()
            if name not in without and one.kind not in {one.VAR_KEYWORD, one.VAR_POSITIONAL}]  # fmt: skip


def test_plans_prices_comparisons_and_reports():
    graph = graph_of()
    plan = fusesim.plan(graph)
    for value in BAD:
        for function, first in (
            (fusesim.plan, graph),
            (fusesim.price, plan),
            (fusesim.compare, graph),
            (fusesim.rank, graph),
        ):
            assert told(function, value)
            for name in parameters(function)[1:]:
                told(function, first, **{name: value})
        told(fusesim.price, plan, model="textbook", launch_overhead=value)
        told(fusesim.compare(graph).break_even_calls, value)
        assert told(emit, value)
        told(emit, plan, value)
        assert told(emit, plan, 0, value)
        assert told(evaluate, value, {})
        assert told(fusesim.why.why, value, "n", "n")
        assert told(fusesim.why.why, graph, value, "n")


def test_checks():
    for value in BAD:
        for name in parameters(fusesim.check):
            told(fusesim.check, **{"bytes": 1e6, "time": 1e-5} | {name: value})


@pytest.mark.parametrize("name", sorted(patterns.PATTERNS))
def test_patterns(name):
    function = getattr(patterns, name)
    for argument in parameters(function):
        for value in BAD:
            told(function, **{argument: value})
