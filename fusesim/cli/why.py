"""``fusesim why``: what fusing two ops of a pattern would buy, and what stops it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import click

from fusesim import patterns, units
from fusesim.cli import shared
from fusesim.cli.emit import read_arguments
from fusesim.planning import cost_of, plan
from fusesim.why import why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.graph import Graph
    from fusesim.hardware import HardwareProfile
    from fusesim.why import Why

COMPILERS: Final = ("vertical", "inductor", "xla", "tvm", "mlir")
"""Strategies that are asked whether they fuse."""

UNSEEN: Final = 1e-3
"""Share of a time below which its three digits do not show that it changed."""


@click.command(name="why")
@click.argument("pattern")
@click.argument("op_a", metavar="OPA")
@click.argument("op_b", metavar="OPB")
@click.argument("arguments", metavar="[NAME=VALUE ...]", nargs=-1)
@click.option("--device", default="h200-sxm", show_default=True, help="Device, see `fusesim devices`.")
@click.option("--device-file", metavar="PATH", help="A device file of your own instead.")
@click.option("--model", default="calibrated", show_default=True, help="textbook or calibrated.")
@shared.json_option
def why_command(
    *,
    pattern: str,
    op_a: str,
    op_b: str,
    arguments: tuple[str, ...],
    device: str,
    device_file: str | None,
    model: str,
    as_json: bool,
) -> None:
    """Say what fusing two ops of a pattern would buy, and what stops it; `fusesim patterns PATTERN` lists the ops.

    \b
    fusesim why bias_relu add relu rows=128 cols=512
    fusesim why attention matmul softmax composite=false
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    graph = patterns.find(pattern)(**read_arguments(pattern, arguments))
    profile = shared.chosen_device(device, device_file)
    who = who_fuses(graph, op_a, op_b, profile)
    found = why(graph, op_a, op_b, cost_of(profile, model=shared.model(model)), device=profile)
    if as_json:
        record = asdict(found) | {"saving": found.saving, "loses": found.loses}
        shared.print_json({"graph": graph.name, "device": profile.id, "model": model, "fused_by": who} | record)
        return
    out = shared.console()
    first, *rest = [*why_sentences(found), fused_by(who)]
    out.print(first, style="bold", soft_wrap=True)
    for sentence in rest:
        out.print(f"- {sentence}", soft_wrap=True)


def who_fuses(graph: Graph, op_a: str, op_b: str, profile: HardwareProfile) -> dict[str, bool]:
    """Return which strategies put two ops into one kernel."""
    found = {}
    for strategy in COMPILERS:
        groups = plan(graph, strategy, profile).groups
        found[strategy] = any(all(_holds(group.nodes, op) for op in (op_a, op_b)) for group in groups)
    return found


def _holds(names: Sequence[str], op: str) -> bool:
    """Return whether a kernel computes an op, or a part of it."""
    return any(name.partition("@")[0] == op or name.startswith(f"{op}.") for name in names)


def fused_by(who: dict[str, bool]) -> str:
    """Say which strategies fuse."""
    sides = {True: "one kernel", False: "kernels of their own"}
    parts = [
        f"{sides[side]} under {', '.join(names)}" for side in sides if (names := [s for s in who if who[s] is side])
    ]
    return "; ".join(parts)


def why_sentences(found: Why) -> list[str]:
    """Say what was found, the verdict first."""
    edge, saved = (units.format_quantity(size, units.SIZE) for size in (found.edge_bytes, found.saved_bytes))
    apart = units.format_quantity(found.apart, units.TIME)
    passed = [f"{edge} go from the one to the other" if found.edge_bytes else "no tensor goes from one to the other"]
    between = [f"between them stand {', '.join(found.along)}, which must come too"] if found.along else []
    if found.saving is None or found.together is None:
        return [f"cannot share a kernel: {found.reason}", *passed, *between, f"apart they take {apart}"]
    together = units.format_quantity(found.together, units.TIME)
    amount = units.format_quantity(abs(found.saving), units.TIME)
    verb = "loses" if found.loses else "saves"
    small = abs(found.saving) < UNSEEN * found.apart
    verdict = f"fusing {verb} {'next to nothing' if small else amount}: {apart} apart, {together} together"
    fewer = f"one kernel moves {saved} less" if found.saved_bytes else "one kernel moves as many bytes"
    return [verdict, *passed, fewer, *between, *found.losses]
