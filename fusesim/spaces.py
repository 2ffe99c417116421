"""Which ops can share a loop: pointwise ops over one iteration space, and row reductions around them.

A `Part` is a loop nest: ops of one space. Rules, on shapes alone (`fusesim.templates` has those for matrix products):

- Pointwise ops share a loop when they make the same number of values, through reshapes too; operands broadcast. A
  smaller op joins when the loop needs its value in place (it is computed again per place), or when it takes a part of
  what the loop makes. An op of no values fits any loop.
- Reductions share a loop when they reduce the same runs of the same dimensions. Pointwise ops before them, on the
  whole space, and after them, on a value per row or on the whole space again, join; what comes after a reduction has a
  higher level, and a row that does not stay on chip is read again per level.
- A table must be complete before rows of it are chosen, unless pointwise ops of the kernel make just what is chosen;
  and behind a reduction no value may change its row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fusesim.topology import bits, broadcast_runs, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusesim.topology import Item, Read, Signature, Topology


class Part(NamedTuple):
    """Ops in one loop nest.

    `elements` is its iteration space, for rows `rows` x `length`. `levels` says after how many reductions, one behind
    the other, an op runs, for ops of the whole space; `factors` how many times an op is computed per value that it
    makes, where not once.
    """

    mask: int
    template: str
    elements: int
    rows: int
    length: int
    signature: Signature
    levels: Mapping[int, int]
    factors: Mapping[int, float]

    @property
    def passes(self) -> int:
        """How often a row that does not stay on chip is gone through."""
        return 1 + max(self.levels.values(), default=0)


def loops(topo: Topology, mask: int) -> tuple[Part, ...] | str:
    """Return the loop nests of a kernel of pointwise ops and reductions, or why they cannot share one.

    Ops that hang together, or that read the same tensor and go over the same space, share a nest; other nests stand
    side by side in one kernel when they are of one class or of as many values.
    """
    found: list[Part] = []
    components = _components(topo, mask)
    for component in components:
        part = _loop(topo, component)
        if isinstance(part, str):
            return part
        if len(components) > 1:
            part = _at_home(topo, found, part)
        found.append(part)
    first = found[0]
    odd = next((part for part in found if part.template != first.template and part.elements != first.elements), None)
    if odd is not None:
        one, other = (topo.items[next(bits(part.mask))] for part in (first, odd))
        return (
            f"{one.name} and {other.name}: independent, and neither one space nor one class of kernel "
            f"({first.elements} values {first.template}, {odd.elements} values {odd.template})"
        )
    return tuple(found)


def _at_home(topo: Topology, found: list[Part], part: Part) -> Part:
    """Take the nests of a part's space that read a tensor that it reads out of those found, and join it to them."""
    for other in list(found):
        alike = other.elements == part.elements and (other.signature == part.signature or not part.signature)
        if alike and _touched(topo, other.mask) & _touched(topo, part.mask):
            found.remove(other)
            part = _joined(other, part)
    return part


def _touched(topo: Topology, mask: int) -> set[int]:
    """Return the tensors that ops read."""
    return {base for place in bits(mask) for base, _ in topo.items[place].loads}


def _joined(one: Part, other: Part) -> Part:
    """Put two parts of one space into one nest."""
    rows = one if one.signature else other
    return rows._replace(
        mask=one.mask | other.mask,
        levels={**one.levels, **other.levels},
        factors={**one.factors, **other.factors},
    )


def _components(topo: Topology, mask: int) -> list[int]:
    """Return the parts of a set of ops that hang together, those with reductions first."""
    found: list[int] = []
    for place in bits(mask):
        near = topo.preds[place] & mask | 1 << place
        rest = []
        for component in found:
            if component & near:
                near |= component
            else:
                rest.append(component)
        found = [*rest, near]
    if len(found) == 1:
        return found
    return sorted(found, key=lambda part: (all(topo.items[place].role != "reduce" for place in bits(part)), part))


def _loop(topo: Topology, mask: int) -> Part | str:
    """Return the loop nest of ops that hang together."""
    items = topo.items
    first = None
    for place in bits(mask):
        item = items[place]
        if item.role == "reduce":
            if first is None:
                first = item
            elif item.signature != first.signature:
                return (
                    f"{first.name} and {item.name}: one reduces rows of {rows_of(first.signature)[1]}, the other of "
                    f"{rows_of(item.signature)[1]} values, or along other dimensions"
                )
    return _pointwise(topo, mask) if first is None else _rows(topo, mask, first)


def _inside(item: Item, mask: int) -> list[Read]:
    """Return the operands that ops of the same set make."""
    return [read for read in item.sources if mask >> read.producer & 1]


def _consumed(item: Item, mask: int) -> int:
    """Return the ops of a set that read what an op makes."""
    readers = 0
    for write in item.writes:
        readers |= write.readers
    return readers & mask


