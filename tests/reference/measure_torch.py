"""Measures PyTorch programs on a GPU, eager and compiled: what h200_pointwise.json and so on hold.

    python tests/reference/measure_torch.py SUITE... --out DIR [--warm PART/PARTS | --kernels PART/PARTS | --profiled]

A suite of `suites.py` is a list of programs (`programs.py`); with `:drop` behind its name the memory of outputs is
handed out again in the next pass, else those of all passes are kept, as `outputs` says; with `:warm` 16 `passes` run on
one set of buffers, outputs dropped. Protocol: inputs hold random numbers; a pass runs the program once on each of
`sets` buffer sets, so that it exceeds three times the cache (at least 4, at most 64 sets), is captured in one CUDA
graph, and is timed by events around a replay, divided by the sets. Median with 10th and 90th percentile of 11 replays
after 3. `peak` and `held` are the allocator's bytes above the inputs at the peak and at the end. No profiler runs in
the process that times: once one has, each kernel of a graph takes some 0.4 us longer until the process ends.
`--profiled` times so on purpose. `--kernels` asks the profiler for the kernels of a part, in launch order: name,
duration, blocks, threads, registers, shared memory (for identity, not as targets). `--warm` only compiles a part, so
that several processes fill the compiler's cache; which of its own configurations the compiler takes is benchmarked by
the process that times, alone on the machine. `configs` are those of generated kernels: name, block sizes, warps,
registers, spilled bytes, shared memory.
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
from torch._inductor import config as inductor
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

CACHE = 62914560
PASSES = 16


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


ran = []
"""Configurations of generated kernels that ran since it was emptied."""


def recording(run):
    """Return an autotuner's `run` that notes with which configuration it ran."""

    def recorded(self, *args, **kwargs):
        result = run(self, *args, **kwargs)
        one = self.launchers[0]
        told = (getattr(one, name, None) for name in ("n_regs", "n_spills", "shared"))
        ran.append([self.fn.__name__[:56], dict(one.config.kwargs), one.config.num_warps, *told])
        return result

    return recorded


def measure(call, program, *, drop=False, profiled=False, warm=False):
    inputs = inputs_of(program)
    sets, size = sets_for(inputs)
    sets = 1 if warm else sets
    for _ in range(3):
        out = call(*inputs)
    torch.cuda.synchronize()
    del out
    base = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    ran.clear()
    out = call(*inputs)
    torch.cuda.synchronize()
    peak, held = torch.cuda.max_memory_allocated() - base, torch.cuda.memory_allocated() - base
    configs = list(ran)
    del out
    if profiled:
        kernels_of(call, inputs)
    every = [inputs] * PASSES if warm else [inputs] + [inputs_of(program) for _ in range(sets - 1)]
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
        times.append(start.elapsed_time(end) * 1e-3 / len(every))
    passes = len(every)
    del kept, graph, every
    return {
        "outputs": "dropped" if drop else "kept",
        "in_bytes": size,
        "sets": sets,
        "passes": passes,
        "graph": quantiles(times[3:]),
        "peak": peak,
        "held": held,
        "configs": configs,
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


def any_config(tuner, *_args, **_kwargs):
    """Say that all configurations take as long: a process that only compiles must not benchmark beside others."""
    return dict.fromkeys(tuner.launchers, 0.0)


def no_cached_choices(*, benchmark):
    """Let every process choose the compiler's configurations anew, by its own benchmark or by none."""
    inductor.autotune_local_cache = False
    if not benchmark:
        CachingAutotuner.benchmark_all_configs = any_config


def warm(cases, part, parts):
    """Compile a part of the cases, so that the compiler's cache holds them."""
    for case in [case for case in cases if "compiled" in sides(case)][part::parts]:
        try:
            compiled(case)
        except RuntimeError as error:
            print("warm failed", case, repr(error)[:200], flush=True)


def measured(case, label, args, *, how):
    """Return a case with what was measured of its sides, or why it could not be."""
    row = dict(case)
    for side in sides(case):
        try:
            if side == "eager":
                call = function_of(case)
            else:
                call, row["compile_s"] = compiled(case)
            if args.kernels:
                inputs = inputs_of(case)
                call(*inputs)
                row[side] = {"kernels": kernels_of(call, inputs)}
                continue
            row[side] = measure(call, case, drop=bool(how), profiled=args.profiled, warm=how == "warm")
            if case.get("host"):
                row[side]["eager"] = host_time(call, inputs_of(case))
        except RuntimeError as error:  # one case out of memory must not end the run
            row[side] = {"error": repr(error)[:300]}
            print(label, side, repr(error)[:200], flush=True)
    return row


def run(suite, cases, args):
    """Measure a suite, a line of JSON per case."""
    name, _, how = suite.partition(":")
    part, parts = map(int, args.kernels.split("/")) if args.kernels else (0, 1)
    label = "_".join(filter(None, (name, {"drop": "dropped"}.get(how, how), args.profiled and "profiled")))
    label += f".kernels.{part}" if args.kernels else ""
    began = time.time()
    with (Path(args.out) / f"{label}.jsonl").open("w") as file:
        file.write(json.dumps({"environment": environment(), "protocol": __doc__}) + "\n")
        for place, case in list(enumerate(cases))[part::parts]:
            if time.time() - began > args.limit:
                print(f"{label}: out of time after {place} of {len(cases)}", flush=True)
                break
            row = measured(case, f"{label} {place}", args, how=how)
            file.write(json.dumps(row | {"place": place}) + "\n")
            file.flush()
            if place % 20 == 0:
                torch.cuda.empty_cache()
    print(f"{label}: {time.time() - began:.0f} s, {len(cases)} cases", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("suite", nargs="+")
    parser.add_argument("--out", default=".")
    parser.add_argument("--warm")
    parser.add_argument("--kernels")
    parser.add_argument("--profiled", action="store_true")
    parser.add_argument("--limit", type=float, default=1e9)
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    no_cached_choices(benchmark=not args.warm)
    CachingAutotuner.run = recording(CachingAutotuner.run)
    for suite in args.suite:
        cases = list(suites.SUITES[suite.partition(":")[0]]())[:: args.every]
        if args.warm:
            warm(cases, *map(int, args.warm.split("/")))
        else:
            run(suite, cases, args)


if __name__ == "__main__":
    main()
