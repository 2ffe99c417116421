"""PyTorch's kernels for one op: class, blocks and threads as the profiler saw them on an H200, bytes by hand.

The numbers of blocks and threads are those of h200_pointwise.json, h200_rows.json, h200_products.json and
h200_more.json: PyTorch 2.11 on an H200.
"""

import pytest

from fusesim.tensor import channels_last

ROWS = (48, 3000)  # 144 000 values: 282 blocks of 512, 563 of 256


def unary(name, *shape, dtype="bf16"):
    return lambda b: b.op(name, b.input(*shape, dtype=dtype))


def binary(name, first, second, kinds=("bf16", "bf16")):
    return lambda b: b.op(name, *(b.input(*s, dtype=d) for s, d in zip((first, second), kinds, strict=True)))


def reduced(name, *shape, dims=(-1,), dtype="bf16"):
    return lambda b: b.reduce(name, b.input(*shape, dtype=dtype), list(dims))


def softmax(*shape, dtype="bf16", log=False):
    return lambda b: b.softmax(b.input(*shape, dtype=dtype), -1, log=log)


def normed(kind, rows, columns, dtype="bf16"):
    operands = 2 if kind == "layer_norm" else 1

    def build(b):
        x, *rest = b.input(rows, columns, dtype=dtype), *(b.input(columns, dtype=dtype) for _ in range(operands))
        return getattr(b, kind)(x, *rest)

    return build


def image(b, *shape, dtype="bf16", last=True):
    return b.input(*shape, dtype=dtype, strides=channels_last(shape) if last else None)


@pytest.mark.parametrize(
    ("build", "row", "blocks"),
    [
        (unary("neg", 9000), "vectorised16", 9),  # 1024 values a block
        (unary("neg", 9000, dtype="fp32"), "vectorised32", 9),
        (binary("add", (9000,), (9000,)), "vectorised16", 9),
        (binary("gt", ROWS, ROWS), "vectorised16", 141),  # bool out, one type in
        (lambda b: b.op("add", b.input(9000, dtype="bf16"), scalar=1.25), "vectorised16", 9),
        (lambda b: b.cast(b.input(9000, dtype="bf16"), "fp32"), "converted", 18),  # 512 a block
        (lambda b: b.cast(b.input(9000, dtype="fp32"), "bf16"), "narrowed", 9),
        (lambda b: b.cast(b.input(9000, dtype="fp32"), "fp8"), "narrowed", 9),
        (binary("mul", (9000,), (9000,), ("bf16", "fp32")), "converted", 18),
        (binary("add", ROWS, (3000,)), "strided2_16", 282),  # 512 a block
        (binary("add", ROWS, (3000,), ("fp32", "fp32")), "strided2_32", 563),  # 256 a block
        (binary("add", ROWS, (48, 1)), "strided2_16", 282),
        (binary("add", (48, 1), (3000,)), "strided2_16", 282),
        (binary("mul", ROWS, (3000,), ("bf16", "fp32")), "strided_converted", 282),
        (binary("mul", (48, 23, 128), (48, 1, 128)), "strided3_16", 276),
        (lambda b: b.op("neg", b.slice(b.input(*ROWS, dtype="bf16"), 1, 1500, 3000)), "strided2_16", 141),
        (lambda b: b.copy(b.permute(b.input(*ROWS, dtype="bf16"), [1, 0])), "transposed_16", 282),
        (lambda b: b.copy(b.permute(b.input(*ROWS, dtype="fp32"), [1, 0])), "transposed_32", 563),
        (lambda b: b.copy(b.permute(b.input(4, 12, 23, 128, dtype="bf16"), [0, 2, 1, 3])), "strided4_16", 276),
    ],
)
def test_pointwise_ops_and_copies(launched, build, row, blocks):
    (launch,) = launched(build)
    assert (launch.row, launch.blocks, launch.threads) == (row, blocks, 128)


def test_a_number_over_a_tensor_is_two_kernels(launched):
    made = launched(lambda b: b.op("div", b.input(9000, dtype="bf16"), scalar=1.25, reverse=True))
    assert [launch.row for launch in made] == ["vectorised16", "vectorised16"]  # reciprocal, then times the number


