"""CUDA source of the kernels that are measured: one 16-byte vector per thread, 256 threads per block.

Values are converted to fp32, every op is done in fp32, and the result is converted back once; a fused kernel
keeps fp32 between its ops. The expression of each op stands in the op table. Where a size is no multiple of the
vector, the last one is read from the padding that every allocation has (512 bytes here) and written element by
element. Default IEEE arithmetic, no fast-math flag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fusesim.ops import Op

THREADS: Final = 256
VECTOR_BYTES: Final = 16

CUDA_TYPES: Final = {"fp64": "double", "fp32": "float", "bf16": "__nv_bfloat16", "fp16": "__half"}
"""Element types that can be measured."""

_HEADERS: Final = "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"

_TEMPLATE: Final = """\
extern "C" __global__ void __launch_bounds__({threads}) {name}({parameters}, const long long n, const int row) {{
    const long long base = (blockIdx.x * (long long){threads} + threadIdx.x) * {vector};
    if (base < n) {{
        alignas({vector_bytes}) {type} x[{vector}]{operands};
{loads}
        #pragma unroll
        for (int j = 0; j < {vector}; ++j) {{
            {compute} v = static_cast<{compute}>(x[j]);
{body}
            x[j] = static_cast<{type}>(v);
        }}
        if (base + {vector} <= n) {{
            *reinterpret_cast<uint4*>(output + base) = *reinterpret_cast<const uint4*>(x);
        }} else {{
            #pragma unroll
            for (int j = 0; j < {vector}; ++j) if (base + j < n) output[base + j] = x[j];
        }}
    }}
}}
"""

EMPTY_SOURCE: Final = 'extern "C" __global__ void empty() {}\n'


def vector_length(itemsize: int) -> int:
    """Return how many elements one thread handles."""
    return VECTOR_BYTES // itemsize


def blocks(elements: int, itemsize: int) -> int:
    """Return how many thread blocks a kernel over so many elements has."""
    return -(-elements // (THREADS * vector_length(itemsize)))


def chain_source(ops: Sequence[Op], dtype: str, itemsize: int, name: str = "chain") -> str:
    """Return the source of one kernel that does these ops one after the other.

    Parameters
    ----------
    ops : sequence of Op
        The ops; each must have a CUDA expression.
    dtype : str
        Element type, a key of `CUDA_TYPES`.
    itemsize : int
        Bytes per element.
    name : str
        Name of the kernel.

    Returns
    -------
    str
        Parameters are the input, the output, the extra tensors and the extra rows in the order of the ops, the
        number of elements, and the length of a row.
    """
    kind, compute = CUDA_TYPES[dtype], "double" if dtype == "fp64" else "float"
    tensors = [f"t{index}" for index in range(sum(op.tensors for op in ops))]
    rows = [f"r{index}" for index in range(sum(op.rows for op in ops))]
    pointers = [f"const {kind}* __restrict__ {name}" for name in ("input", *tensors, *rows)]
    pointers.insert(1, f"{kind}* __restrict__ output")
    vector = vector_length(itemsize)
    return _HEADERS + _TEMPLATE.format(
        threads=THREADS,
        name=name,
        parameters=", ".join(pointers),
        vector=vector,
        vector_bytes=VECTOR_BYTES,
        type=kind,
        compute=compute,
        operands="".join(f", {name}_[{vector}]" for name in (*tensors, *rows)),
        loads="\n".join(_loads(tensors, rows, vector)),
        body=_body(ops, compute),
    )


def _loads(tensors: Sequence[str], rows: Sequence[str], vector: int) -> list[str]:
    """Return the loads of a vector: 16 bytes each, element by element for rows of odd length."""
    load = "*reinterpret_cast<uint4*>({to}) = *reinterpret_cast<const uint4*>({source} + {at});"
    sources = [("x", "input"), *((f"{name}_", name) for name in tensors)]
    lines = [load.format(to=to, source=source, at="base") for to, source in sources]
    if rows:
        lines.append("const int column = static_cast<int>(n >> 31 ? base % row : (unsigned)base % (unsigned)row);")
    for name in rows:
        aligned = load.format(to=f"{name}_", source=name, at="column")
        wrapped = f"for (int j = 0; j < {vector}; ++j) {name}_[j] = {name}[(column + j) % row];"
        lines.append(f"if (row % {vector} == 0) {{ {aligned} }} else {{ {wrapped} }}")
    return [" " * 8 + line for line in lines]


def _body(ops: Sequence[Op], compute: str) -> str:
    """Return the ops as statements on `v`, element j of a vector."""
    counts = {"t": 0, "r": 0}
    lines = []
    for op in ops:
        symbol = "t" if op.tensors else "r" if op.rows else ""
        if symbol:
            value = f"static_cast<{compute}>({symbol}{counts[symbol]}_[j])"
            counts[symbol] += 1
            lines.append(f"{{ const {compute} {symbol} = {value}; v = {op.cuda}; }}")
        else:
            lines.append(f"v = {op.cuda};")
    return "\n".join(" " * 12 + line for line in lines)
