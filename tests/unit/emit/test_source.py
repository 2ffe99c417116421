"""What a reader finds in emitted source, and what is refused."""

import ast
import re

import pytest

from fusesim import patterns
from fusesim.builder import Builder
from fusesim.emit import emit, emit_separate
from fusesim.emit.api import kernels_of
from fusesim.errors import InputError, PlanError


def kernels_in(source):
    return re.findall(r"__launch_bounds__\(\d+\) (\w+)\(", source)


def test_the_lesson_is_one_kernel_of_plain_names(emit_tools):
    source = emit(emit_tools.one_group(patterns.bias_relu()))
    assert kernels_in(source) == ["add_relu_kernel"]
    assert "const float add = x + bias;  // in a register, never in memory" in source
    assert "const float relu = add < 0.0f ? 0.0f : add;" in source
    # writing and reading the sum: 2 x 128 x 512 x 4 B = 524 288 B
    assert "writing and reading them moves 524.3 kB" in source.replace("\n// ", " ")


def test_separate_kernels_are_one_per_op(emit_tools):
    plan = emit_tools.one_group(patterns.bias_relu())
    assert kernels_in(emit_separate(plan)) == ["add_kernel", "relu_kernel"]
    assert emit(plan, fused=False) == emit_separate(plan)
    assert emit_separate(plan).count("template <typename T, int N> struct") == 1  # what they share stands once


def test_sixteen_bytes_at_once_where_the_sizes_allow_it(emit_tools):
    def vector(graph):
        found = re.search(r"constexpr int vector = (\d+)", emit(emit_tools.one_group(graph)))
        return int(found.group(1)) if found else 1

    assert vector(patterns.swiglu(4, 64, "bf16")) == 8  # 16 B / 2 B
    assert vector(patterns.swiglu(4, 64, "fp32")) == 4
    assert vector(patterns.bias_relu(8, 6)) == 2  # rows of 6 values: 8 B at a time
    assert vector(patterns.bias_relu(8, 7)) == 1  # the bias begins anew every 7 values
    assert vector(patterns.swiglu(8, 7, "fp32")) == 4  # 56 values in a row, where a row ends does not matter


def test_a_view_that_begins_off_a_vector_is_read_value_by_value(emit_tools):
    b = Builder()
    x = b.input(4, 32, dtype="fp32")
    b.output(b.op("relu", b.slice(x, 1, 1, 17)))  # from element 1: 4 B off
    assert "vector" not in emit(emit_tools.one_group(b.graph()))


def test_a_row_is_held_where_it_fits_and_read_again_where_not(emit_tools):
    short, long = (emit(emit_tools.one_group(patterns.softmax(4, cols, "fp32"))) for cols in (4096, 65536))
    assert "memory is read once" in short
    assert short.count("load<float, vector>(x_ptr") == 1
    assert "3 passes" in long  # the largest, the sum, the division
    assert long.count("load<float, vector>(x_ptr") == 3


def test_launches_cover_every_value_and_row(emit_tools):
    (kernel,) = kernels_of(emit_tools.one_group(patterns.bias_relu(128, 512)))
    assert (kernel.grid, kernel.threads) == (64, 256)  # 65536 values / (256 threads x 4)
    (kernel,) = kernels_of(emit_tools.one_group(patterns.rmsnorm(100, 4096)))
    assert (kernel.grid, kernel.threads) == (100, 512)  # a block per row, 8 values per thread
    assert kernel.parameters == ("x", "weight", "mul_2")


def test_indices_have_64_bits_where_they_must(emit_tools):
    assert "const long long i" in emit(emit_tools.one_group(patterns.swiglu(2**20, 2**12)))  # 2^32 values
    assert "long long" not in emit(emit_tools.one_group(patterns.swiglu(4, 64)))


def test_every_group_of_a_plan_has_its_source(emit_tools):
    plan = emit_tools.plan(patterns.rmsnorm(8, 64), "eager")
    assert [kernels_in(emit(plan, place)) for place in range(2)] == [["mul_kernel"], ["mean_kernel"]]


