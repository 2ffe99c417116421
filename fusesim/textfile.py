"""Reads a whole file that somebody names, text in UTF-8 or bytes, of a size, or refuses it in one sentence."""

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
    content = _whole(file, what, limit, fault, pipes=False)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise fault(f"{excerpt(file.name)}: not text in UTF-8, so not {what}") from error


def read_bytes(path: str | Path, what: str, *, limit: int, fault: type[FusesimError]) -> bytes:
    """Return what a file or a pipe holds; parameters and errors are those of `read_text`."""
    return _whole(Path(path), what, limit, fault, pipes=True)


def _whole(file: Path, what: str, limit: int, fault: type[FusesimError], *, pipes: bool) -> bytes:
    """Return all that a file holds; refuse a folder, a device, and what is too long."""
    try:
        readable = not file.exists() or file.is_file() or (pipes and file.is_fifo())
        content = b""
        if readable:
            with file.open("rb") as opened:
                content = opened.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError where a path holds what no path can
        reason = getattr(error, "strerror", None) or error
        raise fault(f"{excerpt(file, 200)}: cannot be read: {reason}") from error
    if not readable:
        raise fault(f"{excerpt(file, 200)}: not a file; give the path of {what}")
    if len(content) > limit:
        raise fault(f"{excerpt(file.name)}: larger than {limit >> 20} MiB, so not {what}")
    return content
