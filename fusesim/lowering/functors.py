"""How long one thread of PyTorch's vectorised kernels takes for an op, whatever the throughput.

A thread has eight values. Where its block is full the compiler works on them side by side, but for what branches or
calls a subroutine; the last block, if it is not full, takes them one after the other, each behind its own test. On
little data this is what ops differ by: 1.2 us for `neg`, 2.0 for `sqrt` (tests/reference/h200_small.json).
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Dependent(NamedTuple):
    """Clock cycles per value of a thread's dependent instructions: in a full block, and in one that is not.

    `slots` are instructions of PyTorch's own code beyond those of `fusesim.kinds`.
    """

    full: float
    partial: float
    slots: float = 0.0


FUNCTORS: Final = {
    "neg": Dependent(0.0, 7.0),
    "abs": Dependent(0.0, 15.0),
    "relu": Dependent(7.0, 32.0),
    "square": Dependent(0.0, 37.0),
    "rsqrt": Dependent(6.0, 44.0),
    "exp": Dependent(15.0, 93.0),
    "tanh": Dependent(23.0, 101.0),
    "gelu_tanh": Dependent(26.0, 122.0, 3.0),
    "gelu": Dependent(63.0, 117.0, 6.5),
    "silu": Dependent(84.0, 130.0, 4.5),
    "sigmoid": Dependent(113.0, 140.0, 6.5),
    "sin": Dependent(78.0, 146.0, 3.5),
    "log1p": Dependent(93.0, 143.0, 10.0),
    "sqrt": Dependent(70.0, 100.0),
    "add": Dependent(0.0, 47.0),
    "mul": Dependent(0.0, 37.0),
    "sub": Dependent(0.0, 44.0),
    "div": Dependent(56.0, 104.0),
    "maximum": Dependent(64.0, 94.0),
    "minimum": Dependent(64.0, 94.0),
}
"""What each op takes beyond `neg` in a full block: 20 480 values for `full`, 1500 for `partial`, the mean of bf16 and
fp32 on an H200 (h200_small.json); of the root, 20 480 positive ones (h200_special.json).
`slots` from three million values and more in bf16, where instructions bind (h200_pointwise.json, h200_warm.json)."""

PARTIAL: Final = 45.0
"""By how much a partial block takes longer for an op that was not measured: the median of those that were."""


def dependent(kind: str, serial: float) -> Dependent:
    """Return what an op takes; of one that was not measured, `serial` where its block is full. [cycles per value].

    Examples
    --------
    >>> dependent("exp", 15.0), dependent("erfc", 40.0)
    (Dependent(full=15.0, partial=93.0, slots=0.0), Dependent(full=40.0, partial=85.0, slots=0.0))
    """
    return FUNCTORS.get(kind) or Dependent(serial, serial + PARTIAL)
