"""The textbook in full precision: every expected figure is a sum that can be followed by eye."""

import numpy as np
import pytest

import fusesim

ELEMENTS = 8192 * 4096  # 33 554 432
TENSOR = 67_108_864  # B, bf16
BANDWIDTH = 3.35e12
EXACT = 1e-15


def test_stream():
    price = fusesim.price_chain(5, ELEMENTS)
    assert price.unfused.bytes_moved == 671_088_640  # 5 x (1 read + 1 write)
    assert price.fused.bytes_moved == 134_217_728  # 1 read + 1 write
    assert price.unfused.launch_time == pytest.approx(20e-6, rel=EXACT)  # 5 x 4 us
    assert price.unfused.memory_time == pytest.approx(671_088_640 / BANDWIDTH, rel=EXACT)
    assert price.unfused.time == pytest.approx(20e-6 + 671_088_640 / BANDWIDTH, rel=EXACT)
    assert price.fused.time == pytest.approx(4e-6 + 134_217_728 / BANDWIDTH, rel=EXACT)
    assert price.saving == price.unfused.time - price.fused.time
    assert (price.unfused.kernels, price.fused.kernels) == (5, 1)


def test_graph():
    price = fusesim.price_chain(5, ELEMENTS, launch="graph")
    assert price.unfused.launch_time == pytest.approx(10e-6, rel=EXACT)  # 5 nodes x 1 us + 5 us
    assert price.fused.launch_time == pytest.approx(6e-6, rel=EXACT)  # 1 node x 1 us + 5 us


def test_passes_in_one_graph_share_its_replay():
    price = fusesim.price_chain(5, ELEMENTS, launch="graph", graph_repeats=[1, 10])
    assert price.fused.launch_time == pytest.approx([6e-6, 1.5e-6], rel=EXACT)  # 1 us + 5 us / repeats


def test_latency_is_a_stream_in_the_textbook():
    stream, latency = (fusesim.price_chain(5, 4096, launch=launch) for launch in ("stream", "latency"))
    assert latency.unfused.time == stream.unfused.time


def test_given_costs_replace_the_defaults():
    price = fusesim.price_chain(
        2, 10**6, dtype="fp32", launch="graph", launch_overhead=3e-6, replay_overhead=7e-6, dram_bandwidth=1e12
    )
    # 2 x 3 us + 7 us + 16 MB (2 reads + 2 writes of 4 MB) at 1 TB/s
    assert price.unfused.time == pytest.approx(13e-6 + 16e-6, rel=EXACT)
    assert price.fused.time == pytest.approx(10e-6 + 8e-6, rel=EXACT)  # 1 x 3 us + 7 us + 8 MB


def test_a_replay_costs_nothing_on_a_stream():
    assert fusesim.price_chain(5, 4096, replay_overhead=1e-3).unfused.launch_time == pytest.approx(20e-6, rel=EXACT)


def test_free_launches_leave_memory():
    price = fusesim.price_chain(5, ELEMENTS, launch_overhead=0)
    assert price.unfused.time == price.unfused.memory_time
    assert price.unfused.bound == "dram"


@pytest.mark.parametrize(
    ("dtype", "itemsize"), [("fp64", 8), ("fp32", 4), ("tf32", 4), ("bf16", 2), ("fp16", 2), ("fp8", 1), ("int8", 1)]
)
def test_bytes_follow_the_dtype(dtype, itemsize):
    price = fusesim.price_chain(3, 1000, dtype=dtype)
    assert price.unfused.bytes_read == 3 * 1000 * itemsize
    assert price.unfused.bytes_written == 3 * 1000 * itemsize
    assert price.dtype == dtype


def test_extra_operands():
    # 1000 bf16 elements are 2000 B; mul, + a tensor, + a row of 100 (200 B), x a second tensor
    price = fusesim.price_chain(["mul", "add_tensor", "add_row", "mul_tensor"], 1000, row=100)
    assert price.unfused.bytes_read == 12_200  # 4 x 2000 + 2 tensors x 2000 + 1 row x 200
    assert price.unfused.bytes_written == 8_000  # 4 x 2000
    assert price.fused.bytes_read == 6_200  # 1 x 2000 + 2 tensors x 2000 + 1 row x 200
    assert price.fused.bytes_written == 2_000
    assert price.unfused.flops == 4_000  # 4 ops x 1 FLOP x 1000


def test_extra_operands_lessen_what_fusion_gains():
    # one tensor read, one extra and one write by each of 4 ops: 12 against 6 passes, so 2x where launches are free
    price = fusesim.price_chain(["add_tensor"] * 4, ELEMENTS, launch_overhead=0)
    assert price.speedup == pytest.approx(12 / 6, rel=EXACT)


