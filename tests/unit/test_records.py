import copy
import json
import pickle
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import fusesim
from fusesim.records import BOUNDS, LATE
from fusesim.store import parse_device


@pytest.fixture(scope="module")
def chain():
    return fusesim.price_chain(5, 8192 * 4096)


@pytest.fixture(scope="module")
def unsourced():
    """A device of which nothing is known but its bandwidth."""
    table = {
        "name": "Example",
        "vendor": "other",
        "architecture": "Example",
        "memory": {"bandwidth": {"value": 2, "unit": "TB/s", "source": "sheet"}},
        "sources": {"sheet": {"title": "Example datasheet", "url": "https://example.com/"}},
    }
    return parse_device(table, "example", "example.toml")


def test_records_cannot_be_changed(chain):
    with pytest.raises(FrozenInstanceError):
        chain.saving = 0
    with pytest.raises(FrozenInstanceError):
        chain.fused.time = 0


@pytest.mark.parametrize("model", ["textbook", "calibrated"])
def test_arrays_cannot_be_changed(model):
    sizes = np.array([4096.0, 8192.0])
    price = fusesim.price_chain(5, sizes, model=model)
    sides = [getattr(side, name) for side in (price.unfused, price.fused) for name in ("time", "bytes_moved", *LATE)]
    intervals = [*price.unfused.interval, *price.fused.interval, *price.saving_interval]
    for value in (price.saving, price.speedup, price.ridge_point, price.elements, *sides, *intervals):
        with pytest.raises(ValueError, match="read-only"):
            value[0] = 0
    sizes[0] = 1  # the caller's own array stays the caller's
    assert price.elements.tolist() == [4096, 8192]


def test_an_unknown_field_is_an_attribute_error(chain):
    with pytest.raises(AttributeError, match="^a Price has no tiem$"):
        chain.fused.tiem  # noqa: B018
    assert not hasattr(chain.fused, "__array_interface__")


def test_a_late_field_is_computed_once():
    sizes = fusesim.price_chain([1, 5], 4096).fused
    for name in LATE:
        assert getattr(sizes, name) is getattr(sizes, name)
        assert getattr(sizes, name).shape == (2,)


def test_derived_fields(chain):
    unfused = chain.unfused
    assert unfused.bytes_moved == unfused.bytes_read + unfused.bytes_written
    assert unfused.arithmetic_intensity == unfused.flops / unfused.bytes_moved
    assert unfused.launch_share == unfused.launch_time / unfused.time
    assert unfused.interval == (unfused.time, unfused.time)  # the textbook knows no doubt
    assert chain.saving_interval == (chain.saving, chain.saving)


def test_bound_is_a_word_or_an_array_of_words():
    assert fusesim.price_chain(5, 4096).fused.bound == "launch"
    bounds = fusesim.price_chain(5, [4096, 8192 * 4096]).fused.bound
    assert bounds.tolist() == ["launch", "dram"]
    assert set(bounds.tolist()) <= set(BOUNDS)


@pytest.mark.parametrize("elements", [4096, [1, 4096, 10**18]])
def test_to_dict_is_json_without_nan(unsourced, elements):
    record = fusesim.price_chain([[1], [5]], elements, device=unsourced, launch="graph").to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert np.shape(record["fused"]["time"]) == np.broadcast_shapes((2, 1), np.shape(elements))
    assert set(np.ravel(record["ridge_point"])) == {None}  # nobody sourced the rate


def test_to_dict_names_every_field(chain):
    record = chain.to_dict()
    assert record["device"] == "h100-sxm"
    assert (record["model"], record["launch"], record["dtype"]) == ("textbook", "stream", "bf16")
    sides = {"time", "interval", "kernels", "bytes_read", "bytes_written", "bytes_moved", "arithmetic_intensity"}
    sides |= {"dram_bytes", "l2_bytes", "flops", "launch_time", "memory_time", "compute_time", "launch_share", "bound"}
    sides |= {"peak_memory", "calibration", "per_kernel"}
    assert set(record["unfused"]) == set(record["fused"]) == sides


@pytest.mark.parametrize("ops", [5, ["add", "mul"]])
def test_counts_are_whole_numbers_in_a_dict(ops):
    record = fusesim.price_chain(ops, 4096).to_dict()
    counts = (record["unfused"]["kernels"], record["fused"]["kernels"], record["elements"])
    assert [type(count) for count in counts] == [int, int, int]
    many = fusesim.price_chain([1, 5], [[4096]]).to_dict()
    assert json.dumps([many["unfused"]["kernels"], many["fused"]["kernels"]]) == "[[[1, 5]], [[1, 1]]]"


def test_to_dict_says_which_alias_was_asked_for():
    record = fusesim.price_chain(5, 4096, device="h100").to_dict()
    assert (record["device"], record["requested_as"]) == ("h100-sxm", "h100")


@pytest.mark.parametrize("elements", [4096, [4096, 8192]])
@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda price: pickle.loads(pickle.dumps(price))], ids=["copy", "pickle"]
)
def test_records_survive_copying_and_pickling(again, elements):
    price = fusesim.price_chain(5, elements)
    assert again(price).to_dict() == price.to_dict()


