"""From the settings of the roofline page to ceilings of devices and the kernels of a plan below them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fusesim import roofline
from fusesim.calibration import machine_of
from fusesim.ops import OPS, find_dtype

from . import ids, plan_view
from .controls import short_text
from .device_view import NONE, SECOND, THIRD, special_rate
from .fields import Field, Form, Values
from .forms import Part
from .layout import Menu, Switch
from .plan_form import ASK, COMPILE, EDITS, STRATEGY, pattern_parts, plan_form

if TYPE_CHECKING:
    from fusesim.graph import Graph
    from fusesim.hardware import HardwareProfile
    from fusesim.records import Price

    from .catalogue import Catalogue
    from .plan_view import PlanView

OWN: Final = (ASK, EDITS, COMPILE)
"""Settings of the page of plans that have no meaning here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """One limit: a slope in B/s or a level in FLOP/s, and where its figure comes from."""

    name: str
    rate: float
    slope: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A kernel, or a whole program: its side, its arithmetic, bytes and time, and what binds it. [FLOP, B, s]."""

    name: str
    side: str
    flops: float
    bytes_moved: float
    time: float
    bound: str

    @property
    def intensity(self) -> float:
        """Arithmetic done per byte read or written. [FLOP/B]."""
        return self.flops / self.bytes_moved

    @property
    def rate(self) -> float:
        """Arithmetic done per second. [FLOP/s]."""
        return self.flops / self.time


@dataclass(frozen=True, kw_only=True, eq=False)
class RooflineView:
    """Ceilings of the first device, roofs of the others, and what stands below them."""

    plan: PlanView
    dtype: str
    ceilings: tuple[Ceiling, ...]
    others: tuple[tuple[HardwareProfile, tuple[Ceiling, ...]], ...]
    kernels: tuple[Point, ...]
    totals: tuple[Point, ...]
    idle: int

    def attainable(self, intensity: float) -> float:
        """Return the rate under the device's roof: its memory's slope, and its highest level for the type. [FLOP/s]."""
        return roof(self.ceilings, intensity)


def roof(ceilings: tuple[Ceiling, ...], intensity: float) -> float:
    """Return the rate that the memory's slope and the highest level allow. [FLOP/s]."""
    memory = next(each.rate for each in ceilings if each.slope)
    levels = [each.rate for each in ceilings if not each.slope]
    limit = max(levels, default=math.inf)
    return float(roofline.attainable(intensity=intensity, bandwidth=memory, flop_rate=limit))


def ridge(ceilings: tuple[Ceiling, ...], level: Ceiling) -> float:
    """Return where a level meets the memory's slope. [FLOP/B]."""
    return level.rate / next(each.rate for each in ceilings if each.slope)


def roofline_form(catalogue: Catalogue) -> Form:
    """Return the settings of the page: those of a plan, and devices to lay beside."""

    def optional(raw: Any) -> str:
        return NONE if raw == NONE else catalogue.find(short_text("device", raw)).id

    kept = [each for name, each in plan_form(catalogue).fields.items() if name not in OWN]
    return Form(*kept, *(Field(name=name, default=NONE, read=optional) for name in (SECOND, THIRD)))


def parts(catalogue: Catalogue, strategies: list[tuple[str, str]]) -> tuple[Part, ...]:
    """Return the controls of the panel."""
    devices = [(device.id, device.name) for device in catalogue.profiles]
    launches = (("graph", "in a graph"), ("stream", "on a stream"), ("latency", "from idle"))
    models = (("calibrated", "calibrated"), ("textbook", "textbook"))
    return (
        Part(owner=ids.DEVICE, controls=(Menu(id=ids.DEVICE, label="Device", options=devices),)),
        Part(owner=SECOND, controls=(Menu(id=SECOND, label="beside", options=[(NONE, "none"), *devices]),)),
        Part(owner=THIRD, controls=(Menu(id=THIRD, label="and", options=[(NONE, "none"), *devices]),)),
        *pattern_parts(),
        Part(owner=STRATEGY, controls=(Menu(id=STRATEGY, label="Who fuses", options=strategies),)),
        Part(owner=ids.LAUNCH, controls=(Switch(id=ids.LAUNCH, label="Launched", options=launches),)),
        Part(owner=ids.MODEL, controls=(Switch(id=ids.MODEL, label="Model", options=models),)),
    )


