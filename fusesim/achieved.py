"""Measured kernels against what they should take: what each op of a trace reached, and what keeps it from more.

Three times of an op: `measured`; `expected`, what kernels of its class take by the model; and `attainable`, the same
bytes at the rate of memory or cache and the same products on the matrix units, behind a kernel's floor and latency.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from fusesim import units

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fusesim.plan_run import Kernel, PlanRun

CLASSES: Final = {
    "strided_converted": "an operand is broadcast or strided, and types are converted",
    "strided": "it is strided: an operand is broadcast or has gaps, so each element's place is worked out",
    "transposed": "it is transposed: the operand's fastest dimension is not the result's, so lines are not used whole",
    "converted": "types are converted as it loads",
    "narrowed": "types are converted as it stores",
    "layout": "it only changes the layout in memory",
    "concat_strided": "its operands lie in unlike ways, so values are copied one by one",
    "moments": "one block goes through a whole group, a value per thread at a time",
    "bilinear": "a thread goes through all channels of all pictures at one place",
    "direct": "it is so small that the matrix units are left out",
    "matmul_odd": "its sizes are not multiples of what the matrix units load at once",
    "conv_odd": "its channels are not multiples of what the matrix units load at once",
}
"""Why a class of kernels stays below the rate of its bytes, by how its name begins."""

BOUNDS: Final = {
    "launch": "it is short: starting it and its first bytes take most of its time",
    "issue": "instructions or too few blocks decide, not bytes",
    "sfu": "special functions decide, not bytes",
    "tensor": "the tiles of its product do not fill the matrix units",
    "fma": "the tiles of its product do not fill the arithmetic units",
    "dram": "its class reaches less of the memory's rate",
    "l2": "its class reaches less of the cache's rate",
}

GOOD: Final = 0.8
"""Share of the attainable rate from which nothing needs a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Achieved:
    """What ops of one form reached. [s].

    `op` is the first of `count`, `kernels` what it launched, `measured`, `expected` and `attainable` are for one of
    them, `total` is what all took. `unexplained` says that it took longer than the model's interval allows.
    """

    op: str
    kind: str
    count: int
    kernels: tuple[str, ...]
    measured: float
    expected: float
    attainable: float
    total: float
    unexplained: bool
    reason: str

    @property
    def share(self) -> float:
        """What it reached of what is attainable."""
        return self.attainable / self.measured if self.measured else 1.0

    @property
    def ratio(self) -> float:
        """Measured over expected."""
        return self.measured / self.expected if self.expected else 1.0

    def sentence(self) -> str:
        """Say it in words."""
        said = f"{self.op} runs at {units.format_share(self.share)} of what it should"
        if self.reason:
            said += f", because {self.reason}"
        if self.unexplained:
            said += f"; it took {units.format_ratio(self.ratio)} what such kernels take"
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON. [s]."""
        return asdict(self) | {"share": self.share, "ratio": self.ratio, "sentence": self.sentence()}


def achieved(run: PlanRun, measured: Mapping[str, Sequence[tuple[str, float]]]) -> tuple[Achieved, ...]:
    """Return what each op reached, the one with the most time to win first.

    Parameters
    ----------
    run : PlanRun
        The eager plan as priced.
    measured : mapping of str to sequence of (str, float)
        Of each op its kernels, and how long each took. [s]

    Notes
    -----
    Ops of the same kind and shapes are one entry. A profiler's durations are 1 to 3 us off for short kernels, so a
    share below a few microseconds says little.
    """
    found: dict[Any, list[tuple[str, float, list[Kernel]]]] = {}
    for name, mine in _by_op(run).items():
        took = sum(time for _, time in measured.get(name, ()))
        if took > 0:
            found.setdefault(_form(run, name), []).append((name, took, mine))
    made = [_entry(run, same, measured) for same in found.values()]
    return tuple(sorted(made, key=lambda one: (one.attainable - one.measured) * one.count))


def _by_op(run: PlanRun) -> dict[str, list[Kernel]]:
    """Return the kernels of each op of a plan in which no op shares one."""
    found: dict[str, list[Kernel]] = {}
    for kernel in run.kernels_run:
        nodes = run.plan.groups[kernel.group].nodes
        if len(nodes) == 1:
            found.setdefault(nodes[0], []).append(kernel)
    return found


def _form(run: PlanRun, name: str) -> tuple[Any, ...]:
    """Return what ops have in common that take the same time."""
    graph = run.plan.graph
    node = graph.by_name[name]
    tensors = [graph.tensors[tensor] for tensor in (*node.inputs, *node.outputs)]
    return (node.kind, *((t.shape, t.strides, t.dtype) for t in tensors))


def _entry(
    run: PlanRun,
    same: Sequence[tuple[str, float, list[Kernel]]],
    measured: Mapping[str, Sequence[tuple[str, float]]],
) -> Achieved:
    """Return one entry for ops of the same form; times are means."""
    name, _, kernels = same[0]
    count, total = len(same), sum(took for _, took, _ in same)
    expected = sum(kernel.total(run.settings) for _, _, mine in same for kernel in mine) / count
    ideal = sum(attainable(kernel) for _, _, mine in same for kernel in mine) / count
    mean = total / count
    slowest = max(kernels, key=lambda kernel: kernel.time.time)
    return Achieved(
        op=name,
        kind=run.plan.graph.by_name[name].kind,
        count=count,
        kernels=tuple(text for text, _ in measured[name]),
        measured=mean,
        expected=expected,
        attainable=ideal,
        total=total,
        unexplained=mean > 1.1 * expected * run.interval_factors[1],
        reason=reason(slowest) if ideal < GOOD * mean else "",
    )


def attainable(kernel: Kernel) -> float:
    """Return what a kernel would take if its bytes or its products alone decided. [s]."""
    own = kernel.time
    return min(own.floor + own.latency + max(own.dram, own.cache, own.tensor), own.time)


def reason(kernel: Kernel) -> str:
    """Say why a kernel stays below what is attainable: by its class, else by what binds it."""
    for start, text in CLASSES.items():
        if kernel.launch.row.startswith(start):
            return text
    return BOUNDS[kernel.bound]
