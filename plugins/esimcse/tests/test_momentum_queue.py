"""What the queue holds, in which order, and who encodes it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cse_testkit import Rig, compose, make_batch, make_context, make_part, tiny_corpus
from torch import Tensor

STORE = "negatives.momentum-queue"


def test_trace_against_a_list() -> None:
    """Order, ages, rows and count of every step, beside a list that one can read."""
    store = make_part("negatives", "momentum-queue", size=7)
    held: list[list[Any]] = []  # vector, corpus row, age; the oldest first
    for step, count in enumerate([4, 2, 5, 1, 3]):
        rows = list(range(10 * step, 10 * step + count))
        batch = make_batch(sentences=count, rows=rows, seed=step)
        ctx = make_context(batch, step=step)
        found = store.candidates(batch, ctx)
        if step == 0:
            assert found is None
        else:
            assert found.vectors.tolist() == [vector for vector, _, _ in held]
            assert found.row.tolist() == [row for _, row, _ in held]
            assert found.age.tolist() == [age for _, _, age in held]
            assert found.blocks == (("momentum-queue", len(held)),)
            assert not found.mask.any() and not found.log_weights.any()
        store.after_step(batch, ctx)
        held = [[vector, row, age + 1] for vector, row, age in held]
        anchors = batch.views["anchor"]["sentence"].vectors.tolist()
        held += [[vector, row, 1] for vector, row in zip(anchors, rows, strict=True)]
        held = held[-7:]


def test_keys_are_plain_texts_without_dropout_through_the_online_head() -> None:
    """Step by step by hand: a moving average of the encoder, evaluated, then the online head."""
    corpus = tiny_corpus()
    sets = [f"{STORE}.size=10", "branch.ema.decay=0.5"]
    rig = Rig(compose(recipe="esimcse", sets=sets))
    sentence_encoder = rig.session._loop.assembly.online
    momentum = sentence_encoder.encoder.copy()
    head = sentence_encoder.heads["mlp"]
    texts = list(corpus.column("text").take(range(16)))
    wanted: list[Tensor] = []
    seen: list[float] = []
    for step in range(4):
        momentum.eval()
        plain = [texts[row] for row in range(4 * step, 4 * step + 4)]
        with torch.no_grad():
            content = sentence_encoder.tokenizer.content(plain, 32)
            tokens = sentence_encoder.rows(content, "anchor")
            hidden = momentum(
                momentum.word_embeddings(tokens.ids), tokens.positions, tokens.offsets
            )
            wanted.append(head(sentence_encoder.pooler.pool(hidden, tokens)).clone())
            (result,) = rig.step(1)
            seen.append(float(result.parts["infonce.negatives"]))
            for own, online in zip(
                momentum.parameters(), sentence_encoder.encoder.parameters(), strict=True
            ):
                own.copy_(0.5 * own + 0.5 * online)
    held = rig.session.parts[STORE].state_dict()
    assert torch.allclose(held["vectors"], torch.cat(wanted)[-10:], rtol=1e-4, atol=1e-5)
    assert held["row"].tolist() == list(range(6, 16))
    assert held["age"].tolist() == [3] * 2 + [2] * 4 + [1] * 4
    # Three of the batch, and the queue. The made-up corpus has one text twice, in rows 3 and 4: an
    # equal text is not a negative.
    assert seen == pytest.approx([3.0, 7.0, 11.0, 13.0], abs=0.5)