def test_a_row_is_read_once(launched):
    (launch,) = launched(binary("add", ROWS, (3000,)))
    assert launch.bytes_read == 48 * 3000 * 2 + 3000 * 2
    assert launch.bytes_written == 48 * 3000 * 2
    assert launch.elements == 144_000


def test_a_tensor_that_is_both_operands_is_read_once(launched):
    def twice(b):
        x = b.input(9000, dtype="bf16")
        b.op("mul", x, x)

    (launch,) = launched(twice)
    assert launch.bytes_read == 18_000


def test_a_regular_copy_is_the_drivers(launched):
    (launch,) = launched(lambda b: b.copy(b.input(*ROWS, dtype="bf16")))
    assert launch.row == "memcpy"
    assert launch.bytes_read == launch.bytes_written == 288_000


def test_a_view_launches_nothing(launched):
    assert len(launched(lambda b: b.view(b.op("neg", b.input(6, dtype="fp32")), (2, 3)))) == 1  # the negation


def test_nothing_to_do_is_no_kernel(launched):
    assert launched(unary("neg", 0, 5)) == []


@pytest.mark.parametrize(
    ("build", "row", "blocks"),
    [
        (reduced("sum", 1, 14336), "sum_block16", 1),
        (reduced("mean", 4000, 8192), "sum_block16", 4000),
        (reduced("amax", 12000, 256), "max_warp16", 750),  # 16 rows a block
        (reduced("var", 4000, 8192), "var_block16", 4000),
        (reduced("var", 16384, 4096, dtype="fp32"), "var_warp32", 1024),
        (reduced("sum", 64, 64, 32, 32, dims=(2, 3)), "sum_warp16", 256),
    ],
)
def test_reductions_of_rows(launched, build, row, blocks):
    (launch,) = launched(build)
    assert (launch.row, launch.blocks, launch.threads) == (row, blocks, 512)


def test_few_long_rows_are_shared_by_blocks_behind_a_memset(launched):
    memset, launch = launched(reduced("sum", 3000 * 4096, dims=(0,)))
    assert memset.row == "memset"
    assert launch.row == "sum_split16"
    assert launch.blocks == 132 * 4  # as many as four to an SM


@pytest.mark.parametrize(
    ("shape", "dims", "blocks"),
    [
        ((8, 8, 4096), [1], 64),  # short columns: every thread of 128 has four results of its own
        ((16, 62, 300), [1], 10),
        ((8, 250, 2048), [1], 128),  # 32 threads side by side, four share a column
        ((1000, 300), [0], 3),
    ],
)
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_reductions_of_columns(launched, shape, dims, blocks, dtype):
    (launch,) = launched(reduced("sum", *shape, dims=dims, dtype=dtype))
    assert launch.row == ("columns16" if dtype == "bf16" else "columns32")
    assert (launch.blocks, launch.threads) == (blocks, 128)


@pytest.mark.parametrize(
    ("shape", "dims", "blocks"),
    [
        ((8, 2500, 512), [1], 1280),  # 32 blocks' results in 40 parts
        ((16, 1875, 100), [1], 390),
        ((30_000, 100), [0], 470),  # 16 threads side by side, eight share a column
    ],
)
def test_long_columns_are_shared_by_blocks_behind_a_memset(launched, shape, dims, blocks):
    memset, launch = launched(reduced("sum", *shape, dims=dims))
    assert memset.row == "memset"
    assert (launch.row, launch.blocks, launch.threads) == ("columns16", blocks, 128)


@pytest.mark.parametrize(
    ("shape", "dtype", "form", "blocks", "threads"),
    [
        ((3000, 100), "bf16", "warp16", 375, 128),  # eight rows a block up to 128 values
        ((3000, 129), "bf16", "warp16", 750, 128),  # then four
        ((2000, 2048), "fp32", "warp32", 500, 128),
        ((2000, 2049), "bf16", "registers16", 2000, 1024),
        ((100, 9216), "bf16", "registers16", 100, 1024),
        ((100, 9217), "bf16", "shared16", 100, 1024),
        ((100, 12_288), "fp32", "shared32", 100, 1024),  # 48 KiB
        ((100, 12_289), "fp32", "loop32", 100, 1024),
        ((64, 50_304), "bf16", "loop16", 64, 1024),
    ],
)
@pytest.mark.parametrize("log", [False, True])
def test_softmax_by_the_length_of_its_rows(launched, shape, dtype, form, blocks, threads, log):
    (launch,) = launched(softmax(*shape, dtype=dtype, log=log))
    assert launch.row == ("log_softmax_" if log else "softmax_") + form
    assert (launch.blocks, launch.threads) == (blocks, threads)


