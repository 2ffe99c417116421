"""Reading is the inverse of writing, and nothing that a user types can break the reader."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusesim import units
from fusesim.cli.shared import parse_ops
from fusesim.errors import InputError
from fusesim.units import SIZE, TIME, format_exact, format_quantity, parse, parse_elements

DIMENSIONS = [entry for entry in vars(units).values() if isinstance(entry, units.Dimension)]
dimensions = st.sampled_from(DIMENSIONS)
quantities = st.text(alphabet="0123456789.eE+-kKMGTPimunpBbsFLOPHz/ =#:\N{MICRO SIGN}", max_size=20)


def test_every_dimension_is_drawn():
    assert {TIME, SIZE} < set(DIMENSIONS)
    assert len(DIMENSIONS) >= 11


@given(st.floats(allow_nan=False, allow_infinity=False), dimensions)
def test_exact_text_is_read_back_to_the_last_bit(value, dimension):
    assert parse(format_exact(value, dimension), dimension) == value


@given(st.integers(-15, 20), st.floats(1, 10), dimensions)
def test_exact_text_in_every_decade(exponent, mantissa, dimension):
    value = mantissa * 10.0**exponent
    assert parse(format_exact(value, dimension), dimension) == value


@given(st.integers(0, 20), st.floats(1, 10), dimensions)
def test_text_for_people_is_read_back_to_its_digits(exponent, mantissa, dimension):
    # two decimals below 10, one from there on: at worst 0.005 in 1
    value = mantissa * 10.0 ** (exponent - 12 if dimension.small else exponent)
    assert parse(format_quantity(value, dimension), dimension) == pytest.approx(value, rel=0.0051)


@given(st.integers(1, units.MAX_ELEMENTS))
def test_element_counts_are_read_back(elements):
    assert parse_elements(str(elements)) == elements
    assert parse_elements(f"{elements:,}") == elements
    assert parse_elements(f"{elements:_}") == elements
    if elements < units.LONG_COUNT:
        assert parse_elements(units.format_count(elements)) == elements


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=6))
def test_shapes_are_multiplied(shape):
    product = 1
    for length in shape:
        product *= length
    assert parse_elements("x".join(map(str, shape))) == product


@given(st.text() | quantities, dimensions)
def test_any_text_is_a_quantity_or_one_sentence(text, dimension):
    try:
        value = parse(text, dimension)
    except InputError as error:
        assert str(error).isprintable()  # noqa: PT017 - one line
    else:
        assert json.dumps(value, allow_nan=False)


@given(st.text() | st.text(alphabet="0123456789.eExX*^ ,_-", max_size=20))
def test_any_text_is_a_size_or_one_sentence(text):
    try:
        elements = parse_elements(text)
    except InputError as error:
        assert str(error).isprintable()  # noqa: PT017
    else:
        assert type(elements) is int
        assert 1 <= elements <= units.MAX_ELEMENTS


@given(st.text() | st.text(alphabet="0123456789.eE_+-,adm ", max_size=20))
def test_any_text_is_a_chain_or_one_sentence(text):
    try:
        ops = parse_ops(text)
    except InputError as error:
        assert str(error).isprintable()  # noqa: PT017
    else:
        assert isinstance(ops, int) or all(ops)
