"""What torch.compile's Inductor fuses: pointwise ops into whoever reads them, then kernels that share memory.

Rules, as PyTorch 2.11 has them and its kernels on an H200 show:

1. Composite ops are written out; matmul, scale, softmax, matmul is recognised as attention.
2. A pointwise value is computed again in each op that reads it, and never stored, unless it is returned, a library
   call reads it, or several ops read it and it is dear: more than 4 tensors or 30 operations (`REALIZE_READS`,
   `REALIZE_OPS`). Reductions are stored.
3. Kernels that share memory are fused while they fit: pointwise loops over the same number of values; a reduction with
   loops over its rows or over all that it reduces; reductions of the same rows. A reduction over the first
   dimensions takes only what it reads.
4. A reduction of few long rows runs in two stages (`splits`), and then nothing that needs its result joins it.
5. Matrix products, convolutions, attention and sorts stay library calls; epilogues do not join them without autotuning.

References
----------
.. [1] PyTorch 2.11, torch/_inductor: ir.py (realize, mark_reuse, num_splits), scheduler.py (can_fuse), config.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from fusesim.attention_pattern import with_attention
from fusesim.decompose import decompose
from fusesim.fusion import FusionPlan, Group
from fusesim.graph import Node
from fusesim.sharing import share_common

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fusesim.graph import Graph
    from fusesim.strategies.base import Context

REALIZE_READS: Final = 4
REALIZE_OPS: Final = 30
MOST_READS: Final = 8
"""Inductor's defaults: realize_reads_threshold, realize_opcount_threshold, realize_acc_reads_threshold."""

LIBRARY: Final = frozenset({"matmul", "conv", "attention"})
LIBRARY_KINDS: Final = frozenset(
    {"sort", "topk", "cumsum", "embedding_bag", "scatter", "opaque", "copy_into", "batch_norm_train", "embedding_backward"}
)
"""Families and kinds that run in kernels of their own."""

LONG_ROW: Final = 8192
SHARED_MEMORIES: Final = 2
"""A reduction is split where rows are longer than this and fewer than twice the SMs."""

SMS: Final = 132
"""SMs where the device is not known."""


@dataclass(slots=True)
class Loop:
    """What will be one kernel: its roots (stored values), how many values it loops over, and what it reduces."""

    roots: list[str]
    size: int
    rows: int = 0
    columns: int = 0
    outer: bool = False
    library: bool = False
    split: bool = False
    reads: dict[str, int] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)
    cone: set[str] = field(default_factory=set)


def decide(graph: Graph, context: Context | None = None) -> FusionPlan:
    """Return the plan that Inductor's rules make."""
    sms = SMS
    limits = getattr(context, "limits", None)
    if limits is not None and getattr(limits, "sms", None):
        sms = int(limits.sms)
    form = share_common(unfused_bias(decompose(with_attention(graph))))
    stored = stored_values(form)
    loops = fuse(first_loops(form, stored, sms))
    return as_plan(graph, form, loops, stored)


def unfused_bias(graph: Graph) -> Graph:
    """Return the graph with a product's bias as an op of its own where a pointwise op reads it directly.

    Notes
    -----
    Inductor takes the bias of a linear layer out of the library call when only pointwise ops read the result, and out of
    every convolution, so that one loop adds it.
    """
    nodes, tensors, kept = [], dict(graph.tensors), set(graph.outputs)
    for node in graph.nodes:
        readers = [reader for name in node.outputs for reader in graph.consumers[name]]
        direct = bool(readers) and all(reader.family == "pointwise" for reader in readers) and not kept & set(node.outputs)
        if len(node.inputs) < 3 or not (node.kind == "conv" or (node.kind == "matmul" and direct)):  # noqa: PLR2004
            nodes.append(node)
            continue
        (name,) = node.outputs
        bare = f"{name}.bare"
        tensors[bare] = replace(tensors[name], name=bare, storage=bare)
        bias = node.inputs[2]
        nodes.append(replace(node, inputs=node.inputs[:2], outputs=(bare,)))
        if node.kind == "conv":
            wide = f"{bias}.{node.name}"
            space = len(tensors[name].shape) - 2
            vector = tensors[bias]
            tensors[wide] = replace(vector, name=wide, shape=(*vector.shape, *(1,) * space), strides=(*vector.strides, *(1,) * space), storage=vector.storage)
            nodes.append(Node(name=f"{node.name}.view", kind="view", inputs=(bias,), outputs=(wide,)))
            bias = wide
        nodes.append(Node(name=f"{node.name}.bias", kind="add", inputs=(bare, bias), outputs=(name,), scope=node.scope))
    if len(nodes) == len(graph.nodes):
        return graph
    return replace(graph, nodes=tuple(nodes), tensors=tensors)


