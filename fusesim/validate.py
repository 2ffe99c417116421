"""Predicted against measured: how far prices lie from measurements, by what binds, and whether intervals hold them.

Pure: measured rows in, records out. The public `price_chain` predicts, with nothing that a caller could not pass.
Two quantities are compared. A time: |predicted / measured - 1|. And a saving, unfused minus fused, of the same chain
measured both ways: |predicted - measured| over the measured saving where that is at least a tenth of the unfused
time, else over the unfused time, because next to nothing cannot be relatively right.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from fusesim import units
from fusesim.chains import price_chain
from fusesim.errors import MeasurementError
from fusesim.machine import EFFECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fusesim.calibration import Calibration
    from fusesim.hardware import HardwareProfile
    from fusesim.measured import Measured
    from fusesim.records import ChainPrice, Price

REGIMES: Final = ("launch", "dram", "l2", "arithmetic", "host")
"""What binds; issue slots and special functions are one regime, and a host that is too slow is apart."""
DEVICE_BOUND: Final = "device-bound"
"""All regimes but the host's, which belongs to a software stack and its load and not to the device."""
IMPOSSIBLE: Final = 200.0
"""A measurement this many times off, either way, is in another unit: ms for us is 1000."""
SMALL_SAVING: Final = 0.1
"""Savings below this share of the unfused time are judged against that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A measured quantity beside its prediction and 90 % interval, all in seconds; errors are relative to `scale`."""

    row: Measured
    regime: str
    measured: float
    predicted: float
    low: float
    high: float
    scale: float

    @property
    def deviation(self) -> float:
        """Predicted minus measured, relative."""
        return (self.predicted - self.measured) / self.scale

    @property
    def error(self) -> float:
        """Size of the deviation."""
        return abs(self.deviation)

    @property
    def covered(self) -> bool:
        """Whether the interval holds the measurement."""
        return self.low <= self.measured <= self.high

    @property
    def half_width(self) -> float:
        """Half of the interval, relative."""
        return (self.high - self.low) / 2 / self.scale

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        plain = {name: getattr(self, name) for name in ("regime", "measured", "predicted", "low", "high", "scale")}
        return dataclasses.asdict(self.row) | plain | {"error": self.error, "covered": self.covered}


class Comparisons(NamedTuple):
    """All times and all savings of some measurements, and the calibration that predicted them."""

    calibration: str
    times: list[Comparison]
    savings: list[Comparison]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """Errors of a group of comparisons: median, 90th percentile and worst; `bias` is the median with its sign.

    `coverage` is the share that its 90 % interval holds, `half_width` the median half of an interval, relative.
    """

    path: str
    mode: str
    regime: str
    cases: int
    median: float
    p90: float
    worst: float
    bias: float
    coverage: float
    half_width: float


class Ablation(NamedTuple):
    """Errors of all times and all savings with some effects on."""

    step: str
    effects: tuple[str, ...]
    times: Grade
    savings: Grade | None


def compare(
    rows: Sequence[Measured],
    *,
    device: str | HardwareProfile,
    calibration: Calibration | str | None = None,
    effects: Iterable[str] | None = None,
) -> Comparisons:
    """Predict every measurement, and the saving of every chain that was measured both ways.

    Parameters
    ----------
    rows : sequence of Measured
        What was measured.
    device, calibration, effects
        As `fusesim.price_chain` takes them.

    Raises
    ------
    MeasurementError
        If there is nothing to compare, or a time is in another unit.
    InputError
        If `fusesim.price_chain` refuses an argument.
    """
    if not rows:
        raise MeasurementError("no chain was measured: there is nothing to compare")
    terms = {"device": device, "calibration": calibration, "effects": None if effects is None else tuple(effects)}
    prices: dict[Any, ChainPrice] = {}
    times = []
    for row in rows:
        price = _price(row, terms, prices)
        times.append(_time(row, price.fused if row.fused else price.unfused))
    sides: dict[Any, dict[bool, Measured]] = {}
    for row in rows:
        sides.setdefault(row.chain, {}).setdefault(row.fused, row)
    savings = [
        _saving(both[False], both[True], lambda row: _price(row, terms, prices))
        for both in sides.values()
        if len(both) == len((False, True)) and len(both[False].ops) > 1
    ]
    if effects is None:
        _refuse_other_units(times)
    return Comparisons(str(price.fused.calibration), times, savings)


