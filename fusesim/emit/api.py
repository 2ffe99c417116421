"""Source text of a plan's groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.emit.cuda import Kernel, cuda_kernel, file_of
from fusesim.emit.nest import Nest, nest_of
from fusesim.emit.part import part_of, separate_parts
from fusesim.emit.statistics import with_statistics
from fusesim.emit.text import kernel_name
from fusesim.emit.triton import triton_file
from fusesim.inputs import choice

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan

LANGUAGES: Final = ("cuda", "triton")
"""Languages that source is written in."""


def emit(plan: FusionPlan, group: int = 0, language: str = "cuda", *, fused: bool = True) -> str:
    """Return the source of a group's kernel, or of its ops each as a kernel of its own.

    Parameters
    ----------
    plan : FusionPlan
        The plan.
    group : int
        The place of the group in the plan.
    language : str
        ``"cuda"``, C++ for nvcc or CuPy's RawModule, or ``"triton"``, a Python module with a launcher.
    fused : bool
        Whether one kernel does the whole group; else one kernel per op of the plan's graph.

    Returns
    -------
    str
        A whole file. Composite ops are written out first.

    Raises
    ------
    InputError
        If there is no such group or language.
    PlanError
        If the group is no loop of pointwise ops and row reductions over one space.

    Notes
    -----
    Values are computed in fp32 between loads and stores (fp64 and whole numbers in their own type); a cast of the
    graph to a narrower type rounds. Sizes and strides are the plan's; pointers are aligned to 16 bytes and lead to a
    tensor's first value. A row kernel has one block per row, so that few long rows leave a GPU idle; a reduction that
    does not run along memory reads it strided. Where a graph read from a PyTorch program uses a kind for a like op
    (`exp` for expm1), which costs the same and computes another value, no source is written.
    """
    language = choice("language", language, LANGUAGES)
    parts = [part_of(plan, group)] if fused else separate_parts(plan, group)
    return _file([nest_of(with_statistics(part)) for part in parts], language, len(plan.groups[group].nodes))


def emit_separate(plan: FusionPlan, group: int = 0, language: str = "cuda") -> str:
    """Return the source of a group's ops, each as a kernel of its own; as `emit` with ``fused=False``."""
    return emit(plan, group, language, fused=False)


def kernels_of(plan: FusionPlan, group: int = 0, *, fused: bool = True) -> list[Kernel]:
    """Return a group's kernel, or those of its ops, in CUDA C++ with how to launch them.

    Raises
    ------
    InputError
        If there is no such group.
    PlanError
        If the group cannot be emitted.
    """
    parts = [part_of(plan, group)] if fused else separate_parts(plan, group)
    return _cuda([nest_of(with_statistics(part)) for part in parts], len(plan.groups[group].nodes))


def _file(nests: list[Nest], language: str, separate: int) -> str:
    """Return nests as a file."""
    if language == "triton":
        return triton_file(nests, _names(nests), separate)
    return file_of(_cuda(nests, separate))


def _cuda(nests: list[Nest], separate: int) -> list[Kernel]:
    """Return nests as kernels."""
    count = separate if len(nests) == 1 else 1
    return [cuda_kernel(nest, count, name) for nest, name in zip(nests, _names(nests), strict=True)]


def _names(nests: list[Nest]) -> list[str]:
    """Return names for kernels, each its own."""
    names: list[str] = []
    for nest in nests:
        name = kernel_name(nest.part)
        names.append(name if name not in names else f"{name}_{len(names)}")
    return names