def look(values: Values, catalogue: Catalogue) -> RooflineView:
    """Price the plan on the first device, and collect ceilings.

    Raises
    ------
    InputError, PlanError, CalibrationError
        As `plan_view.look` does.
    """
    plan = plan_view.look(values | {ASK: (), EDITS: (), COMPILE: 0.0}, catalogue)
    dtype = dtype_of(plan.graph)
    names = dict.fromkeys(values[name] for name in (SECOND, THIRD) if values[name] not in {NONE, values[ids.DEVICE]})
    others = tuple(catalogue.find(name) for name in names)
    kernels = tuple(point for side in ("unfused", "fused") for point in _kernels(plan, side))
    return RooflineView(
        plan=plan,
        dtype=dtype,
        ceilings=ceilings_of(plan.device, dtype, catalogue),
        others=tuple((device, ceilings_of(device, dtype, catalogue)) for device in others),
        kernels=tuple(point for point in kernels if point.flops > 0 and point.bytes_moved > 0),
        totals=tuple(_total(plan, side) for side in ("unfused", "fused")),
        idle=sum(1 for point in kernels if point.flops == 0),
    )


def dtype_of(graph: Graph) -> str:
    """Return the element type of a graph's first input that is a floating one."""
    found = [graph.tensors[name].dtype for name in graph.inputs]
    return next((name for name in found if not name.startswith(("int", "bool"))), "fp32")


def ceilings_of(device: HardwareProfile, dtype: str, catalogue: Catalogue) -> tuple[Ceiling, ...]:
    """Return a device's ceilings for an element type; those that nobody sourced are left out."""
    record = catalogue.records.get(device.id)
    vector, l2 = find_dtype(dtype).compute, device.cache.l2_bandwidth
    found = [Ceiling(name="memory", rate=device.dram_bandwidth, slope=True, source="datasheet")]
    if record is not None:
        found.append(
            Ceiling(
                name="L2 cache",
                rate=machine_of(record, device).cache_bandwidth,
                slope=True,
                source=f"reached, {record.name}",
            )
        )
    elif l2 is not None:
        found.append(Ceiling(name="L2 cache", rate=l2.si, slope=True, source="published"))
    exp = OPS["exp"]
    levels = (
        (f"{dtype} tensor", device.tensor_rate(dtype if dtype != "fp32" else "tf32"), "datasheet, dense"),
        (f"{vector}", device.vector_rate(vector), "datasheet"),
        ("special functions", special_rate(device) * exp.flops / max(exp.special, 1), "SMs x clock x units"),
    )
    found += [
        Ceiling(name=name, rate=rate, slope=False, source=source)
        for name, rate, source in levels
        if not math.isnan(rate)
    ]
    return tuple(found)


def _kernels(plan: PlanView, side: str) -> list[Point]:
    """Return the kernels of one way; the textbook knows none by itself."""
    price = (plan.unfused if side == "unfused" else plan.fused).price
    return [_point(one, str(getattr(one.parts, "name", "kernel")), side) for one in price.per_kernel]


def _point(price: Price, name: str, side: str) -> Point:
    return Point(
        name=name,
        side=side,
        flops=float(price.flops),
        bytes_moved=float(price.bytes_moved),
        time=float(price.time),
        bound=str(price.bound),
    )


def _total(plan: PlanView, side: str) -> Point:
    return _point((plan.unfused if side == "unfused" else plan.fused).price, "all kernels", side)
