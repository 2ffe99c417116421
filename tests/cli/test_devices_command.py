import json

import fusesim


def test_the_list_names_every_device(run):
    outcome = run("devices")
    assert outcome.code == 0
    first, *rest = outcome.out.splitlines()
    assert first.split()[:3] == ["id", "name", "also"]
    assert [line.split()[0] for line in rest] == list(fusesim.devices())  # a line each, however many aliases


def test_one_device_with_its_sources(run):
    outcome = run("devices", "h100-sxm")
    assert outcome.code == 0
    assert outcome.out.startswith("h100-sxm: NVIDIA H100 SXM5 80 GB, Hopper\n")
    text = " ".join(outcome.out.split())
    assert "memory.bandwidth 3.35 TB/s h100-datasheet" in text
    assert "https://www.nvidia.com/en-us/data-center/h100/" in text


def test_an_alias_says_what_it_is_taken_to_be(run):
    assert run("devices", "h100").out.startswith('"h100" is taken to be h100-sxm\n')


def test_a_file_of_ones_own_is_checked(run):
    from fusesim.store import specs_folder  # noqa: PLC0415

    outcome = run("devices", "--file", specs_folder() / "t4.toml")
    assert outcome.code == 0
    assert "well formed, sources resolve, peaks agree with their factors" in outcome.out


def test_json_of_the_list_and_of_one(run):
    listed = json.loads(run("devices", "--json").out)
    assert [device["id"] for device in listed] == list(fusesim.devices())
    one = json.loads(run("devices", "h100-sxm", "--json").out)
    assert one == next(device for device in listed if device["id"] == "h100-sxm")
    assert one["memory"]["bandwidth"]["value"] == 3.35
    assert one["memory"]["bandwidth"]["unit"] == "TB/s"
