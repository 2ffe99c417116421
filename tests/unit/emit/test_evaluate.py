"""The numpy evaluation against formulas written by hand, and element types against what their bits say."""

import numpy as np
import pytest

from fusesim import patterns
from fusesim.builder import Builder
from fusesim.emit import evaluate
from fusesim.emit.memory import decoded, encoded, laid_out, read_back, rounded
from fusesim.errors import GraphError, InputError


def one(kind, *operands, dtype="fp64", **attrs):
    """Return what one op makes of numbers."""
    b = Builder()
    inputs = [b.input(len(values), dtype=dtype, name=f"x{place}") for place, values in enumerate(operands)]
    b.output(b.op(kind, *inputs, **attrs))
    graph = b.graph()
    return evaluate(graph, dict(zip(graph.inputs, map(np.asarray, operands), strict=True)))[graph.outputs[0]]


X = np.array([-2.5, -1.0, -0.1, 0.3, 1.0, 2.0])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("relu", [0, 0, 0, 0.3, 1, 2]),
        ("sigmoid", 0.5 * (1 + np.tanh(X / 2))),  # another form of the same function
        ("silu", X * 0.5 * (1 + np.tanh(X / 2))),
        ("gelu", [-0.015524, -0.158655, -0.046017, 0.185374, 0.841345, 1.954500]),  # x times the normal distribution
        ("gelu_tanh", [-0.015084, -0.158808, -0.046017, 0.185371, 0.841192, 1.954598]),
        ("sign", [-1, -1, -1, 1, 1, 1]),
        ("hardswish", [-0.208333, -1 / 3, -0.048333, 0.165, 2 / 3, 5 / 3]),
        ("softplus", np.log(1 + np.exp(X))),
        ("elu", [-0.917915, -0.632121, -0.095163, 0.3, 1, 2]),
        ("leaky_relu", [-0.025, -0.01, -0.001, 0.3, 1, 2]),
    ],
)
def test_functions(kind, expected):
    np.testing.assert_allclose(one(kind, X), expected, atol=2e-6)


@pytest.mark.parametrize("kind", ["sigmoid", "tanh", "silu", "gelu", "gelu_tanh"])
def test_gradients_are_slopes_of_their_functions(kind):
    step = 1e-5
    slope = (one(kind, X + step) - one(kind, X - step)) / (2 * step)
    given = one(kind, X) if kind in {"sigmoid", "tanh"} else X  # those two take their own result
    np.testing.assert_allclose(one(f"{kind}_backward", np.full(6, 3.0), given), 3 * slope, rtol=1e-6, atol=1e-7)


def test_numbers_stand_on_the_side_that_the_graph_says():
    np.testing.assert_allclose(one("sub", X, scalar=1.0), X - 1)
    np.testing.assert_allclose(one("sub", X, scalar=1.0, reverse=True), 1 - X)
    np.testing.assert_allclose(one("add", X, X, alpha=2.0), 3 * X)
    np.testing.assert_allclose(one("clamp", X, min=-1.0, max=0.5), [-1, -1, -0.1, 0.3, 0.5, 0.5])


def test_a_number_is_either_value_of_a_choice():
    test = np.array([1.0, 0.0])
    values = np.array([10.0, 20.0])
    assert one("where", test, values, scalar=7.0).tolist() == [10, 7]  # else
    assert one("where", test, values, scalar=7.0, reverse=True).tolist() == [7, 20]  # then: masked_fill
    assert one("where", test, scalar=7.0, other=-2.0).tolist() == [7, -2]


def test_no_number_passes_through_maximum_and_relu():
    values = np.array([np.nan, 1.0])
    assert np.isnan(one("relu", values)[0])
    assert np.isnan(one("maximum", values, np.zeros(2))[0])
    assert np.isnan(one("minimum", np.zeros(2), values)[0])


