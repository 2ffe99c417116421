"""Who made what a recorded op reads: traces name no tensors, so operands are matched by look and by order.

A look is a shape, strides and a type. Of the values with an operand's look, one that nothing has read yet comes first;
of several made alike (queries, keys, values) the oldest, else the newest. Where all have been read, an addition takes
the start of the residual branch, and other ops what was read last. What nobody made is an input. Fails first where
many values of one look are alive at once. Types of lists' members are not recorded: one that comes in has the type of
what stands beside it in the list, else of the last input.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from fusesim.frontends.aten_tables import POINTWISE
from fusesim.frontends.program import Program, Region
from fusesim.tensor import row_major

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from fusesim.tensor import Shape, Tensor

MOST_ALIVE: Final = 128
"""Values of one shape that are remembered, at least."""

ADDITIONS: Final = frozenset({"add", "sub"})
TURNS: Final = frozenset({"t", "transpose", "permute", "numpy_T"})
PARTS: Final = frozenset({"slice", "select", "narrow"})
MEANS: Final = frozenset({"mean", "_adaptive_avg_pool2d"})
PICTURE: Final = 4
"""Dimensions of a batch of pictures."""

JOINS: Final = frozenset({"cat", "concat", "stack"})
PRODUCTS: Final = ("mm", "addmm", "bmm", "baddbmm", "convolution", "_scaled_dot")
POWERS: Final = frozenset({"pow", "square", "abs"})


@dataclass(slots=True, eq=False)
class Value:
    """A tensor that was made or came in: how it was made, who read it, when."""

    region: Region
    made_by: Hashable
    stem: str
    view: bool = False
    entered: bool = False
    uses: int = 0
    reads: int = 0
    born: int = 0
    next: Value | None = None
    readers: set[str] = field(default_factory=set)
    slots: set[Hashable] = field(default_factory=set)
    steps: Shape = ()

    def __post_init__(self) -> None:
        """Work out once what is asked often."""
        self.steps = _steps(self.region.shape, self.region.strides)


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand as recorded; strides None where the trace has none, type "" for a member of a list."""

    shape: Shape
    strides: Shape | None
    dtype: str
    role: str = ""
    """"weight": comes in, unless fresh; "constant": comes in, always; "state": comes in rather than read again;
    "branch": the start of a branch that is added to what waits."""

    @property
    def look(self) -> tuple[Shape, Shape | None, str]:
        """Return what tells operands apart; strides of dimensions of one place do not."""
        return self.shape, None if self.strides is None else _steps(self.shape, self.strides), self.dtype


def _steps(shape: Shape, strides: Shape) -> Shape:
    """Return strides, 0 for dimensions of one place."""
    return tuple(0 if size == 1 else step for size, step in zip(shape, strides, strict=False))


