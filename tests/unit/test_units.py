import math

import pytest

from fusesim import units
from fusesim.errors import InputError
from fusesim.units import (
    BANDWIDTH,
    COUNT,
    FLOP_RATE,
    FLOPS,
    FREQUENCY,
    INTENSITY,
    PIN_RATE,
    SIZE,
    TIME,
    format_capacity,
    format_count,
    format_exact,
    format_quantity,
    format_ratio,
    format_share,
    parse,
    parse_elements,
)


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("3.35 TB/s", BANDWIDTH, 3.35e12),
        ("3350GB/s", BANDWIDTH, 3.35e12),
        ("4us", TIME, 4e-6),
        ("4 us", TIME, 4e-6),
        ("4 \N{MICRO SIGN}s", TIME, 4e-6),
        ("4 \N{GREEK SMALL LETTER MU}s", TIME, 4e-6),
        (" 4e-6 s ", TIME, 4e-6),
        ("0 s", TIME, 0),
        ("-4 us", TIME, -4e-6),  # what a negative time means is the caller's to decide
        ("50 MiB", SIZE, 50 * 1024**2),
        ("50 MB", SIZE, 50 * 1000**2),
        ("67 TFLOP/s", FLOP_RATE, 67e12),
        ("1979 TOP/s", FLOP_RATE, 1979e12),  # integer peaks are printed so
        ("168 MFLOP", FLOPS, 168e6),
        ("1755 MHz", FREQUENCY, 1755e6),
        ("5.2 Gb/s", PIN_RATE, 5.2e9),
        ("0.25 FLOP/B", INTENSITY, 0.25),
        ("132", COUNT, 132),
        ("3,350 GB/s", BANDWIDTH, 3.35e12),
        ("1,234,567.5 B", SIZE, 1234567.5),
        ("3_350 GB/s", BANDWIDTH, 3.35e12),
        ("6E3 GB/s", BANDWIDTH, 6e12),  # a power of ten and a prefix
        ("6e-3 TB/s", BANDWIDTH, 6e9),
        ("1e3", COUNT, 1000),
    ],
)
def test_parse(text, dimension, value):
    assert parse(text, dimension) == value


