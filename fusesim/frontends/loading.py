"""A PyTorch program by name, as a command line gives it: ``module:function``, and inputs as shapes."""

from __future__ import annotations

import importlib
import math
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fusesim import units
from fusesim.errors import FusesimError, GraphError, InputError, excerpt, unknown_name
from fusesim.frontends.torch import from_torch
from fusesim.tensor import MOST_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.graph import Graph

TYPES: Final = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "uint8": "uint8",
    "bool": "bool",
}
"""Types of a graph to PyTorch's."""


def load_program(name: str, inputs: Sequence[str] = (), *, grad: bool = False) -> Graph:
    """Return the graph of a PyTorch program that is imported by name.

    Parameters
    ----------
    name : str
        ``module:function``, found from the working directory. With inputs a function, a module or its class; without,
        a function of no arguments that returns the program and a tuple of its inputs.
    inputs : sequence of str
        Tensors such as ``"8x1024:bf16"``; they are made on the meta device.
    grad : bool
        Whether gradients are on.

    Raises
    ------
    InputError
        If PyTorch is missing, the program cannot be imported, or it is neither of these.
    GraphError
        As `from_torch` does.
    """
    try:
        import torch  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise InputError("fusesim torch needs PyTorch; install it with: pip install 'fusesim[torch]'") from error
    found = _imported(name)
    try:
        return _graph(found, name, inputs, grad=grad)
    except GraphError as error:
        if not grad and "require grad" in str(error):
            raise GraphError(f"{name} asks for gradients, which are off; give --grad") from error
        raise


def _graph(found: Any, name: str, inputs: Sequence[str], *, grad: bool) -> Graph:
    """Return the graph of what was imported."""
    import torch  # noqa: PLC0415 - an extra

    with torch.set_grad_enabled(grad):
        if inputs:
            return from_torch(_instance(found, name), *(tensor(text) for text in inputs))
        program, given = _made(found, name)
        return from_torch(program, *given)


def _imported(name: str) -> Any:
    """Return what a name stands for."""
    module, colon, path = name.partition(":")
    if not colon or not re.fullmatch(r"[\w.]+", module) or not re.fullmatch(r"[\w.]+", path):
        raise InputError(f'"{excerpt(name)}" is no program; write module:function, for example my_model:build')
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise InputError(f"cannot import {excerpt(module)}: {excerpt(error, 200)}") from error
    except (Exception, SystemExit) as error:
        raise InputError(f"{excerpt(module)} fails to import: {type(error).__name__}: {excerpt(error, 200)}") from error
    finally:
        sys.path.remove(here)
    for part in path.split("."):
        if not hasattr(found, part):
            known = [each for each in dir(found) if not each.startswith("_")]
            raise unknown_name(f"name in {excerpt(module)}", part, known)
        found = getattr(found, part)
    return found


def tensor(text: str) -> Any:
    """Return a tensor without memory of a shape and a type, fp32 unless given.

    Raises
    ------
    InputError
        If the text is no shape or the type is unknown.
    """
    import torch  # noqa: PLC0415 - an extra

    shape, _, kind = text.partition(":")
    kind = kind.strip().lower() or "fp32"
    if kind not in TYPES:
        raise unknown_name("type of an input", kind, TYPES)
    try:
        sizes = [units.parse_elements(part) for part in re.split("[x,]", shape.strip().lower())]
    except InputError as error:
        raise InputError(f'--input "{excerpt(text)}" is no tensor; write e.g. 8x1024:bf16') from error
    if math.prod(sizes) > MOST_ELEMENTS:
        raise InputError(f'--input "{excerpt(text)}" has {math.prod(sizes)} elements; the largest is 10^18')
    return torch.empty(*sizes, dtype=getattr(torch, TYPES[kind]), device="meta")


def _instance(found: Any, name: str) -> Any:
    """Return a program; a module's class is made without arguments, on the meta device."""
    import torch  # noqa: PLC0415 - an extra

    if isinstance(found, type) and issubclass(found, torch.nn.Module):
        return _called(found, name)
    return found


def _made(found: Any, name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return the program and the inputs that a function returns."""
    import torch  # noqa: PLC0415 - an extra

    if isinstance(found, torch.nn.Module) or not callable(found):
        raise InputError(f"{excerpt(name)} is no function that returns a program and its inputs; give --input")
    made = _called(found, name)
    if not isinstance(made, tuple | list) or len(made) != 2 or not callable(made[0]):  # noqa: PLR2004 - a pair
        raise InputError(
            f"{excerpt(name)} returned {excerpt(type(made).__name__)}; it has to return a program and a tuple of its "
            "inputs, or give --input"
        )
    program, given = made
    return program, tuple(given) if isinstance(given, tuple | list) else (given,)


def _called(function: Any, name: str) -> Any:
    """Call a function of no arguments with tensors on the meta device, where it can do without values."""
    import torch  # noqa: PLC0415 - an extra

    try:
        with torch.device("meta"):
            return function()
    except FusesimError:
        raise
    except NotImplementedError:  # it asks for values, which the meta device has none of
        return function()
    except Exception as error:
        reason = f"{type(error).__name__}: {excerpt(error, 200)}"
        hint = "give --input for a function that takes tensors"
        raise InputError(f"{excerpt(name)}() failed: {reason}; {hint}") from error
