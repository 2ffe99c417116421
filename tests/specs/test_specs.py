import math
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from fusesim.errors import HardwareSpecError
from fusesim.store import load_device_file, load_known_device, parse_device, specs_folder

FILES = sorted(specs_folder().glob("*.toml"))
EXPECTED = [
    "v100-sxm",
    "t4",
    "a10",
    "a10g",
    "a100-sxm-40gb",
    "a100-sxm-80gb",
    "a100-pcie-80gb",
    "l4",
    "l40",
    "l40s",
    "rtx-3090",
    "rtx-4090",
    "rtx-5090",
    "rtx-6000-ada",
    "h100-sxm",
    "h100-pcie",
    "h100-nvl",
    "h200-sxm",
    "gh200",
    "gh200-144gb",
    "b200",
    "gb200",
    "b300",
    "rtx-pro-6000-blackwell",
    "jetson-agx-orin",
    "mi210",
    "mi250x",
    "mi300x",
    "mi325x",
    "mi355x",
    "rx-7900-xtx",
]
DATA_CENTRE = [name for name in EXPECTED if not name.startswith(("rtx", "rx", "jetson"))]
TERA, MIB = 1e12, 2**20

every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def table(file):
    return tomllib.loads(file.read_text(encoding="utf-8"))


def test_every_expected_part_is_there():
    assert set(EXPECTED) <= {file.stem for file in FILES}


@every_file
def test_loads_under_the_name_of_its_file(file):
    profile = load_device_file(file)
    assert profile.id == file.stem
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", profile.id)


@every_file
def test_sources_are_exactly_those_used(file):
    profile = load_device_file(file)
    used = {key for _, figure in profile.figures() for entry in (figure, *figure.alternatives) for key in entry.source}
    assert used == set(profile.sources)


@every_file
def test_sources_have_an_address_or_say_that_there_is_none(file):
    for key, source in load_device_file(file).sources.items():
        plain = source.url in ("no public address recorded", "no address: the formula is in the note")
        assert plain or re.match(r"https?://[\w.-]+\.\w+", source.url), key


@every_file
def test_derived_figures_state_their_formula(file):
    for path, figure in load_device_file(file).figures():
        for entry in (figure, *figure.alternatives):
            assert "derived" not in entry.source or entry.note, path


@every_file
def test_the_cache_that_holds_intermediates_is_known(file):
    assert 1 * MIB <= load_device_file(file).cache_capacity <= 512 * MIB


@every_file
def test_binary_capacities_on_chip_decimal_ones_in_memory(file):
    content = table(file)
    assert content["memory"]["capacity"]["unit"] == "GB"
    on_chip = [content["cache"], content.get("sm", {})]
    units = {figure["unit"] for part in on_chip for figure in part.values() if figure.get("unit", "").endswith("B")}
    assert units <= {"KiB", "MiB"}


@every_file
def test_matrix_units_are_at_least_as_fast_as_vector_units(file):
    profile = load_device_file(file)
    assert profile.tensor
    for dtype in profile.vector.keys() & profile.tensor.keys():
        assert profile.tensor_rate(dtype) >= 0.995 * profile.vector_rate(dtype), dtype


@every_file
def test_narrower_types_are_never_slower_on_the_matrix_units(file):
    profile = load_device_file(file)
    rates = [profile.tensor_rate(dtype) for dtype in ("tf32", "bf16", "fp8", "fp4") if dtype in profile.tensor]
    assert rates == sorted(rates)


@every_file
def test_vector_peaks_are_checked_against_sms_and_clock(file):
    profile = load_device_file(file)
    assert profile.chip.sms
    assert profile.chip.boost_clock
    assert all(peak.flop_per_clock for peak in profile.vector.values())


@pytest.mark.parametrize("name", DATA_CENTRE)
def test_ridge_point_is_plausible(name):
    profile = load_known_device(name)
    half = "bf16" if "bf16" in profile.tensor else "fp16"
    assert 50 <= profile.tensor_rate(half) / profile.dram_bandwidth <= 500


