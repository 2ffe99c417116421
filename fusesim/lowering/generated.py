"""Kernels that a compiler generates for a group of ops, as Inductor's Triton code does it.

A pointwise group is one loop. A group with reductions over rows keeps a row of up to 1024 values on chip; a longer one
it loops over, once for each reduction that needs the one before and once more for what needs the last, reading its
operands anew. Few long rows are reduced in two stages. Library ops are library calls. Which of these it is, and in
what blocks, is decided from shapes alone (PyTorch 2.11, Triton 3.6, as launches on an H200 show it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access, Launch
from fusesim.lowering.access import WIDE, accesses, aligned_strides, ceil, width
from fusesim.lowering.eager import eager_launches
from fusesim.lowering.pressure import displaced, pressed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.fusion import FusionPlan, Group
    from fusesim.graph import Graph, Node
    from fusesim.lowering.target import Target

HELD: Final = 1024
"""Longest row that a generated kernel keeps on chip."""

LONG_ROW: Final = 8192
"""Longest row that is never reduced in two stages."""

ONLINE: Final = ("amax", "sum")
"""A row's maximum and the sum of its powers are found in one pass."""

WELFORD: Final = 15.0
ONLINE_SLOTS: Final = 28.0
"""Instructions per value that a running variance, and a running maximum with its sum of powers, take in a loop beyond
those of plain reductions: a division each, and two powers."""

TILE: Final = 2048
"""Values of a row that a block takes in one step of a loop; a last step that is partly empty takes as long."""

LIBRARY: Final = frozenset({"matmul", "conv", "attention"})
ALONE: Final = frozenset({"sort", "topk", "cumsum", "embedding_bag", "scatter", "opaque", "copy_into", "batch_norm_train"})
"""Families and kinds that no generated kernel computes."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What a group issues per value: instructions, special functions, and dependent cycles of one value, and
    how many instructions are written out for it."""

    slots: float
    special: float
    serial: float
    flops: float
    code: float = 0.0


def group_launches(plan: FusionPlan, group: Group, path: str, target: Target) -> list[Launch]:
    """Return the kernels of one group."""
    nodes = [node for node in plan.nodes(group) if any(plan.graph.tensors[n].elements for n in node.outputs)]
    if not nodes:
        return []
    if len(nodes) == 1 and nodes[0].kind == "concat" and len(nodes[0].inputs) > MOST_CONCATENATED:
        return _pieces(plan, nodes[0])
    anchors = [node for node in nodes if node.family in LIBRARY or node.kind in ALONE or node.family == "normalise"]
    if anchors:
        return _with_epilogue(plan, group, nodes, anchors, target)
    reductions = [node for node in nodes if node.family == "reduction"]
    made = _rows(plan, group, nodes, reductions, target) if reductions else _loops(plan, group, nodes, path)
    return [*_seed(plan, nodes), *pressed(plan.graph, nodes, made, target)]


MOST_CONCATENATED: Final = 8
"""Tensors that one generated kernel puts next to each other; more are copied by a kernel each."""


def _pieces(plan: FusionPlan, node: Node) -> list[Launch]:
    """Return the kernels that copy many tensors next to each other."""
    graph = plan.graph
    output = graph.tensors[node.outputs[0]]
    launches = []
    for name in node.inputs:
        tensor = graph.tensors[name]
        part = (Access(output.storage, float(tensor.bytes)),)
        launches.append(
            Launch(
                name="concat part",
                row=f"gen_loop{width(tensor)}",
                nodes=(node.name,),
                reads=accesses(graph, [name]),
                writes=part,
                elements=float(tensor.elements),
                blocks=max(ceil(tensor.elements, 512.0), 1.0),
            )
        )
    return launches


def _seed(plan: FusionPlan, nodes: Sequence[Node]) -> list[Launch]:
    """Return the kernel that draws seeds for all random numbers of a graph, before the first of them."""
    first = next((node.name for node in plan.graph.nodes if node.kind == "rand"), None)
    if not any(node.name == first for node in nodes):
        return []
    return [Launch(name="seeds", row="vectorised32", writes=(Access("seeds", 8.0),), elements=1.0)]


