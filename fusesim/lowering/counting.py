"""What a generated kernel touches and issues, counted from a group's ops: bytes, instructions, how they load.

Nothing here is fitted: instructions are counted from compiled code, and what an index names is read by sectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fusesim.launches import Access
from fusesim.lowering.access import WIDE, accesses, width
from fusesim.lowering.slow_paths import slow_path
from fusesim.strategies.inductor_loops import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.fusion import FusionPlan, Group
    from fusesim.graph import Graph, Node

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

BRANCHED: Final = {"tanh": 91.0, "sin": 113.0, "cos": 113.0, "sqrt": 120.0}
"""Clock cycles by which one value of an op outlasts its instructions, because it branches: a thread's values wait for
each other. Two in a row over 523 rows of 256, a warp for four rows, 32 values to a thread: 139 and 167 cycles a value
(h200_generated_more.json); gelu, which does not branch, takes what it issues. Of 40, 80 and 120 for a root, which tests
whether it may take the quick way, 120 fits held rows best, 5.0 % in the median against 5.2 for 40
(h200_special.json and others)."""

SKIPPED: Final = frozenset({"tanh", "sin", "cos"})
"""Ops that branch: where a row is padded, on zeros, they leave at once. Rows of 2560 values in tiles of 2048: kernels
with a tanh take a quarter less than all values of both tiles would (h200_generated_more.json)."""

SECTOR: Final = 32.0
"""Bytes that memory hands out at once; an element that an index names costs one. [B]"""

TAP: Final = 8.0
"""Instructions of one value of a window that is pooled: where it lies, whether that is inside, its load, the larger one
(a window of nine on 6.4 million results, 20 us on an H200: traces of resnet50, compiled)."""

POSITIVE_ROOT: Final = 15
"""Instructions of a root of what cannot be negative, as of a variance: no branch for what has none (Triton 3.6)."""

LOADED: Final = 8
"""Bytes that a thread loads at once; sizes that these do not divide are loaded value by value. [B]"""

NAMED: Final = 4
"""Kinds of ops that a kernel's name states before it breaks off."""

ALONE: Final = frozenset(
    {"sort", "topk", "cumsum", "embedding_bag", "scatter", "opaque", "copy_into", "batch_norm_train"}
)
"""Kinds that no generated kernel computes, besides the families of `LIBRARY`."""

COMPUTED: Final = frozenset({"upsample", "pool"})
"""Kinds of those families that one computes all the same: value by value, places worked out."""

MOST_POOLED: Final = 25
"""Values of the largest window that is pooled so."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What a group issues per value.

    `slots` instructions, `special` functions, `serial` dependent cycles of one value, and `branched` ones that its
    thread's other values wait for; `skipped` are the slots that a padded value does not take; `flops` of the whole
    group.
    """

    slots: float
    special: float
    serial: float
    branched: float
    flops: float
    skipped: float = 0.0

    def on(self, padded: float) -> float:
        """Return the slots of one of `padded` times as many values, of which the others are padding."""
        return self.slots - self.skipped * (1.0 - 1.0 / padded)


