"""How far a long command has come, on stderr: a bar for every stage."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import TaskID


class Bars:
    """Bars, one for each stage."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.tasks: dict[str, TaskID] = {}

    def stage(self, name: str, done: int, total: int) -> None:
        """Say that so many steps of a stage are done."""
        if name not in self.tasks:
            self.tasks[name] = self.progress.add_task(name)
        self.progress.update(self.tasks[name], completed=done, total=total)

    def warn(self, sentence: str) -> None:
        """Say what is not as it should be."""
        self.progress.console.print(f"warning: {sentence}", soft_wrap=True)


@contextmanager
def bars() -> Iterator[Bars]:
    """Show bars while the block runs."""
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        yield Bars(progress)
