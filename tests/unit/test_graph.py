"""What makes a graph valid, and what it says about itself."""

import pytest

from fusesim.builder import Builder
from fusesim.errors import GraphError, InputError
from fusesim.fusion import FusionPlan, Group
from fusesim.graph import Edge, Graph, Node
from fusesim.tensor import Tensor, broadcast_shape, channels_last, permuted_dense, row_major


def tensor(name, shape=(4,), dtype="bf16", **kw):
    return Tensor(name=name, shape=shape, dtype=dtype, strides=row_major(shape), storage=kw.get("storage", name))


def graph(nodes, names="xyz", inputs=("x",), outputs=("y",), **kw):
    tensors = {name: tensor(name) for name in names} | kw.pop("tensors", {})
    return Graph(tensors=tensors, nodes=tuple(nodes), inputs=inputs, outputs=outputs, **kw)


def node(name, inputs, outputs, kind="relu", **attrs):
    return Node(name=name, kind=kind, inputs=tuple(inputs), outputs=tuple(outputs), attrs=tuple(attrs.items()))


INVALID = [
    ("cycle", lambda: graph([node("a", "z", "y"), node("b", "y", "z")]), 'op a reads "?z"?, which is made later'),
    ("no producer", lambda: graph([node("a", "z", "y")]), "op a reads z, which has no producer"),
    ("made twice", lambda: graph([node("a", "x", "y"), node("b", "x", "y")]), "y is made twice, by a and by op b"),
    ("input made", lambda: graph([node("a", "x", "x")], outputs=("x",)), "x is made twice, by the inputs and by op a"),
    ("unknown", lambda: graph([node("a", "x", "q")]), "op a names tensor q, which the graph does not have"),
    ("same name", lambda: graph([node("a", "x", "y"), node("a", "y", "z")]), "two ops are called a"),
    ("no output", lambda: graph([node("a", "x", "y")], outputs=("z",)), "output z is made by no op"),
    ("parameter", lambda: graph([node("a", "x", "y")], parameters=frozenset("y")), "parameter y is not an input"),
    ("held", lambda: graph([node("a", "x", "y")], held={"q": ""}), "a held variable names tensor q"),
    ("until", lambda: graph([node("a", "x", "y")], held={"y": "q"}), "tensor y is held until op q, which the graph"),
    ("inputs", lambda: graph([node("a", "xx", "y", kind="relu")]), "op a .relu. has 2 inputs; it takes 1"),
    ("no inputs", lambda: graph([node("a", "", "y", kind="where")]), "has 0 inputs; it takes 1 to 3"),
    ("nothing", lambda: graph([node("a", "x", "")], outputs=("x",)), "op a .relu. makes nothing"),
    (
        "broadcast",
        lambda: graph([node("a", "xw", "y", kind="add")], tensors={"w": tensor("w", (3,))}, inputs=("x", "w")),
        "op a .add.: shapes .4,. and .3,. do not broadcast: .3, 4. differ",
    ),
    (
        "result",
        lambda: graph([node("a", "x", "w")], tensors={"w": tensor("w", (3,))}, outputs=("w",)),
        "op a .relu. makes .4,., but w is .3,.",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), [case[1:] for case in INVALID], ids=[case[0] for case in INVALID])
def test_an_invalid_graph_is_refused_with_the_reason(make, sentence):
    with pytest.raises(GraphError, match=sentence):
        make()


def test_an_unknown_kind_is_refused_with_the_nearest():
    with pytest.raises(InputError, match='unknown op "relo"; did you mean "relu"'):
        graph([node("a", "x", "y", kind="relo")])


@pytest.mark.parametrize(
    ("left", "right", "made", "sentence"),
    [
        ((2, 3), (4, 5), (2, 5), "the inner sizes 3 and 4 differ"),
        ((2, 3), (3, 5), (2, 4), r"makes \(2, 5\), but y is \(2, 4\)"),
        ((3,), (3, 5), (5,), "matmul takes matrices, not"),
        ((2, 2, 3), (3, 3, 5), (2, 2, 5), "do not broadcast"),
    ],
)
def test_a_product_that_does_not_fit_is_refused(left, right, made, sentence):
    tensors = {"x": tensor("x", left), "w": tensor("w", right), "y": tensor("y", made)}
    with pytest.raises(GraphError, match=sentence):
        Graph(tensors=tensors, nodes=(node("a", "xw", "y", kind="matmul"),), inputs=("x", "w"), outputs=("y",))


def test_what_was_overwritten_cannot_be_read():
    b = Builder()
    x = b.input(4)
    first = b.op("add", x, scalar=1.0, over=True)
    b.output(b.op("mul", first, x))
    with pytest.raises(GraphError, match="op mul reads x after op add wrote over it"):
        b.graph()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"dtype": "bf17"}, 'unknown tensor t: dtype "bf17"; did you mean "bf16"'),
        ({"shape": (-1,)}, "holds something other than sizes"),
        ({"shape": (2.0,)}, "holds something other than sizes"),
        ({"strides": (1, 1)}, "2 strides for 1 dims"),
        ({"shape": (10**18 + 1,)}, "the largest is 10.18"),
    ],
)
def test_a_tensor_that_cannot_be_is_refused(change, sentence):
    fields = {"name": "t", "shape": (4,), "dtype": "bf16", "strides": (1,), "storage": "t"} | change
    with pytest.raises(GraphError, match=sentence):
        Tensor(**fields)


