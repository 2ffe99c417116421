"""A running program seen as a graph: which memory each tensor names, who wrote it last, and what each op made.

A frontend says for each op what it reads, looks at and writes, by region of memory; this file gives regions names,
finds views and writes over them, and makes the graph. It knows no framework.
"""

from __future__ import annotations

from collections.abc import Hashable  # noqa: TC003 - a dataclass needs it
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fusesim.builder import Builder
from fusesim.tensor import permuted_dense

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.graph import Graph, Node
    from fusesim.tensor import Shape, Tensor


@dataclass(frozen=True, slots=True)
class Region:
    """A tensor of the program: the memory that it lives in and how it looks at it; equal regions are one tensor."""

    memory: Hashable
    shape: Shape
    strides: Shape
    offset: int
    dtype: str


@dataclass(slots=True)
class _Memory:
    """What is known of one piece of memory: its first tensor, its latest writer, and how often it was written."""

    root: Tensor
    latest: Tensor
    writes: int = 0


class Program:
    """Collects ops on regions of memory; `graph` makes the graph of them."""

    def __init__(self, name: str) -> None:
        self.builder = Builder(name)
        self._names: dict[Region, tuple[Tensor, int]] = {}
        self._memories: dict[Hashable, _Memory] = {}
        self._blank: dict[Hashable, Region] = {}
        self._optional: set[str] = set()

    @property
    def latest_node(self) -> str:
        """The op that ran last, views aside; "" before the first."""
        return next((node.name for node in reversed(self.builder.nodes) if node.family != "view"), "")

    def gap(self, sentence: str) -> None:
        """Note, once, what the graph does not say rightly."""
        if sentence not in self.builder.gaps:
            self.builder.gaps.append(sentence)

    def allocate(self, region: Region) -> None:
        """Note memory that nobody has written yet; it has no tensor before somebody does."""
        self._blank[region.memory] = region

    def enter(self, region: Region, name: str, *, parameter: bool = False) -> Tensor:
        """Add an input, or return it where it is one already."""
        if region in self._names:
            return self.read(region)
        memory = self._memories.get(region.memory)
        made = self._tensor(region, name, memory.root if memory else None)
        self.builder.inputs.append(made.name)
        if parameter:
            self.builder.parameters.add(made.name)
        if memory is None:
            self._memories[region.memory] = _Memory(made, made)
            self._blank.pop(region.memory, None)
        self._names[region] = (made, 0 if memory is None else memory.writes)
        return made

    def knows(self, region: Region) -> bool:
        """Return whether anybody has written or read this memory."""
        return region.memory in self._memories or region.memory in self._blank

    def read(self, region: Region) -> Tensor:
        """Return the tensor of a region as it is now; unknown memory comes in from outside."""
        memory = self._memories.get(region.memory)
        if memory is None:
            whole = self._blank.get(region.memory, region)
            self.enter(whole, "empty" if region.memory in self._blank else "constant")
            return self.read(region)
        known = self._names.get(region)
        if known is None:
            self.view(_region_of(region.memory, memory.latest), region, "as_strided")
            known = self._names[region]
        elif known[1] < memory.writes and _covers(memory.latest, known[0]):
            self._names.pop(region)
            return self.read(region)
        return known[0]

    def view(self, source: Region, region: Region, kind: str, **attrs: Any) -> None:
        """Note another look at memory; of memory that nobody has written, there is nothing to see yet."""
        memory = self._memories.get(source.memory)
        if memory is None and source.memory in self._blank:
            return
        base = self.read(source)
        memory = self._memories[source.memory]
        known = self._names.get(region)
        if known is not None and known[1] == memory.writes:
            return
        made = self._tensor(region, kind, base)
        self.builder.node(kind, [base], [made], **attrs)
        self._names[region] = (made, memory.writes)

    def write(self, region: Region, stem: str) -> tuple[Tensor, str | None]:
        """Return the tensor that an op makes at a region, and the one that it writes over, None where none."""
        memory = self._memories.get(region.memory)
        blank = self._blank.get(region.memory)
        if memory is None and blank is not None and not _same_extent(blank, region):
            self.read(region)
            memory = self._memories[region.memory]
        if memory is None:
            made = self._tensor(region, stem, None)
            self._blank.pop(region.memory, None)
            self._memories[region.memory] = _Memory(made, made)
            self._names[region] = (made, 0)
            return made, None
        target = self.read(region)
        made = self._tensor(region, stem, target)
        memory.writes += 1
        memory.latest = made
        self._names[region] = (made, memory.writes)
        return made, target.name

    def fresh(self, region: Region) -> bool:
        """Return whether a write to a region would be the first to its memory, and of all of it."""
        blank = self._blank.get(region.memory)
        return region.memory not in self._memories and (blank is None or _same_extent(blank, region))

    def _tensor(self, region: Region, stem: str, of: Tensor | None) -> Tensor:
        """Add a tensor to the graph."""
        return self.builder.tensor(
            region.shape, region.dtype, stem=stem, strides=region.strides, of=of, offset=region.offset
        )

    def node(
        self, kind: str, inputs: Sequence[Tensor], outputs: Sequence[Region], *, optional: int = 0, **attrs: Any
    ) -> list[Tensor]:
        """Add an op that makes tensors at regions; the last `optional` of them vanish where nobody reads them."""
        made, over = [], None
        for region in outputs:
            tensor, target = self.write(region, kind)
            over = over or target
            made.append(tensor)
        self._optional.update(tensor.name for tensor in made[len(made) - optional :] if optional)
        self.builder.node(kind, inputs, made, over=over, **attrs)
        return made

    def rewritten(self) -> list[Region]:
        """Return the inputs that the program wrote over, whole, as it left them."""
        inputs = set(self.builder.inputs)
        return [
            _region_of(memory, known.root)
            for memory, known in self._memories.items()
            if known.writes and known.root.name in inputs and not known.root.name.startswith("empty")
        ]

    def release(self, memory: Hashable) -> None:
        """Note that the program let go of memory, after the latest op."""
        known = self._memories.get(memory)
        if known is not None:
            self.builder.held[known.root.name] = self.latest_node

    def graph(self, outputs: Sequence[Region]) -> Graph:
        """Return the graph, without views and side results that nobody reads."""
        b = self.builder
        b.output(*(self.read(region) for region in outputs))
        b.nodes = _read_only(b.nodes, set(b.outputs), self._optional)
        used = {name for node in b.nodes for name in (*node.inputs, *node.outputs)} | set(b.inputs)
        b.tensors = {name: tensor for name, tensor in b.tensors.items() if name in used}
        b.held = _outlived(b.nodes, b.tensors, b.held, set(b.inputs))
        return b.graph()


