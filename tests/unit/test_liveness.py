"""Live bytes by hand. Tensors here are multiples of the allocator's step unless a test says otherwise."""

import pytest

from fusesim import patterns
from fusesim.builder import Builder
from fusesim.errors import InputError, PlanError
from fusesim.fusion import FusionPlan, Group
from fusesim.liveness import liveness, peak_memory
from fusesim.scratch import MIB, SCRATCH, allocation, scratch_bytes, torch_allocation

SIZE = 1024  # of a bf16 tensor of 512 values [B]


def plan(graph, *groups, strategy="vertical"):
    """Return a plan of groups of names, the rest each alone; eager where none is given."""
    if not groups:
        groups, strategy = [[node.name] for node in graph.paid_nodes], "eager"
    return FusionPlan(graph=graph, groups=tuple(Group(nodes=tuple(names)) for names in groups), strategy=strategy)


def chain(*kinds, elements=512):
    b = Builder()
    value = b.input(elements)
    for kind in kinds:
        value = b.op(kind, value)
    b.output(value)
    return b.graph()


def test_a_chain_holds_two_tensors_and_a_fused_one_its_output():
    graph = chain("exp", "neg", "relu")
    timeline = liveness(plan(graph))
    assert [(step.allocated, step.freed) for step in timeline.steps] == [
        (("exp",), ()),
        (("neg",), ("exp",)),
        (("relu",), ("neg",)),
    ]
    assert [(step.live, step.after) for step in timeline.steps] == [
        (SIZE, SIZE),
        (2 * SIZE, SIZE),  # both while the kernel runs
        (2 * SIZE, SIZE),
    ]
    assert (timeline.peak, timeline.end, timeline.worst) == (2 * SIZE, SIZE, 1)
    assert liveness(plan(graph, ["exp", "neg", "relu"])).peak == SIZE  # what is in between has no memory


def test_generated_kernels_write_over_what_dies():
    graph = chain("exp", "neg", "relu")
    groups = (["exp"], ["neg", "relu"])
    timeline = liveness(plan(graph, *groups))
    assert timeline.peak == SIZE  # the result of the second lies where that of the first was
    assert timeline.steps[1].allocated == ()
    assert liveness(plan(graph, *groups), reuse=False).peak == 2 * SIZE


