"""PyTorch's kernels that move values about: gathers, concatenations, pictures, gradients; sums by columns.

Blocks and threads are those of h200_layouts.json, h200_library.json and h200_columns.json.
"""

import math

import pytest

from fusesim.tensor import channels_last


def image(b, *shape, dtype="bf16", last=True):
    return b.input(*shape, dtype=dtype, strides=channels_last(shape) if last else None)


def gathered(rows, columns, count, dim, *, expanded=False):
    def build(b):
        x = b.input(rows, columns, dtype="bf16")
        shape = (count, columns) if dim == 0 else (rows, count)
        index = b.expand(b.input(count, 1, dtype="int64"), shape) if expanded else b.input(*shape, dtype="int64")
        return b.gather("gather", x, [index], shape, dim=dim)

    return build


@pytest.mark.parametrize(
    ("columns", "count", "blocks", "threads"), [(512, 300, 300, 64), (4096, 1000, 2000, 256), (64, 5000, 5000, 32)]
)
def test_an_index_that_is_the_same_along_a_row_copies_rows(launched, columns, count, blocks, threads):
    (launch,) = launched(gathered(20_000, columns, count, 0, expanded=True))
    assert (launch.row, launch.blocks, launch.threads) == ("gather_rows", blocks, threads)
    assert launch.bytes_read == count * columns * 2 + count * 8


def test_elements_of_other_rows_are_sectors_of_their_own(launched):
    (across,) = launched(gathered(8000, 4096, 1000, 0))
    (along,) = launched(gathered(8000, 4096, 512, 1))
    values = 1000 * 4096
    touched = 8000 * 4096 * 2 * -math.expm1(-values * 64 / (8000 * 4096 * 2))  # pieces of 64 B, at random
    assert across.again == pytest.approx(values * 64 - touched)
    assert along.again == along.crossing == 0.0


@pytest.mark.parametrize(
    ("last", "row"), [((True, True), "concat_last"), ((True, False), "concat_strided"), ((False, False), "concat_rows")]
)
def test_concatenations_of_pictures(launched, last, row):
    def build(b):
        return b.concat([image(b, 4, 64, 32, 32, last=each) for each in last], 1)

    (launch,) = launched(build)
    assert launch.row == row
    assert launch.elements == (2 * 4 * 64 * 32 * 32 if row != "concat_rows" else 2 * 4 * 64 * 32 * 32 / 8)


def larger(mode, last, channels=256):
    def build(b):
        x = image(b, 4, channels, 32, 32, last=last)
        made = b.tensor((4, channels, 64, 64), "bf16", stem="y", strides=channels_last((4, channels, 64, 64)))
        return b.node("upsample", [x], [made], mode=mode)

    return build


@pytest.mark.parametrize(
    ("mode", "last", "row", "blocks"),
    [
        ("nearest", True, "upsample_last16", 4096),
        ("nearest", False, "upsample16", 2048),
        ("linear", True, "bilinear_last16", 4096),
        ("linear", False, "bilinear16", 4),  # a thread goes through all channels of all images
    ],
)
def test_pictures_of_another_size(launched, mode, last, row, blocks):
    (launch,) = launched(larger(mode, last))
    assert (launch.row, launch.blocks) == (row, blocks)
    assert launch.steps == (4 * 256 if row == "bilinear16" else 1)


def test_the_gradients_of_attention_are_four_kernels(launched):
    def build(b):
        q, k, v, gradient = (b.input(4, 16, 512, 64, dtype="bf16") for _ in range(4))
        out = b.attention(q, k, v)
        made = [b.tensor(q.shape, "bf16", stem="g") for _ in range(3)]
        return b.node("attention_backward", [q, k, v, gradient, out], made)

    memset, rows, main, rounded = launched(build)
    values = 4 * 16 * 512 * 64
    assert [one.row for one in (memset, rows, main, rounded)] == ["memset", "narrowed", "attention_back16", "narrowed"]
    assert (rows.blocks, rounded.blocks) == (2048, 1024)
    assert rows.bytes_read == 2 * 2 * values
    assert rounded.bytes_read == 4 * values  # added up in fp32
    assert main.flops == 2.5 * 4 * 4 * 16 * 512 * 512 * 64


