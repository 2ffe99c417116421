"""Sentences begin with a capital, names in code do not."""

import pytest

from app.fields import sentence


@pytest.mark.parametrize(
    "text",
    [
        "sm.fp64_per_clock: no unit",
        "transformer_block: it takes hidden",
        "mul_1 and add_2",
        "a.json is empty",
        "h200-sxm",
    ],
)
def test_a_name_in_code_is_left_as_it_is(text):
    assert sentence(text) == f"{text}."


@pytest.mark.parametrize(
    "text", ["fusing saves 3 us", "memory-bound: fused moves 1 MB", "both take mul_1 up", "what is it?"]
)
def test_any_other_sentence_begins_with_a_capital(text):
    assert sentence(text)[0] == text[0].upper()
    assert sentence(text)[1:].startswith(text[1:])