def test_the_verdict_names_what_decides(chain):
    assert chain.explain()[0] == (
        "memory-bound: fused moves 134.2 MB instead of 671.1 MB; launches are 9 % of the unfused time"
    )
    assert fusesim.price_chain(5, 4096).explain()[0] == (
        "launch-bound: launches are 99.9 % of the unfused time, and fusing leaves 1 of 5 launches; "
        "fused moves 16.4 kB instead of 81.9 kB"
    )
    assert fusesim.price_chain(1, 4096).explain()[0].startswith("one op is one kernel either way: nothing to fuse")


def test_the_explanation_names_the_size_where_the_verdict_flips(chain):
    # 4 us at 3.35 TB/s are 13.4 MB: 2 B read and 2 B written of 3.35 million elements
    assert re.match(r"launches and memory weigh the same at about 3 [34]00 000 elements", chain.explain()[1])
    assert not any("weigh the same" in line for line in fusesim.price_chain(5, 4096, launch_overhead=0).explain())


def test_the_explanation_places_the_chain_under_the_roof(chain, unsourced):
    # 5 FLOP per 20 B unfused and per 4 B fused; 66.9 TFLOP/s over 3.35 TB/s is 20 FLOP/B
    line = "arithmetic intensity is 0.25 FLOP/B unfused and 1.25 fused, below the ridge point of 20 FLOP/B"
    assert any(sentence.startswith(line) for sentence in chain.explain())
    many = fusesim.price_chain(["gelu_tanh"] * 10, 4096).explain()  # 90 FLOP per 4 B
    assert any("22.5 fused, above the ridge point" in sentence for sentence in many)
    assert not any("ridge" in sentence for sentence in fusesim.price_chain(5, 4096, device=unsourced).explain())


def test_the_explanation_warns_of_arithmetic_that_takes_longer_than_the_price(chain, unsourced):
    # 32 FLOP on each of 2^30 elements at 19.5 TFLOP/s are 1.76 ms; 2 GiB in and out at 2.04 TB/s are 1.05 ms
    def warnings(price):
        return [sentence for sentence in price.explain() if sentence.startswith("arithmetic alone")]

    (sentence,) = warnings(fusesim.price_chain(32, 2**30, dtype="fp8", device="a100"))
    assert sentence == (
        "arithmetic alone takes 1.76 ms at the peak rate, longer than the fused 1.06 ms: "
        "the textbook leaves it out, so no real kernel is that quick"
    )
    # at 100 TB/s the unfused chain moves its bytes in less time too
    quick = fusesim.price_chain(32, 2**30, dtype="fp8", device="a100", dram_bandwidth=1e14)
    assert "longer than the unfused 815.2 us and the fused 25.5 us: " in warnings(quick)[0]
    assert warnings(chain) == warnings(fusesim.price_chain(5, 4096, device=unsourced)) == []
    assert not warnings(fusesim.price_chain(["gelu"] * 8, 2**25, device="h200-sxm", model="calibrated"))


def test_the_explanation_warns_of_what_does_not_fit(chain):
    # 30 billion bf16 elements are 60 GB in and 60 GB out, on 80 GB
    line = "input and output take 120.0 GB, more than the 80.0 GB of h100-sxm: it will not fit"
    assert fusesim.price_chain(5, 30 * 10**9).explain()[-1] == line
    assert not any("fit" in sentence for sentence in chain.explain())


def test_an_array_of_prices_has_no_single_explanation():
    with pytest.raises(fusesim.InputError, match="speaks of one chain"):
        fusesim.price_chain(5, [4096, 8192]).explain()


def test_reprs_are_one_short_line(chain):
    assert repr(chain) == "<ChainPrice: 220.3 us unfused, 44.1 us fused, 5.00x; h100-sxm, stream, textbook>"
    assert repr(chain.unfused) == "<Price: 220.3 us>"
    grid = fusesim.price_chain([[1], [5]], [4096, 2**25, 2**26])
    assert repr(grid) == (
        "<ChainPrice 2x3: 4.0 us to 420.6 us unfused, 4.0 us to 84.1 us fused, 1.00x to 5.00x; "
        "h100-sxm, stream, textbook>"
    )
    assert repr(grid.fused) == "<Price 2x3: 4.0 us to 84.1 us>"
    real = fusesim.price_chain(5, 4096, device="h200-sxm", model="calibrated")
    assert repr(real.fused).endswith(" us, calibration h200-sxm>")
    assert repr(chain.device) == "HardwareProfile(id='h100-sxm', name='NVIDIA H100 SXM5 80 GB')"
    assert len(str(chain)) < 120
    assert len(str(chain.device)) < 120


def test_records_compare_by_identity(chain):
    same = fusesim.price_chain(5, 8192 * 4096)
    assert chain == chain  # noqa: PLR0124 - that is the point
    assert chain != same
    assert chain.fused != same.fused
    assert chain.to_dict() == same.to_dict()


def test_notebooks_show_a_table(chain):
    page = chain._repr_html_()
    assert "<th>unfused</th><td>220.3 us</td>" in page
    assert "<th>bound</th><td>dram</td>" in chain.unfused._repr_html_()
    assert "4.0 us to 44.1 us (2)" in fusesim.price_chain(5, [4096, 8192 * 4096])._repr_html_()
