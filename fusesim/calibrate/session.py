"""A run: compiles, settles, measures case after case into a journal, and watches that the GPU stays steady."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from pydantic import ValidationError

from fusesim import units
from fusesim.calibrate.cases import Case
from fusesim.calibrate.record import SCHEMA, Measurements, Row
from fusesim.errors import MeasurementError
from fusesim.store import first_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fusesim.calibrate.cases import Sample
    from fusesim.calibrate.environment import Environment, Gpu
    from fusesim.calibrate.journal import Journal

PROBES: Final = {
    "the smallest kernel": Case(kind="chain", probe="steady", ops=("mul",), elements=2048, sets=256),
    "a large copy": Case(kind="chain", probe="steady", ops=("mul",), elements=1 << 27, sets=2),
}
"""Measured at the start, between suites and at the end: launches and memory must be what they were. Their clocks are
not those of matmuls, which may be lowered on a healthy GPU."""
STEADY: Final = 0.05
"""Readings of one probe may lie so far apart, as a share."""
ATTEMPTS: Final = 3
"""A reading that is off is taken again: something short may have come between."""


class Bench(Protocol):
    """What measures: a GPU, or in tests what stands for one."""

    @property
    def gpu(self) -> Gpu:
        """What the GPU is."""

    def environment(self) -> Environment:
        """Return what the measurements depend on."""

    def fits(self, case: Case) -> bool:
        """Return whether there is memory for the case."""

    def compile(self, cases: Iterable[Case], progress: Callable[[int, int], None]) -> None:
        """Compile what the cases need."""

    def settle(self, progress: Callable[[int, int], None]) -> None:
        """Bring the process into the state to measure in."""

    def measure(self, case: Case) -> Sample:
        """Measure one case."""


class Observer(Protocol):
    """What shows how far a run has come."""

    def stage(self, name: str, done: int, total: int) -> None:
        """Say that so many steps of a stage are done."""

    def warn(self, sentence: str) -> None:
        """Say what is not as it should be."""


def run(bench: Bench, cases: Sequence[Case], journal: Journal, observer: Observer, *, force: bool) -> Measurements:
    """Measure what the journal does not hold yet, and return everything.

    Parameters
    ----------
    bench : Bench
        The GPU.
    cases : sequence of Case
        What to measure, suite after suite.
    journal : Journal
        Where every outcome is kept at once.
    observer : Observer
        Told how far the run has come.
    force : bool
        Go on where the GPU is unsteady.

    Raises
    ------
    MeasurementError
        If the GPU is unsteady, or fails.
    """
    todo = [case for case in cases if case.identity not in journal.rows]
    fitting = [case for case in todo if bench.fits(case)]
    if len(fitting) < len(todo):
        observer.warn(f"{len(todo) - len(fitting)} of {len(cases)} cases need more memory than is free; left out")
    bench.compile([*fitting, *PROBES.values()], lambda done, total: observer.stage("compile", done, total))
    bench.settle(lambda done, total: observer.stage("settle", done, total))
    _probe(bench, journal, observer, force=force)
    for suite in dict.fromkeys(case.suite for case in cases):
        mine = [case for case in fitting if case.suite == suite]
        total = sum(case.suite == suite for case in cases)
        for index, case in enumerate(mine):
            observer.stage(suite, total - len(mine) + index, total)
            journal.add(case.identity, _measured(bench, case))
        observer.stage(suite, total, total)
        if mine:
            _probe(bench, journal, observer, force=force)
    return _finished(cases, journal, bench.environment())


def _measured(bench: Bench, case: Case) -> Row:
    """Measure a case; what no kernel can take is an error."""
    try:
        return Row.of(case, bench.measure(case))
    except ValidationError as error:
        raise MeasurementError(f"{case.key}: the GPU's clock cannot be right: {first_problem(error, Row)}") from error


def _probe(bench: Bench, journal: Journal, observer: Observer, *, force: bool) -> None:
    """Take the probes, and compare them with the first ones."""
    readings = {name: _measured(bench, case).median for name, case in PROBES.items()}
    first = journal.probes[0] if journal.probes else readings
    for name, case in PROBES.items():
        for _ in range(ATTEMPTS - 1):
            if abs(readings[name] / first[name] - 1) > STEADY:
                readings[name] = _measured(bench, case).median
        if abs(readings[name] / first[name] - 1) > STEADY:
            before, now = (
                units.format_quantity(t, units.TIME, like=first[name]) for t in (first[name], readings[name])
            )
            sentence = f"the GPU is unsteady: {name} took {before} at first and {now} later"
            if not force:
                journal.discard()
                raise MeasurementError(
                    f"{sentence}; end what else runs on it and start again, or accept it with --force"
                )
            observer.warn(sentence)
    journal.add_probes(readings)


def _finished(cases: Sequence[Case], journal: Journal, environment: Environment) -> Measurements:
    """Return the measurements in the order of the cases, with statistics of their spread."""
    rows = [journal.rows[case.identity] for case in cases if case.identity in journal.rows]
    spreads = [(row.high - row.low) / row.median for row in rows]
    middle, high = (float(value) for value in np.quantile(spreads, [0.5, 0.9])) if spreads else (0.0, 0.0)
    statistics = {"cases_left_out": len(cases) - len(rows), "spread_median": middle, "spread_90": high}
    for name in PROBES:
        readings = [reading[name] for reading in journal.probes]
        label = f"probe_{name.split()[-1]}"
        statistics |= {label: float(np.median(readings)), f"{label}_spread": max(readings) / min(readings) - 1}
    return Measurements.model_validate(
        {
            "schema": SCHEMA,
            "device": journal.header.device,
            "date": journal.header.date,
            "protocol": journal.header.protocol,
            "environment": {**journal.header.environment, **environment, **statistics},
            "rows": rows,
        }
    )
