import json

import pytest

import fusesim


def test_ceilings_and_ridge_points(run):
    outcome = run("roofline", "--device", "h100-sxm")
    assert outcome.code == 0
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert lines[0] == "NVIDIA H100 SXM5 80 GB: device memory 3.35 TB/s"
    assert "fp32 66.9 TFLOP/s 20 FLOP/B" in lines  # 66.9 / 3.35
    assert "bf16 tensor 989.4 TFLOP/s 295 FLOP/B" in lines  # dense: 989.4 / 3.35


def test_a_chain_before_and_after_fusion(run):
    lines = [" ".join(line.split()) for line in run("roofline", "--ops", "5").out.splitlines()]
    assert "unfused 0.25 FLOP/B 200.3 us 2.51 us dram" in lines  # 1 FLOP per 2 B read and 2 B written
    assert "fused 1.25 FLOP/B 40.1 us 2.51 us dram" in lines  # 5 FLOP per 4 B


def test_json(run):
    record = json.loads(run("roofline", "--json").out)
    assert record["device"] == "h100-sxm"
    assert record["dram_bandwidth"] == 3.35e12
    fp32 = next(ceiling for ceiling in record["ceilings"] if ceiling["name"] == "fp32")
    assert fp32["ridge_point"] == pytest.approx(fp32["flop_rate"] / 3.35e12)
    assert "chain" not in record


def test_json_with_a_chain(run):
    line = ("roofline", "--ops", "add_row,mul", "--elements", "4096", "--row", "64", "--dtype", "fp32", "--json")
    expected = fusesim.price_chain(["add_row", "mul"], 4096, row=64, dtype="fp32")
    assert json.loads(run(*line).out)["chain"] == expected.to_dict()


def test_every_device_has_a_roofline(run):
    for name in fusesim.devices():
        assert run("roofline", "--device", name).code == 0
