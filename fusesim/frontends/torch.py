"""PyTorch functions and modules as graphs: `from_torch`. Needs the extra `fusesim[torch]`; no GPU.

The program runs once on tensors without memory, and every op that PyTorch dispatches on the way becomes an op of the
graph: what eager launches, in its order, with its types and strides.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from fusesim.errors import FusesimError, GraphError, InputError, excerpt

if TYPE_CHECKING:
    from fusesim.frontends.torch_record import Recorder
    from fusesim.graph import Graph

_ONE_AT_A_TIME: Final = threading.Lock()


def from_torch(function: Any, *example_inputs: Any, **kwargs: Any) -> Graph:
    """Return the graph of a PyTorch function or module, as eager runs it on a GPU.

    Parameters
    ----------
    function : callable or torch.nn.Module
        What to run: a forward pass, a training step that calls `backward`, anything of fixed shapes. A module keeps
        its mode: dropout is active in training. `torch.no_grad` holds as it does around this call.
    *example_inputs, **kwargs : object
        What to call it with. Tensors, also in lists, tuples and dicts, may be real, on the meta device, or fake; only
        their shape, strides and type matter.

    Returns
    -------
    Graph
        One op per kernel-launching ATen op; composite ops that a GPU runs as one kernel are one op. Parameters are
        inputs under their names, `scope` is the path of the module. Outputs are what the function returns, the
        gradients that it left, and inputs that it wrote over. `gaps` says what is missing or priced roughly.

    Raises
    ------
    InputError
        If PyTorch is missing, or `function` is no callable that can be read.
    GraphError
        If the program asks for values (`item`, `nonzero`, `x[mask]`), of which there are none, or fails.

    Notes
    -----
    Tensors of no dimensions on the host are numbers, as they are to a GPU's kernels. Copies between host and device
    cost nothing here. Fails first where a program takes another way by device: attention, dropout, RMSNorm and
    recurrent cells are dispatched as on CUDA, the fast path of `nn.TransformerEncoderLayer` and cuDNN's LSTM are not.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from_torch(torch.relu, torch.empty(4, 4))  # doctest: +SKIP
    <Graph relu: 1 ops, 1 inputs, 1 outputs>
    """
    try:
        import torch  # noqa: PLC0415 - heavy, and an extra

        from fusesim.frontends.torch_record import Recorder  # noqa: PLC0415
    except ImportError as error:
        raise InputError("from_torch needs PyTorch; install it with: pip install 'fusesim[torch]'") from error
    program = _unwrapped(function)
    name = getattr(program, "__name__", type(program).__name__)
    recorder = Recorder(name)
    gradients = torch.is_grad_enabled()
    with _ONE_AT_A_TIME, torch.inference_mode(mode=False), torch.set_grad_enabled(gradients):
        return _recorded(program, example_inputs, kwargs, recorder)


def _unwrapped(function: Any) -> Any:
    """Return the program behind torch.compile; refuse what cannot be read.

    Raises
    ------
    InputError
        If it is compiled to another form, or cannot be called.
    """
    import torch  # noqa: PLC0415

    if isinstance(function, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        raise InputError("from_torch cannot read TorchScript; give the module or function that was scripted")
    function = getattr(function, "_orig_mod", function)
    function = getattr(function, "_torchdynamo_orig_callable", function)
    if hasattr(function, "graph_module") and callable(getattr(function, "module", None)):
        function = function.module()
    if not callable(function):
        raise InputError(f"from_torch takes a function or a module, not {excerpt(type(function).__name__)}")
    return function


def _recorded(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any], recorder: Recorder) -> Graph:
    """Run a program on stand-ins and return its graph."""
    import torch  # noqa: PLC0415
    from torch.utils._pytree import tree_leaves, tree_map  # noqa: PLC0415

    from fusesim.frontends.torch_cuda import as_on_cuda  # noqa: PLC0415
    from fusesim.frontends.torch_swap import stood_in  # noqa: PLC0415

    names = _argument_names(program, len(args))
    named = {**dict(zip(names, args, strict=True)), **kwargs}
    for name, value in named.items():
        for leaf in tree_leaves(value):
            if _stands(leaf):
                made = recorder.stand_in(leaf)
                recorder.enter(made, name, parameter=isinstance(leaf, torch.nn.Parameter))
                recorder.enter_now(made)
    call_args, call_kwargs = tree_map(lambda leaf: recorder.stand_in(leaf) if _stands(leaf) else leaf, (args, kwargs))
    with stood_in(program, recorder) as modules, _scopes(modules, recorder), as_on_cuda(recorder):
        try:
            with recorder:
                result = program(*call_args, **call_kwargs)
        except FusesimError:
            raise
        except (Exception, SystemExit) as error:  # a script that ends itself would end fusesim with it, as if done
            where = f" in {recorder.scopes[-1]}" if recorder.scopes else ""
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise GraphError(
                f"{recorder.program.builder.name} failed{where} on tensors without data: {type(error).__name__}: "
                f"{excerpt(reason, 200)}; check that it runs on the meta device"
            ) from error
        outputs = [leaf for leaf in _leaves(result) if isinstance(leaf, torch.Tensor) and leaf.is_meta]
        return recorder.graph(outputs)


def _stands(leaf: Any) -> bool:
    """Return whether a value is a tensor that a meta tensor stands for; numbers on the host stay."""
    import torch  # noqa: PLC0415

    return isinstance(leaf, torch.Tensor) and bool(leaf.dim() or leaf.is_meta or leaf.requires_grad)


def _argument_names(program: Any, count: int) -> list[str]:
    """Return a name for each positional argument."""
    import inspect  # noqa: PLC0415

    target = getattr(program, "forward", program)
    try:
        found = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        found = []
    names = [p.name for p in found if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}][:count]
    return names + [f"x_{place}" for place in range(len(names), count)]


def _leaves(value: Any) -> Iterator[Any]:
    """Iterate over what a program returned, also in dataclasses and mappings of its own."""
    from torch.utils._pytree import tree_leaves  # noqa: PLC0415

    for leaf in tree_leaves(value):
        if isinstance(leaf, Mapping):
            yield from (part for item in leaf.values() for part in _leaves(item))
        elif is_dataclass(leaf) and not isinstance(leaf, type):
            yield from (part for entry in fields(leaf) for part in _leaves(getattr(leaf, entry.name)))
        else:
            yield leaf


@contextmanager
def _scopes(modules: list[tuple[str, Any]], recorder: Recorder) -> Iterator[None]:
    """Keep the path of the module that runs."""
    from torch.nn.modules import module as hooks  # noqa: PLC0415

    paths = {
        id(part): path or type(part).__name__ for name, top in modules for path, part in top.named_modules(prefix=name)
    }

    def enter(module: Any, _args: Any) -> None:
        recorder.scopes.append(paths.get(id(module), type(module).__name__))

    def leave(_module: Any, _args: Any, _result: Any) -> None:
        recorder.scopes.pop()

    handles = [
        hooks.register_module_forward_pre_hook(enter),
        hooks.register_module_forward_hook(leave),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
