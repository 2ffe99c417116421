"""Every strategy has a legal plan, and every plan a price, for PyTorch programs of all kinds.

Programs are small: what is asked is whether a plan exists, not what it costs. Shapes go down to no elements and to no
dimensions, since that is where rules for rows and columns break first.
"""

from __future__ import annotations

import pytest

import fusesim
from fusesim.strategies import STRATEGIES

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install 'fusesim[torch]'")
nn, F = torch.nn, torch.nn.functional
QUICK = sorted(STRATEGIES.keys() - {"optimal"})
MOST_EXACT = 12  # ops up to which the exact planner is asked too


def meta(*shape, dtype=torch.float32, grad=False):
    return torch.empty(*shape, device="meta", dtype=dtype, requires_grad=grad)


def index(*shape):
    return meta(*shape, dtype=torch.int64)


def planned(function, *inputs):
    """Plan and price a program by every strategy, in every path and mode."""
    graph = fusesim.from_torch(function, *inputs)
    for strategy in [*QUICK, *(["optimal"] if len(graph.paid_nodes) <= MOST_EXACT else [])]:
        plan = fusesim.plan(graph, strategy=strategy)
        for path, launch in (("torch", "stream"), ("inductor", "graph"), ("cuda", "latency")):
            price = fusesim.price(plan, path=path, launch=launch)
            assert 0 <= price.time < 1, (strategy, path)
            assert (price.time > 0) == (price.kernels > 0), (strategy, path)
    return graph


def on_meta(make):
    with torch.device("meta"):
        return make()


MODULES = {
    "gru": (lambda: nn.GRU(16, 32, 2, batch_first=True, bidirectional=True), (2, 3, 16)),
    "gru_one_step": (lambda: nn.GRU(16, 32), (1, 1, 16)),
    "lstm": (lambda: nn.LSTM(16, 32, 2, bidirectional=True, proj_size=8), (3, 2, 16)),
    "rnn": (lambda: nn.RNN(16, 32), (3, 2, 16)),
    "encoder": (lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True), (2, 8, 32)),
    "encoder_inference": (lambda: nn.TransformerEncoderLayer(32, 4, 64).eval(), (2, 8, 32)),
    "conv1d": (lambda: nn.Conv1d(3, 8, 3, padding=1), (2, 3, 16)),
    "depthwise": (lambda: nn.Conv2d(8, 8, 3, groups=8, padding=1), (2, 8, 8, 8)),
    "dilated": (lambda: nn.Conv2d(3, 8, 3, dilation=2, padding="same"), (2, 3, 8, 8)),
    "transposed": (lambda: nn.ConvTranspose2d(8, 4, 2, stride=2, output_padding=1), (2, 8, 8, 8)),
    "reflected": (lambda: nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect"), (2, 3, 8, 8)),
    "group_norm": (lambda: nn.GroupNorm(2, 8), (2, 8, 4, 4)),
    "instance_norm": (lambda: nn.InstanceNorm2d(8, affine=True, track_running_stats=True), (2, 8, 4, 4)),
    "batch_norm": (lambda: nn.BatchNorm2d(8), (2, 8, 4, 4)),
    "response_norm": (lambda: nn.LocalResponseNorm(2), (2, 8, 4, 4)),
    "max_pool": (lambda: nn.MaxPool2d(3, 2, 1, return_indices=True), (2, 8, 8, 8)),
    "adaptive_pool": (lambda: nn.AdaptiveAvgPool2d(3), (2, 8, 8, 8)),
    "fractional_pool": (lambda: nn.FractionalMaxPool2d(2, output_size=3), (2, 8, 8, 8)),
    "shuffle": (lambda: nn.Sequential(nn.PixelShuffle(2), nn.PixelUnshuffle(2), nn.ChannelShuffle(4)), (2, 8, 4, 4)),
    "bicubic": (lambda: nn.Upsample(scale_factor=1.5, mode="bicubic"), (2, 8, 4, 4)),
    "dropouts": (lambda: nn.Sequential(nn.Dropout2d(), nn.AlphaDropout(), nn.RReLU()), (2, 8, 4, 4)),
    "circular_padding": (lambda: nn.CircularPad1d(1), (2, 8, 4)),
    "unfold": (lambda: nn.Sequential(nn.Unfold(2, stride=2), nn.Fold((8, 8), 2, stride=2)), (2, 3, 8, 8)),
    "mixed": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(2), nn.Flatten()),
        (2, 3, 8, 8),
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    make, shape = MODULES[name]
    planned(on_meta(make), meta(*shape))


TRAINED = ("gru", "lstm", "encoder", "depthwise", "transposed", "reflected", "group_norm", "instance_norm", "mixed")


@pytest.mark.parametrize("name", TRAINED)
def test_training_steps_of_modules(name):
    make, shape = MODULES[name]
    module = on_meta(make)
    optimizer = torch.optim.Adam(module.parameters(), foreach=True)

    def step(x):
        made = module(x)
        made = made[0] if isinstance(made, tuple) else made
        made.sum().backward()
        optimizer.step()

    planned(step, meta(*shape, grad=True))


