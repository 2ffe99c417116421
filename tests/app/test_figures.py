import json
import math
from dataclasses import replace

import numpy as np
import pytest

import fusesim
from app import figures, measured, palette, readout, roofline_figure, time_figure
from app.chain_text import FIVE, parse_chain
from app.settings import STOPS, Settings
from app.view import launch_bound_up_to, look, look_at, sizes_around
from fusesim.errors import InputError
from fusesim.machine import EFFECTS

EXTREMES = [
    Settings(),
    Settings(ops=1, elements=1),
    Settings(ops=32, elements=10**18, dtype="fp64", launch="graph"),
    Settings(elements=4096, launch_overhead=0.0),
    Settings(elements=1024, dtype="fp8", device="mi300x", launch_overhead=20e-6),
    Settings(dram_bandwidth=1e6),
    Settings(dram_bandwidth=1e18),
]
ALL_ON = len(STOPS) - 1
H200 = {"device": "h200-sxm", "step": ALL_ON}
EXTREMES += [
    Settings(ops=("gelu",) * 32, **H200),
    Settings(ops=parse_chain(FIVE), launch="graph", inputs="rotating", **H200),
    Settings(ops=("add_row", "mul_tensor"), elements=4096, step=3, launch="latency"),
    Settings(ops=("add_row",), row=10**18, elements=10**18, step=ALL_ON),
    Settings(ops=1, elements=1, step=ALL_ON, device="mi300x", inputs="warm", host_interval=0.0, launch_overhead=0.0),
    Settings(ops=32, elements=10**18, step=ALL_ON, repeats=10**9, launch="graph", path="cupy", dtype="fp64"),
]
CHARTS = [time_figure.time_chart, figures.bytes_chart, roofline_figure.roofline_chart]


@pytest.fixture(scope="module")
def view(catalogue):
    return look(Settings(), catalogue)


def trace(figure, name):
    return next(entry for entry in figure["data"] if entry.get("name") == name)


@pytest.mark.parametrize("draw", CHARTS)
@pytest.mark.parametrize("settings", EXTREMES)
def test_every_chart_is_plain_finite_json_with_title_and_units(draw, settings, catalogue):
    figure = draw(look(settings, catalogue))
    text = json.dumps(figure, allow_nan=False)  # no numpy, no NaN, no infinity
    assert figure["layout"]["title"]["text"]
    assert len(text) < 24_000
    for entry in figure["data"]:
        assert "hovertemplate" in entry or entry["hoverinfo"] == "skip"


def test_axes_say_what_they_show(view):
    time, moved, roof = (draw(view)["layout"] for draw in CHARTS)
    assert (time["xaxis"]["type"], time["yaxis"]["type"]) == ("log", "log")
    assert time["xaxis"]["title"]["text"] == "tensor size [values]"
    assert "10 us" in time["yaxis"]["ticktext"]
    assert moved["yaxis"]["title"]["text"] == "bytes read and written"
    assert moved["yaxis"]["ticksuffix"] == "B"
    assert roof["xaxis"]["title"]["text"] == "arithmetic intensity [FLOP/B]"
    assert "[FLOP/s]" in roof["yaxis"]["title"]["text"]


def test_many_decades_have_few_labels_with_prefixes(catalogue):
    layout = time_figure.time_chart(look(Settings(ops=32, elements=10**18, dtype="fp64"), catalogue))["layout"]
    assert layout["yaxis"]["ticktext"] == ["1 us", "1 ms", "1 s", "1 ks", "1 Ms", "1 Gs"]
    assert layout["xaxis"]["dtick"] == 3
    assert layout["xaxis"]["minor"]["dtick"] == 1


def test_times_that_nobody_waits_for_have_a_prefix(catalogue):
    view = look(Settings(ops=32, elements=10**18, dtype="fp64", launch="graph"), catalogue)
    assert readout.figures(view)["unfused-time"] == "152.8 Ms"  # 512 EB at 3.35 TB/s
    assert readout.time(0.0123) == "12.3 ms"


def test_curves_are_the_librarys_numbers(view):
    chart = time_figure.time_chart(view)
    sizes = np.array(trace(chart, "unfused")["x"])
    price = fusesim.price_chain(5, sizes)
    assert trace(chart, "unfused")["y"] == price.unfused.time.tolist()
    assert trace(chart, "fused")["y"] == price.fused.time.tolist()
    assert 60 <= len(sizes) <= 120


def test_the_chosen_size_is_marked_with_its_times(view):
    chart = time_figure.time_chart(view)
    marks = [trace(chart, f"{side}, chosen size") for side in ("unfused", "fused")]
    assert [mark["x"] for mark in marks] == [[33554432.0]] * 2
    assert [mark["text"] for mark in marks] == [["<b>220.3 us</b>"], ["<b>44.1 us</b>"]]
    assert any(shape["type"] == "line" and shape["x0"] == 33554432 for shape in chart["layout"]["shapes"])


