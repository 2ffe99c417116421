"""The record of a run while it lasts: a header, then a line of JSON for every case as soon as it is measured.

Whatever ends the run, the lines that were written stay; only a last one that was cut short is measured again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fusesim.calibrate.record import Row  # noqa: TC001 - pydantic reads the annotation
from fusesim.errors import InputError, MeasurementError, excerpt
from fusesim.store import first_problem

if TYPE_CHECKING:
    from pathlib import Path

SAME: Final = ("gpu", "driver", "cuda_driver", "cuda_runtime", "cupy", "cpu", "fusesim")
"""What must not change between the parts of one run."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Header(_Record):
    """The first line: where and when a run began, and what it measures."""

    schema_: Literal["fusesim-journal/1"] = Field(default="fusesim-journal/1", alias="schema")
    device: str
    date: str
    protocol: str
    paths: tuple[str, ...]
    environment: dict[str, str | float | int]


class _Line(_Record):
    """Another line: a measured case, or readings of the steadiness probes."""

    case: str | None = None
    row: Row | None = None
    probes: dict[str, float] | None = None


class Journal:
    """An open journal: its header, the rows by the identity of their case, and the readings of the probes."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path, self.header = path, header
        self.rows: dict[str, Row] = {}
        self.probes: list[dict[str, float]] = []

    @classmethod
    def begin(cls, path: Path, header: Header) -> Journal:
        """Start a journal, over an old one."""
        journal = cls(path, header)
        journal._write(header.model_dump_json(by_alias=True), mode="w")
        return journal

    @classmethod
    def reopen(cls, path: Path) -> Journal:
        """Read a journal that a run left, to go on with it.

        Raises
        ------
        InputError
            If there is none.
        MeasurementError
            If it is damaged other than by ending in the middle of a line.
        """
        if not path.is_file():
            raise InputError(f'there is no run to resume: "{excerpt(path, 200)}" does not exist')
        try:
            text = path.read_text(encoding="utf-8")
            first, *lines = text[: text.rfind("\n") + 1].splitlines() or [""]
            journal = cls(path, Header.model_validate_json(first))
            for line in lines:
                journal._take(_Line.model_validate_json(line))
        except OSError as error:
            raise MeasurementError(f"{path.name}: cannot be read: {error.strerror or error}") from error
        except ValidationError as error:
            raise MeasurementError(f"{path.name}: {first_problem(error, _Line)}; start over with --force") from error
        except ValueError as error:
            raise MeasurementError(f"{path.name}: not a journal of a run; start over with --force") from error
        journal._write("".join(f"{line}\n" for line in (first, *lines)).removesuffix("\n"), mode="w")
        return journal

    def check_same(self, environment: dict[str, Any]) -> None:
        """Refuse to mix what was measured on different machines.

        Raises
        ------
        MeasurementError
            Names what differs.
        """
        for name in SAME:
            before, now = self.header.environment.get(name), environment.get(name)
            if before != now:
                raise MeasurementError(
                    f"{self.path.name} was begun with {name} {before} and this is {name} {now}; start over with --force"
                )

    def add(self, case: str, row: Row) -> None:
        """Keep the outcome of a case."""
        self._append(_Line(case=case, row=row))

    def add_probes(self, readings: dict[str, float]) -> None:
        """Keep readings of the probes."""
        self._append(_Line(probes=readings))

    def discard(self) -> None:
        """Remove the file: what it holds is in the measurements, or not fit to use."""
        self.path.unlink(missing_ok=True)

    def _append(self, line: _Line) -> None:
        self._write(line.model_dump_json(exclude_defaults=True), mode="a")
        self._take(line)

    def _take(self, line: _Line) -> None:
        if line.row and line.case:
            self.rows[line.case] = line.row
        if line.probes:
            self.probes.append(line.probes)

    def _write(self, text: str, mode: Literal["w", "a"]) -> None:
        try:
            with self.path.open(mode, encoding="utf-8") as file:
                file.write(text + "\n")
        except OSError as error:
            raise MeasurementError(f'cannot write "{excerpt(self.path, 200)}": {error.strerror or error}') from error
