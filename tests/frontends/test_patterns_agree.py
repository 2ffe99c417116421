"""What `fusesim.patterns` builds by hand is what PyTorch dispatches: kinds, shapes and types, in order."""

import math

import pytest

import fusesim
from fusesim import patterns

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install 'fusesim[torch]'")
F = torch.nn.functional


def empty(*shape, dtype="bfloat16"):
    return torch.empty(*shape, device="meta", dtype=getattr(torch, dtype))


def rmsnorm(x, w):
    y = x * x
    return x * torch.rsqrt(y.mean(-1, keepdim=True) + 1e-6) * w


def rmsnorm_upcast(x, w):
    h = x.float()
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def layernorm_ops(x, w, b):
    d = x - x.mean(-1, keepdim=True)
    return d * torch.rsqrt((d * d).mean(-1, keepdim=True) + 1e-5) * w + b


def softmax_ops(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def rope(x, c, s):
    half = x.shape[-1] // 2
    return x * c + torch.cat((-x[..., half:], x[..., :half]), -1) * s


def attention_ops(q, k, v):
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-1, -2)) * q.shape[-1] ** -0.5, -1), v)


def conv_bn_relu(x, w, mean, var, weight, bias):
    return torch.relu(F.batch_norm(F.conv2d(x, w, padding=1), mean, var, weight, bias, training=False))


def quantise(x):
    s = x.abs().amax(-1, keepdim=True).float() / 448.0
    return (x.float() / s).to(torch.float8_e4m3fn), s


def adam(p, g, m, v):
    m = m * 0.9 + g * 0.1
    v = v * 0.999 + g * g * 0.001
    return p - 1e-3 * m / (v.sqrt() + 1e-8), m, v


def channels_last(x):
    return x.to(memory_format=torch.channels_last)


ROWS = (8, 64)
HEADS = (1, 2, 16, 8)
FLAT = {"dtype": "float32"}
CASES = [
    (lambda x, b: torch.relu(x + b), [empty(8, 64, **FLAT), empty(64, **FLAT)], patterns.bias_relu(8, 64)),
    (rmsnorm, [empty(*ROWS), empty(64)], patterns.rmsnorm(8, 64)),
    (rmsnorm_upcast, [empty(*ROWS), empty(64)], patterns.rmsnorm(8, 64, upcast=True)),
    (lambda x, w, b: F.layer_norm(x, (64,), w, b), [empty(*ROWS), empty(64), empty(64)], patterns.layernorm(8, 64)),
    (layernorm_ops, [empty(*ROWS), empty(64), empty(64)], patterns.layernorm(8, 64, composite=False)),
    (lambda x: F.softmax(x, -1), [empty(*ROWS)], patterns.softmax(8, 64)),
    (softmax_ops, [empty(*ROWS)], patterns.softmax(8, 64, composite=False)),
    (F.gelu, [empty(*ROWS)], patterns.gelu(8, 64)),
    (lambda a, b: F.silu(a) * b, [empty(*ROWS)] * 2, patterns.swiglu(8, 64)),
    (rope, [empty(8, 4, 16), empty(8, 1, 16), empty(8, 1, 16)], patterns.rope(8, 4, 16)),
    (torch.matmul, [empty(8, 16), empty(16, 32)], patterns.matmul(8, 16, 32)),
    (
        lambda x, w, b: torch.relu(torch.matmul(x, w) + b),
        [empty(8, 16), empty(16, 32), empty(32)],
        patterns.matmul_bias_relu(8, 16, 32),
    ),
    (F.scaled_dot_product_attention, [empty(*HEADS)] * 3, patterns.attention(*HEADS)),
    (attention_ops, [empty(*HEADS)] * 3, patterns.attention(*HEADS, composite=False)),
    (
        conv_bn_relu,
        [channels_last(empty(2, 8, 6, 6)), channels_last(empty(8, 8, 3, 3)), *[empty(8, **FLAT)] * 4],
        patterns.conv_bn_relu(2, 8, 8, 6, 3),
    ),
    (quantise, [empty(*ROWS)], patterns.fp8_rowwise_quant(8, 64)),
    (
        lambda x, t: F.cross_entropy(x.float(), t),
        [empty(8, 64), empty(8, dtype="int64")],
        patterns.cross_entropy(8, 64),
    ),
    (adam, [empty(64, **FLAT) for _ in range(4)], patterns.adam_step(64)),
    (
        lambda x, r, w, b: F.layer_norm(F.dropout(x, 0.1) + r, (64,), w, b),
        [empty(*ROWS), empty(*ROWS), empty(64), empty(64)],
        patterns.dropout_residual_layernorm(8, 64),
    ),
    (
        lambda x, g, u, d: torch.matmul(F.silu(torch.matmul(x, g)) * torch.matmul(x, u), d),
        [empty(8, 16), empty(16, 32), empty(16, 32), empty(32, 16)],
        patterns.swiglu_mlp(8, 16, 32),
    ),
    (
        lambda a, b, c, d: (torch.relu(a), torch.sigmoid(b), torch.tanh(c), d * d),
        [empty(64) for _ in range(4)],
        patterns.independent4(64),
    ),
]


def described(graph):
    """Kinds, shapes and types in order; matrices count their batch as one, since bmm flattens it."""

    def shape(node, name):
        tensor = graph.tensors[name]
        if node.family == "matmul":
            return math.prod(tensor.shape[:-2]), tensor.shape[-2:], tensor.dtype
        return tensor.shape, tensor.dtype

    return [
        (node.kind, [shape(node, name) for name in node.inputs], [shape(node, name) for name in node.outputs])
        for node in graph.paid_nodes
    ]


@pytest.mark.parametrize(("function", "inputs", "built"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_pattern_is_what_pytorch_dispatches(function, inputs, built):
    traced = fusesim.from_torch(function, *inputs)
    assert described(traced) == described(built)
    assert traced.gaps == ()
    for mine, theirs in zip(traced.paid_nodes, built.paid_nodes, strict=True):
        if mine.family != "matmul":
            strides = [
                [graph.tensors[name].strides for name in node.outputs]
                for graph, node in ((traced, mine), (built, theirs))
            ]
            assert strides[0] == strides[1], mine.name
