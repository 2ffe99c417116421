"""Kernels of many graphs, compiled once: for the host with a C++ compiler, for a GPU with nvcc."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from fusesim import planning
from fusesim.builder import Builder
from fusesim.emit.api import kernels_of
from fusesim.emit.cuda import file_of
from fusesim.emit.memory import STORED, extent, laid_out, read_back
from fusesim.fusion import FusionPlan, Group

HERE = Path(__file__).parent
CANARY, MARK = 64, 0xA5


class Source(NamedTuple):
    """The kernels of one case, with names that no other case has."""

    key: str
    kernels: list
    text: str


def one_group(graph):
    """A plan that puts every op of a graph into one kernel."""
    nodes = tuple(node.name for node in graph.paid_nodes)
    return FusionPlan(graph=graph, groups=(Group(nodes=nodes),), strategy="by hand")


def in_namespace(key, kernels):
    """Return kernels with names of their own, in a namespace for what they share."""
    text = re.sub(r"^#include.*$", "", file_of(kernels), flags=re.MULTILINE)
    for kernel in kernels:
        text = re.sub(rf"\b{kernel.name}\b", f"{key}_{kernel.name}", text)
    return f"namespace {key} {{\n{text}\n}}\n"


def sources(plans):
    """Return for each plan, by key, its fused kernel and its separate ones."""
    found = []
    for key, plan in plans.items():
        for form, fused in (("fused", True), ("apart", False)):
            kernels = kernels_of(plan, fused=fused)
            name = f"{key}_{form}"
            found.append(Source(name, kernels, in_namespace(name, kernels)))
    return found


def compiler():
    found = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    if found is None:
        pytest.skip("no C++ compiler (g++, c++, clang++) to run kernels on the host with")
    return found


def nvcc():
    found = shutil.which("nvcc")
    if found is None:
        pytest.skip("no nvcc to compile kernels with")
    return found


def call_of(source):
    """Return a C function that runs a case's kernels on an array of pointers."""
    lines, place = [], 0
    for kernel in source.kernels:
        count = len(kernel.parameters)
        pointers = ", ".join(f"p[{place + index}]" for index in range(count))
        place += count
        name = f"{source.key}::{source.key}_{kernel.name}"
        lines.append(f"    host::launch({kernel.grid}, {kernel.threads}, [=] {{ host::call({name}, {pointers}); }});")
    body = "\n".join(lines)
    return f'extern "C" void run_{source.key}(void** p) {{\n{body}\n}}\n'


CALL = """
namespace host {
template <typename... P, typename... A> void call(void (*kernel)(P...), A... a) { kernel(static_cast<P>(a)...); }
}
"""


def single_library(kernels, folder):
    """Compile kernels one by one for the host, as run_k0, run_k1, ..."""
    found = [Source(f"k{n}", [kernel], in_namespace(f"k{n}", [kernel])) for n, kernel in enumerate(kernels)]
    return compiled(found, folder)


def host_library(plans, folder):
    """Compile plans for the host and return the library."""
    return compiled(sources(plans), folder)


def compiled(found, folder):
    """Compile sources for the host and return the library."""
    text = '#include "device_on_host.h"\n' + CALL + "".join(source.text + call_of(source) for source in found)
    file, library = folder / "kernels.cpp", folder / "kernels.so"
    file.write_text(text, encoding="utf-8")
    command = [compiler(), "-std=c++17", "-O1", "-w", "-fno-strict-aliasing", "-shared", "-fPIC", f"-I{HERE}"]
    done = subprocess.run([*command, str(file), "-o", str(library)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(library))


def buffer(values):
    """Return memory that begins at a multiple of 64 bytes with marks around it, and the part in the middle."""
    raw = np.full(values.nbytes + 2 * CANARY + 64, MARK, np.uint8)
    start = -raw.ctypes.data % 64 + CANARY
    middle = raw[start : start + values.nbytes]
    middle[:] = values.view(np.uint8).reshape(-1)
    return raw, middle


def run_on_host(library, key, plan, values, *, fused):
    """Run a plan's kernels on the host, inputs taken from `values`; what stands around a tensor must not change."""
    graph = plan.graph
    memory = {}
    kernels = kernels_of(plan, fused=fused)
    pointers = []
    for kernel in kernels:
        for name in kernel.parameters:
            tensor = graph.tensors[name]
            given = graph.base(name) in graph.inputs  # an input, or a look at one
            owner = name if given else tensor.storage
            if owner not in memory:
                filled = laid_out(values[name], tensor) if given else np.zeros(extent(tensor), STORED[tensor.dtype])
                memory[owner] = buffer(filled)
            memory[name] = memory[owner]
            pointers.append(memory[name][1].ctypes.data)
    getattr(library, f"run_{key}_{'fused' if fused else 'apart'}")((ctypes.c_void_p * len(pointers))(*pointers))
    for name, (raw, middle) in memory.items():
        outside = len(raw) - len(middle)
        assert (raw == MARK).sum() - (middle == MARK).sum() == outside, f"written beside {name}"
    outputs = {}
    for name in graph.outputs:
        tensor = graph.tensors[name]
        outputs[name] = read_back(memory[name][1].view(STORED[tensor.dtype]), tensor)
    return outputs


def values_for(graph, seed=0):
    """Return normal numbers for every tensor that comes in; whole numbers and switches where the type says so."""
    rng = np.random.default_rng(seed)
    found = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.dtype == "bool":
            found[name] = rng.random(tensor.shape) < 0.5
        elif tensor.dtype.startswith(("int", "uint")):
            found[name] = rng.integers(0, 9, tensor.shape)
        else:
            found[name] = rng.standard_normal(tensor.shape).astype(np.float32)
    return found


@pytest.fixture(scope="session")
def emit_tools():
    """What tests of emitted source share."""

    class Tools:
        one_group = staticmethod(one_group)
        sources = staticmethod(sources)
        host_library = staticmethod(host_library)
        single_library = staticmethod(single_library)
        run_on_host = staticmethod(run_on_host)
        values_for = staticmethod(values_for)
        nvcc = staticmethod(nvcc)
        plan = staticmethod(planning.plan)
        builder = Builder

    return Tools
