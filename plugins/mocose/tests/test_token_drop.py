"""How many places of a row lose their embedding, and which."""

from __future__ import annotations

import pytest
import torch
from cse_testkit import make_context, make_part
from torch import Tensor

from cse_core.types import TokenBatch, View
from tests.fixtures.token_rows import token_rows

VIEW = View("positive", "positive", "online")


def dropped(tokens: TokenBatch, step: int = 0, **options: object) -> list[Tensor]:
    """Return which tokens of each row lost their embedding."""
    part = make_part("aug", "token-drop", **options)
    x = torch.ones(len(tokens.ids), 4)
    found = part(x, tokens, VIEW, make_context(step=step))
    gone = found.eq(0).all(dim=1)
    assert torch.equal(found[~gone], x[~gone])
    return list(gone.split(tokens.lengths.tolist()))


def test_a_share_of_the_places_and_one_at_least() -> None:
    """A full row of 6 tokens; a seventh place is padding, which takes one away or does not."""
    tokens = token_rows(4)
    for rate, places, wanted in ((0.0, 7, 1), (0.1, 7, 1), (0.5, 7, 3), (0.9, 7, 6),
                                 (0.1, None, 1), (0.34, None, 2)):  # fmt: skip
        counts = {
            int(dropped(tokens, step, rate=rate, places=places)[0].sum()) for step in range(60)
        }
        assert counts == ({wanted} if places is None else {wanted - 1, wanted})


def test_padding_is_drawn_too() -> None:
    """Of 32 places int(32 * 0.1) = 3 are drawn; a row of 3 tokens loses 3 * 3 / 32 in the mean."""
    tokens = token_rows(*[1] * 400)
    counts = torch.stack(dropped(tokens, rate=0.1)).sum(dim=1)
    size = int(tokens.lengths[0])
    assert float(counts.float().mean()) == pytest.approx(3 * size / 32, abs=0.1)
    assert int((counts == 0).sum()) > 200, "most short rows stay as they are"


def test_every_place_has_its_turn_special_tokens_too() -> None:
    tokens = token_rows(*[4] * 300)
    seen = torch.stack(dropped(tokens, rate=0.1, places=None)).sum(dim=0)
    assert (seen > 25).all() and int(seen.sum()) == 300


def test_a_long_row_counts_its_own_length() -> None:
    assert int(dropped(token_rows(4, 1, 51), rate=0.5)[2].sum()) == 53 // 2
