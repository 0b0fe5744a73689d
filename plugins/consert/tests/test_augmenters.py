"""What each augmenter changes, beside loops over rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from cse_testkit import compose, make_context, make_part, run_steps
from torch import Tensor

from cse_core.errors import CseError
from cse_core.types import TokenBatch, View, offsets_of, positions_of

VIEW = View("positive", "positive", "online")
LENGTHS = (0, 1, 9, 30, 4, 17)


def rows(*lengths: int) -> TokenBatch:
    """Return rows of so many content tokens between two special ones."""
    whole = torch.tensor(lengths) + 2
    offsets = offsets_of(whole)
    place = positions_of(offsets)
    special = (place == 0) | (place == torch.repeat_interleave(whole - 1, whole))
    return TokenBatch(
        ids=torch.arange(5, 5 + int(offsets[-1])),
        positions=place,
        source=(place - 1).masked_fill(special, -1),
        word=(place - 1).masked_fill(special, -1),
        special=special,
        offsets=offsets,
        owner=torch.arange(len(lengths)),
        slot=torch.zeros(len(lengths), dtype=torch.long),
    )


def spans(tokens: TokenBatch) -> list[slice]:
    bounds = tokens.offsets.tolist()
    return [slice(start, stop) for start, stop in zip(bounds, bounds[1:], strict=False)]


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


class TestTokenShuffle:
    @pytest.mark.parametrize("tokens", ["all", "content"])
    @pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
    def test_only_positions_inside_a_row_change(self, tokens: str, rate: float) -> None:
        before = rows(*LENGTHS)
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

    def test_every_order_is_as_likely_as_another(self) -> None:
        before = rows(*[1] * 12_000)
        orders = Counter(tuple(row) for row in shuffled(before).positions.view(-1, 3).tolist())
        assert len(orders) == 6
        assert all(count / 12_000 == pytest.approx(1 / 6, abs=0.015) for count in orders.values())

    def test_it_draws_anew_in_each_step(self) -> None:
        before = rows(30, 30)
        one, same, other = (shuffled(before, step).positions for step in (1, 1, 2))
        assert torch.equal(one, same) and not torch.equal(one, other)

    def test_permuted_twice_is_still_a_permutation(self) -> None:
        before = rows(*LENGTHS)
        after = shuffled(shuffled(before, 1), 2)
        for span in spans(before):
            assert sorted(after.positions[span].tolist()) == before.positions[span].tolist()


class TestTokenCutoff:
    @pytest.mark.parametrize("tokens", ["all", "content"])
    @pytest.mark.parametrize("rate", [0.0, 0.15, 0.29, 0.5, 0.99])
    def test_so_many_tokens_of_each_row(self, tokens: str, rate: float) -> None:
        batch = rows(*LENGTHS, 98, 100)
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

    def test_each_token_is_as_likely_as_another(self) -> None:
        batch = rows(*[3] * 4000)
        zero = (changed("token-cutoff", batch, width=1, rate=0.4) == 0).view(4000, 5).float()
        assert zero.mean(dim=0).tolist() == pytest.approx([0.4] * 5, abs=0.03)


class TestFeatureCutoff:
    @pytest.mark.parametrize("rate", [0.0, 0.01, 0.2, 0.77])
    def test_so_many_features_for_all_tokens_of_a_row(self, rate: float) -> None:
        batch = rows(*LENGTHS)
        after = changed("feature-cutoff", batch, rate=rate)
        cut = []
        for span in spans(batch):
            zero = (after[span] == 0).all(dim=0)
            assert torch.equal(zero, (after[span] == 0).any(dim=0)), "a feature of all tokens"
            assert int(zero.sum()) == int(40 * rate)
            cut.append(tuple(zero.tolist()))
        assert rate < 0.05 or len(set(cut)) == len(cut), "each row draws its own"


class TestEmbeddingDropout:
    def test_each_element_by_itself(self) -> None:
        batch = rows(*[30] * 30)
        zero = changed("embedding-dropout", batch, width=100, rate=0.1) == 0
        assert float(zero.float().mean()) == pytest.approx(0.1, abs=0.005)
        counts = {int(zero[span].sum()) for span in spans(batch)}
        assert len(counts) > 5, "not the same number in each row"

    def test_an_exact_share_of_each_row(self) -> None:
        batch = rows(*LENGTHS)
        after = changed("embedding-dropout", batch, rate=0.23, draw="count")
        for span in spans(batch):
            assert int((after[span] == 0).sum()) == int(after[span].numel() * 0.23)


@pytest.mark.parametrize("name", ["token-cutoff", "feature-cutoff", "embedding-dropout"])
class TestEmbeddings:
    def test_what_stays_is_scaled_only_if_asked(self, name: str) -> None:
        batch = rows(20, 7)
        plain = changed(name, batch, rate=0.5)
        scaled = changed(name, batch, rate=0.5, rescale=True)
        assert set(plain.flatten().tolist()) == {0.0, 1.0}
        assert torch.equal(scaled, 2 * plain)

    def test_gradients_flow_through_what_stays(self, name: str) -> None:
        batch = rows(20, 7)
        states = torch.randn(len(batch.ids), 16, requires_grad=True)
        part = make_part("aug", name, rate=0.5)
        after = part(states, batch, VIEW, make_context())
        (gradient,) = torch.autograd.grad(after.sum(), states)
        assert torch.equal(gradient, (after != 0).to(gradient))

    def test_half_precision_stays_half(self, name: str) -> None:
        batch = rows(20, 7)
        part = make_part("aug", name, rate=0.5)
        states = torch.ones(len(batch.ids), 16, dtype=torch.bfloat16)
        assert part(states, batch, VIEW, make_context()).dtype == torch.bfloat16

    @pytest.mark.parametrize("at", ["input_embeddings", "word_embeddings"])
    def test_it_acts_where_it_is_told(self, name: str, at: str) -> None:
        sets = [f"aug.{name}.at={at}", f"aug.{name}.rate=0.5", "model.dropout=0"]
        run = run_steps({"aug": [name]}, sets)
        plain = run_steps(sets=["model.dropout=0"])
        other = run_steps({"aug": [name]}, [*sets, f"aug.{name}.at={_other(at)}"])
        assert not run.unchanged
        assert run.losses[0] != plain.losses[0] and run.losses[0] != other.losses[0]

    @pytest.mark.parametrize(
        ("option", "value"),
        [("rate", "1"), ("rate", "-0.1"), ("at", "layer"), ("views", "[negatve]"), ("rat", "0.1")],
    )
    def test_a_mistake_is_one_line(self, name: str, option: str, value: str) -> None:
        with pytest.raises(CseError) as caught:
            compose(kinds={"aug": [name]}, sets=[f"aug.{name}.{option}={value}"])
        assert f"aug.{name}.{option}" in str(caught.value) and "\n" not in str(caught.value)


def _other(at: str) -> str:
    return "word_embeddings" if at == "input_embeddings" else "input_embeddings"
