"""Kernels that a compiler generates for groups: persistent, looped and split rows, loops, gathers, by hand."""

import pytest

import fusesim
from fusesim.builder import Builder
from fusesim.fusion import FusionPlan, Group
from fusesim.lowering import lower
from fusesim.lowering.counting import POSITIVE_ROOT, SECTOR, SLOTS, TAP, arithmetic, needed_shares
from fusesim.lowering.generated import group_launches
from fusesim.lowering.passes import (
    DIVIDING,
    JOINED,
    JOINED_EVEN,
    JOINED_VARIANCE,
    ONLINE_SLOTS,
    RUNNING,
    joining_slots,
    pass_levels,
    passes,
    running_slots,
)
from fusesim.lowering.row_parts import RowShape, part_count, row_shape


def chain(*names, shape=(1000, 1024), dtype="bf16"):
    def build(b):
        x = b.input(*shape, dtype=dtype)
        for name in names:
            x = b.op(name, x)
        return x

    return build


def centred(*shape, dtype="bf16"):
    """x - mean(x) over rows."""

    def build(b):
        x = b.input(*shape, dtype=dtype)
        return b.op("sub", x, b.reduce("mean", x, [-1], keepdim=True))

    return build


def softened(*shape, dtype="bf16"):
    """Softmax step by step: a maximum, powers, their sum, a division."""

    def build(b):
        x = b.input(*shape, dtype=dtype)
        powers = b.op("exp", b.op("sub", x, b.reduce("amax", x, [-1], keepdim=True)))
        return b.op("div", powers, b.reduce("sum", powers, [-1], keepdim=True))

    return build


def summed(*shape, dims=(-1,), dtype="bf16"):
    return lambda b: b.reduce("sum", b.input(*shape, dtype=dtype), list(dims))


def test_a_chain_is_one_loop_that_reads_and_writes_once(generated):
    (loop,) = generated(chain("neg", "exp", "tanh", "relu"))
    size = 1000 * 1024 * 2
    assert loop.row == "gen_loop16"
    assert (loop.bytes_read, loop.bytes_written) == (size, size)
    assert loop.blocks == 1000  # 1024 values a block of 128 threads
    # neg 1, exp 8, tanh 24, relu 1 and a load and a store
    assert loop.slots == pytest.approx(generated(chain("neg"))[0].slots + SLOTS["exp"] + SLOTS["tanh"] + 1, abs=1.0)


@pytest.mark.parametrize(
    ("elements", "blocks"),
    [
        (9000, 36),  # 256 a block, no fewer
        (100_000, 196),  # 100 000 / 128 = 781: 512 a block
        (10_000_000, 9766),  # 1024 a block, no more
    ],
)
def test_blocks_of_a_loop_grow_with_it(generated, elements, blocks):
    (loop,) = generated(chain("neg", shape=(elements,)))
    assert loop.blocks == blocks


@pytest.mark.parametrize(
    ("elements", "dtype", "row"),
    [
        (9000, "bf16", "gen_loop16"),  # 18 000 bytes are a multiple of 8
        (9001, "bf16", "gen_loop_odd16"),
        (9002, "bf16", "gen_loop_odd16"),
        (9002, "fp32", "gen_loop32"),
        (9001, "fp32", "gen_loop_odd32"),
    ],
)
def test_odd_sizes_load_value_by_value(generated, elements, dtype, row):
    (loop,) = generated(chain("neg", shape=(elements,), dtype=dtype))
    assert loop.row == row


def test_an_odd_row_makes_a_loop_odd(generated):
    def build(columns):
        return lambda b: b.op("add", b.input(8, columns, dtype="bf16"), b.input(columns, dtype="bf16"))

    assert generated(build(1001))[0].row == "gen_loop_odd16"
    assert generated(build(1004))[0].row == "gen_loop16"


def test_a_turned_operand_has_a_class_of_its_own(generated):
    def build(b):
        turned = b.permute(b.input(512, 300, dtype="bf16"), [1, 0])
        return b.op("add", turned, b.input(300, 512, dtype="bf16"))

    assert generated(build)[0].row == "gen_turned16"


