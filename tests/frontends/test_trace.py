"""Profiler traces: graphs from ops alone, timelines from times, and files that are none."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import random
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest

from fusesim.errors import GraphError, InputError
from fusesim.frontends.inductor_names import inductor_kernel
from fusesim.frontends.trace import from_trace, read_trace
from fusesim.frontends.trace_timeline import timeline_of

REFERENCE = Path(__file__).parents[1] / "reference"
MODELS = {
    "block:1,2048,2048,5632,16": "block_1-2048-2048-5632-16",
    "gpt:8,1024,1024,16": "gpt_8-1024-1024-16",
    "bert:8,128,768,12": "bert_8-128-768-12",
    "resnet50:32": "resnet50_32",
}
ROWS = {row["name"]: row for row in json.loads((REFERENCE / "h200_models.json").read_text())["rows"]}


def path_of(model, state):
    return REFERENCE / "traces" / f"{MODELS[model]}.{state}.json.gz"


def events_in(path):
    return json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def as_file(content):
    return io.BytesIO(content if isinstance(content, bytes) else json.dumps(content).encode())


def op(name, *operands, place=0, **args):
    """An op as the profiler writes it: operands are shapes (bf16, row-major), settings are text."""
    dims, strides, types, values = [], [], [], []
    for operand in operands:
        given = operand if isinstance(operand, list) else []
        steps = [1]
        for size in reversed(given[1:]):
            steps.append(steps[-1] * size)
        dims.append(given)
        strides.append(steps[::-1] if given else [])
        types.append("c10::BFloat16" if given else "Scalar")
        values.append("" if given else str(operand))
    recorded = {"Input Dims": dims, "Input Strides": strides, "Input type": types, "Concrete Inputs": values}
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "args": {**recorded, "Ev Idx": place, **args}}


@pytest.mark.parametrize("state", ["eager", "compiled"])
@pytest.mark.parametrize("model", MODELS)
def test_every_kernel_belongs_to_an_op_and_every_op_launched_some(model, state):
    trace = read_trace(path_of(model, state))
    assert trace.kernels == ROWS[model][state]["graph_kernels"]
    assert sum(len(kernels) for kernels in trace.kernels_of.values()) == trace.kernels
    assert {node.name for node in trace.graph.paid_nodes} == {name for name, k in trace.kernels_of.items() if k}
    assert trace.compiled == (state == "compiled")
    assert trace.device == "NVIDIA H200"


@pytest.mark.parametrize("state", ["eager", "compiled"])
@pytest.mark.parametrize("model", MODELS)
def test_times_change_nothing_in_the_graph(model, state):
    path = path_of(model, state)
    bare = [{key: value for key, value in event.items() if key not in {"ts", "dur"}} for event in events_in(path)]
    whole, stripped = from_trace(path), from_trace(as_file({"traceEvents": bare}))
    assert whole == stripped


@pytest.mark.parametrize("model", MODELS)
def test_a_trace_without_kernels_gives_the_same_products(model):
    path = path_of(model, "eager")
    ops = [event for event in events_in(path) if event.get("cat") == "cpu_op"]
    whole, alone = from_trace(path), from_trace(as_file(ops))

    def products(graph):
        return [
            (node.kind, graph.flops(node)) for node in graph.nodes if node.family in {"matmul", "conv", "attention"}
        ]

    assert products(whole) == products(alone)


def heavy_flops(graph):
    return sum(graph.flops(node) for node in graph.nodes if node.family in {"matmul", "conv", "attention"})


@pytest.mark.parametrize("state", ["eager", "compiled"])
def test_flops_of_products_by_hand(state):
    # q, k, v, out: 4 x 2 T H H; gate, up, down: 3 x 2 T H I; attention: 4 T T H (16 heads of 128)
    t, h, i = 2048, 2048, 5632
    assert (
        heavy_flops(from_trace(path_of("block:1,2048,2048,5632,16", state)))
        == 8 * t * h * h + 6 * t * h * i + 4 * t * t * h
    )
    # qkv 3 H H, out H H, up and down 4 H H each: 12 H H weights, 2 FLOP each per token; attention 4 T H per token
    for model, batch, t, h in (("gpt:8,1024,1024,16", 8, 1024, 1024), ("bert:8,128,768,12", 8, 128, 768)):
        assert heavy_flops(from_trace(path_of(model, state))) == batch * t * (24 * h * h + 4 * t * h)
    # 4.089 GFLOP multiply-adds a picture of 224 x 224, as published for this network
    assert heavy_flops(from_trace(path_of("resnet50:32", state))) == pytest.approx(2 * 4.089e9 * 32, rel=1e-3)


def test_residuals_are_linked_before_and_after_norms():
    """A pre-norm block adds to what went into the norm, a post-norm block to what came out of it."""
    gpt, bert = (from_trace(path_of(model, "eager")) for model in ("gpt:8,1024,1024,16", "bert:8,128,768,12"))
    for graph, kinds in ((gpt, [None, "add"]), (bert, [None, "layer_norm"])):
        added = [node for node in graph.paid_nodes if node.kind == "add"]
        sources = [{graph.producers.get(graph.base(name)) for name in node.inputs} for node in added]
        found = [{source and source.kind for source in pair} for pair in sources]
        assert found == [{"matmul", kind} for kind in kinds]


def test_rotary_embeddings_read_queries_and_keys():
    graph = from_trace(path_of("block:1,2048,2048,5632,16", "eager"))
    products = [node.name for node in graph.paid_nodes if node.kind == "matmul"][:3]
    attention = next(node for node in graph.paid_nodes if node.kind == "attention")
    readers = {name: [n.kind for n in graph.paid_nodes if name in graph.predecessors[n.name]] for name in products}
    assert readers == {
        products[0]: ["mul", "neg", "concat"],
        products[1]: ["mul", "neg", "concat"],
        products[2]: ["attention"],
    }
    assert sorted(graph.by_name[name].kind for name in graph.predecessors[attention.name]) == ["add", "add", "matmul"]


def test_strides_are_as_recorded():
    graph = from_trace(path_of("resnet50:32", "eager"))
    first = next(node for node in graph.paid_nodes if node.kind == "conv")
    assert graph.tensors[first.outputs[0]].strides == (802816, 1, 7168, 64)  # channels last
    assert sum(node.kind == "conv" for node in graph) == 53
    assert sum(node.kind == "batch_norm" for node in graph) == 53
    assert len(graph.outputs) == 1


def test_gelu_is_told_by_its_kernel():
    kinds = {model: {node.kind for node in from_trace(path_of(model, "eager"))} for model in MODELS}
    assert "gelu_tanh" in kinds["gpt:8,1024,1024,16"]
    assert "gelu" in kinds["bert:8,128,768,12"]


def test_inductor_kernels_by_name():
    kernel = inductor_kernel("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0")
    assert kernel.loop == "reduction"
    assert kernel.ops == ("_to_copy", "add", "mean", "mul", "pow", "rsqrt")
    kernel = inductor_kernel(
        "triton_poi_fused__scaled_dot_product_cudnn_attention__unsafe_view_add_cat_mul_neg_slice_transpose_view_1"
    )
    assert kernel.loop == "pointwise"
    assert kernel.ops[:3] == ("_scaled_dot_product_cudnn_attention", "_unsafe_view", "add")
    assert kernel.ops[-1] == "view"
    assert inductor_kernel("nvjet_sm90_tst_256x128") is None


def test_inductor_kernels_in_a_graph():
    trace = read_trace(path_of("gpt:8,1024,1024,16", "compiled"))
    fused = [node for node in trace.graph.paid_nodes if str(node.attr("op", "")).startswith("triton_")]
    assert [node.attr("fused") for node in fused] == [
        ("native_layer_norm",),
        ("add", "native_layer_norm", "view"),
        ("gelu", "view"),
        ("add", "view"),
    ]
    first = trace.kernels_of[fused[0].name][0]
    assert (first.grid[0] > 0, first.block[0] > 0) == (True, True)
    x = 8 * 1024 * 1024 * 2
    moved = sum(trace.graph.tensors[name].bytes for name in (*fused[0].inputs, *fused[0].outputs))
    assert moved == 2 * x + 2 * 1024 * 2  # x in, x out, weight and bias


def test_the_timeline_adds_up():
    for model in MODELS:
        timeline = read_trace(path_of(model, "eager")).timeline
        assert timeline.kernel_time == pytest.approx(ROWS[model]["eager"]["graph_kernel_us"] * 1e-6, rel=0.25)
        assert timeline.busy + timeline.idle == pytest.approx(timeline.span)
        assert 0 < timeline.host_bound <= timeline.idle  # one call from Python: the device waits
        assert sum(total.time for total in timeline.totals) == pytest.approx(timeline.kernel_time)


def kernel(start, duration, correlation):
    args = {
        "External id": 1,
        "correlation": correlation,
        "device": 0,
        "stream": 7,
        "grid": [1, 1, 1],
        "block": [32, 1, 1],
    }
    return {"ph": "X", "cat": "kernel", "name": "k", "ts": start, "dur": duration, "args": args}


def call(start, duration, correlation, name="cudaLaunchKernel"):
    args = {"correlation": correlation}
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "ts": start, "dur": duration, "args": args}


def test_only_gaps_in_front_of_late_launches_are_the_hosts():
    events = [
        *(call(0, 2, 1), call(2, 2, 2), call(30, 2, 3)),
        *(kernel(5, 10, 1), kernel(16, 4, 2), kernel(35, 5, 3)),
    ]
    timeline = read_trace(as_file(events)).timeline
    assert timeline.span == pytest.approx(35e-6)
    assert timeline.busy == pytest.approx(19e-6)
    assert timeline.idle == pytest.approx(16e-6)  # 15 to 16 queued, 20 to 35
    assert timeline.host_bound == pytest.approx(15e-6)
    assert [stretch.launches for stretch in timeline.stretches] == [1]


def test_streams_that_overlap_count_once():
    assert timeline_of(read_trace(as_file([kernel(0, 10, 1), kernel(5, 10, 2)])).launches).busy == pytest.approx(15e-6)


def test_graph_launches_are_counted():
    events = [call(0, 2, 1, "cudaGraphLaunch"), kernel(5, 1, 1), kernel(7, 1, 1)]
    trace = read_trace(as_file(events))
    assert trace.graph_launches == 1
    assert [launch.call for launch in trace.launches] == ["cudaGraphLaunch"] * 2
    assert trace.graph is None
    assert "record_shapes=True" in trace.notes[0]


def test_amd_traces_are_read():
    launch = kernel(0, 4, 9)
    launch["name"] = "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32"
    events = [
        op("aten::mm", [64, 32], [32, 16], place=1, **{"External id": 1}),
        op("aten::relu", [64, 16], place=2, **{"External id": 2}),
        call(0, 1, 9, "hipExtModuleLaunchKernel"),
        launch,
        {**launch, "args": {**launch["args"], "External id": 2, "correlation": 10}},
    ]
    trace = read_trace(as_file({"traceEvents": events}))
    assert [node.kind for node in trace.graph.paid_nodes] == ["matmul", "relu"]
    assert trace.launches[0].call == "hipExtModuleLaunchKernel"


def test_what_calls_other_ops_is_counted_once():
    events = [
        op("aten::linear", [8, 16, 32], [64, 32], [64], place=0),
        op("aten::t", [64, 32], place=1),
        op("aten::transpose", [64, 32], 0, 1, place=2),
        op("aten::as_strided", [64, 32], "[32, 64]", "[1, 32]", "0", place=3),
        op("aten::view", [8, 16, 32], "[128, 32]", place=4),
        op("aten::addmm", [64], [128, 32], [32, 64], 1, 1, place=5),
        op("aten::view", [128, 64], "[8, 16, 64]", place=6),
        op("aten::relu", [8, 16, 64], place=7),
        op("aten::clamp_min", [8, 16, 64], 0, place=8),
    ]
    events[5]["args"]["Input Strides"][2] = [1, 32]  # the weight, transposed
    graph = from_trace(as_file(events))
    assert [node.kind for node in graph.paid_nodes] == ["matmul", "relu"]
    assert graph.total_flops == 2 * 128 * 32 * 64 + 8 * 16 * 64
    assert len(graph.parameters) == 2
    assert graph.predecessors["relu"] == ("matmul",)


def test_in_place_ops_write_over_their_operand():
    events = [
        op("aten::mul", [4, 8], 2, place=0),
        op("aten::add_", [4, 8], [4, 8], 1, place=1),
        op("aten::exp", [4, 8], place=2),
    ]
    graph = from_trace(as_file(events))
    added = graph.node("add")
    assert graph.tensors[added.outputs[0]].storage == "mul"
    assert graph.predecessors["exp"] == ("add",)


def test_optimizer_steps_over_lists():
    lists = {"Input Dims": [[[8, 4], [16]], [[8, 4], [16]], []], "Input Strides": [[[4, 1], [1]], [[4, 1], [1]], []]}
    event = op("aten::_foreach_add_", 1, 1, 1, place=0)
    event["args"] |= {**lists, "Input type": ["TensorList", "TensorList", "Scalar"], "Concrete Inputs": ["", "", "1"]}
    graph = from_trace(as_file([event]))
    assert [node.kind for node in graph.paid_nodes] == ["add", "add"]
    assert "foreach" in graph.gaps[0]


def test_unknown_ops_that_launch_are_opaque():
    events = [op("vllm::paged", [4, 8], place=0, **{"External id": 1}), kernel(0, 1, 1)]
    graph = from_trace(as_file(events))
    assert [node.kind for node in graph.paid_nodes] == ["opaque"]
    assert "paged" in graph.gaps[0]


def test_a_trace_without_strides_is_read():
    events = [op("aten::mm", [64, 32], [32, 16], place=1), op("aten::relu", [64, 16], place=2)]
    for event in events:
        del event["args"]["Input Strides"]
    assert from_trace(as_file(events)).predecessors["relu"] == ("matmul",)


def big_trace(count):
    yield b'{"traceEvents": ['
    for place in range(count):
        event = op("aten::relu", [1024, 1024], place=place, **{"External id": place, "filler": "x" * 500})
        yield (b"," if place else b"") + json.dumps(event).encode()
    yield b"]}"


def test_a_long_trace_takes_bounded_memory(tmp_path, monkeypatch):
    """Text that is kept nowhere: the peak is records and a few chunks, not the file."""
    monkeypatch.setattr("fusesim.frontends.trace.MOST_OPS", 100)
    path = tmp_path / "long.json"
    with path.open("wb") as file:
        file.writelines(big_trace(40_000))
    size = path.stat().st_size
    assert size > 20e6
    seen = []
    tracemalloc.start()
    trace = read_trace(path, progress=lambda done, whole: seen.append((done, whole)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6
    assert seen[-1] == (size, size)
    assert trace.events == 40_000
    assert len(trace.ops) == 100
    assert "first 100 ops" in trace.notes[0]


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("packed", [False, True])
def test_a_truncated_trace_is_read_as_far_as_it_goes(kept, packed):
    path = path_of("resnet50:32", "eager")
    content = path.read_bytes() if packed else gzip.decompress(path.read_bytes())
    trace = read_trace(as_file(content[: int(kept * len(content))]))
    assert trace.graph is not None
    assert "not whole" in trace.notes[0]
    assert trace.graph.gaps[0] == trace.notes[0]


HOSTILE = {
    "empty": (b"", "0 bytes"),
    "spaces": (b"  \n ", "only spaces"),
    "text": (b"hello", "begins with 'h'"),
    "binary": (bytes(range(256)), "no UTF-8 text"),
    "utf-16": ('{"traceEvents": []}'.encode("utf-16"), "no UTF-8 text"),
    "broken": (b'{"traceEvents" 1}', "has no keys"),
    "number": (b"17", "begins with '1'"),
    "no events": (b'{"traceEvents": []}', "holds no events"),
    "another file": (b'{"version": 3, "rows": [1, 2]}', "no traceEvents"),
    "foreign events": (b'[{"ph": "X", "name": "main", "cat": "v8"}]', "none of its 1 events"),
    "execution trace": (b'{"schema": "1.0.1", "nodes": [{"id": 1}]}', "execution trace"),
    "deep": (b'{"a": ' + b"[" * 200_000, "no profiler trace"),
    "deep event": (b"[" * 200_000, "no profiler trace"),
    "gzip of nothing": (gzip.compress(b""), "only spaces"),
    "not really gzip": (b"\x1f\x8bhello, this is text", "no profiler trace|nothing to read"),
    "gzip bomb": (gzip.compress(b" " * (80 << 20)), "unpacks to more than"),
    "endless event": (b'[{"name": "' + b"x" * (18 << 20), "longer than 16 MiB"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_foreign_file_is_one_sentence(case):
    content, words = HOSTILE[case]
    with pytest.raises(InputError, match=words) as caught:
        read_trace(as_file(content))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_an_open_file_is_called_by_its_name(tmp_path):
    path = tmp_path / "ev.json"
    path.write_text('{"a": 1}')
    with path.open("rb") as file, pytest.raises(InputError, match=r"^ev\.json is no profiler trace"):
        read_trace(file)
    with pytest.raises(InputError, match=r"^trace is no profiler trace"):
        read_trace(as_file(b'{"a": 1}'))


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"gone\.json: cannot be read"):
        from_trace(tmp_path / "gone.json")


def test_no_shapes_is_one_sentence():
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "args": {"External id": 1}}
    with pytest.raises(GraphError, match="record_shapes=True"):
        from_trace(as_file([event]))


@pytest.mark.parametrize(
    "damage",
    [
        {"ts": float("nan"), "dur": -5},
        {"ts": "soon", "dur": None},
        {"args": None},
        {"args": {"Input Dims": [[-1, 3]], "Input type": ["float"]}},
        {"args": {"Input Dims": "x", "Input type": 7, "Concrete Inputs": {}}},
        {"args": {"Input Dims": [[2, 3], [5, 7]], "Input type": ["float", "float"]}},
        {"args": {"Input Dims": [[10**30]], "Input type": ["float"]}},
        {"name": 7},
        {"cat": []},
        {"name": "aten::cat"},
        {"name": "aten::convolution"},
        {"name": "aten::_to_copy"},
        {"name": "aten::select"},
    ],
)
def test_damaged_events_are_left_out(damage):
    events = [op("aten::mm", [4, 8], [8, 2], place=0), {**op("aten::add", [4, 2], [4, 2], 1, place=1), **damage}]
    graph = from_trace(as_file(events))
    assert graph.paid_nodes[0].kind == "matmul"


GARBAGE = [b"", b"0", b'"', b"[", b"}", b"-7", b"\xff", b"null"]


def test_bytes_at_random_are_read_or_refused():
    """Whatever a file holds, the answer is a trace or one of our errors."""
    content = gzip.decompress(path_of("gpt:8,1024,1024,16", "eager").read_bytes())
    dice = random.Random(7)
    read = 0
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(dice.choice([1, 4, 40])):
            at = dice.randrange(len(damaged))
            damaged[at : at + dice.choice([1, 1, 8])] = dice.choice(GARBAGE)
        with contextlib.suppress(InputError, GraphError):
            read += read_trace(as_file(bytes(damaged))).graph is not None
    assert read > 30


def test_two_convolutions_read_one_value():
    """Branches that are joined read what was read last; one that is added to what waits reads the branch's start."""
    x, wide = [1, 8, 6, 6], [1, 16, 6, 6]

    def conv(place, given, weight):
        return op(
            "aten::convolution", given, weight, "", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", 1, place=place
        )

    start = [op("aten::relu", x, place=0), conv(1, x, [8, 8, 1, 1]), op("aten::relu", x, place=2)]
    joined = [conv(3, x, [16, 8, 1, 1]), conv(4, x, [16, 8, 1, 1]), op("aten::cat", 0, 1, place=5)]
    joined[2]["args"] |= {
        "Input Dims": [[wide, wide], []],
        "Input Strides": [[], []],
        "Input type": ["TensorList", "Scalar"],
    }
    graph = from_trace(as_file([*start, *joined]))
    assert graph.predecessors["conv_1"] == graph.predecessors["conv_2"] == ("relu_1",)
    added = [conv(3, x, [16, 8, 1, 1]), conv(4, x, [16, 8, 1, 1]), op("aten::add", wide, wide, 1, place=5)]
    graph = from_trace(as_file([*start, *added]))
    assert (graph.predecessors["conv_1"], graph.predecessors["conv_2"]) == (("relu_1",), ("relu",))


