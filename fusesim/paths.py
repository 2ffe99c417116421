"""Whose kernels run: for each software path the shape of its element-wise kernels.

A new path is a new row. What a path's host costs per launch is measured and stands in a calibration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The shape of a path's element-wise kernels.

    `threads` per block; `vector_bytes` that one thread reads at once, 0 where it handles one element whatever its
    size; `overhead`, instructions per element in place of the vectorised kernel's, None where they are the same;
    `like` names the path whose kernels these are taken to resemble, where nothing was fitted to their own.
    """

    threads: int
    vector_bytes: int
    overhead: float | None = None
    like: str = ""
    note: str = ""

    def vector(self, itemsize: int) -> int:
        """Return how many elements one thread handles."""
        return max(self.vector_bytes // itemsize, 1)


STYLES: Final = {
    "cuda": Style(threads=256, vector_bytes=16, note="one 16-byte vector per thread, 256 threads per block"),
    "cupy": Style(threads=128, vector_bytes=0, overhead=30, note="one element per thread, 128 threads per block"),
    "torch": Style(threads=256, vector_bytes=16, like="cuda", note="taken to be like those of path cuda"),
    "inductor": Style(threads=256, vector_bytes=16, like="cuda", note="taken to be like those of path cuda"),
}
"""Kernels of each path. CuPy's ufuncs and ElementwiseKernels start blocks of 128 threads, one element each, so the
rate at which blocks start binds them: 2.1e11 elements/s whatever the element type (measured on an H200)."""
