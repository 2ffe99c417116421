"""The modules behind h200_models.json, random weights, forward, no grad. build(name, device) -> (module, inputs)."""
# ruff: noqa
import torch
import torch.nn.functional as F
from torch import nn

bf16 = torch.bfloat16


def rope(x, c, s):
    d = x.shape[-1] // 2
    return x * c + torch.cat((-x[..., d:], x[..., :d]), -1) * s


class Block(nn.Module):
    """Decoder block: RMSNorm in fp32, rotary, causal attention, SwiGLU. x [B, T, H], c and s [T, H // heads]."""

    def __init__(self, H, I, heads):
        super().__init__()
        p = lambda *d: nn.Parameter(torch.randn(*d) * 0.02)
        self.n1, self.n2, self.heads = p(H), p(H), heads
        self.wq, self.wk, self.wv, self.wo = p(H, H), p(H, H), p(H, H), p(H, H)
        self.wg, self.wu, self.wd = p(H, I), p(H, I), p(I, H)

    def norm(self, x, w):
        h = x.float()
        return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w

    def forward(self, x, c, s):
        B, T, H = x.shape
        y = self.norm(x, self.n1)
        q, k, v = ((y @ w).view(B, T, self.heads, H // self.heads).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        o = F.scaled_dot_product_attention(rope(q, c, s), rope(k, c, s), v, is_causal=True)
        x = x + o.transpose(1, 2).reshape(B, T, H) @ self.wo
        y = self.norm(x, self.n2)
        return x + (F.silu(y @ self.wg) * (y @ self.wu)) @ self.wd


class Gpt(nn.Module):
    """Pre-norm block with biases: LayerNorm, fused qkv, causal attention, tanh GELU."""

    def __init__(self, H, heads, causal=True, approximate="tanh", post=False):
        super().__init__()
        self.a, self.b, self.heads, self.causal, self.approximate, self.post = nn.LayerNorm(H), nn.LayerNorm(H), heads, causal, approximate, post
        self.qkv, self.o, self.u, self.d = nn.Linear(H, 3 * H), nn.Linear(H, H), nn.Linear(H, 4 * H), nn.Linear(4 * H, H)

    def attend(self, x):
        B, T, H = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, H // self.heads).permute(2, 0, 3, 1, 4)
        return self.o(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(B, T, H))

    def mlp(self, x):
        return self.d(F.gelu(self.u(x), approximate=self.approximate))

    def forward(self, x):
        if self.post:  # BERT order
            x = self.a(x + self.attend(x))
            return self.b(x + self.mlp(x))
        x = x + self.attend(self.a(x))
        return x + self.mlp(self.b(x))


class Vit(nn.Module):
    def __init__(self, H=768, heads=12, layers=2):
        super().__init__()
        self.patch, self.layers = nn.Conv2d(3, H, 16, 16), nn.ModuleList(Gpt(H, heads, causal=False, approximate="none") for _ in range(layers))
        self.pos, self.norm = nn.Parameter(torch.randn(1, 196, H) * 0.02), nn.LayerNorm(H)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Dlrm(nn.Module):
    """13 dense features, 26 tables of 10 000 x 64, pairwise interactions; fp32."""

    def __init__(self):
        super().__init__()
        L = nn.Linear
        self.bottom = nn.ModuleList([L(13, 512), L(512, 256), L(256, 64)])
        self.top = nn.ModuleList([L(64 + 27 * 26 // 2, 512), L(512, 256), L(256, 1)])
        self.tables = nn.ModuleList(nn.EmbeddingBag(10000, 64, mode="sum") for _ in range(26))

    def forward(self, x, i):
        for layer in self.bottom:
            x = torch.relu(layer(x))
        e = torch.stack([x] + [t(i[:, j : j + 1]) for j, t in enumerate(self.tables)], 1)
        z = torch.bmm(e, e.transpose(1, 2))
        r, c = torch.tril_indices(27, 27, -1, device=x.device)
        y = torch.cat((x, z[:, r, c]), 1)
        for layer in self.top[:-1]:
            y = torch.relu(layer(y))
        return torch.sigmoid(self.top[-1](y))


def build(name, device="cuda"):
    """`block:B,T,H,I,heads`, `gpt:B,T,H,heads`, `bert:B,T,H,heads`, `vit:B`, `dlrm:B`, `resnet50:B` (torchvision, channels_last)."""
    kind, _, args = name.partition(":")
    a = [int(v) for v in args.split(",")]
    r = lambda *d, dtype=bf16: torch.randn(*d, device=device).to(dtype)
    if kind == "block":
        B, T, H, I, heads = a
        return Block(H, I, heads).to(device, bf16), (r(B, T, H), r(T, H // heads), r(T, H // heads))
    if kind in ("gpt", "bert"):
        B, T, H, heads = a
        m = Gpt(H, heads) if kind == "gpt" else Gpt(H, heads, causal=False, approximate="none", post=True)
        return m.to(device, bf16), (r(B, T, H),)
    if kind == "vit":
        return Vit().to(device, bf16), (r(a[0], 3, 224, 224),)
    if kind == "dlrm":
        return Dlrm().to(device), (r(a[0], 13, dtype=torch.float32), torch.randint(0, 10000, (a[0], 26), device=device))
    if kind == "resnet50":
        import torchvision

        m = torchvision.models.resnet50().eval().to(device, bf16).to(memory_format=torch.channels_last)
        return m, (r(a[0], 3, 224, 224).to(memory_format=torch.channels_last),)
    raise KeyError(name)