def put(x, where, value):
    x[where] = value
    return x


def parts_changed(x):
    a, b = x.chunk(2, 1)
    a.mul_(b)
    b.add_(a)
    return x + 1


def row_by_row(x):
    for place in range(1, 5):
        x[place] = x[place - 1] * 2 + x[place + 1]
    return x


FUNCTIONS = {
    "scans": lambda x: (x.cumsum(1), x.cumprod(0), x.cummax(1), x.logcumsumexp(1)),
    "orders": lambda x: (x.topk(3), x.sort(), x.argsort(0), x.kthvalue(2), x.median(), x.mode()),
    "scatters": lambda x: x.scatter_add(1, x.long(), x).scatter(1, x.long(), 1.0).gather(1, x.long()),
    "puts": lambda x: put(x.index_put((x[:, 0].long(),), x[0]).index_add(0, x[:, 0].long(), x), x > 0, 0.0),
    "indices": lambda x: (x[x[:, 0].long(), x[:, 1].long()], x[:, [1, 3]], x[None, :, ::3], x[-1:, ..., -2]),
    "masks": lambda x: torch.where(x > 0, x.masked_fill(x > 1, 1.0), 0.0).clamp(x, x).tril(),
    "products": lambda x: torch.einsum("ij,kj,k->i", x, x, x[:, 0]) + (x @ x[0]).dot(x[:, 1]) * x.trace(),
    "moves": lambda x: (x.roll((1, 2), (0, 1)), x.flip(0, 1), x.rot90(), F.pad(x, (-1, 2)), x.repeat(2, 2)),
    "joins": lambda x: torch.stack(torch.cat(x.split([3, 5, 8], 1), 1).unbind(0)).sum(0),
    "chain_in_place": lambda x: x.clone().add_(1).mul_(x).relu_().sigmoid_(),
    "parts_in_place": parts_changed,
    "all_parts_in_place": lambda x: [part.add_(1) for part in x.chunk(4, 1)],
    "transposed_in_place": lambda x: x.clone().t().mul_(2).add_(x.t()).sum(0),
    "rows_in_place": row_by_row,
    "shifted_copy": lambda x: put(x, slice(1, None), x[:-1].clone()),
    "part_from_part": lambda x: put(x, (slice(None), slice(2, 4)), x[:, :2] * 2).exp(),
    "over_itself": lambda x: torch.mul(x, x, out=x),
    "types": lambda x: (x.half() * x.bfloat16(), x.long() / 2, x.to(torch.int8) + x.to(torch.uint8), x.double() + x),
    "no_dimensions": lambda x: x.sum().softmax(0) * x.mean().cumsum(0) + torch.tensor(2.0, device="meta"),
    "no_elements": lambda x: (x[:0].softmax(1), x[:0].sum(0), x[:, :0] @ x[:, :0].T, x[:0] @ x.T),
    "unread": lambda x: (x.exp(), x + 1)[1],
    "views_alone": lambda x: (x, x.view(-1), x.T),
    "nothing": lambda _: None,
    "losses": lambda x: F.cross_entropy(x, index(8), label_smoothing=0.1) + F.nll_loss(x, index(8), reduction="none"),
    "norms": lambda x: F.normalize(x) * F.cosine_similarity(x, x)[:, None] + x.norm(),
    "random": lambda x: x + torch.rand_like(x) * torch.bernoulli(x) + F.gumbel_softmax(x),
    "derivatives": lambda x: torch.func.jacrev(lambda row: row.sin())(x[0]),
    "decompositions": lambda x: (torch.linalg.svd(x), torch.linalg.inv(x[:, :8]), torch.fft.rfft(x)),
    "attention": lambda x: nn.functional.multi_head_attention_forward(
        x[:, None], x[:, None], x[:, None], 16, 2, meta(48, 16), None, None, None, True, 0.1, meta(16, 16), None
    ),
    "bags": lambda x: F.embedding_bag(index(3, 5), x, mode="max"),
    "foreach": lambda x: torch._foreach_addcdiv_(list(x.unbind(0)), list(x.unbind(0)), list(x.unbind(0)), 0.1),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    planned(FUNCTIONS[name], meta(8, 16))


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, foreach=True),
        lambda p: torch.optim.AdamW(p, foreach=False),
        lambda p: torch.optim.RMSprop(p, foreach=True),
        lambda p: torch.optim.Rprop(p, foreach=True),
        torch.optim.RAdam,
    ],
)
def test_optimizers(make):
    def update(*gradients):
        parameters = [nn.Parameter(meta(4, 4)) for _ in gradients]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        make(parameters).step()
        return parameters

    planned(update, meta(4, 4), meta(4, 4))


def test_a_program_that_hangs_on_values_is_refused_in_one_sentence():
    for function in (
        lambda x: x[x > 0],
        lambda x: x * x.sum().item(),
        torch.unique,
        lambda x: x if x.sum() > 0 else -x,
    ):
        with pytest.raises(fusesim.FusesimError, match="depends on values") as caught:
            fusesim.from_torch(function, meta(8, 16))
        assert "\n" not in str(caught.value)
