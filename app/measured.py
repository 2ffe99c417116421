"""The measurements that the chain page lays over its curves: read once, when the app is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusesim.readers import read_measured

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fusesim.readers import MeasuredFile

FILE: Final = Path(__file__).parent / "data" / "h200_stream_cpp.json"
"""The lesson's five ops in bf16 on one H200, launched from C++; the file holds its protocol."""

GPU: Final = "one H200"
"""What they were measured on, in words."""


def load() -> MeasuredFile:
    """Read the measurements.

    Examples
    --------
    >>> load().device, len(load().rows)
    ('h200-sxm', 54)
    """
    return read_measured(FILE)


class Rotation:
    """Over how many buffer sets the measurements rotated: 256, and fewer where a set is large."""

    def __init__(self, measured: MeasuredFile, itemsize: int) -> None:
        sets = {row.elements: row.sets for row in measured.rows}
        self.sizes = np.log2(np.array(sorted(sets), dtype=np.float64) * itemsize)
        self.sets = np.log2(np.array([sets[size] for size in sorted(sets)], dtype=np.float64))

    def __call__(self, tensor_bytes: ArrayLike) -> Any:
        """Return the number of sets for tensors of so many bytes."""
        return np.round(2.0 ** np.interp(np.log2(tensor_bytes), self.sizes, self.sets))
