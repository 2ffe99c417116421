"""Recorded measurements: what a run of `fusesim calibrate` saves, and what it can be fitted from again.

A file that is corrupt, truncated, in other units, or measured nothing real is refused in one sentence.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fusesim.calibrate.cases import Case, Sample
from fusesim.errors import InputError, MeasurementError, excerpt
from fusesim.ops import DTYPES, OPS
from fusesim.store import first_problem
from fusesim.textfile import read_text

SCHEMA = "fusesim-measurements/1"
MAX_SIZE = 64 << 20
SHORTEST, LONGEST = 1e-8, 10.0
"""Between these lies the time of every kernel that is measured. [s]"""
DIMENSIONS = {"matmul": 3, "reduction": 2}
MAX_LENGTH = 1 << 40

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Row(_Record):
    """One measured case: seconds per chain (for a host, per launch), median and 10th and 90th percentile."""

    suite: str
    kind: Literal["empty", "chain", "matmul", "reduction"]
    probe: str
    path: Literal["cuda", "cupy", "torch", "inductor"]
    mode: Literal["graph", "stream", "latency"]
    ops: tuple[str, ...] = ()
    elements: int = Field(default=0, ge=0, le=10**18)
    dtype: str = "bf16"
    fused: bool = True
    row: int = Field(default=0, ge=0)
    sets: int = Field(ge=1, le=10**6)
    shape: tuple[int, ...] = ()
    median: Seconds
    low: Seconds
    high: Seconds
    repeats: int = Field(ge=1)
    host: float | None = Field(default=None, gt=0, lt=1, allow_inf_nan=False)
    registers: int = Field(default=0, ge=0, le=255)

    @classmethod
    def of(cls, case: Case, sample: Sample) -> Row:
        """Join a case and what came of it."""
        return cls.model_validate(asdict(case) | asdict(sample))

    @model_validator(mode="after")
    def _is_possible(self) -> Row:
        if not self.low <= self.median <= self.high:
            raise InputError(f"low {self.low:g}, median {self.median:g}, high {self.high:g} are not in order")
        if not SHORTEST < self.low <= self.high < LONGEST:
            raise InputError(f"{self.low:g} to {self.high:g} s is no kernel's time; all times are in seconds")
        for name in self.ops:
            if name not in OPS:
                raise InputError(f'unknown op "{excerpt(name)}"')
        if self.dtype not in DTYPES:
            raise InputError(f'unknown dtype "{excerpt(self.dtype)}"')
        if self.kind == "chain" and not (self.ops and self.elements):
            raise InputError("a chain needs ops and elements")
        if len(self.shape) != DIMENSIONS.get(self.kind, 0) or not all(0 < n < MAX_LENGTH for n in self.shape):
            raise InputError(f"shape {excerpt(self.shape)} is not one of a {self.kind}")
        return self

    @property
    def key(self) -> str:
        """The name of the case that was measured."""
        return self.case.key

    @property
    def case(self) -> Case:
        """The case that was measured, with the sets it was measured over."""
        return Case(**{field.name: getattr(self, field.name) for field in fields(Case)})


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
    text = read_text(file, "recorded measurements", limit=MAX_SIZE, fault=MeasurementError)
    try:
        return Measurements.model_validate_json(text)
    except ValidationError as error:
        raise MeasurementError(f"{file.name}: {first_problem(error, Measurements)}") from error
    except ValueError as error:
        raise MeasurementError(f"{file.name}: not recorded measurements: {error}") from error
