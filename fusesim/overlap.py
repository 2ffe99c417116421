"""How two times combine that overlap in part: soft maxima, and the powers and roots that they are made of.

A soft maximum (p-norm) lies between the maximum, where two things overlap wholly, and their sum, where they do not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fusesim.arrays import Numbers


def soft_maximum(first: Numbers, second: Numbers) -> Numbers:
    """Combine two times that overlap imperfectly: (a^4 + b^4)^(1/4), between their maximum and their sum.

    Notes
    -----
    Equal times take 1.19 times one of them; where one is twice the other, the other adds 1.5 %. The exponent was
    fitted together with all else and came out at 4.0 to 4.2 in four runs on an H200, so it is fixed at 4.

    Examples
    --------
    >>> float(soft_maximum(3.0, 0.0)), round(float(soft_maximum(1.0, 1.0)), 3)
    (3.0, 1.189)
    """
    return fourth_root(fourth(first) + fourth(second))


def near_maximum(first: Numbers, second: Numbers) -> Numbers:
    """Combine two times that overlap almost wholly: (a^8 + b^8)^(1/8).

    Examples
    --------
    >>> float(near_maximum(3.0, 0.0)), round(float(near_maximum(1.0, 1.0)), 3)
    (3.0, 1.091)
    """
    return eighth_root(eighth(first) + eighth(second))


def fourth(time: Numbers) -> Numbers:
    """Return the fourth power, with one temporary array."""
    own = time * time
    own *= own
    return own


def eighth(time: Numbers) -> Numbers:
    """Return the eighth power, with one temporary array."""
    own = time * time
    own *= own
    own *= own
    return own


def fourth_root(own: Numbers) -> Numbers:
    """Return the fourth root of a temporary array, in place."""
    if isinstance(own, np.ndarray):
        return np.sqrt(np.sqrt(own, out=own), out=own)  # type: ignore[no-any-return, unused-ignore]
    return math.sqrt(math.sqrt(own))


def eighth_root(own: Numbers) -> Numbers:
    """Return the eighth root of a temporary array, in place."""
    if isinstance(own, np.ndarray):
        return np.sqrt(np.sqrt(np.sqrt(own, out=own), out=own), out=own)  # type: ignore[no-any-return, unused-ignore]
    return math.sqrt(math.sqrt(math.sqrt(own)))
