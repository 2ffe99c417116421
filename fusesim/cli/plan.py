"""``fusesim plan``: which ops of a pattern share a kernel under a strategy, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fusesim import patterns, plan_records, plan_report, units
from fusesim.breakeven import break_even, compile_time
from fusesim.cli import shared
from fusesim.cli.emit import read_arguments
from fusesim.cli.told import limit, measured_options, refuse
from fusesim.errors import InputError, unknown_name
from fusesim.inputs import MAX_REPEATS, MAX_TIME, choice
from fusesim.liveness import liveness
from fusesim.plan_run import PlanRun
from fusesim.plan_sentences import plan_sentences
from fusesim.plans import PATHS, compare
from fusesim.schedule import LAUNCH_MODES
from fusesim.strategies import STRATEGIES
from fusesim.why import edges

if TYPE_CHECKING:
    from rich.console import Console

    from fusesim.comparison import Comparison
    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph
    from fusesim.hardware import HardwareProfile
    from fusesim.records import Price

PARTS = ("compare", "explain", "memory", "timeline", "edges")
"""What is told only when it is asked for."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a command line asks for: a graph, how it is planned, priced and told."""

    pattern: str
    values: dict[str, Any]
    strategy: str
    path: str
    device: HardwareProfile
    as_price: dict[str, Any]
    compile_seconds: float | None

    @property
    def graph(self) -> Graph:
        """The graph."""
        return patterns.find(self.pattern)(**self.values)

    @property
    def heading(self) -> str:
        """What is planned, how, and where."""
        values = plan_report.written(patterns.parameters(self.pattern) | self.values)
        how = f"{self.strategy} on {self.device.name}, {self.path} kernels"
        bare = "" if self.as_price["profiled"] else ", no profiler"
        return f"{self.pattern} {values}: {how}, {self.as_price['launch']}, {self.as_price['model']}{bare}"


