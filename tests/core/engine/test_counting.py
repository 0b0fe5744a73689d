"""What is counted of negatives, and which are the anchor's sentence, against slow loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from cse_testkit.batches import make_batch

from cse_core.data import Corpus
from cse_core.engine.counting import counts
from cse_core.engine.negatives import of_loss
from cse_core.options import LossOptions
from cse_core.tokenization.training_rows import TrainingRows
from cse_core.types import Batch, Negatives

TEXTS = ["a b", "c", "a b", "A  b", "d", "e"]
POSITIVES = ["x", "y", "z", "y", "C", "a b"]
NEGATIVES = ["c", "q", "a b", "x", "w", "r"]
STORED = [0, 2, 3, -1, 4, 1]
"""Corpus rows of what the store ``queue`` holds; -1 is a random key."""
AGES = [1, 1, 2, 3, 2, 4]


def batch(columns: bool = True) -> Batch:
    """Six sentences with a view of hard negatives and a queue of positives."""
    made = make_batch(sentences=6, views={"positive": "positive", "negative": "negative"})
    stored = Negatives.of(
        torch.randn(6, 8, dtype=torch.float64), 6, name="queue",
        row=torch.tensor(STORED), age=torch.tensor(AGES),
    )  # fmt: skip
    data = Corpus.from_columns({"text": TEXTS, "positive": POSITIVES, "negative": NEGATIVES})
    rows = TrainingRows(data, 8)
    texts = {}
    for fold in (False, True) if columns else ():
        ids = rows.text_ids(("text", "positive", "negative"), fold)
        of = {"anchor": "text", "positive": "positive", "negative": "negative", "queue": "positive"}
        texts.update({(name, fold): ids[column] for name, column in of.items()})
    return replace(made, stored={"queue": stored}, corpus=replace(rows.keys, texts=texts))


def folded(text: str) -> str:
    return " ".join(text.lower().split())


def once_more(anchor: int, source: str, row: int, how: str) -> bool:
    """Return whether a negative is the anchor's sentence again, not its own row in the batch."""
    if row < 0 or how == "keep":
        return False
    plain = folded if how == "fold" else str
    same_row = plain(TEXTS[row]) == plain(TEXTS[anchor])
    if source == "negative":
        same_row = False
    elif source == "in-batch" and row == anchor:
        return False
    if how == "mask":
        return same_row
    held = {"in-batch": POSITIVES, "negative": NEGATIVES, "queue": POSITIVES}[source][row]
    own = (plain(TEXTS[anchor]), plain(POSITIVES[anchor]))
    return same_row or plain(held) in own


def places() -> list[tuple[str, int, int]]:
    """Return source, corpus row and age of each negative."""
    rows = [("in-batch", row, 0) for row in range(6)] + [("negative", row, 0) for row in range(6)]
    return rows + [("queue", row, age) for row, age in zip(STORED, AGES, strict=True)]


@pytest.mark.parametrize("how", ["keep", "mask", "any", "fold"])
def test_counts_and_masks_are_those_of_a_slow_loop(how: Any) -> None:
    options, given = LossOptions(same_text=how), batch()
    found = of_loss(given, options, ("queue",))
    numbers = counts(given, found, options, ("queue",))
    counted = "fold" if how == "fold" else "any"
    seen = {"in-batch": 0, "negative": 0, "queue": 0}
    ages, masked, kept = 0, 0, 0
    for anchor in range(6):
        for place, (source, row, age) in enumerate(places()):
            own = source == "in-batch" and row == anchor
            is_masked = own or once_more(anchor, source, row, how)
            assert bool(found.mask[anchor, place]) == is_masked, (anchor, source, row)
            seen[source] += not is_masked
            ages += age * (source == "queue" and not is_masked)
            again = once_more(anchor, source, row, counted)
            masked += again and is_masked
            kept += again and not is_masked
    assert float(numbers["negatives"]) == pytest.approx(sum(seen.values()) / 6)
    for source, count in seen.items():
        assert float(numbers[f"negatives.{source}"]) == pytest.approx(count / 6)
    assert float(numbers["negatives.queue.age"]) == pytest.approx(ages / seen["queue"])
    assert (float(numbers["same_text.masked"]), float(numbers["same_text.seen"])) == (masked, kept)
    assert masked + kept > 0 and (kept == 0) == (how in ("any", "fold"))
    assert {name for name in numbers if name.endswith("age")} == {"negatives.queue.age"}


def test_weight_zero_is_counted_and_a_block_that_nobody_sees_has_age_zero() -> None:
    given, options = batch(columns=False), LossOptions()
    found = of_loss(given, options, ("queue",))
    weights = found.log_weights.clone()
    weights[:, 12:] = -torch.inf
    numbers = counts(given, replace(found, log_weights=weights), options, ("queue",))
    assert numbers["negatives.weight_zero"] == numbers["negatives.queue"] > 0
    blocks = sum(float(numbers[f"negatives.{n}"]) for n in ("in-batch", "negative", "queue"))
    assert float(numbers["negatives"]) == pytest.approx(blocks)
    mask = found.mask.clone()
    mask[:, 12:] = True
    numbers = counts(given, replace(found, mask=mask), options, ("queue",))
    assert float(numbers["negatives.queue"]) == float(numbers["negatives.queue.age"]) == 0


def test_without_columns_the_row_alone_tells() -> None:
    given = batch(columns=False)
    plain, any_ = (
        of_loss(given, LossOptions(same_text=how), ("queue",)).mask for how in ("mask", "any")
    )
    assert torch.equal(plain, any_) and bool(plain[0, 2]) and bool(plain[0, 13])


def test_numbers_of_texts_join_columns_and_fold_case_and_spacing() -> None:
    odd = {"text": ["Straße  a", "B\u00a0c", "b C", "x"], "positive": ["x", "b c", "q", "straße a"]}
    rows = TrainingRows(Corpus.from_columns(odd), 8)
    for fold in (False, True):
        ids = rows.text_ids(("text", "positive"), fold)
        flat = [*odd["text"], *odd["positive"]]
        numbers = torch.cat([ids["text"], ids["positive"]])
        plain = folded if fold else str
        equal = [[plain(one) == plain(two) for two in flat] for one in flat]
        assert torch.equal(numbers[:, None] == numbers, torch.tensor(equal))
        assert ids["text"].shape == (4,)
    corpus = Corpus.from_columns(odd)
    own = TrainingRows(corpus, 8, {"text": ["r", "R"], "positive": ["s", "r"]}, number=1)
    ids = own.text_ids(("text", "positive"), True)
    assert ids["text"][0] == ids["text"][1] == ids["positive"][1] != ids["positive"][0]
    paired = {"text": np.array([1, 1]), "positive": np.array([0, 2])}
    # A pair's positive belongs to no corpus row, and is left out.
    assert set(TrainingRows(corpus, 8, paired).text_ids(("text", "positive"), True)) == {"text"}