def test_a_turned_row_of_few_values_is_read_whole(generated):
    def build(b):
        turned = b.permute(b.input(4, 3000, dtype="bf16"), [1, 0])
        return b.op("add", b.input(3000, 4, dtype="bf16"), turned)

    assert generated(build)[0].row == "gen_loop16"


def test_kernels_by_hand_have_a_class_of_their_own(generated):
    assert generated(chain("neg"), path="cuda")[0].row == "cuda"


@pytest.mark.parametrize(
    ("rows", "columns", "blocks", "threads"),
    [
        (12_000, 256, 3000, 32),  # many rows: 1024 values, four rows, to a warp
        (12_000, 1024, 12_000, 32),
        (400, 500, 400, 128),  # few: a block each
        (400, 1000, 400, 256),
        (300, 200, 300, 64),  # four values to a thread
    ],
)
def test_short_rows_stay_on_chip(generated, rows, columns, blocks, threads):
    (held,) = generated(centred(rows, columns))
    assert held.row == "gen_held16"
    assert (held.blocks, held.threads) == (blocks, threads)
    assert held.bytes_read == held.bytes_written == rows * columns * 2  # once
    assert held.again == 0


def test_a_held_row_is_padded_to_whole_loads_of_its_threads(generated):
    # 32 threads load 8 values each: pieces of 256; in fp32 of 128
    assert generated(centred(12_000, 300))[0].elements == 12_000 * 512
    assert generated(centred(12_000, 700))[0].elements == 12_000 * 768
    assert generated(centred(12_000, 300, dtype="fp32"))[0].elements == 12_000 * 384
    assert generated(centred(12_000, 16))[0].elements == 12_000 * 16
    assert generated(centred(12_000, 301))[0].row == "gen_held_odd16"  # 602 bytes


@pytest.mark.parametrize(
    ("columns", "joined"),
    [
        (256, 4 * 12),  # four rows to a warp, five shuffles each
        (32, 32 * 12),
        (16, 64 * 12 / 2 * 4 / 5),  # two rows lie in a warp side by side, and four shuffles join them
        (8, 128 * 12 / 4 * 3 / 5),
    ],
)
def test_rows_shorter_than_a_warp_share_its_shuffles(generated, columns, joined):
    assert generated(centred(120_000, columns))[0].joined == pytest.approx(joined)


@pytest.mark.parametrize(("rows", "blocks"), [(4096, 512), (33_792, 4224), (120_000, 938)])
def test_rows_spread_over_more_blocks_while_all_of_them_run_at_once(generated, rows, blocks):
    # 8 rows a block up to 132 SMs x 32 blocks, then as many as fill 1024 values: 128
    assert generated(centred(rows, 8))[0].blocks == blocks


@pytest.mark.parametrize(
    ("columns", "row"),
    [(1, "gen_loop16"), (4, "gen_loop16"), (8, "gen_held16")],  # Inductor's threshold is 8
)
def test_rows_of_few_values_are_written_out(generated, columns, row):
    (kernel,) = generated(centred(12_000, columns))
    assert kernel.row == row
    assert kernel.elements == 12_000 * columns
    assert kernel.bytes_read == kernel.bytes_written == 12_000 * columns * 2  # rows meet in the cache


@pytest.mark.parametrize("columns", [5, 7])
def test_what_takes_more_than_four_loads_is_kept_by_a_kernel_before(generated, columns):
    first, second = generated(centred(12_000, columns))
    assert first.elements == 12_000
    assert first.bytes_read == 12_000 * columns * 2
    assert first.bytes_written == 12_000 * 4  # a sum of each row, in fp32
    assert second.bytes_read == 12_000 * columns * 2 + 12_000 * 4
    assert second.bytes_written == 12_000 * columns * 2


def test_all_rows_of_a_group_must_be_short_to_be_written_out(generated):
    def build(b):
        x = b.input(3000, 128, 4, dtype="bf16")
        return b.reduce("sum", b.op("relu", b.reduce("sum", x, [-1], keepdim=False)), [-1])

    assert generated(build)[0].row != "gen_loop16"


