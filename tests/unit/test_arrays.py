import json

import numpy as np
import pytest

from fusesim.arrays import plain, round_up, spread


def test_spread_gives_the_shape_without_copying():
    row = np.arange(3.0)
    wide = spread(row, (2, 3))
    assert wide.shape == (2, 3)
    assert np.shares_memory(wide, row)


def test_spread_leaves_scalars_and_fitting_arrays_alone():
    row = np.arange(3.0)
    assert spread(row, (3,)) is row
    assert spread(2.5, ()) == 2.5


@pytest.mark.parametrize(("value", "up"), [(0.0, 0), (1.0, 512), (511.0, 512), (512.0, 512), (513.0, 1024)])
def test_round_up(value, up):
    assert round_up(value, 512) == up


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(1.5), 1.5),
        (np.array([[1.0, np.nan]]), [[1.0, None]]),
        ((np.float64(1), np.inf), [1.0, None]),
        (np.nan, None),
        (np.array("launch"), "launch"),
        (None, None),
        ("text", "text"),
    ],
)
def test_plain_is_what_json_can_hold(value, expected):
    assert plain(value) == expected
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == expected
