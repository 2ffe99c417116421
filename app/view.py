"""From settings to priced records: the one place where the workshop asks fusesim for numbers.

A view holds two prices: the chain over a range of sizes, in one broadcast call, and the chain at the chosen size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import fusesim
from fusesim import roofline
from fusesim.ops import find_dtype
from fusesim.units import MAX_ELEMENTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fusesim.records import ChainPrice, Price

    from .catalogue import Catalogue
    from .controls import Settings

OCTAVES: Final = (10, 30)
POINTS_PER_OCTAVE: Final = 3
INTENSITIES: Final = np.logspace(-4, 5, 10)
"""Where the roof is sampled besides its ridge; it is straight between. [FLOP/B]"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """A chain as figures show it.

    `peak` is the dense peak of the plain arithmetic units in the type that the chain computes in, NaN where no
    source gives it [FLOP/s]; `bandwidth` is the one in force [B/s], `overridden` if it is not the device's.
    """

    curve: ChainPrice
    point: ChainPrice
    sizes: NDArray[np.float64]
    bandwidth: float
    overridden: bool
    peak: float

    @property
    def roof(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Arithmetic intensities and the rates attainable there; memory alone where no peak is sourced."""
        peak, ridge = self.peak, float(self.point.ridge_point)
        intensities = INTENSITIES if np.isnan(peak) else np.sort(np.append(INTENSITIES, ridge))
        limit = np.inf if np.isnan(peak) else peak
        rates = roofline.attainable(intensity=intensities, bandwidth=self.bandwidth, flop_rate=limit)
        return intensities, np.asarray(rates)

    @property
    def compute_type(self) -> str:
        """The type in which the arithmetic is done, wider than the one in memory where that is narrow."""
        return find_dtype(self.point.dtype).compute


def look(settings: Settings, catalogue: Catalogue) -> View:
    """Price the settings of the chain page."""
    return look_at(
        settings.ops,
        settings.elements,
        dtype=settings.dtype,
        device=catalogue.find(settings.device),
        launch=settings.launch,
        launch_overhead=settings.launch_overhead,
        dram_bandwidth=settings.dram_bandwidth,
    )


def look_at(ops: int | str | list[str], elements: int, *, row: int | None = None, **terms: Any) -> View:
    """Price a chain over the range of sizes and at one of them.

    Parameters
    ----------
    ops, elements, row, **terms
        As `fusesim.price_chain` takes them, for one chain of one size.

    Raises
    ------
    InputError
        If `fusesim.price_chain` refuses them.
    """
    point = fusesim.price_chain(ops, elements, row=row, **terms)
    sizes = sizes_around(elements, row or 1)
    given = terms.get("dram_bandwidth")
    return View(
        curve=fusesim.price_chain(ops, sizes, row=row, **terms),
        point=point,
        sizes=sizes,
        bandwidth=point.device.dram_bandwidth if given is None else float(given),
        overridden=given is not None,
        peak=point.device.vector_rate(find_dtype(point.dtype).compute),
    )


def sizes_around(elements: int, row: int = 1) -> NDArray[np.float64]:
    """Return the tensor sizes of a curve: 2^10 to 2^30, and further where the chosen size lies outside.

    Parameters
    ----------
    elements : int
        The chosen size.
    row : int
        Sizes are multiples of it.

    Examples
    --------
    >>> sizes_around(4096)[[0, -1]], len(sizes_around(4096))
    (array([1.02400000e+03, 1.07374182e+09]), 61)
    """
    chosen = np.log2(elements)
    low, high = min(OCTAVES[0], np.floor(chosen)), max(OCTAVES[1], np.ceil(chosen))
    exponents = np.linspace(low, high, round((high - low) * POINTS_PER_OCTAVE) + 1)
    rows = np.clip(np.round(2.0**exponents / row), 1, MAX_ELEMENTS // row)
    return np.unique(rows * row)


def launch_bound_up_to(price: Price, sizes: NDArray[np.float64]) -> float | None:
    """Return the size below which launches decide, half-way (in ratio) between the sizes around the turn.

    `None` where they decide nowhere on the curve, infinity where they do everywhere.
    """
    bound = np.broadcast_to(np.asarray(price.bound) == "launch", sizes.shape)
    count = int(np.argmin(bound)) if not bound.all() else len(sizes)
    if count == 0:
        return None
    return float(np.inf) if count == len(sizes) else float(np.sqrt(sizes[count - 1] * sizes[count]))
