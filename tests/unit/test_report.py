import pytest
from rich.console import Console

import fusesim
from fusesim import report
from fusesim.api import ceilings
from fusesim.hardware import Alternative, Count


def lines(table, width=200):
    console = Console(width=width)
    with console.capture() as capture:
        console.print(table)
    return [" ".join(line.split()) for line in capture.get().splitlines()]


def test_chain_table():
    printed = lines(report.chain_table(fusesim.price_chain(5, 8192 * 4096)))
    assert printed == [
        "unfused fused",
        "time 220.3 us 44.1 us",
        "kernels 5 1",
        "bytes moved 671.1 MB 134.2 MB",
        "launches alone 20.0 us 4.0 us",
        "memory alone 200.3 us 40.1 us",
        "arithmetic alone 2.51 us 2.51 us",
        "launch share 9 % 9 %",
        "arithmetic intensity 0.25 FLOP/B 1.25 FLOP/B",
        "peak memory above inputs 134.2 MB 67.1 MB",
        "bound dram dram",
    ]


def test_both_figures_of_a_row_are_in_one_unit():
    # 1.2 ms against 0.2 ms, not 1.2 ms against 244 us
    printed = lines(report.chain_table(fusesim.price_chain(5, 200_000_000)))
    assert "time 1.21 ms 0.24 ms" in printed


@pytest.mark.parametrize(
    ("ops", "elements", "time", "moved"),
    [
        (50, 2**25, "2.20 ms 0.04 ms", "6.71 GB 0.13 GB"),  # a fiftieth keeps the unit
        (1000, 2**25, "44.1 ms 44.1 us", "134.2 GB 134.2 MB"),
        (10**6, 4096, "4.0 s 4.0 us", "16.4 GB 16.4 kB"),
    ],
)
def test_a_figure_that_one_unit_would_leave_without_digits_has_its_own(ops, elements, time, moved):
    printed = lines(report.chain_table(fusesim.price_chain(ops, elements)))
    assert f"time {time}" in printed
    assert f"bytes moved {moved}" in printed


def test_nothing_counts_in_the_unit_of_what_is_beside_it():
    printed = lines(report.chain_table(fusesim.price_chain(5, 4096, launch_overhead=0)))
    assert "launches alone 0.00 s 0.00 s" in printed


def test_one_op_has_nothing_to_save():
    for model in ("textbook", "calibrated"):
        verdict = report.chain_verdict(fusesim.price_chain(1, 4096, model=model))
        assert verdict == "nothing to save"


def test_heading_and_verdict():
    price = fusesim.price_chain(5, 8192 * 4096, device="h100")
    assert report.chain_heading(price, "5 ops") == (
        '5 ops, 33 554 432 bf16 elements, NVIDIA H100 SXM5 80 GB (asked for as "h100"), stream, textbook'
    )
    assert report.chain_verdict(price) == "fusing saves 176.3 us: 5.00x"


def test_device_list_has_a_line_per_device():
    printed = lines(report.device_list([fusesim.device("h100-sxm"), fusesim.device("t4")]))
    assert len(printed) == 3
    assert printed[1].startswith("h100-sxm NVIDIA H100 SXM5 80 GB h100 ")
    assert "3.35 TB/s 50 MiB 66.9 TFLOP/s 989.4 TFLOP/s" in printed[1]
    assert printed[2].endswith("unknown")  # a T4 has no bf16 matrix units


def test_device_list_fits_a_small_terminal_without_cutting_an_id():
    profiles = [fusesim.device(name) for name in fusesim.devices()]
    printed = lines(report.device_list(profiles, names=False), width=80)
    assert [line.split()[0] for line in printed[1:]] == list(fusesim.devices())


def test_device_figures_carry_their_source_and_what_others_say():
    printed = lines(report.device_figures(fusesim.device("h100-sxm")))
    (bandwidth,) = (line for line in printed if line.startswith("memory.bandwidth"))
    assert "3.35 TB/s h100-datasheet" in bandwidth
    assert "also 3.352 TB/s (techpowerup)" in bandwidth


def test_figures_stand_as_their_file_states_them():
    device = fusesim.device("h100-sxm")
    stated = Count(value=1234567.0, source="mine", alternatives=(Alternative(value=1230000.5, source="other"),))
    chip = device.chip.model_copy(update={"sms": stated})
    printed = lines(report.device_figures(device.model_copy(update={"chip": chip})))
    assert "chip.sms 1234567 mine also 1230000.5 (other)" in printed
    assert not any("  " in line.strip() for line in printed)


def test_every_source_that_a_figure_names_is_listed():
    device = fusesim.device("h100-sxm")
    printed = "\n".join(lines(report.device_sources(device)))
    for _, figure in device.figures():
        assert all(key in printed for key in figure.source)


def test_roofline_table():
    printed = lines(report.roofline_table(ceilings("h100-sxm")))
    assert "fp32 66.9 TFLOP/s 20 FLOP/B" in printed
    assert "bf16 tensor 989.4 TFLOP/s 295 FLOP/B" in printed


@pytest.mark.parametrize(("device", "time"), [("h100-sxm", "2.51 us"), ("t4", "20.6 us")])
def test_roofline_points(device, time):
    # 5 FLOP on each of 33 554 432 elements at 66.9 and 8.1 TFLOP/s
    printed = lines(report.roofline_points(fusesim.price_chain(5, 8192 * 4096, device=device)))
    assert printed[1].startswith("unfused 0.25 FLOP/B")
    assert printed[2].startswith("fused 1.25 FLOP/B")
    assert printed[2].endswith(f"{time} dram")
