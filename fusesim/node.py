"""One op of a graph, and one tensor's way from op to op: plain records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fusesim.errors import GraphError, excerpt
from fusesim.kinds import Kind, find_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One op of a graph: its kind, the names of the tensors that go in and come out, and its settings.

    `attrs` holds plain values: `scalar` of a pointwise op with a number for an operand (`reverse` where the number
    comes first), `dims` of a reduction (not negative), `stride`, `padding` and `groups` of a convolution, `causal` of
    attention, and so on. `scope` says where the op stands in its program, for people. `row` and `family` are the
    kind's, looked up once.

    Raises
    ------
    GraphError
        If names or settings are none.
    InputError
        If there is no such kind.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: tuple[tuple[str, Any], ...] = ()
    scope: str = ""
    row: Kind = field(init=False, repr=False, compare=False)
    family: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what cannot be an op; look its kind up."""
        _check(self)
        row = find_kind(self.kind)
        object.__setattr__(self, "row", row)
        object.__setattr__(self, "family", row.family)

    def attr(self, name: str, default: Any = None) -> Any:
        """Return a setting."""
        return next((value for key, value in self.attrs if key == name), default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A tensor on its way from the op that made it (None: an input) to one that reads it (None: an output)."""

    tensor: str
    producer: str | None
    consumer: str | None
    bytes: int


def _check(node: Node) -> None:
    """Refuse an op that is not made of plain names and settings."""
    for what in ("name", "kind", "scope"):
        if not isinstance(getattr(node, what), str):
            raise GraphError(f"an op's {what} is {excerpt(getattr(node, what))}, and not a name")
    for what in ("inputs", "outputs"):
        if not are_names(getattr(node, what)):
            raise GraphError(
                f"op {excerpt(node.name)}: {what} are {excerpt(getattr(node, what))}, and not names in a tuple"
            )
    if not isinstance(node.attrs, tuple) or not all(map(_setting, node.attrs)):
        raise GraphError(
            f"op {excerpt(node.name)}: attrs are {excerpt(node.attrs)}, and not pairs of a name and a plain value"
        )


def are_names(value: object) -> bool:
    """Return whether a value is names in a tuple."""
    return isinstance(value, tuple) and all(isinstance(name, str) for name in value)


def _setting(pair: Any) -> bool:
    """Return whether a value is the name of a setting and a plain value, which can be compared."""
    if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str):  # noqa: PLR2004 - a pair
        return False
    try:
        hash(pair[1])
    except TypeError:
        return False
    return True
