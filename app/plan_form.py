"""Settings of the page of patterns and plans: which pattern, how large, who fuses, and what is asked."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fusesim import units
from fusesim.errors import InputError, excerpt
from fusesim.inputs import choice
from fusesim.ops import find_dtype
from fusesim.patterns import PATTERNS, parameters
from fusesim.patterns.arguments import FLOATING
from fusesim.plans import MODELS
from fusesim.schedule import LAUNCH_MODES
from fusesim.strategies import STRATEGIES

from . import ids
from .chain_text import format_chain, parse_chain
from .controls import short_text
from .fields import Field, Form, Values, decimal
from .forms import Part, Sized, slider_of
from .layout import Buttons, Entry, Menu, Slider, Switch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .catalogue import Catalogue

PATTERN: Final = "pattern"
STRATEGY: Final = "strategy"
COMPILE: Final = "compile"
ASK: Final = "ask"
PICK: Final = "pick"
EDGE: Final = "edge"
EDITS: Final = "edits"
TOGGLE: Final = "toggle"

MAX_EDITS: Final = 16
MAX_COMPILE: Final = 600.0
"""Longest time that compiling can be set to. [s]"""

_NAME: Final = re.compile(r"[A-Za-z_][\w.@]{0,59}", re.ASCII)

HIGHEST: Final[Mapping[str, int]] = {
    "elements": 30, "rows": 20, "cols": 18, "tokens": 18, "hidden": 15, "inner": 16, "m": 15, "k": 15, "n": 15,
    "batch": 16, "seq": 17, "heads": 8, "head_dim": 9, "cin": 12, "cout": 12, "size": 9, "vocab": 18,
}  # fmt: skip
"""Sizes with a slider, and the power of two at which it ends."""

SWITCHES: Final = {"composite": "As one op of the framework", "causal": "Causal mask", "upcast": "Computed in fp32"}
LABELS: Final[Mapping[str, str]] = {
    "elements": "Elements", "rows": "Rows", "cols": "Columns", "tokens": "Tokens", "hidden": "Hidden size",
    "inner": "Inner size", "m": "m", "k": "k", "n": "n", "batch": "Batch", "seq": "Sequence length", "heads": "Heads",
    "head_dim": "Size of a head", "cin": "Channels in", "cout": "Channels out", "size": "Image size",
    "vocab": "Vocabulary",
}  # fmt: skip
NAMES: Final[Mapping[str, str]] = {
    "chain": "Chain of element-wise ops", "bias_relu": "Bias and ReLU", "rmsnorm": "RMSNorm",
    "add_rmsnorm": "Residual add and RMSNorm", "layernorm": "Layer norm", "softmax": "Softmax", "gelu": "GELU",
    "swiglu": "SwiGLU", "swiglu_mlp": "SwiGLU with its products", "rope": "Rotary embedding",
    "dropout_residual_layernorm": "Dropout, residual, layer norm", "matmul": "Matrix product",
    "matmul_bias_relu": "Product, bias, ReLU", "matmul_bias_gelu": "Product, bias, GELU",
    "conv_bn_relu": "Convolution, batch norm, ReLU", "attention": "Attention",
    "fp8_rowwise_quant": "Quantise rows to fp8", "cross_entropy": "Cross entropy", "adam_step": "Adam step",
    "independent4": "Four independent ops", "transformer_block": "Transformer block", "dlrm": "Recommender (DLRM)",
}  # fmt: skip
"""What patterns are called in the menu."""


def _size(raw: Any, label: str) -> int | None:
    """Read an exact size; empty is the pattern's own. What is wrong with it is said of the label beside it."""
    text = short_text(label, str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw).strip()
    try:
        return units.parse_elements(text) if text else None
    except InputError as error:
        raise InputError(f"{label}{str(error).removeprefix('elements')}") from error


def _exponent(raw: Any, _: Values) -> int:
    """Read the slider of a size."""
    return 1 << int(decimal("the size's exponent", raw, 0, 40))


def _ops(raw: Any) -> int | tuple[str, ...] | None:
    """Read a chain: a number of ops, or their names."""
    text = short_text("the chain", str(raw) if isinstance(raw, int) else raw, 400).strip()
    if re.fullmatch(r"\d{1,2}", text, re.ASCII) and 1 <= int(text) <= 32:  # noqa: PLR2004 - as on the chain page
        return int(text)
    return parse_chain(text) if text else None


def _flag(raw: Any) -> bool:
    return choice("switch", raw, ("yes", "no")) == "yes"