def test_keys_and_values_joined_to_a_cache_are_read_one_after_the_other():
    """Types of lists' members are not recorded: the cache that comes in has that of what is joined to it."""
    old, new, both = [2, 7, 4], [2, 1, 4], [2, 8, 4]

    def joined(place):
        made = op("aten::cat", 0, 1, place=place)
        lists = {"Input Dims": [[old, new], []], "Input Strides": [[], []], "Input type": ["TensorList", "Scalar"]}
        made["args"] |= lists
        return made

    made = [op("aten::relu", new, place=0), op("aten::neg", new, place=1), joined(2), joined(3)]
    repeated = [
        part
        for place in (4, 6)
        for part in (
            op("aten::unsqueeze", both, 1, place=place),
            op("aten::clone", [2, 1, 8, 4], 0, place=place + 1),
        )
    ]
    graph = from_trace(as_file([*made, *repeated]))
    caches = [graph.tensors[graph.node(name).inputs[0]] for name in ("concat", "concat_1")]
    assert [(cache.shape, cache.dtype) for cache in caches] == [((2, 7, 4), "bf16")] * 2
    assert (graph.predecessors["copy"], graph.predecessors["copy_1"]) == (("concat",), ("concat_1",))


def test_copies_to_the_host_are_left_out():
    copied = kernel(0, 4, 9)
    copied |= {"cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pageable)"}
    ran = kernel(5, 4, 10)
    copied["args"] = {**copied["args"], "External id": 2}
    events = [
        op("aten::relu", [64, 16], place=1, **{"External id": 1}),
        op("aten::_to_copy", [64, 16], place=2, **{"External id": 2}),
        op("aten::neg", [64, 16], place=3, **{"External id": 3}),
        *(ran, copied),
    ]
    graph = from_trace(as_file(events))
    assert [node.kind for node in graph.paid_nodes] == ["relu"]
    assert "launched nothing" in graph.gaps[0]
    assert graph.gaps[1] == "copies between host and device are not priced"


def test_what_cannot_be_read_is_told():
    with pytest.raises(InputError, match="a trace is a path or an open binary file, not int"):
        read_trace(3)
    broken = SimpleNamespace(read=_broken, name="broken.json")
    with pytest.raises(InputError, match="cannot be read: Input/output error"):
        read_trace(broken)


def _broken(_size):
    raise OSError(errno.EIO, "Input/output error")