@pytest.mark.parametrize("make", [patterns.bias_relu, patterns.softmax, patterns.add_rmsnorm, patterns.adam_step])
@pytest.mark.parametrize("fused", [True, False])
def test_triton_is_a_module_with_a_launcher_per_kernel(make, fused, emit_tools):
    source = emit(emit_tools.one_group(make()), language="triton", fused=fused)
    names = [part.name for part in ast.parse(source).body if isinstance(part, ast.FunctionDef)]
    kernels = [name for name in names if name.endswith("_kernel")]
    assert names == [name for kernel in kernels for name in (kernel, kernel.removesuffix("_kernel"))]
    assert source.count("@triton.jit") == len(kernels)


def test_names_that_a_language_keeps_for_itself_are_changed(emit_tools):
    b = Builder()
    x, y = b.input(8, dtype="fp32", name="float"), b.input(8, dtype="fp32", name="a.b")
    b.output(b.op("add", x, y))
    source = emit(emit_tools.one_group(b.graph()))
    assert "const float float_ = float__v.value[j];" in source
    assert "const float add = float_ + a_b;" in source


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (patterns.matmul(64, 64, 64), r"op matmul \(matmul\) is no pointwise op or row reduction: call cuBLAS"),
        (patterns.attention(1, 2, 64, 32), r"op attention \(attention\) .* flash-attention"),
        (patterns.conv_bn_relu(1, 8, 8, 8, 3), r"op conv \(conv\) .* cuDNN"),
        (patterns.rope(4, 2, 8), r"op concat \(concat\) "),
        (patterns.dropout_residual_layernorm(4, 64), r"op dropout \(dropout\) .*p=0"),
        (patterns.cross_entropy(4, 64), r"op nll_loss \(nll_loss\) .* log-softmax"),
    ],
)
def test_what_is_no_loop_is_refused_by_name(graph, words, emit_tools):
    with pytest.raises(PlanError, match=words):
        emit(emit_tools.one_group(graph))


def sorted_rows(b):
    x = b.input(4, 8)
    made = [b.tensor((4, 8), x.dtype, stem="sorted"), b.tensor((4, 8), "int64", stem="places")]
    b.node("sort", [x], made)
    b.output(*made)


def two_spaces(b):
    b.output(b.op("relu", b.input(16)), b.op("exp", b.input(7)))


def own_transpose(b):
    x = b.op("relu", b.input(8, 8))
    b.output(b.op("add", x, b.transpose(x)))


def part_of_itself(b):
    x = b.op("relu", b.input(8, 8))
    b.output(b.op("exp", b.slice(x, 0, 0, 4)), x)


def two_directions(b):
    x = b.input(8, 8)
    b.output(b.reduce("sum", x, (0,)), b.reduce("sum", x, (1,)))


def no_number(b):
    b.output(b.op("mul", b.input(8)))


def nothing(b):
    b.output(b.op("relu", b.input(0, 4)))


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (sorted_rows, r"op sort \(sort\) is no pointwise op or row reduction"),
        (two_spaces, "go over different values"),
        (own_transpose, "read across its own places"),
        (part_of_itself, "moves values between places"),
        (two_directions, "op sum and op sum_1 reduce along different dimensions"),
        (no_number, "has 1 operands of 2"),
        (nothing, "has no values"),
    ],
)
def test_what_one_loop_cannot_do_is_refused(write, words, emit_tools):
    b = Builder()
    write(b)
    with pytest.raises(PlanError, match=words):
        emit(emit_tools.one_group(b.graph()))


def test_passes_that_wrote_over_what_they_read_are_refused(emit_tools):
    b = Builder()
    x = b.input(2, 65536, dtype="fp32")
    y = b.op("exp", x, over=True)
    b.output(y, b.op("div", y, b.reduce("sum", y)))
    with pytest.raises(PlanError, match="writes over x"):
        emit(emit_tools.one_group(b.graph()))


def test_unknown_groups_and_languages_are_refused(emit_tools):
    plan = emit_tools.one_group(patterns.bias_relu())
    with pytest.raises(InputError, match="it has 0 to 0"):
        emit(plan, 1)
    with pytest.raises(InputError, match='unknown language "cdua"; did you mean "cuda"'):
        emit(plan, language="cdua")
    b = Builder()
    b.output(b.reduce("prod", b.input(4, 8)))
    with pytest.raises(PlanError, match="emit it with language cuda"):
        emit(emit_tools.one_group(b.graph()), language="triton")