def test_a_thread_computes_the_whole_row_that_it_needs(generated):
    (softmax,) = generated(softened(12_000, 4))
    # a row of 4: loads, subtractions, powers, the maximum and the sum, 4 each; a division and a store
    each = SLOTS["exp"] + 1 + 1 + 1 + 1
    assert softmax.slots == pytest.approx(4 * each + SLOTS["div"] + 1, rel=0.1)
    assert softmax.special == 4 + 2  # powers, and the division
    assert softmax.joined == 0


def test_what_is_made_once_per_row_is_not_made_for_each_value_of_it(generated):
    def build(dear):
        def built(b):
            x = b.input(12_000, 4, dtype="bf16")
            peak = b.reduce("amax", x, [-1], keepdim=True)
            return b.reduce("sum", b.op("sub", x, b.op("tanh", peak) if dear else peak), [-1])

        return built

    dear, cheap = generated(build(dear=True))[0], generated(build(dear=False))[0]
    assert dear.elements == 12_000  # a thread for each sum
    assert dear.slots - cheap.slots == SLOTS["tanh"]


def test_what_only_an_empty_op_reads_is_not_loaded(generated):
    def build(b):
        total = b.reduce("sum", b.input(12_000, 4, dtype="bf16"))
        return total, b.op("relu", b.input(0, 4, dtype="bf16"))

    def alone(b):
        return b.reduce("sum", b.input(12_000, 4, dtype="bf16"))

    assert generated(build)[0].slots - generated(alone)[0].slots <= 1  # an access of no bytes is still an operand


def test_rows_of_rows_multiply(generated):
    def build(b):
        x = b.op("exp", b.input(3000, 3, 5, dtype="bf16"))
        return b.reduce("sum", b.reduce("sum", x, [-1], keepdim=False), [-1])

    (kernel,) = generated(build)
    assert kernel.elements == 3000
    assert kernel.special == 3 * 5


@pytest.mark.parametrize(("columns", "measured"), [(1, 1.8e-6), (2, 1.6e-6), (4, 1.6e-6)])
def test_a_softmax_of_tiny_rows_takes_what_it_takes(columns, measured):
    graph = fusesim.patterns.softmax(4096, columns)
    found = fusesim.compare(graph, device="h200-sxm", launch="graph", graph_repeats=100)
    assert found.fused.time == pytest.approx(measured, rel=0.25)  # as held rows 29.9, 16.8 and 7.4 us


@pytest.mark.parametrize(
    ("build", "times"),
    [
        (centred(4000, 4096), 2),  # the mean, then x again
        (softened(4000, 4096), 2),  # maximum and sum of powers share a pass
        (lambda b: b.reduce("sum", b.op("exp", b.input(4000, 4096, dtype="bf16")), [-1]), 1),
    ],
)
def test_long_rows_are_looped_over_once_per_pass(generated, build, times):
    (looped,) = generated(build)
    size = 4000 * 4096 * 2
    assert looped.row == "gen_rows_16"
    assert looped.joins == times
    assert looped.bytes_read == times * size
    assert looped.again == (times - 1) * size
    assert looped.steps == times * 2  # 2048 values a step
    assert (looped.blocks, looped.threads) == (4000, 512)


def test_two_rows_share_a_block_up_to_2048_values(generated):
    assert generated(centred(4000, 2048))[0].blocks == 2000
    assert generated(centred(4000, 2049))[0].blocks == 4000
    assert generated(centred(4000, 2049))[0].row == "gen_rows_odd_16"


def test_a_partly_empty_step_takes_as_long(generated):
    (looped,) = generated(centred(4000, 2560))
    assert looped.elements == 2 * 4000 * 4096  # two passes of two steps of 2048


