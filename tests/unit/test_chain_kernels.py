"""Which kernels a chain is made of, and what memory serves of each."""

import numpy as np
import pytest

from fusesim.chain_kernels import Situation, fused_pieces, instructions, unfused_pieces
from fusesim.machine import EFFECTS
from fusesim.ops import OPS, find_dtype
from fusesim.paths import STYLES
from fusesim.values import SLOW
from fusesim.work import Chain

from .test_kernel import MACHINE

BF16, CUDA = find_dtype("bf16"), STYLES["cuda"]
FAR = 10**9  # elements: 2 GB, nothing stays in a cache of 50 MB
NEAR = 10**6  # elements: 2 MB, so intermediates stay


def ops(*names):
    return tuple(OPS[name] for name in names)


def chain(elements, *names, count=None):
    named = ops(*names)
    return Chain(
        ops=np.asarray(count if count is not None else len(named), dtype=float)[()],
        flops=np.float64(1),
        tensors=sum(op.tensors for op in named),
        rows=sum(op.rows for op in named),
        elements=np.asarray(elements, dtype=float)[()],
        row=np.float64(1000),
        itemsize=2,
    )


def situation(buffer_sets=np.inf, effects=EFFECTS):
    return Situation(
        dtype=BF16,
        style=CUDA,
        launch="graph",
        buffer_sets=np.float64(buffer_sets),
        effects=frozenset(effects),
        floor=np.float64(1e-6),
        stream_gap=np.float64(0),
        replay=np.float64(0),
        graph_repeats=np.float64(1),
        host_interval=np.float64(0),
    )


def dram(pieces):
    return sum(float(piece.kernels * piece.dram_bytes) for piece in pieces)


def kernels(pieces):
    return sum(float(piece.kernels) for piece in pieces)


def test_intermediates_far_larger_than_the_cache_go_to_memory_and_back():
    named = ("add", "mul", "relu")
    pieces = unfused_pieces(chain(FAR, *named), ops(*named), situation(), MACHINE)
    assert kernels(pieces) == 3
    assert dram(pieces) == pytest.approx(3 * 4 * FAR, rel=1e-6)  # 3 reads + 3 writes of 2 B


def test_intermediates_that_fit_stay_and_only_the_ends_are_cold():
    named = ("add", "mul", "relu")
    pieces = unfused_pieces(chain(NEAR, *named), ops(*named), situation(), MACHINE)
    assert dram(pieces) == pytest.approx(4 * NEAR, rel=1e-3)  # 1 read + 1 write of 2 B


def test_the_fused_kernel_reads_once_and_writes_once_wherever_intermediates_would_be():
    named = ("add", "mul", "relu")
    for elements in (NEAR, FAR):
        pieces = fused_pieces(chain(elements, *named), ops(*named), situation(), MACHINE)
        assert kernels(pieces) == 1
        assert dram(pieces) == 4 * elements


def test_warm_inputs_that_fit_never_go_to_memory():
    named = ("add", "mul")
    cold, warm = (dram(fused_pieces(chain(NEAR, *named), ops(*named), situation(s), MACHINE)) for s in (np.inf, 1))
    assert cold == 4 * NEAR
    assert warm < 0.001 * cold


def test_rotating_over_many_buffers_makes_inputs_cold_again():
    named = ("mul",)
    few, many = (dram(fused_pieces(chain(NEAR, *named), ops(*named), situation(s), MACHINE)) for s in (2, 1000))
    assert few < 0.01 * many


def test_extra_operands_are_read_from_memory_by_their_op():
    named = ("add_tensor", "mul", "mul_tensor")
    pieces = unfused_pieces(chain(NEAR, *named), ops(*named), situation(), MACHINE)
    assert dram(pieces) == pytest.approx(8 * NEAR, rel=1e-2)  # in, out and two operands of 2 B


