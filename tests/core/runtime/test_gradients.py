"""Sums of gradients begin in one order, as soon as nothing more comes to them, and are whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cse_core.encoders.shortcuts import WordTable
from cse_core.runtime import distributed, gradients
from cse_core.runtime.gradients import GradientReducer


class Call:
    """A sum over two processes with the same gradients; it is there when it was waited for."""

    begun: list[Tensor] = []

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self.begun.append(values)

    def wait(self) -> None:
        self.values.mul_(2)


@pytest.fixture(autouse=True)
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def all_reduce(values: Tensor, how: Any = None, group: Any = None, **_: Any) -> Call | None:
        return Call(values) if values.is_floating_point() else None

    for module in (distributed, gradients):
        monkeypatch.setattr(module, "rank_and_size", lambda: (0, 2))
    monkeypatch.setattr(distributed, "_on_cpu", lambda: None)
    monkeypatch.setattr(distributed.dist, "all_reduce", all_reduce)
    monkeypatch.setattr(gradients, "MIN_BUCKET_BYTES", 1)
    yield
    Call.begun.clear()


def test_sums_begin_during_backward_from_the_last_weights_on() -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(*(nn.Linear(3, 3, bias=False) for _ in range(3)))
    begun_when: list[int] = []
    layers[0].weight.register_hook(lambda _: begun_when.append(len(Call.begun)))
    reducer = GradientReducer(layers.parameters())
    with reducer.overlap_backward():
        layers(torch.ones(2, 3)).sum().backward()
    assert begun_when == [2] and len(Call.begun) == 3
    alone = [layer.weight.grad.clone() for layer in layers]
    reducer.finish()
    for layer, own in zip(layers, alone, strict=True):
        assert torch.equal(layer.weight.grad, 2 * own)
    with GradientReducer(layers.parameters()).overlap_backward():
        pass  # hooks of a step end with it: the next backward pass sums nothing
    layers(torch.ones(2, 3)).sum().backward()
    assert len(Call.begun) == 3


def test_earlier_chunks_only_add(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradients, "MIN_BUCKET_BYTES", 10**6)
    layer, other = nn.Linear(3, 2), nn.Linear(2, 2).double()
    reducer = GradientReducer([*layer.parameters(), *other.parameters()])
    parts = torch.rand(3, 4, 3)
    for part in parts[:-1]:
        layer(part).sum().backward()
    assert not Call.begun
    with reducer.overlap_backward():
        layer(parts[-1]).sum().backward()
    # Weights of another format are in a bucket before, which nothing has reached.
    assert not Call.begun
    reducer.finish()
    assert len(Call.begun) == 2 and torch.equal(layer.bias.grad, torch.full((2,), 2 * 12.0))
    assert other.weight.grad is None and other.bias.grad is None


def test_what_a_pass_is_not_to_reach_begins_at_once_and_may_not_be_reached() -> None:
    one, other = (nn.Parameter(torch.ones(2)) for _ in range(2))
    reducer = GradientReducer([one, other])
    (other * 1).sum().backward()
    with pytest.raises(RuntimeError, match="came after its sum"), reducer.overlap_backward({one}):
        assert len(Call.begun) == 1
        (one * other).sum().backward()


def test_a_word_table_whose_gradient_takes_another_way_is_whole_when_its_sum_begins() -> None:
    embedding, layer = nn.Embedding(5, 3), nn.Linear(3, 1, bias=False)
    table = WordTable(embedding)
    reducer = GradientReducer([embedding.weight, layer.weight])
    with reducer.overlap_backward():
        words = torch.cat([table(torch.tensor([1, 2])), table(torch.tensor([1]))])
        layer(words).sum().backward()
        begun = Call.begun[-1].clone().view(5, 3)
    reducer.finish()
    assert len(Call.begun) == 2 and torch.equal(embedding.weight.grad, 2 * begun)
    assert begun[1].equal(2 * layer.weight[0]) and not begun[0].any()


def test_frozen_weights_are_not_said_and_the_objective_has_its_share() -> None:
    frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    whole = nn.Parameter(torch.ones(2))
    reducer = GradientReducer([frozen], [whole, frozen])
    with reducer.overlap_backward():
        whole.sum().backward()
    reducer.finish()
    assert len(Call.begun) == 1 and torch.equal(whole.grad, torch.ones(2))


def test_gradients_for_the_inputs_alone_begin_no_sum() -> None:
    layer, inputs = nn.Linear(2, 2), torch.ones(2, 2, requires_grad=True)
    reducer = GradientReducer(layer.parameters())
    with reducer.overlap_backward():
        torch.autograd.grad(layer(inputs).sum(), [inputs])
    assert not Call.begun


def test_one_process_sums_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradients, "rank_and_size", lambda: (0, 1))
    layer = nn.Linear(2, 2)
    reducer = GradientReducer(layer.parameters())
    with reducer.overlap_backward():
        layer(torch.ones(1, 2)).sum().backward()
    reducer.finish()
    assert not Call.begun and torch.equal(layer.bias.grad, torch.ones(2))
