"""A program as a graph: tensors, and the ops that make them, in an order in which they can run.

A `Graph` checks itself on construction and never changes. It knows shapes, element types, strides, whose memory a
tensor lives in, and what each op computes; it knows no device, no kernel and no time. `fusesim.builder` makes graphs
conveniently, `fusesim.patterns` has named ones, and frontends read them from programs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping  # noqa: TC003 - a dataclass needs it
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from fusesim.errors import InputError, excerpt
from fusesim.node import Edge, Node
from fusesim.validity import check_form, check_order, check_shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fusesim.tensor import Tensor

__all__ = ["Edge", "Graph", "Node", "check_order", "check_shapes", "names_of", "node_flops"]


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Tensors and ops, checked.

    Parameters
    ----------
    tensors : mapping of str to Tensor
        Every tensor by name.
    nodes : tuple of Node
        The ops, in an order in which they can run.
    inputs, outputs : tuple of str
        Tensors that exist before, parameters included, and that must exist after. Where no output is named, what ops
        make and nobody reads is one.
    parameters : frozenset of str
        Those inputs that do not change from call to call.
    name : str
        For people.
    held : mapping of str to str
        Tensors whose memory the program itself keeps beyond their last reader, as a local variable does, and the op
        after which it lets go; "" where that is the program's end.

    Raises
    ------
    GraphError
        If a name is unknown or made twice, an op comes before what it reads or after its input was overwritten, or
        shapes do not fit.
    """

    tensors: Mapping[str, Tensor]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: frozenset[str] = frozenset()
    name: str = "graph"
    gaps: tuple[str, ...] = field(default=(), repr=False)
    held: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Check the whole; name the outputs where nobody did."""
        check_form(self)
        check_order(self)
        if not self.outputs:
            read = {name for node in self.nodes for name in node.inputs}
            ends = (node.outputs for node in self.nodes if not read.intersection(node.outputs))
            object.__setattr__(self, "outputs", tuple(name for names in ends for name in names))
        for node in self.nodes:
            check_shapes(node, [self.tensors[name] for name in node.inputs], [self.tensors[n] for n in node.outputs])

    @cached_property
    def producers(self) -> dict[str, Node]:
        """The op that makes each tensor; inputs have none."""
        return {name: node for node in self.nodes for name in node.outputs}

    @cached_property
    def consumers(self) -> dict[str, tuple[Node, ...]]:
        """The ops that read each tensor."""
        found: dict[str, list[Node]] = {name: [] for name in self.tensors}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found[name].append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """The ops by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def index(self) -> dict[str, int]:
        """The place of each op in the order."""
        return {node.name: place for place, node in enumerate(self.nodes)}

    @cached_property
    def paid_nodes(self) -> tuple[Node, ...]:
        """The ops that cost something: all but views."""
        return tuple(node for node in self.nodes if node.family != "view")

    def node(self, name: str) -> Node:
        """Return the op of that name.

        Raises
        ------
        InputError
            If there is none, with the ones that there are.
        """
        if not isinstance(name, str) or name not in self.by_name:
            known = ", ".join(list(self.by_name)[:12])
            raise InputError(f"{self.name} has no op {excerpt(name)}; it has {known}")
        return self.by_name[name]

    def base(self, name: str) -> str:
        """Return the tensor through which a view was taken: the nearest one that an op made or that came in."""
        found = self._bases.get(name)
        if found is None:
            found, node = name, self.producers.get(name)
            while node is not None and node.family == "view":
                found = node.inputs[0]
                node = self.producers.get(found)
            self._bases[name] = found
        return found

    @cached_property
    def _bases(self) -> dict[str, str]:
        """What `base` has answered: planners ask thousands of times."""
        return {}

    @cached_property
    def kept(self) -> frozenset[str]:
        """The tensors that are written whoever reads them, views seen through.

        What is returned, what an op writes last over an input, and what an op makes of which nobody reads anything:
        it runs for that.
        """
        over = {node.attr("over") for node in self.paid_nodes}
        found = {self.base(name) for name in self.outputs}
        wanted = found | {self.base(name) for node in self.paid_nodes for name in node.inputs}
        for node in self.paid_nodes:
            unread = not wanted.intersection(node.outputs)
            found.update(name for name in node.outputs if unread or (self._changes_input(name) and name not in over))
        return frozenset(found)

    def _changes_input(self, name: str) -> bool:
        """Return whether a tensor lives in an input's memory."""
        tensor = self.tensors[name]
        return tensor.is_view and tensor.storage in self._given

    @cached_property
    def _given(self) -> frozenset[str]:
        """The inputs."""
        return frozenset(self.inputs)

    @cached_property
    def waits(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Of each paid op those whose results it reads, views seen through, and those that read what it overwrites."""
        found: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        writers: dict[str, str] = {}
        readers: dict[str, dict[str, None]] = {}
        for node in self.paid_nodes:
            makers: dict[str, None] = {}
            for name in node.inputs:
                producer = self.producers.get(self.base(name))
                storage = self.tensors[name].storage
                makers.update(dict.fromkeys([producer.name] if producer is not None else []))
                makers.update(dict.fromkeys([writers[storage]] if storage in writers else []))
                readers.setdefault(storage, {})[node.name] = None
            before: dict[str, None] = {}
            for name in node.outputs:
                if self.tensors[name].is_view:
                    before.update(readers.get(self.tensors[name].storage, {}))
                    writers[self.tensors[name].storage] = node.name
            before.pop(node.name, None)
            found[node.name] = tuple(makers), tuple(before)
        return found

    @cached_property
    def predecessors(self) -> dict[str, tuple[str, ...]]:
        """The paid ops that each paid op waits for, seen through views, and those whose input it overwrites."""
        return {name: tuple(dict.fromkeys((*makers, *readers))) for name, (makers, readers) in self.waits.items()}

    def edges(self) -> tuple[Edge, ...]:
        """Return every tensor's way from who makes it to who reads it, views seen through. [B]."""
        found = []
        for node in self.paid_nodes:
            for name in dict.fromkeys(node.inputs):
                base = self.base(name)
                producer = self.producers.get(base)
                found.append(
                    Edge(
                        tensor=name,
                        producer=producer.name if producer else None,
                        consumer=node.name,
                        bytes=self.tensors[name].bytes,
                    )
                )
        for name in self.outputs:
            producer = self.producers.get(self.base(name))
            if producer is not None:
                found.append(Edge(tensor=name, producer=producer.name, consumer=None, bytes=self.tensors[name].bytes))
        return tuple(found)

    def flops(self, node: Node) -> float:
        """Return the arithmetic of one op, an FMA counted as two. [FLOP]."""
        known = self._flops.get(node.name)
        if known is None or known[0] is not node:
            tensors = self.tensors
            known = node, node_flops(node, [tensors[n] for n in node.inputs], [tensors[n] for n in node.outputs])
            self._flops[node.name] = known
        return known[1]

    @cached_property
    def _flops(self) -> dict[str, tuple[Node, float]]:
        """What `flops` has answered."""
        return {}

    @property
    def total_flops(self) -> float:
        """Arithmetic of the whole graph. [FLOP]."""
        return sum(self.flops(node) for node in self.nodes)

    @property
    def input_bytes(self) -> int:
        """Bytes of the inputs, parameters included. [B]."""
        return sum(self.tensors[name].bytes for name in self.inputs)

    def __iter__(self) -> Iterator[Node]:
        """Iterate over the ops."""
        return iter(self.nodes)

    def __len__(self) -> int:
        """Return how many ops there are."""
        return len(self.nodes)

    def __repr__(self) -> str:
        """Return one line."""
        return (
            f"<Graph {self.name}: {len(self.paid_nodes)} ops, {len(self.inputs)} inputs, {len(self.outputs)} outputs>"
        )

    def __hash__(self) -> int:
        """Hash by identity: a graph never changes."""
        return id(self)

    def __eq__(self, other: object) -> bool:
        """Compare tensors and ops."""
        if not isinstance(other, Graph):
            return NotImplemented
        mine = (dict(self.tensors), self.nodes, self.inputs, self.outputs)
        return mine == (dict(other.tensors), other.nodes, other.inputs, other.outputs)


def node_flops(node: Node, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> float:
    """Return the arithmetic of one op, an FMA counted as two. [FLOP].

    Notes
    -----
    matmul 2 m n k per matrix; convolution 2 x outputs x window x channels per group; attention 4 x batch x heads x
    queries x keys x dim (the two products, masked pairs counted too), its gradient 2.5 times that; both gradients of a
    convolution as much as itself; pointwise and reductions as `fusesim.kinds` says,
    per value out and per value in.
    """
    family = node.family
    if family == "matmul":
        return 2.0 * outputs[0].elements * inputs[0].shape[-1]
    if family == "conv":
        whole, window = outputs[0], inputs[1]
        if node.kind == "conv_weight_grad":
            whole, window = inputs[0], outputs[0]
        elif node.kind == "conv_input_grad" or node.attr("transposed"):
            whole = inputs[0]
        return 2.0 * whole.elements * math.prod(window.shape[1:])
    if family == "attention":
        *batch, queries, dim = inputs[0].shape
        return (
            (5.0 if node.kind == "attention_backward" else 2.0)
            * math.prod(batch)
            * queries
            * inputs[1].shape[-2]
            * (dim + inputs[2].shape[-1])
        )
    if family in {"reduction", "normalise"}:
        return node.row.flops * inputs[0].elements
    return node.row.flops * (outputs[0].elements if outputs else 0)


def names_of(tensors: Iterable[Tensor]) -> tuple[str, ...]:
    """Return the names of tensors."""
    return tuple(tensor.name for tensor in tensors)
