"""Measures PyTorch programs on a GPU, eager and compiled: what h200_pointwise.json and so on hold.

    python tests/reference/measure_torch.py SUITE... --out DIR [--warm PART/PARTS]

A suite of `suites.py` is a list of programs (`programs.py`). Protocol: inputs hold random numbers; a pass runs the
program once on each of `sets` buffer sets, so that it exceeds three times the cache (at least 4, at most 64 sets), is
captured in one CUDA graph, and is timed by events around a replay, divided by the sets; outputs of all sets are kept,
or with `--drop` their memory is handed out again, as `outputs` says.
Median with 10th and 90th percentile of 11 replays after 3. `kernels` are the profiler's, in launch order: name,
duration, blocks, threads, registers, shared memory (durations are taken in another state: for identity, not as
targets). `peak` and `held` are the allocator's bytes above the inputs at the peak and at the end. `--warm` only
compiles a part, so that several processes fill the compiler's cache; timing comes after.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import patterns_torch
import programs_torch
import suites
import torch

CACHE = 62914560


def sets_for(inputs):
    size = sum(t.numel() * t.element_size() for t in inputs)
    return min(64, max(4, math.ceil(3 * CACHE / max(size, 1)))), size


def clean(name):
    return name.replace("(anonymous namespace)::", "").replace("at::native::", "")[:160]


def kernels_of(call, inputs):
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, acc_events=True) as prof:
        call(*inputs)
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    found = [e for e in events if e.get("cat") in {"kernel", "gpu_memset", "gpu_memcpy"}]
    found.sort(key=lambda e: e["ts"])
    rows = []
    for e in found:
        a = e["args"]
        rows.append(
            [
                clean(e["name"]),
                round(e["dur"], 3),
                math.prod(a.get("grid", [0])),
                math.prod(a.get("block", [0])),
                a.get("registers per thread", 0),
                a.get("shared memory", 0),
            ]
        )
    return rows


def quantiles(times):
    times = sorted(times)
    n = len(times)
    return {"med": times[n // 2], "lo": times[n // 10], "hi": times[n - 1 - n // 10], "n": n}


def inputs_of(case):
    if "pattern" not in case:
        return programs_torch.inputs(case)
    _, metas = patterns_torch.build(case["pattern"], case["dims"])
    made = []
    for place, t in enumerate(metas):
        if t.dtype == torch.int64:
            made.append(torch.randint(0, case["dims"]["V"], t.shape, device="cuda"))
            continue
        own = torch.randn(t.shape, device="cuda").to(t.dtype)
        if t.dim() == 4 and t.stride(1) == 1:
            own = own.to(memory_format=torch.channels_last)
        made.append(own.abs() + 0.5 if case["pattern"] == "conv_bn_relu" and place == 3 else own)
    return made


def function_of(case):
    if "pattern" in case:
        return patterns_torch.build(case["pattern"], case["dims"])[0]
    return programs_torch.function(case)


def measure(call, program, *, drop=False):
    inputs = inputs_of(program)
    sets, size = sets_for(inputs)
    for _ in range(3):
        out = call(*inputs)
    torch.cuda.synchronize()
    del out
    base = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    out = call(*inputs)
    torch.cuda.synchronize()
    peak, held = torch.cuda.max_memory_allocated() - base, torch.cuda.memory_allocated() - base
    del out
    kernels = kernels_of(call, inputs)
    every = [inputs] + [inputs_of(program) for _ in range(sets - 1)]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = []
        for at in every:
            out = call(*at)
            kept.append(None if drop else out)
            del out
    times = []
    for _ in range(14):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3 / sets)
    del kept, graph, every
    return {
        "outputs": "dropped" if drop else "kept",
        "in_bytes": size,
        "sets": sets,
        "graph": quantiles(times[3:]),
        "peak": peak,
        "held": held,
        "kernels": kernels,
    }


def host_time(call, inputs):
    """Seconds per call issued from Python, ten calls between events."""
    times = []
    for _ in range(7):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(10):
            call(*inputs)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-4)
    return quantiles(times)


def sides(program):
    return program.get("sides", ["eager", "compiled"])


def compiled(program):
    torch.compiler.reset()
    call = torch.compile(function_of(program), dynamic=False)
    inputs = inputs_of(program)
    began = time.perf_counter()
    call(*inputs)
    torch.cuda.synchronize()
    return call, time.perf_counter() - began


def environment():
    query = "name,driver_version,clocks.max.sm,clocks.max.mem,power.limit,clocks.sm,persistence_mode"
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
    line = subprocess.run(command, capture_output=True, text=True, check=True)
    return {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": getattr(__import__("triton"), "__version__", ""),
        "cudnn": torch.backends.cudnn.version(),
        "nvidia_smi": dict(zip(query.split(","), line.stdout.strip().split(", "), strict=False)),
        "python": sys.version.split()[0],
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def warm(cases, part, parts):
    """Compile a part of the cases, so that the compiler's cache holds them."""
    for case in [case for case in cases if "compiled" in sides(case)][part::parts]:
        try:
            compiled(case)
        except RuntimeError as error:
            print("warm failed", case, repr(error)[:200], flush=True)


def measured(case, label, *, drop):
    """Return a case with what was measured of its sides, or why it could not be."""
    row = dict(case)
    for side in sides(case):
        try:
            if side == "eager":
                call = function_of(case)
            else:
                call, row["compile_s"] = compiled(case)
            row[side] = measure(call, case, drop=drop)
            if case.get("host"):
                row[side]["eager"] = host_time(call, inputs_of(case))
        except RuntimeError as error:  # one case out of memory must not end the run
            row[side] = {"error": repr(error)[:300]}
            print(label, side, repr(error)[:200], flush=True)
    return row


def run(name, cases, args):
    """Measure a suite, a line of JSON per case."""
    began = time.time()
    with (Path(args.out) / f"{name}.jsonl").open("w") as file:
        file.write(json.dumps({"environment": environment(), "protocol": __doc__}) + "\n")
        for place, case in enumerate(cases):
            if time.time() - began > args.limit:
                print(f"{name}: out of time after {place} of {len(cases)}", flush=True)
                break
            file.write(json.dumps(measured(case, f"{name} {place}", drop=args.drop)) + "\n")
            file.flush()
            if place % 20 == 0:
                torch.cuda.empty_cache()
    print(f"{name}: {time.time() - began:.0f} s, {len(cases)} cases", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("suite", nargs="+")
    parser.add_argument("--out", default=".")
    parser.add_argument("--warm")
    parser.add_argument("--drop", action="store_true")
    parser.add_argument("--limit", type=float, default=1e9)
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    for name in args.suite:
        cases = list(suites.SUITES[name]())[:: args.every]
        if args.warm:
            warm(cases, *map(int, args.warm.split("/")))
        else:
            run(name, cases, args)


if __name__ == "__main__":
    main()