def test_an_operand_between_pushes_an_intermediate_further_away():
    size = 8_000_000  # 16 MB: reuse distance 32 MB without, 48 MB with an operand; the reach is 25 MB
    plain = unfused_pieces(chain(size, "mul", "mul"), ops("mul", "mul"), situation(), MACHINE)
    more = unfused_pieces(chain(size, "mul", "mul_tensor"), ops("mul", "mul_tensor"), situation(), MACHINE)
    assert dram(more) > dram(plain) + 2 * size


def test_k_identical_ops_are_the_same_as_k_names():
    for count in (1, 2, 3, 7):
        named = ("mul",) * count
        by_name = unfused_pieces(chain(5_000_000, *named), ops(*named), situation(), MACHINE)
        by_count = unfused_pieces(chain(5_000_000, count=count), None, situation(), MACHINE)
        assert kernels(by_name) == kernels(by_count) == count
        assert dram(by_name) == pytest.approx(dram(by_count))


def test_an_array_of_lengths_is_the_same_as_each_length():
    together = unfused_pieces(chain(5_000_000, count=[1, 2, 9]), None, situation(), MACHINE)
    total = sum(piece.kernels * piece.dram_bytes for piece in together)
    alone = [dram(unfused_pieces(chain(5_000_000, count=k), None, situation(), MACHINE)) for k in (1, 2, 9)]
    assert total.tolist() == pytest.approx(alone)


def test_without_the_cache_all_bytes_go_to_memory():
    named = ("add", "mul", "relu")
    off = situation(buffer_sets=1, effects=set(EFFECTS) - {"cache"})
    assert dram(unfused_pieces(chain(NEAR, *named), ops(*named), off, MACHINE)) == 12 * NEAR


@pytest.mark.parametrize(("effects", "load"), [(EFFECTS, 3 * 0.9 + 1.1), ((), 4.0)])  # 3 reads + 1 write of 2 bytes
def test_written_bytes_cost_the_memory_more_than_read_ones(effects, load):
    named = ("add_tensor", "mul_tensor")
    kernel = fused_pieces(chain(FAR, *named), ops(*named), situation(effects=set(effects)), MACHINE)[0]
    assert kernel.dram_bytes == 4 * 2 * FAR
    assert kernel.dram_load == pytest.approx(load * 2 * FAR)


def test_instructions_add_up_and_special_functions_are_counted_apart():
    issued = instructions(ops("add", "exp", "silu"), BF16, CUDA)
    assert issued.slots == pytest.approx(5.6 + 1 + 2 + 13)
    assert issued.special == 4  # one of exp, three of silu: exp, reciprocal and the check of the division
    assert issued.serial == 2 + 15 + 92


@pytest.mark.parametrize(("beside", "cycles"), [("exp", 36 + 15), ("silu", 55 + 92)])  # silu divides: a subroutine
def test_a_subroutine_ends_the_interleaving_of_elements(beside, cycles):
    assert instructions(ops("tanh", beside), BF16, CUDA).serial == cycles


def test_a_broadcast_row_costs_an_integer_division_per_thread():
    plain, row = (instructions(ops(name), BF16, CUDA) for name in ("add", "add_row"))
    assert row.slots - plain.slots == pytest.approx(2 + 50 / 8)  # the load and 50 instructions over 8 elements
    assert row.rows == 1


def test_a_division_of_zero_leaves_the_fast_path():
    fast, slow = (instructions(ops(*names), BF16, CUDA) for names in (("square", "silu"), ("relu", "silu")))
    assert slow.slots - fast.slots == pytest.approx(SLOW["division"][0])  # square and relu are one instruction each


def test_cupy_kernels_have_a_block_for_every_128_elements():
    kernel = fused_pieces(chain(NEAR, "mul"), ops("mul"), situation(), MACHINE)[0].shape
    one = situation().__class__(
        **{f: getattr(situation(), f) for f in situation().__slots__} | {"style": STYLES["cupy"]}
    )
    cupy = fused_pieces(chain(NEAR, "mul"), ops("mul"), one, MACHINE)[0].shape
    assert kernel.blocks == np.ceil(NEAR / 2048)
    assert cupy.blocks == np.ceil(NEAR / 128)
