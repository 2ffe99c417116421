"""Units at the edges: text with a prefix in, SI numbers out, and back.

Inside fusesim every number is in a base unit (bytes, seconds, FLOP, and their ratios), so no name carries a
unit. This is the only file where a prefix exists. Decimal prefixes (kB, MB, GB, TB) are powers of 1000, binary
ones (KiB, MiB, GiB) powers of 1024; the two are never mixed up: "KB", which could be either, is refused.
Reading prefixes is QuantiPhy's job; what is decided here is which units and prefixes make sense where.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal

from quantiphy import QuantiPhyError, Quantity

from fusesim.errors import InputError, excerpt

MAX_ELEMENTS = 10**18
"""Largest tensor that is priced; byte counts are float64 and exact to 2^53."""

LONG_COUNT = 1e12
"""Counts from here on are written as powers of ten."""

TIMES = "\N{MULTIPLICATION SIGN}"
_PREFIXES = {-12: "p", -9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_NOT_IN_A_QUANTITY = re.compile(r"[=:#]|//")
"""QuantiPhy would read a name before the number and a comment after it."""
_NUMBER = re.compile(r"[-+]?[\d.,_ ]*(?:[eE][-+]?\d+)?\s*")
"""What stands before a unit."""
_THOUSANDS = re.compile(r"[-+]?\d{1,3}([,_])\d{3}(?:\1\d{3})*(?![\d,_])", re.ASCII)
"""A number's start in groups of three digits."""
_POWER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d{1,3})\s*([^\d\s.].*)", re.ASCII)
"""A number with a power of ten, and its unit."""
_TWO_DIGITS = 9.995
"""From here two decimals would round to five digits."""
_LONGEST = 1e7
"""Beyond the largest prefix a number is written as a power of ten."""
_BINARY_PREFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class _Large(Quantity):  # type: ignore[misc, unused-ignore]
    """Quantities that are whole numbers of something: no milli-bytes."""


class _Small(Quantity):  # type: ignore[misc, unused-ignore]
    """Times: no kilo-seconds."""


_Large.set_prefs(input_sf="kMGTPE", known_units=[])
_Small.set_prefs(input_sf="munp", known_units=[])


@dataclass(frozen=True, slots=True)
class Dimension:
    """A kind of quantity: its name with article, base unit, an example for messages, other spellings of the unit."""

    name: str
    unit: str
    example: str
    spellings: tuple[str, ...] = ()
    small: bool = False


TIME = Dimension("a time", "s", "4 us", small=True)
SIZE = Dimension("a size", "B", "50 MiB")
BANDWIDTH = Dimension("a bandwidth", "B/s", "3.35 TB/s")
FLOP_RATE = Dimension("a FLOP rate", "FLOP/s", "67 TFLOP/s", ("OP/s",))
FLOPS = Dimension("a FLOP count", "FLOP", "168 MFLOP", ("OP",))
FREQUENCY = Dimension("a frequency", "Hz", "1755 MHz")
POWER = Dimension("a power", "W", "700 W")
PIN_RATE = Dimension("a pin rate", "b/s", "5.2 Gb/s")
BUS_WIDTH = Dimension("a bus width", "bit", "5120 bit")
INTENSITY = Dimension("an arithmetic intensity", "FLOP/B", "0.25 FLOP/B")
COUNT = Dimension("a count", "", "132")