def _region_of(memory: Hashable, tensor: Tensor) -> Region:
    """Return the region of a tensor."""
    return Region(memory, tensor.shape, tensor.strides, tensor.offset, tensor.dtype)


def _extent(shape: Shape, strides: Shape, offset: int, itemsize: int) -> tuple[int, int]:
    """Return the first and the last byte that a tensor looks at."""
    reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True) if size)
    return offset * itemsize, (offset + reach + 1) * itemsize


def _covers(writer: Tensor, other: Tensor) -> bool:
    """Return whether a tensor without gaps lies around all of another."""
    first, last = _extent(other.shape, other.strides, other.offset, other.itemsize)
    begin, end = _extent(writer.shape, writer.strides, writer.offset, writer.itemsize)
    return permuted_dense(writer) and begin <= first and last <= end


def _same_extent(blank: Region, region: Region) -> bool:
    """Return whether a region has as many values as the memory."""
    count = 1
    for size in region.shape:
        count *= size
    whole = 1
    for size in blank.shape:
        whole *= size
    return count == whole


def _read_only(nodes: Sequence[Node], wanted: set[str], optional: set[str]) -> list[Node]:
    """Return the ops without unread views and unread optional results."""
    kept: list[Node] = []
    for node in reversed(nodes):
        outputs = tuple(name for name in node.outputs if name in wanted or name not in optional)
        if node.family == "view" and not wanted.intersection(outputs):
            continue
        wanted.update(node.inputs)
        kept.append(replace(node, outputs=outputs) if outputs and outputs != node.outputs else node)
    return kept[::-1]


def _outlived(
    nodes: Sequence[Node], tensors: dict[str, Tensor], released: dict[str, str], inputs: set[str]
) -> dict[str, str]:
    """Return which tensors the program keeps beyond their last use, and until when."""
    place = {node.name: at for at, node in enumerate(nodes)}
    final = max((at for at, node in enumerate(nodes) if node.family != "view"), default=-1)
    last: dict[str, int] = {}
    for at, node in enumerate(nodes):
        for name in (*node.inputs, *node.outputs):
            last[tensors[name].storage] = at
    found = {}
    for root, at in last.items():
        if root in inputs or root not in tensors:
            continue
        until = place.get(released.get(root, ""), final)
        if until > at:
            found[root] = "" if until == final else nodes[until].name
    return found