@pytest.mark.parametrize(
    ("rows", "columns", "parts"),
    [
        (200, 16_384, 2),  # 8192 a part: 400 blocks
        (4, 32_768, 4),
    ],
)
def test_few_long_rows_are_reduced_in_two_stages(generated, rows, columns, parts):
    first, last = generated(summed(rows, columns))
    assert (first.row, last.row) == ("gen_parts16", "gen_last")
    assert first.blocks == rows * parts
    assert first.bytes_read == rows * columns * 2
    assert first.bytes_written == last.bytes_read == 4 * rows * parts  # fp32
    assert last.bytes_written == rows * 2
    assert last.elements == rows * parts


def test_rows_that_fill_the_device_are_not_split(generated):
    (looped,) = generated(summed(264, 16_384))  # twice 132 SMs
    assert looped.row == "gen_rows_16"


@pytest.mark.parametrize(
    ("rows", "columns", "kernels"),
    [
        (256, 4096, 1),  # no more than 256 values meet
        (4096, 8192, 1),  # results enough
        (4096, 1024, 2),
    ],
)
def test_columns_are_split_where_results_are_few(generated, rows, columns, kernels):
    made = generated(summed(rows, columns, dims=(0,)))
    assert len(made) == kernels
    assert made[0].row == "gen_columns16"
    assert made[0].bytes_read == rows * columns * 2
    if kernels == 2:
        assert made[1].bytes_read == 4 * 1024 * 32  # 32 parts of 128 values


def test_two_reductions_of_the_same_rows_are_one_kernel(generated):
    def build(b):
        x = b.input(4000, 4096, dtype="bf16")
        return b.reduce("amax", x, [-1]), b.reduce("amin", x, [-1])

    (looped,) = generated(build)
    assert looped.joins == 1
    assert looped.bytes_read == 4000 * 4096 * 2
    assert looped.bytes_written == 2 * 4000 * 2


def test_a_concatenation_of_eight_is_one_kernel_of_nine_is_nine(generated):
    def build(count):
        return lambda b: b.concat([b.input(64, 128, dtype="bf16") for _ in range(count)], -1)

    assert len(generated(build(8))) == 1
    made = generated(build(9))
    assert len(made) == 9
    assert all(one.bytes_read == one.bytes_written == 64 * 128 * 2 for one in made)


def sliced(target, build):
    """Return the kernels of a plan in which each op has one of its own."""
    b = Builder("slices")
    b.output(build(b))
    graph = b.graph()
    groups = tuple(Group(nodes=(node.name,)) for node in graph.paid_nodes)
    return [launch for _, launch in lower(FusionPlan(graph=graph, groups=groups, strategy="test"), "inductor", target)]


@pytest.mark.parametrize("count", [9, 20])
def test_what_is_computed_is_written_into_its_slice(target, count):
    def build(b):
        return b.concat([b.op("relu", b.input(4, 1024, dtype="bf16")) for _ in range(count)], 0)

    made = sliced(target, build)
    assert len(made) == count  # as an H200 runs
    assert {access.storage for launch in made for access in launch.writes} == {"concat"}
    assert sum(launch.bytes_written for launch in made) == count * 4 * 1024 * 2


def test_what_is_not_generated_is_copied_into_its_slice(target):
    def build(b):
        given, weight = b.input(64, 64, dtype="bf16"), b.input(64, 64, dtype="bf16")
        twice = b.op("relu", given)
        return b.concat([given, b.matmul(given, weight), twice, *(b.op("neg", given) for _ in range(6)), twice], 0)

    copies = [launch for launch in sliced(target, build) if launch.name == "concat part"]
    # the input, the product, and the relu where it is named again
    assert [access.storage for launch in copies for access in launch.reads] == ["x", "matmul", "relu"]


def test_what_others_read_is_written_for_them_too(target):
    def build(b):
        x = b.input(64, 64, dtype="bf16")
        shared = b.op("relu", x)
        first = b.concat([shared, *(b.op("neg", x) for _ in range(8))], 1)
        return b.op("add", first, b.concat([shared] * 9, 1))

    def written(launch):
        return [access.storage for access in launch.writes]

    relu, *negs = (launch for launch in sliced(target, build) if launch.name in {"relu", "neg"})
    assert written(relu) == ["relu", "concat"]
    assert [written(neg) for neg in negs] == [["concat"]] * 8
    # a tensor lies in one place: the second concatenation copies it
    assert sum(launch.name == "concat part" for launch in sliced(target, build)) == 9