@pytest.mark.parametrize(("parts", "rows"), [(3, ["layer_norm16", "columns16"]), (2, ["columns16"])])
def test_the_gradients_of_a_norm_are_a_kernel_by_rows_and_one_by_columns(launched, parts, rows):
    def build(b):
        gradient, x = (b.input(2048, 1024, dtype="bf16") for _ in range(2))
        shapes = [(2048, 1024), (1024,), (1024,)][-parts:]
        made = [b.tensor(shape, "bf16", stem="g") for shape in shapes]
        return b.node("layer_norm_backward", [gradient, x], made)

    made = launched(build)
    assert [one.row for one in made] == rows
    assert (made[-1].blocks, made[-1].threads) == (32, 1024)


def test_parts_of_columns_are_read_one_after_the_other(launched, target):
    def summed(rows):
        return launched(lambda b: b.reduce("sum", b.input(rows, 512, dtype="bf16"), [0]))[-1]

    latency = target.machine.cache_latency * target.machine.clock
    assert summed(200).serial == 0.0  # one block has all rows
    tall = summed(20_000)
    assert tall.blocks == 1252  # 4 of columns times 313 of rows; four threads on top of each other read 79 parts each
    assert tall.serial == pytest.approx((79 + 8) * latency)


@pytest.mark.parametrize(
    ("shape", "last", "blocks", "threads"),
    [
        ((16, 32, 112, 112), True, 128, 512),  # few channels: few blocks
        ((32, 256, 56, 56), True, 1024, 512),
        ((64, 128, 14, 14), False, 8192, 64),
        ((128, 256, 28, 28), False, 32768, 256),
    ],
)
def test_batch_norms_launch_the_blocks_that_the_profiler_saw(launched, shape, last, blocks, threads):
    def build(b):
        return b.batch_norm(image(b, *shape, last=last), *(b.input(shape[1], dtype="bf16") for _ in range(4)))

    launch = launched(build)[-1]
    assert (launch.blocks, launch.threads) == (blocks, threads)


@pytest.mark.parametrize(
    ("shape", "last", "row", "blocks"),
    [
        ((32, 64, 112, 112), True, "pool_last16", 896),
        ((8, 480, 14, 14), True, "pool_last16", 16),
        ((32, 192, 28, 28), True, "pool_last16", 128),
        ((64, 64, 32, 32), False, "pool16", 4096),
    ],
)
def test_pooling_launches_the_blocks_that_the_profiler_saw(launched, shape, last, row, blocks):
    def build(b):
        n, c, h, w = shape
        size = (n, c, h // 2, w // 2)
        out = b.tensor(size, "bf16", stem="y", strides=channels_last(size) if last else None)
        return b.node("pool", [image(b, *shape, last=last)], [out], kernel_size=(3, 3), stride=(2, 2))

    (launch,) = launched(build)
    assert (launch.row, launch.blocks) == (row, blocks)
    assert launch.elements == math.prod(shape) / 4 * 9  # each result reads its window


@pytest.mark.parametrize(
    ("rows", "columns", "blocks", "steps"),
    [(64, 4096, 16, 16), (500, 6000, 63, 47), (16384, 4096, 512, 128), (10, 10000, 10, 10)],
)
def test_running_sums_share_512_threads_between_rows_and_values(launched, rows, columns, blocks, steps):
    def build(b):
        x = b.input(rows, columns, dtype="bf16")
        return b.node("cumsum", [x], [b.tensor(x.shape, "bf16", stem="y")], dims=(1,))

    (launch,) = launched(build)
    assert (launch.blocks, launch.threads, launch.steps, launch.joins) == (blocks, 512, steps, steps)


@pytest.mark.parametrize(
    ("rows", "threads", "steps"), [(64, 32, 2), (1000, 64, 16), (3000, 256, 12), (20000, 1024, 20)]
)
def test_a_loss_has_a_thread_for_sixteen_targets(launched, rows, threads, steps):
    def build(b):
        return b.nll_loss(b.input(rows, 1000, dtype="bf16"), b.input(rows, dtype="int64"))

    (launch,) = launched(build)
    assert (launch.threads, launch.steps) == (threads, steps)


def test_a_row_in_a_warps_registers_costs_what_the_next_power_of_two_does(launched):
    def build(columns):
        return launched(lambda b: b.softmax(b.input(1000, columns, dtype="bf16"), -1, log=False))[-1]

    odd, even = build(704), build(1024)
    assert odd.elements == even.elements == 1000 * 1024
    assert (odd.steps, even.steps) == (22, 32)
    assert odd.bytes_read == 1000 * 704 * 2
