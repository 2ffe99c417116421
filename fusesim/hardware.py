"""What a device is: datasheet facts, each with its unit and its source, checked against each other on load.

This file may know pydantic and units; it must not know files, measurements or the model. A device file that
contradicts itself does not load: every peak is compared with SMs x clock x FLOP per clock, the bandwidth with
bus width x pin rate, and every source key must resolve. A figure that nobody sourced is left out, never guessed.

Vocabulary is NVIDIA's: an SM is also a compute unit (AMD), shared memory also LDS. Peaks are dense.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fusesim import units
from fusesim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

TOLERANCE = 0.02
"""Largest relative gap between a stated figure and the product of its own factors."""

VectorType = Literal["fp64", "fp32", "fp16", "bf16"]
TensorType = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp6", "fp4"]


class _Record(BaseModel):
    """Frozen, and every unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Sources = Annotated[tuple[str, ...], BeforeValidator(_as_tuple), Field(min_length=1)]


class Source(_Record):
    """Where figures come from."""

    title: str
    url: str
    retrieved: str | None = None
    note: str | None = None


class Alternative(_Record):
    """What another source says of the same figure."""

    value: float
    unit: str = ""
    source: Sources
    note: str | None = None


class Figure(_Record):
    """One number as printed, its unit, and its source; `si` is the number in base units."""

    dimension: ClassVar[units.Dimension]

    value: float = Field(gt=0, allow_inf_nan=False, strict=True)
    unit: str = ""
    source: Sources
    note: str | None = None
    alternatives: tuple[Alternative, ...] = ()

    @model_validator(mode="after")
    def _unit_fits(self) -> Figure:
        entries: tuple[Figure | Alternative, ...] = (self, *self.alternatives)
        for figure in entries:
            units.parse(f"{figure.value!r} {figure.unit}", self.dimension)
        return self

    @cached_property
    def si(self) -> float:
        """The value in base units."""
        return units.parse(f"{self.value!r} {self.unit}", self.dimension)


class Count(Figure):
    """How many."""

    dimension = units.COUNT


class Bandwidth(Figure):
    """Bytes per second."""

    dimension = units.BANDWIDTH


class Size(Figure):
    """Bytes."""

    dimension = units.SIZE


class Frequency(Figure):
    """Cycles per second."""

    dimension = units.FREQUENCY


class FlopRate(Figure):
    """Dense FLOP (or integer operations) per second."""

    dimension = units.FLOP_RATE


class BusWidth(Figure):
    """Bits."""

    dimension = units.BUS_WIDTH


class PinRate(Figure):
    """Bits per second and pin."""

    dimension = units.PIN_RATE


class Power(Figure):
    """Watts."""

    dimension = units.POWER


class Chip(_Record):
    """The processor as one device: a board of two dies that appear as two devices is described as one of them."""

    sms: Count | None = None
    boost_clock: Frequency | None = None
    board_power: Power | None = None


class Memory(_Record):
    """The device memory. `achieved_copy` is what BabelStream's copy reaches: one benchmark, to compare devices."""

    kind: str | None = None
    bandwidth: Bandwidth
    capacity: Size | None = None
    bus_width: BusWidth | None = None
    pin_rate: PinRate | None = None
    achieved_copy: Bandwidth | None = None


class Cache(_Record):
    """Caches shared by all SMs. `last_level` is a further cache between L2 and memory (Infinity Cache)."""

    l2: Size | None = None
    l2_bandwidth: Bandwidth | None = None
    last_level: Size | None = None
    last_level_bandwidth: Bandwidth | None = None


class Multiprocessor(_Record):
    """Limits and instruction throughputs of one SM; throughputs are results per clock."""

    threads: Count | None = None
    blocks: Count | None = None
    warp: Count | None = None
    schedulers: Count | None = None
    registers: Count | None = None
    registers_per_thread: Count | None = None
    shared_memory: Size | None = None
    shared_memory_per_block: Size | None = None
    fp32_per_clock: Count | None = None
    fp64_per_clock: Count | None = None
    half_per_clock: Count | None = None
    integer_per_clock: Count | None = None
    special_per_clock: Count | None = None
    convert_to_half_per_clock: Count | None = None
    convert_from_half_per_clock: Count | None = None


class Time(Figure):
    """Seconds."""

    dimension = units.TIME


class Launch(_Record):
    """Published launch floors: the period of small kernels back to back, their body included."""

    graph_node: Time | None = None
    stream: Time | None = None


class Peak(_Record):
    """A dense peak rate, and the factors that must reproduce it where they are sourced."""

    rate: FlopRate
    flop_per_clock: Count | None = None
    clock: Frequency | None = None


