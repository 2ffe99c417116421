"""PyTorch programs as graphs: kinds, bytes by hand, FLOP against PyTorch's own counter."""

import subprocess
import sys

import pytest

import fusesim

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install 'fusesim[torch]'")
nn, F = torch.nn, torch.nn.functional


def meta(*shape, dtype=None, grad=False):
    return torch.empty(*shape, device="meta", dtype=dtype or torch.float32, requires_grad=grad)


def index(*shape):
    return meta(*shape, dtype=torch.int64)


def kinds(graph):
    return [node.kind for node in graph.paid_nodes]


def heavy(graph):
    return sum(graph.flops(node) for node in graph if node.family in {"matmul", "conv", "attention"})


def moved(graph, node):
    """Bytes that an op reads and writes, each tensor once."""
    return sum(graph.tensors[name].bytes for name in {*node.inputs, *node.outputs})


class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom, self.top = nn.Linear(13, 8), nn.Linear(8 + 10, 1)
        self.tables = nn.ModuleList(nn.EmbeddingBag(100, 8, mode="sum") for _ in range(4))

    def forward(self, x, i):
        x = self.bottom(x).relu()
        e = torch.stack([x] + [table(i[:, j : j + 1]) for j, table in enumerate(self.tables)], 1)
        r, c = torch.tril_indices(5, 5, -1, device=x.device)
        return torch.sigmoid(self.top(torch.cat((x, torch.bmm(e, e.transpose(1, 2))[:, r, c]), 1)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.mid = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, stride=2), nn.Conv2d(16, 3, 1)

    def forward(self, x):
        a = F.silu(self.down(x))
        return self.out(torch.cat((a, self.up(F.silu(self.mid(a)))), 1))


class Experts(nn.Module):
    """Two of four experts per token, by weights that are zero elsewhere: shapes never depend on data."""

    def __init__(self):
        super().__init__()
        self.route, self.up, self.down = (
            nn.Linear(16, 4, bias=False),
            nn.Parameter(torch.empty(4, 16, 32)),
            nn.Parameter(torch.empty(4, 32, 16)),
        )

    def forward(self, x):
        weight, chosen = torch.softmax(self.route(x), -1).topk(2)
        gates = torch.zeros(x.shape[0], 4, device=x.device).scatter(1, chosen, weight)
        y = F.silu(torch.einsum("th,ehi->eti", x, self.up))
        return torch.einsum("eti,eih,te->th", y, self.down, gates)


class Cell(nn.Module):
    """An LSTM's step written out."""

    def __init__(self):
        super().__init__()
        self.x, self.h = nn.Linear(8, 64), nn.Linear(16, 64)

    def forward(self, x, h, c):
        i, f, g, o = (self.x(x) + self.h(h)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class SelfAttention(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x)


def attend(**kwargs):
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **kwargs)


def on_meta(make):
    with torch.device("meta"):
        return make()


HEADS = (2, 4, 16, 8)
FORWARD = {
    "mlp": (lambda: nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10)), (meta(32, 64),)),
    "linear 3d": (lambda: nn.Linear(16, 32), (meta(2, 4, 16),)),
    "conv net": (
        lambda: nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 8, 3)),
        (meta(4, 3, 32, 32),),
    ),
    "depthwise": (lambda: nn.Sequential(nn.Conv2d(16, 16, 3, groups=16), nn.Conv2d(16, 32, 1)), (meta(4, 16, 32, 32),)),
    "conv 1d, dilated": (lambda: nn.Conv1d(8, 16, 5, dilation=2), (meta(2, 8, 100),)),
    "conv 3d": (lambda: nn.Conv3d(2, 4, 3), (meta(1, 2, 8, 8, 8),)),
    "transposed conv": (lambda: nn.ConvTranspose2d(8, 16, 2, stride=2), (meta(2, 8, 10, 10),)),
    "lstm cell by hand": (Cell, (meta(4, 8), meta(4, 16), meta(4, 16))),
    "gru cell": (lambda: nn.GRUCell(16, 32), (meta(4, 16), meta(4, 32))),
    "lstm": (lambda: nn.LSTM(16, 32, batch_first=True), (meta(4, 5, 16),)),
    "attention": (attend, (meta(*HEADS),) * 3),
    "attention, causal": (lambda: attend(is_causal=True), (meta(*HEADS),) * 3),
    "attention, scaled": (lambda: attend(scale=0.1), (meta(*HEADS),) * 3),
    "attention of 3 dimensions": (attend, (meta(4, 16, 8),) * 3),
    "multi-head attention": (lambda: SelfAttention(32, 4), (meta(8, 2, 32),)),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(64, 4, 256, batch_first=True), (meta(2, 16, 64),)),
    "decoder layer": (
        lambda: nn.TransformerDecoderLayer(64, 4, 256, batch_first=True),
        (meta(2, 6, 64), meta(2, 8, 64)),
    ),
    "embedding bag": (lambda: nn.EmbeddingBag(100, 8, mode="sum"), (index(4, 2),)),
    "dlrm": (Dlrm, (meta(16, 13), index(16, 4))),
    "u-net": (UNet, (meta(2, 3, 16, 16),)),
    "group norm": (lambda: nn.Sequential(nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 8, 3)), (meta(2, 16, 8, 8),)),
    "rms norm": (lambda: nn.Sequential(nn.RMSNorm(16), nn.Linear(16, 8, bias=False)), (meta(2, 16),)),
    "experts": (Experts, (meta(8, 16),)),
    "einsum": (lambda: lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b), (meta(*HEADS), meta(*HEADS))),
    "baddbmm": (lambda: torch.baddbmm, (meta(2, 4, 8), meta(2, 4, 16), meta(2, 16, 8))),
}


