"""The roofline: pure formulas for the time of one kernel against one ceiling.

Numbers or arrays in, the same out; this file knows no device, no op and no file. The model is of S. Williams,
A. Waterman and D. Patterson, "Roofline: an insightful visual performance model for multicore architectures",
CACM 52(4), 2009, doi:10.1145/1498765.1498785.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fusesim.arrays import Numbers


def memory_time(*, bytes_moved: Numbers, bandwidth: Numbers) -> Numbers:
    """Time to move bytes through one memory level.

    Parameters
    ----------
    bytes_moved : float or ndarray
        Reads plus writes at this level, >= 0. [B]
    bandwidth : float or ndarray
        Bandwidth of the level, > 0. [B/s]

    Returns
    -------
    float or ndarray
        Lower bound on the time of the transfer. [s]

    Notes
    -----
    t = bytes / bandwidth. Assumes saturated, coalesced access; the first assumption to fail is saturation, below
    about one wave of thread blocks.
    """
    return bytes_moved / bandwidth


def compute_time(*, flops: Numbers, flop_rate: Numbers) -> Numbers:
    """Time to do arithmetic at a peak rate.

    Parameters
    ----------
    flops : float or ndarray
        Operations, an FMA counted as two, >= 0. [FLOP]
    flop_rate : float or ndarray
        Dense peak, > 0; NaN where it is not known. [FLOP/s]

    Returns
    -------
    float or ndarray
        Lower bound on the time of the arithmetic. [s]

    Notes
    -----
    t = FLOP / rate. Takes every operation to be half of an FMA; special functions and conversions issue more
    slowly, so it fails first on exp, tanh and erf.
    """
    return flops / flop_rate


def arithmetic_intensity(*, flops: Numbers, bytes_moved: Numbers) -> Numbers:
    """Arithmetic done per byte moved. [FLOP/B].

    Examples
    --------
    >>> arithmetic_intensity(flops=5.0, bytes_moved=4.0)  # five bf16 ops fused: 2 B read, 2 B written
    1.25
    """
    return flops / bytes_moved


def ridge_point(*, flop_rate: Numbers, bandwidth: Numbers) -> Numbers:
    """Arithmetic intensity at which both ceilings give the same time. [FLOP/B].

    Examples
    --------
    >>> round(ridge_point(flop_rate=989e12, bandwidth=3.35e12))
    295
    """
    return flop_rate / bandwidth


def attainable(*, intensity: Numbers, bandwidth: Numbers, flop_rate: Numbers) -> Numbers:
    """Highest rate of arithmetic that the two ceilings allow at an arithmetic intensity.

    Parameters
    ----------
    intensity : float or ndarray
        Arithmetic intensity, > 0. [FLOP/B]
    bandwidth : float or ndarray
        Bandwidth of the memory level, > 0. [B/s]
    flop_rate : float or ndarray
        Dense peak, > 0. [FLOP/s]

    Returns
    -------
    float or ndarray
        min(intensity x bandwidth, peak). [FLOP/s]
    """
    return np.minimum(intensity * bandwidth, flop_rate)