class Linker:
    """Finds values for operands and keeps those that ops make; `program` gets the graph."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.clock = 0
        self._alive: dict[Shape, list[Value]] = {}
        self._classes: dict[Hashable, set[Hashable]] = {}
        self._joined: dict[Hashable, Value] = {}
        self._before_norm: bool | None = None
        self._usual = "fp32"
        self._read: dict[int, int] = {}
        self._last_source: Value | None = None
        self._last_product: Value | None = None
        self.reserved: list[Value] = []

    def operands(self, stem: str, operands: Sequence[Operand], settings: Hashable = ()) -> list[Value]:
        """Return the value of each operand of an op, and note that it was read."""
        self.clock += 1
        chosen: dict[int, Value] = {}
        signature = (stem, tuple(operand.look for operand in operands), settings)
        for fresh_only in (True, False):
            for place, operand in enumerate(operands):
                if place not in chosen:
                    taken = list(chosen.values())
                    found = self._gated(stem, place, operands) or self._fresh(operand, (signature, place), taken)
                    if found is None and not fresh_only:
                        found = self._read_before(stem, place, operands, taken, signature) or self._enter(
                            operand, taken
                        )
                    if found is not None:
                        chosen[place] = found
                        self._classes.setdefault((signature, place), set()).add(found.made_by)
        values = [chosen[place] for place in range(len(operands))]
        for place, value in enumerate(values):
            value.uses += 1
            value.reads += 1
            value.readers.add(stem)
            value.slots.add((signature, place))
            self._read[id(value.region.memory)] = self.clock
        self._last_product = values[0] if stem == "mul" and len(operands) == 2 and _spread(operands) else None  # noqa: PLR2004
        return values

    def source(self, stem: str, operand: Operand) -> Value:
        """Return the value that a view looks at."""
        found: Value | None = None
        candidates = self._candidates(operand)
        if stem in PARTS:
            for known in (self._last_product, self._last_source):
                if found is None and known is not None and known in candidates:
                    found = known
        if stem in TURNS:
            found = found or next((v for v in self.reserved if _fits(v, operand) and not v.uses), None)
        fresh = self._fresh(operand, (stem, operand.look), [])
        if found is None and fresh is not None:  # of several made alike and waiting (keys, then values) the oldest
            found = next(v for v in candidates if v.made_by == fresh.made_by and not v.uses)
        found = found or max(candidates, key=self._latest, default=None)
        return found or self._enter(operand)

    def made(
        self, region: Region, made_by: Hashable, stem: str, operands: Sequence[Value], *, view: bool = False
    ) -> Value:
        """Note a value that an op or a view made."""
        value = Value(region, made_by, stem, view=view, born=self.clock)
        if view:
            self._last_source = operands[0]
            operands[0].uses += 1
        if operands and operands[0].region == region:  # written over
            here = self._alive.get(region.shape, [])
            here[:] = [old for old in here if old.region != region]
        self._keep(value)
        look = _look(region)
        whole = [old for old in operands if _look(old.region) == look]
        if not view and len(whole) == 1 and (stem in POINTWISE or stem.endswith("batch_norm")):
            whole[0].next = value
        if any(old is self._joined.get(look) and old.region == region for old in operands):
            self._joined[look] = value
        return value

    def join(self, stem: str, operands: Sequence[Value], value: Value) -> None:
        """Note that an op added two values of one look: the end of a residual branch."""
        look = _look(value.region)
        if stem in ADDITIONS and len(operands) == 2 and all(part.region.shape == look[0] for part in operands):  # noqa: PLR2004
            self._joined[look] = value

    def expect(self, operands: Iterable[Operand]) -> None:
        """Note inputs that the parts of a composite op will read next."""
        self.reserved = [self._enter(operand) for operand in operands]

    def waiting(self, operand: Operand, stem: str) -> bool:
        """Return whether a weight was made, not given: by a change of type, or for a plain product by any op."""
        fresh = [v for v in self._candidates(operand) if not v.uses and not v.entered and _fits(v, operand)]
        return any(v.stem == "_to_copy" or stem == "matmul" for v in fresh)

    def unknown(self, operand: Operand) -> bool:
        """Return whether nothing that looks like an operand was made or came in, and it is no weight."""
        return operand.role not in {"weight", "constant"} and bool(operand.shape) and not self._candidates(operand)

    def tensor(self, value: Value) -> Tensor:
        """Return the graph's tensor of a value."""
        return self.program.read(value.region)

    def _keep(self, value: Value) -> None:
        """Remember a value; of many of one shape, forget the oldest that were read and start no branch."""
        here = self._alive.setdefault(value.region.shape, [])
        here.append(value)
        if len(here) > 2 * MOST_ALIVE:
            kept = {id(old) for old in self._joined.values()}
            spare = [old for old in here if old.uses and id(old) not in kept][: len(here) - MOST_ALIVE]
            gone = {id(old) for old in spare or here[:MOST_ALIVE]}
            here[:] = [old for old in here if id(old) not in gone]

    def _candidates(self, operand: Operand) -> list[Value]:
        """Return the values that look like an operand; where none has its strides, those of its shape."""
        here = [v for v in self._alive.get(operand.shape, ()) if operand.dtype in {"", v.region.dtype}]
        if operand.strides is None:
            return here
        steps = _steps(operand.shape, operand.strides)
        exact = [value for value in here if value.steps == steps]
        return exact or [value for value in here if not value.uses and not value.view]

    def _fresh(self, operand: Operand, slot: Hashable, taken: list[Value]) -> Value | None:
        """Return a value nobody has read: the newest, or the first of views alike (queries, keys and values)."""
        reserved = [v for v in self.reserved if _fits(v, operand) and v not in taken and not v.uses]
        if reserved and operand.role == "weight":
            return reserved[0]
        if operand.role == "constant":
            return None
        fresh = [value for value in self._candidates(operand) if not value.uses and value not in taken]
        if not fresh:
            return None
        before = [value for value in fresh if value.made_by in self._classes.get(slot, ())]
        ends = fresh[-1].view or fresh[-1].stem in ADDITIONS  # what else was just made is in the middle of a chain
        newest = before[-1] if before and ends else fresh[-1]
        return next(value for value in fresh if value.made_by == newest.made_by) if newest.view else newest

    def _gated(self, stem: str, place: int, operands: Sequence[Operand]) -> Value | None:
        """Return the value that a gate made of its mean over space is multiplied with."""
        operand, others = operands[place], [other for at, other in enumerate(operands) if at != place]
        rank = len(operand.shape)
        if stem != "mul" or rank < PICTURE or [other.shape[2:] for other in others] != [(1,) * (rank - 2)]:
            return None
        known = [value for value in self._candidates(operand) if value.readers & MEANS and value.stem not in POWERS]
        return max(known, key=self._latest, default=None)

    def _latest(self, value: Value) -> tuple[int, int]:
        """Return when the memory of a value was last read, and when the value was made."""
        return self._read.get(id(value.region.memory), -1), value.born

    def _read_before(
        self, stem: str, place: int, operands: Sequence[Operand], taken: list[Value], signature: Hashable
    ) -> Value | None:
        """Return a value that was read before, None where the operand rather comes in."""
        operand = operands[place]
        if operand.role in {"weight", "constant"}:
            return None
        known = [value for value in self._candidates(operand) if value not in taken]
        if "backward" in stem:
            unread = [value for value in known if stem not in value.readers]
            return max(unread, key=lambda value: value.born, default=None)
        if operand.role == "state":
            known = [value for value in known if not value.entered]
        elif any(len(other.shape) > len(operand.shape) or other.shape > operand.shape for other in operands):
            known = [value for value in known if not value.entered or (signature, place) in value.slots]
        if not known or (len(operand.shape) == 1 and len(operands) > 1):
            return None
        if stem in ADDITIONS and len(operands) > 1 and taken:
            return self._branch_start(known, operand)
        if operand.role == "branch" or (operand.role == "state" and stem in JOINS):
            again = [value for value in known if stem in JOINS and stem in value.readers]
            return again[0] if again else _end_of_chain(self._since_joined(known)[0], known)
        whole = [v for v in known if not (v.stem in POWERS and v.readers <= {"mean", "sum"})] or known
        return max(whole, key=self._latest)

    def _branch_start(self, known: list[Value], operand: Operand) -> Value:
        """Return where a residual branch began: the last sum or, where sums are normalised at once, what that made."""
        joined = self._joined.get(_look(known[0].region))
        plain = self._since_joined(known)
        later = [
            value for value in plain[1:] if value.stem not in PRODUCTS and not value.stem.startswith("_scaled_dot")
        ]
        if self._before_norm is None and operand.strides is not None:
            self._before_norm = bool(later) or plain[0].stem not in {"", "input"}
        first = later[-1] if joined is not None and not self._before_norm and later else plain[0]
        return _end_of_chain(first, known)

    def _since_joined(self, known: list[Value]) -> list[Value]:
        """Return the values made since the last sum of their look."""
        joined = self._joined.get(_look(known[0].region))
        since = [value for value in known if joined is None or value.born >= joined.born]
        return since or known

    def _enter(self, operand: Operand, beside: Sequence[Value] = ()) -> Value:
        """Return a new input; a member of a list, whose type is not recorded, has that of what stands beside it."""
        strides = operand.strides if operand.strides is not None else row_major(operand.shape)
        self._usual = operand.dtype or next((value.region.dtype for value in beside), self._usual)
        region = Region(object(), operand.shape, strides, 0, self._usual)
        weight = operand.role in {"weight", "constant"}
        self.program.enter(region, "w" if weight else "x", parameter=weight)
        value = Value(region, "input", "input", entered=True, born=self.clock)
        self._keep(value)
        return value


def _end_of_chain(value: Value, known: list[Value]) -> Value:
    """Return what element-wise ops of one operand made of a value that only they read."""
    while value.next is not None and value.reads == 1 and value.next in known:
        value = value.next
    return value


def _look(region: Region) -> Any:
    """Return how a region looks."""
    return region.shape, _steps(region.shape, region.strides), region.dtype


def _fits(value: Value, operand: Operand) -> bool:
    """Return whether a value looks like an operand."""
    region = value.region
    strides = operand.strides is None or _steps(operand.shape, operand.strides) == _steps(region.shape, region.strides)
    return region.shape == operand.shape and operand.dtype in {"", region.dtype} and strides


def _spread(operands: Sequence[Operand]) -> bool:
    """Return whether the second operand is broadcast over the first."""
    return operands[0].shape != operands[1].shape and len(operands[1].shape) > 1