@pytest.mark.parametrize("power", range(7))
def test_decimal_and_binary_prefixes_are_never_confused(power):
    decimal, binary = (("", "k", "M", "G", "T", "P", "E")[power], ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")[power])
    assert parse(f"1 {decimal}B", SIZE) == 1000**power
    assert parse(f"1 {binary}B", SIZE) == 1024**power


@pytest.mark.parametrize(
    ("text", "dimension", "complaint"),
    [
        ("1 KB", SIZE, 'unit "KB" is not a size'),  # 1000 or 1024?
        ("3 KB/s", BANDWIDTH, 'unit "KB/s" is not a bandwidth'),
        ("1 kiB", SIZE, 'unit "kiB" is not a size'),
        ("1 mB", SIZE, 'unit "mB" is not a size'),  # no thousandth of a byte
        ("1 Mb", SIZE, 'unit "Mb" is not a size'),  # bits
        ("3.35 Tb/s", BANDWIDTH, 'unit "Tb/s" is not a bandwidth'),
        ("3.35 TB", BANDWIDTH, 'unit "TB" is not a bandwidth'),
        ("4 ks", TIME, 'unit "ks" is not a time'),
        ("4 Ms", TIME, 'unit "Ms" is not a time'),
        ("1 MiHz", FREQUENCY, 'unit "MiHz" is not a frequency'),  # binary prefixes count bytes only
        ("1 TFLOPS", FLOP_RATE, 'unit "TFLOPS" is not a FLOP rate'),
        ("4 ms/s", TIME, 'unit "ms/s" is not a time'),  # as it was written, prefix and all
        ("-4.5e-3kB", TIME, 'unit "kB" is not a time'),
        ("4", TIME, '"4" has no unit'),
        ("0", SIZE, '"0" has no unit'),
        ("", TIME, '"" is not a time'),
        ("fast", BANDWIDTH, '"fast" is not a bandwidth'),
        ("4 us us", TIME, '"4 us us" is not a time'),
        ("nan s", TIME, '"nan s" is not finite'),
        ("inf TB/s", BANDWIDTH, '"inf TB/s" is not finite'),
        ("3,35 TB/s", BANDWIDTH, '"3,35 TB/s" has a separator that groups no thousands'),  # not 335
        ("3,3500 GB/s", BANDWIDTH, '"3,3500 GB/s" has a separator that groups no thousands'),
        ("1,234_567 B", SIZE, '"1,234_567 B" has a separator that groups no thousands'),
        ("3.350,5 GB/s", BANDWIDTH, '"3.350,5 GB/s" has a separator that groups no thousands'),
        ("1e400 s", TIME, '"1e400 s" is not finite'),
        ("launch = 4 us", TIME, '"launch = 4 us" is not a time'),
        ("4 us # measured", TIME, '"4 us # measured" is not a time'),
        ("4 us // measured", TIME, '"4 us // measured" is not a time'),
    ],
)
def test_parse_refuses_in_one_sentence_with_an_example(text, dimension, complaint):
    with pytest.raises(InputError) as caught:
        parse(text, dimension)
    assert str(caught.value).startswith(complaint)
    assert str(caught.value).endswith(f'; write e.g. "{dimension.example}"')


@pytest.mark.parametrize("dimension", [d for d in vars(units).values() if isinstance(d, units.Dimension)])
def test_the_example_in_a_message_is_accepted(dimension):
    assert parse(dimension.example, dimension) > 0


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("33554432", 8192 * 4096),
        ("8192x4096", 8192 * 4096),
        ("8192 X 4096", 8192 * 4096),
        ("8192*4096", 8192 * 4096),
        ("8192\N{MULTIPLICATION SIGN}4096", 8192 * 4096),
        ("2x3x4", 24),
        ("2^25", 2**25),
        ("2^3 x 5", 40),
        ("1e6", 10**6),
        ("1.5e3", 1500),
        ("4_096", 4096),
        ("33,554,432", 2**25),
        ("33 554 432", 2**25),  # as the reports print it
        ("1", 1),
        ("10^18", 10**18),
        ("999999999999999999", 10**18 - 1),  # no detour over floats
    ],
)
def test_parse_elements(text, elements):
    assert parse_elements(text) == elements


@pytest.mark.parametrize("text", ["0", "-1", "-4x-4", "8192x0", "10^18x2", "1e19", "1e30", "9" * 40, "2^999"])
def test_elements_out_of_range(text):
    with pytest.raises(InputError, match=r'^elements ".*" is out of range; give 1 to 10\^18$'):
        parse_elements(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "x", "8192x", "four", "nan", "inf"),
        *("1.5", "1.5e0", "4 k", "2^-1", "2^", "^2", "1e9999", "9" * 41),
        *("8192,4096", "8192 4096", "1,5", "1__0", "4_09"),  # a shape? a fraction? groups have three digits
        "\N{ARABIC-INDIC DIGIT FOUR}",
    ],
)
def test_elements_that_are_no_whole_number(text):
    with pytest.raises(InputError, match="is not a whole number; write e.g. 33554432, 2"):
        parse_elements(text)


def decades():
    """Yield 1.234 in every decade from a picosecond to an exabyte, as people would write it."""
    for exponent, dimension, prefixes in ((-12, TIME, "pnum"), (0, SIZE, ("", "k", "M", "G", "T", "P", "E"))):
        for step, prefix in enumerate(prefixes):
            for digits, text in enumerate(("1.23", "12.3", "123.4")):
                value = float(f"1.234e{exponent + 3 * step + digits}")
                yield pytest.param(
                    value, dimension, f"{text} {prefix}{dimension.unit}", id=f"{value:g}{dimension.unit}"
                )


