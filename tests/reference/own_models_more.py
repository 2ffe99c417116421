"""Eight more models, of families that no rate, rule or interval was chosen by; measured as `own_models.py` measures.

    python tests/reference/own_models_more.py --out DIR

writes DIR/more.tgz, which holds more.json and the traces.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import models_torch
import own_models
import torch
from own_models import bf16, r
from torch import nn
from torch.nn import functional

fp16, fp32 = torch.float16, torch.float32


class ConvNext(nn.Module):
    """A stage of ConvNeXt: strided convolution, 7x7 depthwise, layer norm and dense layers on channels last."""

    def __init__(self, width, blocks):
        super().__init__()
        self.norm, self.down = nn.LayerNorm(width // 2), nn.Conv2d(width // 2, width, 2, 2)
        self.deep = nn.ModuleList(nn.Conv2d(width, width, 7, 1, 3, groups=width) for _ in range(blocks))
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-6) for _ in range(blocks))
        self.up = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(blocks))
        self.back = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(blocks))
        self.scale = nn.ParameterList(torch.full((width,), 1e-2) for _ in range(blocks))

    def forward(self, x):
        x = self.down(self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2))
        for deep, norm, up, back, scale in zip(self.deep, self.norms, self.up, self.back, self.scale, strict=True):
            y = norm(deep(x).permute(0, 2, 3, 1))
            x = x + (scale * back(functional.gelu(up(y)))).permute(0, 3, 1, 2)
        return x


class T5(nn.Module):
    """An encoder layer of T5: RMSNorm and attention written out, bias by relative position, ReLU-gated dense layers."""

    def __init__(self, hidden, inner, heads, length):
        super().__init__()
        linear = lambda a, b: nn.Linear(a, b, bias=False)  # noqa: E731
        self.n1, self.n2, self.heads = nn.Parameter(torch.ones(hidden)), nn.Parameter(torch.ones(hidden)), heads
        self.q, self.k, self.v, self.o = (linear(hidden, hidden) for _ in range(4))
        self.gate, self.up, self.down = linear(hidden, inner), linear(hidden, inner), linear(inner, hidden)
        self.bias = nn.Embedding(32, heads)
        at = torch.arange(length)
        self.register_buffer("buckets", (at[None, :] - at[:, None]).clamp(-16, 15) + 16)

    @staticmethod
    def norm(x, weight):
        return weight * (x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(weight.dtype)

    def forward(self, x):
        y = self.norm(x, self.n1)
        q, k, v = (w(y).view(*x.shape[:2], self.heads, -1).transpose(1, 2) for w in (self.q, self.k, self.v))
        scores = q @ k.transpose(2, 3) + self.bias(self.buckets).permute(2, 0, 1).unsqueeze(0)
        weights = functional.softmax(scores.float(), -1).type_as(scores)
        x = x + self.o((weights @ v).transpose(1, 2).reshape(x.shape))
        y = self.norm(x, self.n2)
        return x + self.down(functional.relu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """The prefill of a decoder block with grouped-query attention, rotary, RMSNorm and SwiGLU."""

    def __init__(self, hidden, inner, heads, kv_heads):
        super().__init__()
        linear = lambda a, b: nn.Linear(a, b, bias=False)  # noqa: E731
        self.dim = hidden // heads
        self.n1, self.n2 = nn.RMSNorm(hidden, eps=1e-5), nn.RMSNorm(hidden, eps=1e-5)
        self.q, self.o = linear(hidden, hidden), linear(hidden, hidden)
        self.k, self.v = linear(hidden, kv_heads * self.dim), linear(hidden, kv_heads * self.dim)
        self.gate, self.up, self.down = linear(hidden, inner), linear(hidden, inner), linear(inner, hidden)

    def forward(self, x, cos, sin):
        y = self.n1(x)
        q, k, v = (w(y).view(*x.shape[:2], -1, self.dim).transpose(1, 2) for w in (self.q, self.k, self.v))
        q, k = models_torch.rope(q, cos, sin), models_torch.rope(k, cos, sin)
        o = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(o.transpose(1, 2).reshape(x.shape))
        y = self.n2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Whisper(nn.Module):
    """An encoder of sound: two convolutions over time with GELU, positions, two transformer layers, a norm."""

    def __init__(self, hidden, heads, bands=80, positions=1500):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(bands, hidden, 3, padding=1), nn.Conv1d(hidden, hidden, 3, 2, 1)
        self.positions, self.norm = nn.Parameter(torch.randn(positions, hidden) * 0.02), nn.LayerNorm(hidden)
        self.layers = nn.ModuleList(models_torch.Gpt(hidden, heads, causal=False, approximate="none") for _ in range(2))

    def forward(self, x):
        x = functional.gelu(self.c2(functional.gelu(self.c1(x)))).transpose(1, 2) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Experts(nn.Module):
    """A mixture: the two best of several experts a token, each expert run on every token and weighed, most by zero."""

    def __init__(self, hidden, inner, experts):
        super().__init__()
        p = lambda *d: nn.Parameter(torch.randn(*d) * 0.02)  # noqa: E731
        self.norm, self.router = nn.LayerNorm(hidden), nn.Linear(hidden, experts, bias=False)
        self.up, self.down = p(experts, hidden, inner), p(experts, inner, hidden)

    def forward(self, x):
        y = self.norm(x)
        shares, chosen = functional.softmax(self.router(y).float(), -1).topk(2, -1)
        shares = (shares / shares.sum(-1, keepdim=True)).to(x.dtype)
        gates = torch.zeros(len(x), len(self.up), dtype=x.dtype, device=x.device).scatter(1, chosen, shares)
        each = functional.gelu(y.expand(len(self.up), *y.shape) @ self.up) @ self.down
        return x + (each * gates.t().unsqueeze(-1)).sum(0)


class Residual(nn.Module):
    """A basic block of ResNet: two 3x3 convolutions, batch norms, ReLU and a shortcut, strided if it widens."""

    def __init__(self, come, go):
        super().__init__()
        step = go // come
        conv = lambda *form: nn.Conv2d(*form, bias=False)  # noqa: E731
        self.c1, self.n1 = conv(come, go, 3, step, 1), nn.BatchNorm2d(go)
        self.c2, self.n2 = conv(go, go, 3, 1, 1), nn.BatchNorm2d(go)
        self.short = nn.Sequential(conv(come, go, 1, step), nn.BatchNorm2d(go)) if step > 1 else nn.Identity()

    def forward(self, x):
        y = functional.relu(self.n1(self.c1(x)))
        return functional.relu(self.n2(self.c2(y)) + self.short(x))


class Resnet(nn.Module):
    """ResNet-18: a 7x7 stem, max pooling, eight basic blocks of rising width, and a head."""

    def __init__(self, classes=1000):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
        self.blocks = nn.ModuleList(Residual(*pair) for pair in pairwise(widths))
        self.head = nn.Linear(512, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.norm(self.stem(x))), 3, 2, 1)
        for block in self.blocks:
            x = block(x)
        return self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Tower(nn.Module):
    """One side of a recommender: an embedding, a bag of embeddings and numbers through dense layers with batch norm."""

    def __init__(self, known, numbers, width=64):
        super().__init__()
        self.one, self.bag = nn.Embedding(known, width), nn.EmbeddingBag(known, width, mode="mean")
        sizes = (2 * width + numbers, 512, 256, 128)
        pairs = list(pairwise(sizes))
        self.dense = nn.ModuleList(nn.Linear(*pair) for pair in pairs)
        self.norms = nn.ModuleList(nn.BatchNorm1d(go) for _, go in pairs)

    def forward(self, one, many, numbers):
        x = torch.cat((self.one(one), self.bag(many), numbers), 1)
        for dense, norm in zip(self.dense, self.norms, strict=True):
            x = functional.relu(norm(dense(x)))
        return functional.normalize(x)


class Towers(nn.Module):
    """A recommender of two towers: how well each user's item suits, by a dot product."""

    def __init__(self):
        super().__init__()
        self.user, self.item = Tower(100_000, 16), Tower(50_000, 8)

    def forward(self, *features):
        return torch.sigmoid((self.user(*features[:3]) * self.item(*features[3:])).sum(1) * 10)


