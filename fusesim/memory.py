"""Peak memory: what is alive at once. Pure formulas; this file knows no device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fusesim.arrays import round_up

if TYPE_CHECKING:
    from fusesim.arrays import Numbers

ALLOCATION_STEP: Final = 512
"""Caching allocators hand out multiples of this many bytes (PyTorch's CUDA allocator, CuPy's memory pool)."""


def chain_peak_memory(*, tensor: Numbers, kernels: Numbers) -> Numbers:
    """Bytes above the inputs at the peak of a chain, its output included.

    Parameters
    ----------
    tensor : float or ndarray
        Size of the tensor as allocated, see `allocation`. [B]
    kernels : float or ndarray
        Kernels that the chain runs as, one after the other.

    Returns
    -------
    float or ndarray
        One tensor for a single kernel, two for any longer chain: a kernel's input must live until its output is
        written, and is freed then. [B]
    """
    return tensor * np.minimum(kernels, 2)


def allocation(size: Numbers) -> Numbers:
    """Return what the allocator sets aside for a tensor of `size` bytes. [B]."""
    return round_up(size, ALLOCATION_STEP)
