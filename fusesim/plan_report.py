"""Plans, patterns and comparisons as tables for a terminal. No arithmetic beyond sums, no reading of arguments."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from fusesim import units

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fusesim.graph import Graph
    from fusesim.liveness import Timeline
    from fusesim.plan_run import Span
    from fusesim.records import Price
    from fusesim.why import EdgeUse

FEW: Final = 4
"""Names that are listed; more are counted."""


def table(left: Sequence[str], right: Sequence[str] = (), last: Sequence[str] = ()) -> Table:
    """Return an empty table: columns of words, of figures, and of words again."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in left:
        made.add_column(heading, overflow="fold")
    for heading in right:
        made.add_column(heading, justify="right")
    for heading in last:
        made.add_column(heading, overflow="fold")
    return made


def time(value: float) -> str:
    """Write a time."""
    return units.format_quantity(value, units.TIME)


def size(value: float) -> str:
    """Write a number of bytes."""
    return units.format_quantity(value, units.SIZE)


def few(names: Sequence[str], most: int = FEW) -> str:
    """Write names, and how many more there are.

    Examples
    --------
    >>> few(["add", "relu"]), few(["a", "b", "c", "d", "e", "f"])
    ('add, relu', 'a, b, c, d and 2 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def kernel_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return a plan's kernels in order: what each is, computes, moves and takes, and what binds and fills it."""
    made = table(("", "kernel", "class", "ops"), ("read", "written", "time"), ("bound", "occupancy"))
    for place, row in enumerate(rows):
        made.add_row(
            str(place),
            row["name"],
            row["class"] or "-",
            few(row["ops"]),
            size(row["bytes_read"]),
            size(row["bytes_written"]),
            time(row["time"]),
            row["bound"],
            _occupancy(row),
        )
    return made


def _occupancy(row: Mapping[str, Any]) -> str:
    """Write which share of the threads fits, what limits it, and what spills."""
    if row["occupancy"] is None:
        return ""
    spills = f", {row['spilled']} registers spill" if row["spilled"] else ""
    return f"{units.format_share(row['occupancy'])} by {row['limit']}{spills}"


def totals_table(price: Price) -> Table:
    """Return what a plan comes to."""
    made = table(("",), ("plan",))
    low, high = (float(end) for end in price.interval)
    span = f" ({time(low)} to {time(high)})" if high > low else ""
    made.add_row("time", f"{time(float(price.time))}{span}")
    made.add_row("kernels", units.format_count(float(price.kernels)))
    made.add_row("bytes moved", size(float(price.bytes_moved)))
    made.add_row("from memory, from the cache", f"{size(float(price.dram_bytes))}, {size(float(price.l2_bytes))}")
    made.add_row("launch share", units.format_share(float(price.launch_share)))
    made.add_row("peak memory above inputs", size(float(price.peak_memory)))
    made.add_row("bound", str(price.bound))
    return made


def strategy_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return strategies side by side."""
    figures = (
        "kernels",
        "bytes moved",
        "time",
        "90 % interval",
        "saving",
        "speedup",
        "peak memory",
        "pays after calls",
    )
    made = table(("strategy", "kernels of"), figures)
    for row in rows:
        low, high = row["interval"]
        made.add_row(
            row["strategy"],
            row["path"],
            units.format_count(row["kernels"]),
            size(row["bytes_moved"]),
            time(row["time"]),
            f"{time(low)} to {time(high)}" if high > low else "-",
            time(row["saving"]),
            units.format_ratio(row["speedup"]),
            size(row["peak_memory"]),
            calls(row["break_even_calls"], known=row["compile_seconds"] is not None),
        )
    return made


def calls(number: float | None, *, known: bool = True) -> str:
    """Write after how many calls compiling pays.

    Examples
    --------
    >>> calls(2500.0), calls(None), calls(None, known=False)
    ('2 500', 'never', '-')
    """
    if number is None:
        return "never" if known else "-"
    return units.format_count(float(f"{number:.3g}"))


def edge_table(edges: Iterable[EdgeUse]) -> Table:
    """Return the edges of a plan: paid, saved, or read again."""
    made = table(("tensor", "from", "to"), ("bytes",), ("state",))
    for edge in edges:
        ends = (edge.producer or "(input)", edge.consumer or "(output)")
        made.add_row(edge.tensor, *ends, size(edge.bytes), edge.state)
    return made


def edge_totals(edges: Iterable[EdgeUse]) -> str:
    """Say how many bytes are paid, saved and read again."""
    totals: Counter[str] = Counter()
    for edge in edges:
        totals[edge.state] += edge.bytes
    return ", ".join(f"{state} {size(totals[state])}" for state in ("paid", "saved", "re-read") if totals[state])


def memory_table(timeline: Timeline, names: Sequence[str]) -> Table:
    """Return what is alive while each group runs."""
    made = table(("", "ops"), ("live", "after"), ("allocated", "freed"))
    for step in timeline.steps:
        peak = " <- peak" if step.group == timeline.worst else ""
        made.add_row(
            str(step.group),
            names[step.group],
            size(step.live),
            size(step.after),
            few(step.allocated),
            few(step.freed) + peak,
        )
    return made


def timeline_table(spans: Iterable[Span]) -> Table:
    """Return when each kernel runs and is issued."""
    made = table(("", "kernel"), ("issued", "start", "end"), ("bound",))
    for place, span in enumerate(spans):
        made.add_row(str(place), span.name, time(span.issued), time(span.start), time(span.end), span.bound)
    return made


def pattern_list(rows: Iterable[tuple[str, Mapping[str, Any], str]]) -> Table:
    """Return patterns: name, arguments with their defaults, what it is."""
    made = table(("pattern", "arguments", "what it is"))
    for name, arguments, summary in rows:
        made.add_row(name, written(arguments), summary.removeprefix("Return "))
    return made


def written(arguments: Mapping[str, Any]) -> str:
    """Write arguments as the command line takes them.

    Examples
    --------
    >>> written({"tokens": 8, "upcast": False, "ops": ("add", "mul"), "row": None})
    'tokens=8 upcast=false ops=add,mul'
    """
    return " ".join(f"{key}={_value(value)}" for key, value in arguments.items() if value is not None)


def _value(value: Any) -> str:
    """Write one argument."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def op_table(graph: Graph) -> Table:
    """Return the ops of a graph: what each reads, makes and computes."""
    made = table(("op", "kind", "reads", "makes"), ("read", "written", "FLOP"))
    for node in graph.nodes:
        free = node.family == "view"
        bytes_of = [0 if free else sum(graph.tensors[n].bytes for n in set(ns)) for ns in (node.inputs, node.outputs)]
        made.add_row(
            node.name,
            node.kind,
            few(node.inputs),
            "; ".join(_tensor(graph, name) for name in node.outputs),
            *(size(number) for number in bytes_of),
            units.format_quantity(graph.flops(node), units.FLOPS),
        )
    return made


def _tensor(graph: Graph, name: str) -> str:
    """Write a tensor's type and shape."""
    tensor = graph.tensors[name]
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
