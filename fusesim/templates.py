"""What kind of kernel a group of ops is, or why it is none: loops, products with an epilogue, tiled attention.

Rules beyond `fusesim.spaces`:

- A matrix product or convolution takes pointwise ops of its output's shape behind it (bias, activation, residual), and
  no reduction: a row of the output lies in several tiles. Nothing in front of it: operands are read once per tile,
  and a prologue would run as often. A convolution also takes the batch norm of inference, folded into its weights.
- matmul, row softmax, matmul is one kernel by tiling when the scores are wanted nowhere else.
- Independent products of equal shapes stand side by side.
- A composite or library op (softmax, sort, attention, ...) is a kernel of its own; decomposed, it is a row kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from fusesim.spaces import Part, loops
from fusesim.tensor import disjoint
from fusesim.topology import bits, broadcast_runs

if TYPE_CHECKING:
    from fusesim.topology import Item, Topology

ANCHORS: Final = frozenset({"matmul", "conv"})
"""Roles that a kernel is built around."""

SOFTMAX_REDUCTIONS: Final = frozenset({"amax", "sum"})
"""Reductions that a tiled softmax can carry along: both can be corrected when a later tile is larger."""

LARGEST_HEAD: Final = 256
"""Values per head up to which published tiled kernels exist (FlashAttention-2 and -3)."""


class Shape(NamedTuple):
    """What kind of kernel a group is: its loop nests; `reason` says why it is none, empty where it is one.

    `template` is pointwise, row, matmul, conv, attention, or library for an op that only a library has.
    """

    template: str
    parts: tuple[Part, ...]
    reason: str = ""


def shape_of(topo: Topology, mask: int) -> Shape:
    """Return what kind of kernel a set of ops is; remembered beside the topology."""
    found = topo.memo.get(mask)
    if found is None:
        if len(topo.memo) > MOST_REMEMBERED:
            topo.memo.clear()
        found = topo.memo[mask] = _shape_of(topo, mask)
    return cast("Shape", found)


MOST_REMEMBERED: Final = 200_000
"""Groups remembered per graph: about 100 MB."""


def _shape_of(topo: Topology, mask: int) -> Shape:
    """Work out what kind of kernel a set of ops is."""
    items = [topo.items[place] for place in bits(mask)]
    built_around = mask & (topo.roles.get("matmul", 0) | topo.roles.get("conv", 0))
    anchors = [topo.items[place] for place in bits(built_around)]
    if len(items) == 1 and items[0].role not in {"point", "reduce"}:
        return Shape(items[0].role, (_part(mask, items[0]),))
    apart = mask & (topo.roles.get("library", 0) | topo.roles.get("attention", 0))
    lone = next((topo.items[place] for place in bits(apart) if _lone(topo.items[place], anchors)), None)
    if lone is not None:
        other = next((item for item in items if item is not lone), lone)
        return Shape("", (), f"{other.name} and {lone.name}: {lone.kind} is a kernel of its own")
    overwrites = _overwrites(topo, items) if len(items) > 1 else ""
    if overwrites:
        return Shape("", (), overwrites)
    if anchors:
        return _anchored(topo, mask, items, anchors)
    parts = loops(topo, mask)
    return Shape("", (), parts) if isinstance(parts, str) else Shape(parts[0].template, parts)


def _part(mask: int, item: Item, factors: dict[int, float] | None = None) -> Part:
    """Return the nest of a kernel that is built around one op."""
    return Part(mask, item.role, item.elements, item.elements, 1, (), {}, factors or {})


def _lone(item: Item, anchors: list[Item]) -> bool:
    """Return whether an op has a kernel of its own; a convolution takes in a batch norm."""
    if item.role not in {"library", "attention"}:
        return False
    return not (item.kind == "batch_norm" and len(anchors) == 1 and anchors[0].role == "conv")


def _overwrites(topo: Topology, items: list[Item]) -> str:
    """Return why an op may not write over what the group reads elsewhere, else nothing."""
    for item in items:
        if not item.over or not item.reads:
            continue
        target = topo.looks[item.reads[0].name]
        for other in items:
            for read in other.reads:
                look = topo.looks[read.name]
                if look.storage != target.storage or (other is item and look is target):
                    continue  # a value that a thread reads where it writes, also through a view
                if (read.moved or read.shape != target.shape) and not disjoint(look, target):
                    return f"{other.name} and {item.name}: {item.name} writes over {read.name} while it is still read"
    return ""


def _anchored(topo: Topology, mask: int, items: list[Item], anchors: list[Item]) -> Shape:
    """Return the kernel around matrix products or convolutions."""
    if len(anchors) == 1:
        return _epilogue(topo, mask, items, anchors[0])
    if len(anchors) == 2 and any(item.role == "reduce" for item in items):  # noqa: PLR2004 - scores, then values
        reason = _not_attention(topo, mask, items, anchors)
        return Shape("", (), reason) if reason else Shape("attention", (_part(mask, anchors[1]),))
    first, second = anchors[:2]
    if len(anchors) < len(items):
        return Shape("", (), f"{first.name} and {second.name}: two products in one kernel with other ops around them")
    for other in anchors[1:]:
        if topo.descendants[topo.index[first.name]] >> topo.index[other.name] & 1 or _sizes(first) != _sizes(other):
            return Shape("", (), f"{first.name} and {other.name}: products that depend on each other or differ in size")
    reach = topo.reach(mask, topo.descendants) & mask
    if reach:
        return Shape("", (), f"{first.name} and {topo.named(reach)[0]}: products that depend on each other")
    return Shape(first.role, (_part(mask, first)._replace(elements=sum(item.elements for item in anchors)),))


def _sizes(item: Item) -> tuple[object, ...]:
    """Return what must agree for products to stand side by side."""
    return item.kind, item.shape, item.width, tuple(read.shape for read in item.reads)


def _epilogue(topo: Topology, mask: int, items: list[Item], anchor: Item) -> Shape:
    """Return the kernel of a product and what comes behind it."""
    place = topo.index[anchor.name]
    factors: dict[int, float] = {}
    for item in items:
        if item is anchor:
            continue
        reason, factor = _behind(topo, mask, item, place)
        if reason:
            return Shape("", (), f"{anchor.name} and {item.name}: {reason}")
        if factor != 1:
            factors[topo.index[item.name]] = factor
    return Shape(anchor.role, (_part(mask, anchor, factors),))


def _behind(topo: Topology, mask: int, item: Item, anchor: int) -> tuple[str, float]:
    """Return why an op is no part of a product's epilogue, and how often it is computed per value."""
    made = topo.items[anchor]
    here = 1 << topo.index[item.name]
    folds = item.kind == "batch_norm"
    reason = ""
    if topo.ancestors[anchor] & here:
        reason = f"operands of a {made.kind} are read once per tile, and what makes them would run as often"
    elif item.role == "reduce":
        reason = f"a row of the {made.kind}'s output lies in several tiles, {item.kind} needs it whole"
    elif folds and item.reads[0].producer != anchor:
        reason = f"only the norm of its own {made.kind} folds"
    elif any(read.chosen and read.producer >= 0 and mask >> read.producer & 1 for read in item.reads):
        reason = "a table must be complete before parts of it are chosen"
    if reason or folds or item.elements == made.elements:
        return reason, 1
    if item.elements < made.elements and _needed(item, mask) and not topo.descendants[anchor] & here:
        return "", made.elements / max(item.elements, 1)
    return f"{item.shape} is not the shape of the {made.kind}'s output {made.shape}", 1


