"""An ONNX model while it is read: names to tensors of the graph, constants, and operators one by one."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusesim.errors import GraphError, excerpt
from fusesim.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.builder import Builder
    from fusesim.graph import Graph

TYPES: Final = {
    1: "fp32",
    2: "uint8",
    3: "int8",
    4: "int16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "fp16",
    11: "fp64",
    12: "int32",
    13: "int64",
    16: "bf16",
    **dict.fromkeys((17, 18, 19, 20), "fp8"),
    **dict.fromkeys((21, 22), "uint8"),
}
"""Element types by ONNX's number; unsigned ones by their bytes."""

MOST_FOLDED: Final = 65_536
"""Values of a constant that is worked out here."""

MOST_READ: Final = 60
"""Tensors that an opaque op reads."""

Constant = np.ndarray[Any, Any]
Rule = Any
RULES: Final[dict[str, Callable[..., Any]]] = {}
"""Rules by the operator's type: from the reading and the operator to what it makes."""


def onnx_rule(*types: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a rule for operators."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        RULES.update(dict.fromkeys(types, function))
        return function

    return register


class Operator:
    """One operator of a model: type, names of inputs and outputs, attributes as plain values."""

    def __init__(self, onnx: Any, node: Any, place: int) -> None:
        self.proto = node
        self.type: str = node.op_type
        self.domain: str = node.domain
        self.inputs: list[str] = list(node.input)
        self.outputs: list[str] = list(node.output)
        self.attrs: dict[str, Any] = {
            attribute.name: _plain(onnx.helper.get_attribute_value(attribute)) for attribute in node.attribute
        }
        self.label = f"operator {excerpt(node.name or place)} ({excerpt(node.op_type)})"

    def has(self, place: int) -> bool:
        """Return whether an input is given."""
        return place < len(self.inputs) and bool(self.inputs[place])


def _plain(value: Any) -> Any:
    """Return an attribute as a plain value."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return tuple(value) if isinstance(value, list) else value


class Reading:
    """Reads operators into a builder."""

    def __init__(self, onnx: Any, builder: Builder, graph: Any, version: int) -> None:
        self.onnx = onnx
        self.builder = builder
        self.version = version
        self._graph = graph
        self._weights = {initializer.name: initializer for initializer in graph.initializer}
        self._inferred = {value.name: value for value in (*graph.value_info, *graph.output)}
        self._constants: dict[str, Constant] = {}
        self._tensors: dict[str, Tensor] = {}
        for value in graph.input:
            if value.name not in self._weights:
                shape, dtype = self._declared(value)
                self._tensors[value.name] = builder.input(*shape, dtype=dtype, name=value.name)

    def _declared(self, value: Any) -> tuple[tuple[int, ...], str]:
        """Return the shape and type of a declared value."""
        if not value.type.HasField("tensor_type"):
            raise GraphError(f"value {excerpt(value.name)} is no tensor; sequences and maps are not read")
        kind = value.type.tensor_type
        if kind.elem_type not in TYPES:
            raise GraphError(f"value {excerpt(value.name)} has element type {kind.elem_type}, which is no number")
        return tuple(dim.dim_value for dim in kind.shape.dim), TYPES[kind.elem_type]

    def add(self, operator: Operator) -> None:
        """Add an operator, or fold it where all it reads is known."""
        if self._folded(operator):
            return
        self.builder.scope = operator.proto.name
        rule = RULES.get(operator.type) if operator.domain in {"", "ai.onnx", "com.microsoft"} else None
        made = rule(self, operator) if rule is not None else None
        if made is None:
            made = self._opaque(operator)
        results = list(made) if isinstance(made, list | tuple) else [made]
        for name, result in zip(operator.outputs, results, strict=False):
            if name and isinstance(result, Tensor):
                self._tensors[name] = result
            elif name and result is not None:
                self._constants[name] = result

    def graph(self) -> Graph:
        """Return the graph."""
        for value in self._graph.output:
            if value.name in self._tensors:
                self.builder.output(self._tensors[value.name])
        if not self.builder.outputs:
            raise GraphError(f"{self.builder.name}: its outputs are constants; there is nothing to run")
        return self.builder.graph()

    def tensor(self, operator: Operator, place: int) -> Tensor:
        """Return an input as a tensor; weights and constants come in as parameters."""
        name = operator.inputs[place]
        if name not in self._tensors:
            if name in self._weights:
                weight = self._weights[name]
                if weight.data_type not in TYPES:
                    raise GraphError(f"weight {excerpt(name)} holds no numbers")
                shape, dtype = tuple(weight.dims), TYPES[weight.data_type]
            elif name in self._constants:
                value = self._constants[name]
                shape, dtype = value.shape, _type_of(value)
            else:
                raise GraphError(f"reads {excerpt(name)}, which nothing makes")
            self._tensors[name] = self.builder.parameter(*(int(s) for s in shape), dtype=dtype, name=name or "w")
        return self._tensors[name]

    def tensors(self, operator: Operator) -> list[Tensor]:
        """Return all inputs that are given."""
        return [self.tensor(operator, place) for place in range(len(operator.inputs)) if operator.has(place)]

    def constant(self, operator: Operator, place: int) -> Constant | None:
        """Return an input's values where they are known and few, None where they are not or it is not given."""
        if not operator.has(place):
            return None
        name = operator.inputs[place]
        weight = self._weights.get(name)
        if name not in self._constants and weight is not None and np.prod(weight.dims, dtype=float) <= MOST_FOLDED:
            try:
                self._constants[name] = self.onnx.numpy_helper.to_array(weight)
            except (ValueError, OSError, TypeError):
                return None  # its values are in a file that is not there
        return self._constants.get(name)

    def sizes(self, operator: Operator, place: int, attribute: str = "") -> tuple[int, ...] | None:
        """Return whole numbers that decide a shape: from an attribute in old models, from an input in new ones."""
        if attribute and attribute in operator.attrs:
            value = operator.attrs[attribute]
            return tuple(value) if isinstance(value, tuple) else (value,)
        if not operator.has(place):
            return None
        known = self.constant(operator, place)
        if known is None:
            raise GraphError(
                f"its input {excerpt(operator.inputs[place])} decides a shape and depends on values; export the model "
                "with fixed shapes"
            )
        return tuple(int(size) for size in np.atleast_1d(known))

    def number(self, operator: Operator, place: int) -> float | None:
        """Return an input that is one known number."""
        name = operator.inputs[place] if operator.has(place) else ""
        if name in self._tensors:
            return None
        value = self.constant(operator, place)
        return None if value is None or value.size != 1 else float(value.reshape(-1)[0])

    def shape(self, operator: Operator, place: int) -> tuple[int, ...]:
        """Return the shape of an input."""
        name = operator.inputs[place]
        if name in self._tensors:
            return self._tensors[name].shape
        if name in self._weights:
            return tuple(self._weights[name].dims)
        return tuple(self._constants[name].shape)

    def inferred(self, name: str, like: Tensor | None) -> tuple[tuple[int, ...], str]:
        """Return what ONNX inferred of a value; where it did not, a look like another's."""
        value = self._inferred.get(name)
        if value is not None and value.type.HasField("tensor_type"):
            kind = value.type.tensor_type
            shape = tuple(dim.dim_value for dim in kind.shape.dim)
            whole = kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim)
            if whole and kind.elem_type in TYPES:
                return shape, TYPES[kind.elem_type]
        return (like.shape, like.dtype) if like is not None else ((), "fp32")

    def _folded(self, operator: Operator) -> bool:
        """Work an operator out where all that it reads is known and it is a matter of shapes."""
        if operator.type in {"Shape", "Size"}:
            shape = self.shape(operator, 0)
            start, end = operator.attrs.get("start", 0), operator.attrs.get("end", len(shape))
            whole = np.asarray(shape[start:end], dtype=np.int64)
            self._constants[operator.outputs[0]] = whole if operator.type == "Shape" else np.asarray(np.prod(whole))
            return True
        if any(name in self._tensors for name in operator.inputs):
            return False
        known = [self.constant(operator, place) for place in range(len(operator.inputs)) if operator.has(place)]
        if any(value is None for value in known):
            return False
        if operator.domain not in {"", "ai.onnx"} or "Random" in operator.type or not _short(operator, known):
            return False
        try:
            results = self._evaluated(operator, known)
        except Exception:  # noqa: BLE001 - whatever the reference cannot run stays an operator
            return False
        for name, value in zip(operator.outputs, results, strict=False):
            self._constants[name] = np.asarray(value)
        return True

    def _evaluated(self, operator: Operator, known: Sequence[Any]) -> list[Any]:
        """Run one operator by ONNX's reference implementation."""
        helper = self.onnx.helper
        names = [name for name in operator.inputs if name]
        inputs = [helper.make_tensor_value_info(name, 1, None) for name in dict.fromkeys(names)]
        outputs = [helper.make_tensor_value_info(name, 1, None) for name in operator.outputs if name]
        graph = helper.make_graph([operator.proto], "one", inputs, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.version)])
        evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator(model)
        return list(evaluator.run(None, dict(zip(names, known, strict=True))))

    def _opaque(self, operator: Operator) -> list[Tensor]:
        """Add an operator that nobody described, and say so."""
        sentence = (
            f"{operator.domain or 'ONNX'} {excerpt(operator.type)} has no rule: priced as one kernel that reads its "
            "inputs and writes its outputs once; its arithmetic is missing"
        )
        if sentence not in self.builder.gaps:
            self.builder.gaps.append(sentence)
        inputs = self.tensors(operator)[:MOST_READ]
        made = []
        for name in operator.outputs:
            shape, dtype = self.inferred(name, inputs[0] if inputs else None)
            made.append(self.builder.tensor(shape, dtype, stem=operator.type.lower()))
        self.builder.node("opaque", inputs, made, op=operator.type)
        return made


def _short(operator: Operator, known: Sequence[Any]) -> bool:
    """Return whether a result worked out will be short."""
    if operator.type in {"ConstantOfShape", "Expand", "Tile", "Range", "Resize", "Pad"}:
        if operator.type == "Range":
            return abs(float(known[1]) - float(known[0])) <= MOST_FOLDED * max(abs(float(known[2])), 1e-9)
        target = np.prod(np.abs(np.asarray(known[-1], dtype=float))) if operator.type != "Resize" else np.inf
        return bool(target <= MOST_FOLDED)
    return operator.type not in {"If", "Loop", "Scan", "OneHot"} and sum(value.size for value in known) <= MOST_FOLDED


def _type_of(value: Constant) -> str:
    """Return the element type of an array."""
    names = {"float16": "fp16", "float32": "fp32", "float64": "fp64", "uint16": "int16", "uint32": "int32"}
    names |= {"uint64": "int64", "bfloat16": "bf16"}
    return names.get(str(value.dtype), str(value.dtype))