@pytest.mark.parametrize(("value", "dimension", "text"), list(decades()))
def test_format_in_every_decade(value, dimension, text):
    assert format_quantity(value, dimension) == text
    assert format_quantity(-value, dimension) == f"-{text}"


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (0, TIME, "0.0 s"),
        (0, SIZE, "0.0 B"),
        (1.0, TIME, "1.0 s"),
        (123.4, TIME, "123.4 s"),
        (12345, TIME, "12345.0 s"),  # no kiloseconds
        (0.5, SIZE, "0.5 B"),  # no millibytes
        (1e-15, TIME, "0.0 ps"),  # nothing below a picosecond
        (1e21, SIZE, "1000.0 EB"),
        (999.94, SIZE, "999.9 B"),
        (999.96, SIZE, "1.0 kB"),  # would round to 1000.0 B
        (999.96e-6, TIME, "1.0 ms"),
        (999.96e9, BANDWIDTH, "1.0 TB/s"),
        (9.994, SIZE, "9.99 B"),
        (9.996, SIZE, "10.0 B"),  # would round to 10.00 B
        (1.999, SIZE, "2.0 B"),
        (3.35e12, BANDWIDTH, "3.35 TB/s"),
        (989.4e12, FLOP_RATE, "989.4 TFLOP/s"),
        (134217728, SIZE, "134.2 MB"),  # 2^27 B: decimal prefixes are decimal
        (132, COUNT, "132.0"),
        (math.nan, TIME, "unknown"),
        (math.inf, TIME, "infinite"),
    ],
)
def test_format_at_the_borders(value, dimension, text):
    assert format_quantity(value, dimension) == text


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [
        (4.0e-6, 20e-6, "4.0 us"),
        (20e-9, 4e-6, "0.02 us"),
        (20e-9, 20e-6, "0.0 us"),
        (4e-3, 20e-6, "4000.0 us"),
        (4e-6, 0, "0.00 s"),
    ],
)
def test_a_group_is_written_in_the_unit_of_one_of_it(value, like, text):
    assert format_quantity(value, TIME, like=like) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (227 * 1024, "227 KiB"),
        (1024**2 - 1, "1 MiB"),  # would round to 1024 KiB
        (50 * 1024**2, "50 MiB"),
        (126.5 * 1024**2, "126.5 MiB"),
        (1024**3, "1 GiB"),
        (80e9, "74.51 GiB"),  # 80 GB is not 80 GiB
        (1024**7, "1024 EiB"),
        (math.nan, "unknown"),
    ],
)
def test_format_capacity(value, text):
    assert format_capacity(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1 000"),
        (33554432, "33 554 432"),
        (10**12 - 1, "999 999 999 999"),
        (10**12, "1e+12"),
        (10**18, "1e+18"),
        (-4096, "-4 096"),
    ],
)
def test_format_count(value, text):
    assert format_count(value) == text


@pytest.mark.parametrize(("value", "text"), [(1, "1.00x"), (5, "5.00x"), (10 / 6, "1.67x"), (0.5, "0.50x")])
def test_format_ratio(value, text):
    assert format_ratio(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (1e-9, "under 0.1 %"),  # not 0: launches are never free
        (0.0005, "0.1 %"),
        (0.0199, "2.0 %"),
        (0.0249, "2 %"),
        (0.0908, "9 %"),
        (0.5, "50 %"),
        (0.99878, "99.9 %"),
        (0.9994, "99.9 %"),
        (1 - 1e-9, "over 99.9 %"),  # not 100: memory is never free
        (1, "100 %"),
    ],
)
def test_a_share_near_an_end_does_not_claim_the_end(share, text):
    assert format_share(share) == text


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (3.35e12, BANDWIDTH, "3.35 TB/s"),
        (4e-6, TIME, "4 us"),
        (0, TIME, "0 s"),
        (1 / 3, TIME, "333.3333333333333 ms"),
        (132, COUNT, "132"),
    ],
)
def test_format_exact_keeps_every_digit(value, dimension, text):
    assert format_exact(value, dimension) == text