def test_no_alias_is_an_id_or_another_alias():
    names = Counter(name for file in FILES for name in (file.stem, *table(file).get("aliases", [])))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("h100", "h100-sxm"),
        ("A100", "a100-sxm-80gb"),
        ("h200", "h200-sxm"),
        ("v100", "v100-sxm"),
        ("4090", "rtx-4090"),
        ("RTX_4090", "rtx-4090"),
        ("rtx5090", "rtx-5090"),
    ],
)
def test_usual_spellings_are_understood(alias, name):
    assert load_known_device(alias).id == name


# From the sheets, by hand.
@pytest.mark.parametrize(
    ("name", "bandwidth"),
    [
        ("h100-sxm", 3.35),
        ("h200-sxm", 4.8),
        ("a100-sxm-80gb", 2.039),
        ("a100-sxm-40gb", 1.555),
        ("a100-pcie-80gb", 1.935),
        ("v100-sxm", 0.9),
        ("t4", 0.32),
        ("l40s", 0.864),
        ("rtx-3090", 0.9362),
        ("rtx-4090", 1.008),
        ("rtx-5090", 1.792),
        ("mi250x", 1.6384),  # 3277 GB/s for the board of two dies
        ("mi300x", 5.3),
        ("mi325x", 6),
        ("mi355x", 8),
    ],
)
def test_bandwidth_is_the_printed_one(name, bandwidth):
    assert load_known_device(name).dram_bandwidth == pytest.approx(bandwidth * TERA, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "sms"),
    [
        ("v100-sxm", 80),
        ("a100-sxm-80gb", 108),
        ("a10g", 80),
        ("l4", 58),
        ("h100-sxm", 132),
        ("h100-pcie", 114),
        ("b200", 148),
        ("rtx-5090", 170),
        ("mi250x", 110),
        ("mi300x", 304),
        ("mi355x", 256),
    ],
)
def test_sms_are_those_of_one_device(name, sms):
    assert load_known_device(name).chip.sms.si == sms


@pytest.mark.parametrize(
    ("name", "mib"),
    [
        ("a100-sxm-80gb", 40),
        ("h100-sxm", 50),
        ("h200-sxm", 60),
        ("b200", 126.5),
        ("rtx-4090", 72),
        ("l40s", 96),
        ("mi250x", 8),
        ("mi300x", 256),
        ("mi325x", 256),
        ("rx-7900-xtx", 96),
    ],
)
def test_cache_capacity_counts_the_last_level(name, mib):
    assert load_known_device(name).cache_capacity == mib * MIB


@pytest.mark.parametrize(
    ("name", "dtype", "teraflops"),
    [
        ("v100-sxm", "fp16", 125),
        ("a100-sxm-80gb", "bf16", 312),
        ("h100-sxm", "bf16", 989.4),  # 1979 is with sparsity
        ("h100-nvl", "bf16", 835.5),
        ("h200-sxm", "fp8", 1979),
        ("l4", "fp16", 121),  # 242 is with sparsity
        ("l40", "bf16", 181.05),
        ("l40s", "bf16", 362.05),
        ("b200", "fp4", 9000),
        ("rtx-4090", "fp16", 165.2),  # FP32 accumulation
        ("mi250x", "fp16", 191.5),  # 383 for the board
        ("mi300x", "fp16", 1307.4),
    ],
)
def test_matrix_peak_is_the_dense_one(name, dtype, teraflops):
    assert load_known_device(name).tensor_rate(dtype) == pytest.approx(teraflops * TERA, rel=1e-12)


def test_figures_that_nobody_sourced_are_absent():
    assert math.isnan(load_known_device("t4").vector_rate("bf16"))  # no native bf16 before Ampere
    assert math.isnan(load_known_device("b300").tensor_rate("int8"))


VALID = """
name = "Example"
vendor = "other"
architecture = "Example"

[chip]
sms = { value = 40, source = "sheet" }
boost_clock = { value = 1500, unit = "MHz", source = "sheet" }

[memory]
bandwidth = { value = 448, unit = "GB/s", source = "sheet" }
bus_width = { value = 256, unit = "bit", source = "sheet" }
pin_rate = { value = 14, unit = "Gb/s", source = "sheet" }

[tensor.fp16]
rate = { value = 61.44, unit = "TFLOP/s", source = "sheet" }
flop_per_clock = { value = 1024, source = "sheet" }

[sources.sheet]
title = "Example datasheet"
url = "https://example.com/"
"""

