"""Composites written out: which ops, which types, which bytes an intermediate would take."""

import pytest

from fusesim import patterns
from fusesim.builder import Builder
from fusesim.decompose import RULES, decompose
from fusesim.fusion import FusionPlan, Group
from fusesim.liveness import liveness

ROWS, COLS = 16, 64


def kinds(graph):
    return [node.kind for node in graph.paid_nodes]


def made(build, dtype="bf16", shape=(ROWS, COLS)):
    b = Builder("made")
    b.output(build(b, b.input(*shape, dtype=dtype)))
    return decompose(b.graph())


def norm(kind):
    return lambda b, x: getattr(b, kind)(x, *(b.parameter(COLS) for _ in range(2 if kind == "layer_norm" else 1)))


NORMALISE = ["var_mean", "add", "rsqrt", "sub", "mul"]

FORMS = [
    ("softmax", lambda b, x: b.softmax(x), ["amax", "sub", "exp", "sum", "div"]),
    ("log_softmax", lambda b, x: b.softmax(x, log=True), ["amax", "sub", "exp", "sum", "log", "sub"]),
    ("layer_norm", norm("layer_norm"), [*NORMALISE, "mul", "add"]),
    ("layer_norm alone", lambda b, x: b.layer_norm(x), NORMALISE),
    ("rms_norm", norm("rms_norm"), ["square", "mean", "add", "rsqrt", "mul", "mul"]),
]


