"""Standing in for a program's own tensors while it is recorded: parameters, buffers, what a function closes over.

Everything is put back when the block ends, whatever happens in it.
"""

from __future__ import annotations

import functools
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fusesim.frontends.torch_record import Recorder


@contextmanager
def stood_in(program: Any, recorder: Recorder) -> Iterator[list[tuple[str, torch.nn.Module]]]:
    """Replace the tensors that a program holds; the modules found, with their names, are handed out."""
    modules: list[tuple[str, torch.nn.Module]] = []
    optimizers: list[torch.optim.Optimizer] = []
    with ExitStack() as stack:
        if isinstance(program, torch.nn.Module):
            modules.append(("", program))
        else:
            for found in _captured(program):
                _sort(found, modules, optimizers, recorder, stack)
        for name, module in modules:
            stack.enter_context(_module(name, module, recorder))
        for optimizer in optimizers:
            recorder.program.gap(
                "optimizers are recorded tensor by tensor, as with foreach=False; a GPU runs few multi-tensor kernels"
            )
            stack.enter_context(_optimizer(optimizer, recorder))
        yield modules


def _sort(
    found: tuple[str, Any, Callable[[Any], None] | None],
    modules: list[tuple[str, torch.nn.Module]],
    optimizers: list[torch.optim.Optimizer],
    recorder: Recorder,
    stack: ExitStack,
) -> None:
    """Note a captured value by what it is; plain containers of tensors are replaced at once."""
    name, value, setter = found
    if isinstance(value, torch.nn.Module):
        modules.append((name, value))
    elif isinstance(value, torch.optim.Optimizer):
        optimizers.append(value)
    elif setter is not None and isinstance(value, torch.Tensor | list | tuple | dict):
        leaves = tree_flatten(value)[0]
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, torch.nn.Module):
                modules.append((f"{name}.{place}", leaf))
        if any(_stands(leaf) for leaf in leaves):
            setter(tree_map(lambda leaf: _labelled(leaf, name, recorder), value))
            stack.callback(setter, value)


def _stands(leaf: Any) -> bool:
    """Return whether a value is a tensor that a meta tensor stands for."""
    return isinstance(leaf, torch.Tensor) and (leaf.dim() > 0 or leaf.requires_grad or leaf.is_meta)


def _labelled(leaf: Any, name: str, recorder: Recorder) -> Any:
    """Return the named stand-in of a tensor, anything else as it is."""
    if not _stands(leaf):
        return leaf
    made = recorder.stand_in(leaf)
    recorder.enter(made, name, parameter=isinstance(leaf, torch.nn.Parameter))
    return made


def _captured(function: Any) -> Iterator[tuple[str, Any, Callable[[Any], None] | None]]:
    """Iterate over what a function closes over, is bound to and finds among its module's names."""
    if isinstance(function, functools.partial):
        yield from _captured(function.func)
        for place, value in enumerate((*function.args, *function.keywords.values())):
            yield f"argument_{place}", value, None
        return
    owner = getattr(function, "__self__", None)
    if owner is not None:
        yield type(owner).__name__.lower(), owner, None
        if not isinstance(owner, torch.nn.Module):
            for key, value in list(getattr(owner, "__dict__", {}).items()):
                yield key, value, functools.partial(setattr, owner, key)
    function = getattr(function, "__func__", function)
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for key, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield key, _content(cell), functools.partial(setattr, cell, "cell_contents")
    for key in code.co_names:
        if key in function.__globals__:
            yield key, function.__globals__[key], functools.partial(function.__globals__.__setitem__, key)


def _content(cell: Any) -> Any:
    """Return what a cell holds, None where nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


@contextmanager
def _module(prefix: str, module: torch.nn.Module, recorder: Recorder) -> Iterator[None]:
    """Replace a module's parameters and buffers, tied ones by the same."""
    replaced: list[tuple[dict[str, Any], str, Any]] = []
    for path, part in module.named_modules(prefix=prefix):
        for table in (part._parameters, part._buffers):  # noqa: SLF001 - as torch.func.functional_call does
            for key, value in table.items():
                if value is not None:
                    replaced.append((table, key, value))
                    made = recorder.stand_in(value)
                    recorder.enter(made, f"{path}.{key}".lstrip("."), parameter=table is part._parameters)  # noqa: SLF001
                    table[key] = made
    try:
        yield
    finally:
        for table, key, value in replaced:
            table[key] = value


@contextmanager
def _optimizer(optimizer: torch.optim.Optimizer, recorder: Recorder) -> Iterator[None]:
    """Replace an optimizer's parameters and what it remembers of them."""
    groups = [(group, group["params"]) for group in optimizer.param_groups]
    state = optimizer.state

    def stand_in(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return recorder.stand_in(value) if value.dim() else value.clone()

    try:
        fresh = type(state)(dict) if hasattr(state, "default_factory") else {}
        for parameter, known in state.items():
            fresh[recorder.stand_in(parameter)] = tree_map(stand_in, known)
        optimizer.state = fresh
        for group, parameters in groups:
            group["params"] = [recorder.stand_in(parameter) for parameter in parameters]
        yield
    finally:
        optimizer.state = state
        for group, parameters in groups:
            group["params"] = parameters
