"""Reads files of measured chains, in three formats, into one kind of row.

``fusesim-measurements/1`` is what `fusesim calibrate` saves, in seconds. The other two are tables in microseconds:
rows of chains with `us` as median, 10th and 90th percentile; and rows with `stream`, `latency` and `graph` of the
five-op chain. Each file says how often its own host could launch, by the row of its empty kernel; measurements of
``fusesim-measurements/1`` in mode stream are made behind a kernel that holds the stream, so no host is in them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fusesim.calibrate.record import MAX_SIZE, SCHEMA, load_measurements
from fusesim.errors import InputError, MeasurementError, excerpt
from fusesim.measured import Measured
from fusesim.ops import DTYPES, find_ops
from fusesim.paths import STYLES
from fusesim.store import aliases, device_ids, first_problem
from fusesim.textfile import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FITTED_SUITES: Final = frozenset({"fit", "mix", "cupy", "stream"})
"""Suites of `fusesim calibrate` that parameters are fitted on, so no evidence of accuracy."""
FIVE_OPS: Final = ("add", "mul", "relu", "neg", "abs")
MICROSECOND: Final = 1e-6

Micros = Annotated[float, Field(gt=0.01, lt=1e7, allow_inf_nan=False)]
"""Microseconds: from 10 ns, less than any kernel takes, to 10 s."""
Elements = Annotated[int, Field(ge=1, le=10**18)]
Sets = Annotated[int, Field(ge=1, le=10**6)]
Side = Literal["fused", "unfused"]


class MeasuredFile(NamedTuple):
    """The chains of a file; `device` is the one that it names, None where it names none that is known."""

    name: str
    device: str | None
    rows: tuple[Measured, ...]


class _Record(BaseModel):
    """Frozen; keys that do not matter here may stand beside those that do."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Spread(_Record):
    """Median, 10th and 90th percentile, and of how many."""

    med: Micros
    lo: Micros
    hi: Micros
    n: int = Field(ge=1)

    @model_validator(mode="after")
    def _in_order(self) -> _Spread:
        if not self.lo <= self.med <= self.hi:
            raise InputError(f"lo {self.lo:g}, med {self.med:g}, hi {self.hi:g} are not in order")
        return self


class _Empty(_Record):
    """The floor of a backend's launches."""

    kind: Literal["empty"]
    backend: str
    mode: Literal["graph", "eager", "latency"]
    us: _Spread


class _Chain(_Record):
    """A chain of named ops."""

    kind: Literal["chain"]
    backend: str
    ops: tuple[str, ...] = Field(min_length=1)
    elements: Elements = Field(alias="S")
    dtype: str
    variant: Side
    mode: Literal["graph", "eager", "latency"]
    sets: Sets
    row: int | None = Field(default=None, ge=1)
    us: _Spread

    @model_validator(mode="after")
    def _is_known(self) -> _Chain:
        find_ops(self.ops)
        if self.dtype not in DTYPES:
            raise InputError(f'unknown dtype "{excerpt(self.dtype)}"')
        if self.backend not in STYLES:
            raise InputError(f'unknown backend "{excerpt(self.backend)}"')
        return self


class _Chains(_Record):
    """A table of chains by backend and mode."""

    meta: dict[str, Any] = {}
    protocol: str = ""
    rows: list[Annotated[_Empty | _Chain, Field(discriminator="kind")]]


class _StreamEmpty(_Record):
    """The empty kernel; `host` is per launch call."""

    kind: Literal["empty"]
    host: Micros


class _Five(_Record):
    """The five-op chain in each launch mode that was measured."""

    kind: Literal["five"]
    elements: Elements = Field(alias="S")
    variant: Side
    sets: Sets
    stream: Micros | None = None
    latency: Micros | None = None
    graph: Micros | None = None


class _Streams(_Record):
    """A table of the five-op chain by launch mode."""

    protocol: str = ""
    rows: list[Annotated[_StreamEmpty | _Five, Field(discriminator="kind")]]


def read_measured(path: str | Path) -> MeasuredFile:
    """Read and check a file of measured chains.

    Raises
    ------
    MeasurementError
        Names the file and what is wrong with it.
    """
    file = Path(path)
    table = _table(file)
    device: str | None
    try:
        if table.get("schema") == SCHEMA:
            device, rows = _own(file)
        elif _looks_like(table, "us"):
            chains = _Chains.model_validate(table)
            device, rows = named_device(chains.meta.get("name"), chains.protocol), list(_chains(chains, file.name))
        elif _looks_like(table, "stream", "latency", "graph"):
            streams = _Streams.model_validate(table)
            device, rows = named_device(streams.protocol), list(_streams(streams, file.name))
        else:
            raise MeasurementError(f"{file.name}: not measured chains in a format that fusesim reads")
    except ValidationError as error:
        raise MeasurementError(f"{file.name}: {first_problem(error)}") from error
    if not rows:
        raise MeasurementError(f"{file.name}: holds no measured chain")
    return MeasuredFile(file.name, device, tuple(rows))


