"""What a profiler's events say, as records: ops with their operands, kernels with their launch, calls on the host.

Kineto's names of keys, and those of AMD's build of it, stand only here. Times are in seconds, None where the trace
has none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

Dims = tuple[Any, ...]

KERNELS: Final = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
"""Categories of what runs on a device."""

CALLS: Final = frozenset(
    {"cuda_runtime", "cuda_driver", "hip_runtime", "runtime", "privateuse1_runtime", "xpu_runtime"}
)
"""Categories of calls that may launch."""

LAUNCHES: Final = ("Launch", "launch", "Memcpy", "Memset", "memcpy", "memset")
"""Words in the names of calls that launch something."""

DTYPES: Final = {
    "double": "fp64",
    "float": "fp32",
    "c10::BFloat16": "bf16",
    "BFloat16": "bf16",
    "bfloat16": "bf16",
    "c10::Half": "fp16",
    "Half": "fp16",
    "half": "fp16",
    "long int": "int64",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "short int": "int16",
    "signed char": "int8",
    "char": "int8",
    "unsigned char": "uint8",
    "bool": "bool",
    "c10::complex<float>": "fp64",
    "unsigned short": "int16",
    "unsigned int": "int32",
    "unsigned long": "int64",
}
"""C++ types to those of a graph."""

MOST_DIMS: Final = 64
"""Sizes of a launch that are read."""

MOST_KEPT: Final = 100_000
"""Distinct values that are kept once; more do not repeat."""


@dataclass(frozen=True, slots=True)
class Op:
    """An op on the host: what went in, by place. `dims` holds lists of sizes for a list of tensors."""

    place: int
    name: str
    thread: str
    dims: Dims = ()
    strides: Dims = ()
    types: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    start: float | None = None
    duration: float | None = None
    external: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Something that ran on a device. `op` is the place of the op that launched it; `call` when the host did."""

    name: str
    kind: str
    external: int | None = None
    correlation: int | None = None
    device: int = 0
    stream: int = 0
    start: float | None = None
    duration: float | None = None
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    registers: int | None = None
    shared_memory: int | None = None
    bytes: int | None = None
    call: str = ""
    called: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the host that launches."""

    name: str
    correlation: int | None
    start: float | None
    duration: float | None


class Reader:
    """Turns events into records; equal tuples are kept once."""

    def __init__(self) -> None:
        self.seen = 0
        self.shapes = False
        self._kept: dict[Any, Any] = {}
        self._values: dict[tuple[str, ...], tuple[Any, ...]] = {}

    def record(self, event: dict[str, Any]) -> Op | Launch | Call | None:
        """Return the record of an event, None for what nobody asks about."""
        self.seen += 1
        category, name = event.get("cat"), event.get("name")
        if not isinstance(name, str) or not isinstance(category, str) or event.get("ph") not in {"X", "B", None}:
            return None
        lower = category.lower()
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        if lower in {"cpu_op", "operator"}:
            return self._op(event, name, args)
        if lower in KERNELS:
            return self._launch(event, name, args, KERNELS[lower])
        if lower in CALLS and any(word in name for word in LAUNCHES):
            start, duration = _times(event)
            return Call(self._once(name), _whole(args.get("correlation")), start, duration)
        return None

    def _op(self, event: dict[str, Any], name: str, args: dict[str, Any]) -> Op:
        """Return the record of an op."""
        start, duration = _times(event)
        dims = self._once(_tuples(args.get("Input Dims", args.get("Input dims"))))
        self.shapes = self.shapes or bool(dims)
        place = _whole(args.get("Ev Idx"))
        external = _whole(args.get("External id", args.get("external id")))
        types = args.get("Input type", args.get("Input Type"))
        return Op(
            place if place is not None else self.seen,
            self._once(name),
            self._once(f"{event.get('pid')}/{event.get('tid')}"),
            dims,
            self._once(_tuples(args.get("Input Strides", args.get("Input strides")))),
            self._once(tuple(str(kind) for kind in types) if isinstance(types, list) else ()),
            self._concrete(_list(args.get("Concrete Inputs"))),
            start,
            duration,
            external,
        )

    def _launch(self, event: dict[str, Any], name: str, args: dict[str, Any], kind: str) -> Launch:
        """Return the record of a kernel, a copy or a fill."""
        start, duration = _times(event)
        return Launch(
            name=self._once(name),
            kind=kind,
            external=_whole(args.get("External id", args.get("external id"))),
            correlation=_whole(args.get("correlation")),
            device=_whole(args.get("device")) or 0,
            stream=_whole(args.get("stream")) or 0,
            start=start,
            duration=duration,
            grid=self._once(_sizes(args.get("grid"))),
            block=self._once(_sizes(args.get("block"))),
            registers=_whole(args.get("registers per thread")),
            shared_memory=_whole(args.get("shared memory")),
            bytes=_whole(args.get("bytes")),
        )

    def _concrete(self, texts: list[Any]) -> tuple[Any, ...]:
        """Return the plain arguments; kept by their text, as 1, 1.0 and True are equal."""
        key = tuple(text if isinstance(text, str) else "" for text in texts)
        found = self._values.get(key)
        if found is None:
            found = tuple(plain(text) for text in key)
            if len(self._values) < MOST_KEPT:
                self._values[key] = found
        return found

    def _once(self, value: Any) -> Any:
        """Return an equal value that is kept already."""
        if len(self._kept) > MOST_KEPT:
            return value
        return self._kept.setdefault(value, value)


def _times(event: dict[str, Any]) -> tuple[float | None, float | None]:
    """Return start and duration in seconds; None for what is missing, negative or no number. [s]."""
    start, duration = _number(event.get("ts")), _number(event.get("dur"))
    return start, duration if duration is None or duration >= 0 else None


def _number(value: Any) -> float | None:
    """Return microseconds in seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value) * 1e-6
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _whole(value: Any) -> int | None:
    """Return a whole number, None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) < 20:  # noqa: PLR2004
        return int(value)
    return None


def _list(value: Any) -> list[Any]:
    """Return a list, an empty one for anything else."""
    return value if isinstance(value, list) else []


def _sizes(value: Any) -> tuple[int, ...]:
    """Return a tuple of whole numbers."""
    return tuple(size for part in _list(value)[:MOST_DIMS] if (size := _whole(part)) is not None)


def _tuples(value: Any, depth: int = 3) -> Dims:
    """Return nested lists of sizes as tuples; what is no size is 0."""
    if not isinstance(value, list) or not depth:
        return ()
    return tuple(_tuples(part, depth - 1) if isinstance(part, list) else (_whole(part) or 0) for part in value)


def plain(text: Any) -> Any:
    """Return the value that the profiler wrote as text.

    Examples
    --------
    >>> plain("True"), plain("2"), plain("0."), plain("[1, 2]"), plain("")
    (True, 2, 0.0, (1, 2), None)
    """
    if not isinstance(text, str) or not text or len(text) > 10_000:  # noqa: PLR2004 - no setting is as long
        return None
    words = {"True": True, "False": False, "None": None, "inf": math.inf, "-inf": -math.inf}
    if text in words:
        return words[text]
    if text[0] == "[":
        inner = text.strip("[]")
        return tuple(plain(part.strip()) for part in inner.split(",")) if inner.strip() else ()
    try:
        return int(text)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            return text
        return number if math.isfinite(number) else None
