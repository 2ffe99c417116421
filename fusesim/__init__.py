"""fusesim: what a chain or graph of GPU operations costs as separate kernels and fused, and why.

>>> import fusesim
>>> price = fusesim.price_chain(5, 8192 * 4096, dtype="bf16", device="h100-sxm")
>>> f"{price.unfused.time * 1e6:.1f} us, fused {price.fused.time * 1e6:.1f} us: {price.speedup:.2f}x"
'220.3 us, fused 44.1 us: 5.00x'
"""

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
    from fusesim.planning import plan

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
    "device",
    "devices",
    "from_torch",
    "load_calibration",
    "load_device",
    "plan",
    "price_chain",
]


def __getattr__(name: str) -> Any:
    """Load what a price of a chain does not need when it is first asked for."""
    if name == "plan":
        from fusesim.planning import plan  # noqa: PLC0415 - planners would slow every start down

        return plan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
