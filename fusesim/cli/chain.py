"""``fusesim chain``: one chain, unfused and fused."""

from __future__ import annotations

from typing import Any

import click

from fusesim import chains, report, units
from fusesim.cli import shared
from fusesim.inputs import MAX_BANDWIDTH, MAX_REPEATS, MAX_TIME, MIN_BANDWIDTH
from fusesim.ops import find_ops


@click.command()
@click.option("--ops", default="5", show_default=True, help="Number of ops, or names: add,mul,relu,...")
@click.option("--elements", default="8192x4096", show_default=True, help="Elements: 33554432, 2^25 or 8192x4096.")
@click.option("--dtype", default="bf16", show_default=True, help="fp64 fp32 tf32 bf16 fp16 fp8 int8.")
@shared.device_options
@click.option("--model", default="textbook", show_default=True, help="textbook or calibrated.")
@click.option("--launch", default="stream", show_default=True, help="stream, graph, or latency (one chain from idle).")
@click.option("--path", default="cuda", show_default=True, help="Whose kernels; ignored by the textbook.")
@click.option("--row", metavar="N", help="Row length of add_row and mul_row; divides the elements.")
@click.option("--inputs", default="cold", show_default=True, help="cold or warm; ignored by the textbook.")
@click.option(
    "--graph-repeats", metavar="N", default="1", show_default=True, help="Passes that share one graph replay."
)
@click.option("--launch-overhead", metavar="TIME", help='Per kernel or graph node, e.g. "4 us".')
@click.option("--replay-overhead", metavar="TIME", help='Per graph replay, e.g. "5 us".')
@click.option("--dram-bandwidth", metavar="RATE", help='Instead of the datasheet\'s, e.g. "3.35 TB/s".')
@click.option("--host-interval", metavar="TIME", help="Of the host, per launch; refused by the textbook.")
@click.option("--plot", metavar="FILE", help="Also write the two charts as one self-contained HTML file.")
@shared.json_option
def chain(*, as_json: bool, plot: str | None, device: str, device_file: str | None, **options: Any) -> None:
    """Price a chain of element-wise operations as separate kernels and as one.

    \b
    fusesim chain --ops 5 --elements 8192x4096 --dtype bf16 --device h100-sxm
    fusesim chain --ops gelu,mul_tensor --elements 2^20 --launch graph --json
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    arguments = _arguments(device, device_file, options)
    price = chains.price_chain(**arguments)
    for note in _notes(arguments):
        click.echo(f"fusesim: note: {note}", err=True)
    if plot is not None:
        shared.write_page(plot, shared.load_app("export").chain_html(**arguments))
    if as_json:
        shared.print_json(price.to_dict())
        return
    out = shared.console()
    ops = arguments["ops"]
    description = f"{ops} {'op' if ops == 1 else 'ops'}" if isinstance(ops, int) else " -> ".join(ops)
    out.print(report.chain_heading(price, description), style="bold", soft_wrap=True)
    shared.print_table(out, report.chain_table(price))
    out.print(report.chain_verdict(price), style="bold", soft_wrap=True)
    for sentence in price.explain():
        out.print(f"- {sentence}", soft_wrap=True)
    if plot is not None:
        out.print(f"charts: {plot}", soft_wrap=True)


def _notes(arguments: dict[str, Any]) -> list[str]:
    """Say which options change nothing."""
    ops, graph = arguments["ops"], arguments["launch"].strip().lower() == "graph"
    rows = not isinstance(ops, int) and any(op.rows for op in find_ops(ops))
    unused = {
        "--host-interval changes nothing in a graph: the device launches its nodes": (
            graph and arguments["host_interval"] is not None
        ),
        "--replay-overhead changes nothing outside a graph": not graph and arguments["replay_overhead"] is not None,
        "--graph-repeats changes nothing outside a graph": not graph and arguments["graph_repeats"] != 1,
        "--row changes nothing: no op of the chain broadcasts a row": not rows and arguments["row"] is not None,
    }
    return [note for note, holds in unused.items() if holds]


def _arguments(device: str, device_file: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Turn the command line's text into the arguments of `price_chain`."""
    quantities = {
        "launch_overhead": (units.TIME, (0, MAX_TIME)),
        "replay_overhead": (units.TIME, (0, MAX_TIME)),
        "dram_bandwidth": (units.BANDWIDTH, (MIN_BANDWIDTH, MAX_BANDWIDTH)),
        "host_interval": (units.TIME, (0, MAX_TIME)),
    }
    read = {
        name: shared.optional(options[name], dimension, "--" + name.replace("_", "-"), limits)
        for name, (dimension, limits) in quantities.items()
    }
    return {
        **options,
        **read,
        "ops": shared.parse_ops(options["ops"]),
        "elements": units.parse_elements(options["elements"]),
        "row": None if options["row"] is None else shared.whole(options["row"], "--row"),
        "graph_repeats": shared.whole(options["graph_repeats"], "--graph-repeats", MAX_REPEATS),
        "device": shared.chosen_device(device, device_file),
    }