def test_a_softmax_of_very_long_rows_reads_them_three_times(launched):
    (launch,) = launched(softmax(64, 50_304))
    assert launch.again == 2 * 64 * 50_304 * 2
    assert launch.bytes_read == 3 * 64 * 50_304 * 2


@pytest.mark.parametrize(("kind", "operands"), [("layer_norm", 2), ("rms_norm", 1)])
def test_norms_of_rows_of_fours(launched, kind, operands):
    (launch,) = launched(normed(kind, 1000, 4096))
    assert (launch.row, launch.blocks, launch.threads) == (f"{kind}16", 1000, 128)
    # the rows twice, weight and bias once
    assert launch.bytes_read == 2 * 1000 * 4096 * 2 + operands * 4096 * 2


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
def test_norms_of_odd_rows_are_two_kernels(launched, kind):
    first, second = launched(normed(kind, 1000, 513))
    assert (first.row, first.blocks, first.threads) == ("moments16", 1000, 512)
    assert (second.row, second.blocks, second.threads) == ("normalised16", 1000, 256)
    assert first.bytes_written == 2 * 4 * 1000  # mean and deviation of each row, fp32


def test_what_reads_row_major_tensors_only_copies_others_first(launched):
    def turned(b):
        x = b.permute(b.input(4096, 1000, dtype="bf16"), [1, 0])
        return b.layer_norm(x, b.input(4096, dtype="bf16"), b.input(4096, dtype="bf16"))

    copied, norm = launched(turned)
    assert copied.row == "transposed_16"
    assert copied.bytes_read == copied.bytes_written == 1000 * 4096 * 2
    assert norm.row == "layer_norm16"

    def parts(b):
        return b.softmax(b.slice(b.input(1000, 512, dtype="bf16"), 1, 0, 256), -1)

    copied, _ = launched(parts)
    assert copied.row == "strided2_16"
    assert copied.bytes_read == 1000 * 256 * 2  # what the slice holds


def test_batch_norm_of_16_bits_is_three_kernels(launched):
    def build(b, dtype="bf16", statistics="bf16"):
        x = image(b, 32, 64, 56, 56, dtype=dtype)
        return b.batch_norm(x, *(b.input(64, dtype=statistics) for _ in range(4)))

    assert [one.row for one in launched(build)] == ["converted", "vectorised32", "batch_norm_last16"]
    mixed = launched(lambda b: build(b, statistics="fp32"))
    assert [one.row for one in mixed] == ["memcpy", "vectorised32", "batch_norm_last16"]
    single = launched(lambda b: build(b, "fp32", "fp32"))
    assert [one.row for one in single] == ["batch_norm_first32"]


def test_an_embedding_reads_only_the_rows_that_it_names(launched):
    (launch,) = launched(lambda b: b.embedding(b.input(32_000, 4096, dtype="bf16"), b.input(64, dtype="int64")))
    assert launch.row == "gather_rows"
    assert launch.bytes_read == 64 * 4096 * 2 + 64 * 8  # rows, and 8 B for each index
    assert launch.bytes_written == 64 * 4096 * 2


def test_rows_of_an_odd_width_are_gathered_by_element(launched):
    (launch,) = launched(lambda b: b.embedding(b.input(32_000, 101, dtype="bf16"), b.input(64, dtype="int64")))
    assert launch.row == "gather_elements"


def test_elements_are_gathered_where_an_index_says(launched):
    def build(b):
        x, index = b.input(2048, 4096, dtype="bf16"), b.input(2048, 1024, dtype="int64")
        return b.gather("gather", x, [index], (2048, 1024), dim=1)

    (launch,) = launched(build)
    assert (launch.row, launch.blocks) == ("gather_elements", 2048)  # 1024 a block


