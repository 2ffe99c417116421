"""Readable source of a plan's kernels, in CUDA C++ and in Triton, fused and as kernels of their own.

>>> from fusesim import patterns, planning
>>> from fusesim.emit import emit
>>> plan = planning.plan(patterns.bias_relu(), "vertical")
>>> print(emit(plan).splitlines()[9])
// add -> relu: one kernel instead of 2.
"""

from fusesim.emit.api import emit, emit_separate
from fusesim.emit.evaluate import evaluate

__all__ = ["emit", "emit_separate", "evaluate"]