def test_a_broadcast_tensor_touches_its_own_values_only():
    b = Builder()
    row = b.expand(b.input(1, 512, dtype="fp32"), (128, 512))
    assert (row.elements, row.distinct, row.bytes) == (128 * 512, 512, 2048)  # read once, however often it is used
    assert not row.contiguous


def test_orders_of_dimensions():
    shape = (2, 3, 4, 5)
    like = Tensor(name="t", shape=shape, dtype="bf16", strides=channels_last(shape), storage="t")
    assert permuted_dense(like)
    assert not like.contiguous
    gap = Tensor(name="t", shape=(2, 3), dtype="bf16", strides=(4, 1), storage="t")
    assert not permuted_dense(gap)
    assert broadcast_shape([]) == ()
    assert broadcast_shape([(2, 1), (1, 3), (3,)]) == (2, 3)


def test_an_empty_tensor_has_no_bytes():
    assert tensor("t", (0, 4)).bytes == 0


def chain_with_a_view():
    b = Builder("chain")
    x = b.input(8, 4)
    summed = b.op("add", x, scalar=1.0)
    turned = b.transpose(summed)
    b.output(b.op("exp", turned), summed)
    return b.graph()


def test_edges_see_through_views_and_end_at_outputs():
    made = chain_with_a_view()
    assert made.edges() == (
        Edge(tensor="x", producer=None, consumer="add", bytes=64),
        Edge(tensor="permute", producer="add", consumer="exp", bytes=64),
        Edge(tensor="exp", producer="exp", consumer=None, bytes=64),
        Edge(tensor="add", producer="add", consumer=None, bytes=64),
    )


def test_views_cost_nothing_and_wait_for_nothing():
    made = chain_with_a_view()
    assert [node.name for node in made.paid_nodes] == ["add", "exp"]
    assert made.predecessors == {"add": (), "exp": ("add",)}
    assert made.base("permute") == "add"
    assert made.consumers["add"] == (made.node("permute"),)


def test_who_overwrites_waits_for_who_reads():
    b = Builder()
    x = b.op("exp", b.input(4))
    read = b.op("neg", x)
    over = b.op("relu", x, over=True)
    b.output(read, over)
    assert b.graph().predecessors["relu"] == ("exp", "neg")


def test_without_a_named_output_what_nobody_reads_is_one():
    b = Builder()
    x = b.op("exp", b.input(4))
    b.op("neg", x)
    b.op("abs", x)
    made = b.graph()
    assert made.outputs == ("neg", "abs")
    alone = FusionPlan(graph=made, groups=(Group(nodes=("exp", "neg", "abs")),), strategy="by hand")
    assert alone.external_outputs(alone.groups[0]) == ("neg", "abs")  # one kernel writes both


def test_what_is_written_whoever_reads_it():
    b = Builder()
    x, y = b.input(4), b.input(4, name="y")
    first = b.op("add", x, y, over=True)
    b.op("relu", first, over=True)  # the last over x: the caller sees it
    kept, mask = b.tensor((4,), "bf16", stem="dropout"), b.tensor((4,), "bool", stem="mask")
    b.node("dropout", [y], [kept, mask])
    b.op("exp", y)  # nobody reads it, and it runs
    b.output(kept)
    assert b.graph().kept == {
        "relu",
        "dropout",
        "exp",
    }  # not add, which relu overwrote; not a mask that nobody asked for


@pytest.mark.parametrize(
    ("build", "flops"),
    [
        (lambda b: b.matmul(b.input(2, 3, 4), b.input(4, 5)), 2 * 2 * 3 * 5 * 4),
        (lambda b: b.conv(b.input(2, 4, 8, 8), b.input(6, 2, 3, 3), groups=2), 2 * 2 * 6 * 36 * 2 * 9),
        (lambda b: b.attention(*(b.input(2, 3, 8, 4) for _ in range(3))), 4 * 2 * 3 * 8 * 8 * 4),
        (lambda b: b.reduce("sum", b.input(8, 4)), 32),
        (lambda b: b.softmax(b.input(8, 4)), 5 * 32),
        (lambda b: b.op("add", b.input(8, 4), b.input(4)), 32),
        (lambda b: b.transpose(b.input(8, 4)), 0),
    ],
    ids=["matmul", "conv", "attention", "sum", "softmax", "add", "view"],
)
def test_arithmetic_by_hand(build, flops):
    b = Builder()
    b.output(build(b))
    assert b.graph().total_flops == flops


def test_a_graph_shows_itself():
    made = chain_with_a_view()
    assert repr(made) == "<Graph chain: 2 ops, 1 inputs, 2 outputs>"
    assert len(made) == 3
    assert [node.kind for node in made] == ["add", "permute", "exp"]
    assert made == chain_with_a_view()
    assert made != "chain"
    assert len({made, made}) == 1
    assert made.input_bytes == 64
    with pytest.raises(InputError, match="chain has no op mul; it has add, permute, exp"):
        made.node("mul")
