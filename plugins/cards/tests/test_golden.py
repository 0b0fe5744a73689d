"""The authors' get_cos_sim, run unmodified, gave these numbers; the parts give the same."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from cse_testkit import make_batch, make_context, make_part
from torch import Tensor

from cse_core.data import Corpus
from cse_core.engine import negatives as core
from cse_core.functional import similarity
from cse_core.options import LossOptions
from cse_core.tokenization.training_rows import TrainingRows
from cse_core.types import Batch, Negatives, StepContext
from tests.shared import shared_path

ROLES: Any = {"positive": "positive", "negative-retrieved": "negative"}


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads(shared_path("golden/cards_retrieved_negatives.json").read_text())


def tensor(rows: Any) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def weighed(golden: dict[str, Any], weight: float = 0.0) -> tuple[Batch, Negatives, StepContext]:
    """Return the negatives of a batch whose rows retrieved the file's rows."""
    from cse_cards.texts import RoundTexts

    vectors = {
        "anchor": tensor(golden["z1"]),
        "positive": tensor(golden["z2"]),
        "negative-retrieved": tensor(golden["retrieved"]).flatten(0, 1),
    }
    query, retrieved = golden["query_ids"], torch.tensor(golden["retrieved_ids"])
    assert retrieved.shape[1] == 1
    batch = make_batch(vectors, views=ROLES, rows=query)
    corpus = Corpus.from_columns({"text": [f"text {number}" for number in range(32)]})
    store = make_part("negatives", "retrieved", knn=2, weight=weight)
    store.known = RoundTexts(TrainingRows(corpus, 32), corpus)
    store.near = torch.zeros(32, 1, dtype=torch.int32)
    store.near[query] = retrieved.int()
    ctx = make_context(batch)
    return (
        batch,
        store.weigh(core.negatives_for_loss(batch, LossOptions(), ["retrieved"]), batch, ctx),
        ctx,
    )


def test_own_sentences_are_masked_and_logits_are_the_codes(golden: dict[str, Any]) -> None:
    batch, negatives, _ = weighed(golden)
    assert negatives.blocks == (("in-batch", 4), ("negative-retrieved", 4))
    wanted = tensor(golden["logits"])
    assert torch.equal(negatives.mask[:, 4:], wanted[:, 4:] < -1000)
    assert negatives.mask[:, 4:].nonzero().tolist() == [[0, 2], [1, 0]]
    logits = similarity(batch.anchors, negatives.vectors) / golden["temp"]
    seen = wanted > -1000
    atol = golden["suggested_atol"]
    assert torch.allclose(logits[seen], wanted[seen], rtol=0, atol=atol)


def test_loss(golden: dict[str, Any]) -> None:
    batch, negatives, ctx = weighed(golden)
    loss = make_part("loss", "infonce", temperature=golden["temp"])
    value = loss(batch, batch.targets["positive"], negatives, ctx).value
    assert float(value) == pytest.approx(golden["loss"], abs=golden["suggested_atol"])


def test_the_weight_is_a_logit_at_ones_own_retrieved_sentence(golden: dict[str, Any]) -> None:
    _, plain, _ = weighed(golden)
    _, heavy, _ = weighed(golden, weight=0.7)
    added = heavy.log_weights - plain.log_weights
    assert torch.equal(added[:, 4:], 0.7 * torch.eye(4, dtype=torch.float64))
    assert not added[:, :4].any() and torch.equal(heavy.mask, plain.mask)
    assert replace(heavy, log_weights=plain.log_weights).row.tolist() == plain.row.tolist()
