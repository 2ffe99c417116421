"""PyTorch's kernels of training steps over pictures: classes, blocks and threads as profiled on an H200, bytes by hand.

Blocks and threads are those of h200_training.json and h200_training_held.json: PyTorch 2.11 on an H200.
"""

import pytest

from fusesim.tensor import channels_last, row_major


def picture(b, *shape, dtype="bf16", last=True):
    return b.input(*shape, dtype=dtype, strides=channels_last(shape) if last else None)


def normed(*shape, dtype="bf16", last=True):
    def build(b):
        x = picture(b, *shape, dtype=dtype, last=last)
        result = b.tensor(shape, dtype, stem="y", strides=x.strides)
        b.node("batch_norm_train", [x, *(b.input(shape[1], dtype=dtype) for _ in range(4))], [result])

    return build


def gradients(*shape, dtype="bf16", last=True, weights_only=False):
    def build(b):
        gradient, x = (picture(b, *shape, dtype=dtype, last=last) for _ in range(2))
        statistics = [b.input(shape[1], dtype="fp32") for _ in range(2)]
        made = [b.tensor((shape[1],), dtype, stem="w") for _ in range(2)]
        if not weights_only:
            made.insert(0, b.tensor(shape, dtype, stem="g", strides=x.strides))
        b.node("batch_norm_backward", [gradient, x, *statistics, b.input(shape[1], dtype=dtype)], made)

    return build


def pooled(*shape, side=2, dtype="bf16", last=True, ordered=True):
    n, c, high, wide = shape
    small = n, c, high // 2, wide // 2

    def build(b):
        order = channels_last if last else row_major
        gradient = b.input(*small, dtype=dtype, strides=order(small) if ordered else None)
        places = b.input(*small, dtype="int64", strides=order(small))
        result = b.tensor(shape, dtype, stem="g", strides=order(shape))
        b.node("pool_backward", [gradient, places], [result], kernel_size=(side, side))

    return build


def cut(launches):
    return [(one.row, one.blocks, one.threads) for one in launches]


def test_statistics_of_a_batch_are_added_up_before_they_normalise(launched):
    fill, sums, kept, transform = launched(normed(32, 128, 28, 28))
    assert cut([sums, transform]) == [("batch_norm_sums_last16", 392, 512), ("batch_norm_last16", 392, 512)]
    x = 32 * 128 * 28 * 28 * 2
    assert fill.bytes_written == 4 * 4  # a counter for every 32 channels, 4 B each
    assert (sums.bytes_read, sums.bytes_written) == (x, 128 * 8)  # a mean and a deviation in fp32
    assert kept.bytes_read == 128 * (8 + 2 * 2)
    assert (transform.bytes_read, transform.bytes_written) == (x + 128 * (8 + 2 * 2), x)


@pytest.mark.parametrize("shape", [(2, 16, 16, 16), (4, 512, 7, 7), (1, 64, 24, 24)])
def test_few_places_are_not_shared_between_blocks(launched, shape):
    # fewer than 8 blocks on the same channels: one has them all, and there is no counter to clear
    sums, _, _ = launched(normed(*shape))
    assert sums.row == "batch_norm_sums_last16"
    assert sums.serial == 0.0
    assert sums.blocks == {16: 1, 512: 8, 64: 2}[shape[1]]


def test_blocks_that_share_channels_meet(launched, target):
    _, sums, _, _ = launched(normed(200, 64, 56, 56))
    assert sums.blocks == 256  # 2 of channels times the 128 that share their places, in rows of 16
    assert sums.serial == pytest.approx((128 / 16 + 8) * target.machine.cache_latency * target.machine.clock)


def test_channels_first_are_a_block_each(launched):
    sums, _, transform = launched(normed(32, 128, 28, 28, last=False))
    assert cut([sums, transform]) == [("batch_norm_sums_first16", 128, 512), ("batch_norm_first16", 4096, 256)]
    assert sums.steps == 2 * 32  # 784 places in 512 threads, image by image


@pytest.mark.parametrize(("shape", "row"), [((48, 512, 14, 14), "once32"), ((96, 192, 28, 28), "twice32")])
def test_single_precision_reads_a_channel_once_if_it_fits(launched, shape, row):
    size = shape[0] * shape[1] * shape[2] * shape[3] * 4
    for build, large in ((normed, 1), (gradients, 2)):
        (launch,) = launched(build(*shape, dtype="fp32", last=False))
        assert cut([launch]) == [(f"batch_norm_{row}", shape[1], 512)]
        assert launch.again == (0.0 if row == "once32" else large * size)


