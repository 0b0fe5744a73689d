"""Dropout by seeded integer masks."""

import copy

import pytest
import torch
from torch import nn

from cse_engine.step.dropout import Dropout, DropoutSource


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_rate_and_scale(dtype, p):
    source = DropoutSource()
    chance = round(p * 2**16) / 2**16
    out = source.drop(torch.ones(1000, 401, dtype=dtype), p)
    dropped = (out == 0).double().mean().item()
    assert abs(dropped - chance) < 5 * (chance * (1 - chance) / out.numel()) ** 0.5
    kept = out[out != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - chance)))
    columns = (out == 0).double().mean(0)
    assert (columns - chance).abs().max() < 6 * (chance * (1 - chance) / 1000) ** 0.5


def test_the_seed_alone_decides():
    source = DropoutSource()
    values = torch.randn(33, 7)
    draws = []
    for seed in (5, 5, 6, -1, 2**70):
        source.seed(seed)
        torch.rand(3)
        draws.append([source.drop(values, 0.3), source.drop(values[:, :5], 0.3)])
    assert all(torch.equal(a, b) for a, b in zip(draws[0], draws[1], strict=True))
    assert not torch.equal(draws[0][0], draws[2][0])
    assert not torch.equal(draws[0][0][:, :5], draws[0][1])
    source.seed(5)
    expected = source.next_seed()
    source.seed(5)
    assert source.next_seed() == expected < 2**63


def test_neighbours_and_extremes():
    out = DropoutSource().drop(torch.ones(400_000), 0.5)
    kept = (out != 0).double()
    for lag in (1, 2, 3, 4, 8):
        together = (kept[lag:] * kept[:-lag]).mean().item()
        assert abs(together - 0.25) < 0.005, lag
    values = torch.randn(50)
    source = DropoutSource()
    assert torch.equal(source.drop(values, 0.0), values)
    assert torch.equal(source.drop(values, 1e-9), values)
    assert torch.count_nonzero(source.drop(values, 1.0)) == 0
    assert source.drop(torch.empty(0, 3), 0.5).shape == (0, 3)


@pytest.mark.parametrize("contiguous", [True, False])
def test_gradient_uses_the_same_mask(contiguous):
    values = torch.randn(12, 20, dtype=torch.float64)
    values = (values if contiguous else values.t()).detach().requires_grad_()
    out = DropoutSource().drop(values, 0.4)
    factor = torch.randn_like(out)
    (gradient,) = torch.autograd.grad((out * factor).sum(), values)
    torch.testing.assert_close(gradient, torch.where(out == 0, 0.0, factor * out / values))


def test_replacing_the_dropouts_of_a_model():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.2)))
    model[2].eval()
    source = DropoutSource()
    source.serve(model)
    assert [m.p for m in model.modules() if isinstance(m, Dropout)] == [0.5, 0.2]
    assert model[1].training and not model[2][0].training
    other = DropoutSource()
    other.serve(model)
    assert model[1].source is model[2][0].source is other
    assert copy.deepcopy(model)[1].source is other
    model.eval()
    values = torch.randn(4, 8)
    assert torch.equal(model[1](values), values)
    assert list(model.state_dict()) == ["0.weight", "0.bias"]
