"""ONNX models as graphs: operators, shapes, and what is said where something is missing."""

from __future__ import annotations

import numpy as np
import pytest

from fusesim.errors import FusesimError, GraphError, InputError
from fusesim.frontends.onnx import from_onnx

onnx = pytest.importorskip("onnx", reason="needs the extra fusesim[onnx]")
helper = onnx.helper
F, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def weight(name, *shape):
    """A weight without values: what a large model has in a file of its own."""
    made = onnx.TensorProto(name=name, data_type=F, dims=shape)
    made.raw_data = bytes(4 * int(np.prod(shape)))
    return made


def ints(name, *values):
    return helper.make_tensor(name, INT, [len(values)], values)


def number(name, value):
    return helper.make_tensor(name, F, [], [value])


def model(nodes, inputs, weights=(), outputs=("y",), version=17, **kwargs):
    """A model of nodes; inputs by name and shape."""
    given = [helper.make_tensor_value_info(name, F, shape) for name, shape in inputs.items()]
    made = [helper.make_tensor_value_info(name, F, None) for name in outputs]
    graph = helper.make_graph(nodes, "test", given, made, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], **kwargs)


def node(kind, inputs, outputs, **attrs):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attrs)


def kinds(graph):
    return [one.kind for one in graph.paid_nodes]


def moved(graph, name):
    """Bytes that an op reads and writes."""
    one = graph.node(name)
    return sum(graph.tensors[tensor].bytes for tensor in (*one.inputs, *one.outputs))


def test_mlp():
    nodes = [
        node("Gemm", "x w1 b1", "h", transB=1),
        node("Relu", "h", "r"),
        node("Gemm", "r w2 b2", "y", transB=1),
    ]
    weights = [weight("w1", 64, 32), weight("b1", 64), weight("w2", 10, 64), weight("b2", 10)]
    graph = from_onnx(model(nodes, {"x": [8, 32]}, weights))
    assert kinds(graph) == ["matmul", "relu", "matmul"]
    assert graph.flops(graph.node("matmul")) == 2 * 8 * 32 * 64
    assert graph.flops(graph.node("matmul_1")) == 2 * 8 * 64 * 10
    assert moved(graph, "relu") == 2 * 8 * 64 * 4  # one read, one write
    assert graph.parameters == {"w1", "b1", "w2", "b2"}
    assert not graph.gaps


def test_convolution_block():
    nodes = [
        node("Conv", "x w", "c", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c s b m v", "n"),
        node("Relu", "n", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "p", "g"),
        node("Flatten", "g", "y"),
    ]
    weights = [weight("w", 16, 3, 3, 3), *(weight(name, 16) for name in "sbmv")]
    graph = from_onnx(model(nodes, {"x": [2, 3, 32, 32]}, weights))
    assert kinds(graph) == ["conv", "batch_norm", "relu", "pool", "mean"]
    assert graph.flops(graph.node("conv")) == 2 * (2 * 16 * 16 * 16) * (3 * 3 * 3)  # per value out: window x channels
    assert graph.tensors[graph.outputs[0]].shape == (2, 16)
    assert moved(graph, "batch_norm") == 2 * 2 * 16 * 16 * 16 * 4 + 4 * 16 * 4  # x in and out, four rows of 16
    assert moved(graph, "pool") == (2 * 16 * 16 * 16 + 2 * 16 * 8 * 8) * 4


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_convolution_pads_itself(auto_pad):
    nodes = [node("Conv", "x w", "y", kernel_shape=[3, 3], strides=[2, 2], auto_pad=auto_pad, group=2)]
    graph = from_onnx(model(nodes, {"x": [1, 4, 8, 8]}, [weight("w", 6, 2, 3, 3)]))
    size = 3 if auto_pad == "VALID" else 4
    assert graph.tensors[graph.outputs[0]].shape == (1, 6, size, size)
    assert graph.flops(graph.node("conv")) == 2 * 6 * size * size * 2 * 9  # 2 channels per group
    assert ("pad" in kinds(graph)) == (auto_pad != "VALID")  # one row more on one side


def test_transposed_and_one_dimensional_convolutions():
    nodes = [node("Conv", "x w", "h", kernel_shape=[5], pads=[2, 2]), node("ConvTranspose", "h u", "y", strides=[2])]
    graph = from_onnx(model(nodes, {"x": [1, 4, 50]}, [weight("w", 8, 4, 5), weight("u", 8, 3, 4)]))
    assert graph.flops(graph.node("conv")) == 2 * (8 * 50) * (4 * 5)
    assert graph.tensors[graph.outputs[0]].shape == (1, 3, 102)  # 49 x 2 + 4
    assert graph.flops(graph.node("conv_1")) == 2 * (8 * 50) * (3 * 4)


def attention_nodes():
    """Attention as exporters write it, shapes worked out on the way."""
    return [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "batch", axis=0),
        node("Gather", "s one", "tokens", axis=0),
        node("Unsqueeze", "batch axis", "batch1"),
        node("Unsqueeze", "tokens axis", "tokens1"),
        node("Concat", "batch1 tokens1 heads", "shape", axis=0),
        *(node("MatMul", f"x w{i}", f"p{i}") for i in "qkv"),
        *(node("Reshape", f"p{i} shape", f"r{i}") for i in "qkv"),
        node("Transpose", "rq", "q", perm=[0, 2, 1, 3]),
        node("Transpose", "rk", "k", perm=[0, 2, 3, 1]),
        node("Transpose", "rv", "v", perm=[0, 2, 1, 3]),
        node("MatMul", "q k", "scores"),
        node("Div", "scores root", "scaled"),
        node("Softmax", "scaled", "weights", axis=-1),
        node("MatMul", "weights v", "o"),
        node("Transpose", "o", "t", perm=[0, 2, 1, 3]),
        node("Reshape", "t flat", "y"),
    ]


