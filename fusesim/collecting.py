"""A graph under construction: tensors, ops, and what the program takes, returns and holds, collected by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusesim.errors import GraphError, excerpt
from fusesim.graph import Graph, Node
from fusesim.kinds import find_kind
from fusesim.signatures import checked, is_whole
from fusesim.tensor import Tensor, row_major

if TYPE_CHECKING:
    from collections.abc import Sequence


@checked
class Collector:
    """Collects tensors and ops; `graph()` makes the graph of them."""

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.parameters: set[str] = set()
        self.gaps: list[str] = []
        self.held: dict[str, str] = {}
        self.scope = ""
        self._counts: dict[str, int] = {}

    def _name(self, stem: str) -> str:
        """Return a name that nothing has yet."""
        while True:
            count = self._counts.get(stem, 0)
            self._counts[stem] = count + 1
            name = f"{stem}_{count}" if count else stem
            if name not in self.tensors:
                return name

    def tensor(
        self,
        shape: Sequence[int],
        dtype: str,
        *,
        stem: str,
        strides: Sequence[int] | None = None,
        of: Tensor | None = None,
        offset: int = 0,
    ) -> Tensor:
        """Add a tensor: one of its own, or one in the memory of another, `offset` elements from its start."""
        name = self._name(stem)
        made = Tensor(
            name=name,
            shape=tuple(shape),
            dtype=dtype,
            strides=row_major(shape) if strides is None else tuple(strides),
            storage=name if of is None else of.storage,
            offset=offset,
        )
        self.tensors[name] = made
        return made

    def input(self, *shape: int, dtype: str = "bf16", name: str = "x", strides: Sequence[int] | None = None) -> Tensor:
        """Add an input."""
        if not all(map(is_whole, shape)):
            raise GraphError(f"input {excerpt(name)}: shape {excerpt(shape)} holds something other than sizes")
        made = self.tensor(shape, dtype, stem=name, strides=strides)
        self.inputs.append(made.name)
        return made

    def parameter(
        self, *shape: int, dtype: str = "bf16", name: str = "w", strides: Sequence[int] | None = None
    ) -> Tensor:
        """Add an input that does not change from call to call: a weight."""
        made = self.input(*shape, dtype=dtype, name=name, strides=strides)
        self.parameters.add(made.name)
        return made

    def output(self, *tensors: Tensor) -> None:
        """Say what must exist at the end."""
        self.outputs.extend(self._own(tensors))

    def hold(self, *tensors: Tensor) -> None:
        """Say that the program keeps tensors after their last use, as a variable does: to its end, or to `release`."""
        self.held.update(dict.fromkeys(self._own(tensors), ""))

    def release(self, *tensors: Tensor) -> None:
        """Say that the program lets go of tensors that it held, after the latest op."""
        self.held.update(dict.fromkeys(self._own(tensors), self.nodes[-1].name if self.nodes else ""))

    def _own(self, tensors: Sequence[Tensor]) -> tuple[str, ...]:
        """Return the names of tensors; refuse what is none, or another builder's."""
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise GraphError(f"{excerpt(tensor)} is not a tensor; give what input() or an op returned")
            if tensor.name not in self.tensors:
                raise GraphError(f"tensor {excerpt(tensor.name)} is not of this builder; make it here")
        return tuple(tensor.name for tensor in tensors)

    def graph(self) -> Graph:
        """Return the graph.

        Raises
        ------
        GraphError
            If it is not valid.
        """
        return Graph(
            tensors=dict(self.tensors),
            nodes=tuple(self.nodes),
            inputs=tuple(self.inputs),
            outputs=tuple(dict.fromkeys(self.outputs)),
            parameters=frozenset(self.parameters),
            name=self.name,
            gaps=tuple(self.gaps),
            held=dict(self.held),
        )

    def node(self, kind: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], **attrs: Any) -> None:
        """Add an op whose results are known."""
        row = find_kind(kind)
        made = Node(
            name=self._node_name(row.name),
            kind=kind,
            inputs=self._own(inputs),
            outputs=self._own(outputs),
            attrs=tuple(sorted((key, value) for key, value in attrs.items() if value is not None)),
            scope=self.scope,
        )
        self.nodes.append(made)

    def _node_name(self, kind: str) -> str:
        """Return mul, mul_1, mul_2, ..."""
        count = self._counts.get(f"op {kind}", 0)
        self._counts[f"op {kind}"] = count + 1
        return f"{kind}_{count}" if count else kind

    def _dim(self, x: Tensor, dim: int) -> int:
        """Return a dimension counted from the front."""
        rank = len(x.shape)
        if not -rank <= dim < rank:
            raise GraphError(f"tensor {x.name} of shape {x.shape} has no dimension {dim}")
        return dim % rank

    def _of_rank(self, what: str, least: int, *tensors: Tensor) -> None:
        """Refuse tensors of fewer dimensions."""
        for tensor in tensors:
            if len(tensor.shape) < least:
                raise GraphError(f"{what} takes tensors of {least} dimensions or more; {tensor.name} is {tensor.shape}")