@dataclass(frozen=True, eq=False)
class Part:
    """What one generated kernel is to compute: ops of a group of a plan, in the graph's order."""

    plan: FusionPlan
    group: Group
    nodes: tuple[Node, ...]

    @property
    def graph(self) -> Graph:
        """The graph that the ops are in."""
        return self.plan.graph

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Tensors that come from memory."""
        return self.plan.external_inputs(self.group)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Tensors that go to memory."""
        return self.plan.external_outputs(self.group)

    @cached_property
    def shares(self) -> dict[str, float]:
        """Which share of each op's values is computed at all."""
        return needed_shares(self.graph, self.nodes, set(self.outputs))

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """What the kernel reads. [B]."""
        return touched(self)

    @cached_property
    def writes(self) -> tuple[Access, ...]:
        """What it writes. [B]."""
        return accesses(self.graph, self.outputs)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its ops."""
        return tuple(node.name for node in self.nodes)

    @property
    def reductions(self) -> tuple[Node, ...]:
        """Its reductions."""
        return tuple(node for node in self.nodes if node.family == "reduction")

    @property
    def wide(self) -> str:
        """The suffix of its class: the element of the tensor that moves most bytes, whatever stands beside it."""
        tensors = (self.graph.tensors[name] for name in (*self.inputs, *self.outputs))
        return width(max(tensors, key=lambda tensor: tensor.bytes))

    @property
    def title(self) -> str:
        """A name that says what it computes."""
        kinds = sorted({node.kind for node in self.nodes})
        return " ".join(kinds[:NAMED]) + (" ..." if len(kinds) > NAMED else "")


def needed_shares(graph: Graph, nodes: Sequence[Node], ends: set[str]) -> dict[str, float]:
    """Return which share of each op's values is computed at all: an index downstream asks for few of them.

    `ends` are written whole; the result is empty where no op is an index.
    """
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


def touched(part: Part) -> tuple[Access, ...]:
    """Return what a group reads: of a tensor that only an index reads, in the end, no more than it names. [B]."""
    graph, shares = part.graph, part.shares
    found = list(accesses(graph, part.inputs))
    for place, access in enumerate(found if shares else ()):
        asked = [
            _asked(graph, node, graph.base(name), shares)
            * (SECTOR / graph.tensors[name].itemsize if node.kind == "gather" or shares[node.name] < 1.0 else 1.0)
            for node in part.nodes
            for name in node.inputs
            if graph.tensors[name].storage == access.storage
        ]
        found[place] = Access(access.storage, access.bytes * min(max(asked, default=1.0), 1.0))
    return tuple(found)


def arithmetic(
    graph: Graph, nodes: Sequence[Node], elements: float, shares: dict[str, float] | None = None, rows: int = 0
) -> Arithmetic:
    """Add up what ops issue, per value of a loop over `elements`, of which `rows` begin a row each."""
    slots = special = serial = branched = flops = skipped = 0.0
    for node in nodes:
        names = node.outputs if node.family == "gather" or node.kind == "pool" else (*node.inputs, *node.outputs)
        size = max(graph.tensors[name].elements for name in names)
        part = size / max(elements, 1.0)
        if node.family == "pointwise" and node.outputs and not once_per_row(graph, node, rows):
            part = max(part, 1.0)  # a value that broadcasts is computed again wherever it is read
        part *= (shares or {}).get(node.name, 1.0)
        own = _slots(graph, node) * part
        slots += own
        skipped += own if node.kind in SKIPPED else 0.0
        special += node.row.special * part
        serial += node.row.serial * (size >= elements)
        branched += BRANCHED.get(node.kind, 0.0) * part
        flops += graph.flops(node)
    return Arithmetic(slots, special, serial, branched, flops, skipped)


def _slots(graph: Graph, node: Node) -> float:
    """Return what an op issues per value."""
    if node.kind == "pool":
        return TAP * window_size(graph, node)
    if node.kind == "sqrt" and (node.attr("positive") or not slow_path(graph, node).cycles):
        return POSITIVE_ROOT
    return SLOTS.get(node.kind, node.row.slots)


def window_size(graph: Graph, node: Node) -> float:
    """Return how many values of its operand one result of a pooling op is made of."""
    x, out = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    sizes = node.attr("kernel_size", ())
    window = float(math.prod(sizes) or max(x.elements // max(out.elements, 1), 1))
    return window ** max(len(x.shape) - 2, 1) if len(sizes) == 1 else window


def library_ops(graph: Graph, nodes: Sequence[Node]) -> list[Node]:
    """Return the ops of a group that no generated kernel computes."""
    library = [node for node in nodes if node.family in LIBRARY or node.kind in ALONE]
    return [node for node in library if not _computed(graph, node)]


def _computed(graph: Graph, node: Node) -> bool:
    """Return whether a library's op is generated all the same."""
    return node.kind in COMPUTED and (node.kind != "pool" or window_size(graph, node) <= MOST_POOLED)


def once_per_row(graph: Graph, node: Node, rows: int) -> bool:
    """Return whether an op of a kernel over rows makes one value per row."""
    return bool(rows) and graph.tensors[node.outputs[0]].elements <= rows


def odd_loop(graph: Graph, names: Sequence[str], elements: float) -> str:
    """Return the suffix of loops that load value by value: sizes or rows that `LOADED` bytes do not divide."""
    tensors = [graph.tensors[name] for name in names if graph.tensors[name].shape]
    item = min((t.itemsize for t in tensors if t.elements >= elements), default=WIDE)
    inner = {t.shape[-1] * t.itemsize for t in tensors if t.elements < elements and t.shape[-1] > 1}
    return "_odd" if elements * item % LOADED or any(size % LOADED for size in inner) else ""


def odd_rows(graph: Graph, names: Sequence[str], columns: int) -> str:
    """Return the same suffix for kernels over rows: a row that does not begin on `LOADED` bytes."""
    least = min((graph.tensors[n].itemsize for n in names if graph.tensors[n].elements >= columns), default=2)
    return "_odd" if columns * least % LOADED else ""
