"""``fusesim patterns``: the named graphs, or one of them op by op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fusesim import patterns, plan_report, units
from fusesim.cli import shared
from fusesim.cli.emit import read_arguments
from fusesim.errors import InputError

if TYPE_CHECKING:
    from fusesim.graph import Graph


@click.command(name="patterns")
@click.argument("name", required=False)
@click.argument("arguments", metavar="[NAME=VALUE ...]", nargs=-1)
@shared.json_option
def patterns_command(*, name: str | None, arguments: tuple[str, ...], as_json: bool) -> None:
    """List the named graphs with their arguments, or show one of them: ops, tensors, bytes, FLOP.

    \b
    fusesim patterns
    fusesim patterns rmsnorm tokens=4096
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    if name is None:
        _listed(as_json=as_json)
        return
    if "=" in name:
        raise InputError(f'"{name}" is no pattern; name one first, for example rmsnorm {name}')
    graph = patterns.find(name)(**read_arguments(name, arguments))
    if as_json:
        shared.print_json(graph_record(graph) | {"summary": patterns.summary(name)})
        return
    out = shared.console()
    flops = units.format_quantity(graph.total_flops, units.FLOPS)
    size = units.format_quantity(graph.input_bytes, units.SIZE)
    heading = f"{graph.name}: {len(graph.paid_nodes)} ops, inputs of {size}, {flops}"
    out.print(heading, style="bold", soft_wrap=True)
    out.print(patterns.summary(name).removeprefix("Return "), soft_wrap=True)
    out.print(f"arguments: {plan_report.written(patterns.parameters(name))}", soft_wrap=True)
    shared.print_table(out, plan_report.op_table(graph))


def _listed(*, as_json: bool) -> None:
    """Print every pattern."""
    rows = [(name, patterns.parameters(name), patterns.summary(name)) for name in patterns.PATTERNS]
    if as_json:
        keys = ("name", "arguments", "summary")
        shared.print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    shared.print_table(shared.console(), plan_report.pattern_list(rows))


def graph_record(graph: Graph) -> dict[str, Any]:
    """Return a graph ready for JSON. [B, FLOP]."""
    return {
        "graph": graph.name,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "flops": graph.total_flops,
        "input_bytes": graph.input_bytes,
        "tensors": {
            name: {"dtype": tensor.dtype, "shape": list(tensor.shape), "bytes": tensor.bytes}
            for name, tensor in graph.tensors.items()
        },
        "ops": [
            {
                "name": node.name,
                "kind": node.kind,
                "inputs": list(node.inputs),
                "outputs": list(node.outputs),
                "flops": graph.flops(node),
            }
            for node in graph.nodes
        ],
    }