def _pair(raw: Any) -> tuple[str, ...]:
    """Read the ops that are asked about: none, one or two."""
    text = short_text("ops", raw, 130)
    names = tuple(filter(None, text.split(",")))
    if len(names) > 2 or not all(map(_NAME.fullmatch, names)):  # noqa: PLR2004 - two ops
        raise InputError(f'"{excerpt(text)}" is not the names of one or two ops')
    return names


def _picked(raw: Any, values: Values) -> tuple[str, ...]:
    """Add an op to those asked about, take it away where it is one, begin anew after two."""
    (name,) = _pair(raw) if len(_pair(raw)) == 1 else ("",)
    if not name:
        raise InputError("an op has one name")
    before = values[ASK]
    if name in before:
        return tuple(each for each in before if each != name)
    return (*before, name) if len(before) == 1 else (name,)


def _edge(raw: Any, _: Values) -> tuple[str, ...]:
    return _pair(short_text("an edge", raw, 130).replace("~", ",")) if raw else ()


def _edits(raw: Any) -> tuple[tuple[str, str], ...]:
    """Read edges that are to be cut or joined."""
    found = [tuple(part.split("~")) for part in short_text("edits", raw, 1200).split(",") if part]
    if len(found) > MAX_EDITS or not all(len(pair) == 2 and all(map(_NAME.fullmatch, pair)) for pair in found):  # noqa: PLR2004
        raise InputError(f"edits are at most {MAX_EDITS} edges such as mul~add, with commas between")
    return tuple((one, other) for one, other in found)


def _toggled(raw: Any, values: Values) -> tuple[tuple[str, str], ...]:
    """Cut or join an edge, or take that back; empty takes all back."""
    if raw == "":
        return ()
    wanted = _edits(raw)
    kept = tuple(pair for pair in values[EDITS] if pair not in wanted)
    return _edits(_written((*kept, *(pair for pair in wanted if pair not in values[EDITS]))))


def _written(edits: tuple[tuple[str, str], ...]) -> str:
    return ",".join("~".join(pair) for pair in edits)


def _optional(value: Any) -> str:
    return "" if value is None else str(value)


def _chain(value: Any) -> str:
    return _optional(value) if value is None or isinstance(value, int) else format_chain(value, times="*", between=",")


def _share(raw: Any) -> float | None:
    return decimal("p", raw, 0, 0.999) if str(raw).strip() else None


def _device(catalogue: Catalogue) -> Field:
    return Field(name=ids.DEVICE, default="h200-sxm", read=lambda raw: catalogue.find(short_text("device", raw)).id)


def plan_form(catalogue: Catalogue, pattern: str = "rmsnorm") -> Form:
    """Return the settings of the page; sizes that are None are the pattern's own."""
    sizes = [
        Field(
            name=name,
            default=None,
            read=partial(_size, label=LABELS[name]),
            write=_optional,
            also={slider_of(name): _exponent},
        )
        for name in HIGHEST
    ]
    flags = [
        Field(name=name, default=None, read=_flag, write=lambda flag: "yes" if flag else "no") for name in SWITCHES
    ]
    others = [
        Field(name="ops", default=None, read=_ops, write=_chain, also={"ops-slider": lambda raw, _: _ops(raw)}),
        Field(name="kernel", default=None, read=partial(_size, label="Kernel size"), write=_optional),
        Field(name="p", default=None, read=_share, write=_optional),
        Field(name="approximate", default=None, read=lambda raw: choice("form", raw, ("none", "tanh"))),
        Field(name=ids.DTYPE, default=None, read=_dtype),
    ]
    own = (*(each.name for each in (*sizes, *flags, *others)), ASK, EDITS)
    return Form(
        Field(name=PATTERN, default=pattern, read=lambda raw: choice("pattern", raw, tuple(PATTERNS)), clears=own),
        *sizes,
        *flags,
        *others,
        _device(catalogue),
        Field(name=ids.LAUNCH, default="graph", read=lambda raw: choice("launch mode", raw, LAUNCH_MODES)),
        Field(name=ids.MODEL, default="calibrated", read=lambda raw: choice("model", raw, MODELS)),
        Field(
            name=STRATEGY,
            default="inductor",
            read=lambda raw: choice("strategy", raw, tuple(STRATEGIES)),
            clears=(EDITS,),
        ),
        Field(
            name=COMPILE,
            default=30.0,
            read=lambda raw: decimal("compile time", raw, 0, MAX_COMPILE),
            write="{:g}".format,
        ),
        Field(name=ASK, default=(), read=_pair, write=",".join, also={PICK: _picked, EDGE: _edge}),
        Field(name=EDITS, default=(), read=_edits, write=_written, also={TOGGLE: _toggled}),
    )