def _small_factor(topo: Topology, item: Item, mask: int, space: int) -> float | None:
    """Return how often a loop computes each value of a smaller op, None where the loop has no place for it."""
    readers = _consumed(item, mask)
    if not readers:
        return None
    if any(topo.items[place].kind in {"concat", "pad"} for place in bits(readers)):
        return 1.0
    return max(1.0, space / max(item.elements, 1))


def _table_inside(topo: Topology, item: Item, inside: list[Read], picked: Mapping[int, float]) -> str:
    """Return why a gather cannot share a kernel with what makes its table, else nothing."""
    for read in inside:
        if read.chosen and read.producer not in picked:
            maker = topo.items[read.producer].name
            return f"{maker} and {item.name}: {read.name} must be complete before parts of it are chosen"
    return ""


def _pointwise(topo: Topology, mask: int) -> Part | str:
    """Return the nest of pointwise ops, or why there is none."""
    items = topo.items
    factors = topo.picked(mask)
    places = [place for place in bits(mask) if place not in factors]
    largest = max(places, key=lambda place: items[place].elements)
    space = items[largest].elements
    cut = 0
    for place in places:
        item = items[place]
        inside = _inside(item, mask)
        reason = _table_inside(topo, item, inside, factors)
        if reason:
            return reason
        if item.elements in {space, 0}:
            continue
        if any(read.moved or cut >> read.producer & 1 for read in inside):
            cut |= 1 << place
            continue
        factor = _small_factor(topo, item, mask, space)
        if factor is None:
            return (
                f"{item.name} and {items[largest].name}: {item.elements} values {item.shape} and {space} values "
                f"{items[largest].shape} are two iteration spaces"
            )
        factors[place] = factor
    return Part(mask, "pointwise", space, space, 1, (), {}, _through_views(topo, mask, factors))


def _through_views(topo: Topology, mask: int, factors: dict[int, float]) -> dict[int, float]:
    """Count how often a value is computed that threads read at several places, through different views.

    A loop has no other thread's values, so each view that reorders or cuts computes what it shows anew.
    """
    if not mask & topo.moving:
        return factors
    seen: dict[int, dict[str, int]] = {}
    for place in bits(mask):
        for read in _inside(topo.items[place], mask):
            seen.setdefault(read.producer, {})[read.name if read.moved else ""] = read.elements
    for maker, views in seen.items():
        if set(views) - {""}:
            share = sum(views.values()) / max(topo.items[maker].elements, 1)
            factors[maker] = factors.get(maker, 1.0) * max(share, 1.0)
    return factors


def _rows(topo: Topology, mask: int, first: Item) -> Part | str:
    """Return the nest of a row kernel, or why there is none."""
    rows, length = rows_of(first.signature)
    levels: dict[int, int] = {}
    whole: dict[int, int] = {}
    picked = topo.picked(mask)
    factors = dict(picked)
    below = 0
    for place in bits(mask):
        item = topo.items[place]
        inside = _inside(item, mask)
        behind = [read for read in inside if below >> read.producer & 1]
        reason = _table_inside(topo, item, inside, picked) or _misplaced(topo, item, behind, first)
        if reason:
            return reason
        levels[place] = max((levels[r.producer] + (topo.items[r.producer].role == "reduce") for r in inside), default=0)
        if place in picked:
            continue
        if item.elements == rows * length:
            whole[place] = levels[place]
        elif not behind and item.elements not in {rows, 0}:
            factor = _small_factor(topo, item, mask, rows * length)
            if factor is None:
                return (
                    f"{item.name} and {first.name}: {item.elements} values {item.shape} are neither a value per row "
                    f"nor the whole of {rows} rows x {length}"
                )
            factors[place] = factor
        if behind or item.role == "reduce":
            below |= 1 << place
    return Part(mask, "row", rows * length, rows, length, first.signature, whole, factors)


def _misplaced(topo: Topology, item: Item, behind: list[Read], first: Item) -> str:
    """Return why an op behind a reduction cannot stay in its rows, else nothing."""
    if not behind:
        return ""
    rows, length = rows_of(first.signature)
    if item.elements not in {rows, rows * length}:
        maker = topo.items[behind[0].producer].name
        return f"{maker} and {item.name}: behind the reduction, {item.shape} is neither a value per row nor the rows"
    for read in behind:
        made = topo.items[read.producer]
        if read.moved:
            return f"{made.name} and {item.name}: {read.name} reorders or cuts the rows that the kernel still works on"
        per_row = made.role == "reduce" or made.elements == rows
        if not per_row or length == 1 or item.elements == rows:
            continue
        if broadcast_runs(read.shape, item.shape) != first.signature:
            return f"{made.name} and {item.name}: {read.shape} against {item.shape} repeats along other dimensions"
    return ""
