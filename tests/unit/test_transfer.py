"""What a transferred calibration takes from the relative, from published figures and from datasheets."""

import pytest

import fusesim
from fusesim import calibrations
from fusesim.calibration import SOURCES
from fusesim.hardware import Bandwidth, Launch, Memory, Time
from fusesim.kernel import SMALLEST_GAP
from fusesim.transfer import WIDENING, nearest, transfer


@pytest.fixture(scope="module")
def source():
    return fusesim.device("h200-sxm")


@pytest.fixture(scope="module")
def own(source):
    return calibrations.find_calibration(source, "h200-sxm")


def value(record, name):
    return record.parameters[name].value


def copy_rate(record):
    """Memory and cache path overlap: t^4 = m^4 + c^4."""
    return (value(record, "bandwidth") ** -4 + value(record, "cache_bandwidth") ** -4) ** -0.25


def changed(profile, **fields):
    return profile.model_copy(update={"id": "other", **fields})


def memory(bandwidth, copy=None):
    figures = {"value": bandwidth, "unit": "TB/s", "source": "sheet"}
    achieved = None if copy is None else Bandwidth(value=copy, unit="TB/s", source="sheet")
    return Memory(bandwidth=Bandwidth(**figures), achieved_copy=achieved)


def launch(node, stream):
    return Launch(
        graph_node=Time(value=node, unit="us", source="sheet"), stream=Time(value=stream, unit="us", source="sheet")
    )


def test_it_says_what_it_is(own, source):
    record = transfer(own, source, changed(source))
    assert record.name == "other (transferred from h200-sxm)"
    assert (record.device, record.transferred_from) == ("other", "h200-sxm")


def test_the_same_datasheet_gives_the_same_parameters_with_more_doubt(own, source):
    record = transfer(own, source, changed(source))
    for name, fitted in own.parameters.items():
        assert value(record, name) == pytest.approx(fitted.value, rel=1e-9)
        assert record.parameters[name].sigma >= 0.15 * fitted.value


def test_a_copy_scales_with_what_one_benchmark_reaches_on_both(own, source):
    target = changed(source, memory=memory(4.8, copy=4.010 / 2))  # half of the H200's
    assert copy_rate(transfer(own, source, target)) == pytest.approx(copy_rate(own) / 2)


def test_a_copy_scales_with_the_peak_where_none_is_published(own, source):
    assert copy_rate(transfer(own, source, changed(source, memory=memory(2.4)))) == pytest.approx(copy_rate(own) / 2)


def test_memory_is_never_faster_than_its_peak(own, source):
    target = changed(source, memory=memory(48.0))
    assert value(transfer(own, source, target), "bandwidth") == 48e12


def test_published_launches_move_the_floor_and_the_gap(own, source):
    node, stream = source.launch.graph_node.value, source.launch.stream.value
    target = changed(source, launch=launch(node + 0.25, stream + 0.75))
    record = transfer(own, source, target)
    assert value(record, "floor") == pytest.approx(value(own, "floor") + 0.25e-6)
    assert value(record, "stream_gap") == pytest.approx(
        value(own, "stream_gap") + 0.5e-6 / SMALLEST_GAP  # 0.75 - 0.25 us behind the smallest kernels
    )
    assert value(transfer(own, source, changed(source, launch=Launch())), "floor") == value(own, "floor")


def test_launches_stay_physical(own, source):
    record = transfer(own, source, changed(source, launch=launch(0.01, 0.01)))
    assert value(record, "floor") >= 2e-7
    assert value(record, "stream_gap") >= 0


def test_intervals_widen_at_both_ends_and_stay_useful(own, source):
    record = transfer(own, source, changed(source))
    for name, (down, up) in WIDENING.items():
        found, before = record.spreads[name], own.spreads[name]
        assert found.low == pytest.approx(before.low / down)
        assert found.high == pytest.approx(before.high * up)
    assert set(WIDENING) == set(SOURCES)


def test_the_nearest_is_of_the_same_architecture(own, source):
    ampere = changed(source, architecture="Ampere")
    other = own.model_copy(update={"name": "other"})
    assert nearest(fusesim.device("h100-sxm"), [(other, ampere), (own, source)]) is own
    assert nearest(fusesim.device("h100-sxm"), []) is None


@pytest.mark.parametrize("device", [name for name in fusesim.devices() if name != "h200-sxm"])
def test_every_device_can_be_priced(device):
    price = fusesim.price_chain(5, [4096, 2**25], device=device, model="calibrated", launch="graph")
    assert "transferred" in price.fused.calibration
    low, high = price.fused.interval
    assert ((high - low) / 2 <= 0.40 * price.fused.time).all()
    assert (price.fused.time > 0).all()
