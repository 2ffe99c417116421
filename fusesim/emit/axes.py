"""Which loops a kernel has, and how far each tensor moves per step of each: from shapes, views and strides.

Every dimension of every tensor is a run of atoms. Two dimensions that a pointwise op lines up consist of the same
atoms; a reshape splits atoms until both sides agree; a dimension of one value has none, so broadcasting is a stride
of 0. The atoms of the largest tensor are the loops; neighbours that every tensor steps through as one are merged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fusesim.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fusesim.graph import Graph, Node
    from fusesim.tensor import Tensor


class _Unlike(Exception):  # noqa: N818 - never leaves this file
    """Two runs of atoms that no splitting makes equal."""


class Atoms:
    """Atoms by number: the size of each, what it was found equal to, and what it was split into."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.same: dict[int, int] = {}
        self.parts: dict[int, tuple[int, int]] = {}

    def new(self, size: int) -> int:
        """Make an atom."""
        self.sizes.append(size)
        return len(self.sizes) - 1

    def leaves(self, run: Sequence[int]) -> list[int]:
        """Return a run of atoms as what they were split into."""
        found: list[int] = []
        for atom in run:
            while atom in self.same:
                atom = self.same[atom]  # noqa: PLW2901 - the one that stands for it
            found.extend(self.leaves(self.parts[atom]) if atom in self.parts else [atom])
        return found

    def unify(self, one: Sequence[int], other: Sequence[int]) -> None:
        """Make two runs of as many values equal, from the innermost atom outwards."""
        left, right = self.leaves(one), self.leaves(other)
        while left and right:
            a, b = left.pop(), right.pop()
            if a == b:
                continue
            small, large = (a, b) if self.sizes[a] <= self.sizes[b] else (b, a)
            if self.sizes[small] == self.sizes[large]:
                self.same[a] = b
            elif self.sizes[large] % max(self.sizes[small], 1):
                raise _Unlike
            else:
                rest = self.new(self.sizes[large] // self.sizes[small])
                self.parts[large] = (rest, small)
                (left if large == a else right).append(rest)
            left, right = self.leaves(left), self.leaves(right)
        if left or right:
            raise _Unlike


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop of a kernel: what its index is called, how many steps it has, and whether a reduction runs over it."""

    name: str
    size: int
    reduced: bool = False


class Loops(NamedTuple):
    """The loops of a kernel, outermost first, and per tensor its stride in each. [elements].

    `spans` says for each tensor in which loops it has dimensions of its own.
    """

    axes: tuple[Axis, ...]
    strides: Mapping[str, tuple[int, ...]]
    spans: Mapping[str, tuple[bool, ...]]


def loops_of(part: Graph) -> Loops:
    """Return the loops of the kernel that computes a graph of pointwise ops and reductions.

    Raises
    ------
    PlanError
        If its ops do not go over one space of values, each at its own place.
    """
    atoms = Atoms()
    runs: dict[str, list[list[int]]] = {}
    for name, tensor in part.tensors.items():
        runs[name] = [[] if size == 1 else [atoms.new(size)] for size in tensor.shape]
    for node in part.nodes:
        try:
            _line_up(atoms, runs, node, part)
        except _Unlike:
            raise PlanError(_apart(node)) from None
    _join(atoms, runs, part)
    placed = {name: [atoms.leaves(run) for run in own] for name, own in runs.items()}
    for name, own in placed.items():
        flat = [atom for run in own for atom in run]
        if len(set(flat)) != len(flat):
            raise PlanError(f"{part.name}: {name} is read across its own places; emit its group apart from its readers")
    return _loops(atoms, placed, part)


def _apart(node: Node) -> str:
    """Say that an op does not fit the loops of the others."""
    return (
        f"op {node.name} ({node.kind}) moves values between places, which one loop cannot follow; plan it in a group "
        "of its own (--strategy eager)"
    )


def _line_up(atoms: Atoms, runs: dict[str, list[list[int]]], node: Node, part: Graph) -> None:
    """Make the dimensions that an op lines up consist of the same atoms."""
    if node.family == "view":
        _look(atoms, runs, node, part)
        return
    shape = part.tensors[node.inputs[0] if node.family == "reduction" else node.outputs[0]].shape
    if node.family == "reduction":
        gone = node.attr("dims", tuple(range(len(shape))))
        kept = [dim for dim in range(len(shape)) if dim not in gone]
        source = runs[node.inputs[0]]
        for name in node.outputs:
            target = [run for run in runs[name] if run]
            atoms.unify([a for run in target for a in run], [a for dim in kept for a in source[dim]])
        return
    for name in (*node.inputs, *node.outputs[1:]):
        own = runs[name]
        for run, into in zip(reversed(own), reversed(runs[node.outputs[0]]), strict=False):
            if run:
                atoms.unify(run, into)


def _look(atoms: Atoms, runs: dict[str, list[list[int]]], node: Node, part: Graph) -> None:
    """Line up a view with what it looks at."""
    source, target = runs[node.inputs[0]], runs[node.outputs[0]]
    if node.kind == "view":
        atoms.unify([a for run in source for a in run], [a for run in target for a in run])
    elif node.kind == "permute":
        for dim, run in zip(node.attr("order"), target, strict=True):
            atoms.unify(source[dim], run)
    elif node.kind == "expand":
        for run, into in zip(reversed(source), reversed(target), strict=False):
            if run:
                atoms.unify(run, into)
    elif part.tensors[node.inputs[0]].shape == part.tensors[node.outputs[0]].shape and node.kind == "slice":
        for run, into in zip(source, target, strict=True):
            atoms.unify(run, into)
    else:
        raise _Unlike


def _join(atoms: Atoms, runs: dict[str, list[list[int]]], part: Graph) -> None:
    """Let siblings that share no tensor run over the same loops: reductions by rows and columns, the rest in order."""
    reductions = [node for node in part.nodes if node.family == "reduction"]
    first = reductions[0] if reductions else None
    whole = max(part.nodes, key=lambda node: _space(part, node).elements)
    anchor = _space(part, first or whole)
    flat = [atom for run in runs[anchor.name] for atom in run]
    for node in reductions[1:]:
        mine, first_ones = _directions(runs, node, part), _directions(runs, reductions[0], part)
        leaves = [set(atoms.leaves(run)) for run in (*mine, *first_ones)]
        if (leaves[0] | leaves[1]) & (leaves[2] | leaves[3]) and leaves[:2] != leaves[2:]:
            raise PlanError(_crossed(reductions[0], node))
        for run, into in zip(mine, first_ones, strict=True):
            _together(atoms, run, into, node)
    for node in part.nodes:
        space = _space(part, node)
        here = [atom for run in runs[space.name] for atom in run]
        known = set(atoms.leaves(flat))
        if not known & set(atoms.leaves(here)) and space.elements == anchor.elements:
            _together(atoms, here, flat, node)


def _directions(runs: Mapping[str, list[list[int]]], node: Node, part: Graph) -> tuple[list[int], list[int]]:
    """Return the atoms that a reduction keeps, and those that it runs over."""
    gone = node.attr("dims", tuple(range(len(_space(part, node).shape))))
    source = runs[node.inputs[0]]
    kept = [atom for dim, run in enumerate(source) if dim not in gone for atom in run]
    return kept, [atom for dim in gone for atom in source[dim]]


def _crossed(one: Node, other: Node) -> str:
    """Say that two reductions have different rows."""
    return f"op {one.name} and op {other.name} reduce along different dimensions; plan them in groups of their own"


def _together(atoms: Atoms, one: Sequence[int], other: Sequence[int], node: Node) -> None:
    """Let two runs be the same loops."""
    try:
        atoms.unify(one, other)
    except _Unlike:
        raise PlanError(_apart(node)) from None


def _space(part: Graph, node: Node) -> Tensor:
    """Return the tensor whose values an op goes over."""
    return part.tensors[node.inputs[0] if node.family == "reduction" else node.outputs[0]]


def _loops(atoms: Atoms, placed: dict[str, list[list[int]]], part: Graph) -> Loops:
    """Order the atoms, and merge neighbours."""
    reductions = [node for node in part.nodes if node.family == "reduction"]
    anchor = _space(part, reductions[0] if reductions else max(part.nodes, key=lambda n: _space(part, n).elements))
    order = [atom for run in placed[anchor.name] for atom in run]
    strides = {name: _per_atom(atoms, placed[name], part.tensors[name]) for name in (*part.inputs, *part.outputs)}
    reduced = _reduced(placed, reductions)
    used = {atom for own in placed.values() for run in own for atom in run}
    if used - set(order):
        raise PlanError(_outside(part, placed, set(order)))
    lead = strides[max(part.outputs, key=lambda name: part.tensors[name].elements)]
    order.sort(key=lambda atom: (atom in reduced, -(lead.get(atom, 0) if not reductions else 0)))
    if reductions:  # within a row, the order in which the largest input lies in memory
        lead = strides[max(part.inputs, key=lambda name: part.tensors[name].elements)] if part.inputs else {}
        order.sort(key=lambda atom: (atom in reduced, -lead.get(atom, 0) if not _places(reductions) else 0))
    groups = _merged(atoms, order, reduced, strides)
    axes = tuple(
        Axis(name, math.prod(atoms.sizes[atom] for atom in group), group[0] in reduced)
        for name, group in zip(_named(groups, reduced), groups, strict=True)
    )
    spans = {name: tuple(any(group[-1] in run for run in own) for group in groups) for name, own in placed.items()}
    steps = {name: tuple(own.get(group[-1], 0) for group in groups) for name, own in strides.items()}
    return Loops(axes, steps, spans)


def _places(reductions: Sequence[Node]) -> bool:
    """Return whether a reduction says where in the row its value stands, so that the row's order counts."""
    return any(node.kind in {"argmax", "argmin", "max", "min"} for node in reductions)


def _outside(part: Graph, placed: Mapping[str, list[list[int]]], known: set[int]) -> str:
    """Say which op goes over another space."""
    for node in part.nodes:
        if any(atom not in known for run in placed[_space(part, node).name] for atom in run):
            other = max(part.nodes, key=lambda n: _space(part, n).elements)
            return (
                f"op {node.name} ({node.kind}) and op {other.name} ({other.kind}) go over different values, and one "
                "kernel of both is not emitted; plan them in groups of their own"
            )
    return f"{part.name}: its tensors go over different values; plan its ops in groups of their own"


def _per_atom(atoms: Atoms, placed: Sequence[Sequence[int]], tensor: Tensor) -> dict[int, int]:
    """Return the stride of each atom of a tensor. [elements]."""
    found: dict[int, int] = {}
    for run, stride in zip(placed, tensor.strides, strict=True):
        step = stride
        for atom in reversed(run):
            found[atom] = step
            step *= atoms.sizes[atom]
    return found


def _reduced(placed: Mapping[str, list[list[int]]], reductions: Sequence[Node]) -> set[int]:
    """Return the atoms that reductions run over, the same for all of them."""
    found: set[int] = set()
    for node in reductions:
        runs = placed[node.inputs[0]]
        gone = node.attr("dims", tuple(range(len(runs))))
        own = {atom for dim in gone for atom in runs[dim]}
        if node is not reductions[0] and own != found:
            raise PlanError(_crossed(reductions[0], node))
        found = own
    return found


def _merged(
    atoms: Atoms, order: Sequence[int], reduced: set[int], strides: Mapping[str, Mapping[int, int]]
) -> list[list[int]]:
    """Put neighbours together that every tensor steps through as through one."""
    groups: list[list[int]] = []
    for atom in order:
        if groups:
            last = groups[-1][-1]
            flat = all(own.get(last, 0) == own.get(atom, 0) * atoms.sizes[atom] for own in strides.values())
            if flat and (last in reduced) == (atom in reduced):
                groups[-1].append(atom)
                continue
        groups.append([atom])
    return groups


def _named(groups: Sequence[Sequence[int]], reduced: set[int]) -> list[str]:
    """Name loops as a reader would: i for one, row and column for two, numbered where there are more."""
    inner = [group[0] in reduced for group in groups]
    if not any(inner):
        return {1: ["i"], 2: ["row", "column"]}.get(len(groups), [f"i{place}" for place in range(len(groups))])
    names: list[str] = []
    for flag, stem in ((False, "row"), (True, "column")):
        count = inner.count(flag)
        names += [stem] if count == 1 else [f"{stem}{place}" for place in range(count)]
    return names
