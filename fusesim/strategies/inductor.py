"""What torch.compile's Inductor fuses: pointwise ops into whoever reads them, then kernels that share memory.

Rules, as PyTorch 2.11 has them and its kernels on an H200 show:

1. Composite ops are written out; matmul, scale, softmax, matmul is recognised as attention.
2. A pointwise value is computed again in each op that reads it, and never stored, unless it is returned, a library
   call reads it, or several ops read it and it is dear: more than 4 tensors or 30 operations (`REALIZE_READS`,
   `REALIZE_OPS`), or what it reads is written over later. Reductions are stored.
3. Kernels that share memory are fused while they fit: pointwise loops over the same number of values; a reduction with
   loops over its rows or over all that it reduces; reductions of the same rows. A reduction over the first
   dimensions takes only what it reads.
4. A reduction of few long rows runs in two stages (`splits`), and then nothing that needs its result joins it.
5. Matrix products, convolutions, attention and sorts stay library calls; epilogues do not join them without autotuning.

References
----------
.. [1] PyTorch 2.11, torch/_inductor: ir.py (realize, mark_reuse, num_splits), scheduler.py (can_fuse), config.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.attention_pattern import with_attention
from fusesim.decompose import decompose
from fusesim.sharing import share_common
from fusesim.strategies.functional import functional
from fusesim.strategies.inductor_bias import unfused_bias
from fusesim.strategies.inductor_fuse import fuse
from fusesim.strategies.inductor_loops import first_loops, is_library
from fusesim.strategies.inductor_plan import as_plan

if TYPE_CHECKING:
    from fusesim.fusion import FusionPlan
    from fusesim.graph import Graph, Node
    from fusesim.strategies.base import Context

REALIZE_READS: Final = 4
REALIZE_OPS: Final = 30
MOST_READS: Final = 8
"""Inductor's defaults: realize_reads_threshold, realize_opcount_threshold, realize_acc_reads_threshold."""

SMS: Final = 132
"""SMs where the device is not known."""


def decide(graph: Graph, context: Context | None = None) -> FusionPlan:
    """Return the plan that Inductor's rules make."""
    sms = SMS
    limits = getattr(context, "limits", None)
    if limits is not None and getattr(limits, "sms", None):
        sms = int(limits.sms)
    form = share_common(unfused_bias(decompose(with_attention(functional(graph)))))
    return as_plan(graph, form, fuse(form, first_loops(form, stored_values(form), sms)))


def stored_values(form: Graph) -> set[str]:
    """Return the ops whose results are written to memory."""
    users = _users(form)
    stored: set[str] = set()
    reads: dict[str, set[str]] = {}
    count: dict[str, float] = {}
    overwritten = {storage for node in form.paid_nodes for storage in _overwritten(form, node)}
    pending: dict[str, list[str]] = {}
    for node in form.paid_nodes:
        for storage in _overwritten(form, node):
            stored.update(pending.pop(storage, ()))
        mine, ops = set[str](), 1.0 + node.row.flops
        for name in node.inputs:
            base = form.base(name)
            producer = form.producers.get(base)
            if producer is None or producer.name in stored:
                mine.add(form.tensors[base].storage)
                ops += 2.0
            else:
                mine |= reads[producer.name]
                ops += count[producer.name]
        reads[node.name], count[node.name] = mine, ops
        readers = {reader.name: reader for name in node.outputs for reader in users.get(name, {}).values()}
        dear = len(readers) > 1 and (len(mine) > REALIZE_READS or ops > REALIZE_OPS)
        asked = any(is_library(reader) for reader in readers.values()) or not readers
        if dear or asked or len(mine) > MOST_READS or _always(form, node, overwritten):
            stored.add(node.name)
            continue
        for storage in mine & overwritten:
            pending.setdefault(storage, []).append(node.name)
    return stored


def _overwritten(form: Graph, node: Node) -> list[str]:
    """Return the memory that an op writes over."""
    return [form.tensors[name].storage for name in node.outputs if form.tensors[name].is_view]


def _users(form: Graph) -> dict[str, dict[str, Node]]:
    """Return who reads each tensor, views seen through."""
    users: dict[str, dict[str, Node]] = {}
    for node in form.paid_nodes:
        for name in node.inputs:
            users.setdefault(form.base(name), {})[node.name] = node
    return users


def _always(form: Graph, node: Node, overwritten: set[str]) -> bool:
    """Return whether an op's result is stored whoever reads it: calls, reductions, what is returned or changed."""
    if is_library(node) or node.family == "reduction":
        return True
    return any(name in form.kept or form.tensors[name].storage in overwritten for name in node.outputs)