@click.command(name="plan")
@click.argument("pattern")
@click.argument("arguments", metavar="[NAME=VALUE ...]", nargs=-1)
@click.option("--strategy", default="eager", show_default=True, help=f"Who decides: {', '.join(STRATEGIES)}.")
@click.option("--path", help="Whose kernels: torch, inductor, cuda, cupy; torch for eager, else inductor.")
@click.option("--device", default="h200-sxm", show_default=True, help="Device, see `fusesim devices`.")
@click.option("--device-file", metavar="PATH", help="A device file of your own instead.")
@click.option("--model", default="calibrated", show_default=True, help="textbook or calibrated.")
@click.option("--launch", default="graph", show_default=True, help="stream, graph, or latency (once from idle).")
@click.option("--inputs", default="cold", show_default=True, help="cold, warm, or over how many sets of buffers.")
@click.option("--graph-repeats", metavar="N", default="1", show_default=True, help="Passes in one graph replay.")
@click.option("--host-interval", metavar="TIME", help="Of the host, per launch or call; refused by the textbook.")
@click.option("--no-profiler", is_flag=True, help="In a process that ran no profiler: 0.4 us less a kernel of a graph.")
@click.option("--compile-seconds", metavar="TIME", help="What compiling takes, for after how many calls it pays.")
@click.option("--compare", is_flag=True, help="All strategies side by side.")
@click.option("--explain", is_flag=True, help="Why: against eager, where bytes are saved, where the verdict flips.")
@click.option("--memory", is_flag=True, help="What is alive kernel by kernel, eager and as planned.")
@click.option("--timeline", is_flag=True, help="When each kernel is issued, starts and ends.")
@click.option("--edges", is_flag=True, help="Which tensors are paid, saved, or read again.")
@measured_options
@shared.json_option
def plan_command(*, pattern: str, arguments: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Show which ops of a pattern share a kernel, and what each kernel moves and takes.

    PATTERN is a named graph (`fusesim patterns` lists them); its sizes follow as name=value.

    \b
    fusesim plan rmsnorm tokens=8192 hidden=4096 --strategy inductor
    fusesim plan softmax --compare
    fusesim plan swiglu --strategy vertical --explain --compile-seconds "2 s"
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    asked = _read(pattern, arguments, options)
    measured = shared.optional(options["measured"], units.TIME, "--measured", (1e-12, MAX_TIME))
    most = limit(options["fail_above"])
    graph = asked.graph
    made, price = plan_records.planned(graph, asked.strategy, asked.path, asked.device, asked.as_price)
    wanted = {part for part in PARTS if options[part]}
    if as_json:
        shared.print_json(_record(asked, graph, made, price, wanted))
    else:
        _print(asked, graph, made, price, wanted)
    refuse(measured, float(price.time), most, f"{asked.pattern} by {asked.strategy}")


def _print(asked: Asked, graph: Graph, made: FusionPlan, price: Price, wanted: set[str]) -> None:
    """Print a plan."""
    out = shared.console()
    out.print(asked.heading, style="bold", soft_wrap=True)
    shared.print_table(out, plan_report.kernel_table(plan_records.kernel_rows(made, price, asked.device)))
    shared.print_table(out, plan_report.totals_table(price))
    for sentence in (*plan_sentences(made, price, asked.device), *_paid(asked, graph, price)):
        out.print(f"- {sentence}", soft_wrap=True)
    _more(out, asked, made, price, wanted)


def _read(pattern: str, arguments: tuple[str, ...], options: dict[str, Any]) -> Asked:
    """Turn the command line's text into what is asked for."""
    strategy = options["strategy"].strip().lower()
    if strategy not in STRATEGIES:
        raise unknown_name("strategy", options["strategy"], STRATEGIES)
    path = options["path"]
    inputs = options["inputs"].strip().lower()
    host = shared.optional(options["host_interval"], units.TIME, "--host-interval", (0, MAX_TIME))
    return Asked(
        pattern=pattern,
        values=read_arguments(pattern, arguments),
        strategy=strategy,
        path=plan_records.path_of(strategy) if path is None else choice("path", path, PATHS),
        device=shared.chosen_device(options["device"], options["device_file"]),
        as_price={
            "model": shared.model(options["model"]),
            "launch": choice("launch mode", options["launch"], LAUNCH_MODES),
            "inputs": shared.whole(inputs, "--inputs", MAX_REPEATS) if inputs[:1].isdigit() else inputs,
            "graph_repeats": shared.whole(options["graph_repeats"], "--graph-repeats", MAX_REPEATS),
            "host_interval": host,
            "profiled": not options["no_profiler"],
        },
        compile_seconds=shared.optional(options["compile_seconds"], units.TIME, "--compile-seconds", (0, 1e9)),
    )


def _comparison(asked: Asked, graph: Graph) -> Comparison:
    """Return the plan against eager, able to tell at which size the verdict flips."""
    known = patterns.parameters(asked.pattern) | asked.values
    name = next(key for key, value in known.items() if isinstance(value, int) and not isinstance(value, bool))
    if asked.pattern == "chain":
        name = "elements"
    now = known[name]

    def rebuild(factor: float) -> Graph:
        return patterns.find(asked.pattern)(**asked.values | {name: max(1, round(now * factor))})

    return compare(
        graph,
        device=asked.device,
        fused=(asked.strategy, asked.path),
        rebuild=rebuild if asked.strategy != "optimal" else None,  # it would solve a program for each size
        dimension=(name, now),
        **asked.as_price,
    )


def _paid(asked: Asked, graph: Graph, price: Price) -> list[str]:
    """Say after how many calls compiling pays, where something is compiled and a time is known."""
    given = asked.compile_seconds
    seconds = plan_records.seconds_of(asked.strategy, len(graph.paid_nodes), given)
    if seconds is None:
        return []
    _, eager = plan_records.planned(graph, "eager", "torch", asked.device, asked.as_price)
    number = break_even(seconds, float(eager.time) - float(price.time))
    source = "" if given is not None else f" ({compile_time('inductor', len(graph.paid_nodes)).source})"
    cost = f"compiling takes {units.format_quantity(seconds, units.TIME)}{source}"
    if number == float("inf"):
        return [f"{cost} and never pays: a call saves nothing over eager"]
    return [f"{cost} and pays after {plan_report.calls(number)} calls"]


def _more(out: Console, asked: Asked, made: FusionPlan, price: Price, wanted: set[str]) -> None:
    """Print what was asked for besides the kernels."""
    graph = asked.graph
    if "explain" in wanted:
        out.print("against eager", style="bold")
        for sentence in _comparison(asked, graph).explain():
            out.print(f"- {sentence}", soft_wrap=True)
    if "edges" in wanted:
        found = edges(made)
        out.print(f"edges: {plan_report.edge_totals(found)}", style="bold")
        shared.print_table(out, plan_report.edge_table(found))
    if "memory" in wanted:
        unfused, _ = plan_records.planned(graph, "eager", "torch", asked.device, asked.as_price)
        for name, plan in (("eager", unfused), (asked.strategy, made)):
            timeline = liveness(plan)
            peak = units.format_quantity(timeline.peak, units.SIZE)
            out.print(f"memory, {name}: {peak} at the peak", style="bold", soft_wrap=True)
            names = [plan_report.few(group.nodes) for group in plan.groups]
            shared.print_table(out, plan_report.memory_table(timeline, names))
    if "timeline" in wanted:
        shared.print_table(out, plan_report.timeline_table(_spans(price)))
    if "compare" in wanted:
        rows = plan_records.strategy_rows(graph, asked.device, asked.as_price, asked.compile_seconds)
        out.print("strategies side by side", style="bold")
        shared.print_table(out, plan_report.strategy_table(rows))


def _spans(price: Price) -> Any:
    """Return when each kernel runs."""
    if not isinstance(price.parts, PlanRun):
        raise InputError("the textbook has no timeline: nothing overlaps; leave out --timeline or --model textbook")
    return price.parts.timeline()


def _record(asked: Asked, graph: Graph, made: FusionPlan, price: Price, wanted: set[str]) -> dict[str, Any]:
    """Return what --json prints. [s, B, FLOP]."""
    record: dict[str, Any] = {
        "pattern": asked.pattern,
        "arguments": {key: _plain(v) for key, v in (patterns.parameters(asked.pattern) | asked.values).items()},
        "strategy": asked.strategy,
        "path": asked.path,
        "device": asked.device.id,
        "requested_as": asked.device.requested_as,
        **asked.as_price,
        "kernels": plan_records.kernel_rows(made, price, asked.device),
        "price": {key: value for key, value in price.to_dict().items() if key != "per_kernel"},
        "sentences": plan_sentences(made, price, asked.device),
        "notes": list(made.notes),
        "bound_on_time": made.bound,
    }
    if "explain" in wanted:
        record["comparison"] = _comparison(asked, graph).to_dict()
    if "edges" in wanted:
        record["edges"] = plan_records.edge_records(made)
    if "memory" in wanted:
        unfused, _ = plan_records.planned(graph, "eager", "torch", asked.device, asked.as_price)
        record["memory"] = plan_records.memory_records(unfused, made)
    if "timeline" in wanted:
        _spans(price)
        record["timeline"] = plan_records.timeline_records(price)
    if "compare" in wanted:
        record["compare"] = plan_records.strategy_rows(graph, asked.device, asked.as_price, asked.compile_seconds)
    return record


def _plain(value: Any) -> Any:
    """Return an argument as JSON has it."""
    return list(value) if isinstance(value, tuple) else value
