"""Recorded measurements: what a run of `fusesim calibrate` saves, and what it can be fitted from again.

A file that is corrupt, truncated, in other units, or measured nothing real is refused in one sentence.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fusesim.calibrate.cases import Case
from fusesim.errors import InputError, MeasurementError, excerpt
from fusesim.ops import DTYPES, OPS
from fusesim.store import first_problem

SCHEMA = "fusesim-measurements/1"
MAX_SIZE = 64 << 20


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Row(_Record):
    """One measured case: seconds per chain (for a host, per launch), median and 10th and 90th percentile."""

    suite: str
    kind: Literal["empty", "chain"]
    probe: str
    path: Literal["cuda", "cupy"]
    mode: Literal["graph", "stream", "latency"]
    ops: tuple[str, ...] = ()
    elements: int = Field(default=0, ge=0, le=10**18)
    dtype: str = "bf16"
    fused: bool = True
    row: int = Field(default=0, ge=0)
    sets: int = Field(ge=1, le=10**6)
    median: float = Field(gt=1e-8, lt=10, allow_inf_nan=False)
    low: float = Field(gt=1e-8, lt=10, allow_inf_nan=False)
    high: float = Field(gt=1e-8, lt=10, allow_inf_nan=False)
    repeats: int = Field(ge=1)
    host: float | None = Field(default=None, gt=0, lt=1, allow_inf_nan=False)
    registers: int = Field(default=0, ge=0, le=255)

    @model_validator(mode="after")
    def _is_possible(self) -> Row:
        if not self.low <= self.median <= self.high:
            raise InputError(f"low {self.low:g}, median {self.median:g}, high {self.high:g} are not in order")
        for name in self.ops:
            if name not in OPS:
                raise InputError(f'unknown op "{excerpt(name)}"')
        if self.dtype not in DTYPES:
            raise InputError(f'unknown dtype "{excerpt(self.dtype)}"')
        if self.kind == "chain" and not (self.ops and self.elements):
            raise InputError("a chain needs ops and elements")
        return self

    @property
    def key(self) -> str:
        """The name of the case that was measured."""
        return self.case.key

    @property
    def case(self) -> Case:
        """The case that was measured, with the sets it was measured over."""
        names = ("kind", "probe", "path", "mode", "ops", "elements", "dtype", "fused", "row", "sets")
        return Case(**{name: getattr(self, name) for name in names})


class Measurements(_Record):
    """A file of measurements: the environment they were made in, and the rows."""

    schema_: Literal["fusesim-measurements/1"] = Field(alias="schema")
    device: str
    date: str
    protocol: str
    environment: dict[str, str | float | int]
    rows: tuple[Row, ...]

    def of(self, **wanted: Any) -> list[Row]:
        """Return the rows whose fields have these values."""
        return [row for row in self.rows if all(getattr(row, name) == value for name, value in wanted.items())]

    def to_json(self) -> str:
        """Return the file's text, a row a line."""
        head = self.model_dump(mode="json", by_alias=True, exclude={"rows"})
        rows = ",\n".join(json.dumps(row.model_dump(mode="json", exclude_defaults=True)) for row in self.rows)
        opened = json.dumps(head, indent=1).removesuffix("\n}")
        return f'{opened},\n "rows": [\n{rows}\n ]\n}}\n'


def load_measurements(path: str | Path) -> Measurements:
    """Read and check a file of measurements.

    Raises
    ------
    MeasurementError
        Names the file and what is wrong.
    """
    file = Path(path)
    try:
        if file.exists() and not file.is_file():
            raise MeasurementError(f"{excerpt(file, 200)}: not a file; give the path of recorded measurements")
        if file.stat().st_size > MAX_SIZE:
            raise MeasurementError(f"{file.name}: larger than 64 MiB, so not recorded measurements")
        return Measurements.model_validate_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise MeasurementError(f"{excerpt(file, 200)}: cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        raise MeasurementError(f"{file.name}: {first_problem(error)}") from error
    except ValueError as error:
        raise MeasurementError(f"{file.name}: not recorded measurements: {error}") from error
