import sys

import pytest

import fusesim


def test_without_pytorch_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(fusesim.InputError, match=r"install it with: pip install 'fusesim\[torch\]'"):
        fusesim.from_torch(abs, 1)
