"""What a program that was read computes: as PyTorch does, or no value and no source at all."""

from __future__ import annotations

import numpy as np
import pytest

import fusesim
from fusesim.emit import emit, evaluate
from fusesim.errors import GraphError, PlanError
from fusesim.sharing import repeated

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install 'fusesim[torch]'")
F = torch.nn.functional


def inputs():
    generator = torch.Generator().manual_seed(5)
    return torch.randn(4, 16, generator=generator), torch.rand(4, 16, generator=generator) + 0.5


SAME = {
    "masked_fill": lambda x, y: x.masked_fill(x > y, -1.0),
    "masked_fill_in_place": lambda x, y: (x * 1).masked_fill_(x > y, -1.0),
    "where_else": lambda x, y: torch.where(x > y, x, 2.0),
    "where_then": lambda x, y: torch.where(x > y, 2.0, x),
    "where_both": lambda x, y: torch.where(x > y, 2.0, 3.0),
    "reversed": lambda x, y: (1 - x) + 1 / y + 2**x,
    "alphas": lambda x, y: torch.add(x, y, alpha=2) - torch.rsub(x, y, alpha=3) + torch.rsub(x, 1, alpha=2),
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=0.5) + torch.addcdiv(x, y, y, value=-2),
    "clamps": lambda x, y: x.clamp(min=0.1) + x.clamp(max=0.1) + torch.clamp(x, -y, y) + torch.clamp(x, max=y),
    "clamp_ends": lambda x, _: torch.clamp_min(x, 0.2) + torch.clamp_max(x, 0.2),
    "leaky": lambda x, _: F.leaky_relu(x, 0.3) + F.leaky_relu(x),
    "powers": lambda x, y: x**3 + y**0.5 + y**-1 + y**1.7 + y**x,
    "norms": lambda x, y: F.layer_norm(x * 1e-3, (16,), y[0], y[1], eps=1e-2) + F.rms_norm(x, (16,), y[0], eps=1e-3),
    "batch_norm": lambda x, y: F.batch_norm(x, y[0], y[1] * 1e-4, y[2], y[3], eps=1e-2),
    "variances": lambda x, _: (x.var(1), x.var(1, correction=0), *torch.var_mean(x, 0)),
    "softmaxes": lambda x, _: (x.softmax(-1), x.log_softmax(0), F.softmin(x, -1)),
    "extremes": lambda x, _: (*x.max(1), x.amin(0), x.argmin(1)),
    "views": lambda x, _: (x[1:3, ::2] * 1, x[:, -3:] + 1, x.T + 1, x[-1] * 2, x.chunk(2, 1)[1] * 2),
    "joins": lambda x, y: (torch.cat([x, y], 1), torch.stack([x, y]).sum(0)),
    "whole_numbers": lambda x, _: (x.to(torch.int32) * 3, (x > 0).sum(1), x.bool()),
}


@pytest.mark.parametrize("name", SAME)
def test_values_are_pytorchs(name):
    given = inputs()
    expected = SAME[name](*given)
    graph = fusesim.from_torch(SAME[name], *given)
    made = evaluate(graph, dict(zip(graph.inputs, (value.numpy() for value in given), strict=True)))
    for output, value in zip(graph.outputs, expected if isinstance(expected, tuple) else [expected], strict=True):
        np.testing.assert_allclose(made[output].astype(float), value.double().numpy(), rtol=2e-5, atol=2e-6)


STAND_INS = {
    "expm1": torch.expm1,
    "ceil": torch.ceil,
    "log10": torch.log10,
    "mish": F.mish,
    "elu_of_another_slope": lambda x: F.elu(x, alpha=2.0),
    "softplus_of_another_slope": lambda x: F.softplus(x, beta=2.0),
    "floor_division": lambda x: torch.div(x, 3.0, rounding_mode="floor"),
    "flip": lambda x: x.flip(1),
    "roll": lambda x: x.roll(1, 0),
    "standard_deviation": lambda x: x.std(1),
    "largest_of_row": lambda x: torch.linalg.vector_norm(x, float("inf"), dim=1),
}


@pytest.mark.parametrize("name", STAND_INS)
def test_what_a_kind_only_stands_for_has_no_value_and_no_source(name):
    x, _ = inputs()
    graph = fusesim.from_torch(STAND_INS[name], x)
    with pytest.raises(GraphError, match="stands for"):
        evaluate(graph, {graph.inputs[0]: x.numpy()})
    with pytest.raises(PlanError, match="stands for"):
        emit(fusesim.plan(graph, "eager"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.floor, torch.ceil),
        (lambda x: x.flip(0), lambda x: x.flip(1)),
        (lambda x: F.elu(x, 1.0), lambda x: F.elu(x, 2.0)),
        (lambda x: F.layer_norm(x, (16,), eps=1e-5), lambda x: F.layer_norm(x, (16,), eps=1e-2)),
    ],
    ids=["rounding", "flip", "elu", "layer_norm"],
)
def test_like_ops_are_not_taken_for_the_same(one, other):
    x, _ = inputs()
    assert not repeated(fusesim.from_torch(lambda x: (one(x), other(x)), x))
    assert repeated(fusesim.from_torch(lambda x: (one(x), one(x)), x))
