"""Emitted kernels on a GPU: whether they compute what numpy does, and how long they take, through CuPy.

Timed as calibrations are (`fusesim.calibrate.measure`): inside a CUDA graph, over sets of buffers that rotate so that
inputs are cold, medians with 10th and 90th percentile. Intermediates of separate kernels share memory as a caching
allocator would have them share it.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusesim.calibrate import measure
from fusesim.calibrate.cases import ALIGNMENT, MAX_SETS, MIN_SETS
from fusesim.emit.api import kernels_of
from fusesim.emit.evaluate import evaluate
from fusesim.emit.memory import STORED, VALUES, extent, laid_out, read_back
from fusesim.emit.part import offset_of, part_of
from fusesim.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fusesim.emit.cuda import Kernel
    from fusesim.emit.memory import Array
    from fusesim.fusion import FusionPlan
    from fusesim.tensor import Tensor

    Predicted = Mapping[str, float] | Callable[[str], float | None]

FORMS: Final = ("fused", "separate")
"""One kernel, and one per op."""

MOST_VALUES: Final = 2**26
"""Largest tensor that numpy checks."""

TOLERANCES: Final = {"fp8": 0.15, "bf16": 0.05, "fp16": 0.01}
"""How far a result may lie from numpy's, of 1 + its size, where a type of so few digits is in the kernel."""
TOLERANCE: Final = 1e-3

TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3
"""Directions of a copy, by CUDA's numbers."""

SEED: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A form of a group as it ran: `form` is one of `FORMS`, times in seconds per run of all of its kernels.

    `largest_error` is the largest deviation of a result from numpy's, over 1 + its size; `predicted` the caller's time.
    """

    form: str
    kernels: int
    median: float
    low: float
    high: float
    repeats: int
    sets: int
    largest_error: float
    predicted: float | None = None

    @property
    def ratio(self) -> float | None:
        """Predicted over measured, None where nothing was predicted."""
        return None if self.predicted is None else self.predicted / self.median


def verify(
    plan: FusionPlan, group: int = 0, *, predicted: Predicted | None = None, bench: Any = None
) -> tuple[Verified, Verified]:
    """Compile, check and time a group's kernel and the kernels of its ops.

    Parameters
    ----------
    plan, group
        As for `fusesim.emit.emit`.
    predicted : mapping of str to float, or callable, optional
        The time to expect of each of `FORMS`. [s]
    bench : Bench, optional
        An open `fusesim.calibrate.measure.Bench`; the GPU in use unless given.

    Returns
    -------
    tuple of Verified
        The one kernel, then the separate ones.

    Raises
    ------
    PlanError
        If the group cannot be emitted.
    MeasurementError
        If there is no GPU or no CuPy, the tensors are too large, or a result is wrong.
    """
    forms = {form: kernels_of(plan, group, fused=form == "fused") for form in FORMS}
    part = part_of(plan, group)
    largest = max(part.tensors.values(), key=lambda tensor: tensor.elements)
    if largest.elements > MOST_VALUES:
        raise MeasurementError(
            f"{largest.name} has {largest.elements} values and numpy checks up to {MOST_VALUES}; verify a smaller size"
        )
    values = _numbers(part.inputs, part.tensors)
    expected = evaluate(part, values)
    if bench is None:
        bench = measure.Bench()
        bench.settle(lambda *_: None)
    runner = _Runner(bench, plan, part.inputs, part.outputs)
    with measure.cuda_errors(bench.cupy):
        one, other = (
            runner.verified(form, kernels, expected, _time(predicted, form)) for form, kernels in forms.items()
        )
    return one, other


def _time(predicted: Predicted | None, form: str) -> float | None:
    """Return the caller's time of a form."""
    if predicted is None:
        return None
    return predicted(form) if callable(predicted) else predicted.get(form)


def _numbers(names: Sequence[str], tensors: Mapping[str, Tensor]) -> dict[str, Array]:
    """Return values for what comes in: normal numbers, small whole ones, switches."""
    rng = np.random.default_rng(SEED)
    found: dict[str, Array] = {}
    for name in names:
        tensor = tensors[name]
        if tensor.dtype == "bool":
            found[name] = rng.random(tensor.shape) < 0.5  # noqa: PLR2004 - heads or tails
        elif tensor.dtype.startswith(("int", "uint")):
            found[name] = rng.integers(0, 9, tensor.shape)
        else:
            kind = np.float64 if tensor.dtype == "fp64" else np.float32
            found[name] = rng.standard_normal(tensor.shape, dtype=kind)
    return found