def _needed(item: Item, mask: int) -> bool:
    """Return whether ops of a set read what an op makes."""
    return any(write.readers & mask for write in item.writes)


def _not_attention(topo: Topology, mask: int, items: list[Item], anchors: list[Item]) -> str:
    """Return why two products with reductions between them are no tiled attention, empty where they are."""
    first, second = anchors
    one, two = topo.index[first.name], topo.index[second.name]
    pair = f"{first.name} and {second.name}"
    between = topo.descendants[one] & topo.ancestors[two]
    outside = mask & ~(between | 1 << one | 1 << two)
    if outside:
        return f"{topo.named(outside)[0]} and {second.name}: only what lies between two products is tiled with them"
    head = max(first.reads[0].shape[-1], second.shape[-1])
    taken = second.reads[0]
    reason = next(filter(None, (_untiled(item, anchors, mask) for item in items)), "")
    if not reason and (taken.producer < 0 or not between >> taken.producer & 1):
        reason = f"{pair}: the second product does not take the softmax as its first operand"
    elif not reason and (taken.elements != first.elements or taken.shape[-2:] != first.shape[-2:]):
        reason = f"{pair}: queries or keys of the scores {first.shape} and of what is multiplied {taken.shape} differ"
    elif not reason and head > LARGEST_HEAD:
        reason = f"{pair}: {head} values per head do not fit a tile; the largest is {LARGEST_HEAD}"
    return reason


def _untiled(item: Item, anchors: list[Item], mask: int) -> str:
    """Return why one op between two products cannot run tile by tile, else nothing."""
    first, second = anchors
    if item is not second and any(write.kept or write.readers & ~mask for write in item.writes):
        return f"{item.name} and {second.name}: {item.name} is wanted elsewhere, so the scores would be in memory"
    if item.role == "reduce" and not _along_keys(item, first):
        return f"{first.name} and {item.name}: a tiled softmax carries along amax and sum over the keys only"
    if item.role == "point" and not _fits_scores(item, first):
        return f"{first.name} and {item.name}: {item.shape} are neither the scores {first.shape} nor one per query"
    return ""


def _along_keys(item: Item, scores: Item) -> bool:
    """Return whether a reduction is one that a tiled softmax carries along."""
    keys = scores.shape[-1]
    rows = broadcast_runs((*scores.shape[:-1], 1), scores.shape)
    return item.kind in SOFTMAX_REDUCTIONS and item.elements == scores.elements and item.signature == rows and keys > 0


def _fits_scores(item: Item, scores: Item) -> bool:
    """Return whether a pointwise op works on the scores, or on a value per query."""
    return item.elements in {scores.elements, scores.elements // max(scores.shape[-1], 1)}
