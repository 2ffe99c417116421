"""fusesim: what a chain or graph of GPU operations costs as separate kernels and fused, and why.

>>> import fusesim
>>> price = fusesim.price_chain(5, 8192 * 4096, dtype="bf16", device="h100-sxm")
>>> f"{price.unfused.time * 1e6:.1f} us, fused {price.fused.time * 1e6:.1f} us: {price.speedup:.2f}x"
'220.3 us, fused 44.1 us: 5.00x'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fusesim.api import find_device as device
from fusesim.api import list_devices as devices
from fusesim.api import load_calibration, load_device
from fusesim.chains import price_chain
from fusesim.errors import (
    CalibrationError,
    FusesimError,
    GraphError,
    HardwareSpecError,
    InputError,
    MeasurementError,
    PlanError,
)
from fusesim.frontends.torch import from_torch
from fusesim.ops import OPS, Op
from fusesim.records import ChainPrice, Price

if TYPE_CHECKING:
    from fusesim import patterns
    from fusesim.checking import check
    from fusesim.frontends.hlo import from_hlo, plan_from_hlo
    from fusesim.frontends.onnx import from_onnx
    from fusesim.frontends.trace import from_trace, read_trace
    from fusesim.planning import plan
    from fusesim.plans import compare, price
    from fusesim.ranking import rank

__version__ = "0.1.0"

__all__ = [
    "OPS",
    "CalibrationError",
    "ChainPrice",
    "FusesimError",
    "GraphError",
    "HardwareSpecError",
    "InputError",
    "MeasurementError",
    "Op",
    "PlanError",
    "Price",
    "check",
    "compare",
    "device",
    "devices",
    "from_hlo",
    "from_onnx",
    "from_torch",
    "from_trace",
    "load_calibration",
    "load_device",
    "patterns",
    "plan",
    "plan_from_hlo",
    "price",
    "price_chain",
    "rank",
    "read_trace",
]


_LATER = {
    "check": "checking",
    "rank": "ranking",
    "compare": "plans",
    "price": "plans",
    "plan": "planning",
    "from_hlo": "frontends.hlo",
    "from_onnx": "frontends.onnx",
    "from_trace": "frontends.trace",
    "plan_from_hlo": "frontends.hlo",
    "read_trace": "frontends.trace",
}
"""What a price of a chain does not need, and where it stands."""


def __getattr__(name: str) -> Any:
    """Load planners and frontends when they are first asked for: they would slow every start down."""
    if name in {"patterns", "why"}:
        return import_module(f"fusesim.{name}")
    if name in _LATER:
        return getattr(import_module(f"fusesim.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
