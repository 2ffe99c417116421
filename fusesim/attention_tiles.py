"""Tiled attention: how its tiles fall on the SMs, and how long the matrix units take with them.

    one step      = a tile of queries with a tile of keys: its arithmetic, then its exponentials
    busiest place = its tiles x what a tile costs once + its steps x one step

A place is where a block runs: one of an SM, or two. Places take the next tile as they become free, so the one that
takes the last long tile late ends last: by Graham's bound at the even share of all steps plus one longest tile, and
never later than if every tile were longest. Causal attention of few tiles gains nothing for that reason: half of the
work, the same time. Pure floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusesim.launches import Rates


@dataclass(frozen=True, slots=True)
class TiledAttention:
    """Attention of `heads` heads of `queries` x `keys` scores, in tiles of `high` queries and `wide` keys.

    `padded` is the length of a value as the matrix units see it, `passes` how many times the arithmetic of a forward
    pass is done.
    """

    heads: int
    queries: int
    keys: int
    padded: int
    high: int
    wide: int
    causal: bool = False
    passes: float = 1.0

    @property
    def tiles(self) -> int:
        """Tiles of queries, of all heads."""
        return self.heads * math.ceil(self.queries / self.high)

    @property
    def longest(self) -> int:
        """Tiles of keys that the longest tile of queries meets."""
        return math.ceil(self.keys / self.wide)

    @property
    def steps(self) -> float:
        """Tiles of scores that are computed: below the diagonal and on it, where attention is causal.

        Notes
        -----
        Tiles are taken to be square. The diagonal begins with the first key where there are more queries than keys,
        and ends with the last key where there are more keys, as in kernels that go on with a sequence; PyTorch's
        `is_causal` begins with the first key there too, and computes less than is counted here.

        Examples
        --------
        >>> TiledAttention(1, 512, 512, 64, 128, 128, causal=True).steps
        10.0
        """
        if not self.causal:
            return float(self.tiles * self.longest)
        rows = math.ceil(self.queries / self.high)
        hidden = min(rows, self.longest) - 1
        return self.heads * (rows * self.longest - hidden * (hidden + 1) / 2.0)

    @property
    def flops(self) -> float:
        """Arithmetic of one step. [FLOP]."""
        return 4.0 * self.high * self.wide * self.padded * self.passes


def busiest(attention: TiledAttention, places: int) -> tuple[float, float]:
    """Return how many tiles, and how many steps, the place works through that ends last.

    Parameters
    ----------
    attention : TiledAttention
        The work.
    places : int
        How many tiles are worked on at once.

    Notes
    -----
    R. L. Graham, "Bounds for certain multiprocessing anomalies" (1966): list scheduling ends within the even share
    plus one longest job. Limits: kernels that split the keys of one tile over SMs.

    Examples
    --------
    >>> busiest(TiledAttention(2, 512, 512, 64, 128, 128, causal=True), 4)
    (2.0, 8.0)
    """
    tiles = math.ceil(attention.tiles / places)
    share = attention.steps / places + attention.longest * (1.0 - 1.0 / places)
    return float(tiles), min(float(tiles * attention.longest), share)


def attention_time(attention: TiledAttention, rates: Rates, *, places: int, rate: float) -> float:
    """Time of tiled attention on the matrix units, memory apart. [s].

    Parameters
    ----------
    attention : TiledAttention
        The work.
    rates : Rates
        What was measured: `peak` share that a place reaches, `step` for the exponentials of one step, `block` per
        tile, and the `sustained` share of the whole device's peak.
    places : int
        How many tiles are worked on at once.
    rate : float
        Peak of one place. [FLOP/s]
    """
    tiles, steps = busiest(attention, places)
    tiled = tiles * rates.block + steps * (attention.flops / (rate * rates.peak) + rates.step)
    powered = attention.steps * attention.flops / (rate * places * rates.sustained)
    return float((tiled**8 + powered**8) ** 0.125)
