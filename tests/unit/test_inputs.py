import numpy as np
import pytest

from fusesim.errors import InputError
from fusesim.inputs import choice, common_shape, number


def checked(value, **changes):
    limits = {"low": 1, "high": 10**18, "whole": True}
    return number("elements", value, **(limits | changes))


@pytest.mark.parametrize(
    "value",
    [5, 5.0, np.int8(5), np.uint64(5), np.float32(5), np.array(5), np.float64(5)],
    ids=lambda value: type(value).__name__,
)
def test_every_scalar_becomes_a_float64(value):
    result = checked(value)
    assert type(result) is np.float64
    assert result == 5


@pytest.mark.parametrize("value", [[1, 2], (1, 2), np.array([1, 2], np.int16), np.array([1.0, 2.0]), [1, 2.0]])
def test_every_list_becomes_an_array_of_float64(value):
    result = checked(value)
    assert result.dtype == np.float64
    assert result.tolist() == [1, 2]


def test_integers_beyond_64_bits_are_numbers_too():
    assert checked(10**20, high=10**21) == 1e20
    assert checked([10**20, 1], high=10**21).tolist() == [1e20, 1]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (-3, "-3"),
        (1e30, "1e30"),
        (10**30, "1e30"),
        (np.nan, "nan"),
        (np.inf, "inf"),
        (-np.inf, "-inf"),
        ([4, 0, -1], "0"),  # the first that is wrong
        ([4, np.nan], "nan"),
        (2.5, "2.5"),
        ([1, 2.5], "2.5"),
        (-1000001.0, "-1000001"),
        (1000000.5, "1000000.5"),  # not rounded to a number that would have been fine
    ],
)
def test_the_message_names_the_value_and_the_limits(value, shown):
    with pytest.raises(InputError) as caught:
        checked(value)
    assert str(caught.value) == f"elements is {shown}; give a whole number from 1 to 1e18"


def test_the_message_names_the_unit():
    with pytest.raises(InputError, match="^dram_bandwidth is 3.35; give a number from 1e06 to 1e18 B/s$"):
        number("dram_bandwidth", 3.35, low=1e6, high=1e18, unit="B/s")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("4096", 'the text "4096"'),
        ("4\n5", 'the text "4 5"'),
        (None, "nothing (None)"),
        (True, "a value of type bool"),
        (1 + 2j, "a value of type complex"),
        ({1}, "a value of type set"),
        ([1, None], "a value of type list"),
        ([[1, 2], [3]], "a value of type list"),  # ragged
        (np.array(["a"]), "an array of str32"),
        (np.array([True]), "an array of bool"),
    ],
)
def test_what_is_no_number(value, kind):
    with pytest.raises(InputError) as caught:
        checked(value)
    assert str(caught.value) == f"elements must be a number or an array of numbers, not {kind}"


def objects(*entries):
    numbers = np.empty(len(entries), dtype=object)
    numbers[:] = entries
    return numbers


class Stubborn:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array today")


def test_objects_that_are_numbers_are_numbers():
    assert checked(objects(np.float32(1), np.int64(2), 3)).tolist() == [1, 2, 3]
    with pytest.raises(InputError, match="^elements is 0; "):
        checked(objects(5, np.int64(0)))
    with pytest.raises(InputError, match="^elements is nan; "):
        checked(objects(5, float("nan"), 10**20))
    with pytest.raises(InputError, match="not an array of object$"):
        checked(objects(5, np.bool_(1)))


@pytest.mark.parametrize(
    "value",
    [10**18 + 1, [1, 10**18 + 1], np.uint64(10**18 + 1), objects(1, 10**18 + 1)],
    ids=["int", "list", "np", "O"],
)
def test_integers_are_compared_exactly(value):
    with pytest.raises(InputError, match="^elements is 1000000000000000001; give a whole number from 1 to 1e18$"):
        checked(value)
    assert checked(10**18) == checked([10**18])[0] == 10**18


def test_a_masked_array_is_refused_since_nothing_would_stay_masked():
    with pytest.raises(InputError, match=r"^elements is a masked array; give .*, elements\.compressed\(\)$"):
        checked(np.ma.masked_array([1, 2], mask=[True, False]))


def test_more_dimensions_than_numpy_iterates_over():
    assert checked(np.ones((1,) * 32)).ndim == 32
    with pytest.raises(InputError, match="^elements has 33 dimensions; give at most 32$"):
        checked(np.ones((1,) * 33))


def test_an_object_that_cannot_become_an_array():
    with pytest.raises(InputError, match="^elements must be a number .*, not a value of type Stubborn$"):
        checked(Stubborn())


@pytest.mark.parametrize("value", [[], (), np.zeros((0, 3))], ids=["list", "tuple", "array"])
def test_empty(value):
    with pytest.raises(InputError, match="^elements is empty; give at least one value$"):
        checked(value)


def test_too_large_for_a_float():
    with pytest.raises(InputError, match="^elements is too large to be a number$"):
        checked(10**400)


@pytest.mark.skipif(np.finfo(np.longdouble).maxexp <= 1024, reason="a long double is a double here")
def test_a_long_double_too_large_for_a_float():
    with pytest.raises(InputError, match="^elements is too large to be a number$"):
        checked(np.longdouble("1e400"))


def test_fractions_are_fine_where_they_make_sense():
    assert checked(2.5, whole=False) == 2.5


def test_choice_ignores_case_and_space():
    assert choice("launch mode", " Graph ", ("stream", "graph")) == "graph"


@pytest.mark.parametrize(
    ("value", "hint"),
    [("grahp", 'did you mean "graph"?'), ("", "known: stream, graph"), (None, "known: stream, graph")],
)
def test_choice_refuses_other_options(value, hint):
    with pytest.raises(InputError) as caught:
        choice("launch mode", value, ("stream", "graph"))
    assert str(caught.value) == f'unknown launch mode "{value}"; {hint}'


def test_common_shape():
    assert common_shape(ops=1.0, elements=2.0) == ()
    assert common_shape(ops=np.ones((16, 1)), elements=np.ones(200), row=1.0) == (16, 200)


def test_shapes_that_do_not_broadcast_are_listed():
    with pytest.raises(InputError) as caught:
        common_shape(ops=np.ones(2), elements=np.ones(3), row=1.0)
    assert str(caught.value) == "these shapes do not broadcast together: ops (2,), elements (3,)"