class TrainConv(nn.Module):
    """A training step of a small classifier of pictures: batch norm, cross entropy, and gradients."""

    def __init__(self, classes=100):
        super().__init__()
        widths = (3, 64, 128, 256)
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, 1, 1) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for b in widths[1:])
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x, labels):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = functional.max_pool2d(functional.relu(norm(conv(x))), 2)
        loss = functional.cross_entropy(self.head(x.mean((2, 3))), labels)
        return torch.autograd.grad(loss, list(self.parameters()))


LAST = {"memory_format": torch.channels_last}


def convnext(device):
    x = r(32, 96, 56, 56, dtype=fp16, device=device)
    return ConvNext(192, 3).to(device, fp16).to(**LAST), (x.to(**LAST),)


def t5(device):
    return T5(768, 2048, 12, 512).to(device, bf16), (r(8, 512, 768, device=device),)


def llama(device):
    shapes = ((1, 1500, 3072), (1500, 128), (1500, 128))
    return Llama(3072, 8192, 24, 8).to(device, fp16), tuple(r(*d, dtype=fp16, device=device) for d in shapes)


def whisper(device):
    return Whisper(768, 12).to(device, fp16), (r(4, 80, 3000, dtype=fp16, device=device),)


def experts(device):
    return Experts(1024, 2816, 8).to(device, bf16), (r(1024, 1024, device=device),)


def resnet18(device):
    return Resnet().eval().to(device), (r(16, 3, 224, 224, dtype=fp32, device=device),)


def towers(device):
    ids = lambda known, *d: torch.randint(0, known, (4096, *d), device=device)  # noqa: E731
    user = ids(100_000), ids(100_000, 30), r(4096, 16, dtype=fp32, device=device)
    return Towers().eval().to(device), (*user, ids(50_000), ids(50_000, 10), r(4096, 8, dtype=fp32, device=device))


def train_conv(device):
    x, labels = r(128, 3, 64, 64, device=device), torch.randint(0, 100, (128,), device=device)
    return TrainConv().to(device, bf16).to(**LAST), (x.to(**LAST), labels)


BUILDERS = {
    "convnext:32": convnext,
    "t5:8,512,768,12": t5,
    "llama:1,1500,3072,8192,24,8": llama,
    "whisper:4": whisper,
    "experts:1024": experts,
    "resnet18:16": resnet18,
    "towers:4096": towers,
    "train:conv,128": train_conv,
}


def build(name, device="cuda"):
    """Return a module and its inputs."""
    return BUILDERS[name](device)


if __name__ == "__main__":
    own_models.main(build, BUILDERS, "more", packed=True)
