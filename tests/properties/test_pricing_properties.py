"""What holds for every chain in the textbook, whatever the sizes.

Floating-point sums and quotients of positive numbers are monotonic, so "never falls" is tested without tolerance.
"""

import inspect

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fusesim
from fusesim.ops import DTYPES, OPS
from fusesim.records import LATE

ROUNDING = 1e-12

lengths = st.integers(1, 1000)
sizes = st.one_of(st.integers(1, 10**18), st.integers(1, 10**7))
dtypes = st.sampled_from(sorted(DTYPES))
devices = st.sampled_from(fusesim.devices())
launches = st.sampled_from(["stream", "latency", "graph"])
names = st.lists(st.sampled_from(sorted(OPS)), min_size=1, max_size=40)
overheads = st.floats(0, 1)
bandwidths = st.floats(1e6, 1e18)


@st.composite
def settings_of_a_price(draw):
    """Draw keyword arguments of `price_chain`."""
    return {
        "dtype": draw(dtypes),
        "device": draw(devices),
        "launch": draw(launches),
        "graph_repeats": draw(st.integers(1, 10**6)),
        "launch_overhead": draw(st.none() | overheads),
        "replay_overhead": draw(st.none() | overheads),
        "dram_bandwidth": draw(st.none() | bandwidths),
    }


@st.composite
def chains(draw):
    """Draw named ops, a size and a row that divides it."""
    row, rows = draw(st.integers(1, 10**6)), draw(st.integers(1, 10**6))
    return draw(names), row * rows, row


@given(chains(), settings_of_a_price())
def test_fusing_never_moves_more_nor_takes_longer(chain, settings):
    ops, elements, row = chain
    price = fusesim.price_chain(ops, elements, row=row, **settings)
    assert price.fused.bytes_read <= price.unfused.bytes_read
    assert price.fused.bytes_written <= price.unfused.bytes_written
    assert price.fused.bytes_moved <= price.unfused.bytes_moved
    assert price.fused.time <= price.unfused.time
    assert price.fused.peak_memory <= price.unfused.peak_memory
    assert price.fused.flops == price.unfused.flops
    assert price.saving >= 0
    assert price.speedup >= 1


@given(chains(), settings_of_a_price())
def test_parts_add_up(chain, settings):
    ops, elements, row = chain
    price = fusesim.price_chain(ops, elements, row=row, **settings)
    for side in (price.unfused, price.fused):
        assert side.time == side.launch_time + side.memory_time
        assert side.bytes_moved == pytest.approx(side.dram_bytes, rel=ROUNDING)
        assert side.peak_memory % 512 == 0
        assert side.bound == ("launch" if side.launch_time > side.memory_time else "dram")
        assert 0 <= side.launch_share <= 1


@given(lengths, sizes, sizes, settings_of_a_price())
def test_time_never_falls_when_the_tensor_grows(ops, one, other, settings):
    price = fusesim.price_chain(ops, sorted([one, other]), **settings)
    for side in (price.unfused, price.fused):
        assert side.time[0] <= side.time[1]


@given(lengths, lengths, sizes, settings_of_a_price())
def test_time_never_falls_when_the_chain_grows(one, other, elements, settings):
    price = fusesim.price_chain(sorted([one, other]), elements, **settings)
    assert price.unfused.time[0] <= price.unfused.time[1]
    assert price.fused.time[0] == price.fused.time[1]  # the textbook leaves arithmetic out


@given(names, st.sampled_from(sorted(OPS)), st.integers(1, 10**15), settings_of_a_price())
def test_time_never_falls_when_an_op_is_appended(ops, more, row, settings):
    before, after = (fusesim.price_chain(each, 3 * row, row=row, **settings) for each in (ops, [*ops, more]))
    assert before.unfused.time <= after.unfused.time
    assert before.fused.time <= after.fused.time


@given(lengths, sizes, overheads, overheads, settings_of_a_price(), st.sampled_from(["launch", "replay"]))
def test_time_never_falls_when_launches_cost_more(ops, elements, one, other, settings, which):
    costs = settings | {f"{which}_overhead": sorted([one, other])}
    price = fusesim.price_chain(ops, elements, **costs)
    for side in (price.unfused, price.fused):
        assert side.time[0] <= side.time[1]


@given(lengths, sizes, bandwidths, bandwidths, settings_of_a_price())
def test_time_never_rises_with_bandwidth(ops, elements, one, other, settings):
    price = fusesim.price_chain(ops, elements, **(settings | {"dram_bandwidth": sorted([one, other])}))
    for side in (price.unfused, price.fused):
        assert side.time[0] >= side.time[1]


@given(lengths, sizes, st.integers(1, 10**6), st.integers(1, 10**6), dtypes)
def test_time_never_rises_with_passes_per_graph(ops, elements, one, other, dtype):
    price = fusesim.price_chain(ops, elements, dtype=dtype, launch="graph", graph_repeats=sorted([one, other]))
    for side in (price.unfused, price.fused):
        assert side.time[0] >= side.time[1]


