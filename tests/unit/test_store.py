"""Finding devices by name. What a device file may say is tested in tests/specs."""

import copy
import os

import pytest

from fusesim import store
from fusesim.errors import HardwareSpecError, InputError


def test_a_device_is_known_by_its_files_name():
    assert "h100-sxm" in store.device_ids()
    assert store.device_ids() == tuple(sorted(path.stem for path in store.specs_folder().glob("*.toml")))


@pytest.mark.parametrize("name", ["h100-sxm", "H100-SXM", " h100_sxm "])
def test_case_and_underscores_do_not_matter(name):
    device = store.load_known_device(name)
    assert (device.id, device.requested_as) == ("h100-sxm", None)


def test_an_alias_resolves_and_says_so():
    device = store.load_known_device("H100")
    assert (device.id, device.requested_as) == ("h100-sxm", "h100")


def test_a_shipped_device_is_one_by_any_of_its_names():
    known, alias = store.load_known_device("h100-sxm"), store.load_known_device("h100")
    assert store.is_shipped(known)
    assert store.is_shipped(alias)
    assert store.is_shipped(copy.deepcopy(alias))
    assert not store.is_shipped(known.model_copy(update={"id": "mine"}))
    assert not store.is_shipped(alias.model_copy(update={"memory": store.load_known_device("t4").memory}))


def test_no_two_devices_share_a_name():
    listed = [alias for name in store.device_ids() for alias in store.load_known_device(name).aliases]
    assert len(listed) == len(set(listed))
    assert not set(listed) & set(store.device_ids())


@pytest.mark.parametrize("name", ["./h100-sxm", "../hardware_specs/h100-sxm", "h100-sxm.toml", "/etc/passwd", r"a\b"])
def test_a_path_is_no_name(name):
    with pytest.raises(InputError) as caught:
        store.load_known_device(name)
    assert str(caught.value).startswith(f'device "{name}" is a path, not a name; load your own file with')


def test_an_unknown_device_gets_a_suggestion():
    with pytest.raises(InputError, match='^unknown device "h10-sxm"; did you mean "h100-sxm"\\?$'):
        store.load_known_device("h10-sxm")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("value = " + "9" * 5000, "not valid TOML"),  # Python reads no number of 5000 digits
        ("value = " + "[" * 50_000, "not valid TOML"),  # nor nests without end
        ("#" * (store.MAX_SPEC_SIZE + 1), "larger than 1 MiB, so not a device file"),
    ],
    ids=["digits", "nesting", "size"],
)
def test_hostile_files_are_refused(tmp_path, content, complaint):
    file = tmp_path / "mine.toml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(HardwareSpecError) as caught:
        store.load_device_file(file)
    assert str(caught.value).startswith(f"mine.toml: {complaint}")


def test_only_regular_files_are_read(tmp_path):
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)  # reading it would wait for ever
    for path in (pipe, tmp_path):
        with pytest.raises(HardwareSpecError, match="not a file; give the path of a device file$"):
            store.load_device_file(path)


@pytest.fixture
def table():
    return {
        "name": "Example",
        "vendor": "other",
        "architecture": "Example",
        "memory": {"bandwidth": {"value": 3.35, "unit": "TB/s", "source": "sheet"}},
        "sources": {"sheet": {"title": "Example datasheet", "url": "https://example.com/"}},
    }


def test_of_several_faults_the_first_is_told_and_the_rest_are_counted(table):
    table["name"] = 3
    table["vendor"] = "acme"
    with pytest.raises(HardwareSpecError, match=r"^mine.toml: name: .* \(1 more\)$"):
        store.parse_device(table, "mine", "mine.toml")
    table["vendor"] = "other"
    with pytest.raises(HardwareSpecError, match=r"^mine.toml: name: Input should be a valid string$"):
        store.parse_device(table, "mine", "mine.toml")


def test_a_misspelt_key_is_told_before_the_key_that_it_leaves_missing(table):
    table["memory"]["bandwith"] = table["memory"].pop("bandwidth")
    with pytest.raises(
        HardwareSpecError, match=r'memory.bandwith: unknown key; did you mean "bandwidth"\? \(1 more\)$'
    ):
        store.parse_device(table, "mine", "mine.toml")


@pytest.mark.parametrize("value", [True, "3.35", None, [3.35]])
def test_a_figure_is_a_number(table, value):
    assert store.parse_device(table, "mine", "mine.toml").dram_bandwidth == 3.35e12
    table["memory"]["bandwidth"]["value"] = value
    with pytest.raises(HardwareSpecError, match=r"^mine.toml: memory.bandwidth.value: Input should be a valid number"):
        store.parse_device(table, "mine", "mine.toml")
