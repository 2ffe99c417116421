"""PyTorch's ATen ops as ops of a graph: one row or one rule for each, by name.

An op that only maps value by value is a row of a table; one that has operands in an order of its own, several results
or several kernels has a rule. What has neither is priced as one kernel that reads its inputs and writes its outputs,
and the graph says so. This file imports no framework.
"""

from __future__ import annotations

from typing import Any, Final

from fusesim.frontends import aten_backward, aten_gather, aten_rules
from fusesim.frontends.aten_call import RULES, Call, described, dims_of, pointwise
from fusesim.frontends.aten_tables import COPIES, FILLS, IOTAS, POINTWISE, RANDOM, REDUCTIONS, STAND_INS, VIEWS
from fusesim.tensor import Tensor

MOST_OPAQUE: Final = 60
"""Tensors that one opaque op reads; the rest go to further ones."""

__all__ = ["aten_backward", "aten_gather", "aten_rules", "known", "opaque", "translate"]


def known(name: str, tags: frozenset[str] = frozenset()) -> bool:
    """Return whether an op has a row or a rule."""
    tables = (RULES, POINTWISE, REDUCTIONS, COPIES, FILLS, IOTAS, RANDOM, VIEWS)
    return any(name in table for table in tables) or "pointwise" in tags


def translate(call: Call) -> None:
    """Add the ops of one call to its program."""
    name = call.name
    if name in RULES:
        RULES[name](call)
    elif name in POINTWISE:
        pointwise(call, POINTWISE[name])
    elif name in REDUCTIONS:
        _reduction(call)
    elif name in COPIES:
        call.emit("copy", call.given("self", "input")[:1], like=described(call) if name in STAND_INS else None)
    elif name in FILLS:
        _fill(call)
    elif name in IOTAS:
        call.emit("iota", [])
    elif name in RANDOM:
        call.emit("rand", [])
    elif "pointwise" in call.tags and len(call.tensors) <= 9:  # noqa: PLR2004 - see `fusesim.kinds`
        call.program.gap(f"aten.{name} has no row of its own: priced as an element-wise op of average cost")
        call.emit("elementwise", call.tensors, op=name)
    else:
        opaque(call)


def opaque(call: Call) -> None:
    """Add an op that nobody described, and say so."""
    call.program.gap(
        f"aten.{call.name} has no rule: priced as one kernel that reads its inputs and writes its outputs once; "
        "its own arithmetic and further kernels are missing. Add a rule in fusesim/frontends/aten_rules.py"
    )
    made = [region for region in call.outs if region is not None]
    read = call.tensors
    for start in range(0, max(len(made), 1), MOST_OPAQUE):
        part = made[start : start + MOST_OPAQUE]
        if part:
            inputs = read[:MOST_OPAQUE] if len(made) <= MOST_OPAQUE else read[start : start + MOST_OPAQUE]
            call.program.node("opaque", inputs, part, op=call.name)


def _fill(call: Call) -> None:
    """Add one value everywhere; a tensor of no dimensions as that value is read."""
    value = next((call[name] for name in ("fill_value", "value", "s") if call[name] is not None), None)
    if isinstance(value, Tensor):
        call.emit("copy_into", [*call.given("self"), value])
        return
    call.emit("fill", [], scalar=value if value is not None else float("one" in call.name))


def _reduction(call: Call) -> None:
    """Add a reduction, whole or over some dimensions."""
    kind = REDUCTIONS[call.name]
    x = call["self"]
    if call.name in {"max", "min"}:
        if isinstance(call["other"], Tensor):
            call.emit("maximum" if call.name == "max" else "minimum", call.given("self", "other"))
            return
        kind = call.name if call["dim"] is not None else f"a{call.name}"
    outs = [place for place, region in enumerate(call.outs) if region is not None]
    attrs: dict[str, Any] = {"dims": dims_of(x, call["dim"]), "keepdim": call["keepdim"] or None}
    if kind in {"var", "var_mean"}:
        given = call["correction"]
        attrs["correction"] = int(call["unbiased"] in {None, True}) if given is None else given
    if call.name in OTHER_REDUCTIONS or (kind == "norm" and 2 not in {call["p"], call["ord"]}):  # noqa: PLR2004 - root of squares
        attrs["like"] = described(call)
    call.emit(kind, [x], outs, **attrs)


OTHER_REDUCTIONS: Final = frozenset({"std", "std_mean", "count_nonzero"})
"""Reductions for which a kind only stands."""