@pytest.mark.parametrize("name", FORWARD)
def test_flops_are_those_of_pytorchs_counter(name):
    from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415

    make, inputs = FORWARD[name]
    function = on_meta(make)
    graph = fusesim.from_torch(function, *inputs)
    with FlopCounterMode(display=False) as counter:
        function(*inputs)
    assert heavy(graph) == counter.get_total_flops()
    assert not any("opaque" in node.kind for node in graph)


def loss_of(make, *loss_inputs):
    module = on_meta(make)

    def step(x):
        loss = F.cross_entropy(module(x), *loss_inputs) if loss_inputs else module(x).square().mean()
        loss.backward()
        return loss

    return step


TRAINING = {
    "linear": (loss_of(lambda: nn.Linear(16, 8), index(4)), (meta(4, 16),)),
    "conv net": (
        loss_of(
            lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10)),
            index(4),
        ),
        (meta(4, 3, 8, 8),),
    ),
    "rms norm": (loss_of(lambda: nn.Sequential(nn.RMSNorm(16), nn.Linear(16, 16))), (meta(2, 16),)),
    "layer norm": (loss_of(lambda: nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 16), nn.GELU())), (meta(2, 16),)),
}


@pytest.mark.parametrize("name", TRAINING)
def test_training_steps_count_both_passes(name):
    from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415

    step, inputs = TRAINING[name]
    graph = fusesim.from_torch(step, *inputs)
    with FlopCounterMode(display=False) as counter:
        step(*inputs)
    assert heavy(graph) == counter.get_total_flops()
    assert graph.gaps == ()


def test_a_linear_training_step_has_the_kernels_that_eager_launches():
    graph = fusesim.from_torch(TRAINING["linear"][0], meta(4, 16))
    assert kinds(graph) == [
        "matmul", "log_softmax", "nll_loss", "fill",  # the gradient of the loss is 1
        "nll_loss_backward", "log_softmax_backward", "matmul", "sum",  # of the weight, of the bias; x needs none
    ]  # fmt: skip


def test_attentions_gradient_computes_its_scores_again():
    def step(q):
        F.scaled_dot_product_attention(q, q, q).sum().backward()

    graph = fusesim.from_torch(step, meta(2, 4, 16, 64, dtype=torch.bfloat16, grad=True))
    forward = 4 * 2 * 4 * 16 * 16 * 64  # two products of 16 x 16 x 64 per head
    assert heavy(graph) == forward * 3.5  # five products more


def test_bytes_of_pointwise_parts():
    graph = fusesim.from_torch(lambda x, b: torch.relu(x + b).to(torch.bfloat16), meta(128, 512), meta(512))
    add, relu, cast = graph.paid_nodes
    assert moved(graph, add) == 2 * 128 * 512 * 4 + 512 * 4  # 1 read + 1 write, and the row
    assert moved(graph, relu) == 2 * 128 * 512 * 4  # 1 read + 1 write
    assert moved(graph, cast) == 128 * 512 * (4 + 2)  # read fp32, write bf16
    swiglu = fusesim.from_torch(lambda a, b: F.silu(a) * b, *[meta(8, 64, dtype=torch.bfloat16)] * 2)
    assert [moved(swiglu, node) for node in swiglu.paid_nodes] == [2 * 8 * 64 * 2, 3 * 8 * 64 * 2]
    masked = fusesim.from_torch(lambda x: x.masked_fill(x > 0, -1.0), meta(8, 64))
    assert [moved(masked, node) for node in masked.paid_nodes] == [512 * (4 + 1), 512 * (1 + 4 + 4)]
    expanded = fusesim.from_torch(lambda x, r: x * r.expand(8, 64), meta(8, 64), meta(64))
    assert moved(expanded, expanded.paid_nodes[0]) == 2 * 8 * 64 * 4 + 64 * 4  # the expanded row counts once