@given(lengths, sizes, dtypes, devices, st.sampled_from(["stream", "latency"]))
def test_on_a_stream_k_identical_ops_fuse_k_times_faster_at_every_size(ops, elements, dtype, device, launch):
    price = fusesim.price_chain(ops, elements, dtype=dtype, device=device, launch=launch)
    assert price.speedup == pytest.approx(ops, rel=ROUNDING)


@given(st.integers(2, 1000), dtypes, devices)
def test_in_a_graph_the_speedup_stays_below_k_and_rises_to_k(ops, dtype, device):
    # the replay's fixed cost is in both; it weighs less and less as the tensor grows
    price = fusesim.price_chain(ops, 10 ** np.arange(2, 19), dtype=dtype, device=device, launch="graph")
    assert np.all(price.speedup <= ops * (1 + ROUNDING))
    assert np.all(price.speedup[:8] < ops)
    assert np.all(np.diff(price.speedup[:8]) > 0)
    assert np.all(np.diff(price.speedup) >= -ROUNDING * ops)
    assert price.speedup[-1] == pytest.approx(ops, rel=1e-9)


@given(sizes, settings_of_a_price(), st.sampled_from(sorted(OPS)))
def test_one_op_is_one_kernel_either_way(row, settings, op):
    price = fusesim.price_chain(op, row, row=row, **settings)
    assert price.speedup == 1
    assert price.saving == 0


@given(st.data(), chains(), settings_of_a_price())
def test_the_order_of_a_chain_changes_nothing(data, chain, settings):
    ops, elements, row = chain
    reordered = data.draw(st.permutations(ops))
    before, after = (fusesim.price_chain(each, elements, row=row, **settings) for each in (ops, reordered))
    assert before.to_dict() == after.to_dict()


relabelled = {"add": "neg", "mul": "square", "relu": "abs", "exp": "tanh", "add_tensor": "mul_tensor"}
relabelled |= {"sigmoid": "silu", "add_row": "mul_row"}


@given(st.lists(st.sampled_from(sorted(relabelled)), min_size=1), settings_of_a_price())
def test_ops_of_the_same_shape_are_interchangeable(ops, settings):
    before = fusesim.price_chain(ops, 4096, row=64, **settings)
    after = fusesim.price_chain([relabelled[op] for op in ops], 4096, row=64, **settings)
    assert before.to_dict() == after.to_dict()


@given(lengths, sizes, settings_of_a_price())
def test_a_number_of_ops_means_multiplications(ops, elements, settings):
    counted = fusesim.price_chain(ops, elements, **settings).to_dict()
    assert counted == fusesim.price_chain(["mul"] * ops, elements, **settings).to_dict()


@given(
    st.lists(lengths, min_size=1, max_size=4), st.lists(sizes, min_size=1, max_size=4), settings_of_a_price(), st.data()
)
def test_an_array_equals_the_scalar_calls_to_the_last_bit(ops, elements, settings, data):
    together = fusesim.price_chain(np.array(ops)[:, None], np.array(elements), **settings)
    i, j = (data.draw(st.integers(0, len(values) - 1)) for values in (ops, elements))
    alone = fusesim.price_chain(ops[i], elements[j], **settings)
    for side, one in ((together.unfused, alone.unfused), (together.fused, alone.fused)):
        for name in ("time", *LATE, "bytes_moved", "arithmetic_intensity", "launch_share"):
            cell = getattr(side, name)[i, j]
            assert np.array_equal(cell, getattr(one, name), equal_nan=True), name
    assert together.speedup[i, j] == alone.speedup
    assert together.saving[i, j] == alone.saving


@given(lengths, st.integers(1, 10**15), st.integers(2, 1000), dtypes)
def test_without_launches_time_is_proportional_to_size(ops, elements, factor, dtype):
    price = fusesim.price_chain(ops, [elements, factor * elements], dtype=dtype, launch_overhead=0)
    assert price.unfused.time[1] == pytest.approx(factor * price.unfused.time[0], rel=ROUNDING)


@given(chains(), dtypes, devices)
def test_both_ceilings_take_the_same_time_at_the_ridge_point(chain, dtype, device):
    ops, elements, row = chain
    price = fusesim.price_chain(ops, elements, row=row, dtype=dtype, device=device)
    assume(not np.isnan(price.ridge_point))
    for side in (price.unfused, price.fused):
        ratio = side.compute_time / side.memory_time
        assert ratio == pytest.approx(side.arithmetic_intensity / price.ridge_point, rel=ROUNDING)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary()
anything = scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(max_size=1), scalars, max_size=1)
arguments = list(inspect.signature(fusesim.price_chain).parameters)


@given(st.sampled_from(arguments), anything)
@settings(max_examples=300)
def test_any_argument_is_priced_or_refused_in_one_line(name, value):
    try:
        price = fusesim.price_chain(**({"ops": 5, "elements": 4096} | {name: value}))
    except fusesim.InputError as error:
        assert str(error).isprintable()  # noqa: PT017
    else:
        assert np.all(np.isfinite(price.unfused.time))