def test_a_bag_without_offsets_makes_them_first(launched):
    made = launched(lambda b: b.embedding_bag(b.input(32_000, 4096, dtype="bf16"), b.input(64, 1, dtype="int64")))
    assert [one.row for one in made] == ["vectorised32", "bag"]
    assert made[0].bytes_written == 64 * 8


@pytest.mark.parametrize(("dim", "row"), [(-1, "concat_rows"), (0, "concat")])
def test_concatenations(launched, dim, row):
    (launch,) = launched(lambda b: b.concat([b.input(*ROWS, dtype="bf16") for _ in range(2)], dim))
    assert launch.row == row
    assert launch.bytes_read == launch.bytes_written == 2 * 288_000


def test_many_tensors_are_concatenated_128_at_a_time(launched):
    made = launched(lambda b: b.concat([b.input(4, 8, dtype="bf16") for _ in range(129)], 0))
    assert len(made) == 2


def test_dropout_writes_its_mask(launched):
    (launch,) = launched(lambda b: b.dropout(b.input(9000, dtype="bf16"), 0.1))
    assert launch.row == "dropout16"
    assert launch.bytes_written == 9000 * 2 + 9000  # a byte for each value of the mask


def test_a_loss_is_one_block(launched):
    def build(b):
        return b.nll_loss(b.input(2048, 32_000, dtype="bf16"), b.input(2048, dtype="int64"))

    (launch,) = launched(build)
    assert (launch.row, launch.blocks) == ("nll_loss", 1)
    assert launch.bytes_read == 2048 * 32 + 2048 * 8  # a sector for each target, and its index


@pytest.mark.parametrize(
    ("size", "rows"),
    [
        ((1024, 4096, 4096), ["matmul16"]),
        ((2048, 2048, 5632), ["memset", "matmul16"]),  # more than two rounds of tiles: handed out through a counter
        ((100, 100, 100), ["matmul_odd16"]),  # 200 bytes a row are no multiple of 16
        ((1, 4096, 4096), ["matmul16", "parts"]),  # few tiles, long: split, then summed
    ],
)
def test_products(launched, size, rows):
    m, k, n = size
    made = launched(lambda b: b.matmul(b.input(m, k, dtype="bf16"), b.input(k, n, dtype="bf16")))
    assert [one.row for one in made] == rows
    main = next(one for one in made if one.row.startswith("matmul"))
    assert main.flops == 2 * m * k * n
    assert main.bytes_read == 2 * (m * k + k * n)


def test_one_matrix_for_a_whole_batch_is_one_tall_product(launched):
    made = launched(lambda b: b.matmul(b.input(8, 128, 512, dtype="bf16"), b.input(512, 512, dtype="bf16")))
    assert made[-1].product.m == 8 * 128
    assert made[-1].product.batch == 1


def heads(queries, keys, dtype="bf16", **settings):
    def build(b):
        q, k, v = (b.input(8, 16, length, 64, dtype=dtype) for length in (queries, keys, keys))
        return b.attention(q, k, v, **settings)

    return build


def test_attention_in_tiles_of_queries(launched):
    memset, launch = launched(heads(1024, 1024))
    assert memset.row == "memset"
    assert (launch.row, launch.threads) == ("attention16", 384)
    assert launch.blocks == 8 * 16 * 1024 / 128
    assert launch.flops == 2 * 8 * 16 * 1024 * 1024 * 128
    assert launch.bytes_read == 3 * 8 * 16 * 1024 * 64 * 2  # no scores


def test_causal_attention_does_half(launched):
    assert launched(heads(1024, 1024, causal=True))[-1].flops == 8 * 16 * 1024 * 1024 * 128


def test_one_query_and_fp32_have_kernels_of_their_own(launched):
    assert [one.row for one in launched(heads(1, 1024))] == ["attention_few"]
    assert [one.row for one in launched(heads(1024, 1024, "fp32"))] == ["attention32"]


def test_a_kind_without_a_rule_is_one_pass_over_what_it_touches(launched):
    def build(b):
        x = b.input(1000, 512, dtype="bf16")
        result = b.tensor((1000, 512), "bf16", stem="y")
        b.node("opaque", [x], [result])
        return result

    made = launched(build)
    assert sum(one.bytes_read for one in made) == 1000 * 512 * 2
