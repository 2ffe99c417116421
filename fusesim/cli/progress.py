"""How far a long command has come, on stderr: a bar for every stage."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import TaskID


BETWEEN: Final = 0.1
"""Seconds between two drawings. No thread draws: it would disturb what is measured."""


class Bars:
    """Bars, one for each stage."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.tasks: dict[str, TaskID] = {}
        self.drawn = 0.0

    def stage(self, name: str, done: int, total: int) -> None:
        """Say that so many steps of a stage are done."""
        if name not in self.tasks:
            self.tasks[name] = self.progress.add_task(name)
        self.progress.update(self.tasks[name], completed=done, total=total)
        now = time.monotonic()
        if now - self.drawn > BETWEEN:
            self.progress.refresh()
            self.drawn = now

    def warn(self, sentence: str) -> None:
        """Say what is not as it should be."""
        self.progress.console.print(f"warning: {sentence}", soft_wrap=True)


@contextmanager
def bars() -> Iterator[Bars]:
    """Show bars while the block runs."""
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, auto_refresh=False) as progress:
        yield Bars(progress)
