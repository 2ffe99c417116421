"""Matrix products: which tile a library would choose, and how long the product takes with it.

    time of a round = k steps x (matrix units, or filling shared memory) + what a tile costs once
    body            = rounds x that, and memory; no faster than power lets the matrix units run

Tiles are cut so that all SMs have one; a partial last round costs a whole one, which is why odd shapes are slow. The
inner dimension is split over blocks where tiles are too few; a second kernel then adds the parts up. Numpy over the
candidate tiles; everything else is plain floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from fusesim.launches import Rates

STEP: Final = 64
"""Inner dimension of one step: 128 bytes of 16-bit values, a swizzled row of shared memory."""

_WIDE = (64, 128, 192, 256, 320)
_HIGH = tuple(range(8, 264, 8))
_FITTING = {(a, b) for a in _WIDE for b in _HIGH if a * b <= 256 * 160}
TILES: Final = np.array(
    sorted(_FITTING | {(b, a) for a, b in _FITTING if b >= 32}),  # noqa: PLR2004 - no tile is narrower
    dtype=float,
)
"""Sizes of tiles that cuBLAS's kernels for Hopper have, as their names say (nvjet_sm90, seen on an H200)."""

SPLITS: Final = (1, 2, 4, 8)
LEAST_INNER: Final = 4096
"""Into how many parts the inner dimension may be split, and how long it must be for that: it is where even tiles of
64 x 128 would leave half of the SMs without one (cuBLAS 13 on an H200)."""


@dataclass(frozen=True, slots=True)
class Product:
    """A batch of matrix products [m, k] x [k, n]; `itemsize` bytes per value."""

    batch: int
    m: int
    k: int
    n: int
    itemsize: int

    @property
    def flops(self) -> float:
        """Arithmetic, an FMA counted as two. [FLOP]."""
        return 2.0 * self.batch * self.m * self.k * self.n


@dataclass(frozen=True, slots=True)
class Tiling:
    """A tile, into how many parts the inner dimension is split, and how many tiles there are with that.

    `at_once` tiles run at a time; 0 stands for one on each SM.
    """

    wide: float
    high: float
    split: int
    tiles: float
    at_once: float = 0.0


PLAIN: Final = 1e12
"""What one SM does without matrix units, at most: their products take operands in a value at a time. [FLOP/s]"""

CHOICE: Final = {"peak": 0.85, "fill": 1.4e11, "plain": 2.8e10, "once": 1.75e-6, "parts": 1e-6}
"""What the choice of a tile goes by: the share of its peak that an SM reaches, bytes per second into it, with matrix
units and without, what a tile and what adding up parts cost. It stands for the library's own heuristics, which are
not published; typical values of an H200. [1, B/s, B/s, s, s]"""


def step_time(wide: object, high: object, itemsize: int, *, rate: float, fill: float) -> object:
    """Time of one step of a tile: its arithmetic, or bringing its operands in. [s].

    Parameters
    ----------
    wide, high : float or ndarray
        Size of the tile.
    itemsize : int
        Bytes per value.
    rate : float
        What one SM's matrix units do. [FLOP/s]
    fill : float
        What one SM takes in. [B/s]
    """
    arithmetic = 2.0 * wide * high * (128 / itemsize) / rate  # type: ignore[operator]
    operands = (wide + high) * 128.0 / fill  # type: ignore[operator]
    return np.sqrt(np.sqrt(arithmetic**4 + operands**4))


@lru_cache(maxsize=4096)
def choose_tiling(product: Product, sms: int, rate: float) -> Tiling:
    """Return the tile that takes least time by `CHOICE`; `rate` is one SM's peak. [FLOP/s]."""
    best, found = np.inf, Tiling(128, 128, 1, 1)
    wide, high = TILES.T
    inner = 128 / product.itemsize
    fill = CHOICE["fill"] if rate > PLAIN else CHOICE["plain"]
    times = step_time(wide, high, product.itemsize, rate=rate * CHOICE["peak"], fill=fill)
    smallest = np.ceil(product.n / 64) * np.ceil(product.m / 128) * product.batch
    splits = product.k >= LEAST_INNER and 2 * smallest <= sms
    for split in SPLITS:
        if split > 1 and not splits:
            break
        tiles = np.ceil(product.n / wide) * np.ceil(product.m / high) * product.batch * split
        steps = np.ceil(product.k / split / inner)
        total = np.ceil(tiles / sms) * (steps * times + CHOICE["once"]) + (CHOICE["parts"] if split > 1 else 0.0)
        place = int(np.argmin(total))
        if total[place] < best:
            best, found = total[place], Tiling(wide[place], high[place], split, tiles[place])
    return found


def product_time(product: Product, tiling: Tiling, rates: Rates, *, sms: int, rate: float) -> float:
    """Time of the matrix units in a product, memory apart. [s].

    Parameters
    ----------
    product, tiling : Product, Tiling
        What is computed, and how it is cut.
    rates : Rates
        What was measured: `peak` share that an SM reaches, `fill` into an SM, `block` per round, `drain` out of an SM
        for the last tile, beside which there is no other to compute, and the `sustained` share of the device's peak.
    sms : int
        How many SMs there are.
    rate : float
        Peak of one SM. [FLOP/s]
    """
    inner = 128 / product.itemsize
    steps = np.ceil(product.k / tiling.split / inner)
    one = step_time(tiling.wide, tiling.high, product.itemsize, rate=rate * rates.peak, fill=rates.fill)
    rounds = np.ceil(tiling.tiles / (tiling.at_once or sms))
    leaving = tiling.wide * tiling.high * product.itemsize / rates.drain if rates.drain else 0.0
    tiled = rounds * (steps * one + rates.block) + leaving
    powered = product.flops / (rate * sms * rates.sustained)
    return float(max(tiled, powered))