def test_a_concatenation_priced_alone_knows_of_no_kernel_before_it(target):
    b = Builder("alone")
    b.output(b.concat([b.op("relu", b.input(4, 1024, dtype="bf16")) for _ in range(9)], 0))
    graph = b.graph()
    none = FusionPlan(graph=graph, groups=(), strategy="one group")
    # planners price it so: were it free, nothing would ever be merged with it
    assert len(group_launches(none, Group(nodes=("concat",)), "inductor", target)) == 9


def test_a_gather_reads_only_what_it_names(generated):
    def rows(b):
        table, index = b.input(32_000, 4096, dtype="bf16"), b.input(64, dtype="int64")
        return b.op("exp", b.embedding(table, index))

    (loop,) = generated(rows)
    assert loop.bytes_read == 64 * 4096 * 2 + 64 * 8
    assert loop.bytes_written == 64 * 4096 * 2


def test_an_element_costs_a_sector_and_no_more_is_computed_than_is_named(generated):
    def elements(b):
        x, index = b.input(4096, 32_000, dtype="bf16"), b.input(4096, 1, dtype="int64")
        return b.gather("gather", b.op("exp", x), [index], (4096, 1), dim=1)

    (loop,) = generated(elements)
    # one value of 32 000 in each row, a sector of 32 B each; and the index
    assert loop.bytes_read == pytest.approx(4096 * SECTOR + 4096 * 8)
    b = Builder("named")
    b.output(elements(b))
    graph = b.graph()
    shares = needed_shares(graph, graph.paid_nodes, set(graph.outputs))
    assert shares[graph.paid_nodes[0].name] == pytest.approx(1 / 32_000)


def test_groups_without_an_index_compute_everything():
    b = Builder("plain")
    b.output(b.op("exp", b.input(10)))
    graph = b.graph()
    assert needed_shares(graph, graph.paid_nodes, set(graph.outputs)) == {}


def test_the_first_random_numbers_have_a_kernel_of_seeds(generated):
    def build(b):
        x = b.input(1000, 1024, dtype="bf16")
        noise = b.tensor((1000, 1024), "fp32", stem="noise")
        b.node("rand", [], [noise])
        return b.op("mul", x, noise)

    seeds, loop = generated(build)
    assert seeds.name == "seeds"
    assert seeds.bytes_written == 8
    assert loop.row == "gen_loop32"


def test_a_product_keeps_its_library_and_takes_an_epilogue_in(generated):
    def build(b):
        return b.op("relu", b.matmul(b.input(1024, 512, dtype="bf16"), b.input(512, 256, dtype="bf16")))

    made = generated(build)
    assert made[-1].row == "matmul16"
    assert made[-1].bytes_read == 2 * (1024 * 512 + 512 * 256)
    assert made[-1].bytes_written == 2 * 1024 * 256  # the result of relu alone
    assert len(made[-1].nodes) == 2


def test_an_empty_group_launches_nothing(generated):
    assert generated(chain("neg", shape=(0, 4))) == []


def arithmetic_of(build, elements, rows=0):
    b = Builder("counted")
    b.output(build(b))
    graph = b.graph()
    return arithmetic(graph, graph.paid_nodes, elements, rows=rows)


def test_arithmetic_counts_what_broadcasts_again():
    def build(b):
        return b.op("mul", b.input(1000, 64), b.op("exp", b.input(1000, 1)))

    whole = arithmetic_of(build, 64_000)
    per_row = arithmetic_of(build, 64_000, rows=1000)
    # a loop computes the power at each of 64 values of a row, a kernel over rows once per row
    assert whole.slots == pytest.approx(SLOTS["exp"] + 1)
    assert per_row.slots == pytest.approx(SLOTS["exp"] / 64 + 1)
    assert whole.flops == per_row.flops == 1000 + 64_000


