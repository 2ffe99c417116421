"""What holds for every graph: peaks, forms written out, sharing, names that do not matter."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusesim import patterns
from fusesim.builder import Builder
from fusesim.decompose import decompose
from fusesim.fusion import FusionPlan, Group
from fusesim.graph import Graph
from fusesim.liveness import liveness
from fusesim.sharing import repeated, share_common

STEPS = st.sampled_from(
    ["exp", "neg", "cast", "add", "mul", "mean", "softmax", "layer_norm", "dropout", "transpose", "over", "hold"]
)


@st.composite
def graphs(draw):
    """Draw a program on square matrices: each step reads any earlier result; what nobody reads is returned."""
    b = Builder()
    made = [b.input(32, 32), b.input(32, 32, dtype="fp32")]
    gone, read = set(), set()
    for kind in draw(st.lists(STEPS, min_size=1, max_size=14)):
        usable = [tensor for tensor in made if tensor.name not in gone]
        x = draw(st.sampled_from(usable))
        read.add(x.name)
        if kind == "over":
            gone.update(tensor.name for tensor in made if tensor.storage == x.storage)
            made.append(b.op("relu", x, over=True))
            continue
        made.append(_step(draw, b, kind, x, usable, read))
    left = [tensor for tensor in made[2:] if tensor.name not in gone]
    b.output(*(tensor for tensor in left if tensor.name not in read or draw(st.booleans())), made[-1])
    return b.graph()


def _step(draw, b, kind, x, usable, read):
    if kind in {"add", "mul"}:
        other = draw(st.sampled_from(usable))
        read.add(other.name)
        return b.op(kind, x, other)
    if kind == "hold":
        b.hold(x)
        return b.op("abs", x)
    simple = {
        "cast": lambda: b.op("cast", x, dtype="fp32"),
        "mean": lambda: b.op("sub", x, b.reduce("mean", x)),
        "softmax": lambda: b.softmax(x),
        "layer_norm": lambda: b.layer_norm(x),
        "dropout": lambda: b.dropout(x, 0.1),
        "transpose": lambda: b.transpose(x),
    }
    return simple[kind]() if kind in simple else b.op(kind, x)


def alone(graph, strategy="eager"):
    groups = tuple(Group(nodes=(node.name,)) for node in graph.paid_nodes)
    return FusionPlan(graph=graph, groups=groups, strategy=strategy)


def together(graph):
    return FusionPlan(graph=graph, groups=(Group(nodes=tuple(n.name for n in graph.paid_nodes)),), strategy="vertical")


def relabelled(graph):
    """Return the same graph under other names."""
    tensors = {name: f"t{place}" for place, name in enumerate(reversed(graph.tensors))}
    ops = {name: f"o{place}" for place, name in enumerate(reversed(graph.by_name))}

    def renamed(names):
        return tuple(tensors[name] for name in names)

    def settings(node):
        return tuple((key, tensors[value] if key == "over" else value) for key, value in node.attrs)

    return Graph(
        tensors={
            tensors[name]: replace(tensor, name=tensors[name], storage=tensors[tensor.storage])
            for name, tensor in graph.tensors.items()
        },
        nodes=tuple(
            replace(
                node,
                name=ops[node.name],
                inputs=renamed(node.inputs),
                outputs=renamed(node.outputs),
                attrs=settings(node),
            )
            for node in graph.nodes
        ),
        inputs=renamed(graph.inputs),
        outputs=renamed(graph.outputs),
        held={tensors[name]: ops[until] if until else "" for name, until in graph.held.items()},
    )


@given(graphs())
def test_the_peak_is_at_least_the_outputs(graph):
    for plan in (alone(graph), alone(graph, "vertical"), together(graph)):
        timeline = liveness(plan)
        own = {graph.tensors[name].storage for name in graph.outputs} - {graph.tensors[n].storage for n in graph.inputs}
        assert timeline.end == sum(size for name, size in timeline.sizes if name in own) <= timeline.peak


@given(graphs())
def test_what_is_allocated_is_freed_once_or_returned(graph):
    timeline = liveness(alone(graph))
    allocated = [name for step in timeline.steps for name in step.allocated]
    freed = [name for step in timeline.steps for name in step.freed]
    assert len(set(allocated)) == len(allocated)
    assert len(set(freed)) == len(freed)
    assert set(allocated) - set(freed) == {graph.tensors[name].storage for name in graph.outputs} & set(allocated)


@given(graphs())
def test_one_kernel_needs_no_more_than_many_and_no_program_less_than_one(graph):
    one, generated, program = liveness(together(graph)), liveness(alone(graph, "vertical")), liveness(alone(graph))
    assert one.peak <= generated.peak <= program.peak


@given(graphs())
def test_names_change_nothing(graph):
    other = relabelled(graph)
    for make in (alone, together, lambda g: alone(decompose(g))):
        first, second = liveness(make(graph)), liveness(make(other))
        assert [step.live for step in first.steps] == [step.live for step in second.steps]
    assert len(repeated(graph)) == len(repeated(other))
    assert other.total_flops == pytest.approx(graph.total_flops)


@given(graphs())
def test_written_out_and_shared_it_is_the_same_program_outside(graph):
    for change in (decompose, share_common, lambda g: share_common(decompose(g))):
        made = change(graph)
        assert (made.inputs, made.outputs) == (graph.inputs, graph.outputs)
        forms = [(made.tensors[n].shape, made.tensors[n].dtype, made.tensors[n].strides) for n in made.outputs]
        assert forms == [
            (graph.tensors[n].shape, graph.tensors[n].dtype, graph.tensors[n].strides) for n in graph.outputs
        ]


@given(graphs())
def test_shared_once_and_written_out_once_is_enough(graph):
    shared = share_common(graph)
    assert len(shared.nodes) <= len(graph.nodes)
    assert share_common(shared) == shared
    written = decompose(graph)
    assert decompose(written) is written


@given(st.sampled_from(sorted(patterns.PATTERNS)))
def test_fusing_a_pattern_never_takes_more_memory(name):
    graph = patterns.find(name)()
    assert liveness(together(graph)).peak <= liveness(alone(graph)).peak