def test_composite_ops_stay_whole():
    def f(x, w):
        return (
            F.layer_norm(x, (64,)),
            F.softmax(x, -1),
            F.log_softmax(x, -1),
            F.rms_norm(x, (64,), w),
            F.gelu(x, approximate="tanh"),
            F.silu(x),
            F.dropout(x, 0.1),
        )

    graph = fusesim.from_torch(f, meta(8, 64), meta(64))
    assert kinds(graph) == ["layer_norm", "softmax", "log_softmax", "rms_norm", "gelu_tanh", "silu", "dropout"]


def test_in_place_ops_write_over_their_operand():
    def f(x):
        y = x * 2
        y[:, :2] = x[:, 2:]
        y.add_(1)
        return y

    graph = fusesim.from_torch(f, meta(4, 4))
    assert kinds(graph) == ["mul", "copy_into", "add"]
    last = graph.tensors[graph.outputs[0]]
    assert last.storage == "mul"
    assert graph.node("add").attr("over") == "mul"
    assert graph.predecessors["add"] == ("mul", "copy_into")


def test_inputs_that_a_program_writes_over_are_outputs():
    def sgd(p, g):
        p.sub_(g, alpha=0.1)

    graph = fusesim.from_torch(sgd, meta(16), meta(16))
    assert graph.node("sub").attr("alpha") == 0.1
    assert graph.outputs == ("sub",)


def test_views_cost_nothing_and_strides_are_pytorchs():
    graph = fusesim.from_torch(lambda x: x.t().contiguous().view(-1)[2:].exp(), meta(4, 8))
    assert kinds(graph) == ["copy", "exp"]
    assert [node.kind for node in graph] == ["permute", "copy", "view", "slice", "exp"]
    conv = fusesim.from_torch(F.conv2d, meta(2, 4, 8, 8).to(memory_format=torch.channels_last), meta(8, 4, 3, 3))
    assert conv.tensors["conv"].strides == (8 * 36, 1, 6 * 8, 8)  # channels last in, channels last out


def test_a_tensor_that_looks_otherwise_from_now_on_is_a_view():
    graph = fusesim.from_torch(lambda x: x.exp().t_().neg(), meta(2, 3))
    assert [node.kind for node in graph] == ["exp", "permute", "neg"]
    pooled = fusesim.from_torch(nn.AdaptiveAvgPool2d(1), meta(2, 8, 4, 4).to(memory_format=torch.channels_last))
    assert kinds(pooled) == ["mean"]
    assert pooled.gaps == ()


def test_gradients_and_optimizer_steps_of_real_modules_leave_them_untouched():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters())
    before = [p.clone() for p in model.parameters()]

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    graph = fusesim.from_torch(step, torch.randn(4, 16))
    assert kinds(graph).count("addcdiv") == 4  # one per parameter
    assert any("multi-tensor" in gap for gap in graph.gaps)
    assert all(torch.equal(a, b) and b.grad is None for a, b in zip(before, model.parameters(), strict=True))
    assert not optimizer.state
    assert graph.parameters == {"model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias"}


def test_a_module_keeps_its_mode_and_gradients_cost_nothing_by_themselves():
    module = on_meta(lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1)))
    assert kinds(fusesim.from_torch(module, meta(2, 8))) == ["matmul", "dropout"]
    module.eval()
    with torch.no_grad():
        quiet = fusesim.from_torch(module, meta(2, 8))
    assert kinds(quiet) == kinds(fusesim.from_torch(module, meta(2, 8))) == ["matmul"]
    assert quiet.nodes[-1].scope == "0"
    with torch.inference_mode():
        assert kinds(fusesim.from_torch(attend(), *[meta(*HEADS)] * 3)) == ["attention"]


def test_programs_that_enter_inference_mode_themselves():
    def f(x):
        with torch.inference_mode():
            return F.scaled_dot_product_attention(x, x, F.linear(x, x[0, 0, :8]))

    assert kinds(fusesim.from_torch(f, meta(*HEADS))) == ["matmul", "attention"]


