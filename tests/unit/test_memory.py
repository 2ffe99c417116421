import numpy as np
import pytest

from fusesim.memory import allocation, chain_peak_memory


@pytest.mark.parametrize(("size", "allocated"), [(1.0, 512), (512.0, 512), (513.0, 1024), (67108864.0, 67108864)])
def test_the_allocator_hands_out_multiples_of_512_bytes(size, allocated):
    assert allocation(size) == allocated


@pytest.mark.parametrize(
    ("kernels", "tensors"),
    [
        (1, 1),  # the output
        (2, 2),  # the intermediate lives until the output is written
        (5, 2),  # each intermediate is freed when the next is written
    ],
)
def test_peak_of_a_chain(kernels, tensors):
    assert chain_peak_memory(tensor=512.0, kernels=kernels) == 512 * tensors


def test_arrays_go_through():
    assert chain_peak_memory(tensor=512.0, kernels=np.array([1.0, 2.0, 3.0])).tolist() == [512, 1024, 1024]
