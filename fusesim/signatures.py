"""Arguments checked by the types that their function states, so that a wrong one is told before anything is made of it.

A class that builds something from many small methods states for each argument what it takes; `checked` reads that and
refuses what is nothing of the kind, in one sentence that names the method, the argument and the value.
"""

from __future__ import annotations

import functools
import inspect
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from fusesim.errors import GraphError, excerpt
from fusesim.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

Class = TypeVar("Class", bound=type)


class Sort(NamedTuple):
    """A sort of argument: whether a value is one, and what it is called."""

    holds: Callable[[Any], bool]
    words: str


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def _sequence(value: object, holds: Callable[[Any], bool]) -> bool:
    """Return whether a value is a list or tuple of such values."""
    return isinstance(value, list | tuple) and all(map(holds, value))


def _is_tensor(value: object) -> bool:
    """Return whether a value is a tensor."""
    return isinstance(value, Tensor)


SORTS: Final = {
    "Tensor": Sort(_is_tensor, "a tensor"),
    "Sequence[Tensor]": Sort(lambda value: _sequence(value, _is_tensor), "a list of tensors"),
    "int": Sort(is_whole, "a whole number"),
    "Sequence[int]": Sort(lambda value: _sequence(value, is_whole), "a list of whole numbers"),
    "Shape": Sort(lambda value: _sequence(value, is_whole), "a list of whole numbers"),
    "str": Sort(lambda value: isinstance(value, str), "a name"),
    "bool": Sort(lambda value: isinstance(value, bool), "True or False"),
    "float": Sort(lambda value: isinstance(value, Real), "a number"),
}
"""What annotations ask for; an annotation that is not here is not checked."""


def checked(built: Class) -> Class:
    """Let the public methods of a class refuse arguments that are not what they state.

    Parameters
    ----------
    built : type
        The class; annotations are read as they are written.

    Returns
    -------
    type
        The same class.
    """
    for name, method in list(vars(built).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(built, name, _checked(method))
    return built


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that refuses wrong arguments; those behind a star it checks itself."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    named = {one.name: sort for one in parameters if one.kind != one.VAR_POSITIONAL and (sort := _sort(one.annotation))}
    placed = [one.name for one in parameters if one.kind == one.POSITIONAL_OR_KEYWORD]

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name, value in (*zip(placed, args, strict=False), *kwargs.items()):
            sort = named.get(name)
            if sort is not None and not sort.holds(value):
                raise GraphError(f"{method.__name__}: {name} is {excerpt(value)}, and not {sort.words}")
        return method(self, *args, **kwargs)

    return call


def _sort(annotation: str) -> Sort | None:
    """Return the sort that an annotation asks for, None where any value will do."""
    own = annotation.removesuffix(" | None")
    sort = SORTS.get(own)
    if sort is None or own == annotation:
        return sort
    return Sort(lambda value: value is None or sort.holds(value), f"{sort.words} or None")
