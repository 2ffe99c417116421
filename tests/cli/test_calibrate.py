"""`fusesim calibrate` on a bench that needs no GPU, and on recorded measurements."""

import json
import math
from pathlib import Path

import pytest

import fusesim.cli.calibrate as command
from fusesim.calibrate.plan import plan
from fusesim.calibrate.record import load_measurements
from fusesim.calibrations import load_calibration_file
from fusesim.store import specs_folder

RECORDED = sorted((specs_folder() / "calibrations" / "raw").glob("*.json"))
SHIPPED = specs_folder() / "calibrations" / "h200-sxm.json"


def thinned(paths):
    """Return few enough cases for a test."""
    return [case for index, case in enumerate(plan(paths)) if case.suite == "fit" or index % 6 == 0]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Measure into a folder of one's own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(command, "plan", thinned)
    monkeypatch.setenv("PATH", str(tmp_path))  # no nvidia-smi
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def gpu(monkeypatch, fake_bench):
    """Put a bench where a GPU would be; its facts and faults are the keywords."""

    def gpu(**keywords):
        bench = fake_bench(**{"seed": 1, "noise": 0.01, **keywords})
        monkeypatch.setattr(command.measure, "open_bench", lambda _: bench)
        return bench

    return gpu


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """A small file of measurements that a fit takes little time for."""
    whole = load_measurements(RECORDED[0])
    rows = [row for index, row in enumerate(whole.rows) if index % 2 == 0]
    file = tmp_path_factory.mktemp("recorded") / "raw.json"
    file.write_text(whole.model_copy(update={"rows": tuple(rows)}).to_json(), encoding="utf-8")
    return file


def same_figures(first, second, where=""):
    """Whether two JSON values are alike to a millionth."""
    if isinstance(first, dict):
        assert set(first) == set(second), where
        for key in first:
            same_figures(first[key], second[key], f"{where}.{key}")
    elif isinstance(first, float) and isinstance(second, float):
        assert math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-30), f"{where}: {first} and {second}"
    else:
        assert first == second, where


@pytest.mark.parametrize("raw", RECORDED, ids=lambda file: file.stem)
def test_committed_measurements_give_the_committed_calibration(run, tmp_path, raw):
    out = tmp_path / raw.name
    outcome = run("calibrate", "--from", raw, "--out", out)
    assert (outcome.code, outcome.err) == (0, "")
    committed = (specs_folder() / "calibrations" / raw.name).read_text(encoding="utf-8")
    fitted = json.loads(out.read_text(encoding="utf-8"))
    same_figures(json.loads(committed)["parameters"], fitted["parameters"], "parameters")
    same_figures(json.loads(committed), fitted)


def test_a_whole_run(run, home, gpu):
    bench = gpu()
    outcome = run("calibrate")
    assert outcome.code == 0
    folder = home / "data" / "fusesim" / "calibrations"
    assert sorted(file.name for file in folder.iterdir()) == ["h200-sxm.json", "h200-sxm.raw.json"]
    record = load_calibration_file(folder / "h200-sxm.json")
    measured = load_measurements(folder / "h200-sxm.raw.json")
    assert len(measured.rows) == len(thinned(("cuda", "cupy"))) == len(bench.measured) - measured_probes(bench)
    assert record.environment == measured.environment
    assert {"gpu", "cpu", "fusesim", "python", "system", "spread_90", "probe_kernel"} <= set(measured.environment)
    assert measured.protocol.startswith("Measures cases on a GPU.")
    assert measured.date.endswith("Z")


def measured_probes(bench):
    return sum(case.suite == "" for case in bench.measured)


def test_results_go_to_stdout_and_progress_to_stderr(run, home, gpu):
    gpu()
    outcome = run("calibrate", "--out", "mine.json", "--paths", "cuda")
    assert outcome.code == 0
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert lines[0].startswith("h200-sxm: NVIDIA H200, ")
    assert any(line.startswith("bandwidth 4.") and "TB/s" in line for line in lines)
    assert any(line.startswith("dram-bound") for line in lines)
    assert "calibration: mine.json" in lines
    assert "measurements: mine.raw.json" in lines
    for stage in ("compile", "settle", "fit", "judge"):
        assert stage in outcome.err
    assert "mix" not in outcome.out
    assert sorted(file.name for file in home.iterdir()) == ["mine.json", "mine.raw.json"]


