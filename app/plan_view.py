"""From the settings of the page of patterns to priced plans: the one place where that page asks fusesim for numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fusesim import liveness, plans, why
from fusesim.comparison import Comparison
from fusesim.emit import emit
from fusesim.errors import FusesimError, PlanError
from fusesim.legality import reason_against
from fusesim.limits import Limits
from fusesim.patterns import find
from fusesim.planning import plan as plan_graph
from fusesim.plans import group_cost
from fusesim.strategies import STRATEGIES
from fusesim.strategies.base import as_plan, masks_of
from fusesim.topology import topology

from . import ids
from .plan_form import ASK, COMPILE, EDITS, PATTERN, STRATEGY, arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.hardware import HardwareProfile
    from fusesim.liveness import Timeline
    from fusesim.records import Price
    from fusesim.topology import Topology
    from fusesim.why import EdgeUse, Why

    from .catalogue import Catalogue
    from .fields import Values

EAGER_PATHS: Final = ("eager", "cuda-graph")
"""Strategies that run the framework's own kernels."""

MOST_SOLVED: Final = 100
"""Ops up to which the exact planner is asked for the table."""

MOST_SOURCE: Final = 24
"""Ops of a kernel up to which its source is shown: it is there to be read."""


SIDES_KEPT: Final = 64
"""Planned and priced graphs that one process keeps: what is asked of a view leaves it as it is."""