class HardwareProfile(_Record):
    """A device: what its datasheet and its driver say of it.

    The properties give base units; ``None`` or NaN where nobody sourced the figure.
    """

    id: str
    name: str
    vendor: Literal["nvidia", "amd", "intel", "apple", "other"]
    architecture: str
    compute_capability: str | None = None
    aliases: tuple[str, ...] = ()
    note: str | None = None
    requested_as: str | None = None
    chip: Chip = Chip()
    memory: Memory
    cache: Cache = Cache()
    sm: Multiprocessor = Multiprocessor()
    launch: Launch = Launch()
    vector: dict[VectorType, Peak] = {}
    tensor: dict[TensorType, Peak] = {}
    sources: dict[str, Source]

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> HardwareProfile:
        _check_sources(self)
        _check_bus(self.memory)
        for kind, peaks in (("vector", self.vector), ("tensor", self.tensor)):
            for dtype, peak in peaks.items():
                _check_peak(f"{kind}.{dtype}", peak, self.chip)
        return self

    def __repr_args__(self) -> Iterator[tuple[str, str]]:
        """Yield what a repr shows; the rest is several pages."""
        yield from (("id", self.id), ("name", self.name))

    @property
    def dram_bandwidth(self) -> float:
        """Peak bandwidth of the device memory, from the datasheet. [B/s]."""
        return self.memory.bandwidth.si

    @property
    def cache_capacity(self) -> float:
        """Capacity of the cache that holds intermediates: the last level where there is one, else L2. [B]."""
        figure = self.cache.last_level or self.cache.l2
        return figure.si if figure else math.nan

    def vector_rate(self, dtype: str) -> float:
        """Return the dense peak of the plain arithmetic units in `dtype`, NaN where unsourced. [FLOP/s]."""
        return next((peak.rate.si for name, peak in self.vector.items() if name == dtype), math.nan)

    def tensor_rate(self, dtype: str) -> float:
        """Return the dense peak of the matrix units in `dtype`, NaN where unsourced. [FLOP/s]."""
        return next((peak.rate.si for name, peak in self.tensor.items() if name == dtype), math.nan)

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield every figure with its key path, in file order."""
        yield from _figures(self, "")


def _figures(record: BaseModel, path: str) -> Iterator[tuple[str, Figure]]:
    """Walk a record for figures."""
    for name in type(record).model_fields:
        value = getattr(record, name)
        if isinstance(value, Figure):
            yield f"{path}{name}", value
        elif isinstance(value, _Record):
            yield from _figures(value, f"{path}{name}.")
        elif isinstance(value, dict):
            for key, entry in value.items():
                if isinstance(entry, Peak):
                    yield from _figures(entry, f"{path}{name}.{key}.")


def _check_sources(profile: HardwareProfile) -> None:
    """Refuse a figure whose source is not in the table of sources."""
    for path, figure in profile.figures():
        entries: tuple[Figure | Alternative, ...] = (figure, *figure.alternatives)
        for entry in entries:
            for key in entry.source:
                if key not in profile.sources:
                    raise InputError(f'{path}: source "{key}" is not in [sources]')


def _check_bus(memory: Memory) -> None:
    """Compare bus width x pin rate with the stated bandwidth."""
    if not (memory.bus_width and memory.pin_rate):
        return
    expected = memory.bus_width.si * memory.pin_rate.si / 8
    if abs(memory.bandwidth.si / expected - 1) > TOLERANCE:
        stated, product = (units.format_quantity(rate, units.BANDWIDTH) for rate in (memory.bandwidth.si, expected))
        raise InputError(f"memory.bandwidth: {stated} stated, but bus width x pin rate gives {product}")


def _check_peak(path: str, peak: Peak, chip: Chip) -> None:
    """Compare SMs x clock x FLOP per clock with the stated peak; twice as much is the mark of a sparse one."""
    clock = peak.clock or chip.boost_clock
    if not (chip.sms and clock and peak.flop_per_clock):
        return
    expected = chip.sms.si * clock.si * peak.flop_per_clock.si
    ratio = peak.rate.si / expected
    if abs(ratio - 1) <= TOLERANCE:
        return
    stated, product = (units.format_quantity(rate, units.FLOP_RATE) for rate in (peak.rate.si, expected))
    sparse = "; it looks like a sparse peak, give the dense one" if abs(ratio / 2 - 1) <= TOLERANCE else ""
    raise InputError(f"{path}.rate: {stated} stated, but SMs x clock x FLOP per clock gives {product}{sparse}")