SLOTS: Final = {
    "tanh": 24,
    "exp": 8,
    "sin": 27,
    "cos": 27,
    "log1p": 30,
    "gelu": 34,
    "gelu_tanh": 30,
    "rsqrt": 6,
    "silu": 17,
    "sigmoid": 14,
    "sqrt": 27,
    "div": 8,
}
"""Instructions per value where Triton's differ from those of `fusesim.kinds`: its device library is another. From six
of each in a row on 20 million values in fp32, where issue binds (h200_generated_more.json)."""

CODE: Final = {"sin": 130.0, "cos": 130.0}
"""Instructions of an op's code where most of them run for few values only: the reduction of large angles."""

SECTOR: Final = 32.0
"""Bytes that memory hands out at once; an element that an index names costs one. [B]"""


def needed_shares(plan: FusionPlan, group: Group, nodes: Sequence[Node]) -> dict[str, float]:
    """Return which share of each op's values is computed at all: an index downstream asks for few of them."""
    graph, ends = plan.graph, set(plan.external_outputs(group))
    if not any(node.family == "gather" for node in nodes):
        return {}
    readers: dict[str, list[Node]] = {}
    for node in nodes:
        for name in node.inputs:
            readers.setdefault(graph.base(name), []).append(node)
    shares: dict[str, float] = {}
    for node in reversed(nodes):
        wanted = [1.0 for name in node.outputs if name in ends]
        for name in node.outputs:
            wanted.extend(_asked(graph, reader, name, shares) for reader in readers.get(name, ()))
        shares[node.name] = min(max(wanted, default=1.0), 1.0)
    return shares


def _asked(graph: Graph, reader: Node, name: str, shares: dict[str, float]) -> float:
    """Return which share of a tensor an op asks for."""
    share = shares.get(reader.name, 1.0)
    if reader.family == "gather" and graph.base(reader.inputs[0]) == name:
        return share * graph.tensors[reader.outputs[0]].elements / max(graph.tensors[name].elements, 1)
    return share


def touched(plan: FusionPlan, group: Group, nodes: Sequence[Node]) -> tuple[Access, ...]:
    """Return what a group reads: of a tensor that only an index reads, in the end, no more than it names. [B]."""
    graph = plan.graph
    found = list(accesses(graph, plan.external_inputs(group)))
    shares = needed_shares(plan, group, nodes)
    for place, access in enumerate(found if shares else ()):
        asked = [
            _asked(graph, node, graph.base(name), shares)
            * (SECTOR / graph.tensors[name].itemsize if node.kind == "gather" or shares[node.name] < 1.0 else 1.0)
            for node in nodes
            for name in node.inputs
            if graph.tensors[name].storage == access.storage
        ]
        found[place] = Access(access.storage, access.bytes * min(max(asked, default=1.0), 1.0))
    return tuple(found)


def _with_epilogue(
    plan: FusionPlan, group: Group, nodes: Sequence[Node], anchors: Sequence[Node], target: Target
) -> list[Launch]:
    """Return library calls; ops beside the first are its epilogue and read and write in its kernel."""
    launches = [launch for node in anchors for launch in eager_launches(plan.graph, node, target)]
    rest = [node for node in nodes if node not in anchors]
    if not rest or not launches:
        return launches
    own = {plan.graph.tensors[n].storage for node in nodes for n in node.outputs}
    reads = accesses(plan.graph, plan.external_inputs(group))
    writes = accesses(plan.graph, plan.external_outputs(group))
    merged = replace(launches[-1], reads=tuple(a for a in reads if a.storage not in own), writes=writes)
    merged = displaced(plan.graph, nodes, merged)
    return [*launches[:-1], replace(merged, nodes=tuple(node.name for node in nodes))]