def test_json(run, home, gpu):
    gpu()
    record = json.loads(run("calibrate", "--out", "mine.json", "--raw", "raw.json", "--json").out)
    assert (record["file"], record["measurements"], record["doubts"]) == ("mine.json", "raw.json", [])
    assert record["calibration"] == json.loads((home / "mine.json").read_text(encoding="utf-8"))


def test_an_interrupted_run_is_resumed_to_the_same_end(run, home, gpu):
    gpu()
    assert run("calibrate", "--out", "whole.json").code == 0
    gpu(interrupt_at=300)
    stopped = run("calibrate", "--out", "parts.json")
    assert (stopped.code, stopped.out) == (130, "")
    assert "cases are kept in parts.raw.json.partial; go on with the same command line and --resume" in stopped.err
    assert not (home / "parts.json").exists()
    again = run("calibrate", "--out", "parts.json")
    assert again.code == 1
    assert "holds an unfinished run; go on with --resume or start over with --force" in again.err
    gpu()
    assert run("calibrate", "--out", "parts.json", "--resume").code == 0
    whole, parts = (load_measurements(home / f"{name}.raw.json") for name in ("whole", "parts"))
    assert parts.rows == whole.rows
    assert parts.environment == whole.environment
    first, second = (load_calibration_file(home / f"{name}.json") for name in ("whole", "parts"))
    assert first.parameters == second.parameters
    assert not (home / "parts.raw.json.partial").exists()


@pytest.mark.usefixtures("home")
def test_a_run_is_not_resumed_on_another_machine(run, gpu):
    gpu(interrupt_at=50)
    run("calibrate", "--out", "mine.json")
    gpu(driver="590.2")
    outcome = run("calibrate", "--out", "mine.json", "--resume")
    assert outcome.code == 1
    assert outcome.err == (
        "fusesim: mine.raw.json.partial was begun with driver 580.1 and this is driver 590.2; start over with --force\n"
    )
    gpu()
    outcome = run("calibrate", "--out", "mine.json", "--resume", "--paths", "cuda")
    assert outcome.err == "fusesim: the run to resume measures cuda,cupy; leave out --paths\n"


def test_an_unsteady_gpu_leaves_nothing(run, home, gpu):
    gpu(unsteady_from=100)
    outcome = run("calibrate", "--out", "mine.json")
    assert (outcome.code, outcome.out) == (1, "")
    assert "fusesim: the GPU is unsteady: the smallest kernel took" in outcome.err
    assert outcome.err.endswith("start again, or accept it with --force\n")
    assert not list(home.iterdir())


@pytest.mark.parametrize("name", ["mine.json", "mine.raw.json"])
def test_nothing_is_overwritten_unasked(run, home, gpu, name):
    bench = gpu()
    (home / name).write_text("mine", encoding="utf-8")
    outcome = run("calibrate", "--out", "mine.json")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == f'fusesim: "{name}" exists; give another --out, or overwrite it with --force\n'
    assert (home / name).read_text(encoding="utf-8") == "mine"
    assert not bench.measured


def test_force_overwrites(run, home, recorded):
    out = home / "mine.json"
    out.write_text("old", encoding="utf-8")
    assert run("calibrate", "--from", recorded, "--out", out).code == 1
    assert out.read_text(encoding="utf-8") == "old"
    assert run("calibrate", "--from", recorded, "--out", out, "--force").code == 0
    assert load_calibration_file(out).device == "h200-sxm"


@pytest.mark.usefixtures("home")
def test_an_unknown_gpu_needs_a_device_file(run, gpu):
    bench = gpu()
    bench.gpu = type(bench.gpu)(name="GRID", sms=7, memory=10**10, cache=1, capability="1.0", bus="", versions={})
    outcome = run("calibrate")
    assert outcome.code == 1
    assert 'this GPU, "GRID" (7 SMs, 10 GB), is none of the devices that fusesim knows; describe it' in outcome.err
    assert not bench.measured
    assert run("calibrate", "--device", "h20-sxm").err.startswith('fusesim: unknown device "h20-sxm"')


