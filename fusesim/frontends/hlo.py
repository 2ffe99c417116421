"""XLA's HLO dumps as graphs and as the plan that XLA chose: `from_hlo`, `plan_from_hlo`. Needs no XLA.

The entry computation is walked with everything that it calls written out in place. Each of its instructions that runs
is one kernel, or one library call: that is XLA's plan.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from fusesim.errors import FusesimError, GraphError, InputError, excerpt
from fusesim.frontends import hlo_layout, hlo_ops, hlo_products  # noqa: F401 - they register rules
from fusesim.frontends.hlo_text import Module, parse_hlo
from fusesim.frontends.hlo_walk import Walk
from fusesim.fusion import FusionPlan, Group
from fusesim.textfile import read_bytes

if TYPE_CHECKING:
    from fusesim.graph import Graph

LARGEST: Final = 1 << 29
"""Largest module that is read. [B]"""

STRATEGY: Final = "xla (as compiled)"
"""The name of the plan that a module holds."""


def from_hlo(text: str | bytes | Path) -> Graph:
    """Return the graph of the program in an HLO module.

    Parameters
    ----------
    text : str, bytes or pathlib.Path
        HLO text, as XLA dumps it with ``XLA_FLAGS=--xla_dump_to=DIR``: optimised (``*after_optimizations.txt``) or not.
        A path is read.

    Returns
    -------
    Graph
        One op per instruction, fused computations and calls written out; broadcasts, transposes and slices are views,
        but copies where a compiled module runs them on their own. Strides are those of XLA's layouts. Parameters are
        inputs. `gaps` names what has no rule, what loops, and what communicates.

    Raises
    ------
    InputError
        If it is no HLO text.
    GraphError
        If the module does not fit together.

    Notes
    -----
    Bodies of `while` are written out as often as they run where the module says how often and that is not very often,
    else once; both branches of `conditional` are left out; the graph says so. Fails first where a custom call stands
    for much: one without a rule is priced as one kernel that reads its operands and writes its results.

    Examples
    --------
    >>> from_hlo('''HloModule add
    ... ENTRY main {
    ...   x = f32[8]{0} parameter(0)
    ...   ROOT y = f32[8]{0} add(x, x)
    ... }''')
    <Graph add: 1 ops, 1 inputs, 1 outputs>
    """
    return _walked(text).builder.graph()


def plan_from_hlo(text: str | bytes | Path) -> FusionPlan:
    """Return what XLA decided to run as one kernel, as a plan of the module's graph.

    Parameters
    ----------
    text : str, bytes or pathlib.Path
        As in `from_hlo`; optimised, or every instruction is a kernel of its own.

    Returns
    -------
    FusionPlan
        A group per instruction of the entry computation that runs, in its order: fusions, library calls with their
        epilogues, and instructions left on their own.

    Raises
    ------
    InputError, GraphError
        As in `from_hlo`.

    Examples
    --------
    >>> plan_from_hlo('''HloModule add
    ... ENTRY main {
    ...   x = f32[8]{0} parameter(0)
    ...   ROOT y = f32[8]{0} add(x, x)
    ... }''')
    <FusionPlan xla (as compiled) of add: 1 groups>
    """
    walk = _walked(text)
    graph = walk.builder.graph()
    groups = tuple(Group(nodes=names) for names in walk.groups)
    return FusionPlan(graph=graph, groups=groups, strategy=STRATEGY, source=graph, notes=graph.gaps)


def _walked(text: str | bytes | Path) -> Walk:
    """Return a module walked from its entry to its root."""
    module = _parsed(text)
    walk = Walk(module)
    try:
        walk.run()
    except FusesimError as error:
        raise GraphError(f"{excerpt(module.name)}: {error}") from error
    except (KeyError, TypeError, IndexError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise GraphError(
            f"{excerpt(module.name)}: {walk.where}: its operands do not fit it ({excerpt(error)})"
        ) from error
    except RecursionError as error:
        raise GraphError(f"{excerpt(module.name)}: computations call each other without end") from error
    return walk


def _parsed(text: str | bytes | Path) -> Module:
    """Return the module in a text or a file."""
    if isinstance(text, Path):
        content = read_bytes(text, "an HLO module", limit=LARGEST, fault=InputError)
        try:
            return _parsed(content)
        except FusesimError as error:
            raise type(error)(f"{excerpt(text.name)}: {error}") from error
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    if not isinstance(text, str):
        raise InputError(f"from_hlo takes the text of a module or a pathlib.Path, not {type(text).__name__}")
    return parse_hlo(text)
