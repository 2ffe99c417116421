"""Reading a profiler's file event by event: JSON or gzip, an object or a list, whole or cut off, in bounded memory.

Nothing here knows what an event means.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from fusesim.errors import InputError, excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK: Final = 1 << 20
"""Bytes read at a time. [B]."""

LONGEST: Final = 16 << 20
"""Longest event or header entry, in characters."""

MOST_TEXT: Final = 16 << 30
"""Longest file, unpacked. [B]."""

MOST_RATIO: Final = 250
"""Times that a packed file may unpack to, beyond the first `FREE_TEXT` bytes; traces reach about 40."""

FREE_TEXT: Final = 64 << 20
"""Text that is unpacked whatever the ratio. [B]."""

SPACE: Final = re.compile(r"[ \t\r\n]*")
LISTS: Final = ("traceEvents", "nodes")
"""Keys under which a file keeps its events: Chrome's, and those of PyTorch's execution traces."""


@dataclass(slots=True)
class Source:
    """A file being read: `header` is what stood beside the events, `cut` says why the end is missing, "" where not."""

    name: str
    header: dict[str, Any] = field(default_factory=dict)
    listed: str = ""
    cut: str = ""


def events_of(
    file: str | os.PathLike[str] | BinaryIO, source: Source, progress: Callable[[int, int], None] | None = None
) -> Iterator[dict[str, Any]]:
    """Iterate over the events of a file; `source` is filled on the way.

    Raises
    ------
    InputError
        If the file cannot be opened or is no JSON of events.
    """
    handle, size, own = _opened(file, source.name)
    try:
        yield from _Scanner(_texts(handle, size, source, progress), source).events()
    finally:
        if own:
            handle.close()


def _opened(file: str | os.PathLike[str] | BinaryIO, name: str) -> tuple[BinaryIO, int, bool]:
    """Return a file opened, its size, and whether it is ours to close."""
    if not isinstance(file, str | os.PathLike):
        if not hasattr(file, "read"):
            raise InputError(f"a trace is a path or an open binary file, not {type(file).__name__}")
        return file, 0, False
    path = Path(file)
    try:
        handle = path.open("rb")
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{name}: cannot be read: {excerpt(reason)}") from error
    return cast("BinaryIO", handle), size, True


def _texts(handle: BinaryIO, size: int, source: Source, progress: Callable[[int, int], None] | None) -> Iterator[str]:
    """Iterate over a file's text in chunks, unpacked."""
    import codecs  # noqa: PLC0415 - only here

    try:
        start = handle.read(2)
    except OSError as error:
        raise InputError(f"{source.name}: cannot be read: {excerpt(error.strerror or str(error))}") from error
    if not start:
        raise InputError(f"{source.name} is empty (0 bytes); export the trace again")
    raw = _Joined(start, handle)
    packed = start == b"\x1f\x8b"
    reader = _Unpacked(raw) if packed else raw
    decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
    total = 0
    while True:
        try:
            data = reader.read(CHUNK)
        except (zlib.error, OSError) as error:
            source.cut = f"the file cannot be read on ({excerpt(error)})"
            return
        if not total:
            _check_encoding(data, source.name)
        total += len(data)
        _check_size(total, raw.read_bytes if packed else total, source.name)
        if progress is not None:
            progress(raw.read_bytes, size)
        if not data:
            return
        yield decoder.decode(data)