def levels_of(build):
    b = Builder("passes")
    made = build(b)
    b.output(*(made if isinstance(made, tuple) else (made,)))
    graph = b.graph()
    return graph, pass_levels(graph, graph.paid_nodes)


def test_ops_wait_for_the_reductions_that_they_need():
    graph, levels = levels_of(centred(100, 4096))
    assert [levels[node.name] for node in graph.paid_nodes] == [0, 1]  # mean, subtraction
    graph, levels = levels_of(softened(100, 4096))
    # amax 0; subtraction and exp 1; sum 0 with the maximum; division 1
    assert [levels[node.name] for node in graph.paid_nodes] == [0, 1, 1, 0, 1]


@pytest.mark.parametrize("kind", ["div", "sub"])
def test_a_sum_of_what_is_no_power_waits_for_its_maximum(kind):
    # only a sum of powers can be corrected while the maximum grows: Inductor's online softmax
    def build(b):
        x = b.input(100, 4096)
        return b.reduce("sum", b.op(kind, x, b.reduce("amax", x, [-1], keepdim=True)), [-1])

    graph, levels = levels_of(build)
    assert [levels[node.name] for node in graph.paid_nodes] == [0, 1, 1]


def test_a_power_before_the_maximum_is_none_of_it():
    def build(b):
        x = b.op("exp", b.input(100, 4096))
        return b.reduce("sum", b.op("sub", x, b.reduce("amax", x, [-1], keepdim=True)), [-1])

    graph, levels = levels_of(build)
    assert [levels[node.name] for node in graph.paid_nodes] == [0, 0, 1, 1]


def test_a_variance_after_a_mean_takes_a_second_pass():
    def build(b):
        x = b.input(100, 4096)
        around = b.op("sub", x, b.reduce("mean", x, [-1], keepdim=True))
        return b.reduce("mean", b.op("mul", around, around), [-1])

    graph, levels = levels_of(build)
    assert [levels[node.name] for node in graph.paid_nodes] == [0, 1, 1, 1]
    every = passes(graph, graph.paid_nodes, levels, set(graph.outputs), 100 * 4096)
    assert [sorted(node.kind for node in ops) for ops in every] == [["mean"], ["mean", "mul", "sub"]]


def graph_of(build):
    b = Builder("passes")
    made = build(b)
    b.output(*(made if isinstance(made, tuple) else (made,)))
    return b.graph()


def test_running_reductions_take_more_than_plain_ones():
    def running(build, steps):
        graph = graph_of(build)
        return running_slots(graph, graph.paid_nodes, steps)

    def variance(b):
        return b.reduce("var", b.input(100, 4096), [-1])

    assert running(summed(100, 4096), 2.5) == 0
    assert running(softened(100, 4096), 2.5) == ONLINE_SLOTS  # the sum is corrected where the maximum grows
    # written out, its divisors are constants; in whole steps one for all; in a long loop it divides each time
    assert [running(variance, steps) for steps in (2.0, 2.5, 9.5)] == [0, RUNNING, DIVIDING]


def test_a_block_joins_what_its_threads_have():
    def joined(build, steps=2.5):
        graph = graph_of(build)
        return joining_slots(graph, graph.paid_nodes, steps)

    def twice(b):
        x = b.input(100, 4096)
        return b.reduce("var", x, [-1]), b.reduce("var", x, [-1], keepdim=True), b.reduce("sum", x, [-1])

    assert joined(summed(100, 4096)) == JOINED
    assert joined(twice) == JOINED_VARIANCE + JOINED  # the same variance is found once
    assert joined(twice, 2.0) == JOINED_EVEN + JOINED


def test_a_loop_of_many_operands_has_half_of_the_threads(generated):
    def build(count):
        def made(b):
            inputs = [b.input(4000, 4096, dtype="bf16") for _ in range(count)]
            total = inputs[0]
            for other in inputs[1:]:
                total = b.op("add", total, other)
            return b.reduce("sum", total, [-1])

        return made

    few, many = (generated(build(count))[0] for count in (8, 9))  # one reduction besides
    assert (few.threads, few.resident) == (512, 4)
    assert (many.threads, many.resident) == (256, 8)
    assert many.steps == 4  # 1024 values a step


