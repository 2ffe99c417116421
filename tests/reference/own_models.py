"""Whole modules of this project's own choice, measured eager and compiled: other families, sizes and phases.

    python tests/reference/own_models.py --out DIR [--times | --warm PART/PARTS]

Each is run forward without gradients unless its name says `train`. The same protocol as h200_models.json: four calls on
the same buffers in one CUDA graph, events around the replay, divided by four; kernels of one captured call; the
allocator's peak. A profiler trace of one eager call with shapes is kept, durations included. With `--times` nothing is
asked of a profiler, so that all times are of a process in which none has run; `--warm` compiles a part before.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import tarfile
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import models_torch
import torch
from measure_torch import clean, environment, no_cached_choices, quantiles
from torch import nn
from torch.nn import functional

bf16 = torch.bfloat16


class Decode(nn.Module):
    """One token of a decoder block with grouped-query attention over a cache of keys and values, SwiGLU, RMSNorm."""

    def __init__(self, hidden, inner, heads, kv_heads):
        super().__init__()
        dim = hidden // heads
        p = lambda *d: nn.Parameter(torch.randn(*d) * 0.02)  # noqa: E731
        self.n1, self.n2, self.heads, self.kv, self.dim = p(hidden), p(hidden), heads, kv_heads, dim
        self.wq, self.wo = p(hidden, hidden), p(hidden, hidden)
        self.wk, self.wv = p(hidden, kv_heads * dim), p(hidden, kv_heads * dim)
        self.wg, self.wu, self.wd = p(hidden, inner), p(hidden, inner), p(inner, hidden)

    def forward(self, x, keys, values):
        b, t, h = x.shape
        y = functional.rms_norm(x, (h,), self.n1)
        q = (y @ self.wq).view(b, t, self.heads, self.dim).transpose(1, 2)
        k = (y @ self.wk).view(b, t, self.kv, self.dim).transpose(1, 2)
        v = (y @ self.wv).view(b, t, self.kv, self.dim).transpose(1, 2)
        keys, values = torch.cat((keys, k), 2), torch.cat((values, v), 2)
        r = self.heads // self.kv
        o = functional.scaled_dot_product_attention(q, keys.repeat_interleave(r, 1), values.repeat_interleave(r, 1))
        x = x + o.transpose(1, 2).reshape(b, t, h) @ self.wo
        y = functional.rms_norm(x, (h,), self.n2)
        return x + (functional.silu(y @ self.wg) * (y @ self.wu)) @ self.wd


class Mobile(nn.Module):
    """Inverted residuals: 1x1 up, depthwise 3x3, 1x1 down, batch norm and ReLU6."""

    def __init__(self, width=32, blocks=4):
        super().__init__()
        layers = [nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU6()]
        for _ in range(blocks):
            wide = width * 4
            layers += [nn.Conv2d(width, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()]
            layers += [nn.Conv2d(wide, wide, 3, 1, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()]
            layers += [nn.Conv2d(wide, width, 1, bias=False), nn.BatchNorm2d(width)]
        self.body, self.head = nn.Sequential(*layers), nn.Linear(width, 100)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class Unet(nn.Module):
    """A small denoiser: group norm, SiLU, 3x3 convolutions, one level down and up with a skip."""

    def __init__(self, width=128):
        super().__init__()
        self.inp, self.out = nn.Conv2d(4, width, 3, padding=1), nn.Conv2d(width, 4, 3, padding=1)
        self.n = nn.ModuleList(nn.GroupNorm(32, c) for c in (width, width, 2 * width, 2 * width, 3 * width))
        forms = ((1, 1, 1), (1, 2, 2), (2, 2, 1), (2, 2, 1), (3, 1, 1))
        self.c = nn.ModuleList(nn.Conv2d(a * width, b * width, 3, step, 1) for a, b, step in forms)

    def forward(self, x):
        x = self.inp(x)
        h = self.c[0](functional.silu(self.n[0](x))) + x
        d = self.c[1](functional.silu(self.n[1](h)))
        d = d + self.c[2](functional.silu(self.n[2](d)))
        d = d + self.c[3](functional.silu(self.n[3](d)))
        u = torch.cat((functional.interpolate(d, scale_factor=2.0), h), 1)
        return self.out(self.c[4](functional.silu(self.n[4](u))))


class Mlp(nn.Module):
    """Wide and deep: embeddings, dense layers, dropout off, cross entropy by hand in training."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(30000, 512), nn.Linear(512, 30000)
        self.layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(4))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + functional.gelu(layer(functional.layer_norm(x, (512,))))
        return functional.softmax(self.head(x).float(), -1)


