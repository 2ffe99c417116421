"""``fusesim emit``: the source of a fused kernel, and of the kernels that it stands for."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.table import Table

from fusesim import api, patterns, planning, units
from fusesim.cli import shared
from fusesim.emit import emit
from fusesim.emit.api import LANGUAGES
from fusesim.emit.part import plans_of
from fusesim.emit.verify import Verified, verify
from fusesim.errors import FusesimError, InputError, excerpt, unknown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.fusion import FusionPlan

SOURCES: Final = (".cu", ".cuh", ".cpp", ".h", ".py", ".txt")
"""Endings of the files that source may be written over."""


@click.command(name="emit")
@click.argument("pattern")
@click.argument("arguments", metavar="[NAME=VALUE ...]", nargs=-1)
@click.option("--strategy", default="vertical", show_default=True, help="Who decides what is fused.")
@click.option("--group", metavar="N", default="0", show_default=True, help="Which kernel of the plan, from 0.")
@click.option("--language", default="cuda", show_default=True, help="cuda or triton.")
@click.option("--separate", is_flag=True, help="The kernels of its ops instead, one each.")
@click.option("--device", default="h200-sxm", show_default=True, help="Device that is planned for.")
@click.option("--verify", "checked", is_flag=True, help="Also compile, check and time both on this GPU (CuPy).")
@click.option("--out", metavar="FILE", help="Write the source there instead of printing it.")
def emit_command(
    *,
    pattern: str,
    arguments: tuple[str, ...],
    strategy: str,
    group: str,
    language: str,
    device: str,
    checked: bool,
    **options: Any,
) -> None:
    """Print the source of one kernel of a plan, in CUDA C++ or Triton, or of its ops as kernels of their own.

    PATTERN is a named graph; its sizes follow as name=value.

    \b
    fusesim emit bias_relu rows=128 cols=512
    fusesim emit softmax rows=4096 cols=4096 --language triton --out softmax.py
    fusesim emit rmsnorm tokens=8192 hidden=4096 --separate
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    if language not in LANGUAGES:
        raise unknown_name("language", language, LANGUAGES)
    if checked and language != "cuda":
        raise InputError(f"--verify compiles through CuPy, which takes CUDA C++; leave out --language {language}")
    graph = patterns.find(pattern)(**read_arguments(pattern, arguments))
    profile = api.find_device(device)
    plan = planning.plan(graph, strategy, profile)
    place = _place(group, plan)
    source = emit(plan, place, language, fused=not options["separate"])
    found = verify(plan, place, predicted=predicted_times(plan, place, profile)) if checked else ()
    _written(source, options["out"])
    if found:
        out = shared.console()
        out.print()
        shared.print_table(out, verified_table(found))
        for sentence in _verdict(found):
            out.print(f"- {sentence}", soft_wrap=True)


def read_arguments(pattern: str, words: Sequence[str]) -> dict[str, Any]:
    """Read sizes and switches of a pattern, each as its default's type.

    Raises
    ------
    InputError
        If one is no name=value, is unknown, stands there twice, or cannot be read.

    Examples
    --------
    >>> read_arguments("layernorm", ["rows=2^10", "composite=false"])
    {'rows': 1024, 'composite': False}
    """
    known = patterns.parameters(pattern)
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise InputError(
                f'"{excerpt(word)}" is no argument; write name=value, for example {next(iter(known))}=1024'
            )
        if name not in known:
            raise unknown_name(f"argument of {pattern}", name, known)
        if name in found:
            raise InputError(f"{pattern}: {name} is given twice; give it once")
        found[name] = _value(pattern, name, text, known[name])
    return found


def _value(pattern: str, name: str, text: str, default: Any) -> Any:
    """Read one argument."""
    if name == "ops":
        return shared.parse_ops(text)
    if isinstance(default, bool):
        switches = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
        if text.lower() not in switches:
            raise InputError(f"{pattern}: {name} is {excerpt(text)}; it is a switch: true or false")
        return switches[text.lower()]
    if isinstance(default, float):
        try:
            return float(text)
        except ValueError:
            raise InputError(f"{pattern}: {name} is {excerpt(text)}; it is a number") from None
    return text if isinstance(default, str) else shared.whole(text, f"{pattern}: {name}")


def _place(text: str, plan: FusionPlan) -> int:
    """Read which kernel of the plan is meant."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) < len(plan.groups)):  # noqa: PLR2004
        last = len(plan.groups) - 1
        raise InputError(f'--group "{excerpt(text)}" is none of the plan\'s kernels; give 0 to {last}')
    return int(text)


def _written(source: str, path: str | None) -> None:
    """Print the source, or write it to a file, and never over anything that is no source."""
    if path is None:
        click.echo(source, nl=False)
        return
    if Path(path).suffix.lower() not in SOURCES and Path(path).is_file():
        raise InputError(f'"{excerpt(path)}" exists and is no file of source ({", ".join(SOURCES)}); name another one')
    shared.write_atomically(path, source)
    click.echo(f"source: {path}")


def predicted_times(plan: FusionPlan, group: int, device: Any) -> dict[str, float]:
    """Return what the model says of a group and of its ops as kernels of their own, nothing where it cannot. [s]."""
    pricer = _pricer()
    if pricer is None:
        return {}
    found = {}
    for form, alone in plans_of(plan, group).items():
        try:
            found[form] = float(pricer(alone, device=device, launch="graph", path="cuda").time)
        except FusesimError:
            continue
    return found


def _pricer() -> Callable[..., Any] | None:
    """Return what prices plans, None in an installation without it."""
    try:
        module = importlib.import_module("fusesim.plans")
    except ModuleNotFoundError:
        return None
    return getattr(module, "price", None)


def verified_table(found: Sequence[Verified]) -> Table:
    """Return predicted beside measured, one line per form."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for heading in ("kernels", "predicted", "measured", "10 % to 90 %", "ratio", "largest error"):
        table.add_column(heading, justify="right")
    for row in found:
        predicted = "-" if row.predicted is None else units.format_quantity(row.predicted, units.TIME)
        span = " to ".join(units.format_quantity(value, units.TIME, like=row.median) for value in (row.low, row.high))
        table.add_row(
            row.form,
            str(row.kernels),
            predicted,
            units.format_quantity(row.median, units.TIME),
            span,
            "-" if row.ratio is None else f"{row.ratio:.2f}",
            f"{row.largest_error:.1e}",
        )
    return table


def _verdict(found: Sequence[Verified]) -> list[str]:
    """Say what fusing saved, and what was predicted of it."""
    fused, separate = found
    saved = units.format_quantity(separate.median - fused.median, units.TIME)
    sentences = [f"measured: fusing saves {saved}, {separate.median / fused.median:.2f}x"]
    if fused.predicted and separate.predicted:
        told = units.format_quantity(separate.predicted - fused.predicted, units.TIME)
        sentences.append(f"predicted: {told}, {separate.predicted / fused.predicted:.2f}x")
    return sentences
