"""``fusesim calibrate``: measure this GPU, fit the model to it, and keep both."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import fusesim
from fusesim import calibrations, store
from fusesim.calibrate import compare, environment, measure, session, trust
from fusesim.calibrate.identify import identify
from fusesim.calibrate.journal import Header, Journal
from fusesim.calibrate.plan import plan
from fusesim.calibrate.record import SCHEMA, load_measurements
from fusesim.cli import calibration_tables, shared
from fusesim.cli.progress import bars
from fusesim.errors import CalibrationError, InputError, MeasurementError, excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.calibrate.record import Measurements
    from fusesim.calibration import Calibration
    from fusesim.hardware import HardwareProfile

PATHS: Final = ("cuda", "cupy")
"""Measured unless others are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wishes:
    """What the command line asks for."""

    paths: tuple[str, ...] | None
    out: str | None
    raw: str | None
    resume: bool
    force: bool
    device: str | None
    device_file: str | None

    def profile(self) -> HardwareProfile | None:
        """Return the device that was named."""
        if self.device is None and self.device_file is None:
            return None
        return shared.chosen_device(self.device or "", self.device_file)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where the results go."""

    out: Path
    raw: Path

    @property
    def journal(self) -> Path:
        """Where the run is kept while it lasts."""
        return self.raw.with_name(f"{self.raw.name}.partial")


@click.command()
@click.option("--paths", help="What to measure: cuda,cupy (the default), torch, inductor.")
@click.option("--out", metavar="FILE", help="The calibration; your own folder of calibrations unless given.")
@click.option("--raw", metavar="FILE", help="The measurements; beside the calibration unless given.")
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted.")
@click.option("--from", "recorded", metavar="RAW", help="Fit recorded measurements again; needs no GPU.")
@click.option("--force", is_flag=True, help="Overwrite, and keep what is unsteady or not trustworthy.")
@click.option("--device", help="Which device the GPU is, where its name does not tell.")
@click.option("--device-file", metavar="PATH", help="A device file of your own instead.")
@click.option("--compare", "pair", nargs=2, metavar="A B", help="Show how far two calibrations lie apart.")
@shared.json_option
def calibrate(
    *, recorded: str | None, pair: tuple[str, str] | None, as_json: bool, paths: str | None, **rest: Any
) -> None:
    """Measure this GPU and host, fit the calibrated model to them, and keep the result for this user.

    \b
    fusesim calibrate
    fusesim calibrate --from raw.json --out calibration.json
    fusesim calibrate --compare before.json after.json
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    chosen = None if paths is None else tuple(dict.fromkeys(name.strip() for name in paths.split(",")))
    wishes = _Wishes(paths=chosen, **rest)
    if pair is not None:
        if recorded or paths or any(rest.values()):
            raise click.UsageError("--compare takes two files and no other option than --json")
        _compare(pair, as_json=as_json)
    elif recorded is not None:
        if wishes.resume or wishes.raw or paths:
            raise click.UsageError("--from fits recorded measurements; --paths, --raw and --resume are for measuring")
        measured = load_measurements(recorded)
        profile = wishes.profile() or store.load_known_device(measured.device)
        places = _places(wishes, profile)
        _refuse_existing([places.out], force=wishes.force)
        _conclude(measured, profile, places.out, Path(recorded), wishes, as_json=as_json)
    else:
        measured, profile, places = _measure(wishes)
        _conclude(measured, profile, places.out, places.raw, wishes, as_json=as_json)


def _places(wishes: _Wishes, profile: HardwareProfile) -> _Places:
    """Return where results go, in folders that exist."""
    if wishes.out is None:
        out = calibrations.user_calibrations() / f"{profile.id}.json"
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f'cannot make the folder "{excerpt(out.parent, 200)}": {error.strerror}') from error
    else:
        out = Path(wishes.out)
    raw = out.with_name(f"{out.stem}.raw.json") if wishes.raw is None else Path(wishes.raw)
    for file in (out, raw):
        if not (file.parent.is_dir() and os.access(file.parent, os.W_OK)):
            raise InputError(f'cannot write "{excerpt(file, 200)}": there is no such folder to write to')
    if out == raw:
        raise InputError("--out and --raw are the same file; give two")
    return _Places(out=out, raw=raw)


def _refuse_existing(files: Sequence[Path], *, force: bool) -> None:
    """Never overwrite unasked."""
    for file in files if not force else ():
        if file.exists():
            raise InputError(f'"{excerpt(file, 200)}" exists; give another --out, or overwrite it with --force')


