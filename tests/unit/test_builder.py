"""Shapes, types, strides and memory of what a builder makes, as PyTorch has them."""

import pytest

from fusesim.builder import Builder, common_strides_like, promoted, viewed_strides
from fusesim.errors import GraphError
from fusesim.tensor import channels_last


@pytest.fixture
def b():
    return Builder()


@pytest.mark.parametrize(
    ("types", "scalar", "made"),
    [
        (["bf16", "bf16"], None, "bf16"),
        (["bf16", "fp32"], None, "fp32"),
        (["bf16", "fp16"], None, "fp32"),  # neither holds the other
        (["fp32", "fp64"], None, "fp64"),
        (["int64", "bf16"], None, "bf16"),  # floating point wins
        (["bool", "int32"], None, "int32"),
        (["int64"], 0.5, "fp32"),
        (["int64"], 2, "int64"),
        (["bf16"], 0.5, "bf16"),  # a number never widens
    ],
)
def test_types_meet_as_in_pytorch(b, types, scalar, made):
    assert promoted([b.input(4, dtype=name) for name in types], scalar) == made


def test_results_of_comparisons_and_of_whole_numbers(b):
    x, places = b.input(4), b.input(4, dtype="int64")
    assert b.op("gt", x, scalar=0.0).dtype == "bool"
    assert b.op("exp", places).dtype == "fp32"
    assert b.op("div", places, places).dtype == "fp32"
    assert b.op("where", b.op("gt", x, scalar=0.0), x, scalar=0.0).dtype == "bf16"
    assert b.reduce("sum", places).dtype == "int64"
    assert b.reduce("argmax", x).dtype == "int64"


def test_a_cast_to_the_same_type_is_no_op(b):
    x = b.input(4)
    assert b.cast(x, "bf16") is x
    assert b.cast(x, "fp32").dtype == "fp32"


def test_names_are_counted(b):
    x = b.input(4)
    assert [b.op("relu", x).name, b.op("relu", x).name, b.input(4).name] == ["relu", "relu_1", "x_1"]
    assert [node.name for node in b.nodes] == ["relu", "relu_1"]


def test_pointwise_keeps_channels_last(b):
    shape = (2, 3, 4, 5)
    x = b.input(*shape, strides=channels_last(shape))
    assert b.op("relu", x).strides == channels_last(shape)
    assert b.op("add", x, b.input(3, 1, 1)).strides == channels_last(shape)
    assert b.op("add", b.input(*shape), x).strides == (60, 20, 5, 1)  # the first operand of full shape decides


def test_half_of_a_permuted_tensor_keeps_its_order(b):
    turned = b.transpose(b.input(2, 8, 4, 6), 1, 2)
    half = b.slice(turned, -1, 3, 6)
    assert half.shape == (2, 4, 8, 3)
    assert b.op("neg", half).strides == (96, 3, 12, 1)  # dense, in the order of its own strides


@pytest.mark.parametrize(("keep", "shape"), [(True, (2, 1, 1)), (False, (2,))])
def test_a_reduction_over_two_dimensions(b, keep, shape):
    assert b.reduce("sum", b.input(2, 3, 4), (1, -1), keepdim=keep).shape == shape


def test_a_reduction_over_everything(b):
    assert b.reduce("mean", b.input(2, 3), (), keepdim=False).shape == ()


def test_variance_and_mean_come_from_one_op(b):
    variance, mean = b.reduce_all("var_mean", b.input(2, 3))
    assert (variance.shape, mean.shape, len(b.nodes)) == ((2, 1), (2, 1), 1)


def test_linear_flattens_and_turns_the_weight_for_nothing(b):
    made = b.linear(b.input(2, 3, 8), b.parameter(16, 8), b.parameter(16))
    b.output(made)
    assert made.shape == (2, 3, 16)
    assert [node.kind for node in b.graph().paid_nodes] == ["matmul"]


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "size"), [(1, 1, 1, 8), (2, 1, 1, 4), (1, 0, 1, 6), (1, 0, 2, 4)]
)
def test_the_size_of_a_convolution(b, stride, padding, dilation, size):
    made = b.conv(
        b.input(1, 4, 8, 8),
        b.input(6, 4, 3, 3),
        stride=(stride, stride),
        padding=(padding, padding),
        dilation=(dilation, dilation),
    )
    assert made.shape == (1, 6, size, size)