BANDWIDTH = 'bandwidth = { value = 448, unit = "GB/s", source = "sheet" }'


def test_the_file_that_the_faults_are_planted_in_is_valid(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(VALID, encoding="utf-8")
    assert load_device_file(file).dram_bandwidth == 448e9


@pytest.mark.parametrize(
    ("right", "wrong", "key", "words"),
    [
        (BANDWIDTH, BANDWIDTH.replace("bandwidth", "bandwith"), "memory.bandwith", 'did you mean "bandwidth"?'),
        ("boost_clock", "bost_clock", "chip.bost_clock", 'did you mean "boost_clock"?'),
        (BANDWIDTH, BANDWIDTH.replace('unit = "GB/s", ', ""), "memory.bandwidth", "has no unit"),
        ("GB/s", "GB", "memory.bandwidth", 'unit "GB" is not a bandwidth; write e.g. "3.35 TB/s"'),
        (BANDWIDTH, "", "memory.bandwidth", "missing; add it"),
        ("61.44", "122.88", "tensor.fp16.rate", "looks like a sparse peak, give the dense one"),
        ("61.44", "70", "tensor.fp16.rate", "SMs x clock x FLOP per clock gives 61.4 TFLOP/s"),
        ('"GB/s", source = "sheet"', '"GB/s", source = "page"', "memory.bandwidth", '"page" is not in [sources]'),
        ("448", "-448", "memory.bandwidth.value", "greater than 0"),
        ("448", "0", "memory.bandwidth.value", "greater than 0"),
        ("448", "nan", "memory.bandwidth.value", "finite"),
        ("448", "inf", "memory.bandwidth.value", "finite"),
        ("448", '"fast"', "memory.bandwidth.value", "number"),
        ("448", "500", "memory.bandwidth", "bus width x pin rate gives 448.0 GB/s"),
        ('"other"', '"acme"', "vendor", "'nvidia', 'amd'"),
        ("[tensor.fp16]", "[tensor.half]", "tensor.half", "'fp16'"),
        ('name = "Example"\n', 'name = "Example"\nid = "other"\n', "id", "remove it"),
    ],
    ids=lambda part: re.sub(r"\W+", "-", part)[:24],
)
def test_a_planted_fault_is_named_with_file_and_key(tmp_path, right, wrong, key, words):
    assert right in VALID
    file = tmp_path / "mine.toml"
    file.write_text(VALID.replace(right, wrong, 1), encoding="utf-8")
    with pytest.raises(HardwareSpecError) as caught:
        load_device_file(file)
    message = str(caught.value)
    assert message.startswith("mine.toml: ")
    assert key in message
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize("content", [b"name = ", b"[memory\n", b"a = 1\na = 2\n"])
def test_what_is_not_toml_is_refused(tmp_path, content):
    file = tmp_path / "mine.toml"
    file.write_bytes(content)
    with pytest.raises(HardwareSpecError, match=r"^mine\.toml: not valid TOML"):
        load_device_file(file)


def test_what_is_no_text_is_refused(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(HardwareSpecError, match=r"^mine\.toml: not text in UTF-8"):
        load_device_file(file)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(HardwareSpecError, match=r"absent\.toml: cannot be read"):
        load_device_file(tmp_path / "absent.toml")


def test_the_example_of_the_readme_is_valid():
    readme = (specs_folder() / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    assert parse_device(tomllib.loads(example), "my-gpu", "README.md").dram_bandwidth == 448e9


def test_the_folder_holds_nothing_else():
    assert {file.suffix for file in Path(specs_folder()).iterdir() if file.is_file()} == {".toml", ".md"}
    assert {file.name for file in Path(specs_folder()).iterdir() if file.is_dir()} == {"calibrations", "kernels"}