@pytest.mark.parametrize(("build", "parts"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_16_bit_types_are_widened_inside_and_narrowed_at_the_end(build, parts):
    graph = made(build)
    assert kinds(graph) == ["cast", *parts, "cast"]
    inside = [graph.tensors[name] for node in graph.paid_nodes[:-1] for name in node.outputs]
    assert {tensor.dtype for tensor in inside} == {"fp32"}
    assert graph.tensors[graph.outputs[0]].dtype == "bf16"


@pytest.mark.parametrize(("build", "parts"), [form[1:] for form in FORMS[:2]], ids=[form[0] for form in FORMS[:2]])
def test_fp32_needs_no_casts(build, parts):
    assert kinds(made(build, dtype="fp32")) == parts


def test_batch_norm_of_fp32_statistics_is_pointwise():
    graph = decompose(patterns.conv_bn_relu(2, 8, 8, 4, 3))
    assert kinds(graph) == [
        *["conv", "cast", "add", "sqrt", "reciprocal", "sub", "mul", "mul", "add", "cast", "relu"],
    ]
    assert graph.tensors["batch_norm"].strides == (128, 1, 32, 8)  # the name, type and strides are the original's


def test_group_norm_reduces_over_channels_and_space_of_each_group():
    b = Builder()
    x, result = b.input(2, 8, 4, 4), b.tensor((2, 8, 4, 4), "bf16", stem="group_norm")
    b.node("group_norm", [x, b.parameter(8), b.parameter(8)], [result], groups=4)
    b.output(result)
    graph = decompose(b.graph())
    assert kinds(graph) == ["cast", *NORMALISE, "mul", "add", "cast"]
    assert graph.tensors["var_mean"].shape == (2, 4, 1)  # samples, groups


def test_group_norm_without_its_groups_stays():
    b = Builder()
    result = b.tensor((2, 8, 4, 4), "bf16", stem="group_norm")
    b.node("group_norm", [b.input(2, 8, 4, 4)], [result])
    b.output(result)
    assert kinds(decompose(b.graph())) == ["group_norm"]


def test_a_loss_gathers_at_its_targets_and_leaves_out_the_ignored():
    graph = decompose(patterns.cross_entropy(ROWS, COLS), ["nll_loss"])
    counted = ["ne", "where", "gather", "neg", "where", "sum", "sum", "cast", "div"]
    assert kinds(graph) == ["cast", "log_softmax", *counted]
    assert graph.tensors["gather"].shape == (ROWS, 1)
    assert graph.tensors["nll_loss"].shape == ()


def test_a_dropout_draws_compares_and_scales():
    graph = decompose(patterns.dropout_residual_layernorm(ROWS, COLS), ["dropout"])
    assert kinds(graph)[:4] == ["rand", "gt", "mul", "mul"]
    assert graph.tensors["rand"].dtype == "fp32"
    assert graph.tensors["mask"].dtype == "bool"  # the mask keeps its name
    assert graph.node("dropout.mul_1").attr("scalar") == pytest.approx(1 / 0.9)


def test_a_reader_of_the_mask_reads_what_was_compared():
    b = Builder()
    dropped = b.dropout(b.input(4, 8), 0.5)
    b.output(dropped, b.tensors["mask"])
    graph = decompose(b.graph())
    assert graph.outputs == ("dropout", "mask")
    assert graph.producers["mask"].kind == "gt"


@pytest.mark.parametrize("name", patterns.PATTERNS)
def test_what_stands_outside_stays_as_it_was(name):
    graph = patterns.find(name)()
    written = decompose(graph)
    assert (written.inputs, written.outputs, written.parameters) == (graph.inputs, graph.outputs, graph.parameters)
    assert all(written.tensors[tensor] == graph.tensors[tensor] for tensor in graph.tensors)
    assert not {node.kind for node in written} & set(RULES)
    left = [node for node in graph if node.kind not in RULES]
    assert [node for node in written if node in left] == left


def test_parts_are_named_after_their_whole():
    graph = decompose(patterns.softmax(ROWS, COLS))
    assert [node.name for node in graph] == [
        *["softmax.cast", "softmax.amax", "softmax.sub", "softmax.exp", "softmax.sum", "softmax.div", "softmax.cast_1"],
    ]


def test_nothing_to_write_out_gives_the_very_same_graph():
    graph = patterns.gelu()
    assert decompose(graph) is graph
    assert decompose(patterns.softmax(), kinds=["layer_norm"]).nodes[0].kind == "softmax"


def test_variables_are_held_to_the_end_of_what_was_written_out():
    b = Builder()
    x = b.op("exp", b.input(ROWS, COLS))
    y = b.softmax(b.op("neg", x))
    b.hold(x)
    b.release(x)
    b.output(y)
    assert decompose(b.graph()).held == {"exp": "softmax.cast_1"}


def test_bytes_of_a_softmax_that_no_one_fuses():
    # x in bf16: N; in fp32: 2N. Worst at the division: the powers and the quotient, and both rows of fp32 numbers
    graph = decompose(patterns.softmax(ROWS, COLS))
    plan = FusionPlan(
        graph=graph, groups=tuple(Group(nodes=(node.name,)) for node in graph.paid_nodes), strategy="eager"
    )
    wide, row = ROWS * COLS * 4, 512  # 16 fp32 numbers take one step of the allocator
    timeline = liveness(plan)
    assert (
        timeline.peak == 2 * wide + row
    )  # at the exponential: what is shifted, the powers; the maximum is gone by then
    assert timeline.end == wide // 2


def kept(kind, shapes, **settings):
    """Return a graph of one norm whose statistics are results too, as a backward pass keeps them."""
    b = Builder()
    x = b.input(ROWS, COLS)
    results = [b.tensor(shape, "bf16" if shape == x.shape else "fp32", stem=kind) for shape in shapes]
    b.node(kind, [x], results, **settings)
    b.output(*results)
    return b.graph()


def test_statistics_that_a_backward_pass_keeps_have_makers():
    row = (ROWS, 1)
    layer = decompose(kept("layer_norm", [(ROWS, COLS), row, row], dims=(1,)))
    assert [layer.producers[name].kind for name in layer.outputs] == ["cast", "var_mean", "rsqrt"]
    rms = decompose(kept("rms_norm", [(ROWS, COLS), row], dims=(1,)))
    assert [rms.producers[name].kind for name in rms.outputs] == ["cast", "rsqrt"]


def test_an_op_with_results_that_no_rule_gives_stays():
    graph = kept("group_norm", [(ROWS, COLS), (ROWS, 8), (ROWS, 8)], groups=8)
    assert kinds(decompose(graph)) == ["group_norm"]
