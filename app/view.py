"""From settings to priced records: the one place where the workshop asks fusesim for numbers.

A view holds the chain over a range of sizes, in one broadcast call, the chain at the chosen size, and there once
more without the effect that was switched on last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import fusesim
from fusesim import roofline
from fusesim.machine import EFFECTS
from fusesim.ops import find_dtype
from fusesim.units import MAX_ELEMENTS

from .chain_text import MAX_OPS
from .settings import ROTATING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fusesim.calibration import PathCost
    from fusesim.measured import Measured
    from fusesim.records import ChainPrice, Price

    from .catalogue import Catalogue
    from .settings import Settings

OCTAVES: Final = (10, 30)
POINTS_PER_OCTAVE: Final = 3
MOST_STEPS: Final = 75
"""Where the chosen size lies far out, points lie further apart: an answer stays small."""

INTENSITIES: Final = np.logspace(-4, 5, 10)
"""Where the roof is sampled besides its ridge; it is straight between. [FLOP/B]"""

LENGTHS: Final = np.array([1, 2, MAX_OPS])
"""Chains by which the page says from which length on fusing pays."""

NO_HOST: Final = 4e-6
"""Where the host's slider stands for a device of which nothing was measured; it is hidden then. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """A chain as figures show it.

    `before` is the chosen size without the last effect, None in the textbook. `lengths` is the chosen size as a chain
    of each of `LENGTHS`, None where its ops are `named`. `complete` says whether all effects
    are on, which is what intervals are known for. `overridden` if the bandwidth is not the device's own. `peak` is
    the dense peak of the plain arithmetic units in the type that the chain computes in, NaN where no source gives
    it [FLOP/s]. `host_interval` is in force [s], with `host` where it is the path's own, and so are `repeats` of a
    graph. `measured` are measurements of the very chain.
    """

    curve: ChainPrice
    point: ChainPrice
    sizes: NDArray[np.float64]
    overridden: bool
    peak: float
    before: ChainPrice | None = None
    lengths: ChainPrice | None = None
    named: tuple[str, ...] = ()
    complete: bool = True
    host_interval: float = NO_HOST
    host: PathCost | None = None
    repeats: int = 1
    measured: tuple[Measured, ...] = ()

    @property
    def run(self) -> Any:
        """Kernels of the unfused chain, their machine and their situation; only in the calibrated model."""
        return self.point.unfused.parts

    @property
    def calibrated(self) -> bool:
        """Whether any effect beyond the textbook is on."""
        return self.point.model != "textbook"

    @property
    def has_interval(self) -> bool:
        """Whether an interval is known: residuals are those of the whole model."""
        return self.calibrated and self.complete

    @property
    def peak_bandwidth(self) -> float:
        """Bandwidth of the datasheet, or the learner's. [B/s]."""
        run = self.run
        return float(run.machine.peak_bandwidth if self.calibrated else run.textbook.bandwidth)

    @property
    def bandwidth(self) -> float:
        """Bandwidth that kernels are taken to reach. [B/s]."""
        reached = self.calibrated and "bandwidth" in self.run.situation.effects
        return float(self.run.machine.bandwidth) if reached else self.peak_bandwidth

    @property
    def overhead(self) -> float:
        """What one launch costs. [s]."""
        return float(self.run.situation.floor if self.calibrated else self.run.textbook.launch_overhead)

    @property
    def replay(self) -> float:
        """What one replay of a graph costs. [s]."""
        return float(self.run.situation.replay if self.calibrated else self.run.textbook.replay_overhead)

    @property
    def ridge(self) -> float:
        """Arithmetic intensity at which the two ceilings meet, NaN where one is unknown. [FLOP/B]."""
        return self.peak / self.bandwidth

    @property
    def roof(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Arithmetic intensities and the rates attainable there; memory alone where no peak is sourced."""
        peak, ridge = self.peak, self.ridge
        intensities = INTENSITIES if np.isnan(peak) else np.sort(np.append(INTENSITIES, ridge))
        return intensities, self.attainable(intensities)

    def attainable(self, intensity: Any) -> Any:
        """Return the rates under the roof at these arithmetic intensities. [FLOP/s]."""
        limit = np.inf if np.isnan(self.peak) else self.peak
        return np.asarray(roofline.attainable(intensity=intensity, bandwidth=self.bandwidth, flop_rate=limit))

    def excess(self, price: Price) -> float:
        """Return how many times the rate under the roof a chain reaches; above 1 it stands above the roof."""
        return float(price.flops / price.time / self.attainable(price.arithmetic_intensity))

    @property
    def counts_arithmetic(self) -> bool:
        """Whether instructions cost time."""
        return self.calibrated and "arithmetic" in self.run.situation.effects

    @property
    def compute_type(self) -> str:
        """The type in which the arithmetic is done, wider than the one in memory where that is narrow."""
        return find_dtype(self.point.dtype).compute


def look(settings: Settings, catalogue: Catalogue) -> View:
    """Price the settings of the chain page."""
    pricing = Pricing(settings, catalogue)
    sizes = sizes_around(settings.elements, settings.effective_row or 1)
    point, host, path = pricing.price(settings.elements, settings.step), pricing.host_interval, pricing.path
    return View(
        curve=pricing.price(sizes, settings.step),
        point=point,
        before=pricing.price(settings.elements, settings.step - 1) if settings.step else None,
        lengths=pricing.price(settings.elements, settings.step, LENGTHS) if settings.named is None else None,
        named=settings.named or (),
        complete=settings.complete,
        sizes=sizes,
        overridden=settings.dram_bandwidth is not None,
        peak=point.device.vector_rate(find_dtype(settings.dtype).compute),
        host_interval=host if host is not None else path.interval if path else NO_HOST,
        host=path if host is None else None,
        repeats=int(pricing.repeats(settings.elements)),
        measured=pricing.measured,
    )


class Pricing:
    """Settings as arguments of `fusesim.price_chain`, for any size and any number of effects."""

    def __init__(self, settings: Settings, catalogue: Catalogue) -> None:
        self.settings, self.catalogue = settings, catalogue
        self.measured = measured_of(settings, catalogue)
        self.record = catalogue.records.get(settings.device)

    @property
    def path(self) -> PathCost | None:
        """What the path costs where something was measured."""
        return self.record.paths[self.settings.path] if self.record else None  # type: ignore[index]

    @property
    def host_interval(self) -> float | None:
        """The learner's host interval, else the one of the measured points, else None: the path's own. [s]."""
        if self.settings.host_interval is not None:
            return self.settings.host_interval
        return next((row.host_interval for row in self.measured if row.host_interval is not None), None)

    def sets(self, elements: Any) -> Any:
        """Return over how many buffer sets passes rotate."""
        itemsize = find_dtype(self.settings.dtype).itemsize
        return self.catalogue.rotation(np.asarray(elements, dtype=np.float64) * itemsize)

    def repeats(self, elements: Any) -> Any:
        """Return how many passes one graph holds: one, or one for each buffer set, unless given."""
        if self.settings.repeats is not None:
            return self.settings.repeats
        return self.sets(elements) if self.settings.inputs == ROTATING else 1

    def price(self, elements: Any, step: int, ops: Any = None) -> ChainPrice:
        """Price the chain, or another number of its ops, with the first so many effects on."""
        chain = list(self.settings.named) if self.settings.named is not None else self.settings.ops
        return fusesim.price_chain(chain if ops is None else ops, elements, **self.terms(elements, step))

    def terms(self, elements: Any, step: int) -> dict[str, Any]:
        """Return what `fusesim.price_chain` takes besides chain and size."""
        settings = self.settings
        terms: dict[str, Any] = {
            "dtype": settings.dtype,
            "device": self.catalogue.find(settings.device),
            "launch": settings.launch,
            "row": settings.effective_row,
            "launch_overhead": settings.launch_overhead,
            "dram_bandwidth": settings.dram_bandwidth,
            "graph_repeats": self.repeats(elements),
        }
        return terms | (self._real(elements, step) if step else {})

    def _real(self, elements: Any, step: int) -> dict[str, Any]:
        """Return what the calibrated model takes besides; effects are named unless all of them count."""
        settings = self.settings
        return {
            "model": "calibrated",
            "path": settings.path,
            "calibration": self.record,
            "host_interval": self.host_interval,
            "effects": None if step == len(EFFECTS) else EFFECTS[:step],
            "inputs": self.sets(elements) if settings.inputs == ROTATING else settings.inputs,
        }


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
    return View(
        curve=fusesim.price_chain(ops, sizes, row=row, **terms),
        point=point,
        sizes=sizes,
        complete=terms.get("effects") is None,
        overridden=terms.get("dram_bandwidth") is not None,
        peak=point.device.vector_rate(find_dtype(point.dtype).compute),
    )


def measured_of(settings: Settings, catalogue: Catalogue) -> tuple[Measured, ...]:
    """Return the measurements of the very chain in its launch mode, of all sizes."""
    source = catalogue.measured
    asked = (source.device, settings.named, settings.dtype, settings.launch, settings.path)
    return tuple(row for row in source.rows if (settings.device, row.ops, row.dtype, row.mode, row.path) == asked)


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
    exponents = np.linspace(low, high, min(round((high - low) * POINTS_PER_OCTAVE), MOST_STEPS) + 1)
    rows = np.clip(np.round(2.0**exponents / row), 1, MAX_ELEMENTS // row)
    return np.unique(rows * row)


def launch_bound_up_to(price: Price, sizes: NDArray[np.float64]) -> float | None:
    """Return the size below which launches decide, half-way (in ratio) between the sizes around the turn.

    Launches of the host count as launches. `None` where they decide nowhere on the curve, infinity where they do
    everywhere.
    """
    bound = np.broadcast_to(np.isin(price.bound, ("launch", "host")), sizes.shape)
    count = int(np.argmin(bound)) if not bound.all() else len(sizes)
    if count == 0:
        return None
    return float(np.inf) if count == len(sizes) else float(np.sqrt(sizes[count - 1] * sizes[count]))
