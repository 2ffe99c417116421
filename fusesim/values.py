"""Which values flow through a chain, where that decides its time: a sample run through the ops.

Most instructions take as long whatever they compute. Two do not: an IEEE division calls a subroutine when its
numerator is zero, tiny or infinite (relu before silu makes half of them zero), and a sine does when its argument is
beyond what its quick reduction can do (two exponentials in a row get there). One such lane sends its whole warp down
the slow path. Inputs are taken to be normal, with mean 0 and deviation 1, as in all measurements.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fusesim.ops import Op

    Sample = NDArray[np.float64]

SIZE: Final = 256
WARP: Final = 32
OPERAND_STRIDE: Final = 97
"""Extra operands are the same sample in another order; the stride and `SIZE` have no common factor."""

TINY: Final = 1e-30
HUGE: Final = 1e30
"""Numerators below and denominators above leave the fast path of a division (FCHK tests their exponents)."""
SINE_LIMIT: Final = 105615.0
"""Largest argument that CUDA's sinf reduces without its table (CUDA's math library, trig_reduction)."""

SLOW: Final = {"division": (40.0, 400.0), "sine": (85.0, 900.0)}
"""Extra slots and serial cycles of the slow path, measured on an H200: relu followed by silu against silu alone, half
of whose values are zero; and a sine after two exponentials against one of normal values."""


def _sigmoid(x: Sample) -> Sample:
    return 1.0 / (1.0 + np.exp(-x))


def _gelu(x: Sample) -> Sample:
    return x * _sigmoid(1.702 * x)  # close enough to tell which values are large or zero


FUNCTIONS: Final[dict[str, Callable[[Sample], Sample]]] = {
    "add": lambda x: x + 0.5,
    "mul": lambda x: x * 1.0009765625,
    "relu": lambda x: np.maximum(x, 0.0),
    "neg": np.negative,
    "abs": np.abs,
    "square": np.square,
    "exp": np.exp,
    "tanh": np.tanh,
    "rsqrt": lambda x: 1.0 / np.sqrt(np.abs(x) + 1.0),
    "sin": np.sin,
    "log1p": lambda x: np.log1p(np.abs(x)),
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "gelu": _gelu,
    "gelu_tanh": _gelu,
}
"""What an op does to values, as it was measured; an op that is not here is taken to give normal values again."""


def normal_sample() -> Sample:
    """Return evenly spaced quantiles of the normal distribution."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((index + 0.5) / SIZE) for index in range(SIZE)])


@lru_cache(maxsize=4096)
def slow_shares(ops: tuple[Op, ...], largest: float) -> tuple[float, ...]:
    """Return for each op which share of warps takes its slow path.

    Parameters
    ----------
    ops : tuple of Op
        The ops of a chain, in order.
    largest : float
        Largest number that values between the ops can hold; beyond it they are infinite.

    Returns
    -------
    tuple of float
        0 where the op has no slow path.
    """
    inputs = normal_sample()
    values, shares = inputs, []
    with np.errstate(all="ignore"):
        for count, op in enumerate(ops, start=1):
            shares.append(1.0 - (1.0 - float(np.mean(_is_slow(op, values)))) ** WARP)
            operand = inputs[(np.arange(SIZE) * OPERAND_STRIDE + count) % SIZE]
            values = _apply(op, values, operand, inputs)
            values = np.where(np.abs(values) > largest, np.copysign(np.inf, values), values)
    return tuple(shares)


def _is_slow(op: Op, values: Sample) -> NDArray[np.bool_]:
    """Return which lanes would take the op's slow path."""
    if op.slow == "division":
        numerator = values if op.name == "silu" else np.ones(SIZE)
        denominator = 1.0 + np.exp(-values)
        return (np.abs(numerator) < TINY) | ~np.isfinite(numerator) | ~(denominator < HUGE)
    if op.slow == "sine":
        return (np.abs(values) > SINE_LIMIT) & np.isfinite(values)
    return np.zeros(SIZE, dtype=bool)


def _apply(op: Op, values: Sample, operand: Sample, inputs: Sample) -> Sample:
    """Return the values after the op."""
    if op.tensors or op.rows:
        return values + operand if op.name.startswith("add") else values * operand
    return FUNCTIONS[op.name](values) if op.name in FUNCTIONS else inputs
