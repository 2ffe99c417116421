import pytest

import fusesim
from fusesim.errors import excerpt, unknown_name


def test_every_error_is_a_fusesim_error():
    kinds = [getattr(fusesim, name) for name in fusesim.__all__ if name.endswith("Error")]
    assert len(kinds) == 7
    assert all(issubclass(kind, fusesim.FusesimError) for kind in kinds)


def test_a_bad_argument_is_also_a_value_error():
    assert issubclass(fusesim.InputError, ValueError)
    assert not issubclass(fusesim.HardwareSpecError, ValueError)  # the file is at fault, not the caller


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("h10-sxm", 'did you mean "h100-sxm"?'),
        ("H100_SXM", 'did you mean "h100-sxm"?'),  # case does not hide the nearest name
        ("zzz", "known: h100-sxm, h200-sxm"),
        ("", "known: h100-sxm, h200-sxm"),
        (None, "known: h100-sxm, h200-sxm"),
        (100, "known: h100-sxm, h200-sxm"),  # no text, so nothing was misspelt
    ],
)
def test_unknown_name_suggests_the_nearest_or_lists_all(name, hint):
    assert str(unknown_name("device", name, ["h100-sxm", "h200-sxm"])) == f'unknown device "{name}"; {hint}'


def test_of_many_names_a_few_are_listed():
    names = [f"name-{number}" for number in range(20)]
    some = 'unknown thing "zzz"; known: name-0, name-1, name-2, name-3, name-4, name-5, name-6, name-7 and 12 more'
    assert str(unknown_name("thing", "zzz", names)) == some
    assert str(unknown_name("thing", "zzz", names, "`fusesim things`")) == f"{some}; `fusesim things` lists all"
    assert len(str(unknown_name("thing", "zzz", names[:8]))) < len(some)


def test_a_device_like_none_gets_a_short_line():
    with pytest.raises(fusesim.InputError, match="more; `fusesim devices` lists all$") as caught:
        fusesim.device("zzz")
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("op", [None, 3])
def test_what_is_no_text_was_not_misspelt(op):
    with pytest.raises(fusesim.InputError, match=f'^unknown op "{op}"; known: add, '):
        fusesim.price_chain(["add", op], 4096)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc", "a b c"),  # one line
        ("\x1b[31mred", " [31mred"),  # no terminal codes
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 60 + "..."),
    ],
)
def test_excerpt_is_one_short_printable_line(text, shown):
    assert excerpt(text) == shown
