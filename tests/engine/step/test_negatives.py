"""Whose negatives are whose: stores, masks, levels, segments, views of negatives; their counts."""

from dataclasses import replace

import pytest
import torch
from cse_testkit import make_batch
from torch.nn import functional

from cse_core.errors import CseError
from cse_core.options import LossOptions
from cse_core.types import Batch, Negatives, Positives
from cse_engine.step.negatives import (
    negative_counts,
    negatives_for_loss,
    no_negatives,
    reversed_batch,
)
from tests.fixtures.methods import refusal
from tests.fixtures.tiny import Bench, Build, sentences

READY = (
    '[[pool]]\nuse = "cls"\n[[negatives]]\nuse = "ready"\n'
    '[[negatives]]\nuse = "ready"\nname = "second"\n'
)


def negatives_of(bench: Bench) -> Negatives:
    """Return those that the loss is given in a step."""
    seen = bench.seen()
    bench.step(0)
    negatives: Negatives = seen["loss.infonce", "__call__"][0][2]
    return negatives


def test_a_loss_chooses_its_negatives_of_its_level(build: Build) -> None:
    for setting, size, expected in (
        ("loss.infonce.negatives=all", 32, ["in-batch", "ready", "second"]),
        ("loss.infonce.negatives=in-batch", 32, ["in-batch"]),
        ("loss.infonce.negatives=stored", 32, ["ready", "second"]),
        ("loss.infonce.negatives=[second]", 32, ["in-batch", "second"]),
        ("negatives.second.level=input", 7, ["in-batch", "ready"]),
    ):
        bench = build(READY, setting)
        bench.part("negatives.ready").given = {"vectors": torch.randn(3, 32)}
        bench.part("negatives.second").given = {"vectors": torch.randn(3, size)}
        assert [name for name, _ in negatives_of(bench).blocks] == expected


def test_another_dimension_is_refused(build: Build) -> None:
    """Unless no loss of their level takes them."""
    bench = build(READY)
    bench.part("negatives.second").given = {"vectors": torch.randn(3, 7)}
    assert refusal(bench.step, 0) == (
        "negatives.second: its vectors have 7 dimensions and the anchors 32; "
        "give the heads of all branches one dimension"
    )
    bench = build(READY, "loss.infonce.negatives=[ready]")
    bench.part("negatives.second").given = {"vectors": torch.randn(3, 7)}
    assert [name for name, _ in negatives_of(bench).blocks] == ["in-batch"]
    recipe = (
        '[[pool]]\nuse = "cls"\n[[pool]]\nuse = "mlp"\nbranches = "online"\ndimension = 16\n'
        '[views.positive]\nbranch = "ema"\n[[branch]]\nuse = "ema"\n'
    )
    printed = "views.positive.branch: its vectors have 32 dimensions and the anchors 16"
    with pytest.raises(CseError, match=printed):
        build(recipe).step(0)


