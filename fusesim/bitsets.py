"""Sets of places as integers with a bit for each, and which places lead to which: quick to unite and to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def bits(mask: int) -> Iterator[int]:
    """Yield the places of the bits of a set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def successors_of(before: Sequence[int]) -> list[int]:
    """Turn predecessors into successors."""
    after = [0] * len(before)
    for place, mask in enumerate(before):
        for earlier in bits(mask):
            after[earlier] |= 1 << place
    return after


def closure(near: Sequence[int], order: Iterable[int]) -> list[int]:
    """Return everything that each op can reach, given an order in which what it reaches comes first."""
    found = [0] * len(near)
    for place in order:
        mask = near[place]
        for other in bits(near[place]):
            mask |= found[other]
        found[place] = mask
    return found
