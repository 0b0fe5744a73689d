"""What a step's loss is made of: weights, both directions, stores of the loss's level."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cse_core.engine.input_gradients import GradientField
from cse_core.engine.row_keys import token_keys
from tests.fixtures.tiny import Bench, sentences

CLS = '[[pool]]\nuse = "cls"\n'
PLAIN = ("model.dropout=0",)


def test_losses_are_weighted_and_added(encoder: str, folder: Path) -> None:
    recipe = CLS + (
        '[[loss]]\nuse = "infonce"\n[[loss]]\nuse = "infonce"\nname = "second"\n'
        'temperature = 0.5\nweight = "linear(0,1)"\n'
    )
    bench = Bench(encoder, folder, recipe, *PLAIN)
    for step in (0, 5):
        result = bench.step(step)
        parts = result.parts
        wanted = parts["infonce.loss"] + step / 20 * parts["second.loss"]
        assert float(result.loss) == pytest.approx(float(wanted), rel=1e-6)


def test_both_directions_are_the_mean_of_the_two(encoder: str, folder: Path) -> None:
    texts, others = sentences(24), sentences(24, seed=1)

    def loss(columns: dict[str, list[str]], directions: str) -> float:
        recipe = CLS + f'[[loss]]\nuse = "infonce"\ndirections = "{directions}"\n'
        return float(Bench(encoder, folder, recipe, *PLAIN, columns=columns).step().loss)

    there = {"text": texts, "positive": others}
    back = {"text": others, "positive": texts}
    one, other = loss(there, "one"), loss(back, "one")
    assert one != pytest.approx(other, rel=1e-5)
    assert loss(there, "both") == pytest.approx((one + other) / 2, rel=2e-6)


def test_a_store_is_asked_at_its_own_level_alone(encoder: str, folder: Path) -> None:
    recipe = CLS + (
        '[[pool]]\nuse = "cut"\n[[negatives]]\nuse = "queue"\n[[loss]]\nuse = "infonce"\n'
        '[[loss]]\nuse = "infonce"\nname = "local"\nlevel = "segment"\n'
    )
    bench = Bench(encoder, folder, recipe)
    asked: list[str] = []
    store = bench.part("negatives.queue")
    plain = store.candidates
    store.candidates = lambda batch, ctx: asked.append(batch.level) or plain(batch, ctx)  # type: ignore[func-returns-value]
    bench.step()
    assert set(asked) == {"sentence"}


def test_equal_tokens_have_gradients_of_their_own(encoder: str, folder: Path) -> None:
    bench = Bench(encoder, folder, CLS + '[[loss]]\nuse = "infonce"\n')
    tokens = bench.assembly.online.tokenizer.content(["ba be"])
    doubled = tokens.take_tokens(torch.tensor([0, 0, 1]), torch.tensor([3]))
    values = torch.tensor([[1.0], [2.0], [3.0]])
    field = GradientField(token_keys(doubled), values)
    assert torch.equal(field.at(doubled), values)
    tripled = tokens.take_tokens(torch.tensor([0, 0, 0, 1]), torch.tensor([4]))
    assert field.at(tripled).flatten().tolist() == [1.0, 2.0, 1.0, 3.0]
    assert field.at(tokens).flatten().tolist() == [1.0, 3.0]