def test_hover_speaks_human_units(view):
    line = trace(time_figure.time_chart(view), "unfused")
    assert line["hovertemplate"] == "unfused %{y:.4~s}s, by %{customdata}<extra></extra>"  # d3 writes 220.3µs
    assert set(line["customdata"]) == {"launches", "memory"}
    bar = trace(figures.bytes_chart(view), "fused")
    assert bar["customdata"] == [["134.2 MB", "67.1 MB", "67.1 MB"]]  # read once, written once


def test_bars_are_the_bytes_moved(view):
    chart = figures.bytes_chart(view)
    assert trace(chart, "unfused")["y"] == [671088640.0]  # 5 kernels x (1 read + 1 write) x 64 MiB
    assert trace(chart, "fused")["y"] == [134217728.0]
    assert chart["layout"]["yaxis"]["range"][0] == 0  # lengths of bars compare only from zero


def test_launches_decide_up_to_where_both_parts_are_equal(view):
    # 4 us of launch = 4 bytes per value over 3.35 TB/s at 3.35e6 values; the curve has three sizes per octave
    turn = launch_bound_up_to(view.curve.unfused, view.sizes)
    assert turn == pytest.approx(3.35e6, rel=0.13)
    shaded = [shape for shape in time_figure.time_chart(view)["layout"]["shapes"] if shape["type"] == "rect"]
    assert [shape["x1"] for shape in shaded] == [turn, turn]


def test_a_graph_shades_the_fused_kernel_further(catalogue):
    chart = time_figure.time_chart(look(Settings(launch="graph"), catalogue))
    unfused, fused = (shape["x1"] for shape in chart["layout"]["shapes"] if shape["type"] == "rect")
    assert unfused < fused


def test_without_launches_nothing_is_shaded(catalogue):
    chart = time_figure.time_chart(look(Settings(launch_overhead=0.0), catalogue))
    assert not [shape for shape in chart["layout"]["shapes"] if shape["type"] == "rect"]
    assert [note["text"] for note in chart["layout"]["annotations"]] == ["memory-bound"]


def test_fusion_moves_the_chain_right_under_the_roof(view):
    chart = roofline_figure.roofline_chart(view)
    before, after = (trace(chart, side) for side in ("unfused", "fused"))
    assert (before["x"], after["x"]) == ([0.25], [1.25])
    for mark in (before, after):
        roof = min(mark["x"][0] * 3.35e12, view.peak)
        assert 0.9 * roof < mark["y"][0] <= roof  # launches take 9 %


def test_the_roof_bends_at_the_ridge(view):
    roof = trace(roofline_figure.roofline_chart(view), "roof")
    ridge = float(view.point.ridge_point)
    assert roof["y"][roof["x"].index(ridge)] == pytest.approx(view.peak)
    assert max(roof["y"]) == pytest.approx(view.peak)


def test_both_ways_have_the_same_colour_in_every_chart(view):
    for draw in CHARTS:
        for side, colour in (("unfused", palette.UNFUSED), ("fused", palette.FUSED)):
            entry = trace(draw(view), side)
            assert colour in {entry.get("line", {}).get("color"), entry.get("marker", {}).get("color")}


def contrast(one, other):
    def luminance(colour):
        channels = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [palette.LIGHT, palette.DARK])
def test_colours_stand_out_from_the_background(theme):
    for name in ("unfused", "fused"):
        assert contrast(theme[name], theme["card"]) >= 3  # graphics, WCAG 1.4.11
    for name in ("ink", "soft", "unfused-text", "fused-text"):
        assert contrast(theme[name], theme["card"]) >= 4.5  # text, WCAG 1.4.3
        assert contrast(theme[name], theme["paper"]) >= 4.5
    assert contrast(theme["unfused-text"], theme["alert"]) >= 4.5


def test_sizes_reach_the_chosen_one():
    assert sizes_around(10)[0] <= 10
    assert sizes_around(10**12)[-1] >= 10**12
    assert (sizes_around(4096, row=96) % 96 == 0).all()


def test_a_chain_can_be_named_and_broadcast_a_row():
    view = look_at(["add_row", "relu"], 8192 * 4096, row=4096)
    assert view.point.unfused.kernels == 2
    assert math.isfinite(view.curve.unfused.time[0])


def test_what_the_library_refuses_is_refused():
    with pytest.raises(InputError, match="row does not divide"):
        look_at(["add_row"], 4096, row=7)


def calibrated(ops, elements, **terms):
    return fusesim.price_chain(ops, elements, device="h200-sxm", model="calibrated", **terms)


def test_the_interval_is_a_band_around_each_curve(catalogue):
    chart = time_figure.time_chart(look(Settings(ops=("gelu",) * 8, **H200), catalogue))
    for side in ("unfused", "fused"):
        line, band = trace(chart, side), trace(chart, f"{side}, 90 % interval")
        price = getattr(calibrated(["gelu"] * 8, np.array(line["x"])), side)
        assert line["y"] == price.time.tolist()
        half = len(line["x"])
        assert band["x"] == line["x"] + line["x"][::-1]
        assert band["y"][:half] == pytest.approx(price.interval[1], rel=5e-3)
        assert band["y"][half:][::-1] == pytest.approx(price.interval[0], rel=5e-3)
        assert [point[0] for point in line["customdata"]] == [readout.BINDS[bound] for bound in price.bound]


