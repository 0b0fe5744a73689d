"""What the queue holds, in which order, and who encodes it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cse_testkit import Rig, compose, make_batch, make_context, make_part, tiny_corpus
from torch import Tensor

from cse_core.errors import CseError
from cse_core.recipes.composition import Composition

STORE = "negatives.momentum-queue"


@pytest.mark.parametrize(("size", "batches"), [(10, [4] * 6), (3, [4] * 4), (7, [4, 2, 5, 1, 3])])
def test_trace_against_a_list(size: int, batches: list[int]) -> None:
    """Order, ages, rows and count of every step, beside a list that one can read."""
    store = make_part("negatives", "momentum-queue", size=size)
    held: list[list[Any]] = []  # vector, corpus row, age; the oldest first
    seen = 0
    for step, count in enumerate(batches):
        rows = list(range(seen, seen + count))
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
        held = held[-size:]
        seen += count


def paper(*sets: str) -> Composition:
    return compose(recipe="esimcse", sets=[f"{STORE}.size=10", *sets])


def test_the_plan_shows_one_pass_more() -> None:
    passes = paper().passes
    assert [(each.branch, each.views, each.gradient) for each in passes] == [
        ("online", ("anchor", "positive"), True),
        ("ema", ("anchor",), False),
    ]
    assert STORE in passes[1].why


def test_without_a_branch_of_its_own_there_is_no_further_pass() -> None:
    composition = compose(kinds={"negatives": ["momentum-queue"]}, sets=[f"{STORE}.branch=none"])
    assert len(composition.passes) == 1


def test_negatives_of_the_first_steps() -> None:
    rig = Rig(paper(), tiny_corpus())
    seen = [float(each.parts["infonce.negatives"]) for each in rig.step(4)]
    # The made-up corpus has one text twice, in rows 3 and 4: an equal text is not a negative.
    assert seen[0] == 3.0
    assert seen[1] == pytest.approx(7.0, abs=0.5) and seen[2] == pytest.approx(11.0, abs=0.5)
    assert seen[3] == pytest.approx(13.0, abs=0.5), "three of the batch and ten of the queue"


def test_keys_are_plain_texts_without_dropout_through_the_online_head() -> None:
    """Step by step by hand: a moving average of the encoder, evaluated, then the online head."""
    corpus = tiny_corpus()
    rig = Rig(paper("branch.ema.decay=0.5"), corpus)
    sentence_encoder = rig.assembly.online
    momentum = sentence_encoder.encoder.copy()
    head = sentence_encoder.heads["mlp"]
    texts = list(corpus.column("text").take(range(12)))
    wanted: list[Tensor] = []
    for step in range(3):
        momentum.eval()
        plain = [texts[row] for row in range(4 * step, 4 * step + 4)]
        with torch.no_grad():
            content = sentence_encoder.tokenizer.content(plain, 32)
            tokens = sentence_encoder.rows(content, "anchor")
            hidden = momentum(
                momentum.word_embeddings(tokens.ids), tokens.positions, tokens.offsets
            )
            wanted.append(head(sentence_encoder.pooler.pool(hidden, tokens)).clone())
            rig.step(1)
            for own, online in zip(
                momentum.parameters(), sentence_encoder.encoder.parameters(), strict=True
            ):
                own.copy_(0.5 * own + 0.5 * online)
    held = rig.assembly.parts[STORE].state_dict()
    assert torch.allclose(held["vectors"], torch.cat(wanted)[-10:], rtol=1e-4, atol=1e-5)
    assert held["row"].tolist() == list(range(2, 12))
    assert held["age"].tolist() == [3] * 2 + [2] * 4 + [1] * 4


def test_the_momentum_encoder_starts_from_the_real_weights() -> None:
    rig = Rig(paper("train.lr=0.1"), tiny_corpus())
    branch = rig.assembly.branches["ema"]
    start = {
        name: value.clone() for name, value in rig.assembly.online.encoder.state_dict().items()
    }
    assert all(torch.equal(start[name], each) for name, each in branch.encoder.state_dict().items())
    assert not branch.heads, "keys pass through the online head"
    rig.step(1)
    online = rig.assembly.online.encoder.state_dict()
    for name, each in branch.encoder.state_dict().items():
        assert torch.allclose(each, 0.995 * start[name] + 0.005 * online[name], atol=1e-6)


def test_keys_that_no_loss_could_take_are_refused() -> None:
    """They would be left out of every loss, and the queue would do nothing."""
    with pytest.raises(CseError) as caught:
        Rig(paper("pool.mlp.dimension=16", "pool.mlp.branches=online"), tiny_corpus())
    assert str(caught.value) == (
        f"{STORE}: its vectors have 32 dimensions and the anchors 16; "
        "give the heads of all branches one dimension"
    )
    Rig(paper("pool.mlp.dimension=16"), tiny_corpus()).step(2)


@pytest.mark.parametrize("size", ["0", "-3", "many"])
def test_a_mistake_is_one_line(size: str) -> None:
    with pytest.raises(CseError) as caught:
        compose(recipe="esimcse", sets=[f"{STORE}.size={size}"])
    assert f"{STORE}.size" in str(caught.value) and "\n" not in str(caught.value)


def test_an_unknown_branch_is_one_line() -> None:
    with pytest.raises(CseError) as caught:
        compose(recipe="esimcse", sets=[f"{STORE}.branch=emma"])
    assert f"{STORE}.branch" in str(caught.value) and "\n" not in str(caught.value)