def parse(text: str, dimension: Dimension) -> float:
    """Read a number with its unit.

    Parameters
    ----------
    text : str
        For example ``"3.35 TB/s"``, ``"4us"``, ``"50 MiB"``.
    dimension : Dimension
        What kind of quantity it has to be.

    Returns
    -------
    float
        The value in the base unit of `dimension`.

    Raises
    ------
    InputError
        If it is no number, not finite, has no unit, or the unit is of another kind.

    Examples
    --------
    >>> parse("3.35 TB/s", BANDWIDTH), parse("4us", TIME), parse("50 MiB", SIZE)
    (3350000000000.0, 4e-06, 52428800.0)
    """
    reader = _Small if dimension.small else _Large
    spelt = str(text).strip().replace("\N{MICRO SIGN}", "u").replace("\N{GREEK SMALL LETTER MU}", "u")
    shown, hint = excerpt(text), f'write e.g. "{dimension.example}"'
    spelt = _written_out(ungrouped(spelt, hint))
    try:
        quantity = reader("" if _NOT_IN_A_QUANTITY.search(spelt) else spelt, binary=dimension.unit.startswith("B"))
    except QuantiPhyError as error:
        raise InputError(f'"{shown}" is not {dimension.name}; {hint}') from error
    value, unit = float(quantity), str(quantity.units)
    if not math.isfinite(value):
        raise InputError(f'"{shown}" is not finite; {hint}')
    if unit not in (dimension.unit, *dimension.spellings):
        written = excerpt(_NUMBER.sub("", spelt, count=1))
        wrong = f'unit "{written}" is not {dimension.name}' if unit else f'"{shown}" has no unit'
        raise InputError(f"{wrong}; {hint}")
    return value


def ungrouped(text: str, hint: str) -> str:
    """Return a quantity without separators between its thousands.

    Parameters
    ----------
    text : str
        A number, with or without a unit.
    hint : str
        What a refusal says to do.

    Raises
    ------
    InputError
        If a separator stands elsewhere: dropping a decimal comma would make 335 of 3,35.

    Examples
    --------
    >>> ungrouped("3,350 GB/s", "write 3350 GB/s"), ungrouped("3.35 TB/s", "")
    ('3350 GB/s', '3.35 TB/s')
    """
    bare = _THOUSANDS.sub(lambda found: re.sub("[,_]", "", found[0]), text, count=1)
    if "," in bare or re.search(r"\d_", bare):
        raise InputError(f'"{excerpt(text)}" has a separator that groups no thousands (decimals take a point); {hint}')
    return bare


def _written_out(text: str) -> str:
    """Write a number's power of ten as digits: QuantiPhy reads a power or a prefix, not both."""
    found = _POWER.fullmatch(text)
    return f"{Decimal(found[1]):f} {found[2]}" if found else text


def parse_elements(text: str, high: int = MAX_ELEMENTS) -> int:
    """Read a number of elements: a whole number, a power such as ``2^25``, or a shape such as ``8192x4096``.

    Returns
    -------
    int
        The product, at least 1 and at most `high`, a power of ten.

    Raises
    ------
    InputError
        If it is none of these, or out of range.

    Examples
    --------
    >>> parse_elements("8192x4096"), parse_elements("2^10"), parse_elements("4 096"), parse_elements("1e6")
    (33554432, 1024, 4096, 1000000)
    """
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", str(text).strip()):
        raise InputError(f'elements "{excerpt(text)}" is hexadecimal, which is not read; write it in decimal')
    product = 1
    for factor in re.split(rf"[xX*{TIMES}]", str(text).strip()):
        whole = _whole(factor.strip(), text)
        product *= whole
        if whole < 1 or not 1 <= product <= high:
            raise InputError(f'elements "{excerpt(text)}" is out of range; give 1 to 10^{len(str(high)) - 1}')
    return product


def _whole(factor: str, text: str) -> int:
    """Return one factor of a shape as an exact integer."""
    power = re.fullmatch(r"(\d{1,3})\^(\d{1,3})", factor, flags=re.ASCII)
    if power:
        base, exponent = int(power[1]), int(power[2])
        return int(base**exponent)
    if re.fullmatch(r"-?(\d{1,40}|\d{1,3}([ ,_]\d{3}){1,12})", factor, flags=re.ASCII):
        return int(re.sub("[ ,_]", "", factor))
    if re.fullmatch(r"\d{1,40}(\.\d{1,40})?[eE]\+?\d{1,3}", factor, flags=re.ASCII):
        number = Decimal(factor)
        if number == number.to_integral_value():
            return int(number)
    raise InputError(f'elements "{excerpt(text)}" is not a whole number; write e.g. 33554432, 2^25 or 8192x4096')