class _Terms(NamedTuple):
    """What a side follows from besides its strategy: the pattern and its arguments, and where and how it runs."""

    pattern: str
    arguments: tuple[tuple[str, Any], ...]
    device: str
    launch: str
    model: str
    catalogue: Catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """When a kernel runs, for people: its name, its group, what binds it, and its time. [s]."""

    name: str
    group: int
    start: float
    end: float
    bound: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """One way to run a graph: `plan` may be of the graph with what it computes twice shared."""

    graph: Graph
    plan: FusionPlan
    path: str
    price: Price
    memory: Timeline
    spans: tuple[Span, ...]

    def again(self, group: int | None = None) -> float:
        """Return what the kernels of a group, or all, read again within themselves; none in the textbook. [B]."""
        ran = getattr(self.price.parts, "kernels_run", ())
        return float(sum(one.launch.again for one in ran if group in {None, one.group}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A strategy in the table: its price and peak memory, or why it has none. [B]."""

    name: str
    price: Price | None = None
    peak: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of a kernel in both languages, or why there is none."""

    group: int
    cuda: str = ""
    triton: str = ""
    problem: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanView:
    """A graph unfused and fused, as figures and words show it. `rows` and `source` are there once they are asked for.

    `edits` could be made where `refused` is empty.
    """

    values: Values
    device: HardwareProfile
    graph: Graph
    unfused: Side
    fused: Side
    edges: tuple[EdgeUse, ...]
    why: Why | None
    refused: str
    rows: tuple[Row, ...] = ()
    source: Source | None = None

    @property
    def saving(self) -> float:
        """Time that fusing saves per call. [s]."""
        return float(self.unfused.price.time) - float(self.fused.price.time)

    @property
    def speedup(self) -> float:
        """Unfused over fused."""
        return float(self.unfused.price.time) / float(self.fused.price.time)

    @property
    def compared(self) -> Comparison:
        """The two ways as the library compares them."""
        return Comparison(
            graph=self.graph,
            unfused_plan=self.unfused.plan,
            fused_plan=self.fused.plan,
            unfused=self.unfused.price,
            fused=self.fused.price,
            device=self.device,
        )

    @property
    def calls(self) -> float | None:
        """Calls after which compiling has paid, None where it never does."""
        return self.values[COMPILE] / self.saving if self.saving > 0 else None


def look(values: Values, catalogue: Catalogue, *, more: bool = False) -> PlanView:
    """Price the settings; with `more`, every strategy too, and write the source of the largest kernel.

    Raises
    ------
    InputError
        If the sizes do not go together.
    PlanError, CalibrationError
        If a plan is not legal, or the device cannot be priced by the model.
    """
    device, terms = catalogue.find(values[ids.DEVICE]), _terms(values, catalogue)
    unfused, fused = _side("eager", terms), _side(values[STRATEGY], terms)
    graph = unfused.graph
    refused = ""
    if values[EDITS]:
        try:
            fused = _priced(edited(fused.plan, values[EDITS], device), graph, fused.path, terms)
        except FusesimError as error:
            refused = str(error)
    return PlanView(
        values=values,
        device=device,
        graph=graph,
        unfused=unfused,
        fused=fused,
        edges=why.edges(fused.plan),
        why=_asked(fused.plan.graph, values, device),
        refused=refused,
        rows=_rows(graph, terms) if more else (),
        source=source_of(fused.plan) if more else None,
    )


def path_of(strategy: str) -> str:
    """Return whose kernels a strategy's plans run."""
    return "torch" if strategy in EAGER_PATHS else "inductor"


def _terms(values: Values, catalogue: Catalogue) -> _Terms:
    """Return what a side follows from besides its strategy."""
    held = tuple(arguments(values).items())
    return _Terms(values[PATTERN], held, values[ids.DEVICE], values[ids.LAUNCH], values[ids.MODEL], catalogue)


def _cost(model: str, device: HardwareProfile, path: str) -> Callable[[Graph, tuple[str, ...]], float] | None:
    return group_cost(device, path, model=model)


@lru_cache(maxsize=SIDES_KEPT)
def _graph(pattern: str, held: tuple[tuple[str, Any], ...]) -> Graph:
    """Return a pattern at its sizes."""
    return find(pattern)(**dict(held))


@lru_cache(maxsize=SIDES_KEPT)
def _side(strategy: str, terms: _Terms) -> Side:
    """Plan and price a graph in one way."""
    graph, path = _graph(terms.pattern, terms.arguments), path_of(strategy)
    device = terms.catalogue.find(terms.device)
    made = plan_graph(graph, strategy=strategy, device=device, cost=_cost(terms.model, device, path))
    return _priced(made, graph, path, terms)


def _priced(plan: FusionPlan, graph: Graph, path: str, terms: _Terms) -> Side:
    """Price a plan."""
    launch = "graph" if plan.strategy == "cuda-graph" else terms.launch
    device = terms.catalogue.find(terms.device)
    price = plans.price(plan, device=device, path=path, model=terms.model, launch=launch)
    memory = liveness.liveness(plan)
    return Side(graph=graph, plan=plan, path=path, price=price, memory=memory, spans=_spans(plan, price))


def _spans(plan: FusionPlan, price: Price) -> tuple[Span, ...]:
    """Return when each kernel runs; the textbook has one after the other, each a launch and its bytes."""
    run: Any = price.parts
    if hasattr(run, "timeline"):
        return tuple(
            Span(name=span.name, group=kernel.group, start=span.start, end=span.end, bound=span.bound)
            for span, kernel in zip(run.timeline(), run.kernels_run, strict=True)
        )
    spans, start = [], 0.0
    for place, group in enumerate(plan.groups):
        names = {*plan.external_inputs(group), *plan.external_outputs(group)}
        memory = sum(plan.graph.tensors[name].bytes for name in names) / run.bandwidth
        end = start + run.overhead + memory
        bound = "launch" if run.overhead > memory else "dram"
        spans.append(Span(name=group.nodes[0], group=place, start=start, end=end, bound=bound))
        start = end
    return tuple(spans)


def _asked(graph: Graph, values: Values, device: HardwareProfile) -> Why | None:
    """Answer what two ops would gain by sharing a kernel; nothing where the graph no longer has them."""
    if len(values[ASK]) != 2 or not all(name in graph.by_name for name in values[ASK]):  # noqa: PLR2004 - two ops
        return None
    one, other = values[ASK]
    try:
        return why.why(graph, one, other, _cost(values[ids.MODEL], device, "inductor"), device=device)
    except FusesimError:  # a view, which is in no kernel
        return None


def edited(plan: FusionPlan, edits: tuple[tuple[str, str], ...], device: HardwareProfile) -> FusionPlan:
    """Return a plan in which each of some edges is cut where it is saved, and joined where it is paid.

    Raises
    ------
    PlanError
        If the kernels that an edge would join cannot be one.
    """
    topo, masks = topology(plan.graph), masks_of(topology(plan.graph), plan)
    for pair in edits:
        if all(name in plan.graph.by_name for name in pair):
            masks = _toggled(topo, masks, pair, Limits.of(device))
    return as_plan(plan.graph, topo, masks, "yours", source=plan.source)


def _toggled(topo: Topology, masks: list[int], pair: tuple[str, str], limits: Limits) -> list[int]:
    """Cut or join one edge: a cut takes what depends on the reader out of the kernel."""
    one, other = (topo.mask((name,)) for name in pair)
    home = next((mask for mask in masks if mask & one and mask & other), 0)
    if home:
        later = (other | topo.reach(other, topo.descendants)) & home
        return [*(mask for mask in masks if mask != home), home & ~later, later]
    whole = one | other
    for _ in range(len(masks)):
        grown = whole | topo.between(whole)
        for mask in masks:
            grown |= mask if mask & grown else 0
        if grown == whole:
            break
        whole = grown
    reason = reason_against(topo, whole, limits)
    if reason:
        raise PlanError(f"{pair[0]} and {pair[1]} cannot share a kernel: {reason}")
    return [*(mask for mask in masks if not mask & whole), whole]


def _rows(graph: Graph, terms: _Terms) -> tuple[Row, ...]:
    """Price every strategy."""
    found = []
    for name in STRATEGIES:
        if name == "optimal" and len(graph.paid_nodes) > MOST_SOLVED:
            found.append(Row(name=name, problem=f"more than {MOST_SOLVED} ops: choose it to wait for it"))
            continue
        try:
            side = _side(name, terms)
        except FusesimError as error:
            found.append(Row(name=name, problem=str(error)))
        else:
            found.append(Row(name=name, price=side.price, peak=side.memory.peak))
    return tuple(found)


def source_of(plan: FusionPlan) -> Source | None:
    """Return the source of the largest kernel that has a readable one; None where every kernel is an op alone."""
    sized = sorted(enumerate(plan.groups), key=lambda each: -len(each[1].nodes))
    problem = ""
    for place, group in sized:
        if not 1 < len(group.nodes) <= MOST_SOURCE:
            continue
        try:
            return Source(group=place, cuda=emit(plan, place, "cuda"), triton=emit(plan, place, "triton"))
        except FusesimError as error:
            problem = problem or str(error)
    return Source(group=0, problem=problem) if problem else None