def test_views_share_memory_and_copies_do_not(b):
    x = b.input(4, 6)
    views = [b.view(x, (24,)), b.permute(x, (1, 0)), b.slice(x, 0, 1, 3), b.select(x, 0, 1), b.expand(x, (2, 4, 6))]
    assert {view.storage for view in views} == {"x"}
    assert [view.shape for view in views] == [(24,), (6, 4), (2, 6), (6,), (2, 4, 6)]
    assert b.copy(x).storage != "x"
    assert b.contiguous(x) is x
    assert b.contiguous(views[1]).strides == (4, 1)


def test_a_view_that_strides_forbid_copies_first(b):
    turned = b.transpose(b.input(4, 6))
    assert viewed_strides(turned, (24,)) is None
    assert viewed_strides(turned, (2, 3, 4)) == (3, 1, 6)
    assert b.view(turned, (24,)).storage == "copy"


def test_writing_over_makes_no_memory(b):
    x = b.input(128, 512, dtype="fp32")
    summed = b.op("add", x, b.parameter(512, dtype="fp32"), over=True)
    made = b.op("relu", summed, over=True)
    b.output(made)
    assert {summed.storage, made.storage} == {"x"}  # the lesson's kernel writes over its input
    assert b.graph().outputs == ("relu",)


def test_a_dropout_has_a_mask(b):
    b.output(b.dropout(b.input(4, 8), 0.1))
    (node,) = b.graph().nodes
    assert [b.tensors[name].dtype for name in node.outputs] == ["bf16", "bool"]


def test_concatenation_and_gathers(b):
    x = b.input(2, 3)
    assert b.concat([x, b.input(2, 5)]).shape == (2, 8)
    index = b.input(7, dtype="int64")
    assert b.embedding(b.parameter(10, 4), index).shape == (7, 4)
    assert b.embedding_bag(b.parameter(10, 4), b.input(7, 3, dtype="int64")).shape == (7, 4)
    assert b.gather("index", x, [index], (7, 3)).shape == (7, 3)


def test_held_variables(b):
    x = b.op("exp", b.input(4))
    b.hold(x)
    y = b.op("neg", x)
    b.release(x)
    b.hold(y)
    b.output(b.op("relu", y))
    assert b.graph().held == {"exp": "neg", "neg": ""}


def test_dense_strides_in_anothers_order(b):
    assert common_strides_like((2, 6, 4), b.transpose(b.input(2, 4, 3))) == (24, 1, 6)
    assert common_strides_like((2, 3), b.expand(b.input(1, 3), (2, 3))) == (3, 1)


WRONG = [
    (lambda b: b.op("softmax", b.input(4)), "softmax is no pointwise op"),
    (lambda b: b.op("add", b.input(3), b.input(4)), "do not broadcast"),
    (lambda b: b.reduce("sum", b.input(4), (1,)), "has no dimension 1"),
    (lambda b: b.matmul(b.input(4), b.input(4, 4)), "matmul takes matrices"),
    (lambda b: b.conv(b.input(1, 4, 8, 8), b.input(6, 3, 3, 3)), "does not fit weight"),
    (lambda b: b.conv(b.input(1, 4, 2, 2), b.input(6, 4, 3, 3)), "the window .3, 3. is larger than x"),
    (lambda b: b.view(b.input(4), (3,)), "has 4 elements, .3,. has 3"),
    (lambda b: b.permute(b.input(4, 4), (0, 0)), "is no order of the dimensions"),
    (lambda b: b.expand(b.input(3, 4), (2, 4)), "does not broadcast to .2, 4."),
    (lambda b: b.concat([b.input(2, 3), b.input(3, 3)]), "differ beside dimension 1"),
    (lambda b: b.input("4"), "holds something other than sizes"),
    (lambda b: b.input(None), "None,. holds something other than sizes"),
    (lambda b: b.input(4, dtype=[]), r"input: dtype is \[\], and not a name"),
    (lambda b: b.op("add", b.input(4), 3), "op add takes tensors, not int; give a number as scalar="),
    (lambda b: b.op("relu", "x"), "op relu takes tensors, not str"),
    (lambda b: b.op("add"), "op add has no inputs"),
    (lambda b: b.reduce("sum", b.input(4), ("a",)), r"reduce: dims is .'a',., and not a list of whole numbers"),
    (lambda b: b.reduce("sum", b.input(4), (0.5,)), r"reduce: dims is .0.5,., and not a list of whole numbers"),
]


@pytest.mark.parametrize(("make", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_what_does_not_fit_is_refused(b, make, sentence):
    with pytest.raises(GraphError, match=sentence):
        make(b)