class _Runner:
    """Runs kernels of one group on memory of a bench's pool."""

    def __init__(self, bench: Any, plan: FusionPlan, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.bench, self.plan, self.inputs, self.outputs = bench, plan, inputs, outputs
        self.tensors = plan.graph.tensors
        shared = {name for name in inputs if name in plan.graph.parameters}
        external = dict.fromkeys(self._owner(name) for name in (*inputs, *outputs))
        self.shared = [name for name in external if name in shared]
        self.own = [name for name in external if name not in shared]
        footprint = sum(self._bytes(name) for name in self.own)
        self.sets = int(np.clip(np.ceil(3 * bench.gpu.cache / max(footprint, 1)), MIN_SETS, MAX_SETS))

    def _owner(self, name: str) -> str:
        """Return the tensor whose memory one lives in: its own where it comes in."""
        if name in self.inputs:
            return name
        storage = self.tensors[name].storage
        return storage if storage in self.tensors else name

    def _bytes(self, name: str) -> int:
        """Return the bytes that a tensor takes up, gaps and padding included."""
        tensor = self.tensors[name]
        return -(-extent(tensor) * tensor.itemsize // ALIGNMENT) * ALIGNMENT

    def verified(
        self, form: str, kernels: Sequence[Kernel], expected: Mapping[str, Array], predicted: float | None
    ) -> Verified:
        """Check and time one form."""
        handles = [self._compiled(kernel) for kernel in kernels]
        places = self._places(kernels)
        self._upload(places, expected)
        chains = [self._chain(kernels, handles, places, which) for which in range(self.sets)]
        chains[0]()
        self.bench.stream.synchronize()
        error = self._checked(form, places, expected)
        times = self.bench.timer.graph(chains)
        low, median, high = (float(value) for value in np.quantile(times, [0.1, 0.5, 0.9]))
        return Verified(
            form=form,
            kernels=len(kernels),
            median=median,
            low=low,
            high=high,
            repeats=len(times),
            sets=self.sets,
            largest_error=error,
            predicted=predicted,
        )

    def _compiled(self, kernel: Kernel) -> tuple[Any, Any]:
        """Return a compiled kernel: the driver's handle, and the module that must outlive it."""
        module = self.bench.cupy.RawModule(code=kernel.source, options=("--std=c++17",))
        return ctypes.c_void_p(module.get_function(kernel.name).kernel.ptr), module

    def _places(self, kernels: Sequence[Kernel]) -> list[dict[str, int]]:
        """Return, per set, the address of every tensor that owns memory."""
        sizes = {name: self._bytes(name) for name in (*self.own, *self.shared)}
        between, room = _reused(self._between(kernels))
        need = self.sets * sum(sizes[name] for name in self.own) + sum(sizes[name] for name in self.shared) + room
        if need > self.bench.pool.size:
            raise MeasurementError(
                f"verifying needs {need / 1e9:.1f} GB on the GPU and {self.bench.pool.size / 1e9:.1f} GB are free; "
                "verify a smaller size"
            )
        start = int(self.bench.pool.memory.ptr)
        common = {name: start + offset for name, offset in between.items()}
        start += room
        for name in self.shared:
            common[name] = start
            start += sizes[name]
        found: list[dict[str, int]] = [dict(common) for _ in range(self.sets)]
        for name in self.own:  # all of one tensor's sets side by side, as separately allocated ones would lie
            for place in found:
                place[name] = start
                start += sizes[name]
        return found

    def _between(self, kernels: Sequence[Kernel]) -> list[tuple[str, int, int, int]]:
        """Return intermediates: name, bytes, the kernel that writes it first and the one that reads it last."""
        known = {*self.own, *self.shared}
        spans: dict[str, list[int]] = {}
        for step, kernel in enumerate(kernels):
            for name in kernel.parameters:
                owner = self._owner(name)
                if owner not in known:
                    spans.setdefault(owner, [step, step])[1] = step
        return [(name, self._bytes(name), first, last) for name, (first, last) in spans.items()]

    def _upload(self, places: Sequence[Mapping[str, int]], expected: Mapping[str, Array]) -> None:
        """Write the inputs into every set."""
        runtime = self.bench.cupy.cuda.runtime
        for name in self.inputs:
            data = np.ascontiguousarray(laid_out(expected[name], self.tensors[name]))
            first = places[0][name]
            runtime.memcpy(first, data.ctypes.data, data.nbytes, TO_DEVICE)
            for place in places[1:]:
                if place[name] != first:
                    runtime.memcpy(place[name], first, data.nbytes, ON_DEVICE)

    def _chain(
        self,
        kernels: Sequence[Kernel],
        handles: Sequence[tuple[Any, Any]],
        places: Sequence[Mapping[str, int]],
        which: int,
    ) -> Callable[[], None]:
        """Return a function that launches all kernels on one set through the driver."""
        launches = []
        for kernel, (handle, module) in zip(kernels, handles, strict=True):
            addresses = [ctypes.c_void_p(self._address(name, places[which])) for name in kernel.parameters]
            packed = (ctypes.c_void_p * len(addresses))(*(ctypes.addressof(value) for value in addresses))
            launches.append((handle, kernel, packed, (addresses, module)))
        launch, stream = self.bench.driver.cuLaunchKernel, ctypes.c_void_p(self.bench.stream.ptr)

        def run() -> None:
            for handle, kernel, packed, _ in launches:
                status = launch(handle, kernel.grid, 1, 1, kernel.threads, 1, 1, 0, stream, packed, None)
                if status:
                    raise MeasurementError(f"the driver refused to launch {kernel.name} with error {status}")

        return run

    def _address(self, name: str, place: Mapping[str, int]) -> int:
        """Return where a tensor's first value stands."""
        owner = self._owner(name)
        offset = 0 if owner == name else offset_of(self.plan.graph, name) * self.tensors[name].itemsize
        return place[owner] + (offset if owner not in self.inputs else 0)

    def _checked(self, form: str, places: Sequence[Mapping[str, int]], expected: Mapping[str, Array]) -> float:
        """Return the largest deviation of a result from numpy's; refuse one that is wrong."""
        types = {tensor.dtype for name, tensor in self.tensors.items() if name in expected}
        limit = next((value for name, value in TOLERANCES.items() if name in types), TOLERANCE)
        worst = 0.0
        for name in self.outputs:
            tensor = self.tensors[name]
            data: Array = np.empty(extent(tensor), STORED[tensor.dtype])
            source = self._address(name, places[0])
            self.bench.cupy.cuda.runtime.memcpy(data.ctypes.data, source, data.nbytes, TO_HOST)
            error = deviation(read_back(data, tensor), expected[name].astype(VALUES[tensor.dtype]))
            worst = max(worst, error)
            if not error <= limit:
                raise MeasurementError(
                    f"{form}: {name} differs from numpy's by {error:.2g} of 1 + its size, above {limit:g}; "
                    "the emitted kernel is wrong, or the values overflow its type"
                )
        return worst


def deviation(got: Array, expected: Array) -> float:
    """Return the largest difference over 1 + the size of what was expected; what is no number in both agrees.

    Examples
    --------
    >>> deviation(np.float32([1.0, np.nan]), np.float32([1.5, np.nan]))
    0.2
    """
    one, other = (np.asarray(values, dtype=np.float64) for values in (got, expected))
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        found = np.where(same, 0.0, np.abs(one - other) / (1 + np.abs(other)))
    return float(np.max(np.nan_to_num(found, nan=np.inf), initial=0.0))


def _reused(spans: Sequence[tuple[str, int, int, int]]) -> tuple[dict[str, int], int]:
    """Return where intermediates lie in memory that is used again once its last reader has run, and its size. [B]."""
    found: dict[str, int] = {}
    taken: list[tuple[int, int, int]] = []  # start, end, last reader
    for name, size, first, last in spans:
        start = 0
        for begin, end, until in sorted(taken):
            if until >= first and begin < start + size and start < end:
                start = end
        found[name] = start
        taken.append((start, start + size, last))
    return found, max((end for _, end, _ in taken), default=0)
