"""What the recorder asks of PyTorch's ops and tensors: types, devices, who writes what, how a view looks."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

DTYPES: Final = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
}
STAND_INS: Final = {1: "int8", 2: "int16", 4: "int32", 8: "fp64", 16: "fp64"}
"""Types that stand for others by their bytes."""

META: Final = torch.device("meta")


@contextmanager
def paused() -> Iterator[None]:
    """Leave recording for a while."""
    with torch.utils._python_dispatch._disable_current_modes():  # noqa: SLF001 - PyTorch offers no other way
        yield


def stem_of(name: str) -> str:
    """Return an op's name without the underscore of its in-place form."""
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """Iterate over tensors in arguments."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)


def mutated(func: Any, bound: dict[str, Any]) -> list[torch.Tensor]:
    """Return the arguments that an op writes."""
    found: list[torch.Tensor] = []
    for argument in func._schema.arguments:  # noqa: SLF001
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.extend(tensors_in([bound[argument.name]]))
    return [] if "batch_norm" in func.name() else found


def like_cudnn(stem: str, bound: dict[str, Any], result: Any) -> Any:
    """Return a convolution's result channels last where its input or weight is, as cuDNN does; others as they are."""
    last = torch.channels_last
    if stem not in {"convolution", "convolution_backward"} or bound["weight"].dim() != 4:  # noqa: PLR2004
        return result
    operands = [bound[name] for name in ("input", "weight", "grad_output") if bound.get(name) is not None]
    strided = [part for part in operands if not part.is_contiguous()]
    if not any(part.is_contiguous(memory_format=last) for part in strided):
        return result
    with paused():
        parts = list(result) if isinstance(result, tuple) else [result]
        wide = [part.to(memory_format=last) if part is not None and part.dim() == 4 else part for part in parts]  # noqa: PLR2004
    return tuple(wide) if isinstance(result, tuple) else wide[0]


def on_meta(func: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return an op's arguments with every device made meta."""
    if any(argument.name == "device" for argument in func._schema.arguments):  # noqa: SLF001
        kwargs["device"] = META
        kwargs.pop("pin_memory", None)
    return kwargs


def look_of(stem: str, bound: dict[str, Any], source: torch.Tensor) -> dict[str, Any]:
    """Return the settings of a view."""
    rank = max(source.dim(), 1)
    if stem == "permute":
        return {"order": tuple(dim % rank for dim in bound["dims"])}
    if stem in {"t", "transpose"}:
        first, second = (0, source.dim() - 1) if stem == "t" else (bound["dim0"] % rank, bound["dim1"] % rank)
        order = list(range(source.dim()))
        if order:
            order[first], order[second] = order[second], order[first]
        return {"order": tuple(order)}
    if stem == "slice":
        return {"dim": bound["dim"] % rank, "start": bound["start"] or 0}
    if stem == "select":
        return {"dim": bound["dim"] % rank, "place": bound["index"]}
    return {}