def arithmetic(
    graph: Graph, nodes: Sequence[Node], elements: float, shares: dict[str, float] | None = None, rows: int = 0
) -> Arithmetic:
    """Add up what ops issue, per value of a loop over `elements`, of which `rows` begin a row each."""
    slots = special = serial = flops = code = 0.0
    for node in nodes:
        names = node.outputs if node.family == "gather" else (*node.inputs, *node.outputs)
        size = max(graph.tensors[name].elements for name in names)
        part = size / max(elements, 1.0)
        if node.family == "pointwise" and node.outputs and not once_per_row(graph, node, rows):
            part = max(part, 1.0)  # a value that broadcasts is computed again wherever it is read
        part *= (shares or {}).get(node.name, 1.0)
        issued = SLOTS.get(node.kind, node.row.slots)
        slots += issued * part
        code += CODE.get(node.kind, issued) * part
        special += node.row.special * part
        serial += node.row.serial * (size >= elements)
        flops += graph.flops(node)
    return Arithmetic(slots, special, serial, flops, code)


def once_per_row(graph: Graph, node: Node, rows: int) -> bool:
    """Return whether an op of a kernel over rows makes one value per row."""
    return bool(rows) and graph.tensors[node.outputs[0]].elements <= rows


def _loops(plan: FusionPlan, group: Group, nodes: Sequence[Node], path: str) -> list[Launch]:
    """Return the kernel of a pointwise group; ops over other numbers of values have kernels of their own."""
    graph = plan.graph
    elements = float(max(graph.tensors[node.outputs[0]].elements for node in nodes))
    ends = plan.external_outputs(group)
    inputs = plan.external_inputs(group)
    reads, writes = touched(plan, group, nodes), accesses(graph, ends)
    known = arithmetic(graph, nodes, elements, needed_shares(plan, group, nodes))
    per_block = min(max(elements / 128.0, 256.0), 1024.0)
    per_block = float(1 << math.floor(math.log2(per_block)))
    threads = 128
    turned = any(_turned(graph, name, nodes) for name in inputs)
    wide = width(*(graph.tensors[name] for name in (*inputs, *ends)))
    row = f"gen_turned{wide}" if turned else f"gen_loop{_odd(graph, inputs, elements)}{wide}"
    if path == "cuda" and not turned:
        row = "cuda"
    loop = Launch(
        name=_name(nodes),
        row=row,
        nodes=tuple(node.name for node in nodes),
        reads=reads,
        writes=writes,
        elements=elements,
        blocks=max(ceil(elements, per_block), 1.0),
        threads=threads,
        resident=16,
        slots=known.slots + len(reads) + len(writes),
        special=known.special,
        serial=known.serial * per_block / threads,
        code=known.code * per_block / threads,
        arithmetic=known.flops,
    )
    return [loop]


def _odd(graph: Graph, names: Sequence[str], elements: float) -> str:
    """Return the suffix of kernels that load value by value: sizes or rows that 8 bytes do not divide."""
    tensors = [graph.tensors[name] for name in names if graph.tensors[name].shape]
    item = min((t.itemsize for t in tensors if t.elements >= elements), default=WIDE)
    inner = {t.shape[-1] * t.itemsize for t in tensors if t.elements < elements and t.shape[-1] > 1}
    return "_odd" if elements * item % 8 or any(size % 8 for size in inner) else ""


def _odd_rows(columns: int, graph: Graph, names: Sequence[str]) -> str:
    """Return the same suffix for kernels over rows: a row that does not begin on 8 bytes."""
    least = min((graph.tensors[n].itemsize for n in names if graph.tensors[n].elements >= columns), default=2)
    return "_odd" if columns * least % 8 else ""


def _name(nodes: Sequence[Node]) -> str:
    """Return a name that says what a kernel computes."""
    kinds = sorted({node.kind for node in nodes})
    return " ".join(kinds[:4]) + (" ..." if len(kinds) > 4 else "")  # noqa: PLR2004 - room for four


