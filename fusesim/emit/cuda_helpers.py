"""What CUDA kernels share: 16-byte vectors, and reductions over the threads of a block."""

from __future__ import annotations

from typing import Final

from fusesim.emit.formulas import spell
from fusesim.emit.text import bare
from fusesim.emit.values import REDUCTIONS

HEADERS: Final = {"bf16": "cuda_bf16.h", "fp16": "cuda_fp16.h", "fp8": "cuda_fp8.h"}
"""Headers of CUDA that define an element type."""

VECTOR: Final = """\
// Neighbouring values that one thread moves together: 16 bytes are one memory instruction instead of many.
template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vector { T value[N]; };
template <typename T, int N> __device__ Vector<T, N> load(const T* source) {
    return *reinterpret_cast<const Vector<T, N>*>(source);
}
template <typename T, int N> __device__ void store(T* target, const Vector<T, N>& values) {
    *reinterpret_cast<Vector<T, N>*>(target) = values;
}"""

INFINITY: Final = "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif"
NAN: Final = "#ifndef NAN\n#define NAN __int_as_float(0x7fffffff)\n#endif"
"""Run-time compilation has no math.h."""

_BLOCK: Final = """\
// {what} over the threads of a block; every thread returns it.
// Lanes of a warp exchange registers; warps put one value each into shared memory.
template <typename T> __device__ T {name}(T value) {{
    __shared__ T shared[32];
    for (int lanes = 16; lanes > 0; lanes /= 2) {{
        const T other = __shfl_xor_sync(0xffffffff, value, lanes);
        value = {join_lanes};
    }}
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    T total = shared[0];
    for (int warp = 1; warp < blockDim.x / 32; ++warp) {{
        const T other = shared[warp];
        total = {join_warps};
    }}
    __syncthreads();  // nobody writes `shared` again before everybody has read it
    return total;
}}"""

_PLACE: Final = """\
// The {what} value of a block and its first place in the row; every thread gets both.
template <typename T> __device__ void {name}(T& value, long long& place) {{
    __shared__ T values[32];
    __shared__ long long places[32];
    for (int lanes = 16; lanes > 0; lanes /= 2) {{
        const T other = __shfl_xor_sync(0xffffffff, value, lanes);
        const long long where = __shfl_xor_sync(0xffffffff, place, lanes);
        if (other {better} value || (other == value && where < place)) {{ value = other; place = where; }}
    }}
    if (threadIdx.x % 32 == 0) {{ values[threadIdx.x / 32] = value; places[threadIdx.x / 32] = place; }}
    __syncthreads();
    for (int warp = 0; warp < blockDim.x / 32; ++warp) {{
        const T other = values[warp];
        const long long where = places[warp];
        if (other {better} value || (other == value && where < place)) {{ value = other; place = where; }}
    }}
    __syncthreads();  // nobody writes shared memory again before everybody has read it
}}"""

_ADDED: Final = frozenset({"sum", "mean", "prod", "any", "all"})
"""Reductions whose order of operands is a matter of looks."""

_NAMES: Final = {
    "sum": "sum",
    "mean": "sum",
    "prod": "product",
    "amax": "max",
    "amin": "min",
    "any": "any",
    "all": "all",
}


def reduction_name(kind: str) -> str:
    """Return what the reduction of a block is called."""
    return f"block_{_NAMES[kind]}"


def place_name(kind: str) -> str:
    """Return what the search of a block is called."""
    return "block_largest" if kind in {"max", "argmax"} else "block_smallest"


def joined(kind: str, one: str, other: str) -> str:
    """Return how a reduction joins two values; the first is the total, which the second may be no number beside."""
    return spell(
        REDUCTIONS[kind].join, "cuda", "fp32", {"a": one, "b": other} if kind in _ADDED else {"a": other, "b": one}, {}
    )


def block_reduction(kind: str) -> str:
    """Return the function that reduces over a block."""
    word = _NAMES[kind]
    return _BLOCK.format(
        what=word.capitalize(),
        name=reduction_name(kind),
        join_lanes=bare(joined(kind, "value", "other")),
        join_warps=bare(joined(kind, "total", "other")),
    )


def block_place(kind: str) -> str:
    """Return the function that finds the largest or smallest value of a block."""
    return _PLACE.format(
        what=place_name(kind).partition("_")[2], name=place_name(kind), better=REDUCTIONS[kind].join[2]
    )