class _Joined:
    """A stream whose first bytes were read already; counts what is read."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        self._start = start
        self._rest = rest
        self.read_bytes = 0

    def read(self, count: int = -1) -> bytes:
        """Return the next bytes."""
        start, self._start = self._start, b""
        data = start + self._rest.read(max(count - len(start), 0) if count >= 0 else -1)
        self.read_bytes += len(data)
        return data


class _Unpacked:
    """The text in a gzip file, as far as it goes."""

    def __init__(self, packed: _Joined) -> None:
        self._packed = packed
        self._engine = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def read(self, count: int) -> bytes:
        """Return the next bytes, at most so many; none at the end, wherever that is."""
        while True:
            left = self._engine.unconsumed_tail or self._packed.read(CHUNK // 16)
            if self._engine.eof:
                left = self._engine.unused_data + left
                self._engine = zlib.decompressobj(zlib.MAX_WBITS | 16)
            if not left:
                return self._engine.flush()
            data = self._engine.decompress(left, count)
            if data:
                return data


def _check_encoding(data: bytes, name: str) -> None:
    """Refuse what is no UTF-8 text."""
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"} or b"\x00" in data[:64]:
        raise InputError(f"{name} is no UTF-8 text (UTF-16, or binary); fusesim reads profiler traces in JSON")


def _check_size(total: int, packed: int, name: str) -> None:
    """Refuse files that unpack to more than any trace."""
    if total > FREE_TEXT and total > MOST_RATIO * packed:
        raise InputError(f"{name} unpacks to more than {MOST_RATIO} times its size, as no trace does")
    if total > MOST_TEXT:
        raise InputError(f"{name} is longer than {MOST_TEXT >> 30} GiB unpacked; record fewer steps")


class _Scanner:
    """Finds the list of events in JSON text and decodes one at a time."""

    def __init__(self, texts: Iterator[str], source: Source) -> None:
        self._texts = texts
        self._source = source
        self._text = ""
        self._at = 0
        self._decode = json.JSONDecoder(strict=False).raw_decode

    def events(self) -> Iterator[dict[str, Any]]:
        """Iterate over the events."""
        first = self._peek()
        if first == "[":
            self._source.listed = "traceEvents"
            yield from self._list()
        elif first == "{":
            yield from self._object()
        else:
            raise self._foreign(f"it begins with {first!r}" if first else "it holds only spaces")

    def _object(self) -> Iterator[dict[str, Any]]:
        """Iterate over the events in an object; all else goes to the header."""
        self._at += 1
        while True:
            letter = self._peek()
            if letter == ",":
                self._at += 1
                continue
            if letter in {"}", ""}:
                self._end(letter)
                return
            key = self._value()
            if not isinstance(key, str) or self._peek() != ":":
                if self._source.cut:
                    return
                raise self._foreign("an object in it has no keys")
            self._at += 1
            if key in LISTS and self._peek() == "[":
                self._source.listed = key
                yield from self._list()
            elif len(self._source.header) < 1000:  # noqa: PLR2004 - no trace has as many
                self._source.header[key] = self._value()
            else:
                raise self._foreign("it has thousands of top-level keys")

    def _list(self) -> Iterator[dict[str, Any]]:
        """Iterate over the objects of a list."""
        self._at += 1
        while True:
            letter = self._peek()
            if letter == ",":
                self._at += 1
            elif letter in {"]", ""}:
                self._end(letter)
                return
            else:
                event = self._value()
                if self._source.cut:
                    return
                if isinstance(event, dict):
                    yield event

    def _end(self, letter: str) -> None:
        """Step over a closing bracket, or note that the text ended before it."""
        if letter:
            self._at += 1
        elif not self._source.cut:
            self._source.cut = "the file ends in the middle"

    def _peek(self) -> str:
        """Return the next character that is no space, "" at the end."""
        while True:
            found = SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _more(self) -> bool:
        """Take in another chunk; say whether there was one."""
        chunk = next(self._texts, None)
        if chunk is None:
            return False
        self._text = self._text[self._at :] + chunk
        self._at = 0
        return True

    def _value(self) -> Any:
        """Return the JSON value that stands here; None and a note where the text ends in it."""
        self._peek()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except RecursionError as error:
                raise self._foreign("values in it are nested too deeply") from error
            except ValueError as error:
                if len(self._text) - self._at > LONGEST:
                    raise self._foreign("an event in it is broken or longer than 16 MiB") from error
                if not self._more():
                    return self._broken(error)
                continue
            if end < len(self._text) or not self._more():
                self._at = end
                return value

    def _broken(self, error: ValueError) -> None:
        """Note that the text ended in a value, or refuse text that was no JSON."""
        if self._source.listed:
            self._source.cut = self._source.cut or "the file ends in the middle of an event"
            return
        if self._source.cut or self._source.header:
            raise self._foreign("it breaks off before its first event") from error
        raise self._foreign("its JSON is broken or cut off") from error

    def _foreign(self, why: str) -> InputError:
        """Return the error for a file that holds no events."""
        return InputError(
            f"{self._source.name} is no profiler trace: {why}; give the JSON (or .gz) that "
            "torch.profiler's export_chrome_trace wrote"
        )
