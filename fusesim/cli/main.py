"""The group of commands, and the one place where errors become exit codes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

import fusesim
from fusesim.cli import questions
from fusesim.cli.calibrate import calibrate
from fusesim.cli.chain import chain
from fusesim.cli.check import check_command
from fusesim.cli.devices import devices
from fusesim.cli.emit import emit_command
from fusesim.cli.patterns import patterns_command
from fusesim.cli.plan import plan_command
from fusesim.cli.programs import hlo_command, onnx_command, torch_command, trace_command
from fusesim.cli.roofline import roofline
from fusesim.cli.validate import validate_command
from fusesim.cli.why import why_command
from fusesim.cli.workshop import workshop
from fusesim.errors import FusesimError

if TYPE_CHECKING:
    from collections.abc import Sequence

BAD_INPUT, BAD_USAGE, INTERRUPTED = 1, 2, 130


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=questions.epilogue(),
)
@click.version_option(fusesim.__version__, prog_name="fusesim")
def commands() -> None:
    """Price GPU operations as separate kernels and fused: bytes, microseconds, and why."""


for command in (
    chain,
    roofline,
    patterns_command,
    plan_command,
    why_command,
    trace_command,
    torch_command,
    onnx_command,
    hlo_command,
    check_command,
    emit_command,
    devices,
    calibrate,
    validate_command,
    workshop,
):
    commands.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The command line without the program's name; the process's own unless given.

    Returns
    -------
    int
        0 done, 1 bad input, 2 unparsable, 130 interrupted.
    """
    try:
        commands.main(args=None if arguments is None else list(arguments), prog_name="fusesim", standalone_mode=False)
    except FusesimError as error:
        click.echo(f"fusesim: {error}", err=True)
        return BAD_INPUT
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return BAD_USAGE
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        click.echo(f"fusesim: {error.format_message().rstrip('.')}{hint}", err=True)
        return BAD_USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("fusesim: interrupted", err=True)
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # the reader has seen enough, as `head` does; only over that click exits
        _silence()
    except OSError as error:  # files are answered for where they are opened: this is standard output
        _silence()
        click.echo(f"fusesim: cannot write the output: {error.strerror or error}", err=True)
        return BAD_INPUT
    return 0


def _silence() -> None:
    """Send what is still to be printed nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