def attention_model(batch=2, tokens=16):
    weights = [weight(f"w{i}", 32, 32) for i in "qkv"]
    weights += [helper.make_tensor(name, INT, [], [value]) for name, value in (("zero", 0), ("one", 1))]
    weights += [ints("axis", 0), ints("heads", 4, 8), ints("flat", 0, 0, 32), number("root", 8**0.5)]
    return model(attention_nodes(), {"x": [batch, tokens, 32]}, weights)


@pytest.mark.parametrize("sizes", [None, {"batch": 2, "tokens": 16}])
def test_attention_with_shapes_worked_out(sizes):
    graph = from_onnx(attention_model(*(sizes or (2, 16))), sizes=sizes)
    assert kinds(graph) == ["matmul"] * 3 + ["matmul", "div", "softmax", "matmul", "copy"]
    assert (
        sum(graph.flops(one) for one in graph if one.kind == "matmul")
        == 3 * 2 * 32 * 32 * 32 + 2 * 2 * 2 * 4 * 16 * 16 * 8
    )
    assert moved(graph, "div") == 2 * 2 * 4 * 16 * 16 * 4  # the divisor is a number, not a tensor
    assert graph.tensors[graph.outputs[0]].shape == (2, 16, 32)


def test_a_missing_size_is_named():
    with pytest.raises(InputError, match=r'input x has no size for dimension "batch"; give sizes=\{"batch": \.\.\.\}'):
        from_onnx(attention_model("batch", 16))
    with pytest.raises(InputError, match='did you mean "batch"'):
        from_onnx(attention_model("batch", 16), sizes={"batch": 2, "bach": 3})
    with pytest.raises(InputError, match="batch is 0; give a whole number"):
        from_onnx(attention_model("batch", 16), sizes={"batch": 0})
    with pytest.raises(InputError, match=r'dimension "x\.0"'):
        from_onnx(attention_model(None, 16))
    assert from_onnx(attention_model(None, 16), sizes={"x.0": 2}).input_bytes == (2 * 16 * 32 + 3 * 32 * 32) * 4


def test_layer_norm_written_out():
    nodes = [
        node("ReduceMean", "x", "m", axes=[-1]),
        node("Sub", "x m", "d"),
        node("Pow", "d two", "q"),
        node("ReduceMean", "q", "v", axes=[-1]),
        node("Add", "v eps", "e"),
        node("Sqrt", "e", "r"),
        node("Div", "d r", "n"),
        node("Mul", "n g", "s"),
        node("Add", "s b", "y"),
    ]
    weights = [weight("g", 64), weight("b", 64), number("two", 2), number("eps", 1e-5)]
    graph = from_onnx(model(nodes, {"x": [4, 8, 64]}, weights))
    assert kinds(graph) == ["mean", "sub", "square", "mean", "add", "sqrt", "div", "mul", "add"]
    whole, rows = 4 * 8 * 64 * 4, 4 * 8 * 4
    assert moved(graph, "mean") == whole + rows
    assert moved(graph, "sub") == 2 * whole + rows  # x and its means in, differences out
    assert moved(graph, "add") == 2 * rows  # the epsilon is a number
    assert moved(graph, "mul") == 2 * whole + 64 * 4