def test_what_is_not_trustworthy_is_shown_and_not_written(run, home, recorded, monkeypatch):
    monkeypatch.setattr(command.trust, "doubts", lambda *_: ["floor stopped at its limit of 1e-07 s"])
    outcome = run("calibrate", "--from", recorded, "--out", "mine.json")
    assert outcome.code == 1
    assert outcome.err == (
        "fusesim: not written, since not trustworthy: floor stopped at its limit of 1e-07 s; "
        "write it all the same with --force\n"
    )
    assert "bandwidth" in outcome.out
    assert not list(home.iterdir())
    outcome = run("calibrate", "--from", recorded, "--out", "mine.json", "--force")
    assert (outcome.code, outcome.err) == (0, "fusesim: warning: floor stopped at its limit of 1e-07 s\n")


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda text: text[: len(text) // 2], "raw.json: Invalid JSON"),
        (lambda text: text.replace("fusesim-measurements/1", "fusesim-measurements/9"), "raw.json: schema: Input"),
        (lambda text: text.replace('"median": ', '"median": NaN, "was": ', 1), "raw.json: rows.0.was: unknown key"),
        (lambda text: text.replace('"h200-sxm"', '"h20-sxm"'), 'unknown device "h20-sxm"; did you mean'),
        (lambda _: "", "raw.json: Invalid JSON"),
    ],
)
def test_spoilt_measurements_are_refused(run, home, recorded, spoil, sentence):
    file = home / "raw.json"
    file.write_text(spoil(recorded.read_text(encoding="utf-8")), encoding="utf-8")
    outcome = run("calibrate", "--from", file, "--out", "mine.json", "--json")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"fusesim: {sentence}")
    assert outcome.err.count("\n") == 1
    assert not (home / "mine.json").exists()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--from absent.json", "absent.json: cannot be read"),
        ("--from .", ".: not a file"),
        ("--paths cuda,cupi", 'unknown path "cupi"; did you mean "cupy"?'),
        ("--paths cupy", "the paths must include cuda"),
        ("--paths=", 'unknown path ""'),
        ("--resume --out mine.json", 'there is no run to resume: "mine.raw.json.partial" does not exist'),
        ("--out absent/mine.json", 'cannot write "absent/mine.json": there is no such folder to write to'),
        ("--out mine.json --raw mine.json", "--out and --raw are the same file; give two"),
        ("--device-file absent.toml", "absent.toml: cannot be read"),
        ("--compare absent.json absent.json", "absent.json: cannot be read"),
    ],
)
def test_bad_input(run, home, gpu, line, sentence):
    gpu()
    outcome = run("calibrate", *line.split())
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"fusesim: {sentence}")
    assert not [file for file in home.iterdir() if file.is_file()]


def test_without_a_gpu(run, home, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    outcome = run("calibrate")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == 'fusesim: measuring needs CuPy; install it with: pip install "fusesim[gpu]"\n'
    assert not list(home.iterdir())


@pytest.mark.usefixtures("home")
def test_a_busy_gpu_is_left_alone(run, gpu, monkeypatch):
    bench = gpu()
    monkeypatch.setattr(command.environment, "load", lambda _: 63.0)
    outcome = run("calibrate")
    assert outcome.code == 1
    assert outcome.err.startswith("fusesim: the GPU is 63 % busy; end what else runs on it")
    assert not bench.measured


@pytest.mark.parametrize("line", ["--compare a", "--compare a b --force", "--from a --resume", "--from a --paths cuda"])
def test_lines_that_contradict_themselves(run, line):
    outcome = run("calibrate", *line.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("fusesim: ")


def test_compare_shows_drift(run, tmp_path):
    record = json.loads(SHIPPED.read_text(encoding="utf-8"))
    record["parameters"]["floor"]["value"] *= 1.5
    other = tmp_path / "other.json"
    other.write_text(json.dumps(record), encoding="utf-8")
    outcome = run("calibrate", "--compare", SHIPPED, other)
    assert (outcome.code, outcome.err) == (0, "")
    total = len(record["parameters"])
    assert outcome.out.endswith(f"{total - 1} of {total} parameters agree within 2 combined sigma\n")
    (line,) = [line.split() for line in outcome.out.splitlines() if line.startswith("floor")]
    assert float(line[-1]) > 2
    printed = json.loads(run("calibrate", "--compare", SHIPPED, other, "--json").out)
    assert (printed["agree"], printed["of"]) == (total - 1, total)
    assert printed["parameters"][0]["second"] == record["parameters"]["floor"]["value"]


def test_compare_takes_measurements_too(run, tmp_path, recorded):
    out = tmp_path / "mine.json"
    assert run("calibrate", "--from", recorded, "--out", out).code == 0
    outcome = run("calibrate", "--compare", recorded, out)
    total = len(load_calibration_file(out).parameters)
    assert outcome.out.endswith(f"{total} of {total} parameters agree within 2 combined sigma\n")


def test_an_installation_holds_its_measurements():
    assert {file.stem for file in RECORDED} <= {file.stem for file in Path(SHIPPED.parent).glob("*.json")}
