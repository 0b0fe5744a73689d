"""What each augmenter changes, beside loops over rows."""

from collections import Counter
from itertools import product
from typing import Any

import pytest
import torch
from cse_testkit import make_context, make_part, run_steps
from torch import Tensor

from cse_core.types import TokenBatch, View
from tests.fixtures.token_rows import spans, token_rows

VIEW = View("positive", "positive", "online")
LENGTHS = (0, 1, 9, 30, 4, 17)
EMBEDDINGS = ("token-cutoff", "feature-cutoff", "embedding-dropout")


def shuffled(x: TokenBatch, step: int = 0, **options: Any) -> TokenBatch:
    part = make_part("aug", "token-shuffle", **options)
    after: TokenBatch = part(x, x, VIEW, make_context(step=step))
    return after


def changed(name: str, batch: TokenBatch, width: int = 40, **options: Any) -> Tensor:
    """Return what an augmenter makes of ones, so that zeros are what it took away."""
    part = make_part("aug", name, **options)
    ones = torch.ones(len(batch.ids), width)
    after: Tensor = part(ones, batch, VIEW, make_context())
    return after


def test_shuffled_positions_change_inside_a_row_alone() -> None:
    before = token_rows(*LENGTHS)
    for tokens, rate in product(("all", "content"), (0.0, 0.3, 1.0)):
        after = shuffled(before, tokens=tokens, rate=rate)
        for name in ("ids", "source", "word", "special", "offsets", "owner", "slot"):
            assert torch.equal(getattr(after, name), getattr(before, name))
        for span in spans(before):
            own, new = before.positions[span].tolist(), after.positions[span].tolist()
            assert sorted(new) == own
            special = before.special[span].tolist()
            moved = [place for place, there in zip(own, new, strict=True) if place != there]
            eligible = [p for p in own if tokens == "all" or not special[p]]
            assert set(moved) <= set(eligible)
            assert len(moved) <= int(len(eligible) * rate)
    twice = shuffled(shuffled(before, 1), 2)
    for span in spans(before):
        assert sorted(twice.positions[span].tolist()) == before.positions[span].tolist()


def test_every_order_is_as_likely_as_another_and_new_in_each_step() -> None:
    before = token_rows(*[1] * 12_000)
    orders = Counter(tuple(row) for row in shuffled(before).positions.view(-1, 3).tolist())
    assert len(orders) == 6
    assert all(count / 12_000 == pytest.approx(1 / 6, abs=0.015) for count in orders.values())
    one, same, other = (shuffled(before, step).positions for step in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_token_cutoff_takes_so_many_tokens_of_each_row() -> None:
    batch = token_rows(*LENGTHS, 98, 100)
    for tokens, rate in product(("all", "content"), (0.0, 0.15, 0.29, 0.5, 0.99)):
        after = changed("token-cutoff", batch, tokens=tokens, rate=rate)
        for span in spans(batch):
            part, special = after[span], batch.special[span]
            zero = (part == 0).all(dim=1)
            assert torch.equal(zero, (part == 0).any(dim=1)), "a token as a whole"
            count = len(part) if tokens == "all" else int((~special).sum())
            assert int(zero.sum()) == int(count * rate)
            if tokens == "content":
                assert not (zero & special).any()
            assert bool((part[~zero] == 1).all())


def test_each_token_is_as_likely_as_another() -> None:
    batch = token_rows(*[3] * 4000)
    zero = (changed("token-cutoff", batch, width=1, rate=0.4) == 0).view(4000, 5).float()
    assert zero.mean(dim=0).tolist() == pytest.approx([0.4] * 5, abs=0.03)


def test_feature_cutoff_takes_so_many_features_for_all_tokens_of_a_row() -> None:
    batch = token_rows(*LENGTHS)
    for rate in (0.0, 0.01, 0.2, 0.77):
        after = changed("feature-cutoff", batch, rate=rate)
        cut = []
        for span in spans(batch):
            zero = (after[span] == 0).all(dim=0)
            assert torch.equal(zero, (after[span] == 0).any(dim=0)), "a feature of all tokens"
            assert int(zero.sum()) == int(40 * rate)
            cut.append(tuple(zero.tolist()))
        assert rate < 0.05 or len(set(cut)) == len(cut), "each row draws its own"


def test_embedding_dropout_by_a_probability_or_an_exact_share() -> None:
    batch = token_rows(*[30] * 30)
    zero = changed("embedding-dropout", batch, width=100, rate=0.1) == 0
    assert float(zero.float().mean()) == pytest.approx(0.1, abs=0.005)
    counts = {int(zero[span].sum()) for span in spans(batch)}
    assert len(counts) > 5, "not the same number in each row"
    after = changed("embedding-dropout", batch, rate=0.234, draw="count")
    for span in spans(batch):
        assert int((after[span] == 0).sum()) == int(after[span].numel() * 0.234)


def test_what_stays_has_its_gradient_and_number_format_and_is_scaled_only_if_asked() -> None:
    batch = token_rows(20, 7)
    for name in EMBEDDINGS:
        plain = changed(name, batch, rate=0.5)
        scaled = changed(name, batch, rate=0.5, rescale=True)
        assert set(plain.flatten().tolist()) == {0.0, 1.0}
        assert torch.equal(scaled, 2 * plain)
        part = make_part("aug", name, rate=0.5)
        states = torch.randn(len(batch.ids), 16, requires_grad=True)
        after = part(states, batch, VIEW, make_context())
        (gradient,) = torch.autograd.grad(after.sum(), states)
        assert torch.equal(gradient, (after != 0).to(gradient))
        assert part(states.bfloat16(), batch, VIEW, make_context()).dtype == torch.bfloat16


def test_they_act_where_they_are_told() -> None:
    for name in EMBEDDINGS:
        sets = [f"aug.{name}.rate=0.5", "model.dropout=0"]
        first, words = (
            run_steps({"aug": [name]}, [*sets, f"aug.{name}.at={at}"], steps=1)
            for at in ("input_embeddings", "word_embeddings")
        )
        assert first.losses != words.losses
