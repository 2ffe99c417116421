"""What a reader hands in, checked before anything reads it: name, kind, size, and size unpacked. It stays in memory.

A file is refused in a sentence by what it is, not by what it is called; the name is only ever shown.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from fusesim.errors import InputError, excerpt

MAX_UPLOAD: Final = 8 << 20
"""Longest file that is taken. [B]"""

MAX_TEXT: Final = 32 << 20
"""Longest text that a packed file may unpack to. [B]"""

MAX_NAME: Final = 120
ENDINGS: Final = (".json", ".json.gz", ".gz", ".onnx")
GZIP: Final = b"\x1f\x8b"
FOREIGN: Final = {
    b"PK\x03\x04": "a zip archive",
    b"PK\x05\x06": "a zip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"%PDF": "a PDF",
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"\x89PNG": "a picture",
}
"""First bytes of files that people hand in by mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that may be read: its name for people, its kind, and its content, unpacked."""

    name: str
    kind: str
    content: bytes


def checked(name: object, body: bytes) -> Upload:
    """Return a file that may be read.

    Parameters
    ----------
    name : object
        What it is called, unchecked.
    body : bytes
        Its content, no longer than `MAX_UPLOAD`.

    Raises
    ------
    InputError
        Says in one sentence what is wrong with it.
    """
    title = checked_name(name)
    if not body:
        raise InputError(f"{title} is empty; export the trace again")
    if len(body) > MAX_UPLOAD:
        raise InputError(f"{title} is longer than {MAX_UPLOAD >> 20} MiB; {elsewhere()}")
    foreign = next((what for first, what in FOREIGN.items() if body.startswith(first)), None)
    if foreign:
        raise InputError(f"{title} is {foreign}; hand in a profiler trace (.json or .json.gz) or an ONNX model (.onnx)")
    if title.lower().endswith(".onnx"):
        return Upload(name=title, kind="onnx", content=body)
    content = unpacked(title, body) if body.startswith(GZIP) else body
    if content.lstrip()[:1] not in {b"{", b"["}:
        raise InputError(
            f"{title} is no JSON: it begins with {excerpt(repr(content[:8])[2:-1])}; export a Chrome trace"
        )
    return Upload(name=title, kind="trace", content=content)


def checked_name(name: object) -> str:
    """Return a file's name for people.

    Raises
    ------
    InputError
        If it is a path, or ends like nothing that is read here.
    """
    if not isinstance(name, str) or not name or len(name) > MAX_NAME or not name.isprintable():
        raise InputError(f"a file needs a name of 1 to {MAX_NAME} printable characters")
    if name != PurePosixPath(name).name or "\\" in name or ":" in name or name.startswith("."):
        raise InputError(f'"{excerpt(name)}" is a path, not the name of a file')
    if not name.lower().endswith(ENDINGS):
        raise InputError(f'"{excerpt(name)}" ends neither in .json nor in .json.gz nor in .onnx')
    return excerpt(name)


def unpacked(name: str, body: bytes) -> bytes:
    """Unpack gzip, and stop where it grows beyond `MAX_TEXT`.

    Raises
    ------
    InputError
        If it is damaged, cut off, or grows too large.
    """
    parts: list[bytes] = []
    room, rest = MAX_TEXT, body
    while rest:
        member = zlib.decompressobj(wbits=31)
        try:
            part = member.decompress(rest, room + 1)
        except zlib.error as error:
            raise InputError(f"{name} is damaged: its gzip data cannot be unpacked") from error
        room -= len(part)
        if room < 0:
            raise InputError(f"{name} unpacks to more than {MAX_TEXT >> 20} MiB; {elsewhere()}")
        if not member.eof:
            raise InputError(f"{name} is cut off: its gzip data ends too early; export or copy it again")
        parts.append(part)
        rest = member.unused_data if member.unused_data.startswith(GZIP) else b""
    return b"".join(parts)


def elsewhere() -> str:
    """Say where large files can be read."""
    return "record fewer steps, or read it on your own machine with fusesim.frontends.trace.read_trace"