def _table(file: Path) -> dict[str, Any]:
    """Read a file's outermost table."""
    text = read_text(file, "measured chains", limit=MAX_SIZE, fault=MeasurementError)
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:  # bad JSON, numbers of 5000 digits, endless nesting
        raise MeasurementError(f"{file.name}: not valid JSON: {error}") from error
    if not isinstance(table, dict):
        raise MeasurementError(f"{file.name}: not measured chains in a format that fusesim reads")
    return table


def _looks_like(table: dict[str, Any], *keys: str) -> bool:
    """Return whether rows of chains have one of the keys."""
    rows = table.get("rows")
    listed = rows if isinstance(rows, list) else []
    return any(isinstance(row, dict) and "S" in row and not {*keys}.isdisjoint(row) for row in listed)


def named_device(*texts: object) -> str | None:
    """Return the first device whose id or alias is a word of a text."""
    known = {name: name for name in device_ids()} | aliases()
    words = (word for text in texts for word in re.findall(r"[\w-]+", str(text).lower()))
    return next((known[word] for word in words if word in known), None)


def _own(file: Path) -> tuple[str, list[Measured]]:
    """Read what `fusesim calibrate` saved."""
    saved = load_measurements(file)
    hosts = {row.path: row.host for row in saved.of(kind="empty", mode="stream")}
    rows = [
        Measured(
            source=file.name,
            suite=row.suite,
            path=row.path,
            mode=row.mode,
            ops=row.ops,
            elements=row.elements,
            dtype=row.dtype,
            row=row.row or None,
            sets=row.sets,
            fused=row.fused,
            time=row.median,
            host_interval={"graph": None, "stream": 0.0, "latency": hosts.get(row.path)}[row.mode],
        )
        for row in saved.of(kind="chain")
    ]
    return saved.device, rows


def _chains(chains: _Chains, source: str) -> Iterator[Measured]:
    """Yield the rows of a table of chains; eager is a stream that Python fills."""
    floors = {row.backend: row.us.med for row in chains.rows if row.kind == "empty" and row.mode == "eager"}
    for row in chains.rows:
        if row.kind == "empty":
            continue
        fused = row.variant == "fused"
        launcher = {"cuda": "cupy-raw", "cupy": "cupy-elementwise" if fused else "cupy-add"}.get(row.backend, "")
        host = None if row.mode == "graph" or launcher not in floors else floors[launcher] * MICROSECOND
        yield Measured(
            source=source,
            suite="chains",
            path=row.backend,
            mode="stream" if row.mode == "eager" else row.mode,
            ops=row.ops,
            elements=row.elements,
            dtype=row.dtype,
            row=row.row,
            sets=row.sets,
            fused=fused,
            time=row.us.med * MICROSECOND,
            host_interval=host,
        )


def _streams(streams: _Streams, source: str) -> Iterator[Measured]:
    """Yield the rows of a table of launch modes, a row for each mode."""
    host = next((row.host * MICROSECOND for row in streams.rows if row.kind == "empty"), None)
    for row in streams.rows:
        for mode in ("stream", "latency", "graph") if row.kind == "five" else ():
            time = getattr(row, mode)
            if row.kind == "five" and time is not None:
                yield Measured(
                    source=source,
                    suite="launch modes",
                    path="cuda",
                    mode=mode,
                    ops=FIVE_OPS,
                    elements=row.elements,
                    dtype="bf16",
                    row=None,
                    sets=row.sets,
                    fused=row.variant == "fused",
                    time=time * MICROSECOND,
                    host_interval=None if mode == "graph" else host,
                )


def choose_suites(rows: Iterable[Measured], suites: str | None) -> list[Measured]:
    """Return the rows of the suites named, or of those that no parameter is fitted on; ``"all"`` takes every one.

    Raises
    ------
    InputError
        If no row is left.
    """
    listed = list(rows)
    known = list(dict.fromkeys(row.suite for row in listed))
    names = [name.strip() for name in (suites or "").split(",") if name.strip()]
    wanted = names or [name for name in known if name not in FITTED_SUITES]
    chosen = listed if "all" in names else [row for row in listed if row.suite in wanted]
    missing = [] if "all" in names else [name for name in names if name not in known]
    if missing or not chosen:
        what = f'no suite "{excerpt(missing[0])}" in there' if missing else "parameters are fitted on all of these rows"
        raise InputError(f"{what}; give --suite all, or some of {', '.join(known)}")
    return chosen