def test_norms_of_newer_versions():
    nodes = [node("LayerNormalization", "x g b", "h"), node("Gelu", "h", "y", approximate="tanh")]
    graph = from_onnx(model(nodes, {"x": [4, 8, 64]}, [weight("g", 64), weight("b", 64)], version=20))
    assert kinds(graph) == ["layer_norm", "gelu_tanh"]
    assert graph.node("layer_norm").attr("dims") == (2,)


def test_gelu_written_out():
    nodes = [
        node("Div", "x root", "a"),
        node("Erf", "a", "e"),
        node("Add", "e one", "f"),
        node("Mul", "x f", "g"),
        node("Mul", "g half", "y"),
    ]
    graph = from_onnx(model(nodes, {"x": [128, 256]}, [number("root", 2**0.5), number("one", 1), number("half", 0.5)]))
    assert kinds(graph) == ["div", "erf", "add", "mul", "mul"]
    x = 128 * 256 * 4
    assert [moved(graph, name) for name in ("div", "erf", "add", "mul", "mul_1")] == [2 * x, 2 * x, 2 * x, 3 * x, 2 * x]


def test_embedding_and_masks():
    ids = helper.make_tensor_value_info("ids", INT, [2, 16])
    nodes = [
        node("Gather", "table ids", "rows"),
        node("Equal", "ids pad", "mask"),
        node("Unsqueeze", "mask last", "wide"),
        node("Where", "wide low rows", "kept"),
        node("Cast", "kept", "y", to=onnx.TensorProto.FLOAT16),
    ]
    weights = [
        weight("table", 1000, 64),
        helper.make_tensor("pad", INT, [], [0]),
        ints("last", -1),
        number("low", -1e9),
    ]
    graph = helper.make_graph(nodes, "g", [ids], [helper.make_tensor_value_info("y", 10, None)], weights)
    read = from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    assert kinds(read) == ["embedding", "eq", "where", "cast"]
    assert moved(read, "eq") == 2 * 16 * (8 + 1)
    assert moved(read, "where") == 2 * 16 * (1 + 2 * 64 * 4)  # mask and rows in, rows out
    assert read.node("where").attr("reverse")  # the number where the mask is, rows elsewhere
    assert moved(read, "cast") == 2 * 16 * 64 * (4 + 2)


def test_views_move_nothing():
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0, 2]),
        node("Slice", "t from to axes", "s"),
        node("Split", "s parts", "a b", axis=2),
        node("Squeeze", "a dims", "q"),
        node("Expand", "b wide", "e"),
        node("Neg", "e", "y"),
        node("Abs", "q", "z"),
    ]
    weights = [
        ints("from", 1),
        ints("to", 2),
        ints("axes", 0),
        ints("parts", 4, 12),
        ints("dims", 0),
        ints("wide", 3, 4, 12),
    ]
    graph = from_onnx(model(nodes, {"x": [4, 8, 16]}, weights, outputs=("y", "z")))
    assert kinds(graph) == ["neg", "abs"]
    assert moved(graph, "neg") == 4 * 12 * 4 + 3 * 4 * 12 * 4  # one of three copies is in memory
    assert moved(graph, "abs") == 2 * 4 * 4 * 4


