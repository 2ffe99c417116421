"""Reads a whole text file that somebody names: small, regular and UTF-8, or refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fusesim.errors import excerpt

if TYPE_CHECKING:
    from fusesim.errors import FusesimError


def read_text(path: str | Path, what: str, *, limit: int, fault: type[FusesimError]) -> str:
    """Return a file's text.

    Parameters
    ----------
    path : str or Path
        The file.
    what : str
        What it should be, with article, for messages.
    limit : int
        Largest size that is read. [B]
    fault : type
        The error to raise.

    Raises
    ------
    FusesimError
        The one given: names the file, and says why it cannot be read.
    """
    file = Path(path)
    try:
        content = _content(file, limit)
    except (OSError, ValueError) as error:  # ValueError where a path holds what no path can
        reason = getattr(error, "strerror", None) or error
        raise fault(f"{excerpt(file, 200)}: cannot be read: {reason}") from error
    if content is None:
        raise fault(f"{excerpt(file, 200)}: not a file; give the path of {what}")
    if len(content) > limit:
        raise fault(f"{excerpt(file.name)}: larger than {limit >> 20} MiB, so not {what}")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise fault(f"{excerpt(file.name)}: not text in UTF-8, so not {what}") from error


def _content(file: Path, limit: int) -> bytes | None:
    """Return what a file holds, just beyond the limit if it is longer; None for a folder, a pipe or a device."""
    if file.exists() and not file.is_file():
        return None
    with file.open("rb") as opened:
        return opened.read(limit + 1)