class Train(nn.Module):
    """A training step of a GPT block: loss and gradients."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.block = models_torch.Gpt(hidden, heads)

    def forward(self, x):
        loss = self.block(x).float().pow(2).mean()
        return torch.autograd.grad(loss, list(self.block.parameters()))


def r(*shape, dtype=bf16, device="cuda"):
    return torch.randn(*shape, device=device).to(dtype)


def build(name, device="cuda"):
    """Return a module and its inputs."""
    last = {"memory_format": torch.channels_last}
    if name in {"gpt:2,512,768,12", "bert:16,384,1024,16", "block:1,512,4096,11008,32", "vit:16", "dlrm:2048"}:
        return models_torch.build(name, device)
    if name == "decode:16,2047":
        m = Decode(4096, 14336, 32, 8).to(device, bf16)
        cache = (r(16, 8, 2047, 128, device=device) for _ in range(2))
        return m, (r(16, 1, 4096, device=device), *cache)
    if name == "mobile:32":
        return Mobile().eval().to(device, bf16).to(**last), (r(32, 3, 224, 224, device=device).to(**last),)
    if name == "unet:4":
        return Unet().to(device, bf16).to(**last), (r(4, 4, 64, 64, device=device).to(**last),)
    if name == "mlp:512":
        return Mlp().to(device, bf16), (torch.randint(0, 30000, (512,), device=device),)
    if name == "train:4,512,1024,16":
        return Train(1024, 16).to(device, bf16), (r(4, 512, 1024, device=device),)
    raise KeyError(name)


NAMES = (
    "gpt:2,512,768,12",
    "bert:16,384,1024,16",
    "block:1,512,4096,11008,32",
    "vit:16",
    "dlrm:2048",
    "decode:16,2047",
    "mobile:32",
    "unet:4",
    "mlp:512",
    "train:4,512,1024,16",
)


def graph_time(call, inputs, *, bare=False):
    for _ in range(4):
        out = call(*inputs)
    torch.cuda.synchronize()
    del out
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call(*inputs)
    torch.cuda.current_stream().wait_stream(stream)
    base = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    out = call(*inputs)
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - base
    del out
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [call(*inputs) for _ in range(4)]
    times = []
    for _ in range(14):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3 / 4)
    if bare:
        del kept, graph
        return {"graph": quantiles(times[3:]), "peak": peak}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as prof:
        graph.replay()
        torch.cuda.synchronize()
    names = [clean(e.name)[:56] for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    del kept, graph
    once = names[: len(names) // 4]
    return {"graph": quantiles(times[3:]), "peak": peak, "graph_kernels": len(names) / 4, "kernels": once}


def eager_time(call, inputs):
    times = []
    for _ in range(9):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(10):
            call(*inputs)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-4)
    return quantiles(times)


def trace(call, inputs, path):
    with torch.profiler.profile(record_shapes=True, acc_events=True) as prof:
        call(*inputs)
        torch.cuda.synchronize()
    raw = str(path) + ".json"
    prof.export_chrome_trace(raw)
    with Path(raw).open("rb") as source, gzip.open(raw + ".gz", "wb") as target:
        shutil.copyfileobj(source, target)
    Path(raw).unlink()


def measured(build, name, out, *, bare=False):
    """Return what was measured of a module; its trace is kept beside, but for `bare` times."""
    torch.manual_seed(0)
    with torch.set_grad_enabled(name.startswith("train")):
        module, inputs = build(name)
        row = {"name": name, "eager": graph_time(module, inputs, bare=bare)}
        row["eager"]["eager"] = eager_time(module, inputs)
        if not bare:
            trace(module, inputs, Path(out) / (name.replace(":", "_").replace(",", "-") + ".eager"))
        if not name.startswith("train"):
            torch.compiler.reset()
            compiled = torch.compile(module, dynamic=False)
            began = time.perf_counter()
            compiled(*inputs)
            torch.cuda.synchronize()
            row["compile_s"] = time.perf_counter() - began
            row["compiled"] = graph_time(compiled, inputs, bare=bare)
            row["compiled"]["eager"] = eager_time(compiled, inputs)
    return row


def run(build, names, stem, folder, *, bare=False):
    """Measure modules; their traces and STEM.json are left in the folder."""
    rows = []
    for name in names:
        try:
            row = measured(build, name, folder, bare=bare)
        except RuntimeError as error:  # one module out of memory must not end the run
            print(name, repr(error)[:300], flush=True)
            continue
        rows.append(row)
        print(
            name, {side: row[side]["graph"]["med"] * 1e6 for side in ("eager", "compiled") if side in row}, flush=True
        )
    out = {"protocol": __doc__, "environment": environment(), "rows": rows}
    (Path(folder) / f"{stem}.json").write_text(json.dumps(out))


def main(build, names, stem, *, packed=False):
    """Measure modules into the folder the command line names, as it is or as STEM.tgz."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=".")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--warm")
    args = parser.parse_args()
    out = args.out
    if args.times or args.warm:
        no_cached_choices(benchmark=not args.warm)
    if args.warm:
        part, parts = map(int, args.warm.split("/"))
        names = list(names)[part::parts]
    if args.times or args.warm or not packed:
        run(build, names, stem, out, bare=bool(args.times or args.warm))
        return
    with tempfile.TemporaryDirectory() as folder:
        run(build, names, stem, folder)
        with tarfile.open(Path(out) / f"{stem}.tgz", "w:gz") as target:
            target.add(folder, ".")


if __name__ == "__main__":
    main(build, NAMES, "own_models")
