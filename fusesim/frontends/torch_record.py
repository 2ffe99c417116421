"""Recording what PyTorch dispatches: every ATen op on meta tensors, in order, into a `Program`.

The program's tensors become tensors on the meta device, which have shapes, strides and types and no memory. PyTorch
picks kernels by device; `fusesim.frontends.torch_cuda` picks those that a GPU would run.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from fusesim.errors import GraphError
from fusesim.frontends.aten import known, translate
from fusesim.frontends.aten_call import Call
from fusesim.frontends.aten_tables import ALLOCATIONS, IGNORED, VIEWS
from fusesim.frontends.program import Program, Region
from fusesim.frontends.torch_tensors import (
    DTYPES,
    META,
    STAND_INS,
    like_cudnn,
    look_of,
    mutated,
    on_meta,
    paused,
    stem_of,
    tensors_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fusesim.graph import Graph


class Recorder(TorchDispatchMode):  # type: ignore[misc]  # PyTorch may be missing
    """Records ops; `program` holds them. `stand_in` makes meta tensors of the caller's."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.program = Program(name)
        self.scopes: list[str] = []
        self.overrides: dict[str, Callable[..., Any]] = {}
        self._stand_ins: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._labels: dict[int, tuple[str, bool, Region]] = {}
        self._live: dict[int, StorageWeakRef] = {}
        self._gone: list[StorageWeakRef] = []  # kept, so that no later memory has the number of an earlier one

    def stand_in(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the meta tensor that stands for one of the caller's, the same for the same."""
        known_one = self._stand_ins.get(id(tensor))
        if known_one is not None:
            return known_one[1]
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise GraphError(
                f"a tensor of shape {tuple(tensor.shape)} is sparse, nested or quantised; from_torch reads dense "
                "tensors: convert it with to_dense() or dequantize()"
            )
        with paused(), torch.inference_mode(mode=False), torch.no_grad():
            made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=META)
        if isinstance(tensor, torch.nn.Parameter):
            made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
        elif tensor.requires_grad and made.dtype.is_floating_point:
            made.requires_grad_()
        self._stand_ins[id(tensor)] = (tensor, made)
        self._stand_ins[id(made)] = (made, made)
        return made

    def enter(self, tensor: torch.Tensor, name: str, *, parameter: bool) -> None:
        """Name a stand-in; it becomes an input of the graph once it is read."""
        region = self.region(tensor)
        self._labels.setdefault(self._storage(tensor), (name, parameter, region))

    def enter_now(self, tensor: torch.Tensor) -> None:
        """Make a stand-in an input, read or not."""
        self._read(tensor)

    def graph(self, results: Sequence[torch.Tensor]) -> Graph:
        """Return the graph: what the program returned, gradients that it left, and inputs that it wrote over."""
        self._collect()
        for tensor in results:
            self._read_labelled(tensor)
        stand_ins = {id(made): made for _, made in self._stand_ins.values()}.values()
        gradients = [made.grad for made in stand_ins if made.is_leaf and made.grad is not None]
        regions = [self.region(tensor) for tensor in (*results, *gradients)]
        return self.program.graph([*regions, *self.program.rewritten()])

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one op on meta tensors and record it."""
        del types
        name = func.name().split("::")[-1].split(".")[0]
        kwargs = dict(kwargs or {})
        if func.namespace == "prim" or name in IGNORED:
            return self._lifted(func(*args, **kwargs)) if "lift" in name else func(*args, **kwargs)
        if self._on_host(func, args, kwargs):
            return func(*args, **kwargs)
        moved = name == "_to_copy" and kwargs.get("device", META) != META
        args, kwargs = tree_map(self.converted, (args, on_meta(func, kwargs)))
        if moved and kwargs.get("dtype") in {None, args[0].dtype} and kwargs.get("memory_format") is None:
            self.program.gap("copies between host and device are not priced")
            return torch.ops.aten.alias(args[0])
        if name in self.overrides:  # reached only where autograd is off altogether
            with self:
                return self.overrides[name](*args, **kwargs)
        self._refuse(func, name, args)
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):  # noqa: SLF001
            with self:  # as above
                return func.decompose(*args, **kwargs)
        return self._run(func, name, args, kwargs)

    def _run(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an op and record it, or its parts where only those are known."""
        tags = frozenset(tag.name for tag in func.tags)
        stem = stem_of(name)
        parts = torch._decomp.decomposition_table.get(func)  # noqa: SLF001 - see above
        if not known(stem, tags) and not func._schema.is_mutable and parts is not None and stem not in ALLOCATIONS:  # noqa: SLF001
            self.program.gap(f"aten.{stem} has no rule: priced as the parts that PyTorch says it has")
            with self:
                return parts(*args, **kwargs)
        before = self._arguments(func, args, kwargs)
        self._collect()
        seen = self._seen(args[0]) if stem in VIEWS and func._schema.is_mutable else None  # noqa: SLF001
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = func(*args, **kwargs)
        except NotImplementedError as error:
            raise GraphError(
                f"{func} has no shape rule in PyTorch {torch.__version__}, so it cannot run without data; replace it "
                f"or leave it out of the captured function ({str(error).splitlines()[0][:120]})"
            ) from error
        if seen is not None:
            self.program.view(seen, self.region(args[0]), VIEWS[stem])
            return result
        result = like_cudnn(stem, before, result)
        self._record(func, stem, tags, before, result)
        return result

    def _seen(self, tensor: torch.Tensor) -> Region:
        """Return how a tensor looks at its memory before an op makes it look otherwise."""
        self._read_labelled(tensor)
        return self.region(tensor)

    def _arguments(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments by name, defaults filled in."""
        bound: dict[str, Any] = {}
        for place, argument in enumerate(func._schema.arguments):  # noqa: SLF001
            if place < len(args):
                bound[argument.name] = args[place]
            elif argument.name in kwargs:
                bound[argument.name] = kwargs[argument.name]
            else:
                bound[argument.name] = argument.default_value if argument.has_default_value() else None
        return bound

    def _record(self, func: Any, stem: str, tags: frozenset[str], bound: dict[str, Any], result: Any) -> None:
        """Add an op that ran to the program."""
        written = mutated(func, bound)
        results = list(result) if isinstance(result, list | tuple) else [result]
        if written and not any(isinstance(part, torch.Tensor) for part in results):
            results = list(written)
        if stem in ALLOCATIONS:
            for made in results:
                self.program.allocate(self.region(made))
            return
        if not written and self._looks(stem, bound, results):
            return
        if stem.startswith("_foreach_"):
            self._foreach(stem.removeprefix("_foreach_"), tags, bound, results, written)
            return
        self.record(stem, bound, results, tags=tags, mutated=written)

    def record(
        self,
        stem: str,
        bound: dict[str, Any],
        results: Sequence[Any],
        *,
        tags: frozenset[str] = frozenset(),
        mutated: Sequence[torch.Tensor] = (),
    ) -> None:
        """Add an op by name to the program."""
        self.program.builder.scope = self.scopes[-1] if self.scopes else ""
        targets = {id(tensor) for tensor in mutated}
        args = {key: self._value(value, targets) for key, value in bound.items()}
        outs = [self.region(part) if isinstance(part, torch.Tensor) else None for part in results]
        if any(region is not None for region in outs):
            translate(Call(program=self.program, name=stem, args=args, outs=outs, over=bool(mutated), tags=tags))

    def _foreach(
        self, stem: str, tags: frozenset[str], bound: dict[str, Any], results: list[Any], mutated: list[Any]
    ) -> None:
        """Add an op over lists as one per tensor."""
        self.program.gap("PyTorch's multi-tensor (foreach) kernels are priced one tensor at a time")
        count = len(bound["self"])
        aliases = {
            "scalar": "other",
            "tensors": "other",
            "tensors1": "end",
            "tensor1": "tensor1",
            "tensor2": "tensor2",
            "scalars": "value",
        }
        for place in range(count):
            one = {
                aliases.get(key, key): value[place]
                if isinstance(value, list | tuple) and len(value) == count
                else value
                for key, value in bound.items()
            }
            out = [results[place]] if place < len(results) else []
            self.record(stem.rstrip("_"), one, out, tags=tags | {"pointwise"}, mutated=mutated)

    def _looks(self, stem: str, bound: dict[str, Any], results: Sequence[Any]) -> bool:
        """Note results that are views of an argument; say whether they all are."""
        sources = {self._storage(tensor): tensor for tensor in tensors_in(bound.values())}
        views = [part for part in results if isinstance(part, torch.Tensor)]
        if not views or any(self._storage(part) not in sources for part in views):
            return False
        for part in views:
            source = sources[self._storage(part)]
            if self.region(source) != self.region(part):
                self._read_labelled(source)
                self.program.view(
                    self.region(source),
                    self.region(part),
                    VIEWS.get(stem, "as_strided"),
                    **look_of(stem, bound, source),
                )
        return True

    def region(self, tensor: torch.Tensor) -> Region:
        """Return where a tensor lies and how it looks at it."""
        dtype = DTYPES.get(tensor.dtype)
        if dtype is None:
            dtype = "fp8" if str(tensor.dtype).startswith("torch.float8") else STAND_INS[tensor.dtype.itemsize]
            if dtype != "fp8":
                self.program.gap(f"{tensor.dtype} is priced as {dtype}: by its bytes, without its arithmetic")
        return Region(
            self._storage(tensor), tuple(tensor.shape), tuple(tensor.stride()), int(tensor.storage_offset()), dtype
        )

    def _storage(self, tensor: torch.Tensor) -> int:
        """Return a number for a tensor's memory; weakly held, so that it is not given twice."""
        reference = StorageWeakRef(tensor.untyped_storage())
        return int(self._live.setdefault(reference.cdata, reference).cdata)

    def _collect(self) -> None:
        """Note which memory the program let go of."""
        gone = [key for key, reference in self._live.items() if reference.expired()]
        for key in gone:
            self.program.release(key)
            self._gone.append(self._live.pop(key))

    def _value(self, value: Any, targets: set[int]) -> Any:
        """Return an argument as rules see it: tensors as the graph's, those of the host as numbers."""
        if isinstance(value, list | tuple):
            return [self._value(part, targets) for part in value]
        if not isinstance(value, torch.Tensor):
            return value
        if not value.is_meta:
            return value.item()
        if id(value) in targets and self._unlabelled(value) and self.program.fresh(self.region(value)):
            return None
        return self._read(value)

    def _unlabelled(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is none of the caller's."""
        return self._storage(tensor) not in self._labels

    def _read(self, tensor: torch.Tensor) -> Any:
        """Return the graph's tensor."""
        self._read_labelled(tensor)
        return self.program.read(self.region(tensor))

    def _read_labelled(self, tensor: torch.Tensor) -> None:
        """Make a tensor of the caller's an input, if it is not one yet."""
        label = self._labels.get(self._storage(tensor))
        if label is not None and not self.program.knows(label[2]):
            self.program.enter(label[2], label[0], parameter=label[1])

    def converted(self, value: Any) -> Any:
        """Return a meta tensor for a tensor of the caller's; numbers on the host stay."""
        if not isinstance(value, torch.Tensor) or value.is_meta or (value.dim() == 0 and not value.requires_grad):
            return value
        return self.stand_in(value)

    def _lifted(self, value: Any) -> Any:
        """Return a constant of the program on the meta device; a number stays on the host."""
        return value if value.dim() == 0 else self.stand_in(value).detach()

    def _on_host(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether an op only handles numbers on the host."""
        tensors = list(tensors_in([*args, *kwargs.values()]))
        device = kwargs.get("device")
        if not tensors or any(tensor.is_meta or tensor.dim() or tensor.requires_grad for tensor in tensors):
            return False
        return device is None or torch.device(device).type == "cpu" or func is None

    def _refuse(self, func: Any, name: str, args: tuple[Any, ...]) -> None:
        """Refuse ops whose shapes or values depend on data."""
        masked = name in {"index", "_unsafe_index"} and any(
            isinstance(part, torch.Tensor) and part.dtype in {torch.bool, torch.uint8} for part in args[1]
        )
        tags = {tag.name for tag in func.tags}
        dynamic = name not in {"index", "_unsafe_index"} and tags & {"data_dependent_output", "dynamic_output_shape"}
        if masked or dynamic:
            what = "x[mask]" if masked else {"_local_scalar_dense": "item(), float(), int() or bool()"}.get(name, name)
            raise GraphError(
                f"{what} depends on values, which do not exist here: only shapes do (aten.{name}"
                f"{' in ' + self.scopes[-1] if self.scopes else ''}); use a form of fixed shape, such as torch.where, "
                "topk or a mask that multiplies, or capture the parts before and after it"
            )