def test_all_bytes_come_from_device_memory():
    price = fusesim.price_chain(["add_tensor", "add_row"], 1000, row=10)
    for side in (price.unfused, price.fused):
        assert side.dram_bytes == side.bytes_moved
        assert side.l2_bytes == 0


def test_arithmetic_is_reported_and_not_added():
    price = fusesim.price_chain(["gelu"] * 3, ELEMENTS)
    assert price.fused.flops == 15 * ELEMENTS  # 3 x 5 FLOP
    assert price.fused.compute_time == pytest.approx(15 * ELEMENTS / 66.9e12, rel=EXACT)
    assert price.fused.arithmetic_intensity == 15 / 4  # 15 FLOP per 2 B read and 2 B written
    assert price.fused.time == price.fused.launch_time + price.fused.memory_time


def test_fp64_is_computed_at_its_own_rate():
    price = fusesim.price_chain(1, ELEMENTS, dtype="fp64")
    assert price.fused.compute_time == pytest.approx(ELEMENTS / 33.5e12, rel=EXACT)
    assert price.ridge_point == pytest.approx(33.5e12 / BANDWIDTH, rel=EXACT)


@pytest.mark.parametrize(
    ("ops", "elements", "unfused", "fused"),
    [
        (1, 256, 512, 512),  # 512 B, the output
        (5, 256, 1024, 512),  # the intermediate and the next
        (5, 257, 2048, 1024),  # 514 B take two steps of 512 B
        (5, 1, 1024, 512),
        (5, ELEMENTS, 2 * TENSOR, TENSOR),
    ],
)
def test_peak_memory(ops, elements, unfused, fused):
    price = fusesim.price_chain(ops, elements)
    assert (price.unfused.peak_memory, price.fused.peak_memory) == (unfused, fused)


def test_bound_changes_where_launches_and_memory_weigh_the_same():
    # 4 us at 3.35 TB/s are 13.4 MB: one read and one write of 3.35 million bf16 elements
    price = fusesim.price_chain(5, [3_300_000, 3_400_000])
    assert price.unfused.bound.tolist() == ["launch", "dram"]


def test_names_and_a_number_agree():
    named, counted = fusesim.price_chain(["mul"] * 5, 4096), fusesim.price_chain(5, 4096)
    assert named.to_dict() == counted.to_dict()
    assert fusesim.price_chain("mul", 4096).to_dict() == fusesim.price_chain(1, 4096).to_dict()


def test_broadcast_equals_scalar_calls_to_the_last_bit():
    ops = np.arange(1, 17).reshape(16, 1)
    elements = np.unique(np.geomspace(1, 1e18, 230).astype(np.int64))[:200]
    price = fusesim.price_chain(ops, elements, launch="graph", graph_repeats=3)
    names = [name for name in fusesim.price_chain(1, 1).unfused.to_dict() if name not in {"calibration", "per_kernel"}]
    assert len(names) > 10
    alone = [[fusesim.price_chain(int(k), int(n), launch="graph", graph_repeats=3) for n in elements] for k in ops.flat]
    for name in ("saving", "speedup", "ridge_point", "elements"):
        assert getattr(price, name).shape == (16, 200)
        assert np.array_equal(getattr(price, name), [[getattr(one, name) for one in row] for row in alone])
    for side in ("unfused", "fused"):
        for name in set(names) - {"interval"}:
            together = getattr(getattr(price, side), name)
            assert together.shape == (16, 200), name
            assert np.array_equal(together, [[getattr(getattr(one, side), name) for one in row] for row in alone]), name
        assert [bound.shape for bound in getattr(price, side).interval] == [(16, 200)] * 2


def test_every_argument_broadcasts():
    price = fusesim.price_chain(
        np.ones((2, 1, 1, 1, 1, 1), int),
        np.full((3, 1, 1, 1, 1), 12),
        launch="graph",
        row=np.array([1, 2, 3, 4]).reshape(4, 1, 1, 1),
        graph_repeats=np.arange(1, 6).reshape(5, 1, 1),
        launch_overhead=np.full((6, 1), 1e-6),
        dram_bandwidth=np.full(7, 1e12),
    )
    assert price.unfused.time.shape == price.fused.bytes_moved.shape == price.fused.kernels.shape == (2, 3, 4, 5, 6, 7)


def test_arguments_are_left_as_they_were():
    elements = np.array([4096, 8192])
    fusesim.price_chain([1], elements)
    assert elements.tolist() == [4096, 8192]
    assert elements.dtype.kind == "i"


def test_a_replay_cost_broadcasts_on_a_stream_too():
    price = fusesim.price_chain(5, 4096, replay_overhead=[1e-6, 2e-6])
    assert price.fused.time.shape == (2,)
    assert price.fused.time[0] == price.fused.time[1]  # though there is no replay to pay