@pytest.mark.parametrize(
    ("rows", "columns", "parts"),
    [
        (1, 14_336, 2),  # 32 values to each of 256 threads
        (64, 50_304, 7),
        (1, 20_000 * 512, 500),  # 76 values would make 528 blocks; 80 divide the row
        (1, 16_384 * 4096, 512),  # 497, then 512
        (1, 2**30, 8192),  # 512 at most
        (128, 1_222_118, 9),  # but for a divisor within 50 of it: 551
    ],
)
def test_rows_are_cut_as_inductor_cuts_them(rows, columns, parts):
    assert part_count(rows, columns, 132) == parts


def test_a_maximum_beside_an_unrelated_sum_is_plain():
    def build(b):
        x = b.input(100, 4096)
        return b.reduce("amax", x, [-1]), b.reduce("sum", x, [-1])

    b = Builder("beside")
    b.output(*build(b))
    graph = b.graph()
    assert running_slots(graph, graph.paid_nodes, 2.5) == 0


def test_the_shape_of_a_reduction():
    b = Builder("shapes")
    x = b.input(4, 1, 6, 8)
    made = [b.reduce("sum", x, dims) for dims in ([-1], [0], [2, 3], [0, 1, 2, 3], [1])]
    b.output(*made)
    graph = b.graph()
    found = [row_shape(graph, graph.producers[tensor.name]) for tensor in made]
    assert found == [
        RowShape(24, 8, outer=False),
        RowShape(48, 4, outer=True),
        RowShape(4, 48, outer=False),
        RowShape(1, 192, outer=False),
        RowShape(192, 1, outer=False),  # a dimension of one value
    ]
    assert found[0].elements == 192


def test_a_small_window_is_pooled_in_a_loop_of_its_own(generated):
    def build(size):
        def made(b):
            x = b.input(8, 64, 56, 56, dtype="bf16")
            y = b.tensor((8, 64, 28, 28), "bf16", stem="pooled")
            b.node("pool", [x], [y], mode="max", kernel_size=(size, size), stride=(2, 2), padding=(1, 1))
            return y

        return made

    (loop,) = generated(build(3))
    assert loop.row == "gen_loop16"
    assert loop.slots == 9 * TAP + 2  # nine values to a result; one operand, one result
    assert loop.bytes_read == 8 * 64 * 56 * 56 * 2  # each value once from memory
    assert generated(build(7))[0].row == "pool16"  # 49 values: the library's


def test_the_root_of_a_variance_does_not_branch():
    def root(positive):
        def build(b):
            x = b.input(1000)
            y = b.tensor((1000,), "fp32", stem="root")
            b.node("sqrt", [x], [y], positive=positive)
            return y

        return build

    assert arithmetic_of(root(True), 1000).slots == POSITIVE_ROOT
    assert arithmetic_of(root(None), 1000).slots == SLOTS["sqrt"]


@pytest.mark.parametrize(
    ("by_value", "row"),
    [
        (True, "gen_rows_short"),  # a bias by distance: an index names each value of a row
        (False, "gen_held"),  # a token's embedding: it names the whole row
    ],
)
def test_rows_that_an_index_scatters_are_looped_over(generated, by_value, row):
    def build(b):
        if by_value:
            table, index = b.input(32, 1, dtype="bf16"), b.input(512, 512, dtype="int64")
            bias = b.view(b.embedding(table, index), (512, 512))
            x = b.op("add", b.input(512, 512, dtype="bf16"), bias)
        else:
            x = b.embedding(b.input(50, 512, dtype="bf16"), b.input(512, dtype="int64"))
        return b.op("sub", x, b.reduce("mean", x, [-1], keepdim=True))

    (made,) = generated(build)
    assert made.row.startswith(row)
