"""Which negatives a guide removes, against loops; under other losses; what the plan says."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from cse_guide.options import GuideOptions
from cse_testkit import (
    compose,
    make_batch,
    make_context,
    make_part,
    recipe_suites,
    run_steps,
    tiny_corpus,
)
from torch import Tensor

from cse_core.options import LossOptions
from cse_core.types import Batch, Embeddings, Negatives
from cse_engine.step import negatives as core
from tests.fixtures.methods import refusal

globals().update(recipe_suites("cse-guide", Path(__file__).parent / "settings"))

ROLES: Any = {"positive": "positive", "negative": "negative"}


def weighed(
    batch: Batch, guide: Batch, options: LossOptions | None = None, **settings: Any
) -> tuple[Negatives, Mapping[str, Any]]:
    log: dict[str, Any] = {}
    ctx = make_context(batch, vectors=lambda view, branch: guide.views[view], log=log)
    store = make_part("negatives", "guide", **settings)
    negatives = core.negatives_for_loss(batch, options or LossOptions(), list(batch.stored))
    return store.weigh(negatives, batch, ctx), log


def guide_of(sentences: int = 5, seed: int = 7, **changes: Any) -> Batch:
    return make_batch(sentences=sentences, dimension=6, seed=seed, views=ROLES, **changes)


def cosine(one: Tensor, other: Tensor) -> float:
    return float(torch.cosine_similarity(one, other, dim=0))


def test_removed_in_loops() -> None:
    """Columns are the other positives, the other anchors, and the hard negatives, own ones too."""
    batch, guide = make_batch(sentences=5, views=ROLES), guide_of()
    seen = {name: levels["sentence"].vectors for name, levels in guide.views.items()}
    strategies: Any = ("absolute", "relative")
    sides: Any = ("target", "anchor", "both")
    for margin, strategy, side in product((-0.3, 0.0, 0.2, 0.5), strategies, sides):
        found, log = weighed(
            batch, guide, LossOptions(in_batch=side), margin=margin, strategy=strategy,
            views=("negative",),
        )  # fmt: skip
        removed = 0
        for i in range(5):
            own = cosine(seen["anchor"][i], seen["positive"][i])
            most = own - margin * (abs(own) if strategy == "relative" else 1)
            for name, block in found.spans():
                texts = seen[found.views[name]]
                for n in range(block.start, block.stop):
                    j = int(found.row[n])
                    false = cosine(seen["anchor"][i], texts[j]) > most + 1e-12
                    assert bool(found.log_weights[i, n].isinf()) == false, (name, i, j)
                    removed += false and not bool(found.mask[i, n])
        share = removed / int((~found.mask).sum())
        assert float(log["guide.removed"]) == pytest.approx(share)
    assert removed


def test_the_second_direction_has_the_same_thresholds() -> None:
    batch, guide = make_batch(sentences=5, views=ROLES), guide_of()
    swapped, _ = core.reversed_batch(batch, "positive")
    ctx = make_context(batch, vectors=lambda view, branch: guide.views[view])
    negatives = core.negatives_for_loss(batch, LossOptions(in_batch="both"), (), seen_by=swapped)
    found = make_part("negatives", "guide", margin=0.1).weigh(negatives, swapped, ctx)
    seen = {name: levels["sentence"].vectors for name, levels in guide.views.items()}
    for name, block in found.spans():
        texts = seen["anchor" if name == "in-batch" else "positive"]
        for i, n in product(range(5), range(block.start, block.stop)):
            most = cosine(seen["anchor"][i], seen["positive"][i]) - 0.1
            close = cosine(seen["positive"][i], texts[int(found.row[n])])
            assert bool(found.log_weights[i, n].isinf()) == (close > most)


def test_pairs_of_one_row_are_judged_by_their_own_positives() -> None:
    """A round may pair a row of the corpus twice in a batch."""
    rows = [7, 7, 9]
    batch, guide = make_batch(sentences=3, rows=rows), guide_of(3, rows=rows)
    found, _ = weighed(batch, guide)
    one, other = (guide.views[name]["sentence"].vectors for name in ("anchor", "positive"))
    for i, n in product(range(3), range(3)):
        false = cosine(one[i], other[n]) > cosine(one[i], other[i]) + 1e-12
        assert bool(found.log_weights[i, n].isinf()) == false, (i, n)


def test_rows_of_the_guide_are_met_by_key() -> None:
    batch, guide, order = make_batch(views=ROLES), guide_of(4), torch.tensor([2, 0, 3, 1])
    turned = {
        view: {level: rows.take(order) for level, rows in levels.items()}
        for view, levels in guide.views.items()
    }
    given: Any = {"views": ("negative",), "margin": 0.3}
    one, other = (
        weighed(batch, each, **given)[0] for each in (guide, replace(guide, views=turned))
    )
    assert torch.equal(one.log_weights, other.log_weights) and one.log_weights.isinf().any()


def test_texts_of_one_view_and_sentence_have_slots() -> None:
    """Two hard negatives of the first sentence: the second of them is the anchor's positive."""
    batch, guide = make_batch(sentences=2, views=ROLES), guide_of(2)
    both = []
    for each in (batch, guide):
        vectors = each.views["negative"]["sentence"].vectors
        zero = torch.zeros(2, dtype=torch.long)
        both.append(Embeddings(vectors, zero, torch.tensor([0, 1]), torch.full((2,), 5)))
    seen = guide.views
    near = torch.stack(
        [-seen["anchor"]["sentence"].vectors[0], seen["anchor"]["sentence"].vectors[0]]
    )
    both[1] = replace(both[1], vectors=near).take(torch.tensor([1, 0]))
    batch = replace(batch, views={**batch.views, "negative": {"sentence": both[0]}})
    guide = replace(guide, views={**seen, "negative": {"sentence": both[1]}})
    found, _ = weighed(batch, guide, views=("negative",))
    (block,) = (block for name, block in found.spans() if name == "negative")
    assert found.log_weights[0, block].isinf().tolist() == [False, True]