def test_nested_inputs_keywords_and_numbers():
    def f(batch, *, scale):
        return {"y": batch["a"] * batch["b"][0] * scale + torch.tensor(2.0)}

    graph = fusesim.from_torch(f, {"a": torch.randn(4), "b": [meta(4)]}, scale=3.0)
    assert [node.attr("scalar") for node in graph.paid_nodes] == [None, 3.0, 2.0]
    assert len(graph.inputs) == 2


def test_devices_that_are_not_there():
    graph = fusesim.from_torch(lambda x: (torch.ones(4, device="cuda") + x).cuda() * torch.arange(4), torch.randn(4))
    assert kinds(graph) == ["fill", "add", "iota", "mul"]


@pytest.mark.parametrize(
    ("function", "word"),
    [(lambda x: x.sum().item(), "item()"), (lambda x: x[x > 0], "x[mask]"), (torch.nonzero, "nonzero")],
    ids=["item", "mask", "nonzero"],
)
def test_values_are_refused_with_the_remedy(function, word):
    with pytest.raises(fusesim.GraphError, match="use a form of fixed shape") as caught:
        fusesim.from_torch(function, meta(4))
    assert word in str(caught.value)


def test_what_nobody_mapped_is_priced_and_named():
    graph = fusesim.from_torch(lambda x: torch.erfinv(x) + torch.cdist(x, x), meta(4, 4))
    assert any("erfinv" in gap for gap in graph.gaps)
    assert any("cdist" in gap for gap in graph.gaps)
    assert "opaque" in kinds(graph)
    assert (
        "complex"
        in fusesim.from_torch(torch.fft.fft, meta(8)).gaps[0] + fusesim.from_torch(torch.fft.fft, meta(8)).gaps[-1]
    )


def test_a_failing_program_and_a_wrong_argument_are_one_sentence():
    with pytest.raises(fusesim.GraphError, match="failed on tensors without data"):
        fusesim.from_torch(torch.mm, meta(2, 3), meta(2, 3))
    with pytest.raises(fusesim.GraphError, match="SystemExit: 3"):  # else a command that ran it would end as if done
        fusesim.from_torch(lambda _x: sys.exit(3), meta(2, 3))
    with pytest.raises(fusesim.InputError, match="a function or a module"):
        fusesim.from_torch(3)
    with pytest.raises(fusesim.GraphError, match="sparse"):
        fusesim.from_torch(torch.neg, torch.eye(2).to_sparse())


def test_a_block_of_seventy_billion_parameters_needs_no_memory():
    hidden, inner = 81920, 286720  # ten times the width of a 70-billion-parameter model's block

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.up = nn.Linear(hidden, inner, bias=False), nn.Linear(hidden, inner, bias=False)
            self.down = nn.Linear(inner, hidden, bias=False)

        def forward(self, x):
            return self.down(F.silu(self.gate(x)) * self.up(x))

    block = on_meta(Block)
    assert sum(p.numel() for p in block.parameters()) > 70e9
    graph = fusesim.from_torch(block, meta(1, 8, hidden))
    assert graph.total_flops > 2 * 8 * 3 * hidden * inner
    assert graph.input_bytes == 4 * (3 * hidden * inner + 8 * hidden)


def test_autocast_is_a_stated_gap():
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ x

    assert any("autocast" in gap for gap in fusesim.from_torch(f, meta(4, 4)).gaps)


def test_a_cache_written_in_place_is_read_after_it():
    def decode(q, keys, values, k, v):
        keys[:, :, 5:6], values[:, :, 5:6] = k, v
        return F.scaled_dot_product_attention(q, keys[:, :, :6], values[:, :, :6])

    one, cache = (1, 4, 1, 64), (1, 4, 16, 64)
    graph = fusesim.from_torch(decode, *[meta(*shape) for shape in (one, cache, cache, one, one)])
    assert graph.predecessors["attention"] == ("copy_into", "copy_into_1")


def test_lists_of_tensors_are_one_op_each():
    graph = fusesim.from_torch(
        lambda p, g: torch._foreach_add_(p, g, alpha=-0.1), [meta(4), meta(8)], [meta(4), meta(8)]
    )
    assert [graph.tensors[node.outputs[0]].shape for node in graph.paid_nodes] == [(4,), (8,)]
    assert kinds(graph) == ["add", "add"]


def test_compiled_functions_are_unwrapped():
    assert kinds(fusesim.from_torch(torch.compile(lambda x: torch.relu(x) * 2, backend="eager"), meta(4))) == [
        "relu",
        "mul",
    ]
    assert kinds(fusesim.from_torch(torch.compile(on_meta(lambda: nn.Linear(4, 4)), backend="eager"), meta(2, 4))) == [
        "matmul"
    ]


def test_importing_fusesim_imports_no_torch():
    code = "import sys, fusesim; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
