"""Frontends cost nothing before they are asked for, and say what to install."""

import subprocess
import sys

import pytest

import fusesim


def test_importing_fusesim_loads_no_frontend_and_no_optional_package():
    code = (
        "import sys, fusesim; "
        "found = {name for name in sys.modules if name.split('.')[0] in {'onnx', 'torch'}}; "
        "slow = ('fusesim.frontends.trace', 'fusesim.frontends.onnx', 'fusesim.frontends.hlo'); "
        "found |= {name for name in sys.modules if name.startswith(slow)}; "
        "sys.exit(str(found) if found else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["from_hlo", "from_onnx", "from_trace", "plan_from_hlo", "read_trace"])
def test_frontends_are_reached_by_name(name):
    assert callable(getattr(fusesim, name))
    assert name in fusesim.__all__


def test_an_unknown_name_stays_unknown():
    with pytest.raises(AttributeError, match="no attribute 'from_nothing'"):
        _ = fusesim.from_nothing


def test_without_onnx_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(fusesim.InputError, match=r"install it with: pip install 'fusesim\[onnx\]'"):
        fusesim.from_onnx(b"")
