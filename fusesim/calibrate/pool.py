"""The memory that cases are measured on: one allocation, filled anew with normal numbers for every case."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fusesim.calibrate.cases import Case, aligned, own_tensors, shared_tensors
from fusesim.errors import MeasurementError
from fusesim.ops import DTYPES

LARGEST: Final = 18 << 30
SMALLEST: Final = 2 << 30
SHARE: Final = 0.8
"""The pool takes this share of the memory that is free, at most `LARGEST`; below `SMALLEST` nothing is measured."""

SOURCE: Final = r"""
extern "C" __global__ void fill(unsigned short* out, const long long n, const int kind) {
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += 256LL * gridDim.x) {
        unsigned long long z = (i + 1) * 0x9E3779B97F4A7C15ULL;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL; z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL; z ^= z >> 31;
        const float u = ((unsigned)(z >> 32) + 1.0f) * 2.3283064e-10f, w = (unsigned)z * 2.3283064e-10f;
        const float g = sqrtf(-2.0f * logf(fminf(u, 1.0f))) * cospif(2.0f * w);
        if (kind == 2) { ((double*)out)[i] = g; }
        else if (kind == 1) { ((float*)out)[i] = g; }
        else if (kind == 0) { out[i] = (unsigned short)(__float_as_uint(g) >> 16); }
        else {
            unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(g)); out[i] = h;
        }
    }
}
"""
"""Normal numbers from a hash of the index (splitmix64, Box and Muller)."""
_KINDS: Final = {"bf16": 0, "fp32": 1, "fp64": 2, "fp16": 3}


def pool_size(free: int) -> int:
    """Return the bytes to measure on where so many are free.

    Raises
    ------
    MeasurementError
        If that is too little.
    """
    size = min(int(SHARE * free), LARGEST)
    if size < SMALLEST:
        least = SMALLEST / SHARE
        raise MeasurementError(
            f"the GPU has {free / 1e9:.1f} GB of memory free and measuring needs {least / 1e9:.1f} GB; "
            "end what else runs on it"
        )
    return size


class Pool:
    """One allocation, carved into the tensors of one case at a time."""

    def __init__(self, cupy: Any, stream: Any) -> None:
        free, _ = cupy.cuda.runtime.memGetInfo()
        self.cupy, self.stream = cupy, stream
        self.size = pool_size(free)
        self.memory = cupy.cuda.alloc(self.size)
        self.kernel = cupy.RawModule(code=SOURCE, options=("--std=c++17",)).get_function("fill")

    def carve(self, case: Case, sets: int) -> tuple[list[list[int]], list[int]]:
        """Return the addresses of each set's own tensors, and of the shared ones, all filled with normal numbers.

        Tensors lie as separately allocated ones would: all inputs, then all outputs, then all of each extra operand.
        """
        sizes = [aligned(elements, case.dtype) for elements in own_tensors(case)]
        common = [aligned(elements, case.dtype) for elements in shared_tensors(case)]
        self._fill(case.dtype, sets * sum(sizes) + sum(common))
        shared = [self.memory.ptr + sum(common[:index]) for index in range(len(common))]
        start = self.memory.ptr + sum(common)
        starts = [start + sets * sum(sizes[:index]) for index in range(len(sizes))]
        own = [[first + which * size for first, size in zip(starts, sizes, strict=True)] for which in range(sets)]
        return own, shared

    def _fill(self, dtype: str, size: int) -> None:
        """Write over all the memory of a case; the one before it left its results there."""
        count = -(-size // DTYPES[dtype].itemsize)
        with self.stream:
            arguments = (np.uintp(self.memory.ptr), np.int64(count), np.int32(_KINDS[dtype]))
            self.kernel((4096,), (256,), arguments)
        self.stream.synchronize()

    def view(self, address: int, shape: tuple[int, ...], kind: Any) -> Any:
        """Return memory of the pool as an array of CuPy's."""
        memory = self.cupy.cuda.MemoryPointer(self.memory.mem, address - self.memory.ptr)
        return self.cupy.ndarray(shape, kind, memory)
