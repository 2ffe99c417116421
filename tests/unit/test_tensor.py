"""Whether tensors of one memory share a byte, against counting them all."""

from __future__ import annotations

import itertools
import random

from fusesim.tensor import Tensor, disjoint


def look(shape, strides, offset=0, dtype="fp32"):
    return Tensor(name="x", shape=shape, dtype=dtype, strides=strides, storage="x", offset=offset)


def bytes_of(tensor):
    places = itertools.product(*map(range, tensor.shape))
    starts = (tensor.offset + sum(map(int.__mul__, place, tensor.strides)) for place in places)
    return {start * tensor.itemsize + byte for start in starts for byte in range(tensor.itemsize)}


def test_halves_of_rows_are_apart_though_their_extents_cross():
    assert disjoint(look((4, 4), (8, 1)), look((4, 4), (8, 1), 4))
    assert not disjoint(look((4, 5), (8, 1)), look((4, 4), (8, 1), 4))
    assert disjoint(look((4, 4), (16, 2)), look((4, 4), (16, 2), 1))  # even and odd places


def test_no_elements_share_nothing():
    assert disjoint(look((0, 4), (4, 1)), look((4, 4), (4, 1)))


def test_it_agrees_with_counting_bytes():
    draw = random.Random(20)

    def any_look():
        rank = draw.randint(0, 3)
        shape = tuple(draw.randint(1, 4) for _ in range(rank))
        strides = tuple(draw.choice([0, 1, 2, 3, 4, 6, 8, 12, 16]) for _ in range(rank))
        return look(shape, strides, draw.randint(0, 20), draw.choice(["fp32", "fp32", "bf16"]))

    answers = set()
    for _ in range(2000):
        one, other = any_look(), any_look()
        apart = not bytes_of(one) & bytes_of(other)
        assert disjoint(one, other) == apart, (one, other)
        answers.add(apart)
    assert answers == {True, False}
