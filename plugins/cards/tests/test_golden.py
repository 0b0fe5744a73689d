"""The authors' get_cos_sim, run unmodified, gave these numbers; the parts give the same."""

from typing import Any

import pytest
import torch
from cse_cards.retrieved import RoundTexts
from cse_testkit import make_batch, make_context, make_part

from cse_core.functional import similarity
from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives
from cse_defaults.texts import Corpus
from cse_engine.step import negatives as core
from cse_engine.step.training_rows import TrainingRows
from tests.shared import golden, tensor

ROLES: Any = {"positive": "positive", "negative-retrieved": "negative"}


def weighed(given: dict[str, Any], weight: float = 0.0) -> tuple[Batch, Negatives]:
    """Return the negatives of a batch whose rows retrieved the file's rows."""
    vectors = {
        "anchor": tensor(given["z1"]),
        "positive": tensor(given["z2"]),
        "negative-retrieved": tensor(given["retrieved"]).flatten(0, 1),
    }
    query, retrieved = given["query_ids"], torch.tensor(given["retrieved_ids"])
    assert retrieved.shape[1] == 1
    batch = make_batch(vectors, views=ROLES, rows=query)
    corpus = Corpus.from_columns({"text": [f"text {number}" for number in range(32)]})
    store = make_part("negatives", "retrieved", knn=2, weight=weight)
    store.known = RoundTexts(TrainingRows(corpus, 32), corpus)
    store.near = torch.zeros(32, 1, dtype=torch.int32)
    store.near[query] = retrieved.int()
    negatives = core.negatives_for_loss(batch, LossOptions(), ["retrieved"])
    return batch, store.weigh(negatives, batch, make_context(batch))


def test_own_sentences_are_masked_and_logits_and_loss_are_the_codes() -> None:
    given = golden("cards_retrieved_negatives")
    atol, temperature, wanted = given["suggested_atol"], given["temp"], tensor(given["logits"])
    batch, negatives = weighed(given)
    assert negatives.blocks == (("in-batch", 4), ("negative-retrieved", 4))
    assert torch.equal(negatives.mask[:, 4:], wanted[:, 4:] < -1000)
    assert negatives.mask[:, 4:].nonzero().tolist() == [[0, 2], [1, 0]]
    logits = similarity(batch.anchors, negatives.vectors) / temperature
    seen = wanted > -1000
    assert torch.allclose(logits[seen], wanted[seen], rtol=0, atol=atol)
    loss = make_part("loss", "infonce", temperature=temperature)
    value = loss(batch, batch.targets["positive"], negatives, make_context(batch)).value
    assert float(value) == pytest.approx(given["loss"], abs=atol)


def test_the_weight_is_a_logit_at_ones_own_retrieved_sentence() -> None:
    given = golden("cards_retrieved_negatives")
    (_, plain), (_, heavy) = weighed(given), weighed(given, weight=0.7)
    added = heavy.log_weights - plain.log_weights
    assert torch.equal(added[:, 4:], 0.7 * torch.eye(4, dtype=torch.float64))
    assert not added[:, :4].any() and torch.equal(heavy.mask, plain.mask)