def _turned(graph: Graph, name: str, nodes: Sequence[Node]) -> bool:
    """Return whether a large operand's fastest dimension is not that of what is made of it."""
    tensor = graph.tensors[name]
    readers = [node for node in nodes if name in node.inputs]
    for node in readers:
        shape = graph.tensors[node.outputs[0]].shape
        if len(tensor.shape) > len(shape) or node.family != "pointwise" and node.kind != "copy":
            continue
        own = aligned_strides(graph.tensors[node.outputs[0]], shape)
        dims = [dim for dim in range(len(shape)) if shape[dim] > 1 and own[dim]]
        fast = min(dims, key=lambda dim: own[dim], default=None)
        if fast is not None and shape[fast] >= 8 and aligned_strides(tensor, shape)[fast] > 1 and 2 * tensor.distinct > math.prod(shape):  # noqa: PLR2004
            return True
    return False


def _rows(
    plan: FusionPlan, group: Group, nodes: Sequence[Node], reductions: Sequence[Node], target: Target
) -> list[Launch]:
    """Return the kernels of a group with reductions."""
    graph = plan.graph
    first = graph.tensors[reductions[0].inputs[0]]
    dims = [dim for dim in reductions[0].attr("dims", ()) if first.shape[dim] != 1]
    columns = max(math.prod(first.shape[dim] for dim in dims), 1)
    rows = max(first.elements // columns, 1)
    last = max((dim for dim in range(len(first.shape)) if first.shape[dim] != 1), default=0)
    outer = bool(dims) and last not in dims
    sms = int(target.machine.sms)
    levels = pass_levels(graph, nodes, reductions, rows * columns)
    shape = _Shape(rows, columns, outer)
    if outer:
        return _over_columns(plan, group, nodes, reductions, shape, sms)
    if rows < 2 * sms and columns > LONG_ROW and not any(levels.values()):
        return _two_stages(plan, group, nodes, reductions, shape, sms)
    if columns <= HELD:
        return [_held(plan, group, nodes, shape)]
    return [_looped(plan, group, nodes, shape, levels, sms)]


@dataclass(frozen=True, slots=True)
class _Shape:
    """How many results a reduction has, of how many values each, and whether those lie next to each other."""

    rows: int
    columns: int
    outer: bool

    @property
    def elements(self) -> float:
        """All values."""
        return float(self.rows) * self.columns


def pass_levels(graph: Graph, nodes: Sequence[Node], reductions: Sequence[Node], elements: int) -> dict[str, int]:
    """Return in which pass over its row each op is computed: after every reduction that it needs.

    A maximum and the sum of powers that needs it share a pass: the sum is corrected where the maximum grows.
    """
    levels: dict[str, int] = {}
    after: dict[str, int] = {}
    maxima: set[str] = set()
    names = {node.name for node in nodes}
    softened: dict[str, set[str]] = {}
    for node in nodes:
        level, soft = 0, set[str]()
        for name in node.inputs:
            producer = graph.producers.get(graph.base(name))
            if producer is None or producer.name not in names:
                continue
            soft |= softened.get(producer.name, set())
            level = max(level, after[producer.name])
        if node.family == "reduction" and node.kind == "sum" and soft:
            others = [after[p] for p in maxima & soft]
            if others and level == max(others):
                level -= 1
        levels[node.name] = level
        full = node.family == "reduction"
        after[node.name] = level + 1 if full else level
        if node.kind == "amax":
            maxima.add(node.name)
            soft = soft | {node.name}
        softened[node.name] = soft if node.family != "reduction" or node.kind == "amax" else set()
    del elements, reductions
    return levels


def _held(plan: FusionPlan, group: Group, nodes: Sequence[Node], shape: _Shape) -> Launch:
    """Return the kernel that keeps a row on chip and reads it once."""
    graph = plan.graph
    reads, writes = touched(plan, group, nodes), accesses(graph, plan.external_outputs(group))
    known = arithmetic(graph, nodes, shape.elements, needed_shares(plan, group, nodes), shape.rows)
    many = shape.rows > 512  # noqa: PLR2004 - see the module's first lines
    padded = float(1 << (shape.columns - 1).bit_length()) if shape.columns > 1 else 1.0
    threads = 32 if many else 128 if shape.columns <= 512 else 256  # noqa: PLR2004 - see the module's first lines
    per_block = max(HELD / padded, 1.0) if many else 1.0
    wide = width(*(graph.tensors[a] for a in (*plan.external_inputs(group), *plan.external_outputs(group))))
    return Launch(
        name=_name(nodes),
        row=f"gen_held{_odd_rows(shape.columns, graph, plan.external_inputs(group))}{wide}",
        nodes=tuple(node.name for node in nodes),
        reads=reads,
        writes=writes,
        elements=shape.rows * padded,
        blocks=max(ceil(shape.rows, per_block), 1.0),
        threads=threads,
        resident=min(2048.0 / threads, 32.0),
        steps=ceil(padded * per_block, threads),
        slots=known.slots + len(reads) + len(writes),
        special=known.special,
        chain=padded * per_block / threads,
        code=known.code * padded * per_block / threads,
        arithmetic=known.flops,
    )


def _looped(
    plan: FusionPlan, group: Group, nodes: Sequence[Node], shape: _Shape, levels: dict[str, int], sms: int
) -> Launch:
    """Return the kernel that loops over long rows, once per pass, and reads what each pass needs."""
    graph = plan.graph
    whole = int(shape.elements)
    inputs = plan.external_inputs(group)
    reads, writes = touched(plan, group, nodes), accesses(graph, plan.external_outputs(group))
    needed = _needed(graph, nodes, levels, set(plan.external_outputs(group)), whole)
    again, slots, special, loads = 0.0, 0.0, 0.0, 0.0
    shares = needed_shares(plan, group, nodes)
    full = {name for name in inputs if graph.tensors[name].elements >= whole}
    seen: set[str] = set()
    for ops in needed:
        known = arithmetic(graph, ops, shape.elements, shares, shape.rows)
        slots += known.slots + _running(graph, ops)
        special += known.special
        read = {n for node in ops for n in node.inputs if n in full}
        again += sum(graph.tensors[n].bytes for n in read & seen)
        loads += len(read)
        seen |= read
    per_block = 2.0 if shape.columns <= TILE else 1.0
    threads = 512
    padded = ceil(shape.columns, TILE) * TILE / shape.columns
    wide = width(*(graph.tensors[name] for name in (*inputs, *plan.external_outputs(group))))
    blocks = max(ceil(shape.rows, per_block), 1.0)
    item = max((graph.tensors[n].itemsize for n in full), default=2)
    return Launch(
        name=_name(nodes),
        row=f"gen_rows{_odd_rows(shape.columns, graph, inputs)}_{wide}",
        nodes=tuple(node.name for node in nodes),
        reads=reads,
        writes=writes,
        again=again,
        window=min(blocks, sms * 4.0) * per_block * shape.columns * item,
        elements=shape.elements * padded,
        blocks=blocks,
        threads=threads,
        resident=4,
        joins=float(len(needed)),
        steps=sum(ceil(shape.columns * per_block, TILE) for _ in needed),
        chain=shape.columns * padded * per_block / threads,
        slots=slots + 2.0 * loads + 2.0 * len(writes),
        special=special,
        arithmetic=sum(graph.flops(node) for node in nodes),
    )


def _running(graph: Graph, ops: Sequence[Node]) -> float:
    """Return what running reductions of one pass issue per value beyond plain ones."""
    kinds = [node.kind for node in ops if node.family == "reduction"]
    more = WELFORD * sum(kind in {"var", "var_mean"} for kind in kinds)
    if "sum" in kinds and "amax" in kinds and _powers(graph, ops):
        more += ONLINE_SLOTS
    return more


def _powers(graph: Graph, ops: Sequence[Node]) -> bool:
    """Return whether a sum adds up what needs a maximum of the same pass."""
    maxima = {name for node in ops if node.kind == "amax" for name in node.outputs}
    need: dict[str, bool] = {}
    for node in sorted(ops, key=lambda node: graph.index[node.name]):
        found = any(graph.base(n) in maxima or need.get(graph.base(n), False) for n in node.inputs)
        need.update(dict.fromkeys(node.outputs, found))
        if node.kind == "sum" and found:
            return True
    return False


def _needed(
    graph: Graph, nodes: Sequence[Node], levels: dict[str, int], outputs: set[str], whole: int
) -> list[list[Node]]:
    """Return for each pass the ops that it computes: what its reductions or results need, found anew."""
    last = max(levels.values(), default=0)
    by_name = {node.name: node for node in nodes}
    passes = []
    for level in range(last + 1):
        wanted = [
            node
            for node in nodes
            if levels[node.name] == level
            and (node.family == "reduction" or (outputs & set(node.outputs) and graph.tensors[node.outputs[0]].elements >= whole))
        ]
        found: dict[str, Node] = {}
        stack = list(wanted)
        while stack:
            node = stack.pop()
            if node.name in found:
                continue
            found[node.name] = node
            for name in node.inputs:
                producer = graph.producers.get(graph.base(name))
                if producer is not None and producer.name in by_name and producer.family != "reduction":
                    stack.append(producer)
        if found:
            passes.append(list(found.values()))
    return passes


def _two_stages(
    plan: FusionPlan, group: Group, nodes: Sequence[Node], reductions: Sequence[Node], shape: _Shape, sms: int
) -> list[Launch]:
    """Return the kernels of a reduction of few long rows: parts of rows, then each reduction's parts."""
    parts = max(math.ceil(shape.columns / LONG_ROW), 1)
    if shape.rows * parts < sms // 2:
        parts = max(min(shape.columns // 4096, sms // shape.rows), parts)
    return _staged(plan, group, nodes, reductions, shape, parts, "gen_parts")


def _over_columns(
    plan: FusionPlan, group: Group, nodes: Sequence[Node], reductions: Sequence[Node], shape: _Shape, sms: int
) -> list[Launch]:
    """Return the kernels of a reduction over first dimensions, in two stages where results are few."""
    del sms
    split = shape.columns > 256 and shape.rows < 8192  # noqa: PLR2004 - see fusesim.strategies.inductor
    parts = min(max(shape.columns // 128, 1), 64) if split else 1
    return _staged(plan, group, nodes, reductions, shape, parts, "gen_columns")


def _staged(
    plan: FusionPlan,
    group: Group,
    nodes: Sequence[Node],
    reductions: Sequence[Node],
    shape: _Shape,
    parts: int,
    row: str,
) -> list[Launch]:
    """Return a first stage over parts and, where there is more than one, a second that joins them."""
    graph = plan.graph
    inputs, ends = plan.external_inputs(group), plan.external_outputs(group)
    reads, writes = touched(plan, group, nodes), accesses(graph, ends)
    known = arithmetic(graph, nodes, shape.elements, needed_shares(plan, group, nodes), shape.rows)
    wide = width(*(graph.tensors[name] for name in inputs))
    stored = tuple(Access(f"{node.name}.parts", 4.0 * shape.rows * parts) for node in reductions)
    columns = shape.outer
    blocks = float(math.ceil(shape.rows / 8) * parts / 4 if columns else shape.rows * parts)
    first = Launch(
        name=_name(nodes),
        row=f"{row}{wide}",
        nodes=tuple(node.name for node in nodes),
        reads=reads,
        writes=writes if parts == 1 else stored,
        elements=shape.elements,
        blocks=max(blocks, 1.0),
        threads=128 if columns else 512,
        resident=16 if columns else 4,
        steps=ceil(shape.columns / parts, 32.0 if columns else 2048.0),
        slots=known.slots + 2.0 * len(reads),
        special=known.special,
        arithmetic=known.flops,
    )
    if parts == 1:
        return [first]
    second = [
        Launch(
            name=f"{node.kind} of parts",
            row="gen_last",
            nodes=(node.name,),
            reads=(part,),
            writes=accesses(graph, [name for name in node.outputs if name in ends]),
            elements=float(shape.rows * parts),
            blocks=max(float(math.ceil(shape.rows / 64)), 1.0),
            threads=64,
            resident=32,
            steps=ceil(parts, 8.0),
        )
        for node, part in zip(reductions, stored, strict=True)
    ]
    return [first, *second]