def test_decoder_upsampling():
    nodes = [
        node("Resize", "x none scales", "u", mode="nearest"),
        node("Concat", "u skip", "c", axis=1),
        node("Pad", "c pads", "p"),
        node("Clip", "p low high", "l"),
        node("AveragePool", "l", "y", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    nodes[0].input[1] = ""
    scales = helper.make_tensor("scales", F, [4], [1, 1, 2, 2])
    weights = [scales, ints("pads", 0, 0, 1, 1, 0, 0, 1, 1), number("low", 0), number("high", 6)]
    graph = from_onnx(model(nodes, {"x": [1, 8, 7, 7], "skip": [1, 4, 14, 14]}, weights))
    assert kinds(graph) == ["upsample", "concat", "pad", "clamp", "pool"]
    assert moved(graph, "upsample") == 8 * (7 * 7 + 14 * 14) * 4
    assert moved(graph, "concat") == 2 * 12 * 14 * 14 * 4
    assert moved(graph, "clamp") == 2 * 12 * 16 * 16 * 4
    assert graph.tensors[graph.outputs[0]].shape == (1, 12, 8, 8)


def test_old_versions_keep_settings_in_attributes():
    nodes = [
        node("Squeeze", "x", "s", axes=[0]),
        node("ReduceSum", "s", "r", axes=[1], keepdims=0),
        node("Unsqueeze", "r", "u", axes=[0]),
        node("Clip", "u", "c", min=0.0),
        node("Softmax", "c", "y"),
    ]
    graph = from_onnx(model(nodes, {"x": [1, 8, 4, 16]}, version=9))
    assert kinds(graph) == ["sum", "clamp", "softmax"]
    assert graph.tensors[graph.outputs[0]].shape == (1, 8, 16)


def test_old_softmax_runs_over_everything_behind_its_axis():
    graph = from_onnx(model([node("Softmax", "x", "y")], {"x": [8, 4, 16]}, version=9))
    assert graph.tensors[graph.node("softmax").inputs[0]].shape == (8, 64)


def test_einsum_of_two():
    graph = from_onnx(
        model([node("Einsum", "a b", "y", equation="bhid,bhjd->bhij")], {"a": [2, 4, 8, 16], "b": [2, 4, 6, 16]})
    )
    assert graph.flops(graph.node("matmul")) == 2 * (2 * 4) * 8 * 6 * 16
    assert graph.tensors[graph.outputs[0]].shape == (2, 4, 8, 6)
    other = from_onnx(model([node("Einsum", "a", "y", equation="ij->ji")], {"a": [2, 4]}))
    assert kinds(other) == ["opaque"]


def test_unknown_operators_are_opaque_and_named():
    nodes = [
        helper.make_node("Warp", ["x"], ["h"], domain="my.domain"),
        node("LSTM", "x3 w r", "o h c", hidden_size=16),
        node("Relu", "h0", "y"),
    ]
    nodes[2].input[0] = "h"
    weights = [weight("w", 1, 64, 32), weight("r", 1, 64, 16)]
    nodes[1].output[1] = "state"
    built = model(nodes, {"x": [4, 8], "x3": [5, 2, 32]}, weights)
    built.opset_import.append(helper.make_opsetid("my.domain", 1))
    graph = from_onnx(built)
    assert kinds(graph) == ["opaque", "opaque", "relu"]
    assert graph.gaps[0].startswith("my.domain Warp has no rule: priced as one kernel")
    assert graph.gaps[1].startswith("ONNX LSTM has no rule")
    assert graph.tensors[graph.node("opaque_1").outputs[0]].shape == (5, 1, 2, 16)  # inferred by the onnx package


def test_local_functions_are_written_out():
    body = helper.make_function("own", "Twice", ["a"], ["b"], [node("Add", "a a", "b")], [helper.make_opsetid("", 17)])
    built = model([helper.make_node("Twice", ["x"], ["y"], domain="own")], {"x": [4]}, functions=[body])
    built.opset_import.append(helper.make_opsetid("own", 1))
    assert kinds(from_onnx(built)) == ["add"]


def test_paths_and_bytes_are_read_alike(tmp_path):
    built = attention_model()
    path = tmp_path / "attention.onnx"
    onnx.save(built, path)
    assert from_onnx(path) == from_onnx(path.read_bytes()) == from_onnx(built)
    assert from_onnx(str(path)).name == "attention"


def test_weights_in_missing_files_are_not_needed(tmp_path):
    nodes = [node("MatMul", "x w", "y")]
    built = model(nodes, {"x": [8, 512]}, [onnx.numpy_helper.from_array(np.zeros((512, 512), np.float32), "w")])
    path = tmp_path / "large.onnx"
    onnx.save(built, path, save_as_external_data=True, location="large.bin", size_threshold=0)
    (tmp_path / "large.bin").unlink()
    assert from_onnx(path).total_flops == 2 * 8 * 512 * 512


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no operators|no ONNX model"),
        (b"hello, I am text", "no ONNX model"),
        (b"\x08\x07" + bytes(100), "no ONNX model"),
        (17, "takes a path"),
    ],
)
def test_a_foreign_file_is_one_sentence(content, words):
    with pytest.raises(InputError, match=words) as caught:
        from_onnx(content)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"gone\.onnx: cannot be read"):
        from_onnx(tmp_path / "gone.onnx")


@pytest.mark.parametrize(
    "nodes",
    [
        [node("MatMul", "x x", "y")],
        [node("Relu", "gone", "y")],
        [node("Reshape", "x x", "y")],
        [node("Conv", "x x", "y")],
        [node("Transpose", "x", "y", perm=[0, 7])],
        [node("Concat", "x x", "y", axis=9)],
        [node("Constant", "", "y", value_string="text")],
    ],
)
def test_broken_models_are_one_sentence(nodes):
    with pytest.raises(FusesimError) as caught:
        from_onnx(model(nodes, {"x": [3, 5]}))
    assert isinstance(caught.value, GraphError | InputError)
    assert "\n" not in str(caught.value)
