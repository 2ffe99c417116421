"""A partition of numbered things into groups, some of which wait for others: merging without making circles.

Merging two groups closes a circle exactly when a way leads from one to the other through a third. Each group keeps
the things that its own lead to and those that lead to it; a merge unites two of these and tells the groups that led
to one of the two only, so a check looks at direct neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim.bitsets import bits, closure, successors_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class Partition:
    """Groups by number; merging makes a new number.

    Parameters
    ----------
    preds : sequence of int
        For each thing the set of those that it waits for, which stand before it.
    """

    def __init__(self, preds: Sequence[int]) -> None:
        succs = successors_of(preds)
        places = range(len(preds))
        self._start(preds, succs, closure(preds, places), closure(succs, reversed(places)))

    def _start(
        self, preds: Sequence[int], succs: Sequence[int], ancestors: Sequence[int], descendants: Sequence[int]
    ) -> None:
        """Begin with a group for each thing."""
        self.owner = list(range(len(preds)))
        self.masks = {place: 1 << place for place in self.owner}
        self.after = dict(enumerate(succs))
        self.before = dict(enumerate(preds))
        self.reach = dict(enumerate(descendants))
        self.back = dict(enumerate(ancestors))
        self._next = len(preds)

    def unite(self, mask: int) -> int:
        """Merge all groups that a set touches."""
        first, *rest = self._owners(mask)
        for other in rest:
            first = self.merge(first, other)
        return first

    def _owners(self, mask: int) -> dict[int, None]:
        """Return the groups of a set, each once."""
        return dict.fromkeys(self.owner[place] for place in bits(mask))

    def successors(self, group: int) -> dict[int, None]:
        """Return the groups that wait for one directly."""
        return self._owners(self.after[group])

    def predecessors(self, group: int) -> dict[int, None]:
        """Return the groups that one waits for directly."""
        return self._owners(self.before[group])

    def leads(self, group: int, other: int) -> bool:
        """Return whether a way leads from one group to another."""
        return bool(self.reach[group] & self.masks[other])

    def blocked(self, one: int, other: int) -> bool:
        """Return whether a way between two groups passes through a third."""
        return self._around(one, other) or self._around(other, one)

    def _around(self, start: int, end: int) -> bool:
        """Return whether a way from one group to another passes through a third."""
        target = self.masks[end]
        if not self.reach[start] & target:
            return False
        return any(third != end and self.reach[third] & target for third in self.successors(start))

    def merge(self, one: int, other: int) -> int:
        """Put two groups into one and return its number."""
        mask = self.masks.pop(one) | self.masks.pop(other)
        made, self._next = self._next, self._next + 1
        for near in (self.after, self.before):
            near[made] = (near.pop(one) | near.pop(other)) & ~mask
        for place in bits(mask):
            self.owner[place] = made
        ahead = self.reach.pop(one), self.reach.pop(other)
        behind = self.back.pop(one), self.back.pop(other)
        lead, trail = (ahead[0] | ahead[1]) & ~mask, (behind[0] | behind[1]) & ~mask
        for group in self._owners((behind[0] ^ behind[1]) & ~mask):
            self.reach[group] |= lead | mask
        for group in self._owners((ahead[0] ^ ahead[1]) & ~mask):
            self.back[group] |= trail | mask
        self.masks[made], self.reach[made], self.back[made] = mask, lead, trail
        return made

    def groups(self) -> list[int]:
        """Return the groups as sets."""
        return list(self.masks.values())