def test_masks_of_own_row_same_text_and_same_document(build: Build) -> None:
    texts = sentences(24)
    texts[9], texts[2] = texts[0], texts[1]
    columns = {"text": texts, "document": [f"d{i // 6}" for i in range(24)]}
    bench = build(READY, "loss.infonce.same_document=mask", columns=columns)
    bench.part("negatives.ready").given = {
        "vectors": torch.randn(5, 32), "row": torch.tensor([0, 9, 20, 2, -1]),
    }  # fmt: skip
    negatives = negatives_of(bench)
    mask, stored = negatives.mask[:, :8], negatives.mask[:, 8:]
    documents, ids = [i // 6 for i in range(24)], [texts.index(t) for t in texts]
    for i in range(8):
        for j in range(8):
            assert bool(mask[i, j]) == (documents[i] == documents[j] or ids[i] == ids[j])
        for n, row in enumerate([0, 9, 20, 2, -1]):
            same = row >= 0 and (documents[i] == documents[row] or ids[i] == ids[row])
            assert bool(stored[i, n]) == same
    kept = build(READY, "loss.infonce.same_text=keep", columns=columns)
    assert torch.equal(negatives_of(kept).mask, torch.eye(8).bool())


def test_whose_rows_are_unknown_and_what_is_weighed(build: Build) -> None:
    texts = sentences(24)
    pairs = {"text": texts[:12], "positive": texts[12:]}
    bench = build(READY, columns={"text": texts}, pairs=pairs)
    bench.part("negatives.ready").given = {
        "vectors": torch.randn(4, 32), "row": torch.tensor([0, 3, 23, 10**6]),
    }  # fmt: skip
    assert not negatives_of(bench).mask[:, 8:].any()
    recipe = '[[pool]]\nuse = "cls"\n[[negatives]]\nuse = "watching"\n'
    bench = build(recipe)
    negatives = negatives_of(bench)
    assert [name for name, _ in negatives.blocks] == ["in-batch"]
    assert bool((negatives.log_weights < -0.6).all())
    ((_, given),) = bench.part("negatives.watching").seen
    assert given.blocks == (("in-batch", 8),) and not given.log_weights.any()


def test_views_of_several_texts(build: Build) -> None:
    for role in ("soft_negative", "aux", "negative"):
        recipe = f'[[pool]]\nuse = "cls"\n[[negatives]]\nuse = "extra-view"\nrole = "{role}"\n'
        bench = build(recipe, "model.dropout=0")
        own = () if role != "negative" else (("negative", 16),)
        negatives = negatives_of(bench)
        assert negatives.blocks == (("in-batch", 8), *own)
    assert not negatives.mask[:, 8:].any()
    assert negatives.row[8:].tolist() == [i for i in range(8) for _ in range(2)]
    texts = [f"{t} {w}" for t in bench.columns["text"][:8] for w in ("ba", "do")]
    fresh = build(recipe).assembly.online.encode(texts, torch.device("cpu"))
    torch.testing.assert_close(negatives.vectors[8:].detach(), fresh, rtol=1e-4, atol=1e-5)


TEXTS = ["a b", "c", "a b", "A  b", "d", "e"]
STORED = [0, 2, 3, -1, 4, 1]
"""Corpus rows of what the store ``queue`` holds; -1 is a random key."""
AGES = [1, 1, 2, 3, 2, 4]


def counted_batch() -> Batch:
    """Return six sentences with a view of hard negatives and a queue."""
    views = {"positive": "positive", "negative": "negative"}
    made = make_batch(sentences=6, views=views, same_text={2: 0})  # type: ignore[arg-type]
    stored = Negatives.of(
        torch.randn(6, 8, dtype=torch.float64), 6, name="queue",
        row=torch.tensor(STORED), age=torch.tensor(AGES),
    )  # fmt: skip
    return replace(made, stored={"queue": stored})


def test_counts_and_masks_are_those_of_a_slow_loop() -> None:
    rows = [("in-batch", row, 0) for row in range(6)] + [("negative", row, 0) for row in range(6)]
    rows += [("queue", row, age) for row, age in zip(STORED, AGES, strict=True)]
    for how in ("keep", "mask"):
        options, given = LossOptions(same_text=how), counted_batch()  # type: ignore[arg-type]
        found = negatives_for_loss(given, options, ("queue",))
        numbers = negative_counts(given, found, options, ("queue",))
        seen = {"in-batch": 0, "negative": 0, "queue": 0}
        ages, again, nearest = 0, {True: 0, False: 0}, [-1.0] * 6
        vectors, positives = functional.normalize(found.vectors), given.targets["positive"].vectors
        for anchor in range(6):
            for place, (source, row, age) in enumerate(rows):
                own = source == "in-batch" and row == anchor
                same = source != "negative" and row >= 0 and TEXTS[row] == TEXTS[anchor]
                masked = own or (same and how == "mask")
                assert bool(found.mask[anchor, place]) == masked, (anchor, source, row)
                seen[source] += not masked
                cosine = float(functional.normalize(given.anchors[anchor], dim=0) @ vectors[place])
                nearest[anchor] = max(nearest[anchor], -1.0 if masked else cosine)
                ages += age * (source == "queue" and not masked)
                again[masked] += same and not own
        assert float(numbers["negatives"]) == pytest.approx(sum(seen.values()) / 6)
        for source, count in seen.items():
            assert float(numbers[f"negatives.{source}"]) == pytest.approx(count / 6)
        assert float(numbers["negatives.queue.age"]) == pytest.approx(ages / seen["queue"])
        assert float(numbers["same_text.masked"]) == again[True] == 9 * (how == "mask")
        assert float(numbers["same_text.seen"]) == again[False] == 9 * (how == "keep")
        assert {name for name in numbers if name.endswith("age")} == {"negatives.queue.age"}
        close = functional.cosine_similarity(given.anchors, positives[:, 0])
        margin = float(close.mean()) - sum(nearest) / 6
        assert float(numbers["positive_margin"]) == pytest.approx(margin)
    given, options = counted_batch(), LossOptions()
    found = negatives_for_loss(given, options, ("queue",))
    weights = found.log_weights.clone()
    weights[:, 12:] = -torch.inf
    weighed = replace(found, log_weights=weights)
    numbers = negative_counts(given, weighed, options, ("queue",))
    assert numbers["negatives.weight_zero"] == numbers["negatives.queue"] > 0
    mask = found.mask.clone()
    mask[:, 12:] = True
    numbers = negative_counts(given, replace(found, mask=mask), options, ("queue",))
    assert float(numbers["negatives.queue"]) == float(numbers["negatives.queue.age"]) == 0
    hidden = replace(found, mask=torch.ones_like(mask))
    for nothing in (hidden, replace(found, log_weights=torch.full_like(weights, -torch.inf))):
        assert float(negative_counts(given, nothing, options, ("queue",))["positive_margin"]) == 0
    none = LossOptions(negatives="none")
    assert "positive_margin" not in negative_counts(given, no_negatives(given), none, ())


KEPT = LossOptions(same_sentence="keep")


def seen_by(negatives: Negatives, row: int) -> list[int]:
    return (~negatives.mask[row]).nonzero().squeeze(1).tolist()


def test_segments_of_the_anchors_sentence() -> None:
    """Of three sentences of two segments each, the second has the first's text in some cases."""
    for options, made, first, other in (
        (LossOptions(), {}, [2, 3, 4, 5], (3, [0, 1, 4, 5])),
        (KEPT, {}, [1, 2, 3, 4, 5], (3, [0, 1, 2, 4, 5])),
        (KEPT.model_copy(update={"same_text": "keep"}), {}, [1, 2, 3, 4, 5], (3, [0, 1, 2, 4, 5])),
        (KEPT, {"same_text": {1: 0}}, [1, 4, 5], (2, [3, 4, 5])),
        (
            KEPT.model_copy(update={"same_document": "mask"}), {"documents": [0, 0, 1]},
            [1, 4, 5], (2, [3, 4, 5]),
        ),
    ):  # fmt: skip
        batch = make_batch(sentences=3, segments=2, level="segment", **made)  # type: ignore[arg-type]
        negatives = negatives_for_loss(batch, options, ())
        row, expected = other
        assert seen_by(negatives, 0) == first and seen_by(negatives, row) == expected
    batch = make_batch(sentences=3, segments=2, level="segment")
    stored = Negatives.of(batch.anchors[:2], 6, name="queue", row=torch.tensor([0, 1]))
    negatives = negatives_for_loss(replace(batch, stored={"queue": stored}), KEPT, ["queue"])
    assert seen_by(negatives, 0) == [1, 2, 3, 4, 5, 7], "a store's of the own text stays masked"
    once = [1, 2, 3, 4, 5]
    for sides in ("target", "anchor", "both"):
        options = KEPT.model_copy(update={"in_batch": sides, "directions": "both"})
        swapped, _ = reversed_batch(batch, "positive")
        negatives = negatives_for_loss(batch, options, (), seen_by=swapped)
        both = [*once, *(n + 6 for n in once)] if sides == "both" else once
        assert seen_by(negatives, 0) == both


def test_a_shared_positive_is_a_negative_once() -> None:
    """Segments as each other's positives: four columns of twelve, those that ``distinct`` names."""
    rows = make_batch(sentences=3, segments=2, level="segment")
    own = rows.targets["positive"].vectors[:, 0]
    sibling = own[torch.tensor([1, 0, 3, 2, 5, 4])]
    weights = torch.ones(6, 2)
    weights[5] = 0
    group = Positives(torch.stack([own, sibling], dim=1), weights, torch.arange(6) * 2)
    rows = replace(rows, targets={"shared": group})
    negatives = negatives_for_loss(rows, LossOptions(target="shared"), ())
    assert len(negatives) == 6 and torch.equal(negatives.vectors, own)
    assert seen_by(negatives, 0) == [2, 3, 4], "the absent one is masked"
    every = replace(rows, targets={"shared": replace(group, distinct=None)})
    assert len(negatives_for_loss(every, LossOptions(target="shared"), ())) == 12
