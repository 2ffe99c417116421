"""A command line that is wrong gets one sentence on stderr, its exit code, and nothing else."""

import pytest

SHEET = """
name = "Example"
vendor = "other"
architecture = "Example"
[chip]
sms = { value = 40, source = "sheet" }
boost_clock = { value = 1500, unit = "MHz", source = "sheet" }
[memory]
bandwidth = { value = 448, unit = "GB/s", source = "sheet" }
[tensor.fp16]
rate = { value = 61.44, unit = "TFLOP/s", source = "sheet" }
flop_per_clock = { value = 1024, source = "sheet" }
[sources.sheet]
title = "Example datasheet"
url = "https://example.com/"
"""


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("chain --ops 0", "ops is 0; give a whole number from 1 to 1e06"),
        ("chain --ops -5", "ops is -5; give a whole number from 1 to 1e06"),
        ("chain --ops nan", 'ops is "nan"; give a whole number, or names such as add,mul,relu'),
        ("chain --ops inf", 'ops is "inf"; give a whole number, or names'),
        ("chain --ops 1" + 30 * "0", "ops is 1e30; give a whole number from 1 to 1e06"),
        ("chain --ops 1e30", 'ops is "1e30"; give a whole number, or names'),
        ("chain --ops " + 5000 * "9", 'ops is "999'),
        ("chain --ops 2.5", 'ops is "2.5"; give a whole number, or names'),
        ("chain --ops _", 'ops is "_"; give a whole number, or names'),
        ("chain --ops=", 'ops "" has an empty name'),
        ("chain --ops add,,mul", 'ops "add,,mul" has an empty name'),
        ("chain --ops add,mull", 'unknown op "mull"; did you mean "mul"?'),
        ("chain --elements 0", 'elements "0" is out of range; give 1 to 10^18'),
        ("chain --elements -1", 'elements "-1" is out of range'),
        ("chain --elements nan", 'elements "nan" is not a whole number; write e.g. 33554432, 2^25 or 8192x4096'),
        ("chain --elements inf", 'elements "inf" is not a whole number'),
        ("chain --elements 1e30", 'elements "1e30" is out of range'),
        ("chain --elements " + 5000 * "9", 'elements "999'),
        ("chain --elements 1.5", 'elements "1.5" is not a whole number'),
        ("chain --elements 8192,4096", 'elements "8192,4096" is not a whole number'),
        ("chain --elements=", 'elements "" is not a whole number'),
        ("chain --dtype bf61", 'unknown dtype "bf61"; did you mean "bf16"?'),
        ("chain --plot a\0b", 'cannot write "a b": embedded null byte'),
        ("chain --dtype=", 'unknown dtype ""; known: fp64'),
        ("chain --device h10-sxm", 'unknown device "h10-sxm"; did you mean "h100-sxm"?'),
        ("chain --device=", 'unknown device ""; known: '),
        ("chain --device ../h100-sxm", 'device "../h100-sxm" is a path, not a name'),
        ("chain --device h100-sxm.toml", 'device "h100-sxm.toml" is a path, not a name'),
        ("chain --device-file absent.toml", "absent.toml: cannot be read: No such file or directory"),
        ("chain --device-file .", ".: not a file; give the path of a device file"),
        ("chain --device-file=", ".: not a file"),
        ("chain --model textbok", 'unknown model "textbok"; did you mean "textbook"?'),
        ("chain --launch grahp", 'unknown launch mode "grahp"; did you mean "graph"?'),
        ("chain --path cud", 'unknown path "cud"; did you mean "cuda"?'),
        ("chain --inputs hot", 'unknown input state "hot"; known: cold, warm'),
        ("chain --row 3", "row does not divide elements"),
        ("chain --row x", '--row: "x" is not a whole number'),
        ("chain --ops add_row", "add_row and mul_row broadcast a row: give its length"),
        ("chain --graph-repeats 0", '--graph-repeats: "0" is out of range; give 1 to 10^9'),
        ("chain --graph-repeats 1e10", '--graph-repeats: "1e10" is out of range; give 1 to 10^9'),
        ("chain --launch-overhead 4ms/s", '--launch-overhead: unit "ms/s" is not a time'),
        ("chain --replay-overhead 1100ms", '--replay-overhead: "1100ms" is out of range; give 0 s to 1 s'),
        ("chain --host-interval -1us", '--host-interval: "-1us" is out of range; give 0 s to 1 s'),
        ("chain --ops 1000001", "ops is 1000001; give a whole number from 1 to 1e06"),
        ("chain --elements 0x10", 'elements "0x10" is hexadecimal, which is not read; write it in decimal'),
        ("chain --row 0xfF", '--row: "0xfF" is hexadecimal, which is not read; write it in decimal'),
        ("chain --device zzz", 'unknown device "zzz"; known: a10, '),
        ("chain --launch-overhead 4", '--launch-overhead: "4" has no unit; write e.g. "4 us"'),
        ("chain --launch-overhead=", '--launch-overhead: "" is not a time'),
        ("chain --launch-overhead 4ks", '--launch-overhead: unit "ks" is not a time'),
        ("chain --launch-overhead nans", '--launch-overhead: "nans" is not'),
        ("chain --launch-overhead -4us", '--launch-overhead: "-4us" is out of range; give 0 s to 1 s'),
        ("chain --replay-overhead infs", '--replay-overhead: "infs" is not'),
        ("chain --dram-bandwidth 3.35", '--dram-bandwidth: "3.35" has no unit; write e.g. "3.35 TB/s"'),
        ("chain --dram-bandwidth 3KB/s", '--dram-bandwidth: unit "KB/s" is not a bandwidth'),
        ("chain --dram-bandwidth 3.35Tb/s", '--dram-bandwidth: unit "Tb/s" is not a bandwidth'),
        ("chain --dram-bandwidth 0TB/s", '--dram-bandwidth: "0TB/s" is out of range; give 1 MB/s to 1 EB/s'),
        ("chain --host-interval 3us", "the textbook takes no host_interval"),
        ("roofline --device h10-sxm", 'unknown device "h10-sxm"; did you mean "h100-sxm"?'),
        ("roofline --ops=", 'ops "" has an empty name'),
        ("roofline --ops 5 --elements 0", 'elements "0" is out of range'),
        ("devices h10-sxm", 'unknown device "h10-sxm"; did you mean "h100-sxm"?'),
        ("devices ../h100-sxm", 'device "../h100-sxm" is a path, not a name'),
        ("devices --file absent.toml", "absent.toml: cannot be read"),
        ("devices h100-sxm --file x.toml", "give a device name or --file, not both"),
    ],
    ids=lambda part: part[:40],
)
@pytest.mark.parametrize("json", [False, True], ids=["text", "json"])
def test_bad_input_exits_1(run, tmp_path, line, sentence, json):
    outcome = run(*line.split(), *(["--json"] if json else []))
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err.startswith(f"fusesim: {sentence}")
    assert outcome.err.count("\n") == 1
    assert outcome.err.rstrip("\n").isprintable()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "Usage: fusesim"),  # help, since nothing was asked for
        ("chian", "No such command 'chian'"),
        ("--bogus", "No such option '--bogus'"),
        ("chain --opps 5", "No such option '--opps'"),
        ("chain --ops", "Option '--ops' requires an argument"),
        ("chain 5", "Got unexpected extra argument (5)"),
        ("roofline h100-sxm", "Got unexpected extra argument (h100-sxm)"),
        ("devices h100-sxm t4", "Got unexpected extra argument (t4)"),
        ("workshop --port eighty", "Invalid value for '--port'"),
        ("workshop --port 65536", "Invalid value for '--port'"),
        ("workshop --threads 0", "Invalid value for '--threads'"),
    ],
)
def test_a_line_that_cannot_be_parsed_exits_2(run, line, words):
    outcome = run(*line.split())
    assert outcome.code == 2
    assert outcome.out == ""
    assert words in outcome.err
    if line:
        assert outcome.err.startswith("fusesim: ")
        assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        ("bandwidth =", "bandwith =", 'memory.bandwith: unknown key; did you mean "bandwidth"?'),
        ('unit = "GB/s", ', "", 'memory.bandwidth: "448.0 " has no unit; write e.g. "3.35 TB/s"'),
        ('"GB/s"', '"GB"', 'memory.bandwidth: unit "GB" is not a bandwidth'),
        ("61.44", "122.88", "tensor.fp16.rate: 122.9 TFLOP/s stated, but SMs x clock x FLOP per clock gives 61.4"),
        ("448", "nan", "memory.bandwidth.value: Input should be a finite number"),
        ("448", "0", "memory.bandwidth.value: Input should be greater than 0"),
        ("[memory]", "[memory", "not valid TOML"),
    ],
)
@pytest.mark.parametrize("line", ["devices --file mine.toml", "chain --device-file mine.toml"])
def test_a_faulty_device_file_exits_1_and_names_the_key(run, tmp_path, line, right, wrong, sentence):
    (tmp_path / "mine.toml").write_text(SHEET, encoding="utf-8")
    assert run(*line.split()).code == 0
    assert SHEET.count(right) == 1
    (tmp_path / "mine.toml").write_text(SHEET.replace(right, wrong), encoding="utf-8")
    outcome = run(*line.split())
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"fusesim: mine.toml: {sentence}")
    assert outcome.err.count("\n") == 1


def test_a_sparse_peak_is_called_one(run, tmp_path):
    (tmp_path / "mine.toml").write_text(SHEET.replace("61.44", "122.88"), encoding="utf-8")
    assert run("devices", "--file", "mine.toml").err.endswith("; it looks like a sparse peak, give the dense one\n")
