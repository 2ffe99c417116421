"""ONNX models as graphs: `from_onnx`. Needs the extra `fusesim[onnx]`; no runtime and no GPU.

Weights are not read, only their shapes; whole numbers that decide shapes are folded. `onnx_ops` says what each
operator is.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from fusesim.builder import Builder
from fusesim.errors import FusesimError, GraphError, InputError, excerpt, unknown_name
from fusesim.frontends.onnx_reading import Operator, Reading
from fusesim.textfile import read_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fusesim.graph import Graph

LARGEST: Final = 1 << 31
"""Longest model without its weights that is parsed: what the format itself allows. [B]."""


def from_onnx(file: str | os.PathLike[str] | bytes | Any, *, sizes: Mapping[str, int] | None = None) -> Graph:
    """Return the graph of an ONNX model.

    Parameters
    ----------
    file : path, bytes or onnx.ModelProto
        The model. Weights in files of their own need not be there.
    sizes : mapping of str to int, optional
        A size for each named dimension of the inputs, such as ``{"batch": 8}``; "x.0" names dimension 0 of input x
        where it has no name.

    Returns
    -------
    Graph
        One op per operator; reshapes, transposes and slices are views where PyTorch's are. Initializers are parameters.
        `gaps` names operators without a rule, priced as one kernel that reads its inputs and writes its outputs.

    Raises
    ------
    InputError
        If the onnx package is missing, the file is no model, or a dimension has no size.
    GraphError
        If the model is not valid or its shapes depend on values.

    Notes
    -----
    Shapes come from the operators' own rules and, where an operator has none here, from ONNX's shape inference. Types
    are the model's: what runs in fp32 there is priced in fp32. Fails first where a runtime rewrites the model before
    running it: constant folding of weights, layouts, and fusions are a strategy's business.
    """
    try:
        onnx = importlib.import_module("onnx")
    except ImportError as error:
        raise InputError("from_onnx needs the onnx package; install it with: pip install 'fusesim[onnx]'") from error
    model, name = _loaded(onnx, file)
    _sized(model.graph, dict(sizes or {}), name)
    return _read(onnx, _prepared(onnx, model, name), name)


def _loaded(onnx: Any, file: Any) -> tuple[Any, str]:
    """Return a model without its weights' files, and a name for it."""
    if isinstance(file, onnx.ModelProto):
        copied = onnx.ModelProto()
        copied.CopyFrom(file)
        return copied, file.graph.name or "model"
    content, name = _content(file)
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:
        raise InputError(f"{name} is no ONNX model ({type(error).__name__})") from error
    if not model.graph.node:
        raise InputError(f"{name} is no ONNX model: it has no operators")
    return model, PurePath(name).stem


def _content(file: Any) -> tuple[bytes, str]:
    """Return the bytes of a file and its name."""
    if isinstance(file, bytes):
        return file, "model"
    if not isinstance(file, str | os.PathLike):
        raise InputError(f"from_onnx takes a path, bytes or an onnx.ModelProto, not {type(file).__name__}")
    name = excerpt(PurePath(os.fspath(file)).name)
    what = "an ONNX model; save a larger one's weights beside it (external data)"
    return read_bytes(Path(file), what, limit=LARGEST, fault=InputError), name


def _sized(graph: Any, sizes: dict[str, int], name: str) -> None:
    """Give every dimension of the inputs its size."""
    weights = {initializer.name for initializer in graph.initializer}
    used = set()
    known: dict[str, None] = {}
    for value in graph.input:
        if value.name in weights:
            continue
        for place, dim in enumerate(value.type.tensor_type.shape.dim):
            label = dim.dim_param or f"{value.name}.{place}"
            known[label] = None
            if label in sizes:
                size = sizes[label]
                if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                    raise InputError(f"sizes: {excerpt(label)} is {excerpt(size)}; give a whole number from 1")
                used.add(label)
                dim.dim_value = size
            elif not dim.HasField("dim_value") or dim.dim_value <= 0:
                raise InputError(
                    f'{name}: input {excerpt(value.name)} has no size for dimension "{excerpt(label)}"; '
                    f'give sizes={{"{excerpt(label)}": ...}}'
                )
    for label in sizes:
        if label not in used:
            raise unknown_name("dimension", label, known)


def _prepared(onnx: Any, model: Any, name: str) -> Any:
    """Return a model with local functions written out and shapes inferred as far as ONNX can."""
    try:
        if model.functions:
            model = importlib.import_module("onnx.inliner").inline_local_functions(model)
        del model.graph.value_info[:]
        for value in model.graph.output:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.Clear()
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise GraphError(f"{name} is no valid ONNX model: {excerpt(reason[0] if reason else error, 160)}") from error


def _read(onnx: Any, model: Any, name: str) -> Graph:
    """Return the graph of a model whose inputs have sizes."""
    from fusesim.frontends import onnx_layout, onnx_ops, onnx_products  # noqa: F401, PLC0415 - they register rules

    versions = {entry.domain: entry.version for entry in model.opset_import}
    reading = Reading(onnx, Builder(name), model.graph, versions.get("", 1) or 1)
    for place, node in enumerate(model.graph.node):
        operator = Operator(onnx, node, place)
        try:
            reading.add(operator)
        except FusesimError as error:
            raise GraphError(f"{name}: {operator.label}: {error}") from error
        except (KeyError, TypeError, IndexError, ValueError, AttributeError, ZeroDivisionError) as error:
            raise GraphError(
                f"{name}: {operator.label}: its attributes or inputs do not fit it ({excerpt(error)})"
            ) from error
    return reading.graph()
