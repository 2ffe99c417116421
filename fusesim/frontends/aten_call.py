"""One ATen op that ran, as rules see it, and the table that rules register in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from fusesim.frontends.aten_tables import STAND_INS
from fusesim.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fusesim.frontends.program import Program, Region


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One ATen op that ran: its arguments by name, tensors as the graph's, and the regions that it made.

    `outs` holds None for a result that is no tensor. `tags` are the op's properties in PyTorch's own words.
    """

    program: Program
    name: str
    args: dict[str, Any]
    outs: list[Region | None]
    over: bool = False
    tags: frozenset[str] = field(default=frozenset())

    def __getitem__(self, name: str) -> Any:
        """Return an argument, None where it was not given."""
        return self.args.get(name)

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments, those in lists too, in the op's own order; `out` is not read."""
        return [value for key, value in self.args.items() if key != "out" for value in flat(value)]

    def given(self, *names: str) -> list[Tensor]:
        """Return those of some arguments that are tensors."""
        return [self.args[name] for name in names if isinstance(self.args.get(name), Tensor)]

    def emit(
        self, kind: str, inputs: list[Tensor], outs: list[int] | None = None, *, optional: int = 0, **attrs: Any
    ) -> list[Tensor]:
        """Add an op of that kind that makes some of the results, the first unless said otherwise."""
        regions = [self.outs[place] for place in (outs or [0])]
        return self.program.node(kind, inputs, [r for r in regions if r is not None], optional=optional, **attrs)


Rule = Callable[[Call], None]
RULES: Final[dict[str, Rule]] = {}
"""Rules by the op's name, without namespace, overload and the underscore of in-place forms."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for ops."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def flat(value: Any) -> Iterator[Tensor]:
    """Iterate over the tensors in a value."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from flat(part)


def pointwise(call: Call, kind: str) -> None:
    """Add an element-wise op: its tensors in order, and its first plain operand as the scalar."""
    slots = ("self", "input", "condition", "other", "exponent", "min", "max", "end", "weight")
    operands = [call[slot] for slot in slots if slot in call.args]
    numbers = [value for value in operands if _number(value)]
    inputs = call.tensors
    first = next((value for value in operands if value is not None), None)
    attrs: dict[str, Any] = {"reverse": True} if inputs and numbers and _number(first) else {}
    alpha = call["alpha"]
    if _number(alpha) and alpha != 1:
        attrs["alpha"] = alpha
    if not inputs:
        call.emit("fill", [], scalar=numbers[0] if numbers else None)
        return
    like = described(call) if call.name in STAND_INS or _set_otherwise(call) else None
    attrs |= {key: call[name] for name, key in FORMULA.items() if _number(call[name])}
    call.emit(kind, inputs, scalar=numbers[0] if numbers else None, like=like, **attrs)


FORMULA: Final = {"negative_slope": "slope", "value": "value"}
"""Arguments that an op's formula knows, and under what name."""

USUAL: Final[dict[str, dict[str, object]]] = {
    "elu": {"alpha": 1, "scale": 1, "input_scale": 1},
    "softplus": {"beta": 1, "threshold": 20},
    "div": {"rounding_mode": None},
}
"""Settings with which an op computes what its kind does."""


def _set_otherwise(call: Call) -> bool:
    """Return whether an op's settings make another function of it than its kind."""
    usual = USUAL.get(call.name, {})
    return any(call[name] not in {None, value} for name, value in usual.items())


def described(call: Call) -> str:
    """Return an op and its plain settings: what a kind stands for that only costs the same."""
    plain = {name: value for name, value in call.args.items() if value is not None and not list(flat(value))}
    return f"{call.name}({', '.join(f'{name}={value}' for name, value in plain.items())})"


def _number(value: Any) -> bool:
    """Return whether a value is a plain number."""
    return isinstance(value, int | float | bool | complex)


def dims_of(x: Tensor, dim: Any) -> tuple[int, ...]:
    """Return dimensions counted from the front; all where none are given, none of a single value's."""
    rank = len(x.shape)
    if not rank or dim is None or (isinstance(dim, list | tuple) and not dim):
        return tuple(range(rank))
    return tuple(sorted(place % rank for place in (dim if isinstance(dim, list | tuple) else [dim])))