def test_two_readers_keep_a_tensor_to_the_later_one():
    b = Builder()
    x = b.op("exp", b.input(512))
    b.output(b.op("mul", x, b.op("neg", b.op("neg", x))))
    timeline = liveness(plan(b.graph()))
    # exp; exp, neg; exp, neg, neg_1; exp, neg_1, mul
    assert [step.live // SIZE for step in timeline.steps] == [1, 2, 3, 3]
    assert timeline.steps[3].freed == ("exp", "neg_1")


def test_inputs_are_neither_counted_nor_freed_nor_written_over():
    graph = chain("exp")
    timeline = liveness(plan(graph, ["exp"]))
    assert timeline.peak == SIZE
    assert timeline.steps[0].freed == ()


def test_outputs_stay_even_where_others_read_them():
    b = Builder()
    x = b.op("exp", b.input(512))
    b.output(x, b.op("neg", x))
    assert liveness(plan(b.graph(), ["exp"], ["neg"])).peak == 2 * SIZE
    assert liveness(plan(b.graph(), ["exp"], ["neg"])).end == 2 * SIZE


def test_a_view_keeps_the_memory_that_it_lies_in():
    b = Builder()
    x = b.op("exp", b.input(16, 32))
    turned = b.transpose(x)
    b.output(b.op("add", b.op("neg", b.op("neg", turned)), turned))
    timeline = liveness(plan(b.graph()))
    assert timeline.steps[-1].freed == ("exp", "neg_1")
    assert timeline.peak == 3 * SIZE


def test_an_output_that_is_a_view_keeps_its_memory():
    b = Builder()
    b.output(b.transpose(b.op("exp", b.input(16, 32))))
    assert liveness(plan(b.graph())).end == SIZE


def test_writing_over_allocates_nothing():
    b = Builder()
    x = b.op("exp", b.input(512))
    b.output(b.op("relu", x, over=True))
    timeline = liveness(plan(b.graph()))
    assert (timeline.peak, timeline.end) == (SIZE, SIZE)
    assert timeline.steps[1].allocated == ()


def test_the_lessons_kernel_writes_over_its_input_and_needs_no_memory():
    b = Builder()
    x = b.input(128, 512, dtype="fp32")
    b.output(b.op("relu", b.op("add", x, b.parameter(512, dtype="fp32"), over=True), over=True))
    assert liveness(plan(b.graph(), ["add", "relu"])).peak == 0
    assert peak_memory(plan(patterns.bias_relu(128, 512))) == 2 * 128 * 512 * 4  # the sum and the result


def test_a_mask_that_nobody_reads_goes_at_once():
    b = Builder()
    b.output(b.op("neg", b.dropout(b.input(1024), 0.1)))
    timeline = liveness(plan(b.graph()))
    assert timeline.steps[0].live == 2048 + 1024  # bf16 values, and a byte of mask each
    assert timeline.steps[0].freed == ("mask",)
    assert liveness(plan(b.graph(), ["dropout", "neg"])).peak == 2048  # fused, it never has memory


def test_variables_are_kept_as_long_as_the_program_names_them():
    b = Builder()
    x = b.op("exp", b.input(512))
    y = b.op("neg", x)
    z = b.op("relu", y)
    b.hold(x)
    b.output(b.op("abs", z))
    assert [step.live // SIZE for step in liveness(plan(b.graph())).steps] == [1, 2, 3, 3]
    assert liveness(plan(b.graph()), program=False).peak == 2 * SIZE
    b.held = {x.name: "relu"}
    assert [step.live // SIZE for step in liveness(plan(b.graph())).steps] == [1, 2, 3, 2]


def test_a_variable_let_go_at_a_view_goes_with_the_op_before_it():
    b = Builder()
    x = b.op("exp", b.input(16, 32))
    y = b.op("neg", x)
    turned = b.transpose(y)
    b.release(x)
    b.output(b.op("relu", turned))
    assert liveness(plan(b.graph())).steps[1].freed == ("exp",)


def test_small_tensors_take_a_whole_step():
    assert peak_memory(plan(chain("exp", "neg", elements=3))) == 2 * 512


def test_empty_tensors_take_nothing():
    timeline = liveness(plan(chain("exp", "neg", elements=0)))
    assert timeline.peak == 0


def test_a_graph_without_ops_has_no_peak():
    b = Builder()
    b.output(b.input(4))
    timeline = liveness(plan(b.graph(), strategy="eager"))
    assert (timeline.peak, timeline.end, timeline.worst) == (0, 0, None)


@pytest.mark.parametrize(
    ("size", "counted"),
    [
        (9 * MIB + 1, 9 * MIB + 512),  # shares a segment
        (10 * MIB, 10 * MIB),
        (11 * MIB, 12 * MIB),  # exactly 1 MiB would be left: not split
        (11 * MIB - 512, 11 * MIB - 512),  # more is left: split
        (12 * MIB - 512, 12 * MIB),
    ],
)
def test_large_blocks_count_what_is_not_split_off(size, counted):
    assert torch_allocation(size) == counted
    assert allocation(size) == -(-size // 512) * 512


def test_the_allocator_is_a_choice():
    graph = chain("exp", elements=11 * MIB // 2)
    assert liveness(plan(graph)).peak == 12 * MIB
    assert liveness(plan(graph), allocator="step").peak == 11 * MIB
    with pytest.raises(InputError, match='unknown allocator "steps"; did you mean "step"'):
        liveness(plan(graph), allocator="steps")


def test_scratch_can_be_given_per_group():
    graph = chain("exp", "neg")
    timeline = liveness(plan(graph), scratch=[4096, 0])
    assert [step.live for step in timeline.steps] == [SIZE + 4096, 2 * SIZE]
    assert [step.after for step in timeline.steps] == [SIZE, SIZE]
    with pytest.raises(PlanError, match="scratch has 1 entries; the plan has 2 groups"):
        liveness(plan(graph), scratch=[1])


OWN = [
    ("layer_norm", lambda b: b.layer_norm(b.input(300, 64)), 2 * 1536),  # 300 rows of fp32: 1200 B, twice
    ("rms_norm", lambda b: b.rms_norm(b.input(300, 64)), 1536),
    ("batch_norm", lambda b: b.batch_norm(b.input(2, 300, 4, 4), b.input(300), b.input(300)), 2 * 1536),
    ("conv", lambda b: b.conv(b.input(1, 4, 8, 8), b.input(4, 4, 3, 3)), 512),
    ("attention", lambda b: b.attention(*(b.input(1, 2, 8, 4) for _ in range(3))), 3 * 512),
    ("nll_loss", lambda b: b.nll_loss(b.input(8, 10), b.input(8, dtype="int64")), 512),
    ("embedding_bag", lambda b: b.embedding_bag(b.input(9, 4), b.input(100, 3, dtype="int64")), 2560 + 1024),
    ("softmax", lambda b: b.softmax(b.input(300, 64)), 0),
    ("matmul", lambda b: b.matmul(b.input(8, 8), b.input(8, 8)), 0),  # cuBLAS keeps its workspace
]


@pytest.mark.parametrize(("build", "own"), [case[1:] for case in OWN], ids=[case[0] for case in OWN])
def test_what_a_librarys_kernel_allocates_for_itself(build, own):
    b = Builder()
    b.output(build(b))
    made = plan(b.graph())
    assert scratch_bytes(made, made.groups[0]) == own
    assert liveness(made).steps[0].after + own == liveness(made).peak


def test_group_norm_has_statistics_per_sample_and_group():
    b = Builder()
    result = b.tensor((4, 64, 8, 8), "bf16", stem="group_norm")
    b.node("group_norm", [b.input(4, 64, 8, 8)], [result], groups=32)
    b.output(result)
    made = plan(b.graph())
    assert scratch_bytes(made, made.groups[0]) == 2 * 512  # 4 x 32 fp32 numbers are one step
    assert "group_norm" in SCRATCH


def test_statistics_stay_on_chip_in_a_generated_kernel():
    b = Builder()
    b.output(b.op("relu", b.layer_norm(b.input(300, 64))))
    assert liveness(plan(b.graph(), ["layer_norm", "relu"])).steps[0].scratch == 0
    made = plan(patterns.conv_bn_relu(2, 8, 8, 4), ["conv", "batch_norm", "relu"])
    assert scratch_bytes(made, made.groups[0]) == 512  # the convolution's, not the norm's


def test_statistics_that_are_results_are_no_scratch():
    b = Builder()
    x = b.input(512, 64)
    results = [b.tensor(shape, dtype, stem="norm") for shape, dtype in (((512, 64), "bf16"), ((512, 1), "fp32"))]
    b.node("rms_norm", [x], results, dims=(1,))
    b.output(*results)
    assert liveness(plan(b.graph())).peak == 512 * 64 * 2 + 512 * 4


class TestWritingOver:
    """A generated kernel may put a result where an input was, if it is read only where that is written."""

    def test_not_where_another_result_needs_the_input_too(self):
        b = Builder()
        x = b.op("exp", b.input(512))
        b.output(b.op("neg", x), b.op("abs", x))
        assert liveness(plan(b.graph(), ["exp"], ["neg", "abs"])).peak == 3 * SIZE

    def test_not_where_a_reduction_reads_the_input_first(self):
        b = Builder()
        x = b.op("exp", b.input(16, 32))
        b.output(b.op("sub", x, b.reduce("mean", x)))
        assert liveness(plan(b.graph(), ["exp"], ["mean", "sub"])).peak == 2 * SIZE

    def test_not_where_the_type_differs(self):
        b = Builder()
        b.output(b.cast(b.op("exp", b.input(512)), "fp32"))
        assert liveness(plan(b.graph(), ["exp"], ["cast"])).peak == 3 * SIZE

    def test_not_where_it_is_read_in_another_order(self):
        b = Builder()
        x = b.op("exp", b.input(32, 32))
        b.output(b.op("add", x, b.copy(b.transpose(x))))
        assert liveness(plan(b.graph(), ["exp"], ["copy", "add"])).peak == 4 * SIZE  # tensors of 2 KiB

    def test_not_by_a_product(self):
        b = Builder()
        b.output(b.matmul(b.op("exp", b.input(16, 32)), b.input(32, 32)))
        assert liveness(plan(b.graph(), ["exp"], ["matmul"])).peak == 2 * SIZE

    def test_in_another_shape_of_the_same_order(self):
        b = Builder()
        b.output(b.op("neg", b.view(b.op("exp", b.input(16, 32)), (4, 128))))
        assert liveness(plan(b.graph(), ["exp"], ["neg"])).peak == SIZE

    def test_one_after_the_other(self):
        timeline = liveness(plan(chain("exp", "neg", "relu", "abs"), ["exp"], ["neg"], ["relu"], ["abs"]))
        assert [step.live for step in timeline.steps] == [SIZE] * 4
        assert timeline.end == SIZE

    def test_an_input_is_used_once(self):
        b = Builder()
        x, y = b.op("exp", b.input(512)), b.op("exp", b.input(512))
        b.output(b.op("neg", x), b.op("mul", x, y))
        # x is needed by both results, y by the second alone, which lies where y was
        assert liveness(plan(b.graph(), ["exp"], ["exp_1"], ["neg", "mul"])).peak == 3 * SIZE


def test_a_timeline_is_data():
    shown = liveness(plan(chain("exp", "neg"))).to_dict()
    assert shown["peak"] == 2 * SIZE
    assert shown["sizes"] == {"exp": SIZE, "neg": SIZE}
    assert shown["steps"][1] == {
        "group": 1,
        "allocated": ("neg",),
        "freed": ("exp",),
        "scratch": 0,
        "live": 2 * SIZE,
        "after": SIZE,
    }