MOST_CONCATENATED: Final = 8
"""Inductor's max_pointwise_cat_inputs: more tensors are put next to each other by a kernel each."""


def is_library(node: Node) -> bool:
    """Return whether an op runs in kernels of its own."""
    if node.kind == "concat" and len(node.inputs) > MOST_CONCATENATED:
        return True
    return node.family in LIBRARY or node.family == "normalise" or node.kind in LIBRARY_KINDS


def stored_values(form: Graph) -> set[str]:
    """Return the ops whose results are written to memory."""
    returned = {form.base(name) for name in form.outputs}
    users: dict[str, dict[str, Node]] = {}
    for node in form.paid_nodes:
        for name in node.inputs:
            users.setdefault(form.base(name), {})[node.name] = node
    stored: set[str] = set()
    reads: dict[str, set[str]] = {}
    count: dict[str, float] = {}
    for node in form.paid_nodes:
        mine, ops = set[str](), 1.0 + node.row.flops
        for name in node.inputs:
            base = form.base(name)
            producer = form.producers.get(base)
            if producer is None or producer.name in stored:
                mine.add(form.tensors[base].storage)
                ops += 2.0
            else:
                mine |= reads[producer.name]
                ops += count[producer.name]
        reads[node.name], count[node.name] = mine, ops
        readers = {reader.name: reader for name in node.outputs for reader in users.get(name, {}).values()}
        wanted = any(name in returned for name in node.outputs)
        dear = len(readers) > 1 and (len(mine) > REALIZE_READS or ops > REALIZE_OPS)
        asked = any(is_library(reader) for reader in readers.values()) or not readers
        over = any(form.tensors[name].is_view for name in node.outputs)
        if is_library(node) or node.family == "reduction" or wanted or dear or asked or over or len(mine) > MOST_READS:
            stored.add(node.name)
    return stored


def first_loops(form: Graph, stored: set[str], sms: int) -> list[Loop]:
    """Return one loop per stored value, with the cone of ops that are computed on the way to it."""
    loops = []
    for node in form.paid_nodes:
        if node.name not in stored:
            continue
        loop = _loop(form, node, sms)
        _collect(form, node, stored, loop)
        for name in node.outputs:
            loop.writes[form.tensors[name].storage] = form.tensors[name].bytes
        loops.append(loop)
    return loops


