"""Bytes of a chain, added up by hand: 10 elements of 2 B, so 20 B a tensor."""

import numpy as np
import pytest

from fusesim.work import Chain, bytes_moved, bytes_read, bytes_written, tensor_bytes


def chain(**changes):
    plain = {"ops": 5, "flops": 5, "tensors": 0, "rows": 0, "elements": 10, "row": 1, "itemsize": 2}
    return Chain(**(plain | changes))


def test_plain_chain():
    five = chain()
    assert tensor_bytes(five) == 20
    assert bytes_read(five, 5) == 100  # 5 reads x 20 B
    assert bytes_written(five, 5) == 100  # 5 writes x 20 B
    assert bytes_moved(five, 5) == 200
    assert bytes_moved(five, 1) == 40  # fused: 1 read + 1 write


def test_an_extra_tensor_is_read_once_by_its_op():
    extra = chain(tensors=2)
    assert bytes_read(extra, 5) == 140  # 5 reads + 2 extra
    assert bytes_read(extra, 1) == 60  # 1 read + 2 extra
    assert bytes_moved(extra, 5) == 240  # 5 reads + 2 extra + 5 writes
    assert bytes_moved(extra, 1) == 80  # 1 read + 2 extra + 1 write


def test_a_row_is_read_once_by_its_op():
    rows = chain(rows=3, row=5)
    assert bytes_read(rows, 5) == 130  # 5 reads x 20 B + 3 rows x 10 B
    assert bytes_moved(rows, 1) == 70  # 1 read + 1 write + 3 rows x 10 B
    assert bytes_written(rows, 1) == 20  # a row is never written


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_bytes_follow_the_dtype(itemsize):
    assert bytes_moved(chain(itemsize=itemsize), 5) == 100 * itemsize  # 5 reads + 5 writes of 10 elements


def test_lengths_and_sizes_broadcast():
    many = chain(ops=np.array([[1.0], [5.0]]), elements=np.array([10.0, 20.0, 30.0]))
    assert bytes_moved(many, many.ops).tolist() == [[40, 80, 120], [200, 400, 600]]
