"""How often a `while` of HLO runs: as XLA noted it, else from a counter that is compared with a constant."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fusesim.frontends.hlo_text import Computation, Instruction, Module


def turns_of(module: Module, loop: Instruction, start: Any) -> int | None:
    """Return how often the body of a loop runs, None where the module does not say.

    Parameters
    ----------
    module : Module
        The module, for the loop's condition and body.
    loop : Instruction
        The `while`.
    start : tuple
        What goes in first; a counter among it is a `Number`.

    Notes
    -----
    XLA writes `known_trip_count` where it worked the number out. Else a condition `counter < last`, or `<=`, and a body
    that adds a constant to the same member of the tuple say it.
    """
    known = re.search(r"known_trip_count\D+(\d+)", loop.attrs.get("backend_config", ""))
    if known is not None:
        return int(known[1])
    condition, body = (_computation(module, loop, name) for name in ("condition", "body"))
    if condition is None or body is None:
        return None
    test = _found(condition, condition.root)
    if test is None or test.opcode != "compare" or test.attrs.get("direction") not in {"LT", "LE"}:
        return None
    place, last = _member(condition, test.operands[0]), _constant(condition, test.operands[1])
    step = None if place is None else _step(body, place)
    first = getattr(start[place], "value", None) if isinstance(start, tuple) and place is not None else None
    if last is None or step is None or not isinstance(first, float) or step <= 0:
        return None
    return max(math.ceil((last - first + (test.attrs["direction"] == "LE")) / step), 0)


def _computation(module: Module, loop: Instruction, attribute: str) -> Computation | None:
    """Return a computation that a loop names."""
    return module.computations.get(loop.attrs.get(attribute, "").strip("{} ").lstrip("%"))


def _found(computation: Computation, name: str) -> Instruction | None:
    """Return an instruction by name."""
    return next((one for one in computation.instructions if one.name == name), None)


def _member(computation: Computation, name: str) -> int | None:
    """Return which member of the loop's tuple a value is."""
    one = _found(computation, name)
    return one.sizes("index")[0] if one is not None and one.opcode == "get-tuple-element" else None


def _constant(computation: Computation, name: str) -> float | None:
    """Return the number that a value is."""
    one = _found(computation, name)
    if one is None or one.opcode != "constant" or not re.fullmatch(r"-?\d+", one.literal.strip()):
        return None
    return float(one.literal)


def _step(body: Computation, place: int) -> float | None:
    """Return what a body adds to a member of its tuple."""
    root = _found(body, body.root)
    made = None if root is None or root.opcode != "tuple" else _found(body, root.operands[place])
    if made is None or made.opcode != "add" or place not in [_member(body, name) for name in made.operands]:
        return None
    return next((step for name in made.operands if (step := _constant(body, name)) is not None), None)