def _loop(form: Graph, node: Node, sms: int) -> Loop:
    """Return the loop of one stored value."""
    output = form.tensors[node.outputs[0]]
    if is_library(node):
        return Loop([node.name], output.elements, library=True)
    if node.family != "reduction":
        return Loop([node.name], output.elements)
    x = form.tensors[node.inputs[0]]
    dims = [dim for dim in node.attr("dims", ()) if x.shape[dim] != 1]
    columns = math.prod(x.shape[dim] for dim in dims)
    rows = max(x.elements // max(columns, 1), 1)
    last = max((dim for dim in range(len(x.shape)) if x.shape[dim] != 1), default=0)
    outer = bool(dims) and last not in dims
    return Loop(
        [node.name], x.elements, rows=rows, columns=columns, outer=outer, split=splits(rows, columns, sms, outer=outer)
    )


def splits(rows: int, columns: int, sms: int, *, outer: bool) -> bool:
    """Return whether a reduction runs in two stages: too few rows to fill the device.

    Notes
    -----
    Rows in one piece: fewer than twice the SMs, longer than 8192 values. Over first dimensions: fewer results than a
    device's worth of threads, and many values for each.
    """
    if outer:
        return columns > 256 and rows * columns < 2**27 and rows < 8192  # noqa: PLR2004 - see ir.py's num_splits
    return rows < 2 * sms and columns > LONG_ROW


def _collect(form: Graph, node: Node, stored: set[str], loop: Loop) -> None:
    """Add an op and what is computed on the way to it; note what is read."""
    loop.cone.add(node.name)
    for name in node.inputs:
        base = form.base(name)
        producer = form.producers.get(base)
        if producer is not None and producer.name not in stored:
            if producer.name not in loop.cone:
                _collect(form, producer, stored, loop)
        else:
            tensor = form.tensors[name]
            loop.reads[tensor.storage] = max(loop.reads.get(tensor.storage, 0), tensor.bytes)


def compatible(one: Loop, other: Loop) -> bool:
    """Return whether two loops can be one kernel."""
    if one.library or other.library:
        return False
    if one.rows and other.rows:
        return (one.rows, one.columns, one.outer) == (other.rows, other.columns, other.outer)
    if one.rows or other.rows:
        reduction, loop = (one, other) if one.rows else (other, one)
        if reduction.outer:
            return loop.size == reduction.rows and not reduction.split
        return loop.size in {reduction.size, reduction.rows}
    return one.size == other.size


def fuse(loops: list[Loop]) -> list[Loop]:
    """Fuse loops that share memory, the pair that shares most first."""
    alive = dict(enumerate(loops))
    tried = True
    while tried:
        tried = False
        pairs = []
        keys = list(alive)
        for place, i in enumerate(keys):
            for j in keys[place + 1 :]:
                shared = _shared(alive[i], alive[j])
                if shared and compatible(alive[i], alive[j]):
                    pairs.append((-shared, i, j))
        for _, i, j in sorted(pairs):
            if i in alive and j in alive and _allowed(alive, i, j):
                alive[i] = _merged(alive[i], alive.pop(j))
                tried = True
    return list(alive.values())


def _shared(one: Loop, other: Loop) -> int:
    """Return the bytes of memory that two loops both touch."""
    mine = one.reads | one.writes
    yours = other.reads | other.writes
    return sum(max(size, yours[name]) for name, size in mine.items() if name in yours)


def _allowed(alive: dict[int, Loop], i: int, j: int) -> bool:
    """Return whether fusing two loops closes no circle, and no split reduction is needed within."""
    one, other = alive[i], alive[j]
    if not compatible(one, other):
        return False
    for first, second in ((one, other), (other, one)):
        if first.split and any(name in second.reads for name in first.writes):
            return False
    if one.split != other.split and (one.rows and other.rows):
        return False
    if (one.split or other.split) and not (one.rows and other.rows):
        return False
    return not _between(alive, i, j) and not _between(alive, j, i)


def _between(alive: dict[int, Loop], start: int, end: int) -> bool:
    """Return whether a way leads from one loop to another through a third."""
    writers = {name: key for key, loop in alive.items() for name in loop.writes}
    goal = alive[start].writes
    seen: set[int] = set()
    stack = [writers[name] for name in alive[end].reads if name in writers and writers[name] not in {start, end}]
    while stack:
        key = stack.pop()
        if key in seen:
            continue
        seen.add(key)
        if any(name in goal for name in alive[key].reads):
            return True
        stack.extend(writers[n] for n in alive[key].reads if n in writers and writers[n] not in {start, end, key})
    return False


def _merged(one: Loop, other: Loop) -> Loop:
    """Return two loops as one kernel."""
    reduction = one if one.rows else other
    return Loop(
        [*one.roots, *other.roots],
        max(one.size, other.size),
        rows=reduction.rows,
        columns=reduction.columns,
        outer=reduction.outer,
        split=one.split or other.split,
        reads=_joined(one.reads, other.reads),
        writes=one.writes | other.writes,
        cone=one.cone | other.cone,
    )


def _joined(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """Return what either reads, the larger part of each."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in (*one, *other)}


def as_plan(source: Graph, form: Graph, loops: list[Loop], stored: set[str]) -> FusionPlan:
    """Return the plan: an op that several kernels compute is copied for each but the first."""
    owner = {root: place for place, loop in enumerate(loops) for root in loop.roots}
    first: dict[str, int] = {}
    for node in form.paid_nodes:
        places = [place for place, loop in enumerate(loops) if node.name in loop.cone]
        if places:
            first[node.name] = owner.get(node.name, places[0])
    tensors, nodes = dict(form.tensors), []
    groups: list[list[str]] = [[] for _ in loops]
    for place, loop in enumerate(loops):
        renamed: dict[str, str] = {}
        for node in form.nodes:
            if node.family == "view":
                if node.inputs[0] in renamed:
                    nodes.append((place, node, _copied(node, renamed, tensors, place)))
                continue
            if node.name not in loop.cone:
                continue
            if first[node.name] == place:
                groups[place].append(node.name)
                if any(name in renamed for name in node.inputs):
                    nodes.append((place, node, replace(node, inputs=tuple(renamed.get(n, n) for n in node.inputs))))
            else:
                copy = _copied(node, renamed, tensors, place)
                groups[place].append(copy.name)
                nodes.append((place, node, copy))
    graph = _spliced(form, nodes, tensors)
    plan_groups = _ordered(graph, [Group(nodes=tuple(sorted(names, key=graph.index.get))) for names in groups if names])
    del stored
    return FusionPlan(graph=graph, groups=tuple(plan_groups), strategy="inductor", source=source)


def _copied(node: Node, renamed: dict[str, str], tensors: dict, place: int) -> Node:  # type: ignore[type-arg]
    """Add a copy of an op for another kernel."""
    for name in node.outputs:
        wanted = f"{name}@{place}"
        renamed[name] = wanted
        tensor = tensors[name]
        storage = renamed.get(tensor.storage, tensor.storage)
        tensors[wanted] = replace(tensor, name=wanted, storage=storage)
    return replace(
        node,
        name=f"{node.name}@{place}",
        inputs=tuple(renamed.get(name, name) for name in node.inputs),
        outputs=tuple(renamed[name] for name in node.outputs),
    )


def _spliced(form: Graph, changes: list[tuple[int, Node, Node]], tensors: dict) -> Graph:  # type: ignore[type-arg]
    """Return the graph with copies behind their originals and readers rewired."""
    after: dict[str, list[Node]] = {}
    instead: dict[str, Node] = {}
    for _, original, changed in changes:
        if changed.name == original.name:
            instead[original.name] = changed
        else:
            after.setdefault(original.name, []).append(changed)
    nodes: list[Node] = []
    for node in form.nodes:
        nodes.append(instead.get(node.name, node))
        nodes.extend(after.get(node.name, ()))
    return replace(form, tensors=tensors, nodes=tuple(nodes))


def _ordered(graph: Graph, groups: list[Group]) -> list[Group]:
    """Return the groups in an order in which they can run."""
    owner = {name: place for place, group in enumerate(groups) for name in group.nodes}
    waits: list[set[int]] = [
        {owner[b] for n in group.nodes for b in graph.predecessors[n] if b in owner and owner[b] != place}
        for place, group in enumerate(groups)
    ]
    done: set[int] = set()
    order: list[Group] = []
    keys: Iterable[int] = range(len(groups))
    while len(order) < len(groups):
        ready = [k for k in keys if k not in done and waits[k] <= done]
        if not ready:
            ready = [k for k in keys if k not in done]
        best = min(ready, key=lambda k: graph.index[groups[k].nodes[0]])
        done.add(best)
        order.append(groups[best])
    return order
