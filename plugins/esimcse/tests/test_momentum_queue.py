"""What the queue holds, in which order, and who encodes it."""

import pytest
import torch
from cse_testkit import Rig, compose, tiny_corpus
from torch import Tensor

STORE = "negatives.momentum-queue"


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
