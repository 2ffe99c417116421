"""A trace's ops as a graph: calls in order, their operands linked, what they make worked out; times are not read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from fusesim.errors import GraphError, excerpt
from fusesim.frontends import aten_results_gather  # noqa: F401 - registers rules
from fusesim.frontends.aten import opaque, translate
from fusesim.frontends.aten_call import RULES, Call, flat
from fusesim.frontends.aten_results import Look, like, results
from fusesim.frontends.aten_views import views
from fusesim.frontends.inductor_names import fused_ops
from fusesim.frontends.program import Program, Region
from fusesim.frontends.trace_arguments import argument, blank, elements, named_arguments
from fusesim.frontends.trace_calls import Group, groups_of, on_device
from fusesim.frontends.trace_link import JOINS, Linker, Operand, Value
from fusesim.graph import check_shapes
from fusesim.tensor import Tensor, row_major

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fusesim.frontends.trace_records import Launch, Op
    from fusesim.graph import Graph, Node

BLIND: Final = frozenset({"index", "_unsafe_index"})
"""Ops whose index tensors the profiler does not record."""

FAR: Final = 12
"""Calls that are searched for who reads what an op without a rule makes."""

MATRIX: Final = 2
"""Dimensions of a matrix."""


@dataclass(slots=True)
class Built:
    """A graph, and which recorded ops stand behind each of its ops."""

    graph: Graph
    ops_of: dict[str, tuple[Op, ...]] = field(default_factory=dict)


def build(ops: Sequence[Op], launched: Mapping[int, Sequence[Launch]], name: str, notes: Sequence[str] = ()) -> Built:
    """Return the graph of recorded ops.

    Parameters
    ----------
    ops : sequence of Op
        In the order in which they began.
    launched : mapping of int to sequence of Launch
        What each op launched, by its external id; empty where the trace does not say.
    name : str
        Of the graph.
    notes : sequence of str
        Sentences that go to the graph's gaps.

    Raises
    ------
    GraphError
        If no op has operands.
    """
    groups = list(groups_of(list(ops), frozenset(launched)))
    walk = _Walk(Program(name), launched)
    for note in notes:
        walk.program.gap(note)
    walk.groups, gaps = on_device(groups, launched)
    for gap in gaps:
        walk.program.gap(gap)
    for place, group in enumerate(walk.groups):
        walk.add(group, place)
    return walk.built()


class _Walk:
    """Adds calls to a program one by one."""

    def __init__(self, program: Program, launched: Mapping[int, Sequence[Launch]]) -> None:
        self.program = program
        self.linker = Linker(program)
        self.groups: list[Group] = []
        self._place = 0
        self._launched = launched
        self._made: dict[int, Region] = {}
        self._ops_of: dict[str, tuple[Op, ...]] = {}
        self._skipped: Counter[str] = Counter()

    def add(self, group: Group, place: int) -> None:
        """Add a call; where its record does not fit, say so and go on."""
        self._place = place
        before = len(self.program.builder.nodes)
        if group.kind == "call" and group.stem in {"_to_copy", "clone"} and not any(group.op.dims):
            return  # a number on the host
        try:
            if group.kind == "view":
                self._view(group)
            elif group.kind == "linear":
                self._expect(group.op)
            elif group.kind == "triton":
                self._triton(group)
            elif group.stem.startswith("_foreach_"):
                self._each(group)
            else:
                self._call(group, named_arguments(group.op, group.stem))
        except GraphError as error:
            self._skipped[f"{group.op.name}: {excerpt(error, 120)}"] += 1
        except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
            self._skipped[f"{group.op.name}: its recorded arguments do not fit it ({type(error).__name__})"] += 1
        nodes = self.program.builder.nodes
        for at in range(before, len(nodes)):
            if nodes[at].family != "view":
                nodes[at] = self._fitting(nodes[at], group.op.name)
                self._ops_of[nodes[at].name] = tuple(group.ops)

    def _fitting(self, node: Node, name: str) -> Node:
        """Return an op, as one that nobody described where its operands do not fit its kind."""
        tensors = self.program.builder.tensors
        try:
            check_shapes(node, [tensors[part] for part in node.inputs], [tensors[part] for part in node.outputs])
        except GraphError as error:
            self.program.gap(
                f"{excerpt(name)} is priced as one kernel that reads and writes once: {excerpt(error, 120)}"
            )
            return replace(node, kind="opaque", attrs=(("op", name),))
        return node

    def built(self) -> Built:
        """Return the graph: what nothing read is what the program returns."""
        for text, count in self._skipped.most_common(5):
            self.program.gap(f"{count} recorded ops are left out: {text}")
        if not any(node.family != "view" for node in self.program.builder.nodes):
            raise GraphError(
                f"{self.program.builder.name}: no recorded op has operands with shapes; record with "
                "torch.profiler.profile(record_shapes=True)"
            )
        read = {name for node in self.program.builder.nodes for name in node.inputs}
        last = [
            region
            for region in self._made.values()
            if self.program.knows(region) and self.program.read(region).name not in read
        ]
        # a trace does not say when memory is let go: after its last use
        graph = replace(self.program.graph(last), held={})
        return Built(graph, {name: ops for name, ops in self._ops_of.items() if name in graph.by_name})

    def _resolve(self, group: Group, named: dict[str, Any]) -> tuple[dict[str, Any], list[Value]]:
        """Return arguments with the graph's tensors, and the values that are read."""
        blank = group.over and group.stem in {"copy", "zero", "fill"} and not isinstance(named.get("value"), Operand)
        skipped = {"out", "self"} if blank else {"" if "backward" in group.stem else "out"}
        flat: list[Operand] = []
        for name, value in named.items():
            if name not in skipped:
                flat.extend(
                    part for part in (value if isinstance(value, list) else [value]) if isinstance(part, Operand)
                )
        settings = tuple(value for value in named.values() if isinstance(value, int | float | bool | tuple))
        values = self.linker.operands(group.stem, flat, settings)
        queue = iter(values)
        args: dict[str, Any] = {}
        for name, value in named.items():
            if name in skipped:
                args[name] = None
            elif isinstance(value, list):
                args[name] = [self.linker.tensor(next(queue)) if isinstance(part, Operand) else part for part in value]
            elif isinstance(value, Operand):
                args[name] = self.linker.tensor(next(queue))
            else:
                args[name] = value
        return args, values

    def _call(self, group: Group, named: dict[str, Any]) -> None:
        """Add one op."""
        target = named.get("self") if group.over else None
        if "conv" in group.stem and self._is_added():
            named = {
                name: replace(value, role="branch") if name in {"input", "self"} else value
                for name, value in named.items()
            }
        args, values = self._resolve(group, named)
        self._hint(group, args)
        looks: Sequence[Look | None] | None
        if group.over:
            regions = self._targets(group, target, values)
        else:
            blind = group.stem in BLIND and not list(flat(args.get("indices")))
            looks = results(group.stem, args) if group.kind == "call" and not blind else None
            if looks is None:
                looks = self._guess(args)
            out = named.get("out")
            if isinstance(out, Operand) and looks and looks[0] is not None:
                looks = [(out.shape, out.strides or row_major(out.shape), out.dtype or looks[0][2]), *looks[1:]]
            regions = [None if look is None else Region(object(), look[0], look[1], 0, look[2]) for look in looks]
        call = Call(program=self.program, name=group.stem, args=args, outs=regions, over=group.over)
        if group.kind == "call" and len(values) == 1 and group.stem in BLIND:
            self.program.gap(f"aten.{group.stem}: its indices are not recorded; priced as reading all of its tensor")
            self.program.node("opaque", [args["self"]], [region for region in regions if region], op=group.stem)
        elif group.kind == "call" and (group.stem in RULES or not group.stem.startswith(("_fused_", "_amp_"))):
            translate(call)
        else:
            opaque(call)
        self._note(group, regions, values)

    def _is_added(self) -> bool:
        """Return whether what comes next is added to something before it is joined to something."""
        stems = [group.stem for group in self.groups[self._place + 1 : self._place + FAR]]
        return "add" in stems and not JOINS.intersection(stems[: stems.index("add")])

    def _targets(self, group: Group, target: Any, values: list[Value]) -> list[Region | None]:
        """Return the regions that an op writes over."""
        if group.stem.startswith(("_fused_", "_amp_")):
            return [value.region for value in values]
        if isinstance(target, Operand):
            if values and values[0].region.shape == target.shape and group.stem not in {"copy", "fill", "zero"}:
                return [values[0].region]
            found = self.linker.source(group.stem, target)
            return [found.region if not found.entered else blank(target)]
        return [values[0].region] if values else []

    def _guess(self, args: dict[str, Any]) -> list[Look]:
        """Return what an op without a rule makes: what is read soon and nobody made, else a tensor like its first."""
        first = next((value for value in args.values() if isinstance(value, Tensor)), None)
        if first is None:
            return []
        for group in self.groups[self._place + 1 : self._place + FAR]:
            for value in named_arguments(group.op, group.stem).values():
                for part in value if isinstance(value, list) else [value]:
                    if isinstance(part, Operand) and part.dtype in {"", first.dtype} and self.linker.unknown(part):
                        return [(part.shape, part.strides or row_major(part.shape), first.dtype)]
        return [like(first)]

    def _note(self, group: Group, regions: Sequence[Region | None], values: Sequence[Value]) -> None:
        """Keep what an op made."""
        made_by = (group.stem, *((value.region.shape, value.region.dtype) for value in values))
        for place, region in enumerate(regions):
            if region is None or not self.program.knows(region):
                continue
            value = self.linker.made(region, (made_by, place and "side"), group.stem, values)
            if place:
                value.uses += 1  # what a backward pass needs: found by those that look for it only
            else:
                self.linker.join(group.stem, values, value)
                self._made[id(region.memory)] = region

    def _hint(self, group: Group, args: dict[str, Any]) -> None:
        """Fill in what the record leaves out and a kernel's name says: GELU by erf or by tanh."""
        if group.stem not in {"gelu", "gelu_backward"} or args.get("approximate") is not None:
            return
        kernels = [k for op in group.ops for k in self._launched.get(-1 if op.external is None else op.external, ())]
        if any("GeluType)::{lambda()#1}" in kernel.name for kernel in kernels):
            args["approximate"] = "tanh"
        elif not kernels:
            self.program.gap("the trace does not say whether gelu is by erf or by tanh: priced by erf")

    def _view(self, group: Group) -> None:
        """Add another look at a tensor."""
        named = named_arguments(group.op, group.stem)
        operand = named.get("self")
        if not isinstance(operand, Operand):
            return
        source = self.linker.source(group.stem, operand)
        args = {**named, "self": None}
        base = self.linker.tensor(source)
        for shape, strides, offset in views(group.stem, base, args):
            region = Region(source.region.memory, shape, strides, source.region.offset + offset, source.region.dtype)
            if region != source.region:
                self.linker.made(region, (group.stem, source.made_by), source.stem, [source], view=True)

    def _expect(self, op: Op) -> None:
        """Note the weight and the bias of a composite product; its parts read them."""
        stem = "matmul" if op.name.endswith("matmul") else "linear"
        if stem == "matmul" and (not op.dims or len(op.dims[0]) <= MATRIX):
            return
        weights = [argument(op, place, "weight", "linear") for place in range(1, min(len(op.dims), 3))]
        found = [w for w in weights if isinstance(w, Operand) and w.shape]
        if stem == "linear" or (found and len(found[0].shape) == MATRIX):
            self.linker.expect([w for w in found if not self.linker.waiting(w, stem)])

    def _each(self, group: Group) -> None:
        """Add an op over lists as one per tensor."""
        self.program.gap("PyTorch's multi-tensor (foreach) kernels are priced one tensor at a time")
        named = named_arguments(group.op, group.stem)
        lists = [value for value in named.values() if isinstance(value, list)]
        one = Group(group.op, "call", group.stem.removeprefix("_foreach_"), group.over, group.parts)
        for place in range(len(lists[0]) if lists else 0):
            part = {
                {"tensors": "other", "scalar": "other", "scalars": "value"}.get(name, name): value[place]
                if isinstance(value, list) and place < len(value)
                else value
                for name, value in named.items()
            }
            self._call(one, part)

    def _triton(self, group: Group) -> None:
        """Add a kernel that Inductor generated: it reads and writes what it was given."""
        op = group.op
        given = [argument(op, place, f"argument_{place}", "triton") for place in range(len(op.dims))]
        operands = [value for value in given if isinstance(value, Operand)]
        if not operands:
            return
        largest = max(range(len(operands)), key=lambda at: (elements(operands[at]), at))
        in_place = largest == 0 or elements(operands[-1]) < elements(operands[0])
        reads = operands if in_place else operands[:-1]
        values = self.linker.operands(op.name, reads)
        region = values[0].region if in_place else blank(operands[-1])
        inputs = [self.linker.tensor(value) for value in values]
        self.program.node("opaque", inputs[:60], [region], op=op.name, fused=fused_ops(op.name))
        self._note(group, [region], values)