def _price(row: Measured, terms: dict[str, Any], known: dict[Any, ChainPrice]) -> ChainPrice:
    """Price the chain of a measurement, once for both of its sides."""
    key = (*row.chain, row.host_interval)
    if key not in known:
        known[key] = price_chain(
            list(row.ops),
            row.elements,
            dtype=row.dtype,
            row=row.row,
            model="calibrated",
            launch=row.mode,
            path=row.path,
            inputs=row.sets,
            graph_repeats=row.sets if row.mode == "graph" else 1,
            host_interval=row.host_interval,
            **terms,
        )
    return known[key]


def _regime(price: Price) -> str:
    """Return which of `REGIMES` binds."""
    return price.bound if price.bound in REGIMES else "arithmetic"


def _time(row: Measured, price: Price) -> Comparison:
    low, high = (float(end) for end in price.interval)
    return Comparison(
        row=row,
        regime=_regime(price),
        measured=row.time,
        predicted=float(price.time),
        low=low,
        high=high,
        scale=row.time,
    )


def _saving(unfused: Measured, fused: Measured, price: Callable[[Measured], ChainPrice]) -> Comparison:
    """Compare the saving; the two sides may have been launched at different host intervals."""
    first, second = price(unfused), price(fused)
    both = dataclasses.replace(first, fused=second.fused, saving=first.unfused.time - second.fused.time)
    low, high = (float(end) for end in both.saving_interval)
    measured = unfused.time - fused.time
    return Comparison(
        row=unfused,
        regime=_regime(first.unfused),
        measured=measured,
        predicted=float(both.saving),
        low=low,
        high=high,
        scale=measured if measured >= SMALL_SAVING * unfused.time else unfused.time,
    )


def _refuse_other_units(times: Iterable[Comparison]) -> None:
    """Refuse a time that no device could have taken."""
    for found in times:
        if not 1 / IMPOSSIBLE < found.predicted / found.measured < IMPOSSIBLE:
            measured, predicted = (units.format_quantity(t, units.TIME) for t in (found.measured, found.predicted))
            raise MeasurementError(
                f"{found.row.source}: {found.row.label}: {measured} measured where {predicted} is expected; "
                "is the file in another unit?"
            )


def grade(found: Sequence[Comparison], *, path: str = "all", mode: str = "all", regime: str = "all") -> Grade:
    """Return the errors of a group of comparisons, at least one.

    Notes
    -----
    Quantiles interpolate linearly between the two nearest cases.
    """
    errors = [each.error for each in found]
    return Grade(
        path=path,
        mode=mode,
        regime=regime,
        cases=len(found),
        median=float(np.median(errors)),
        p90=float(np.quantile(errors, 0.9)),
        worst=max(errors),
        bias=float(np.median([each.deviation for each in found])),
        coverage=float(np.mean([each.covered for each in found])),
        half_width=float(np.median([each.half_width for each in found])),
    )


def device_bound(found: Iterable[Comparison]) -> list[Comparison]:
    """Return the comparisons in which the host does not bind."""
    return [each for each in found if each.regime != "host"]


def grades(found: Iterable[Comparison]) -> list[Grade]:
    """Return grades by path, launch mode and regime; all regimes but the host's together come after them."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for each in found:
        groups.setdefault((each.row.path, each.row.mode), []).append(each)
    graded = []
    for (path, mode), members in sorted(groups.items()):
        parts = {regime: [each for each in members if each.regime == regime] for regime in REGIMES}
        parts[DEVICE_BOUND] = device_bound(members)
        parts["host"] = parts.pop("host")  # comes last
        graded += [grade(part, path=path, mode=mode, regime=name) for name, part in parts.items() if part]
    return graded


def worst(found: Iterable[Comparison], count: int = 5) -> list[Comparison]:
    """Return the device-bound comparisons with the largest errors, the worst first."""
    return sorted(device_bound(found), key=lambda each: -each.error)[:count]


def ablate(
    rows: Sequence[Measured], *, device: str | HardwareProfile, calibration: Calibration | str | None = None
) -> list[Ablation]:
    """Return errors with effects switched on one by one from the textbook on, then left out one at a time.

    Notes
    -----
    Only switches are thrown; the parameters stay those of the full model and are not fitted again. So a row tells
    what the full model would lose, not how well a smaller model could do if it were fitted for itself.
    """
    steps: list[tuple[str, tuple[str, ...]]] = [("textbook", ())]
    steps += [(f"+ {effect}", EFFECTS[: index + 1]) for index, effect in enumerate(EFFECTS)]
    steps += [(f"all but {effect}", tuple(e for e in EFFECTS if e != effect)) for effect in EFFECTS]
    table = []
    for step, effects in steps:
        found = compare(rows, device=device, calibration=calibration, effects=effects)
        table.append(Ablation(step, effects, grade(found.times), grade(found.savings) if found.savings else None))
    return table