def test_stored_columns_are_judged_where_asked_by_the_vectors_beside_them() -> None:
    batch, guide = make_batch(sentences=3), guide_of(3)
    anchor = guide.views["anchor"]["sentence"].vectors
    side = {("queue", "frozen"): torch.stack([anchor[0], -anchor[0]])}
    queue = Negatives.of(torch.ones(2, 8), 3, name="queue", row=torch.tensor([40, 41]), side=side)
    found, _ = weighed(replace(batch, stored={"queue": queue}), guide)
    (block,) = (block for name, block in found.spans() if name == "queue")
    assert found.log_weights[0, block].isinf().tolist() == [True, False]
    bare = replace(queue, side={})
    found, _ = weighed(replace(batch, stored={"queue": bare}), guide)
    assert not found.log_weights[:, block].any()
    counts = {}
    for stored in ("true", "false"):
        sets = [
            f"negatives.guide.stored={stored}", "negatives.guide.margin=1.99",
            "negatives.momentum-queue.size=16", "train.batch_size=4",
        ]  # fmt: skip
        rig = run_steps({"negatives": ["momentum-queue", "+guide"]}, sets, steps=3)
        counts[stored] = rig.scalars[-1]["infonce.negatives.weight_zero"]
    assert counts == {"true": 11, "false": 3}


def test_it_works_under_other_losses() -> None:
    """InfoNCE, DCLR's loss and hard negatives see what it removes; the plan fills its views."""
    corpus = tiny_corpus(columns=("positive", "negative"))
    sets = ["negatives.guide.margin=1.99", "train.batch_size=4"]
    rig = run_steps({"loss": ["+dclr"]}, sets, "gist", steps=1, corpus=corpus)
    for loss in ("infonce", "dclr"):
        assert rig.scalars[0][f"{loss}.negatives.weight_zero"] > 0
    run = compose(recipe="gist", corpus=corpus)
    assert next(part.options for part in run.of("negatives")).views == ("negative",)  # type: ignore[attr-defined]
    assert run.passes[-1].views == ("anchor", "positive", "negative")


def test_the_plan_warns_of_one_text_and_of_the_model_itself() -> None:
    corpus = tiny_corpus(columns=("positive",))
    (line,) = compose(recipe="gist", corpus=corpus).warnings
    assert "--branch.frozen.model MODEL names another" in line
    lines = compose(recipe="simcse", kinds={"negatives": ["+guide"]}).warnings
    assert any("margin = 0.1" in line for line in lines)
    wide = compose(
        recipe="simcse", kinds={"negatives": ["+guide"]}, sets=["negatives.guide.margin=0.1"]
    )
    assert not any("one text" in line for line in wide.warnings)


def test_defaults_are_those_of_the_public_code() -> None:
    options = GuideOptions()
    assert (options.margin, options.strategy, options.branch) == (0.0, "absolute", "frozen")


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ("negatives.guide.branch=online", "another branch than the model"),
        ("negatives.guide.branch=tutor", "unknown branch"),
        ("negatives.guide.views=['no']", "no such view"),
        ("negatives.guide.margin=3", "must be a number >= -2 and <= 2"),
        ("views.positive.lists=all", "views.positive.lists = draw"),
    ],
)
def test_what_cannot_be_is_one_line(sets: str, says: str) -> None:
    corpus = tiny_corpus(columns=("positive",))
    assert says in refusal(compose, recipe="gist", sets=[sets], corpus=corpus)
