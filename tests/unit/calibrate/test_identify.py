import pytest

from fusesim.calibrate.environment import Gpu
from fusesim.calibrate.identify import identify
from fusesim.errors import MeasurementError
from fusesim.store import device_ids, load_known_device

PROFILES = [load_known_device(name) for name in device_ids()]


def gpu(name, sms, memory):
    return Gpu(name=name, sms=sms, memory=int(memory), cache=1, capability="9.0", bus="", versions={})


@pytest.mark.parametrize(
    ("name", "sms", "memory", "device"),
    [
        ("NVIDIA H200", 132, 150.75e9, "h200-sxm"),
        ("NVIDIA H100 80GB HBM3", 132, 85.0e9, "h100-sxm"),
        ("NVIDIA H100 PCIe", 114, 85.0e9, "h100-pcie"),
        ("NVIDIA H100 NVL", 132, 100.0e9, "h100-nvl"),
        ("NVIDIA A100-SXM4-80GB", 108, 85.1e9, "a100-sxm-80gb"),
        ("NVIDIA A100-SXM4-40GB", 108, 42.3e9, "a100-sxm-40gb"),
        ("NVIDIA A100 80GB PCIe", 108, 85.1e9, "a100-pcie-80gb"),
        ("NVIDIA GH200 480GB", 132, 102e9, "gh200"),
        ("NVIDIA GH200 144G HBM3e", 132, 153e9, "gh200-144gb"),
        ("NVIDIA B200", 148, 191.5e9, "b200"),
        ("NVIDIA GB200", 148, 198e9, "gb200"),
        ("Tesla T4", 40, 15.8e9, "t4"),
        ("Tesla V100-SXM2-32GB", 80, 34.1e9, "v100-sxm"),
        ("NVIDIA L4", 58, 23.5e9, "l4"),
        ("NVIDIA L40", 142, 47.6e9, "l40"),
        ("NVIDIA L40S", 142, 47.6e9, "l40s"),
        ("NVIDIA A10", 72, 23.7e9, "a10"),
        ("NVIDIA A10G", 80, 23.6e9, "a10g"),
        ("NVIDIA GeForce RTX 4090", 128, 25.3e9, "rtx-4090"),
        ("NVIDIA RTX 6000 Ada Generation", 142, 51e9, "rtx-6000-ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 188, 102e9, "rtx-pro-6000-blackwell"),
    ],
)
def test_a_gpu_is_found_by_what_its_driver_says(name, sms, memory, device):
    assert identify(gpu(name, sms, memory), PROFILES).id == device


@pytest.mark.parametrize(
    ("name", "sms", "memory"),
    [
        ("NVIDIA H200 NVL", 132, 150.75e9),  # another board than the one on SXM
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 76, 17e9),  # another chip
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 188, 102e9),
        ("Quadro RTX 6000", 72, 25e9),
        ("NVIDIA H200", 66, 75e9),  # half of one, by MIG
        ("GRID", 132, 150e9),
    ],
)
def test_what_only_looks_like_one_is_refused(name, sms, memory):
    with pytest.raises(MeasurementError, match=r"none of the devices that fusesim knows; .*--device-file FILE$"):
        identify(gpu(name, sms, memory), PROFILES)


def test_two_files_of_one_gpu_are_a_question():
    twin = load_known_device("h200-sxm").model_copy(update={"id": "h200-mine"})
    with pytest.raises(MeasurementError, match=r"may be h200-sxm or h200-mine; say which with --device$"):
        identify(gpu("NVIDIA H200", 132, 150e9), [load_known_device("h200-sxm"), twin])