def _measure(wishes: _Wishes) -> tuple[Measurements, HardwareProfile, _Places]:
    """Measure this machine, and save the measurements."""
    plan(wishes.paths or PATHS)  # a misspelt path is said before the GPU is woken
    bench = measure.open_bench(wishes.paths or PATHS)
    busy = environment.load(bench.gpu.bus)  # nothing of this process has run yet
    if busy > environment.BUSY and not wishes.force:
        raise MeasurementError(
            f"the GPU is {busy:.0f} % busy; end what else runs on it, or measure all the same with --force"
        )
    profile = wishes.profile() or identify(bench.gpu, map(store.load_known_device, store.device_ids()))
    places = _places(wishes, profile)
    _refuse_existing([places.out, places.raw], force=wishes.force)
    journal = _journal(wishes, bench, profile, places)
    cases = plan(journal.header.paths)
    try:
        with bars() as shown, environment.sampled(bench.gpu.bus) as samples:
            measured = session.run(bench, cases, journal, shown, force=wishes.force)
    except KeyboardInterrupt:
        kept = f"{len(journal.rows)} of {len(cases)} cases are kept in {journal.path}"
        click.echo(f"fusesim: {kept}; go on with the same command line and --resume", err=True)
        raise
    measured = measured.model_copy(update={"environment": measured.environment | samples})
    shared.write_atomically(str(places.raw), measured.to_json())
    journal.discard()
    return measured, profile, places


def _journal(wishes: _Wishes, bench: session.Bench, profile: HardwareProfile, places: _Places) -> Journal:
    """Begin a journal, or go on with the one that is there."""
    where = bench.environment() | environment.driver_facts(bench.gpu.bus) | environment.host_facts(fusesim.__version__)
    if wishes.resume:
        journal = Journal.reopen(places.journal)
        journal.check_same({**where, "device": profile.id})
        if wishes.paths not in {None, journal.header.paths}:
            raise InputError(f"the run to resume measures {','.join(journal.header.paths)}; leave out --paths")
        return journal
    if places.journal.exists() and not wishes.force:
        raise InputError(
            f'"{excerpt(places.journal, 200)}" holds an unfinished run; go on with --resume or start over with --force'
        )
    header = Header(
        device=profile.id,
        date=dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        protocol=" ".join((measure.__doc__ or "").split()),
        paths=wishes.paths or PATHS,
        environment=where,
    )
    return Journal.begin(places.journal, header)


def _conclude(
    measured: Measurements, profile: HardwareProfile, out: Path, raw: Path, wishes: _Wishes, *, as_json: bool
) -> None:
    """Fit, show and save."""
    fitted = trust.calibrate(measured, profile, out.stem)
    doubts = trust.doubts(fitted, profile)
    if not as_json:
        _show(fitted, measured)
    if doubts and not wishes.force:
        raise CalibrationError(
            f"not written, since not trustworthy: {'; '.join(doubts)}; write it all the same with --force"
        )
    for doubt in doubts:
        click.echo(f"fusesim: warning: {doubt}", err=True)
    shared.write_atomically(str(out), fitted.model_dump_json(indent=1, by_alias=True) + "\n")
    if as_json:
        record = fitted.model_dump(mode="json", by_alias=True)
        shared.print_json({"calibration": record, "doubts": doubts, "file": str(out), "measurements": str(raw)})
    else:
        out_lines = (f"calibration: {out}", f"measurements: {raw}")
        for line in out_lines:
            shared.console().print(line, soft_wrap=True)


def _show(fitted: Calibration, measured: Measurements) -> None:
    """Print what was found."""
    out = shared.console()
    gpu = excerpt(measured.environment.get("gpu", measured.device))
    out.print(f"{fitted.device}: {gpu}, {len(measured.rows)} cases of {measured.date}", style="bold", soft_wrap=True)
    for table in (calibration_tables.parameters, calibration_tables.residuals, calibration_tables.hosts):
        shared.print_table(out, table(fitted))
        out.print()


def _compare(pair: tuple[str, str], *, as_json: bool) -> None:
    """Show how far two calibrations lie apart."""
    first, second = (_load_either(path) for path in pair)
    rows = compare.drift(first, second)
    agreeing = sum(row.agrees for row in rows)
    if as_json:
        shared.print_json({"parameters": [row.to_dict() for row in rows], "agree": agreeing, "of": len(rows)})
        return
    out = shared.console()
    names = (Path(pair[0]).name, Path(pair[1]).name)
    shared.print_table(out, calibration_tables.drift(rows, names))
    out.print(f"{agreeing} of {len(rows)} parameters agree within {compare.AGREE:g} combined sigma", style="bold")


def _load_either(path: str) -> Calibration:
    """Read a calibration, or measurements and fit them."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            is_raw = SCHEMA in file.read(200)
    except (OSError, ValueError):
        is_raw = False  # the reader of calibrations says what is wrong
    if not is_raw:
        return calibrations.load_calibration_file(path)
    measured = load_measurements(path)
    return trust.calibrate(measured, store.load_known_device(measured.device), Path(path).stem)