def format_quantity(value: float, dimension: Dimension, like: float | None = None) -> str:
    """Write a number for people: about four digits, the prefix by magnitude.

    Parameters
    ----------
    value : float
        In the base unit of `dimension`.
    dimension : Dimension
        What kind of quantity it is.
    like : float, optional
        Take the prefix and the decimals that this value would get, so that a group of figures can be compared.

    Returns
    -------
    str
        One decimal from 10 upwards and two below, a second decimal of zero dropped; ``"unknown"`` for NaN.

    Examples
    --------
    >>> format_quantity(220.34e-6, TIME), format_quantity(4e-6, TIME), format_quantity(134217728, SIZE)
    ('220.3 us', '4.0 us', '134.2 MB')
    >>> format_quantity(20e-9, TIME, like=4e-6)
    '0.02 us'
    """
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "infinite"
    exponent = _prefix_exponent(value if like is None else like, dimension)
    number, model = (float(Decimal(repr(float(v))).scaleb(-exponent)) for v in (value, value if like is None else like))
    text = f"{number:.{1 if abs(model) >= _TWO_DIGITS else 2}f}" if abs(number) < _LONGEST else f"{number:.4g}"
    if like is None and abs(model) < _TWO_DIGITS:
        text = text.removesuffix("0")
    return f"{text} {_PREFIXES[exponent]}{dimension.unit}".rstrip()


def format_exact(value: float, dimension: Dimension) -> str:
    """Write a number with every digit, so that `parse` returns the very same float.

    Examples
    --------
    >>> format_exact(3.35e12, BANDWIDTH), parse(format_exact(0.1 + 0.2, TIME), TIME) == 0.1 + 0.2
    ('3.35 TB/s', True)
    """
    exact = Decimal(repr(float(value)))
    shifted = exact.scaleb(-_prefix_exponent(value, dimension)).normalize()
    return f"{shifted:f} {_PREFIXES[_prefix_exponent(value, dimension)]}{dimension.unit}".rstrip()


def format_capacity(value: float) -> str:
    """Write a capacity of on-chip memory, with binary prefixes.

    Examples
    --------
    >>> format_capacity(52428800), format_capacity(227 * 1024)
    ('50 MiB', '227 KiB')
    """
    if math.isnan(value):
        return "unknown"
    step = 0
    while step + 1 < len(_BINARY_PREFIXES) and round(value / 1024**step) >= 1024:  # noqa: PLR2004 - the next prefix
        step += 1
    return f"{value / 1024**step:.4g} {_BINARY_PREFIXES[step]}B"


def format_count(value: float) -> str:
    """Write a count with its digits grouped, or as a power of ten where it is long.

    Examples
    --------
    >>> format_count(33554432), format_count(1e18)
    ('33 554 432', '1e+18')
    """
    return f"{int(value):,}".replace(",", " ") if abs(value) < LONG_COUNT else f"{value:.4g}"


def format_ratio(value: float) -> str:
    """Write a ratio of two like quantities.

    Examples
    --------
    >>> format_ratio(5), format_ratio(1.666)
    ('5.00x', '1.67x')
    """
    return f"{value:.2f}x"


def format_share(value: float) -> str:
    """Write a part of a whole in percent: one decimal where it is near 0 or 100, so that neither is claimed.

    Examples
    --------
    >>> format_share(0.0908), format_share(0.99924), format_share(1 - 1e-7)
    ('9 %', '99.9 %', 'over 99.9 %')
    """
    percent = 100 * value
    if 0 < percent < 0.05:  # noqa: PLR2004 - would be rounded to 0.0
        return "under 0.1 %"
    if 99.95 <= percent < 100:  # noqa: PLR2004 - would be rounded to 100.0
        return "over 99.9 %"
    near_an_end = 0 < percent < 2 or 98 < percent < 100  # noqa: PLR2004
    return f"{percent:.1f} %" if near_an_end else f"{percent:.0f} %"


def _prefix_exponent(value: float, dimension: Dimension) -> int:
    """Return the power of ten of the prefix that leaves the value, once rounded, between 1 and 1000."""
    if value == 0 or not math.isfinite(value):
        return 0
    power = Decimal(f"{abs(value):.3e}").adjusted()
    lowest, highest = (min(_PREFIXES), 0) if dimension.small else (0, max(_PREFIXES))
    return min(max(power // 3 * 3, lowest), highest)