@pytest.mark.parametrize("step", range(ALL_ON))
def test_no_interval_is_claimed_for_a_part_of_the_model(step, catalogue):
    chart = time_figure.time_chart(look(Settings(device="h200-sxm", step=step), catalogue))
    assert not [entry for entry in chart["data"] if "fill" in entry]


def test_without_effects_the_curve_is_the_textbooks_and_with_all_the_calibrated_one(catalogue):
    sizes = np.array(trace(time_figure.time_chart(look(Settings(device="h200-sxm"), catalogue)), "fused")["x"])
    for step, terms in (
        (0, {}),
        (3, {"model": "calibrated", "effects": EFFECTS[:3]}),
        (ALL_ON, {"model": "calibrated"}),
    ):
        line = trace(time_figure.time_chart(look(Settings(device="h200-sxm", step=step), catalogue)), "unfused")
        assert line["y"] == fusesim.price_chain(5, sizes, device="h200-sxm", **terms).unfused.time.tolist()


@pytest.mark.parametrize("launch", ["stream", "latency", "graph"])
def test_measured_points_are_the_files(launch, catalogue):
    rows = json.loads(measured.FILE.read_text())["rows"]
    chart = time_figure.time_chart(look(Settings(ops=parse_chain(FIVE), launch=launch, device="h200-sxm"), catalogue))
    for side, name in (("unfused", "unfused, measured"), ("fused", "fused, measured")):
        points = trace(chart, name)
        wanted = [row for row in rows if row.get("variant") == side]
        assert points["x"] == [row["S"] for row in wanted]
        assert points["y"] == pytest.approx([row[launch] * 1e-6 for row in wanted])
        assert points["marker"]["symbol"].endswith("-open")
        assert "measured" in points["hovertemplate"]


@pytest.mark.parametrize(
    "other", [{"dtype": "fp16"}, {"device": "h100-sxm"}, {"ops": 5}, {"ops": ("add",) * 5}, {"path": "cupy"}]
)
def test_measured_points_belong_to_one_chain_only(other, catalogue):
    settings = replace(Settings(ops=parse_chain(FIVE), device="h200-sxm"), **other)
    assert not look(settings, catalogue).measured


def test_the_measured_conditions_can_be_set(catalogue):
    """In a graph as in the file: as many passes as buffer sets, and as many sets for each size."""
    view = look(Settings(ops=parse_chain(FIVE), launch="graph", inputs="rotating", **H200), catalogue)
    assert len(view.measured) == 18
    for row in view.measured:
        at = int(np.flatnonzero(view.sizes == row.elements)[0])
        side = view.curve.fused if row.fused else view.curve.unfused
        alone = calibrated(list(row.ops), row.elements, launch="graph", graph_repeats=row.sets, inputs=row.sets)
        assert side.time[at] == pytest.approx(float((alone.fused if row.fused else alone.unfused).time), rel=1e-9)
    stream = look(Settings(ops=parse_chain(FIVE), **H200), catalogue)
    assert stream.host_interval == pytest.approx(3.307e-6)  # that host's


def test_bytes_from_the_cache_stand_on_those_from_memory(catalogue):
    view = look(Settings(ops=parse_chain(FIVE), elements=2**20, **H200), catalogue)
    chart = figures.bytes_chart(view)
    memory, cached = trace(chart, "unfused"), trace(chart, "unfused, from the cache")
    assert memory["y"][0] + cached["y"][0] == float(view.point.unfused.bytes_moved)
    assert (memory["text"], cached["text"]) == ([""], ["<b>21.0 MB</b>"])  # 5 kernels x 2 x 2 MiB
    assert chart["layout"]["barmode"] == "stack"


def test_what_decides_at_large_sizes_is_named(catalogue):
    chart = time_figure.time_chart(look(Settings(ops=("gelu",) * 8, **H200), catalogue))
    assert chart["layout"]["annotations"][-1]["text"] == "arithmetic-bound"


def test_the_roof_is_what_memory_reaches(catalogue):
    view = look(Settings(**H200), catalogue)
    assert view.bandwidth < view.peak_bandwidth == 4.8e12
    assert view.ridge == pytest.approx(view.peak / view.bandwidth)


def test_the_sizes_of_a_curve_are_priced_in_one_call(catalogue, monkeypatch):
    calls = []
    price_chain = fusesim.price_chain
    monkeypatch.setattr(
        fusesim, "price_chain", lambda *given, **terms: calls.append(given) or price_chain(*given, **terms)
    )
    look(Settings(**H200), catalogue)
    assert sorted(np.size(elements) for _, elements in calls) == [1, 1, 1, 61]
