import math
import stat
import sys

import pytest

from fusesim.calibrate import environment

SMI = """#!{python}
import sys, time
query = sys.argv[1]
if "utilization" in query:
    print("37")
elif "power.draw" in query:
    print("100.5, 1980, 41\\n200.5, 1200, 43", flush=True)
    time.sleep(30)
else:
    print("580.1, 96.00, 1980, 3201, 345, 3201, 700.00, [N/A]")
"""


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """Put something in the place of nvidia-smi."""

    def put(text=SMI):
        file = tmp_path / "nvidia-smi"
        file.write_text(text.format(python=sys.executable), encoding="utf-8")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))

    return put


def test_what_the_driver_says_is_in_base_units(smi):
    smi()
    facts = environment.driver_facts("0000:01:00.0")
    assert facts["driver"] == 580.1
    assert facts["clock_max"] == 1980e6
    assert facts["power_limit"] == 700
    assert "persistence" not in facts  # it does not say


def test_load(smi):
    smi()
    assert environment.load() == 37


def test_power_and_clock_are_sampled(smi, tmp_path):
    smi(SMI.replace("time.sleep(30)", f"open({str(tmp_path / 'said')!r}, 'w'); time.sleep(30)"))
    with environment.sampled("") as samples:
        while not (tmp_path / "said").exists():
            pass
    assert samples["power_median"] == 150.5
    assert samples["clock_lowest"] == 1200e6


@pytest.mark.parametrize("text", ["#!{python}\nraise SystemExit(9)\n", "#!{python}\nprint('No devices')\n"])
def test_a_driver_that_says_nothing_is_left_out(smi, text):
    smi(text)
    assert environment.driver_facts("") == {}
    assert math.isnan(environment.load())


def test_without_nvidia_smi(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.driver_facts("") == {}
    assert math.isnan(environment.load())
    with environment.sampled("") as samples:
        pass
    assert samples == {}


def test_summary_of_samples():
    lines = ["100, 1980, 40", "300, 1000, 44", "garbage", "200, [N/A], 42"]
    found = environment.summarise(lines)
    assert (found["power_median"], found["power_lowest"], found["power_highest"]) == (200, 100, 300)
    assert (found["clock_median"], found["clock_samples"]) == (1490e6, 2)
    assert environment.summarise([]) == {}


def test_the_host_says_what_it_is():
    facts = environment.host_facts("1.2.3")
    assert facts["fusesim"] == "1.2.3"
    assert facts["cpu"]
    assert facts["python"].count(".") == 2


def test_a_gpu_as_plain_values():
    gpu = environment.Gpu(
        name="A", sms=2, memory=3, cache=4, capability="9.0", bus="b", versions={"cupy": "14.2.0", "nvrtc": "13.0"}
    )
    assert gpu.environment() == {
        "gpu": "A",
        "sms": 2,
        "memory_bytes": 3,
        "cache_bytes": 4,
        "compute_capability": "9.0",
        "cupy": "14.2.0",
        "nvrtc": "13.0",
    }