def test_two_operands_fill_shared_memory_before_one_does(launched):
    shape = 32, 128, 28, 28  # 100,352 B of a channel's x, and as many of its gradient
    rows = [launched(build(*shape, dtype="fp32", last=False))[0].row for build in (normed, gradients)]
    assert rows == ["batch_norm_once32", "batch_norm_twice32"]


def test_rows_of_features_are_no_pictures(launched):
    def build(b):
        x = b.input(4096, 512, dtype="fp32")
        result = b.tensor(x.shape, "fp32", stem="y")
        b.node("batch_norm_train", [x, *(b.input(512, dtype="fp32") for _ in range(4))], [result])

    rows = [one.row for one in launched(build)]  # cuDNN does not take them
    assert rows == ["vectorised32", "batch_norm_sums_last32", "converted", "batch_norm_last32"]


def test_gradients_are_added_up_and_then_turned(launched):
    fill, sums, turned = launched(gradients(96, 192, 28, 28))
    assert cut([fill, sums, turned]) == [
        ("vectorised32", 1, 128),
        ("batch_norm_back_sums_last16", 768, 512),
        ("batch_norm_back_last16", 768, 512),
    ]
    x = 96 * 192 * 28 * 28 * 2
    assert sums.bytes_read == 2 * x + 192 * (2 * 4 + 2)  # gradient, x; two statistics in fp32, the weight
    assert sums.bytes_written == 192 * (2 * 4 + 2 * 2)  # two sums in fp32, two gradients of weights
    assert (turned.bytes_read, turned.bytes_written) == (2 * x + 192 * (4 * 4 + 2), x)


def test_gradients_of_weights_alone_leave_the_picture_out(launched):
    rows = [one.row for one in launched(gradients(96, 192, 28, 28, weights_only=True))]
    assert rows == ["vectorised32", "batch_norm_back_sums_last16"]


def test_gradients_of_channels_first_go_over_a_channel_twice(launched):
    (launch,) = launched(gradients(48, 48, 80, 80, last=False))
    assert cut([launch]) == [("batch_norm_back_first16", 48, 512)]
    assert launch.again == 2 * 48 * 48 * 80 * 80 * 2
    assert launch.steps == 2 * 48 * 13  # 6400 places in 512 threads, image by image, twice


@pytest.mark.parametrize(
    ("shape", "last", "row", "blocks", "threads"),
    [
        ((64, 96, 48, 48), True, "pool_back_last16", 1536, 1024),
        ((160, 256, 20, 20), True, "pool_back_last16", 1600, 1024),
        ((4, 16, 24, 24), True, "pool_back_last16", 12, 1024),
        ((32, 512, 14, 14), False, "pool_back16", 16384, 256),
        ((48, 80, 96, 96), False, "pool_back16", 138240, 256),
    ],
)
def test_gradients_of_pooling_clear_memory_first(launched, shape, last, row, blocks, threads):
    fill, asked = launched(pooled(*shape, last=last))
    values = shape[0] * shape[1] * shape[2] * shape[3]
    assert fill.row == "vectorised16"
    assert fill.bytes_written == 2 * values
    assert cut([asked]) == [(row, blocks, threads)]
    small = values / 4 * (2 + 8)  # a gradient and a place of 8 B for each window
    assert asked.bytes_read - asked.again == small
    assert asked.again == 3 * small  # each of a window's four places asks


def test_overlapping_windows_are_asked_more_often(launched):
    (_, asked), (_, more) = (launched(pooled(16, 64, 112, 112, side=side)) for side in (2, 3))
    assert more.elements / asked.elements == 9 / 4


def test_a_gradient_in_another_order_is_copied_first(launched):
    made = launched(pooled(64, 96, 48, 48, ordered=False))
    assert [one.name for one in made] == ["pool_backward copy", "fill", "pool_backward"]
    assert made[0].writes[0] in made[2].reads


def test_gradients_of_means_have_no_places(launched):
    def build(b):
        gradient = picture(b, 8, 64, 14, 14)
        b.node("pool_backward", [gradient], [b.tensor((8, 64, 28, 28), "bf16", stem="g")])

    (launch,) = launched(build)
    assert launch.row == "strided2_16"
