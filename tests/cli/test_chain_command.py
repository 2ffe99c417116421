import json
import re

import pytest

import fusesim

LESSON = ("chain", "--ops", "5", "--elements", "8192x4096", "--dtype", "bf16", "--device", "h100-sxm")


def test_the_lesson_in_the_terminal(run):
    outcome = run(*LESSON)
    assert (outcome.code, outcome.err) == (0, "")
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert lines[0] == "5 ops, 33 554 432 bf16 elements, NVIDIA H100 SXM5 80 GB, stream, textbook"
    assert "time 220.3 us 44.1 us" in lines
    assert "bytes moved 671.1 MB 134.2 MB" in lines
    assert "fusing saves 176.3 us: 5.00x" in lines
    verdict = "- memory-bound: fused moves 134.2 MB instead of 671.1 MB; launches are 9 % of the unfused time"
    assert verdict in lines


def test_defaults_are_the_lesson(run):
    assert run("chain").out == run(*LESSON).out


def test_json_is_what_the_library_returns(run):
    printed = json.loads(run(*LESSON, "--json").out)
    assert printed == fusesim.price_chain(5, 8192 * 4096, dtype="bf16", device="h100-sxm").to_dict()


def test_every_option_reaches_the_library(run):
    outcome = run(
        *("chain", "--ops", "gelu, add_row,mul_tensor", "--elements", "2^20", "--dtype", "fp32", "--device", "a100"),
        *("--model", "textbook", "--launch", "graph", "--path", "torch", "--row", "1024", "--inputs", "warm"),
        *("--graph-repeats", "10", "--launch-overhead", "2 us", "--replay-overhead", "6us"),
        *("--dram-bandwidth", "1.5 TB/s", "--json"),
    )
    expected = fusesim.price_chain(
        ["gelu", "add_row", "mul_tensor"],
        2**20,
        dtype="fp32",
        device="a100",
        launch="graph",
        path="torch",
        row=1024,
        inputs="warm",
        graph_repeats=10,
        launch_overhead=2e-6,
        replay_overhead=6e-6,
        dram_bandwidth=1.5e12,
    )
    assert json.loads(outcome.out) == expected.to_dict()


def test_named_ops_are_listed_and_an_alias_is_explained(run):
    heading = run("chain", "--ops", "add,relu", "--device", "h100").out.splitlines()[0]
    assert heading.startswith("add -> relu, ")
    assert '(asked for as "h100")' in heading


def test_one_op_is_spelt_as_one(run):
    assert run("chain", "--ops", "1").out.startswith("1 op, ")


def test_a_device_file_of_ones_own(run, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "Mine"\nvendor = "other"\narchitecture = "none"\n'
        '[memory]\nbandwidth = { value = 1, unit = "TB/s", source = "me" }\n'
        '[sources.me]\ntitle = "Measured"\nurl = "none"\n',
        encoding="utf-8",
    )
    outcome = run("chain", "--elements", "10^6", "--device-file", file, "--json")
    assert json.loads(outcome.out)["fused"]["memory_time"] == pytest.approx(4e-6)  # 1 read + 1 write of 2 MB at 1 TB/s


def test_plot_writes_one_page_that_needs_no_network(run, tmp_path):
    page = tmp_path / "out.html"
    outcome = run("chain", "--elements", "4096", "--plot", page)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.endswith(f"charts: {page}\n")
    text = page.read_text(encoding="utf-8")
    assert text.lower().startswith("<!doctype html>")
    assert not re.search(r"<(?:script|link|img)\b[^>]*\b(?:src|href)\s*=", text)
    assert [file.name for file in tmp_path.iterdir()] == ["out.html"]  # nothing temporary stays behind


def test_plot_replaces_an_old_page(run, tmp_path):
    page = tmp_path / "out.html"
    page.write_text("old", encoding="utf-8")
    assert run("chain", "--plot", page, "--json").code == 0
    assert len(page.read_text(encoding="utf-8")) > 1000


def test_plot_writes_through_a_link(run, tmp_path):
    page, link, dangling = tmp_path / "out.html", tmp_path / "link.html", tmp_path / "dangling.html"
    page.write_text("old", encoding="utf-8")
    link.symlink_to(page)
    dangling.symlink_to(tmp_path / "new.html")
    for name in (link, dangling):
        assert run("chain", "--plot", name).code == 0
        assert name.is_symlink()
        assert len(name.resolve().read_text(encoding="utf-8")) > 1000


def test_plot_refuses_links_in_a_circle(run, tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    outcome = run("chain", "--plot", tmp_path / "a")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert outcome.err.startswith("fusesim: cannot write ")
    assert (tmp_path / "a").is_symlink()


@pytest.mark.parametrize("where", [".", "missing/out.html", "fifo", ""])
def test_plot_goes_to_a_file_or_nowhere(run, tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    if where == "fifo":
        import os  # noqa: PLC0415

        os.mkfifo("fifo")  # as /dev/null, which a rename must not replace
    before = sorted(tmp_path.iterdir())
    outcome = run("chain", "--plot", where)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f'fusesim: cannot write "{where}": ')
    assert outcome.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_plot_replaces_nothing_but_a_page(run, tmp_path):
    file = tmp_path / "notes.md"
    file.write_text("mine", encoding="utf-8")
    outcome = run("chain", "--plot", file)
    assert (outcome.code, file.read_text(encoding="utf-8")) == (1, "mine")
    assert outcome.err.endswith('" exists and is no .html file; name another one\n')


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--launch graph --model calibrated --host-interval 3us", "--host-interval changes nothing in a graph"),
        ("--replay-overhead 3us", "--replay-overhead changes nothing outside a graph"),
        ("--graph-repeats 3", "--graph-repeats changes nothing outside a graph"),
        ("--ops add,mul --row 64", "--row changes nothing: no op"),
    ],
)
def test_an_option_that_changes_nothing_is_told(run, options, words):
    outcome = run("chain", "--json", *options.split())
    assert outcome.code == 0
    assert outcome.err.startswith(f"fusesim: note: {words}")
    assert json.loads(outcome.out)["speedup"] > 1


@pytest.mark.parametrize(("path", "said"), [("cuda", False), ("cupy", False), ("torch", True), ("inductor", True)])
def test_a_path_that_nothing_was_fitted_to_says_so(run, path, said):
    outcome = run("chain", "--model", "calibrated", "--path", path)
    assert ("nothing was fitted to this path: its kernels are taken to be those of path cuda" in outcome.out) == said
    assert ("with 90 % confidence" in outcome.out) != said
