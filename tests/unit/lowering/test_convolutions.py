"""cuDNN's kernels for a convolution, and what turns and widens its operands, as the profiler saw them on an H200.

Kernels, blocks and tiles are those of h200_products.json, h200_library.json and of the models' traces.
"""

import math

import pytest

from fusesim.tensor import channels_last


def image(b, *shape, dtype="bf16", last=True):
    return b.input(*shape, dtype=dtype, strides=channels_last(shape) if last else None)


def conv(shape, weight, *, last=True, dtype="bf16", bias=False, **settings):
    def build(b):
        x, w = (image(b, *size, dtype=dtype, last=last) for size in (shape, weight))
        return b.conv(x, w, *([b.input(weight[0], dtype=dtype)] if bias else []), **settings)

    return build


PADDED = {"padding": (1, 1)}


@pytest.mark.parametrize(
    ("build", "rows"),
    [
        (conv((32, 128, 28, 28), (128, 128, 3, 3), **PADDED), ["conv16"]),
        (  # in row-major order cuDNN turns input and weight, and the output back
            conv((32, 128, 28, 28), (128, 128, 3, 3), last=False, **PADDED),
            ["layout", "layout", "conv16", "layout"],
        ),
        (
            conv((32, 128, 28, 28), (128, 128, 3, 3), last=False, dtype="fp32", **PADDED),
            ["layout", "layout", "conv32", "layout"],
        ),
        (conv((32, 64, 56, 56), (64, 64, 1, 1)), ["matmul16"]),  # channels last: a plain product
        (conv((32, 64, 56, 56), (64, 64, 1, 1), last=False), ["pointwise16"]),
        (  # three channels are no multiple of 16 bytes: memory is cleared, then filled
            conv((32, 3, 224, 224), (64, 3, 7, 7), stride=(2, 2), padding=(3, 3)),
            ["memset", "transposed_16", "memset", "transposed_16", "conv_odd16"],
        ),
        (conv((16, 3, 112, 112), (32, 3, 3, 3), **PADDED), ["direct16"]),  # small: no matrix units
        (conv((16, 3, 112, 112), (32, 3, 3, 3), last=False, dtype="fp32", **PADDED), ["direct32"]),
        (  # four channels out fill no 16 bytes either: weights are widened, results narrowed
            conv((4, 128, 64, 64), (4, 128, 3, 3), **PADDED),
            ["memset", "transposed_16", "conv16", "transposed_16"],
        ),
        (  # a window of one place lies in memory in either order
            conv((32, 512, 14, 14), (1024, 512, 1, 1), last=False, stride=(2, 2)),
            ["layout", "conv16", "layout"],
        ),
        (conv((32, 144, 56, 56), (144, 1, 3, 3), groups=144, **PADDED), ["depthwise_last"]),
        (conv((32, 144, 56, 56), (144, 1, 3, 3), groups=144, last=False, **PADDED), ["depthwise_first"]),
        (conv((32, 128, 28, 28), (128, 128, 3, 3), bias=True, **PADDED), ["conv16", "strided2_16"]),
    ],
)
def test_convolutions(launched, build, rows):
    assert [one.row for one in launched(build)] == rows


def test_a_convolutions_bias_reads_and_writes_all_of_its_result(launched):
    *_, bias = launched(conv((32, 128, 28, 28), (128, 128, 3, 3), bias=True, **PADDED))
    size = 32 * 128 * 28 * 28 * 2
    assert bias.bytes_read == size + 128 * 2
    assert bias.bytes_written == size


def main(launches):
    (product,) = [one for one in launches if one.product is not None]
    return product


@pytest.mark.parametrize(
    ("shape", "blocks"),
    [
        ((16, 3, 224, 224), 16 * 1 * 1568),  # three of a tile's 32 channels, 224 x 224 places in tiles of 32
        ((32, 256, 14, 14), 32 * 8 * 7),
    ],
)
def test_a_turned_tensor_is_cut_into_squares(launched, shape, blocks):
    made = launched(conv(shape, (768, shape[1], 7, 7), last=False, padding=(3, 3)))
    first = next(one for one in made if one.row == "layout")
    assert (first.blocks, first.threads) == (blocks, 256)


def test_few_channels_fill_a_step_at_each_place_of_the_window(launched):
    made = launched(conv((8, 3, 224, 224), (768, 3, 16, 16), stride=(16, 16)))
    product = main(made)
    assert product.product.k == 16 * 16 * 32  # not 3
    assert product.arithmetic == 2 * 8 * 14 * 14 * 768 * 16 * 16 * 3  # what was asked for
    cleared = [one.bytes_written for one in made if one.row == "memset"]
    assert cleared == [8 * 224 * 224 * 8 * 2, 768 * 16 * 16 * 8 * 2]  # eight channels of two bytes


@pytest.mark.parametrize(
    ("shape", "weight", "at_once"),
    [
        ((32, 128, 28, 28), (128, 128, 3, 3), 120),  # clusters
        ((16, 256, 28, 28), (256, 256, 3, 3), 132),
    ],
)
def test_tiles_run_in_rounds_of_the_blocks_that_the_profiler_saw(launched, shape, weight, at_once):
    product = main(launched(conv(shape, weight, **PADDED)))
    tiling = product.tiling
    assert tiling.at_once == at_once
    assert tiling.tiles == math.ceil(product.product.m / tiling.high) * math.ceil(product.product.n / tiling.wide)


def test_a_weight_with_channels_last_turns_the_input(launched):
    def build(b):
        x, w = b.input(4, 128, 64, 64, dtype="bf16"), image(b, 128, 128, 3, 3)
        return b.conv(x, w, b.input(128, dtype="bf16"), **PADDED)

    turned, product, bias = launched(build)
    assert turned.row == "transposed_16"
    assert turned.crossing > 0
    assert product.row == "conv16"
    assert bias.row == "strided2_16"  # its result has channels last, so that the bias goes along it


@pytest.mark.parametrize(
    ("side", "rows"),
    [
        (28, ["pointwise16"]),
        (14, ["pointwise_odd16"]),
        (13, ["pointwise_single16"]),
        (7, ["layout", "conv16", "layout"]),
    ],
)
def test_windows_of_one_place_over_images_that_fill_no_16_bytes(launched, side, rows):
    made = launched(conv((32, 512, side, side), (256, 512, 1, 1), last=False))
    assert [one.row for one in made] == rows
    if side != 7:
        assert main(made).product.batch == 32  # a product of each image
