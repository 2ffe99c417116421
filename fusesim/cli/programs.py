"""``fusesim trace``, ``torch``, ``onnx`` and ``hlo``: the fusions of a program of your own that are worth making."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import fusesim
from fusesim import units
from fusesim.cli import shared
from fusesim.cli.progress import bars
from fusesim.cli.told import program_options, read_told, tell
from fusesim.errors import InputError, excerpt
from fusesim.frontends.loading import load_program
from fusesim.frontends.trace_steps import equal_parts, one_step
from fusesim.plan_sentences import counted
from fusesim.readers import named_device

if TYPE_CHECKING:
    from fusesim.frontends.trace import Trace

BIG: Final = 20_000_000
"""Length of a file from which reading shows how far it is. [B]."""

MANY: Final = 2000
"""Ops beyond which only one of equal parts is reported: planning all of them would take minutes."""

MINUTES: Final = 6000
"""Ops that take minutes to plan."""


@click.command(name="trace")
@click.argument("file")
@click.option("--steps", metavar="N", help="Equal steps that the trace holds; the report is of the last.")
@program_options
def trace_command(*, file: str, steps: str | None, **options: Any) -> None:
    """Rank what is worth fusing in a PyTorch profiler trace, and compare its kernels with what they should take.

    FILE is a Chrome trace, .json or .json.gz, recorded with record_shapes=True. Times are compared with the device that
    it names; --device says where the program is to run.

    \b
    fusesim trace trace.json.gz
    fusesim trace trace.json.gz --device b200 --top 5
    fusesim trace trace.json.gz --launch graph --explain 1
    fusesim trace trace.json.gz --fail-above 1.3
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    found, extra = _one_step(_read_trace(file), steps)
    recorded = named_device(found.device)
    told = read_told(options, recorded or "h200-sxm")
    if recorded is None and found.timeline is not None:
        name, other = found.device or "its device", told.as_rank["device"].id
        extra = (*extra, f"note: {name} is not known, so times are compared with {other}")
    tell(found, told, recorded, extra)


def _one_step(found: Trace, steps: str | None) -> tuple[Trace, tuple[str, ...]]:
    """Return one step of a trace, and what is to be said of it."""
    if steps is not None:
        return one_step(found, shared.whole(steps, "--steps", 10**6)), ()
    if found.graph is None:
        return found, ()
    count, ops = equal_parts(found.graph), len(found.graph.paid_nodes)
    if count == 1:
        if ops > MINUTES:
            click.echo(f"fusesim: planning {ops} ops takes minutes; record fewer steps, or equal ones", err=True)
        return found, ()
    if ops <= MANY:
        return found, (f"note: the trace repeats {count} equal parts; if they are steps, --steps {count} reports one",)
    return one_step(found, count), (f"note: the trace repeats {count} equal parts of {ops // count} ops: one is told",)


def _read_trace(file: str) -> Trace:
    """Read a trace; of a long one show how far it is."""
    try:
        long = Path(file).stat().st_size > BIG
    except (OSError, ValueError):
        long = False
    if not long:
        return fusesim.read_trace(file)
    with bars() as shown:
        return fusesim.read_trace(file, progress=lambda done, total: shown.stage("reading", done, total))


@click.command(name="torch")
@click.argument("program", metavar="MODULE:FUNCTION")
@click.option("--input", "tensors", metavar="SHAPE:DTYPE", multiple=True, help="An argument, such as 8x1024:bf16.")
@click.option("--grad", is_flag=True, help="With gradients, as in training; without unless given.")
@program_options
def torch_command(*, program: str, tensors: tuple[str, ...], grad: bool, **options: Any) -> None:
    """Rank what is worth fusing in a PyTorch function or module. No GPU, no memory: tensors are on the meta device.

    MODULE:FUNCTION is imported from here. With --input it is called with such tensors; without, it is called with
    nothing and returns the program and a tuple of its inputs. --inputs is about the cache, as elsewhere.

    \b
    fusesim torch torch.nn.functional:silu --input 8192x4096:bf16
    fusesim torch my_model:build --device h100-sxm --html report.html
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    told = read_told(options)
    tell(load_program(program, tensors, grad=grad), told)


@click.command(name="onnx")
@click.argument("file")
@click.option("--size", "sizes", metavar="NAME=N", multiple=True, help="A dynamic dimension, such as batch=8.")
@program_options
def onnx_command(*, file: str, sizes: tuple[str, ...], **options: Any) -> None:
    """Rank what is worth fusing in an ONNX model.

    \b
    fusesim onnx model.onnx --size batch=8 --size sequence=512
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    told = read_told(options)
    tell(fusesim.from_onnx(file, sizes=dict(map(_size, sizes))), told)


def _size(text: str) -> tuple[str, int]:
    """Read NAME=N."""
    name, equals, number = text.rpartition("=")
    if not equals or not name.strip():
        raise InputError(f'--size "{excerpt(text)}" is no size; write e.g. batch=8')
    try:
        return name.strip(), units.parse_elements(number)
    except InputError as error:
        raise InputError(f"--size: {str(error).removeprefix('elements ')}") from error


@click.command(name="hlo")
@click.argument("file")
@program_options
def hlo_command(*, file: str, **options: Any) -> None:
    """Rank what is worth fusing in an XLA module, and price the plan that XLA chose beside ours.

    FILE is HLO text, as XLA_FLAGS=--xla_dump_to=DIR writes it; *after_optimizations.txt holds XLA's plan.

    \b
    fusesim hlo module_0001.jit_f.after_optimizations.txt
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    told = read_told(options)
    plan = fusesim.plan_from_hlo(Path(file))
    terms = {key: told.as_rank[key] for key in ("device", "launch", "inputs", "graph_repeats", "host_interval")}
    price = fusesim.price(plan, path="inductor", **terms)
    took = units.format_quantity(float(price.time), units.TIME)
    chose = f"as XLA fused it a step takes {took}: {counted(float(price.kernels), 'kernel')} (generated, as Inductor's)"
    tell(plan.graph, told, extra=(chose,))