def _dtype(raw: Any) -> str:
    return choice("element type", find_dtype(short_text("dtype", raw)).name, FLOATING)


def arguments(values: Values) -> dict[str, Any]:
    """Return what a pattern is called with: what it takes and what was set."""
    return {name: values[name] for name in parameters(values[PATTERN]) if values.get(name) is not None}


def in_force(values: Values) -> dict[str, Any]:
    """Return the arguments of the pattern, those at their defaults too."""
    return parameters(values[PATTERN]) | arguments(values)


def parts(catalogue: Catalogue) -> tuple[Part, ...]:
    """Return the controls of the page's panel."""
    devices = Menu(id=ids.DEVICE, label="Device", options=[(device.id, device.name) for device in catalogue.profiles])
    launches = (("graph", "in a graph"), ("stream", "on a stream"), ("latency", "from idle"))
    strategies = [(name, f"{name}: {told}") for name, told in STRATEGIES.items()]
    return (
        *pattern_parts(),
        Part(owner=STRATEGY, controls=(Menu(id=STRATEGY, label="Who fuses", options=strategies),)),
        Part(owner=ids.DEVICE, controls=(devices,)),
        Part(owner=ids.LAUNCH, controls=(Switch(id=ids.LAUNCH, label="Launched", options=launches),)),
        Part(
            owner=ids.MODEL,
            controls=(Switch(id=ids.MODEL, label="Model", options=[(name, name) for name in reversed(MODELS)]),),
        ),
        Part(owner=COMPILE, controls=(Slider(id=COMPILE, label="Time to compile", low=0, high=120, step=1),)),
    )


def pattern_parts() -> tuple[Part, ...]:
    """Return the controls of a pattern and its sizes."""
    sizes = [
        Part(owner=name, controls=(Sized(id=name, label=LABELS[name], low=0, high=high),))
        for name, high in HIGHEST.items()
    ]
    yes_no = (("yes", "yes"), ("no", "no"))
    return (
        Part(owner=PATTERN, controls=(Menu(id=PATTERN, label="Pattern", options=list(NAMES.items())),)),
        Part(
            owner="ops",
            controls=(
                Slider(id="ops-slider", label="Operations", low=1, high=32, step=1),
                Entry(id="ops", label="or their names", placeholder="gelu x8, add", longest=400),
            ),
        ),
        *sizes,
        Part(owner="kernel", controls=(Entry(id="kernel", label="Kernel size", placeholder="3"),)),
        Part(owner="p", controls=(Entry(id="p", label="Share dropped, p", placeholder="0.1"),)),
        Part(
            owner="approximate",
            controls=(Switch(id="approximate", label="Form", options=(("none", "erf"), ("tanh", "tanh"))),),
        ),
        *(
            Part(owner=name, controls=(Switch(id=name, label=label, options=yes_no),))
            for name, label in SWITCHES.items()
        ),
        Part(
            owner=ids.DTYPE,
            controls=(Switch(id=ids.DTYPE, label="Element type", options=[(name, name) for name in FLOATING]),),
        ),
    )


def widgets(form: Form, values: Values) -> dict[str, str]:
    """Return what each control has to hold."""
    used = in_force(values)
    held = {name: each.write(values[name]) for name, each in form.fields.items() if name not in {ASK, EDITS}}
    for name in HIGHEST:
        size = used.get(name, 1)
        held[name] = str(size)
        held[slider_of(name)] = str(min(max(round(math.log2(size)), 0), HIGHEST[name]))
    ops = used.get("ops", 1)
    held["ops-slider"] = str(ops if isinstance(ops, int) else len(ops))
    held["ops"] = _chain(ops)
    held |= {name: _optional(used.get(name)) for name in ("kernel", "p", "approximate", ids.DTYPE)}
    held |= {name: "yes" if used.get(name) else "no" for name in SWITCHES}
    return held


def hidden(values: Values) -> list[str]:
    """Return the ids of controls that the pattern does not take."""
    taken = in_force(values)
    own = (*HIGHEST, "ops", "kernel", "p", "approximate", *SWITCHES, ids.DTYPE)
    return [ids.group(name) for name in own if name not in taken]


def example(*names: str, label: str = "Patterns to begin with") -> Buttons:
    """Return buttons that pick a pattern."""
    return Buttons(change=PATTERN, options=[(NAMES[name], name) for name in names], label=label)
