"""What the README shows is what happens."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from fusesim.cli.main import BAD_INPUT, BAD_USAGE, INTERRUPTED, commands
from fusesim.machine import EFFECTS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    found = re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert found
    return found


@pytest.mark.parametrize("block", blocks("python"))
def test_library_examples(block):
    example = doctest.DocTestParser().get_doctest(block, {}, "README.md", "README.md", 0)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


LINES = re.findall(r"^\| `fusesim ([^`]*)`", README, re.MULTILINE)


HLO = """HloModule add
ENTRY main {
  x = f32[1024]{0} parameter(0)
  y = f32[1024]{0} add(x, x)
  ROOT z = f32[1024]{0} multiply(y, y)
}
"""


def programs(folder, command):
    """Put a program of one's own where a command looks for it; skip where its extra is missing."""
    trace = ROOT / "tests/reference/traces/vit_16.eager.json.gz"
    (folder / "trace.json.gz").write_bytes(trace.read_bytes())
    (folder / "module.txt").write_text(HLO, encoding="utf-8")
    if command == "torch":
        pytest.importorskip("torch")
    if command == "onnx":
        helper = pytest.importorskip("onnx").helper
        x, y = (helper.make_tensor_value_info(name, 1, ["batch", 64]) for name in "xy")
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "model", [x], [y])
        (folder / "model.onnx").write_bytes(helper.make_model(graph).SerializeToString())


@pytest.mark.parametrize("line", [line for line in LINES if line != "calibrate"])
def test_command_line_examples(run, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-gpu.toml").write_text(
        (ROOT / "hardware_specs/t4.toml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    (tmp_path / "measured.json").write_text(
        (ROOT / "tests/reference/h200_stream_cpp.json").read_text(encoding="utf-8"), encoding="utf-8"
    )
    programs(tmp_path, line.split()[0])
    outcome = run(*shlex.split(line))
    assert (outcome.code, outcome.err) == (0, "")


def test_every_command_has_an_example():
    # that of calibrate needs a GPU, and is tested on a bench that stands for one
    assert {line.split()[0] for line in LINES} == set(commands.commands) - {"workshop"}
    assert "calibrate" in LINES
    assert "\nfusesim workshop\n" in README


def test_every_effect_is_explained():
    assert re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE) == list(EFFECTS)


def test_every_exit_code_is_listed():
    (codes,) = re.findall(r"^Exit codes: ([^.]*)\.$", README, re.MULTILINE)
    assert [int(code) for code in re.findall(r"\d+", codes)] == [0, BAD_INPUT, BAD_USAGE, INTERRUPTED]


def test_every_module_has_its_place():
    (listed,) = re.findall(r"^    app/.*?^$", README, re.MULTILINE | re.DOTALL)
    modules = {path.stem for path in (ROOT / "fusesim").glob("[a-z]*") if path.suffix in {".py", ""}}
    assert set(re.findall(r"\w+", listed)) >= modules


def test_the_terminal_shows_what_the_readme_shows(run):
    (block,) = blocks("console")
    command, _, expected = block.partition("\n")
    assert run(*shlex.split(command)[2:]).out.splitlines() == expected.splitlines()


def test_the_textbook_table(run):
    rows = re.findall(
        r"^\| 5 operations, ([\dx ]+) values(, in a graph)?.*?\| ([\d.]+) us.*?\| ([\d.]+) us", README, re.MULTILINE
    )
    assert len(rows) == 3
    for elements, graph, unfused, fused in rows:
        line = ("chain", "--ops", "5", "--elements", elements, "--launch", "graph" if graph else "stream")
        assert f"time {unfused} us {fused} us" in " ".join(run(*line).out.split())


def test_there_is_one_command_that_sets_up_and_tests():
    # .ci/run takes it from here
    (command,) = re.findall(r"^python3.* -m pytest -q$", README, re.MULTILINE)
    assert [step.split()[0] for step in command.split(" && ")] == ["python3.11", ".venv/bin/pip", ".venv/bin/python"]


def test_links_lead_somewhere():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert len(targets) > 2
    for target in targets:
        assert (ROOT / target).exists(), target