def test_statistics():
    b = Builder()
    x = b.input(2, 50, dtype="fp32")
    results = [b.reduce(kind, x) for kind in ("var", "norm", "argmax")]
    b.output(*results)
    values = np.random.default_rng(3).standard_normal((2, 50)).astype(np.float32)
    made = evaluate(b.graph(), {"x": values})
    np.testing.assert_allclose(made["var"][:, 0], values.var(axis=1), rtol=1e-5)
    np.testing.assert_allclose(made["norm"][:, 0], np.linalg.norm(values, axis=1), rtol=1e-6)
    assert made["argmax"][:, 0].tolist() == values.argmax(axis=1).tolist()


def test_composites_and_products():
    values = np.random.default_rng(4).standard_normal((3, 8)).astype(np.float32)
    soft = evaluate(patterns.softmax(3, 8, "fp32"), {"x": values})["softmax"]
    np.testing.assert_allclose(soft, np.exp(values) / np.exp(values).sum(axis=1, keepdims=True), rtol=1e-6)
    graph = patterns.matmul(3, 8, 2, "fp32")
    other = np.ones((8, 2), np.float32)
    (product,) = (evaluate(graph, dict(zip(graph.inputs, (values, other), strict=True)))[n] for n in graph.outputs)
    np.testing.assert_allclose(product, values.sum(axis=1, keepdims=True).repeat(2, 1), rtol=1e-5, atol=1e-6)


def test_rotary_embedding_turns_pairs():
    graph = patterns.rope(1, 1, 2, "fp32")  # a pair (3, 4) turned by a right angle is (-4, 3)
    inputs = {"x": np.float32([[[3, 4]]]), "cos": np.zeros((1, 1, 2)), "sin": np.ones((1, 1, 2))}
    assert evaluate(graph, inputs)[graph.outputs[0]].tolist() == [[[-4, 3]]]


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("bf16", 1 + 2**-8, 1.0),  # half way: to even
        ("bf16", 1 + 3 * 2**-8, 1 + 2**-6),
        ("fp16", 65520.0, np.inf),
        ("fp8", 17.0, 16.0),  # steps of 2 from 16 on; half way: to even
        ("fp8", 19.0, 20.0),
        ("fp8", -1e9, -448.0),
        ("fp8", 2.0**-9, 2.0**-9),  # the smallest
        ("fp8", 2.0**-11, 0.0),
    ],
)
def test_rounding(dtype, value, expected):
    assert rounded(np.float32([value]), dtype)[0] == expected


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp8"])
def test_every_bit_pattern_survives(dtype):
    codes = np.arange(256, dtype=np.uint8) if dtype == "fp8" else np.arange(65536, dtype=np.uint16)
    codes = codes.view(np.float16) if dtype == "fp16" else codes
    values = decoded(codes, dtype)
    finite = ~np.isnan(values)
    assert (encoded(values, dtype)[finite] == codes[finite]).all()


def test_strides_say_where_values_lie():
    b = Builder()
    x = b.input(2, 3, dtype="fp32", strides=(1, 4))
    values = np.float32([[0, 1, 2], [3, 4, 5]])
    memory = laid_out(values, x)
    assert memory.tolist() == [0, 3, 0, 0, 1, 4, 0, 0, 2, 5]  # 1 + 1 x 1 + 2 x 4 elements
    assert read_back(memory, x).tolist() == values.tolist()


def test_what_has_no_values_is_refused():
    graph = patterns.bias_relu(2, 2)
    with pytest.raises(InputError, match="no values for input bias"):
        evaluate(graph, {"x": np.zeros((2, 2))})
    with pytest.raises(InputError, match=r"it is \(2, 2\)"):
        evaluate(graph, {"x": np.zeros(4), "bias": np.zeros(2)})
    attention = patterns.attention(1, 1, 8, 8)
    zeros = {name: np.zeros(attention.tensors[name].shape) for name in attention.inputs}
    with pytest.raises(GraphError, match="op attention"):
        evaluate(attention, zeros)
