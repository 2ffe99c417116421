"""Parts of models as patterns: a decoder block, and a recommendation model.

One node per call of the framework, in the order in which it evaluates them. `hold` and `release` mark how long the
variables of the program keep what they name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fusesim.builder import Builder
from fusesim.patterns.arguments import divides, even, pattern
from fusesim.patterns.pointwise import rotary
from fusesim.patterns.rows import rms_upcast

if TYPE_CHECKING:
    from fusesim.graph import Graph
    from fusesim.tensor import Tensor

DENSE: Final = 13
"""Dense features of DLRM."""

TABLES, ROWS, WIDTH = 26, 10_000, 64
"""Embedding tables of DLRM, their rows, and the width of a row."""


@pattern
def transformer_block(
    batch: int = 1, seq: int = 2048, hidden: int = 2048, inner: int = 5632, heads: int = 16, *, dtype: str = "bf16"
) -> Graph:
    """Return a decoder block: RMSNorm in fp32, rotary embedding, causal attention, SwiGLU, two residual sums.

    x [batch, seq, hidden], cos and sin [seq, hidden / heads]; weights q, k, v, o [hidden, hidden], gate and up
    [hidden, inner], down [inner, hidden], two norm weights [hidden].
    """
    divides("transformer_block: heads", heads, "hidden", hidden)
    even("transformer_block: hidden / heads", hidden // heads)
    b = Builder("transformer_block")
    x = b.input(batch, seq, hidden, dtype=dtype)
    cos, sin = (b.input(seq, hidden // heads, dtype=dtype, name=name) for name in ("cos", "sin"))
    norms = [b.parameter(hidden, dtype=dtype, name=name) for name in ("norm1", "norm2")]
    square = {name: b.parameter(hidden, hidden, dtype=dtype, name=name) for name in ("wq", "wk", "wv", "wo")}
    gate, up = (b.parameter(hidden, inner, dtype=dtype, name=name) for name in ("gate", "up"))
    down = b.parameter(inner, hidden, dtype=dtype, name="down")

    first = rms_upcast(b, x, norms[0], inline=True)
    q, k, v = (_heads(b, _times(b, first, square[name]), heads) for name in ("wq", "wk", "wv"))
    mixed = b.attention(rotary(b, q, cos, sin), rotary(b, k, cos, sin), v, causal=True)
    joined = b.view(b.transpose(mixed, 1, 2), x.shape)
    x = b.op("add", x, _times(b, joined, square["wo"]))
    second = rms_upcast(b, x, norms[1], inline=True)
    b.release(first)  # its variable now names the second norm
    b.hold(q, k, v, mixed, x, second)
    gated = b.op("mul", b.op("silu", _times(b, second, gate)), _times(b, second, up))
    b.output(b.op("add", x, _times(b, gated, down)))
    return b.graph()


def _times(b: Builder, x: Tensor, weight: Tensor) -> Tensor:
    """Add x [batch, seq, k] times weight [k, n] as one matrix product."""
    batch, seq, k = x.shape
    return b.view(b.matmul(b.view(x, (batch * seq, k)), weight), (batch, seq, weight.shape[-1]))


def _heads(b: Builder, x: Tensor, heads: int) -> Tensor:
    """Look at x [batch, seq, hidden] as [batch, heads, seq, hidden / heads]."""
    batch, seq, hidden = x.shape
    return b.transpose(b.view(x, (batch, seq, heads, hidden // heads)), 1, 2)


@pattern
def dlrm(batch: int = 2048, dtype: str = "fp32") -> Graph:
    """Return DLRM's forward pass: x [batch, 13], index [batch, 26] into tables [10000, 64].

    Three linear layers with ReLU (512, 256, 64) make a vector of the dense features; with a row of each table they are
    27 vectors, whose 351 products in pairs go through three more layers (512, 256, 1) and a sigmoid, with the dense
    vector.
    """
    b = Builder("dlrm")
    x, index = b.input(batch, DENSE, dtype=dtype), b.input(batch, TABLES, dtype="int64", name="index")
    tables = [b.parameter(ROWS, WIDTH, dtype=dtype, name="table") for _ in range(TABLES)]
    for width in (512, 256, WIDTH):
        x = b.op("relu", _linear(b, x, width))
    b.hold(x)
    rows = [_bag(b, table, b.slice(index, 1, place, place + 1)) for place, table in enumerate(tables)]
    stacked = b.concat([b.view(row, (batch, 1, WIDTH)) for row in (x, *rows)], 1)
    products = b.matmul(stacked, b.transpose(stacked))
    pairs = (TABLES + 1) * TABLES // 2
    places = b.op("iota", dtype="int64", shape=(2, pairs))
    lower = b.gather("index", products, [b.select(places, 0, 0), b.select(places, 0, 1)], (batch, pairs))
    y = b.concat([x, lower], 1)
    b.hold(stacked, products, places)
    for width in (512, 256):
        y = b.op("relu", _linear(b, y, width))
    b.output(b.op("sigmoid", _linear(b, y, 1)))
    return b.graph()


def _linear(b: Builder, x: Tensor, width: int) -> Tensor:
    """Add a linear layer with a bias."""
    weight = b.parameter(width, x.shape[-1], dtype=x.dtype, name="weight")
    return b.linear(x, weight, b.parameter(width, dtype=x.dtype, name="bias"))


def _bag(b: Builder, table: Tensor, index: Tensor) -> Tensor:
    """Add the rows of a table at a column of the index; where each bag begins is counted out, the column made dense."""
    bags = index.shape[0]
    begins = b.op("iota", dtype="int64", shape=(bags,))
    flat = b.contiguous(b.view(index, (bags,)))
    result = b.tensor((bags, table.shape[-1]), table.dtype, stem="embedding_bag")
    b.node("embedding_bag", [table, flat, begins], [result])
    return result
